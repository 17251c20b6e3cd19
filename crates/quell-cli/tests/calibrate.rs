//! `quell calibrate`, as a whole.

use crate::command::{quell, quell_with};
use serde_json::Value;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// ε of an event by the accountant that is asked by default.
fn cost(event: &Value, delta: &str) -> f64 {
    let run = [
        "account",
        "--event",
        &event.to_string(),
        "--delta",
        delta,
        "--format",
        "json",
        "--accountant",
        "pld",
    ];
    number(&quell_with(&run, "").json()["accountants"]["pld"]["epsilon"]["lower"])
}

#[test]
fn the_missing_value_is_found_and_meets_the_target() {
    for (flags, unknown, expected) in [
        ("--sampling-rate 0.01 --steps 1000", "noise_multiplier", 1.4147),
        ("--sampling-rate 0.01 --noise-multiplier 1.5", "steps", 1178.0),
        ("--steps 1000 --noise-multiplier 1.5", "sampling_rate", 0.010_816),
        ("--batch-size 10 --records 1000 --steps 1000", "noise_multiplier", 1.4147),
        // Nothing but the target: one release on all records, the analytic Gaussian mechanism.
        ("", "noise_multiplier", 3.7306),
    ] {
        let report = quell(&format!("calibrate --epsilon 1 --delta 1e-5 {flags} --format json")).json();
        assert_eq!(report["unknown"], unknown, "{flags}");
        let value = number(&report["value"]);
        assert!((value / expected - 1.0).abs() < 2e-3, "{flags}: {value}");
        let achieved = number(&report["achieved"]["epsilon"]["upper"]);
        assert!(achieved <= 1.0 && achieved > 0.99, "{flags}: {achieved}");
        assert!(cost(&report["event"], "1e-5") <= 1.0, "{flags}");
    }
}

#[test]
fn noise_is_printed_rounded_up_and_a_rate_down() {
    let both = |flags: &str, name: &str| {
        let run = format!("calibrate --epsilon 1 --delta 1e-5 --steps 1000 {flags}");
        let text = quell(&run).data();
        let printed = text
            .lines()
            .next()
            .unwrap()
            .strip_prefix(name)
            .unwrap_or_else(|| panic!("{text}"))
            .parse::<f64>()
            .unwrap();
        let report = quell(&format!("{run} --format json")).json();
        let claimed =
            text.split_once("ε ≤ ").unwrap().1.split_whitespace().next().unwrap().parse::<f64>().unwrap();
        assert!(claimed >= number(&report["achieved"]["epsilon"]["upper"]), "{text}");
        assert!(text.contains("at δ = 1e-5 when one record is added or removed\n"), "{text}");
        (printed, number(&report["value"]))
    };
    let mut strict = 0;
    for rate in ["0.01", "0.02", "0.003"] {
        let (printed, exact) = both(&format!("--sampling-rate {rate}"), "noise multiplier: ");
        assert!(printed >= exact && printed < exact * 1.001);
        strict += u32::from(printed > exact);
    }
    for noise in ["1.5", "2", "1.1"] {
        let (printed, exact) = both(&format!("--noise-multiplier {noise}"), "sampling rate: ");
        assert!(printed <= exact && printed > exact * 0.999);
        strict += u32::from(printed < exact);
    }
    assert!(strict >= 4, "fewer digits are shown than there are");
}

#[test]
fn targets_can_be_mu_or_the_power_of_an_attack() {
    let report = quell("calibrate --mu 0.5 --steps 100 --format json").json();
    // μ of T Gaussians of multiplier z is √T/z.
    assert!((number(&report["value"]) - 20.0).abs() < 0.01, "{report}");
    assert!(number(&report["achieved"]["mu"]["upper"]) <= 0.5);
    let text = quell("calibrate --mu 0.5 --steps 100 --slack 1e-7").data();
    assert!(text.contains("claim: μ ≤ 0.") && text.contains("slack of 1e-7"), "{text}");
    let report = quell("calibrate --true-positive-rate 0.05 --false-positive-rate 0.01 --format json").json();
    // Φ(Φ⁻¹(0.01) + 1/z) = 0.05.
    assert!((number(&report["value"]) - 1.0 / (2.326_35 - 1.644_85)).abs() < 1e-2, "{report}");
    assert!(number(&report["achieved"]["true_positive_rate"]["upper"]) <= 0.05);
}

