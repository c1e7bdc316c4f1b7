//! Many events that fail at once, on their way to one endpoint that stays down: the sender's own
//! machines, gate and delivery, driven as the sender drives them, by attempts that take no time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hookproof_core::classify::Judgement;
use hookproof_core::delivery::{Ctx, Delivery, Input, Phase, Rejected, Step};
use hookproof_core::gate::{Admission, Gate, Transition};
use hookproof_core::id::{DeliveryId, EndpointId, EventId, IdError};
use hookproof_core::outcome::Outcome;
use hookproof_core::policy::Policy;
use hookproof_core::time::{Millis, Timestamp};
use serde::Serialize;

use super::limits::Limits;
use super::lives::entropy;

const EVENT: Timestamp = Timestamp::from_millis(0);
const HOUR: Millis = Millis::from_hours(1);

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Burst {
    pub(super) events: u32,
    /// Requests in all.
    pub(super) requests: u64,
    pub(super) requests_first_hour: u64,
    /// The most retries within any second.
    pub(super) retries_per_second_max: u64,
    /// When the last attempt of any event was made.
    pub(super) last_attempt_ms: u64,
    /// By how much the gate held an attempt back at most.
    pub(super) held_ms_max: u64,
    /// When the breaker's rule gave the endpoint up: nothing is sent there from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) given_up_ms: Option<u64>,
    /// The longest time between a request and the next, to whichever event it belongs.
    pub(super) quiet_ms_max: u64,
    /// Whether there was anything that could hold an attempt back.
    pub(super) limited: bool,
    /// When the attempts of each event were made, if there was.
    #[serde(skip)]
    pub(super) made: Vec<Vec<u64>>,
}

/// Which events, and until when their receiver is down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) events: u32,
    /// Where their draws begin: other lives draw other waits.
    pub(super) first_life: u64,
    /// From when on the receiver takes what it gets.
    pub(super) recovery_ms: Option<u64>,
}

#[cfg(test)]
impl Run {
    /// So many events, whose receiver stays down.
    pub(super) fn of(events: u32) -> Self {
        Self { events, first_life: 0, recovery_ms: None }
    }
}

/// The endpoint, its gate, and what is on its way there.
struct World<'a> {
    policy: &'a Policy,
    run: Run,
    outcome: Outcome,
    judgement: Judgement,
    gate: Gate,
    now: Timestamp,
    deliveries: Vec<Delivery>,
    /// The longest due first, as the store has it.
    due: BinaryHeap<Reverse<(Timestamp, usize)>>,
    second: Second,
    burst: Burst,
}

/// How many retries there were in the second that ends now: by the millisecond, and their sum.
#[derive(Default)]
struct Second {
    at: VecDeque<(u64, u64)>,
    sum: u64,
}

impl Second {
    /// Adds one, and tells how many there are.
    fn add(&mut self, now_ms: u64) -> u64 {
        while let Some((_, count)) =
            self.at.front().copied().filter(|(at, _)| now_ms.saturating_sub(*at) >= 1000)
        {
            self.sum -= count;
            self.at.pop_front();
        }
        match self.at.back_mut() {
            Some((at, count)) if *at == now_ms => *count += 1,
            _ => self.at.push_back((now_ms, 1)),
        }
        self.sum += 1;
        self.sum
    }
}

impl Burst {
    /// Lives through all attempts of a run. Its policy has the gate of `limits`.
    pub(super) fn new(policy: &Policy, run: Run, limits: &Limits) -> Self {
        let events = run.events;
        let policy = Policy { gate: limits.gate.clone(), ..policy.clone() };
        // A plain failure, or the one that a receiver asks with to be left alone.
        let status = if limits.retry_after.is_some() { 503 } else { 500 };
        let outcome = Outcome::Answered { status, retry_after: limits.retry_after };
        let deliveries = (0..events).filter_map(|event| delivery(event).ok()).collect::<Vec<_>>();
        let mut world = World {
            judgement: policy.classification.judge(&outcome),
            policy: &policy,
            run,
            outcome,
            gate: Gate::default(),
            now: EVENT,
            due: (0..deliveries.len()).map(|at| Reverse((EVENT, at))).collect(),
            deliveries,
            second: Second::default(),
            burst: Self {
                events,
                requests: 0,
                requests_first_hour: 0,
                retries_per_second_max: 0,
                last_attempt_ms: 0,
                held_ms_max: 0,
                given_up_ms: None,
                quiet_ms_max: 0,
                limited: limits.limit(),
                made: vec![Vec::new(); events as usize],
            },
        };
        while world.go_on().is_some() {}
        world.burst
    }
}

