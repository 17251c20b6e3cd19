//! `quell account`, as a whole.

use crate::command::{folder, quell, quell_with};
use serde_json::{Value, json};

const RUN: &str = "account --noise-multiplier 1.1 --sampling-rate 0.01 --steps 10000 --delta 1e-5";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The number after a word.
fn number_after(text: &str, word: &str) -> f64 {
    let rest = text.split_once(word).unwrap_or_else(|| panic!("no {word} in {text}")).1;
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn the_json_of_two_accountants_has_the_documented_form() {
    let report = quell(&format!("{RUN} --accountant pld --accountant rdp --format json")).json();
    assert_eq!(keys(&report), ["accountants", "delta", "neighbors"]);
    assert_eq!((&report["delta"], &report["neighbors"]), (&json!(1e-5), &json!("add_remove")));
    assert_eq!(keys(&report["accountants"]), ["pld", "rdp"]);
    let bound = |name: &str| {
        let entry = &report["accountants"][name];
        assert_eq!(keys(entry), ["claimable", "epsilon", "theorem"]);
        assert_eq!(entry["claimable"], true);
        assert!(!entry["theorem"].as_str().unwrap().is_empty());
        assert_eq!(keys(&entry["epsilon"]), ["lower", "upper"]);
        (number(&entry["epsilon"]["lower"]), number(&entry["epsilon"]["upper"]))
    };
    let (pld, rdp) = (bound("pld"), bound("rdp"));
    // The truth is 5.1925, by the library of the lecture and by prv_accountant.
    assert!(pld.0 <= 5.1925 && 5.1925 <= pld.1 && pld.1 < 5.2, "{pld:?}");
    assert!(pld.1 <= rdp.1 && rdp.0 <= 5.1925 && rdp.1 < 5.7, "{rdp:?}");
}

#[test]
fn the_best_accountant_is_named_if_none_is_requested() {
    let report = quell(&format!("{RUN} --format json")).json();
    assert_eq!(report["best"], "pld");
    assert_eq!(keys(&report["accountants"]), ["pld"]);
    let report = quell_with(
        &[
            "account",
            "--event",
            r#"{"zero_concentrated":{"rho":0.5}}"#,
            "--delta",
            "1e-5",
            "--format",
            "json",
        ],
        "",
    )
    .json();
    assert_eq!(report["best"], "rdp");
}

#[test]
fn accountants_are_listed_once_in_the_requested_order() {
    let text =
        quell(&format!("{RUN} --accountant rdp --accountant pld --accountant rdp --format json")).data();
    assert!(text.find("\"rdp\"").unwrap() < text.find("\"pld\"").unwrap(), "{text}");
    assert_eq!(text.matches("\"rdp\"").count(), 1);
}

#[test]
fn upper_bounds_are_printed_rounded_up_and_lower_bounds_down() {
    for flags in [
        "--steps 10000",
        "--steps 37",
        "--steps 1",
        "--steps 500 --noise laplace",
        "--steps 999 --neighbors replace",
    ] {
        let run = format!(
            "account --noise-multiplier 1.37 --sampling-rate 0.013 --delta 1e-6 {flags} --accountant pld"
        );
        let exact = &quell(&format!("{run} --format json")).json()["accountants"]["pld"]["epsilon"];
        let text = quell(&run).data();
        let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        let (lower, upper): (f64, f64) = (row[1].parse().unwrap(), row[2].parse().unwrap());
        assert!(lower <= number(&exact["lower"]) && number(&exact["upper"]) <= upper, "{flags}: {text}");
        assert!(upper - number(&exact["upper"]) < 1.1e-3 * upper, "{flags}: not that far up: {text}");
        assert_eq!(number_after(&text, "claim: ε ≤ "), upper);
    }
}

#[test]
fn the_text_is_a_table_and_a_claim() {
    let text = quell(&format!("{RUN} --accountant all")).data();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 12, "{text}");
    assert!(lines[0].starts_with("accountant   ε lower  ε upper  theorem"), "{text}");
    assert!(text.contains("closed       no theorem: "), "{text}");
    assert!(
        lines[11].starts_with("claim: ε ≤ 5.19")
            && lines[11].ends_with(" at δ = 1e-5 when one record is added or removed")
    );
    let replaced = quell(&format!("{RUN} --neighbors replace")).data();
    assert!(replaced.ends_with("when one record is replaced\n"), "{replaced}");
}

