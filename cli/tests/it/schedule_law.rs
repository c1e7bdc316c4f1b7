//! The law of the printed schedule: 10⁵ waits of each schedule, drawn from the core as the sender
//! draws them, lie within the bounds that are printed, and as the printed mean and percentiles say.
//!
//! The distance that is allowed to a mean or a share is five standard errors of what is compared: of
//! the samples drawn here, and where the printed value comes from the 4,096 lives of the command
//! itself, of those, too. That a right value is found wrong by chance is then less likely than one in
//! a million, and as both sides draw from fixed numbers, each run is the same.

use std::fs;

use hookproof_core::policy::Policy;
use hookproof_core::preset;
use hookproof_core::schedule::{Jitter, Schedule};
use hookproof_core::time::Millis;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Ran, hookproof};

const SAMPLES: usize = 100_000;
/// What the command draws where there is no closed form.
const LIVES: f64 = 4_096.0;
const STANDARD_ERRORS: f64 = 5.0;

#[test]
fn of_100_000_waits_of_each_preset_each_is_as_it_is_printed() {
    for preset in preset::all() {
        let printed = printed(&["schedule", preset.name, "--format=json"], None);
        check(preset.name, &preset.schedule, &printed);
    }
}

#[test]
fn of_100_000_waits_of_each_kind_of_jitter_each_is_as_it_is_printed() {
    let backoffs = [
        r#"{"kind": "exponential", "base": "7s", "factor": 3, "cap": "20m", "attempts_max": 9}"#,
        r#"{"kind": "linear", "base": "3s", "step": "1s500ms", "cap": "10s", "attempts_max": 9}"#,
        r#"{"kind": "list", "waits": ["0s", "1ms", "5s", "1m"]}"#,
    ];
    let jitters = [
        r#""none""#,
        r#""full""#,
        r#""equal""#,
        r#"{"proportional": {"percent": 30}}"#,
        r#"{"additive": {"most": "4s"}}"#,
        r#""decorrelated""#,
    ];
    let mut count = 0;
    for backoff in backoffs {
        for jitter in jitters {
            for cap in ["", r#", "cap_after_jitter": "6s""#] {
                let text = format!(r#"{{"backoff": {backoff}, "jitter": {jitter}{cap}}}"#);
                let schedule: Schedule = serde_json::from_str(&text).expect(&text);
                if schedule.validate().is_err() {
                    assert_eq!(schedule.jitter, Jitter::Decorrelated, "{text}");
                    continue;
                }
                let file = format!(r#"{{"schedule": {text}}}"#);
                let arguments = ["schedule", "--policy=p.json", "--format=json"];
                check(&text, &schedule, &printed(&arguments, Some(&file)));
                count += 1;
            }
        }
    }
    assert_eq!(count, 2 * (3 * 5 + 1), "each kind of jitter, capped and not");
}

/// What the command prints, as JSON, about the policy in this file, if it reads one.
fn printed(arguments: &[&str], policy: Option<&str>) -> Value {
    let folder = TempDir::new().expect("there is room");
    if let Some(policy) = policy {
        fs::write(folder.path().join("p.json"), policy).expect("it can be written");
    }
    let output = hookproof(arguments).current_dir(folder.path()).output();
    let ran: Ran = output.expect("the program can be run").into();
    assert_eq!(ran.code, Some(0), "{ran}");
    serde_json::from_str(&ran.stdout).expect("it is JSON")
}

fn check(name: &str, schedule: &Schedule, printed: &Value) {
    let policy = Policy { schedule: schedule.clone(), ..Policy::default() };
    let retries = schedule.attempts_max() - 1;
    let lives = SAMPLES.div_ceil(retries.max(1) as usize);
    let mut waits = vec![Vec::with_capacity(lives); retries as usize];
    let mut sums = waits.clone();
    let mut random = 20_260_101_u64;
    for _ in 0..lives {
        let (mut previous, mut sum) = (None, Millis::ZERO);
        for attempt in 1..=retries {
            let draw = policy.draw(attempt, previous, None).expect("there is a retry");
            let wait = draw.at(next(&mut random));
            previous = Some(wait);
            sum = sum.plus(wait);
            waits[attempt as usize - 1].push(wait.get());
            sums[attempt as usize - 1].push(sum.get());
        }
    }
    let attempts = printed["attempts"].as_array().expect("a list");
    assert_eq!(attempts.len(), retries as usize + 1, "{name}");
    let from_lives = schedule.jitter == Jitter::Decorrelated;
    for (at, (mut waits, mut sums)) in waits.into_iter().zip(sums).enumerate() {
        let entry = &attempts[at + 1];
        let what = |of| format!("{name}: attempt {}, {of}", at + 2);
        check_spread(&what("wait"), &mut waits, &entry["wait"], from_lives, from_lives);
        check_spread(&what("since the event"), &mut sums, &entry["since_event"], from_lives, true);
    }
}

/// Whether samples are as it is printed; the mean and the percentiles may come from lives.
fn check_spread(
    what: &str,
    samples: &mut [u64],
    printed: &Value,
    mean_is_drawn: bool,
    percentiles_are_drawn: bool,
) {
    let told = |field: &str| printed[field].as_u64().expect("a number of milliseconds");
    let (lowest, highest) = (told("lowest_ms"), told("highest_ms"));
    samples.sort_unstable();
    let (least, most) = (samples[0], samples[samples.len() - 1]);
    assert!(lowest <= least && most <= highest, "{what}: {least} to {most}, not {printed}");

    let count = samples.len() as f64;
    let mean = samples.iter().map(|ms| *ms as f64).sum::<f64>() / count;
    let variance = samples.iter().map(|ms| (*ms as f64 - mean).powi(2)).sum::<f64>() / count;
    let errors = |drawn: bool| 1.0 / count + if drawn { 1.0 / LIVES } else { 0.0 };
    // A printed mean is rounded down to a millisecond.
    let allowed = STANDARD_ERRORS * (variance * errors(mean_is_drawn)).sqrt() + 1.0;
    let off = (mean - told("mean_ms") as f64).abs();
    assert!(off <= allowed, "{what}: the mean is {mean}, {off} off; {printed}");

    for (field, share) in [("p50_ms", 0.5), ("p95_ms", 0.95)] {
        let value = told(field);
        let allowed =
            STANDARD_ERRORS * (share * (1.0 - share) * errors(percentiles_are_drawn)).sqrt();
        // Where many waits gather at one value, the share jumps there: it must lie between.
        let up_to = samples.partition_point(|ms| *ms <= value + 1) as f64 / count;
        let below = samples.partition_point(|ms| *ms + 1 < value) as f64 / count;
        assert!(up_to >= share - allowed, "{what}: {up_to} are at most {field}; {printed}");
        assert!(below <= share + allowed, "{what}: {below} are below {field}; {printed}");
    }
}

/// A linear congruential generator with a permuted output: nothing that the command itself draws by.
fn next(state: &mut u64) -> u64 {
    let mut half = || {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = u32::try_from((((*state >> 18) ^ *state) >> 27) & 0xFFFF_FFFF).unwrap_or(0);
        u64::from(word.rotate_right(u32::try_from(*state >> 59).unwrap_or(0)))
    };
    half() << 32 | half()
}
