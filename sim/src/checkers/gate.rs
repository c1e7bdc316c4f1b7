//! I9: limits and breakers, against a naive reference that forgets nothing and is asked about every
//! attempt.

use std::collections::BTreeMap;

use hookproof_core::delivery::Phase;
use hookproof_core::gate::{BreakerRule, GateRule};
use hookproof_core::time::{Millis, Timestamp};

use super::{Checker, Invariant, Look, NOTHING, RIGHT};
use crate::fact::{EndpointNo, Fact, Written};

/// I9.
#[derive(Default)]
pub(super) struct WithinGate {
    endpoints: BTreeMap<EndpointNo, Reference>,
}

/// What a gate has seen in one epoch of its shard.
struct Reference {
    epoch: u64,
    rule: GateRule,
    /// The permits that are out, by when each would end by itself. That ends none here: whoever holds
    /// one is at work until it is given back, whatever clocks say.
    permits: Vec<Timestamp>,
    /// When attempts were let begin, and whether their claims were committed.
    starts: Vec<(Timestamp, bool)>,
    /// Every signal while the breaker was closed: when, and whether it was a failure.
    ended: Vec<(Timestamp, bool)>,
    breaker: Breaker,
    recovered_at: Option<Timestamp>,
}

#[derive(Clone, Copy)]
enum Breaker {
    /// The shard has a new owner: what was stored of the breaker is not known here.
    Unknown,
    Closed {
        failures: u32,
    },
    Open {
        until: Timestamp,
        pause: Millis,
    },
    Probing {
        pause: Millis,
        is_out: bool,
    },
}

impl Reference {
    fn new(epoch: u64, rule: &GateRule) -> Self {
        let breaker = if epoch == 1 { Breaker::Closed { failures: 0 } } else { Breaker::Unknown };
        Self {
            epoch,
            rule: rule.clone(),
            permits: Vec::new(),
            starts: Vec::new(),
            ended: Vec::new(),
            breaker,
            recovered_at: None,
        }
    }

    fn admit(&mut self, endpoint: EndpointNo, local: Timestamp, expires: Timestamp) -> Look {
        self.permits.push(expires);
        let (out, most) = (self.permits.len(), self.rule.concurrency_max);
        if out > usize::try_from(most).unwrap_or(usize::MAX) {
            return Err(format!("{endpoint} has {out} attempts under way, {most} allowed"));
        }
        match self.breaker {
            // More than the whole pause can only be left if the clock was set back, which must not
            // prolong it: how much of it is over, this clock cannot tell.
            Breaker::Open { until, pause } if local < until && until.since(local) <= pause => {
                return Err(format!(
                    "the breaker of {endpoint} is open for another {}, and an attempt begins",
                    until.since(local)
                ));
            }
            Breaker::Open { pause, .. } | Breaker::Probing { pause, is_out: false } => {
                self.breaker = Breaker::Probing { pause, is_out: true };
            }
            Breaker::Probing { is_out: true, .. } => {
                return Err(format!(
                    "{endpoint} has a probe under way, and another attempt begins"
                ));
            }
            Breaker::Unknown | Breaker::Closed { .. } => {}
        }
        self.starts.push((local, false));
        if let Some(rate) = &self.rule.rate {
            let ever = Timestamp::from_millis(i64::MIN);
            self.within(endpoint, rate.attempts, rate.per, ever)?;
            if rate.burst > 0 {
                // The share of the span that so many attempts have, in whole milliseconds upwards.
                let share = u128::from(rate.per.get()) * u128::from(rate.burst);
                let share = share.div_ceil(u128::from(rate.attempts).max(1));
                let share = Millis::new(u64::try_from(share).unwrap_or(u64::MAX));
                self.within(endpoint, rate.burst, share, ever)?;
            }
        }
        if let (Some(drain), Some(recovered)) = (&self.rule.drain, self.recovered_at)
            && local.since(recovered) < drain.lasts
        {
            self.within(endpoint, drain.attempts, drain.per, recovered)?;
        }
        RIGHT
    }

    /// At most so many starts in the window that ends with the newest.
    fn within(&self, endpoint: EndpointNo, most: u32, per: Millis, from: Timestamp) -> Look {
        let Some((newest, _)) = self.starts.last() else { return NOTHING };
        let in_window =
            |at: &&Timestamp| **at >= from && newest.since(**at) < per && **at <= *newest;
        let count = self.starts.iter().rev().map(|(at, _)| at).take_while(in_window).count();
        if count > usize::try_from(most).unwrap_or(usize::MAX) {
            return Err(format!(
                "{count} attempts to {endpoint} begin within {per}, {most} allowed"
            ));
        }
        RIGHT
    }