#[test]
fn an_accountant_without_a_theorem_does_not_hide_the_others() {
    let report = quell(&format!("{RUN} --accountant closed --accountant pld --format json")).json();
    assert!(report["accountants"]["closed"]["error"].as_str().unwrap().contains("no theorem"));
    assert!(number(&report["accountants"]["pld"]["epsilon"]["upper"]) < 5.2);
    let alone = quell(&format!("{RUN} --accountant closed"));
    assert_eq!((alone.code, alone.stdout.as_str()), (2, ""));
    assert!(
        alone.stderr.starts_with("error: ")
            && alone.stderr.contains("no theorem")
            && alone.stderr.contains("\nhint: ")
    );
}

#[test]
fn estimates_are_not_claimed() {
    let text = quell(&format!("{RUN} --accountant clt --accountant fourier")).data();
    assert!(text.ends_with("claim: nothing, because all of these numbers are estimates\n"), "{text}");
    let report = quell(&format!("{RUN} --accountant clt --format json")).json();
    assert_eq!(report["accountants"]["clt"]["claimable"], false);
}

#[test]
fn a_non_private_event_costs_infinity() {
    let run = ["account", "--event", r#""non_private""#, "--delta", "1e-5"];
    // Scripts see it by the exit code.
    let ran = quell_with(&run, "");
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    assert!(
        ran.stdout.contains('∞') && ran.stdout.contains("claim: nothing, because no finite ε is known"),
        "{}",
        ran.stdout
    );
    let ran = quell_with(&[&run[..], &["--format", "json", "--accountant", "pld", "--attack"]].concat(), "");
    assert_eq!(ran.code, 1);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        report["accountants"]["pld"]["epsilon"],
        json!({"lower": null, "upper": null, "unbounded": true})
    );
    assert_eq!(number(&report["attack"]["true_positive_rate"]["upper"]), 1.0);
}

