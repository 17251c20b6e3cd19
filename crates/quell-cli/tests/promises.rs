//! What a report promises: this run first, and no more than was paid for.

use std::fs;

use crate::command::{folder, run};

#[test]
fn a_report_promises_this_run_beside_the_budget() {
    let here = folder("promise of a run");
    let ran = run(&here, "train --model logistic --steps 4 --epsilon 3 --output one");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let report = fs::read_to_string(here.join("one/report.md")).unwrap();
    let place = |words: &str| report.find(words).unwrap_or_else(|| panic!("{words}: {report}"));
    let own = place("**This run:** ε ≤ 2.999 at δ = 1e-5");
    assert!(own < place("**Promise:** all releases together") && report.contains("ε ≤ 30.00"), "{report}");
    assert!(report.contains("**Attack on this run:**") && !report.contains("This plan alone"), "{report}");
    assert!(report.contains("Error rates of the best attack"), "{report}");
}

/// The figure and the promise are about the event of the whole search, which the model records.
#[test]
fn a_report_of_a_search_is_about_the_whole_search() {
    let here = folder("promise of a search");
    let asked = "tune --model logistic --epsilon 3 --try steps=2,3 --trials 3 --output one";
    let ran = run(&here, asked);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let report = fs::read_to_string(here.join("one/report.md")).unwrap();
    assert!(report.contains("**This run:** ε ≤ 2.9"), "{report}");
    assert!(report.contains("given all releases of this run, including the best model"), "{report}");
    assert!(report.contains("the best of 3 expected trials, drawn from 2 candidates"), "{report}");
    // Neither the number of trials nor their time is in it.
    assert!(!report.contains("| time |") && !report.contains("in 0"), "{report}");
}