impl World<'_> {
    /// Does the next thing that the sender would do; `None` if there is none.
    fn go_on(&mut self) -> Option<()> {
        let Reverse((due, at)) = *self.due.peek()?;
        self.now = self.now.max(due);
        if let Err((until, _why)) = self.gate.room(&self.policy.gate, self.now) {
            // A gate never says to ask again at once; at the end of time there is no later.
            let later = until.max(self.now.plus(Millis::new(1)));
            let goes_on = later > self.now;
            self.now = later;
            return goes_on.then_some(());
        }
        self.due.pop();
        let held = self.gate.held(due, self.now);
        // A rejection cannot be: nobody else moves these deliveries.
        let step = self.handle(at, Input::Admitted { held }, 0).ok()?;
        self.deliveries[at] = step.onto(&self.deliveries[at]).ok()?.delivery;
        if let Phase::InFlight { attempt, .. } = self.deliveries[at].phase {
            self.count(at, attempt, self.now.since(due));
            self.attempt(at, attempt)?;
        }
        Some(())
    }

    /// Makes an attempt, which ends at once; `None` if the endpoint is given up over it.
    fn attempt(&mut self, at: usize, attempt: u32) -> Option<()> {
        let rule = &self.policy.gate;
        let Admission::Go(permit) = self.gate.admit(rule, self.now, self.policy.lease()) else {
            return None;
        };
        let is_down = self.run.recovery_ms.is_none_or(|ms| self.now.since(EVENT).get() < ms);
        let (outcome, judgement) = if is_down {
            (self.outcome, self.judgement)
        } else {
            let taken = Outcome::Answered { status: 200, retry_after: None };
            (taken, self.policy.classification.judge(&taken))
        };
        if let Some(throttle) = judgement.throttle {
            self.gate.throttle(rule, self.now, throttle);
        }
        let transition = self.gate.record(rule, self.now, permit, judgement.signal);
        let finished = Input::Finished { attempt, outcome };
        let life = self.run.first_life.wrapping_add(at as u64);
        let step = self.handle(at, finished, entropy(life, attempt)).ok()?;
        self.deliveries[at] = step.onto(&self.deliveries[at]).ok()?.delivery;
        if let Phase::Scheduled { due, .. } = self.deliveries[at].phase {
            self.due.push(Reverse((due, at)));
        }
        if let Some(Transition::Disabled { .. }) = transition {
            self.burst.given_up_ms = Some(self.now.since(EVENT).get());
            return None;
        }
        Some(())
    }

    fn handle(&self, at: usize, input: Input, entropy: u64) -> Result<Step, Rejected> {
        let ctx = Ctx { now: self.now, entropy, policy: self.policy };
        self.deliveries[at].handle(ctx, input)
    }

    /// Takes down an attempt that begins now and was held back for so long.
    fn count(&mut self, at: usize, attempt: u32, held: Millis) {
        let burst = &mut self.burst;
        let now_ms = self.now.since(EVENT).get();
        burst.requests += 1;
        burst.requests_first_hour += u64::from(now_ms < HOUR.get());
        burst.quiet_ms_max = burst.quiet_ms_max.max(now_ms - burst.last_attempt_ms);
        burst.last_attempt_ms = now_ms;
        burst.held_ms_max = burst.held_ms_max.max(held.get());
        if attempt > 1 {
            let retries = self.second.add(now_ms);
            burst.retries_per_second_max = burst.retries_per_second_max.max(retries);
        }
        if burst.limited {
            burst.made[at].push(now_ms);
        }
    }
}

fn delivery(event: u32) -> Result<Delivery, IdError> {
    let (event_id, endpoint_id) = (EventId::new(format!("msg_{event}"))?, EndpointId::new("ep")?);
    let id = DeliveryId::of(&event_id, &endpoint_id);
    Ok(Delivery::new(id, event_id, endpoint_id, EVENT))
}

#[cfg(test)]
mod tests {
    use hookproof_core::gate::{DisableRule, GateRule, RateRule};
    use hookproof_core::life::{Life, WhileHeld};
    use hookproof_core::preset;
    use hookproof_core::schedule::{Backoff, Jitter, Schedule};

    use super::super::limits::{breaker, open};
    use super::*;

    fn limits(gate: GateRule) -> Limits {
        Limits { gate, retry_after: None }
    }

    fn standard(events: u32, gate: GateRule) -> Burst {
        Burst::new(&Policy::default(), Run::of(events), &limits(gate))
    }

    fn rated(attempts: u32) -> GateRule {
        GateRule {
            rate: Some(RateRule { attempts, per: Millis::from_secs(1), burst: 0 }),
            ..open()
        }
    }

    fn breaking(text: &str) -> GateRule {
        GateRule { breaker: Some(breaker(text).unwrap()), ..open() }
    }

    #[test]
    fn without_jitter_all_events_come_back_in_the_same_second() {
        let burst = standard(1_000, open());
        assert_eq!((burst.requests, burst.requests_first_hour), (10_000, 4_000));
        assert_eq!(burst.retries_per_second_max, 1_000);
        assert_eq!((burst.last_attempt_ms, burst.held_ms_max), (272_105_000, 0));
        assert!(!burst.limited && burst.made.iter().all(Vec::is_empty));
    }

