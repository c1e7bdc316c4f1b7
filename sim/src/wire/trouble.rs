//! What goes wrong on a host and on its connections.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::Ordering;

use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host as _;

use super::host::{RECEIVER, SENDER, SimHost};
use super::stream::Plan;
use crate::fault::Fault;
use crate::scenario::{Break, Scenario};
use crate::sometimes::Sometimes;
use crate::zoo::{HarnessMutant, SenderMutant};

/// Where a resolver leads that is not to be trusted: the clouds' metadata service, the sender itself,
/// and a machine beside it.
const DENIED: [Ipv4Addr; 3] =
    [Ipv4Addr::new(169, 254, 169, 254), Ipv4Addr::LOCALHOST, Ipv4Addr::new(10, 0, 0, 1)];

impl SimHost {
    pub(super) fn plan(&self, fault: Fault) -> Plan {
        let choices = &self.stage.choices;
        let name = self.name();
        let pick = |what, list: [u16; 4]| list[index(choices.draw(name, what, 4))];
        let answer = |status| Plan::Answer { fault, status };
        match fault {
            Fault::RequestLost => Plan::LoseRequest,
            // A broken harness: the response is said to be lost, and arrives.
            Fault::ResponseLost if self.stage.is_harness(HarnessMutant::FaultNeverFires) => {
                Plan::Clean
            }
            Fault::ResponseLost => Plan::LoseResponse,
            Fault::ConnectionReset => Plan::Reset,
            Fault::Duplicate => {
                // At once more often than not: two copies that race are the harder case.
                let quarters = choices.draw(name, "duplicate delay", 8).saturating_sub(3);
                Plan::Duplicate(Millis::new(quarters * 250))
            }
            Fault::Reorder => {
                Plan::Hold(Millis::new(choices.between(name, "held for", 1, 30) * 100))
            }
            Fault::SlowResponse if choices.chance(name, "slow body", 300) => Plan::SlowBody,
            Fault::SlowResponse => {
                Plan::Slow(Millis::from_secs(choices.between(name, "slow by", 1, 12)))
            }
            Fault::Oversize => Plan::Oversize,
            Fault::ServerError => answer(pick("5xx", [500, 502, 503, 504])),
            Fault::TooManyRequests => answer(429),
            Fault::Redirect => answer(pick("3xx", [301, 302, 307, 308])),
            Fault::ClientError => answer(pick("4xx", [400, 401, 403, 404])),
            Fault::Gone => answer(410),
            _ => Plan::Clean,
        }
    }

    /// What a name resolves to while the resolver lies.
    pub(super) fn rebound(&self, allowed: IpAddr) -> Vec<IpAddr> {
        let choices = &self.stage.choices;
        let denied = IpAddr::V4(DENIED[index(choices.draw(self.name(), "denied address", 3))]);
        match choices.draw(self.name(), "resolves to", 3) {
            0 => vec![denied],
            1 => vec![allowed, denied],
            _ => vec![denied, allowed],
        }
    }
}

impl SimHost {
    /// Whether a wrong sender would connect to what the policy denies. S36 judges one answer, and asks
    /// again for the connection; S37 judges the first, and goes on to the second.
    pub(super) fn is_deceived(&self, answers: &[IpAddr]) -> bool {
        let is_first_allowed = answers.first() == Some(&turmoil::lookup(RECEIVER));
        self.stage.is_sender_mutant(SenderMutant::ResolvesTwice)
            || self.stage.is_sender_mutant(SenderMutant::FirstAnswerOnly) && is_first_allowed
    }

    /// By which fault the commit that is under way is refused, if it is.
    pub(super) fn refusal(&self) -> Option<Fault> {
        let (stage, name) = (&self.stage, self.name());
        let per_mille = stage.faults.per_mille(Fault::StoreBusy);
        let is_busy = stage.choices.chance(name, "store busy", per_mille);
        if !stage.are_faults_on() {
            return None;
        }
        if stage.is_full(name, self.true_now()) {
            return Some(Fault::StoreFull);
        }
        if is_busy {
            stage.journal.chose(Fault::StoreBusy);
        }
        is_busy.then_some(Fault::StoreBusy)
    }

