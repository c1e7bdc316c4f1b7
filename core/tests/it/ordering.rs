//! The receiver's ordering by entity version.

use hookproof_core::ordering::{Decision, Late, judge};
use proptest::prelude::*;

use crate::given::laws;

fn check(applied: Option<u64>, version: u64, ignoring: Decision, reconciling: Decision) {
    assert_eq!(judge(applied, version, Late::Ignore), ignoring, "{applied:?} {version}");
    assert_eq!(judge(applied, version, Late::Reconcile), reconciling, "{applied:?} {version}");
}

#[test]
fn case_72_only_what_is_newer_applies() {
    check(None, 0, Decision::Apply, Decision::Apply);
    check(Some(3), 4, Decision::Apply, Decision::Apply);
    check(Some(3), 9, Decision::Apply, Decision::Apply);
    check(Some(3), 3, Decision::Ignore, Decision::Ignore);
    check(Some(3), 2, Decision::Ignore, Decision::Reconcile);
    check(Some(u64::MAX), 0, Decision::Ignore, Decision::Reconcile);
    assert_eq!(Late::default(), Late::Ignore);
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn whatever_the_order_of_arrival_an_entity_ends_at_its_highest_version(
        versions in proptest::collection::vec(0..20_u64, 1..40),
    ) {
        for late in [Late::Ignore, Late::Reconcile] {
            let mut applied = None;
            let mut effects = Vec::new();
            for version in &versions {
                let decision = judge(applied, *version, late);
                let seen_newer = applied.is_some_and(|applied| applied > *version);
                let reconciles = late == Late::Reconcile && seen_newer;
                prop_assert_eq!(decision == Decision::Reconcile, reconciles);
                if decision == Decision::Apply {
                    applied = Some(*version);
                    effects.push(*version);
                }
            }
            prop_assert_eq!(applied, versions.iter().copied().max());
            prop_assert!(effects.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", effects);
        }
    }
}
