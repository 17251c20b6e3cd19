//! `quell plan`: the same plans as the library makes, in JSON and as a plot.

use crate::command::{folder, quell, quell_with};

const SIZE: &str = "plan --records 2000 --dimension 10 --epsilon 1 --delta 1e-6";

#[test]
fn json_holds_the_plans_of_the_library() {
    use quell::learner::convex::{Factor, Loss, Method, Plan, Privacy, Problem};
    use quell_privacy::{
        Neighbors,
        units::{Delta, Epsilon},
    };
    let report =
        quell(&format!("{SIZE} --smoothness 0.25 --strong-convexity 0.1 --radius 2 --format json")).json();
    let problem = Problem {
        records: 2000,
        dimension: 10,
        lipschitz: 1.0,
        smoothness: Some(0.25),
        strong_convexity: Some(0.1),
        radius: 2.0,
    };
    let privacy = Privacy {
        epsilon: Epsilon::new(1.0).unwrap(),
        delta: Delta::new(1e-6).unwrap(),
        neighbors: Neighbors::AddRemove,
    };
    let rows = report["plans"].as_array().unwrap();
    let mut seen = 0;
    for loss in Loss::ALL {
        for method in Method::ALL.into_iter().filter(|method| method.applies_to(loss)) {
            let row = rows.iter().find(|row| row["loss"] == loss.name() && row["method"] == method.name());
            let Some(row) = row else {
                assert_eq!(loss, Loss::SmoothGlm, "{method:?}");
                continue;
            };
            let plan = Plan::new(&problem, privacy, method, loss, Factor::default()).unwrap();
            assert_eq!(row["plan"], serde_json::to_value(plan).unwrap());
            seen += 1;
        }
    }
    assert_eq!((seen, rows.len()), (18, 18));
    assert_eq!((&report["neighbors"], &report["delta"]), (&"add_remove".into(), &1e-6.into()));
}

#[test]
fn classes_without_their_numbers_have_no_rows() {
    let losses = |flags: &str| -> Vec<String> {
        let report = quell(&format!("{SIZE} --format json {flags}")).json();
        let rows = report["plans"].as_array().unwrap().iter();
        let mut losses: Vec<String> = rows.map(|row| row["loss"].as_str().unwrap().to_owned()).collect();
        losses.dedup();
        losses
    };
    assert_eq!(losses(""), ["convex"]);
    assert_eq!(losses("--smoothness 1"), ["convex", "smooth-convex", "smooth-glm", "smooth-non-convex"]);
    assert_eq!(losses("--strong-convexity 0.1"), ["convex", "strongly-convex"]);
    assert_eq!(losses("--smoothness 1 --loss smooth-glm"), ["smooth-glm"]);
}

#[test]
fn a_plot_shows_every_method_over_records_or_epsilon() {
    const SIZE: &str = "plan --records 200 --dimension 10 --epsilon 1 --delta 1e-6";
    let here = folder("plans");
    for (over, file) in [("records", "plan.svg"), ("epsilon", "plan.png")] {
        let path = here.join(file);
        let mut flags: Vec<&str> = SIZE.split(' ').collect();
        flags.extend(["--loss", "convex", "--plot", over, "--output", path.to_str().unwrap()]);
        let ran = quell_with(&flags, "");
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
        assert_eq!(ran.stderr, format!("wrote {}\n", path.display()));
        assert!(path.exists());
    }
    let svg = std::fs::read_to_string(here.join("plan.svg")).unwrap();
    for label in ["output-perturbation", "noisy-gd", "noisy-sgd", "smoothed-sgd", "records"] {
        assert!(svg.contains(label), "{label}");
    }
    let figure = quell(&format!("{SIZE} --loss convex --plot epsilon --format json")).json();
    for series in figure["series"].as_array().unwrap() {
        let points = series["points"].as_array().unwrap();
        let risks: Vec<f64> = points.iter().map(|point| point["upper"].as_f64().unwrap()).collect();
        assert_eq!(risks.len(), 11);
        assert!(risks.windows(2).all(|pair| pair[1] < pair[0]), "risk falls with ε: {risks:?}");
    }
    let text = quell(&format!("{SIZE} --loss convex --plot records")).data();
    assert!(
        text.contains("Excess risk, convex") && text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}