    /// The process may stand still here, or its worker may take long.
    pub(super) async fn may_be_held_up(&self, point: CrashPoint) {
        match point {
            CrashPoint::AttemptClaimed
            | CrashPoint::AttemptAnswered
            | CrashPoint::InboxCommitted => {
                self.may_pause().await;
            }
            CrashPoint::WorkClaimed => {
                self.may_pause().await;
                self.may_be_slow().await;
            }
            CrashPoint::WorkMarked => self.see_slow_work(),
            _ => {}
        }
    }

    /// Whether a fault of the whole process strikes, here and now.
    fn strikes(&self, fault: Fault) -> bool {
        let stage = &self.stage;
        let is_struck =
            stage.choices.chance(self.name(), fault.as_str(), stage.faults.per_mille(fault));
        if !is_struck || !stage.are_faults_on() {
            return false;
        }
        stage.journal.chose(fault);
        true
    }

    /// All tasks of the process stand still, perhaps for longer than its leases, and go on.
    async fn may_pause(&self) {
        if !self.strikes(Fault::Pause) {
            return;
        }
        let seconds = self.stage.choices.between(self.name(), "paused for", 5, 60);
        let (now, span) = (self.true_now(), Millis::from_secs(seconds));
        self.says(format!("stands still for {span}"));
        if self.name() == SENDER {
            self.stage.witness().stands_still(now, now.plus(span));
        }
        self.fuse.stand_still(span);
        self.sleep(span).await;
        let held_up = self.fuse.held_up();
        if held_up > 0 {
            let detail = format!("goes on after {span}, and {held_up} times something had to wait");
            self.stage.journal.fired(self.true_now(), self.name(), Fault::Pause, &detail);
            let lease = match self.name() {
                SENDER => self.stage.witness().lease(),
                _ => Scenario::inbox_rule().lease,
            };
            if span > lease {
                self.stage.journal.reached(Sometimes::PausedPastLease);
            }
        }
    }

    /// A worker is not done with what it has claimed before its lease ends.
    async fn may_be_slow(&self) {
        if !self.strikes(Fault::SlowWork) {
            return;
        }
        self.slow_since().store(self.true_now().as_millis(), Ordering::Relaxed);
        let seconds = self.stage.choices.between(self.name(), "work takes", 1, 12);
        self.sleep(Millis::from_secs(seconds)).await;
    }

    /// What was worked off after its lease had ended.
    fn see_slow_work(&self) {
        let since = self.slow_since().swap(0, Ordering::Relaxed);
        if since == 0 {
            return;
        }
        let now = self.true_now();
        let took = now.since(Timestamp::from_millis(since));
        if took > Scenario::inbox_rule().lease {
            self.stage.journal.fired(now, RECEIVER, Fault::SlowWork, &format!("worked for {took}"));
        }
    }
}

/// What happens to a request to an endpoint that fails so.
pub(super) fn plan_of_break(fails: Break) -> Plan {
    match fails {
        Break::Hangs => Plan::LoseRequest,
        Break::Refuses => Plan::Clean,
        Break::Answers500 => Plan::Answer { fault: Fault::ServerError, status: 500 },
        Break::Answers404 => Plan::Answer { fault: Fault::ClientError, status: 404 },
    }
}

/// Whether a fault of a connection can still do something to an endpoint that fails: only what strikes
/// before that is reached.
pub(super) fn can_strike(fault: Fault, fails: Option<Break>) -> bool {
    let is_early = matches!(
        fault,
        Fault::DnsFailure | Fault::DnsRebinding | Fault::ConnectRefused | Fault::ConnectTimeout
    );
    fails.is_none() || is_early
}

/// A small draw as an index.
fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(0)
}