#[test]
fn a_run_without_unknowns_is_checked_against_the_target() {
    let run = "--noise-multiplier 1.1 --sampling-rate 0.01 --steps 10000";
    let account = quell(&format!("account {run} --delta 1e-5")).data();
    assert_eq!(quell(&format!("calibrate {run} --delta 1e-5")).data(), account);
    let met = quell(&format!("calibrate {run} --delta 1e-5 --epsilon 6"));
    assert!(
        met.code == 0 && met.stdout.starts_with("claim: ε ≤ 5.19") && met.stderr.is_empty(),
        "{}{}",
        met.stdout,
        met.stderr
    );
    let missed = quell(&format!("calibrate {run} --delta 1e-5 --epsilon 3"));
    assert!(missed.code == 1 && missed.stdout.starts_with("claim: ε ≤ 5.19"), "{}", missed.stdout);
    assert_eq!(missed.stderr, "the given values miss the target of 3\n");
    let report = quell(&format!("calibrate {run} --mu 3 --format json")).json();
    assert!(report["unknown"].is_null() && report["value"].is_null());
    assert!(number(&report["achieved"]["mu"]["upper"]) > 0.5);
}

#[test]
fn values_far_from_the_start_of_the_search_are_found() {
    let value = |flags: &str| number(&quell(&format!("calibrate {flags} --format json")).json()["value"]);
    // Three million steps cost 1.70.
    let steps = "--epsilon 8.983164080091846 --delta 1.338153438807838e-09 --sampling-rate 0.00026738517940005897 --noise-multiplier 1.6714904269742665";
    assert!(value(steps) > 3e6);
    assert!(value("--epsilon .001 --delta 1e-9 --noise-multiplier .5 --steps 10") > 1e-7);
}

#[test]
fn an_unreachable_target_exits_with_1_and_an_invalid_target_with_2() {
    let ran = quell("calibrate --epsilon 0.1 --delta 1e-9 --noise-multiplier 0.5 --sampling-rate 0.5");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("refused: no number of steps") && ran.stderr.contains("\nhint: "),
        "{}",
        ran.stderr
    );
    let ran = quell("calibrate --epsilon 1e308 --delta 1e-5 --sampling-rate 0.01 --steps 1000");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("expected a number in [0, 10000]"), "{}", ran.stderr);
}

#[test]
fn any_number_of_an_event_can_be_found() {
    let found = |event: &str, more: &[&str]| {
        let run =
            [&["calibrate", "--epsilon", "2", "--delta", "1e-6", "--event", event, "--format", "json"], more]
                .concat();
        let report = quell_with(&run, "").json();
        let achieved = number(&report["achieved"]["epsilon"]["upper"]);
        assert!(achieved <= 2.0 && achieved > 1.9, "{event}: {report}");
        (report["unknown"].as_str().unwrap().to_owned(), number(&report["value"]))
    };
    let laplace = r#"{"repeated":{"count":50,"event":{"discrete_laplace":{"scale":"?","sensitivity":1}}}}"#;
    let (name, scale) = found(laplace, &[]);
    assert!(name == "scale" && scale > 10.0 && scale < 20.0, "{name} {scale}");
    let (name, rho) = found(r#"{"zero_concentrated":{"rho":"?"}}"#, &[]);
    assert!(name == "rho" && rho > 0.05 && rho < 0.1, "{name} {rho}");
    let (name, count) =
        found(r#"{"repeated":{"count":"?","event":{"gaussian":{"noise_multiplier":20}}}}"#, &[]);
    assert!(name == "count" && count == 80.0, "{name} {count}");
    let text = quell_with(&["calibrate", "--epsilon", "2", "--delta", "1e-6", "--event", laplace], "").data();
    assert!(text.starts_with("scale: 15."), "{text}");
    // Without an open number, or with two, there is nothing to find.
    for event in [r#"{"pure":{"epsilon":1}}"#, r#"{"approximate":{"epsilon":"?","delta":"?"}}"#] {
        let ran = quell_with(&["calibrate", "--epsilon", "2", "--delta", "1e-6", "--event", event], "");
        assert!(ran.code == 2 && ran.stderr.contains("\nhint: "), "{}", ran.stderr);
    }
}
