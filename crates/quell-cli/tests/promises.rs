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

/// A search costs more than its best trial, so nothing is drawn from the event of that trial.
#[test]
fn a_report_of_a_search_says_nothing_from_one_trial_alone() {
    let here = folder("promise of a search");
    let ran = run(&here, "tune --model logistic --epsilon 3 --try steps=2,3 --trials 3 --output one");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let report = fs::read_to_string(here.join("one/report.md")).unwrap();
    assert!(report.contains("**This run:** ε ≤ "), "{report}");
    assert!(!report.contains("Error rates of the best attack"), "{report}");
    // From ε and δ alone: e^ε · 1 % at least.
    let attack = report.split("**Attack on this run:**").nth(1).unwrap();
    let rate = attack.split("at most ").nth(1).unwrap().split(' ').next().unwrap();
    let epsilon = report.split("**This run:** ε ≤ ").nth(1).unwrap().split(' ').next().unwrap();
    let [rate, epsilon] = [rate, epsilon].map(|number| number.parse::<f64>().unwrap());
    assert!(rate >= epsilon.exp() * 0.99, "{rate} {epsilon}");
}
