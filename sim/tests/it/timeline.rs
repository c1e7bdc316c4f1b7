//! What is found is printed so that it can be understood.

use hookproof_sim::minimise::minimise;
use hookproof_sim::timeline::{self, Timeline, Tone};

use crate::found;

fn plain(_: Tone, text: &str) -> String {
    text.to_owned()
}

#[test]
fn each_seeded_bug_is_found_made_small_and_told_within_a_hundred_columns() {
    for (id, invariant) in [("B01", "I5"), ("B02", "I9"), ("B03", "I4"), ("B04", "I14")] {
        let found = minimise(&found::plan(id), 5000, &mut || true).expect("it can be made small");
        assert_eq!(found.plan.invariant.id(), invariant, "{id}");
        assert!(found.plan.draws.len() <= 3, "{id}: {:?}", found.plan.draws);
        let told = timeline::story(&found.plan, &found.history, &plain);
        assert!(told.contains(&format!("✗ VIOLATED {invariant} ")), "{told}");
        for line in told.lines() {
            assert!(line.chars().count() <= 100, "{id}: {line}");
        }
    }
}

#[test]
fn the_violation_is_the_last_row_and_the_crash_before_it_is_marked() {
    let history = found::plan("R01").run(true);
    let timeline = Timeline::new(&history);
    let last = timeline.rows.last().expect("something happened");
    assert_eq!((last.tone, last.lane), (Tone::Violation, None));
    assert!(last.text.starts_with("VIOLATED I4 done means done"), "{}", last.text);
    assert!(timeline.rows.iter().any(|row| row.tone == Tone::Crash));
    assert_eq!(timeline.lanes[..2], ["application", "sender"]);
}

#[test]
fn a_long_timeline_leaves_out_its_middle_and_says_so() {
    let timeline = Timeline::new(&found::plan("S18").run(true));
    assert!(timeline.rows.len() > 100, "{}", timeline.rows.len());
    let text = timeline::text(&timeline, &plain);
    let left_out = text.lines().find(|line| line.contains("more lines)"));
    assert!(left_out.is_some(), "{text}");
    assert!(text.contains("VIOLATED"), "{text}");
}

#[test]
fn a_page_holds_all_that_it_shows_and_escapes_it() {
    let plan = found::plan("R03");
    let page = timeline::page(&plan, &plan.run(true)).unwrap();
    for part in ["<svg", "prefers-color-scheme: dark", "name=\"viewport\"", "VIOLATED", "#[test]"] {
        assert!(page.contains(part), "{part}");
    }
    for outside in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(!page.contains("&[("), "the code is escaped");
}
