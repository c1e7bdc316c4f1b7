//! What the presets are, in the figures that their sources give.

use hookproof_core::preset::{self, Certainty, Preset};
use hookproof_core::retry_after::RetryAfterRule;
use hookproof_core::schedule::{Bounds, Jitter, Schedule};
use hookproof_core::time::Millis;

use crate::given::{ms, secs};

fn find(name: &str) -> Preset {
    preset::find(name).expect(name)
}

fn before_jitter(schedule: &Schedule) -> Vec<Millis> {
    (1..schedule.attempts_max()).filter_map(|n| schedule.wait_before_jitter(n)).collect()
}

/// How many attempts, and how long all waits take without jitter.
fn check(name: &str, certainty: Certainty, attempts: u32, total: &str) {
    let Preset { schedule, certainty: told, .. } = find(name);
    let sum = before_jitter(&schedule).into_iter().fold(Millis::ZERO, Millis::plus);
    assert_eq!((schedule.attempts_max(), sum.to_string().as_str()), (attempts, total), "{name}");
    assert_eq!(told, certainty, "{name}");
}

#[test]
fn each_sender_has_the_attempts_and_the_span_that_its_source_tells() {
    use Certainty::{Documented, Secondary, Unknown};
    check("standard-webhooks", Documented, 10, "75h35m5s");
    check("svix", Documented, 8, "27h35m5s");
    check("convoy-default", Documented, 10, "15m");
    check("convoy-exponential", Documented, 10, "7h31m40s");
    check("outpost", Documented, 11, "8h31m30s");
    check("stripe", Unknown, 13, "68h15m");
    check("github", Documented, 1, "0s");
    check("shopify", Unknown, 9, "3h58m");
    check("slack-events", Secondary, 4, "6m");
    check("square", Documented, 77, "71h3m");
    check("adyen", Documented, 100, "29d16h2m54s");
    check("paddle", Unknown, 61, "72h");
    check("mailgun", Documented, 7, "7h30m");
    check("zoom", Documented, 4, "1h25m");
    check("razorpay", Unknown, 11, "23h52m12s");
    check("kit", Documented, 8, "41h17m30s");
    check("wix", Documented, 13, "47h11m");
    check("circle-cpn", Documented, 12, "36h16m41s");
    check("brevo", Documented, 5, "11h10m");
    check("strike", Documented, 13, "9d5h26m");
    check("nmi", Documented, 21, "58h53m15s");
    check("seed-1-python", Documented, 8, "2h7m");
    check("seed-1-php", Documented, 8, "2h7m");
    check("seed-2", Documented, 11, "34m6s");
    assert_eq!(preset::all().len(), 24, "each preset has its row here");
}

#[test]
fn each_preset_names_its_source_and_says_so_if_its_waits_are_a_guess() {
    for Preset { name, source, certainty, note, .. } in preset::all() {
        assert!(source.len() > 10, "{name} has no source");
        assert_eq!(certainty == Certainty::Unknown, note.contains("not published"), "{name}");
    }
}

#[test]
fn what_a_schedule_alone_does_not_say_stands_in_the_note() {
    for (name, said) in [
        ("svix", "a Retry-After counts for one to two times the wait"),
        ("github", "10s"),
        ("shopify", "5s"),
        ("slack-events", "3s"),
        ("paddle", "5s"),
        ("mailgun", "a 406 stops"),
        ("zoom", "3s"),
        ("kit", "a 410 stops the retries; a Retry-After counts from 1s to 24h"),
        ("brevo", "a 4xx or 5xx stops"),
        ("strike", "410 and 501 opt out"),
        ("seed-1-python", "the cap comes after the jitter"),
        ("seed-1-php", "the cap comes after the jitter"),
    ] {
        assert!(find(name).note.contains(said), "{name}: {}", find(name).note);
    }
}

#[test]
fn every_wait_of_every_preset_is_far_below_the_largest_span() {
    for preset in preset::all() {
        for wait in before_jitter(&preset.schedule) {
            assert!(wait <= Millis::from_hours(24 * 31), "{}: {wait}", preset.name);
        }
    }
}