    /// The claim is committed of an attempt that was let begin at that time, or just before.
    fn begins(&mut self, started_at: Timestamp) {
        let mut newest_first = self.starts.iter_mut().rev();
        let found = newest_first.find(|(at, is_claimed)| *at <= started_at && !is_claimed);
        if let Some((_, is_claimed)) = found {
            *is_claimed = true;
        }
    }

    fn give_back(&mut self, expires: Timestamp) {
        if let Some(place) = self.permits.iter().position(|other| *other == expires) {
            self.permits.swap_remove(place);
        }
    }

    fn signal(&mut self, is_success: Option<bool>, is_probe: bool, local: Timestamp) {
        let Some(rule) = self.rule.breaker.clone() else { return };
        match (self.breaker, is_success) {
            (Breaker::Unknown | Breaker::Closed { .. }, Some(true)) => {
                self.ended.push((local, false));
                self.breaker = Breaker::Closed { failures: 0 };
            }
            (Breaker::Closed { failures }, Some(false)) => {
                self.ended.push((local, true));
                let failures = failures + 1;
                self.breaker = Breaker::Closed { failures };
                let in_a_row = rule.failures_in_a_row > 0 && failures >= rule.failures_in_a_row;
                if in_a_row || self.is_too_much(&rule, local) {
                    self.open(local, rule.pause);
                }
            }
            (Breaker::Probing { .. }, Some(true)) if is_probe => {
                self.breaker = Breaker::Closed { failures: 0 };
                self.ended.clear();
                self.recovered_at = Some(local);
            }
            (Breaker::Probing { pause, .. }, Some(false)) if is_probe => {
                let pause = pause.times(u64::from(rule.pause_factor)).min(rule.pause_max);
                self.open(local, pause);
            }
            (Breaker::Probing { pause, .. }, None) if is_probe => {
                self.breaker = Breaker::Probing { pause, is_out: false };
            }
            _ => {}
        }
    }

    fn open(&mut self, local: Timestamp, pause: Millis) {
        self.breaker = Breaker::Open { until: local.plus(pause), pause };
        self.ended.clear();
    }

    fn is_too_much(&self, rule: &BreakerRule, local: Timestamp) -> bool {
        let Some(window) = &rule.window else { return false };
        let recent = self.ended.iter().filter(|(at, _)| local.since(*at) < window.within);
        let (failures, attempts) = recent
            .fold((0_u32, 0_u32), |(failures, attempts), (_, failed)| {
                (failures + u32::from(*failed), attempts + 1)
            });
        failures >= window.failures
            && attempts >= window.attempts_min
            && failures * 100 >= u32::from(window.share_percent) * attempts
    }
}

impl Checker for WithinGate {
    fn invariant(&self) -> Invariant {
        Invariant::WithinGate
    }

    fn see(&mut self, _now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Admitted { endpoint, local, expires, rule, epoch } => {
                let known = self.endpoints.entry(*endpoint);
                let known = known.or_insert_with(|| Reference::new(*epoch, rule));
                if known.epoch != *epoch {
                    // What began before still counts, if it did begin: what was let begin and not
                    // claimed before the owner ended never will. Permits and breaker are another gate's.
                    let mut starts = std::mem::take(&mut known.starts);
                    starts.retain(|(_, is_claimed)| *is_claimed);
                    *known = Reference { starts, ..Reference::new(*epoch, rule) };
                }
                known.admit(*endpoint, *local, *expires)
            }
            Fact::Signalled { endpoint, is_success, is_probe, expires, local } => {
                if let Some(known) = self.endpoints.get_mut(endpoint) {
                    known.give_back(*expires);
                    known.signal(*is_success, *is_probe, *local);
                }
                NOTHING
            }
            Fact::Written(Written { route, state, .. }) => {
                if let Phase::InFlight { started_at, .. } = state.phase
                    && let Some(known) = self.endpoints.get_mut(&route.endpoint)
                {
                    known.begins(started_at);
                }
                NOTHING
            }
            // Whoever enables an endpoint starts its breaker anew.
            Fact::Enabled { endpoint } | Fact::Forgiven { endpoint } => {
                if let Some(known) = self.endpoints.get_mut(endpoint) {
                    known.breaker = Breaker::Unknown;
                }
                NOTHING
            }
            _ => NOTHING,
        }
    }
}