#[test]
fn the_same_event_costs_the_same_however_it_is_described() {
    let by_flags = quell(&format!("{RUN} --format json")).json();
    let step = r#"{"poisson_sampled":{"rate":0.01,"event":{"gaussian":{"noise_multiplier":1.1}}}}"#;
    let bare = format!(r#"{{"repeated":{{"count":10000,"event":{step}}}}}"#);
    let record = format!(r#"{{"version":1,"event":{bare}}}"#);
    let file = folder("event").join("event.json");
    std::fs::write(&file, &record).unwrap();
    let at_file = format!("@{}", file.display());
    for (argument, input) in
        [(bare.as_str(), ""), (&record, ""), ("-", bare.as_str()), ("-", &record), (&at_file, "")]
    {
        let run = ["account", "--event", argument, "--delta", "1e-5", "--format", "json"];
        assert_eq!(quell_with(&run, input).json(), by_flags, "{argument} {input}");
    }
    let batches = "account --noise-multiplier 1.1 --batch-size 600 --records 60_000 --steps 1e4 --delta 1e-5 --format json";
    assert_eq!(quell(batches).json(), by_flags);
}

#[test]
fn flags_reach_the_event() {
    let upper = |flags: &str| {
        number(
            &quell(&format!("account --delta 1e-5 --accountant pld --format json {flags}")).json()["accountants"]
                ["pld"]["epsilon"]["upper"],
        )
    };
    let fixed = "--noise-multiplier 2 --batch-size 64 --records 5000 --steps 100 --neighbors replace";
    let plain = upper("--noise-multiplier 2");
    assert!((upper("--noise-multiplier 2 --sampling-rate 1 --steps 1") - plain).abs() < 1e-12);
    assert!(upper("--noise-multiplier 2 --steps 2") > plain);
    assert!(upper("--noise-multiplier 2 --neighbors replace") > plain);
    assert!((upper("--noise-multiplier 2 --noise laplace") - 0.5).abs() < 1e-3);
    let poisson = upper(&format!("{fixed} --sampling poisson"));
    let without = upper(&format!("{fixed} --sampling without-replacement"));
    let with = upper(&format!("{fixed} --sampling with-replacement"));
    assert!(poisson != without && without != with, "{poisson} {without} {with}");
}

#[test]
fn groups_and_attacks_are_reported_on_request() {
    let report = quell(&format!("{RUN} --group 2 --attack --format json")).json();
    assert_eq!(report["group"]["size"], 2);
    assert!(number(&report["group"]["epsilon"]["upper"]) > 2.0 * 5.19);
    let power = &report["attack"]["true_positive_rate"];
    assert!(
        0.11 < number(&power["lower"])
            && number(&power["lower"]) <= number(&power["upper"])
            && number(&power["upper"]) < 0.12
    );
    let text = quell(&format!("{RUN} --group 2 --attack")).data();
    let sentence = text.lines().find(|line| line.starts_with("attack: ")).unwrap();
    assert!(number_after(sentence, " % and ") >= 100.0 * number(&power["upper"]), "{sentence}");
    assert!(number_after(sentence, "between ") <= 100.0 * number(&power["lower"]), "{sentence}");
    assert!(number_after(&text, "group: ε ≤ ") >= number(&report["group"]["epsilon"]["upper"]));
}

#[test]
fn delta_is_answered_at_a_given_epsilon() {
    let run = "account --noise-multiplier 1.1 --sampling-rate 0.01 --steps 10000";
    let report = quell(&format!("{run} --epsilon 4 --format json")).json();
    assert_eq!(
        (&report["epsilon"], keys(&report["accountants"]["pld"])),
        (&json!(4.0), vec!["claimable", "delta", "theorem"])
    );
    let delta = &report["accountants"]["pld"]["delta"];
    // And back.
    let epsilon = |delta: &Value| {
        let report = quell(&format!("{run} --delta {delta} --format json")).json();
        (
            number(&report["accountants"]["pld"]["epsilon"]["lower"]),
            number(&report["accountants"]["pld"]["epsilon"]["upper"]),
        )
    };
    assert!(epsilon(&delta["upper"]).0 <= 4.0 && epsilon(&delta["lower"]).1 >= 4.0);
    let text = quell(&format!("{run} --epsilon 4")).data();
    assert!(
        number_after(&text, "claim: δ ≤ ") >= number(&delta["upper"]) && text.contains("at ε = 4 when"),
        "{text}"
    );
    // Every accountant that has an answer to the one question has one to the other.
    let all = quell(&format!("{run} --epsilon 4 --accountant all --format json")).json();
    for name in ["pld", "rdp", "rdp-classic", "moments"] {
        assert!(
            number(&all["accountants"][name]["delta"]["upper"]) >= number(&delta["lower"]),
            "{name}: {all}"
        );
    }
    let nothing = quell_with(&["account", "--event", r#""non_private""#, "--epsilon", "4"], "");
    assert_eq!(nothing.code, 1);
    assert_eq!(quell(&format!("{run} --epsilon 4 --delta 1e-5")).code, 2);
}

#[test]
fn the_interval_is_as_narrow_as_requested() {
    let width = |tightness: &str| {
        let report = quell(&format!("{RUN} --accountant pld --format json {tightness}")).json();
        let bound = &report["accountants"]["pld"]["epsilon"];
        number(&bound["upper"]) - number(&bound["lower"])
    };
    assert!(width("--tightness 1e-4") <= 1e-4 * 5.2 && width("--tightness 0.05") > width("--tightness 1e-4"));
    assert_eq!(quell(&format!("{RUN} --tightness 0")).code, 2);
}

#[test]
fn the_default_uses_every_accountant_that_applies() {
    let upper = |event: &str, delta: &str, more: &[&str]| {
        let run = [&["account", "--event", event, "--delta", delta, "--format", "json"], more].concat();
        let report = quell_with(&run, "").json();
        let best = report["best"].as_str().unwrap().to_owned();
        number(&report["accountants"][best.as_str()]["epsilon"]["upper"])
    };
    // A sampled pure release was claimed to be free.
    let sampled = r#"{"repeated":{"count":10,"event":{"poisson_sampled":{"rate":0.5,"event":{"pure":{"epsilon":1.0}}}}}}"#;
    assert!(upper(sampled, "1e-9", &[]) > 6.195);
    assert!(upper(sampled, "1e-9", &[]) < 6.3);
    // Basic composition.
    let two = r#"{"repeated":{"count":2,"event":{"approximate":{"epsilon":1.0,"delta":1e-13}}}}"#;
    assert!(upper(two, "1e-8", &[]) <= 2.001);
    // A concentrated release beside one with a δ, and beside noise on a sample where a record is replaced.
    let beside = |other: &str| format!(r#"{{"composed":[{{"zero_concentrated":{{"rho":0.1}}}},{other}]}}"#);
    assert!(upper(&beside(r#"{"approximate":{"epsilon":0.5,"delta":1e-8}}"#), "1e-5", &[]) < 2.8);
    for noise in ["gaussian", "laplace"] {
        let step = format!(
            r#"{{"repeated":{{"count":10,"event":{{"poisson_sampled":{{"rate":0.01,"event":{{"{noise}":{{"noise_multiplier":2.0}}}}}}}}}}}}"#
        );
        assert!(upper(&beside(&step), "1e-5", &["--neighbors", "replace"]) < 4.0, "{noise}");
        assert!(upper(&step, "1e-5", &["--neighbors", "replace"]) < 1.0, "{noise}");
    }
}