#[test]
fn the_python_formula_has_the_labels_of_its_text_as_means_and_caps_after_the_jitter() {
    let schedule = find("seed-1-python").schedule;
    let bounds: Vec<_> = (1..=7).filter_map(|n| schedule.bounds(n)).collect();
    let highest: Vec<_> = bounds.iter().map(|bounds| bounds.highest.get() / 1000).collect();
    assert_eq!(highest, [60, 120, 240, 480, 960, 1920, 3600]);
    assert!(bounds.iter().all(|bounds| bounds.lowest == Millis::ZERO));
    let mean = |n| schedule.draw(n, None).map(|draw| draw.mean_65536() >> 16);
    assert_eq!(mean(1), Some(30_000), "\"attempt 1: ~30s\"");
    assert_eq!(mean(2), Some(60_000));
    // Of the seventh, evenly up to 3,840 s, what is above 3,600 s gathers there.
    let seventh = schedule.draw(7, None).expect("there is one");
    assert_eq!(seventh.mean_65536() >> 16, 1_912_499);
    assert_eq!(seventh.percentile(93), ms(3_571_200));
    assert_eq!(seventh.percentile(94), secs(3600));
    assert_eq!(seventh.percentile(100), secs(3600));
    assert_eq!(schedule.draw(8, None), None, "eight attempts, as `max_attempts` allows");
}

#[test]
fn the_php_formula_spreads_by_half_and_caps_after_the_jitter() {
    let schedule = find("seed-1-php").schedule;
    assert_eq!(schedule.jitter, Jitter::Proportional { percent: 50 });
    assert_eq!(schedule.bounds(1), Some(Bounds { lowest: secs(30), highest: secs(90) }));
    assert_eq!(schedule.bounds(7), Some(Bounds { lowest: secs(1920), highest: secs(3600) }));
}

#[test]
fn svix_spreads_by_a_fifth() {
    let svix = find("svix").schedule;
    assert_eq!(svix.bounds(1), Some(Bounds { lowest: secs(4), highest: secs(6) }));
}

#[test]
fn convoy_adds_at_most_five_seconds() {
    let schedule = find("convoy-exponential").schedule;
    assert_eq!(schedule.bounds(1), Some(Bounds { lowest: secs(100), highest: secs(105) }));
    assert_eq!(schedule.bounds(9), Some(Bounds { lowest: secs(7200), highest: secs(7205) }));
}

#[test]
fn each_sender_bounds_a_retry_after_as_its_source_tells() {
    let wait = |name: &str, attempt, asked| {
        let draw = find(name).policy().draw(attempt, None, Some(asked)).expect("a retry");
        let Bounds { lowest, highest } = draw.bounds();
        (lowest, highest)
    };
    // Svix: one to two times the wait, and then the jitter of a fifth.
    assert_eq!(wait("svix", 1, Millis::ZERO), (secs(4), secs(6)));
    assert_eq!(wait("svix", 1, secs(8)), (ms(6400), ms(9600)));
    assert_eq!(wait("svix", 1, Millis::MAX), (secs(8), secs(12)));
    assert_eq!(wait("svix", 2, secs(8)), (secs(240), secs(360)));
    // Kit: 1 s to 24 h, the upper bound being that of every policy.
    let kit = find("kit").policy();
    assert_eq!(kit.retry_after.min, secs(1));
    assert_eq!(kit.classification.retry_after_max, Millis::from_hours(24));
    for Preset { name, retry_after, .. } in preset::all() {
        let is_bounded = retry_after != RetryAfterRule::default();
        assert_eq!(is_bounded, ["svix", "kit"].contains(&name), "{name}");
    }
}

#[test]
fn the_policy_of_each_preset_can_be_used() {
    for preset in preset::all() {
        assert_eq!(preset.policy().validate(), Ok(()), "{}", preset.name);
    }
}

#[test]
fn what_comes_after_the_last_attempt_is_told_for_each_sender_that_publishes_it() {
    let silent = ["adyen", "mailgun", "wix", "circle-cpn", "brevo"];
    for Preset { name, afterwards, .. } in preset::all() {
        assert_eq!(afterwards.is_none(), silent.contains(&name), "{name}");
    }
    for (name, said) in [
        ("svix", "failed for 5 days is disabled"),
        ("stripe", "by hand for 15 days"),
        ("github", "for 3 days"),
        ("shopify", "after 8 failures in a row"),
        ("square", "discarded"),
        ("razorpay", "the endpoint is disabled"),
        ("strike", "fetched through the API"),
    ] {
        let afterwards = find(name).afterwards.expect(name);
        assert!(afterwards.contains(said), "{name}: {afterwards}");
    }
}
