//! `quell curve`, as a whole.

use crate::command::{folder, quell, quell_with};
use serde_json::Value;

const KINDS: [(&str, &[&str]); 5] = [
    (
        "epsilon-steps",
        &["Privacy loss over a run", "steps", "ε at δ = 1e-5", "privacy loss distributions (pld)"],
    ),
    ("delta-epsilon", &["Privacy profile", "ε", "δ", "10⁻¹⁰"]),
    (
        "tradeoff",
        &[
            "Error rates of the best attack",
            "false-positive rate α",
            "false-negative rate β",
            "random guessing",
        ],
    ),
    (
        "laplace-gaussian",
        &[
            "equal privacy",
            "noise (in units of the sensitivity)",
            "Laplace, b = 2",
            "textbook Gaussian, σ = 9.69",
        ],
    ),
    ("moments-advanced", &["moments accountant", "advanced composition", "steps", "ε at δ = 1e-5", "40,000"]),
];

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// (x, lower, upper) of one series.
fn points(report: &Value, series: usize) -> Vec<(f64, f64, f64)> {
    let points = report["series"][series]["points"].as_array().unwrap();
    points.iter().map(|p| (number(&p["x"]), number(&p["lower"]), number(&p["upper"]))).collect()
}

#[test]
fn every_curve_is_written_with_its_labels() {
    let folder = folder("curves");
    for (kind, labels) in KINDS {
        for extension in ["svg", "png"] {
            let file = folder.join(format!("{kind}.{extension}"));
            let ran = quell_with(&["curve", kind, "--output", file.to_str().unwrap()], "");
            assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
            assert_eq!(ran.stderr, format!("wrote {}\n", file.display()));
        }
        let svg = std::fs::read_to_string(folder.join(format!("{kind}.svg"))).unwrap();
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{kind}");
        let texts: String = svg.lines().filter(|line| line.starts_with("<text")).collect();
        for label in labels {
            assert!(texts.contains(label), "{kind} lacks {label}");
        }
        let png = std::fs::read(folder.join(format!("{kind}.png"))).unwrap();
        let (width, height, pixels) = decoded(&png);
        assert_eq!((width, height), (1640, 1040));
        let inked = pixels.chunks(3).filter(|pixel| *pixel != [255; 3]).count();
        assert!(inked > 20_000 && inked < 400_000, "{kind}: {inked}");
    }
}

fn decoded(file: &[u8]) -> (u32, u32, Vec<u8>) {
    assert!(file.starts_with(b"\x89PNG\r\n\x1a\n"));
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    (info.width, info.height, pixels)
}

#[test]
fn a_curve_without_a_file_is_drawn_in_the_terminal() {
    for (kind, labels) in KINDS {
        let text = quell(&format!("curve {kind}")).data();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.chars().filter(|c| ('\u{2801}'..='\u{28ff}').contains(c)).count() > 50, "{text}");
        assert!(!text.contains('\x1b'), "no colour");
        for label in labels {
            assert!(text.contains(label), "{kind} lacks {label}: {text}");
        }
    }
}

#[test]
fn points_in_json_obey_the_theorems() {
    let steps = quell("curve epsilon-steps --steps 1000 --format json").json();
    assert_eq!((&steps["curve"], &steps["y"]["scale"]), (&"epsilon-steps".into(), &"linear".into()));
    let curve = points(&steps, 0);
    assert_eq!((curve[0].0, curve[curve.len() - 1].0), (1.0, 1000.0));
    assert!(curve.windows(2).all(|p| p[0].0 < p[1].0 && p[0].1 <= p[1].2), "ε grows with steps");

    let profile = quell("curve delta-epsilon --format json").json();
    assert_eq!(profile["y"]["scale"], "logarithmic");
    let curve = points(&profile, 0);
    assert!(curve.windows(2).all(|p| p[0].2 >= p[1].1), "δ falls with ε");
    assert!(curve.iter().all(|p| p.1 <= p.2) && curve[curve.len() - 1].1 <= 1e-10);

    let attack = quell("curve tradeoff --format json").json();
    assert_eq!(attack["series"][0]["claim"], "lower");
    assert!(points(&attack, 0).iter().all(|(alpha, beta, _)| *beta >= 0.0 && alpha + beta <= 1.0 + 1e-12));
    assert!(points(&attack, 1).iter().all(|(alpha, beta, _)| (alpha + beta - 1.0).abs() < 1e-12));

    let moments = quell("curve moments-advanced --format json").json();
    for ((pld, moments), advanced) in
        points(&moments, 0).iter().zip(points(&moments, 1)).zip(points(&moments, 2))
    {
        assert!(pld.2 <= moments.2 && moments.2 <= advanced.2, "pld ≤ moments ≤ advanced at {}", pld.0);
    }

    let densities = quell("curve laplace-gaussian --format json").json();
    for series in 0..3 {
        let curve = points(&densities, series);
        let mass: f64 = curve.windows(2).map(|p| (p[1].0 - p[0].0) * f64::midpoint(p[0].1, p[1].1)).sum();
        assert!((0.99..1.01).contains(&mass), "a density has mass one: {mass}");
    }
    let peak = |series: usize| points(&densities, series).iter().map(|p| p.1).fold(0.0, f64::max);
    assert!(peak(0) > peak(1) && peak(1) > peak(2), "Laplace is the most peaked, the textbook the widest");
}