    #[test]
    fn jitter_spreads_them() {
        let schedule = preset::full_jitter_hour().schedule;
        let policy = Policy { schedule, ..Policy::default() };
        let burst = Burst::new(&policy, Run::of(1_000), &limits(open()));
        assert!((500..800).contains(&burst.retries_per_second_max), "{burst:?}");
    }

    #[test]
    fn a_rate_is_never_exceeded_and_moves_each_attempt() {
        let burst = standard(1_000, rated(10));
        assert_eq!(burst.retries_per_second_max, 10, "{burst:?}");
        assert_eq!(burst.requests, 10_000);
        // Ten at once and then ten a second: the last ten begin after 99 of them.
        let firsts = burst.made.iter().map(|made| made[0]);
        assert_eq!((firsts.clone().min(), firsts.max()), (Some(0), Some(99_000)));
        assert_eq!(burst.made.iter().map(|made| made[9]).max(), Some(burst.last_attempt_ms));
        assert!(burst.last_attempt_ms > 272_105_000 && burst.held_ms_max >= 90_000, "{burst:?}");
    }

    #[test]
    fn the_peak_is_that_of_any_second_and_not_of_the_clocks() {
        let mut second = Second::default();
        let counts = [600, 900, 999, 1000, 1599, 1600, 1900].map(|now_ms| second.add(now_ms));
        assert_eq!(counts, [1, 2, 3, 4, 5, 5, 5]);
    }

    #[test]
    fn waits_that_reach_the_end_of_time_end_there() {
        let backoff = Backoff::Exponential {
            base: Millis::from_secs(1),
            factor: 2,
            cap: Millis::MAX,
            attempts_max: 100,
        };
        let schedule = Schedule::new(backoff, Jitter::Full);
        let policy = Policy { schedule, ..Policy::default() };
        let burst = Burst::new(&policy, Run::of(2), &limits(rated(3)));
        assert!((2..=200).contains(&burst.requests), "{burst:?}");
    }

    #[test]
    fn an_open_breaker_lets_one_probe_through_at_the_end_of_each_pause() {
        let burst = standard(1_000, breaking("20:1m"));
        // 20 until it opens, then one a minute.
        assert_eq!(burst.requests_first_hour, 20 + 59);
        let burst = standard(1_000, breaking("20:1m:1h"));
        // Probes 1, 3, 7, 15 and 31 minutes after.
        assert_eq!(burst.requests_first_hour, 20 + 5);
        // Whoever was due first goes first.
        assert!(burst.made.iter().all(|made| !made.is_empty()));
        assert_eq!(burst.quiet_ms_max, 3_600_000, "the longest pause");
    }

    #[test]
    fn an_age_limit_ends_what_a_breaker_holds_unless_the_age_stops_meanwhile() {
        let backoff = Backoff::List { waits: vec![Millis::from_minutes(1); 3] };
        let mut policy =
            Policy { schedule: Schedule::new(backoff, Jitter::None), ..Policy::default() };
        let requests = |policy: &Policy| {
            let burst = Burst::new(policy, Run::of(100), &limits(breaking("20:10m")));
            (burst.requests, burst.last_attempt_ms)
        };
        let ages = |while_held| Life { age_max: Some(Millis::from_minutes(30)), while_held };
        policy.life = ages(WhileHeld::Runs);
        // Probes at 10, 20 and 30 minutes; then all are too old.
        assert_eq!(requests(&policy), (23, 30 * 60_000));
        policy.life = ages(WhileHeld::Stops);
        assert_eq!(requests(&policy).0, 400);
    }

    #[test]
    fn a_receiver_that_recovers_closes_the_breaker_and_gets_the_rest_by_schedule() {
        let run = Run { recovery_ms: Some(600_000), ..Run::of(1_000) };
        let burst = Burst::new(&Policy::default(), run, &limits(breaking("20:1m")));
        // 20 failures and 9 probes; the tenth probe, at 10 minutes, is taken.
        assert_eq!(burst.requests, 29 + 1_000);
        assert!(burst.made.iter().all(|made| made.last() == Some(&600_000)));
    }

    #[test]
    fn an_endpoint_that_the_breaker_gives_up_gets_nothing_more() {
        let mut gate = breaking("20:1m");
        gate.breaker.as_mut().unwrap().disable =
            Some(DisableRule { failures_in_a_row: 22, ..DisableRule::default() });
        let burst = standard(100, gate);
        assert_eq!((burst.requests, burst.given_up_ms), (22, Some(120_000)));
    }

    #[test]
    fn a_retry_after_holds_the_whole_endpoint_back_where_the_gate_minds_it() {
        let gate = GateRule { throttle_max: Millis::from_minutes(5), ..open() };
        let limits = |gate| Limits { gate, retry_after: Some(Millis::from_minutes(2)) };
        let policy = Policy::default();
        let minding = Burst::new(&policy, Run::of(100), &limits(gate));
        assert_eq!(minding.made[99][0], 99 * 120_000, "one at a time");
        let other = Burst::new(&policy, Run::of(100), &limits(open()));
        assert_eq!((other.limited, other.retries_per_second_max), (false, 100));
    }
}
