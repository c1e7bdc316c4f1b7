//! Laws of a gate, and a reference that knows nothing but the history of what happened at it.

use hookproof_core::classify::Signal;
use hookproof_core::gate::{
    Admission, Breaker, BreakerRule, Cause, DeferReason, Gate, GateRule, Permit, Transition,
};
use hookproof_core::policy::Policy;
use hookproof_core::time::{Millis, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::given::{at, breaker_rule, check_round_trip, laws, millis, ms, policy, timestamp};

/// What happened at a gate, in order. Times are milliseconds.
enum Happened {
    Asked { at: i64 },
    Passed { number: usize, until: i64, probe: bool },
    Reported { number: usize, signal: Signal },
    Opened { until: i64, pause: i64 },
    Closed,
}

#[derive(PartialEq, Eq, Debug)]
enum Answer {
    Pass { probe: bool },
    Wait { until: i64, why: DeferReason },
}

/// The reference: it keeps the history and reads every answer out of it anew.
struct Reference {
    limit: usize,
    failures_in_a_row: usize,
    pause: i64,
    pause_max: i64,
    /// Whether the breaker is switched off.
    is_off: bool,
    history: Vec<Happened>,
}

impl Reference {
    /// The end and the length of the last pause, if nothing has closed the breaker since.
    fn pause_in_force(&self) -> Option<(i64, i64)> {
        self.history.iter().rev().find_map(|happened| match happened {
            Happened::Opened { until, pause } => Some(Some((*until, *pause))),
            Happened::Closed => Some(None),
            _ => None,
        })?
    }

    fn is_reported(&self, wanted: usize) -> bool {
        let is_it = |happened: &Happened| match happened {
            Happened::Reported { number, .. } => *number == wanted,
            _ => false,
        };
        self.history.iter().any(is_it)
    }

    /// The deadlines of what is out at `now`, and whether each is the probe of this pause.
    fn out(&self, now: i64) -> Vec<(i64, bool)> {
        let passed = self.history.iter().filter_map(|happened| match happened {
            Happened::Passed { number, until, .. } => Some((*number, *until)),
            _ => None,
        });
        passed
            .filter(|(number, until)| *until > now && !self.is_reported(*number))
            .map(|(number, until)| (until, self.is_probe_of_this_pause(number)))
            .collect()
    }

    fn ask(&mut self, now: i64, lease: i64) -> Answer {
        self.history.push(Happened::Asked { at: now });
        if self.is_off {
            self.history.push(Happened::Closed);
        }
        let out = self.out(now);
        let pause = self.pause_in_force();
        if let Some((until, _)) = pause.filter(|(until, _)| now < *until) {
            return Answer::Wait { until, why: DeferReason::BreakerOpen };
        }
        let probe_of = |(until, probe): &(i64, bool)| probe.then_some(*until);
        if let Some(until) = out.iter().find_map(probe_of) {
            return Answer::Wait { until, why: DeferReason::ProbeUnderWay };
        }
        if out.len() >= self.limit {
            let until = out.iter().map(|(until, _)| *until).min().unwrap_or(now);
            return Answer::Wait { until, why: DeferReason::ConcurrencyLimit };
        }
        let is_pass = |happened: &&Happened| matches!(happened, Happened::Passed { .. });
        let number = self.history.iter().filter(is_pass).count();
        let probe = pause.is_some();
        self.history.push(Happened::Passed { number, until: now + lease, probe });
        Answer::Pass { probe }
    }

    /// Returns the end of a new pause, or that the breaker closed.
    fn report(&mut self, now: i64, number: usize, signal: Signal) -> Option<Transition> {
        if self.is_off {
            self.history.push(Happened::Reported { number, signal: Signal::Neither });
            return None;
        }
        let Some((_, pause)) = self.pause_in_force() else {
            self.history.push(Happened::Reported { number, signal });
            let open = signal == Signal::Failure && self.failures() >= self.failures_in_a_row;
            let why = Cause::FailuresInARow {
                failures: u32::try_from(self.failures()).expect("they are few"),
            };
            return open.then(|| self.open(now, self.pause, why));
        };
        let counts = self.is_probe_of_this_pause(number);
        self.history.push(Happened::Reported { number, signal });
        match signal {
            _ if !counts => None,
            Signal::Neither => None,
            Signal::Failure => {
                Some(self.open(now, (pause * 2).min(self.pause_max), Cause::ProbeFailed))
            }
            Signal::Success => {
                self.history.push(Happened::Closed);
                Some(Transition::Closed)
            }
        }
    }

    fn open(&mut self, now: i64, pause: i64, why: Cause) -> Transition {
        let until = now + pause;
        self.history.push(Happened::Opened { until, pause });
        Transition::Opened { until: at(until), why }
    }

    /// Failures since the last success, or since the breaker last closed.
    fn failures(&self) -> usize {
        let recent = self.history.iter().rev().take_while(|happened| {
            let success = matches!(happened, Happened::Reported { signal: Signal::Success, .. });
            !success && !matches!(happened, Happened::Closed)
        });
        recent
            .filter(|happened| {
                matches!(happened, Happened::Reported { signal: Signal::Failure, .. })
            })
            .count()
    }

    /// Whether this is a probe of the pause in force, and nobody asked past its deadline since.
    fn is_probe_of_this_pause(&self, wanted: usize) -> bool {
        for (index, happened) in self.history.iter().enumerate().rev() {
            match happened {
                Happened::Opened { .. } | Happened::Closed => return false,
                Happened::Passed { number, until, probe } if *number == wanted => {
                    let asked_past =
                        |later: &Happened| matches!(later, Happened::Asked { at } if at >= until);
                    return *probe && !self.history[index..].iter().any(asked_past);
                }
                _ => {}
            }
        }
        false
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Ask,
    Report {
        which: usize,
        signal: Signal,
    },
    Pass {
        ms: i64,
    },
    /// Switches the breaker off or on.
    Switch,
}

fn signal() -> impl Strategy<Value = Signal> {
    prop_oneof![2 => Just(Signal::Failure), 1 => Just(Signal::Success), 1 => Just(Signal::Neither)]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => Just(Op::Ask),
        3 => (any::<usize>(), signal()).prop_map(|(which, signal)| Op::Report { which, signal }),
        3 => prop_oneof![0..4_i64, 0..40_i64].prop_map(|ms| Op::Pass { ms }),
    ]
}

/// What happens, with the breaker on throughout, or switched now and then.
fn ops(longest: usize) -> impl Strategy<Value = Vec<Op>> {
    let switched = prop_oneof![10 => op(), 1 => Just(Op::Switch)];
    prop_oneof![2 => vec(op(), 0..longest), 1 => vec(switched, 0..longest)]
}

fn rule() -> impl Strategy<Value = GateRule> {
    (1..5_u32, 1..5_u32, 1..30_u64, 1..100_u64).prop_map(
        |(concurrency_max, failures_in_a_row, pause, more)| {
            let (pause, pause_max) = (ms(pause), ms(pause.max(more)));
            let breaker =
                BreakerRule { failures_in_a_row, pause, pause_max, ..BreakerRule::default() };
            GateRule { concurrency_max, breaker: Some(breaker), ..GateRule::default() }
        },
    )
}

fn reference_of(rule: &GateRule) -> Reference {
    let number = |span: Millis| i64::try_from(span.get()).expect("it is short");
    let breaker = rule.breaker.as_ref().expect("it is switched on to begin with");
    Reference {
        limit: rule.concurrency_max as usize,
        failures_in_a_row: breaker.failures_in_a_row as usize,
        pause: number(breaker.pause),
        pause_max: number(breaker.pause_max),
        is_off: false,
        history: Vec::new(),
    }
}

/// A gate with the permits that are out, and what came of a run.
struct Run {
    rule: GateRule,
    gate: Gate,
    now: i64,
    out: Vec<(usize, Permit)>,
    passed: usize,
}

const LEASE_MS: i64 = 25;

/// Runs a gate and the reference side by side.
fn run(with_breaker: &GateRule, ops: Vec<Op>) -> Result<Run, TestCaseError> {
    let mut reference = reference_of(with_breaker);
    let mut run = Run {
        rule: with_breaker.clone(),
        gate: Gate::default(),
        now: 0,
        out: Vec::new(),
        passed: 0,
    };
    for op in ops {
        let now = at(run.now);
        match op {
            Op::Pass { ms } => run.now += ms,
            Op::Switch => {
                reference.is_off = !reference.is_off;
                let on = with_breaker.breaker.clone();
                run.rule.breaker = if reference.is_off { None } else { on };
            }
            Op::Ask => {
                let answer = match run.gate.admit(&run.rule, now, ms(25)) {
                    Admission::Go(permit) => {
                        prop_assert_eq!(permit.expires, at(run.now + LEASE_MS));
                        let probe = permit.probe;
                        run.out.push((run.passed, permit));
                        run.passed += 1;
                        Answer::Pass { probe }
                    }
                    Admission::Defer { until, why } => {
                        prop_assert!(until > now, "to ask again at once would be a busy wait");
                        Answer::Wait { until: until.as_millis(), why }
                    }
                };
                prop_assert_eq!(answer, reference.ask(run.now, LEASE_MS));
            }
            Op::Report { .. } if run.out.is_empty() => {}
            Op::Report { which, signal } => {
                let (number, permit) = run.out.swap_remove(which % run.out.len());
                let moved = run.gate.record(&run.rule, now, permit, signal);
                prop_assert_eq!(moved, reference.report(run.now, number, signal));
            }
        }
        let now = at(run.now);
        check_room(&run.gate, &run.rule, now)?;
        prop_assert_eq!(run.gate.in_flight(now), reference.out(run.now).len());
        let closed = matches!(run.gate.breaker(), Breaker::Closed { .. });
        prop_assert_eq!(closed, reference.pause_in_force().is_none());
        let out = || run.out.iter().filter(|(_, permit)| permit.expires > now);
        prop_assert!(out().count() <= run.rule.concurrency_max as usize);
        let of_this_pause =
            |(number, _): &&(usize, Permit)| reference.is_probe_of_this_pause(*number);
        prop_assert!(out().filter(of_this_pause).count() <= 1);
    }
    Ok(run)
}

/// That the room told of is what those who ask find.
fn check_room(gate: &Gate, rule: &GateRule, now: Timestamp) -> Result<(), TestCaseError> {
    let passing = passing(&mut gate.clone(), rule, now).len();
    match gate.clone().room(rule, now) {
        Ok(room) => prop_assert_eq!(room as usize, passing),
        Err((until, why)) => {
            prop_assert_eq!(passing, 0);
            let answer = gate.clone().admit(rule, now, ms(25));
            prop_assert_eq!(answer, Admission::Defer { until, why });
        }
    }
    Ok(())
}

/// Those who pass at `now`, one after the other.
fn passing(gate: &mut Gate, rule: &GateRule, now: Timestamp) -> Vec<Permit> {
    std::iter::from_fn(|| match gate.admit(rule, now, ms(25)) {
        Admission::Go(permit) => Some(permit),
        Admission::Defer { .. } => None,
    })
    .take(100)
    .collect()
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn a_gate_answers_as_its_history_says(rule in rule(), ops in ops(150)) {
        run(&rule, ops)?;
    }

    #[test]
    fn no_place_is_lost_for_good(rule in rule(), ops in ops(60)) {
        let mut run = run(&rule, ops)?;
        let rule = run.rule;
        // Past every lease and every pause.
        let now = at(run.now + 1_000);
        if rule.breaker.is_some() && !matches!(run.gate.breaker(), Breaker::Closed { .. }) {
            let mut probes = passing(&mut run.gate, &rule, now);
            prop_assert_eq!(probes.len(), 1, "one probe at a time");
            let probe = probes.remove(0);
            prop_assert!(probe.probe);
            let moved = run.gate.record(&rule, now, probe, Signal::Success);
            prop_assert_eq!(moved, Some(Transition::Closed));
        }
        let passed = passing(&mut run.gate, &rule, now);
        prop_assert_eq!(passed.len(), rule.concurrency_max as usize);
        prop_assert!(passed.iter().all(|permit| !permit.probe));
    }

    #[test]
    fn however_a_probe_ends_the_next_one_gets_its_turn(
        rule in rule(),
        signal in proptest::option::of(signal()),
        after in 0..60_i64,
    ) {
        let mut gate = Gate::restored(Breaker::HalfOpen { probe: None, pause: ms(20) });
        let probe = passing(&mut gate, &rule, at(0)).remove(0);
        prop_assert!(probe.probe);
        if let Some(signal) = signal {
            gate.record(&rule, at(after), probe, signal);
        }
        let mut now = after.max(LEASE_MS);
        if let Breaker::Open { until, .. } = gate.breaker() {
            now = until.as_millis();
            prop_assert_eq!(passing(&mut gate, &rule, at(now - 1)).len(), 0);
        }
        let expected = if signal == Some(Signal::Success) { rule.concurrency_max } else { 1 };
        prop_assert_eq!(passing(&mut gate, &rule, at(now)).len(), expected as usize);
    }

    #[test]
    fn the_pause_doubles_with_each_failing_probe_up_to_the_longest(
        breaker in breaker_rule(),
        failing_probes in 0..70_u32,
    ) {
        let rule = GateRule { concurrency_max: 1, breaker: Some(breaker.clone()), ..GateRule::default() };
        let mut gate = Gate::restored(Breaker::Closed { failures: breaker.failures_in_a_row - 1 });
        let mut now = at(0);
        for doublings in 0..=failing_probes {
            let Admission::Go(permit) = gate.admit(&rule, now, ms(1)) else {
                return Err(TestCaseError::fail("the pause is over"));
            };
            prop_assert_eq!(permit.probe, doublings > 0);
            gate.record(&rule, now, permit, Signal::Failure);
            let exact = u128::from(breaker.pause.get()) << doublings.min(64);
            let pause = u64::try_from(exact).map_or(breaker.pause_max, ms).min(breaker.pause_max);
            let until = now.plus(pause);
            prop_assert_eq!(gate.breaker(), Breaker::Open { until, pause });
            now = until;
        }
    }

    #[test]
    fn no_rule_and_no_time_makes_a_gate_panic(
        policies in vec(policy(), 1..4),
        start in breaker(),
        ops in vec((op(), timestamp(), millis()), 0..60),
    ) {
        let mut gate = Gate::restored(start);
        let mut out: Vec<Permit> = Vec::new();
        for (index, (op, now, lease)) in ops.into_iter().enumerate() {
            let Policy { gate: rule, .. } = &policies[index % policies.len()];
            match op {
                Op::Ask => {
                    if let Admission::Go(permit) = gate.admit(rule, now, lease) {
                        out.push(permit);
                    }
                }
                Op::Report { which, signal } if !out.is_empty() => {
                    let permit = out.swap_remove(which % out.len());
                    gate.record(rule, now, permit, signal);
                }
                Op::Report { .. } | Op::Pass { .. } | Op::Switch => {}
            }
            prop_assert!(gate.in_flight(now) <= out.len());
        }
    }

    #[test]
    fn a_breaker_comes_back_from_json_and_a_restored_one_has_no_probe(breaker in breaker()) {
        check_round_trip(&breaker)?;
        let restored = Gate::restored(breaker).breaker();
        match breaker {
            Breaker::HalfOpen { pause, .. } => {
                prop_assert_eq!(restored, Breaker::HalfOpen { probe: None, pause });
            }
            _ => prop_assert_eq!(restored, breaker),
        }
    }
}

/// Any stored breaker, with a probe of a process that is gone or without.
pub(crate) fn breaker() -> impl Strategy<Value = Breaker> {
    let probe = prop_oneof![Just("null".to_owned()), (0..4_u64).prop_map(|id| id.to_string())];
    prop_oneof![
        any::<u32>().prop_map(|failures| Breaker::Closed { failures }),
        (timestamp(), millis()).prop_map(|(until, pause)| Breaker::Open { until, pause }),
        (probe, millis()).prop_map(|(probe, pause)| {
            let text = format!(r#"{{"state":"half_open","probe":{probe},"pause":"{pause}"}}"#);
            serde_json::from_str(&text).expect("a stored breaker")
        }),
    ]
}