#[test]
fn flags_change_the_curve() {
    let last = |flags: &str| {
        points(&quell(&format!("curve epsilon-steps --steps 100 --format json {flags}")).json(), 0)
            .pop()
            .unwrap()
            .2
    };
    let base = last("");
    assert!(
        last("--noise-multiplier 2") < base
            && last("--sampling-rate 0.02") > base
            && last("--delta 1e-9") > base
    );
    let several =
        quell("curve epsilon-steps --steps 100 --accountant pld --accountant rdp --format json").json();
    assert_eq!(several["series"].as_array().unwrap().len(), 2);
    let event = r#"{"repeated":{"count":100,"event":{"poisson_sampled":{"rate":0.01,"event":{"gaussian":{"noise_multiplier":1.1}}}}}}"#;
    let written = quell_with(&["curve", "epsilon-steps", "--event", event, "--format", "json"], "").json();
    assert_eq!(points(&written, 0).pop().unwrap().2, base);
}

#[test]
fn accountants_without_a_theorem_are_left_out_with_a_note() {
    let ran = quell("curve epsilon-steps --steps 10 --accountant closed --accountant pld --format json");
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.starts_with("note: closed is left out: "), "{}", ran.stderr);
    let ran = quell("curve laplace-gaussian --epsilon 2 --format json");
    assert!(
        ran.code == 0 && ran.stderr.starts_with("note: the textbook Gaussian is left out"),
        "{}",
        ran.stderr
    );
    assert_eq!(quell("curve epsilon-steps --accountant closed").code, 2);
}

#[test]
fn the_last_iterate_is_drawn_beside_all_iterates_and_comes_to_an_end() {
    let flags = "curve epsilon-steps --noise-multiplier 20 --contraction 0.98 --steps 2000 --format json";
    let figure = quell(flags).json();
    assert_eq!(
        (&figure["series"][0]["name"], &figure["series"][1]["name"]),
        (&"last iterate".into(), &"all iterates".into())
    );
    let (last, all) = (points(&figure, 0), points(&figure, 1));
    assert!((last[0].2 / all[0].2 - 1.0).abs() < 1e-9, "one step is one release");
    assert!(last.iter().zip(&all).all(|(last, all)| last.0 == all.0 && last.2 <= all.2 * (1.0 + 1e-9)));
    let at = |curve: &[(f64, f64, f64)], steps: f64| curve.iter().find(|point| point.0 >= steps).unwrap().2;
    assert!(at(&last, 2000.0) - at(&last, 1000.0) < 1e-6, "a plateau");
    assert!(at(&all, 2000.0) > 1.3 * at(&all, 1000.0), "no plateau");
    // The same run as an event, and by two accountants.
    let event = r#"{"hidden_state":{"noise_multiplier":20.0,"contraction":0.98,"steps":2000}}"#;
    let arguments = ["curve", "epsilon-steps", "--format", "json", "--event", event];
    let same = quell_with(&arguments, "").json();
    assert_eq!(same["series"], figure["series"]);
    let two = quell(&format!("{flags} --accountant pld --accountant rdp")).json();
    assert_eq!(two["series"][1]["name"], "last iterate: Rényi (rdp)");
    assert_eq!(two["series"].as_array().unwrap().len(), 4);
}

#[test]
fn a_curve_with_nothing_to_draw_says_so() {
    let file = folder("empty-curve").join("one.svg");
    for output in [vec![], vec!["--output", file.to_str().unwrap()]] {
        let mut arguments = vec!["curve", "epsilon-steps", "--steps", "1"];
        arguments.extend(output);
        let ran = quell_with(&arguments, "");
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
        assert!(
            ran.stderr.starts_with("error: there is nothing to draw: the curve has one point"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
    }
    assert!(!file.exists());
    let points = quell("curve epsilon-steps --steps 1 --format json").json();
    assert_eq!(points["series"][0]["points"].as_array().unwrap().len(), 1);
}
