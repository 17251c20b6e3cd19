//! `quell train` and `quell resume`, as people and power cuts use them.

use std::{
    path::Path,
    process::{Child, Command},
    time::Duration,
};

use crate::command::{Ran, folder, json, run, start};
use serde_json::Value;

#[test]
fn the_first_command_works_twice() {
    let here = folder("train twice");
    let first = run(&here, "train");
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(
        first.stdout.starts_with("accuracy: ") && first.stdout.contains("run: runs/digits-1"),
        "{}",
        first.stdout
    );
    assert!(first.stderr.contains("demonstration"), "{}", first.stderr);
    let second = json(&here, "train --format json");
    assert_eq!(second["run"], "runs/digits-2");
    assert!(
        second["epsilon"]["upper"].as_f64().unwrap() <= 3.0
            && second["epsilon"]["lower"].as_f64().unwrap() > 2.9
    );
    assert!(second["accuracy"].as_f64().unwrap() > 0.8 && second["delta"] == 1e-5);
    assert_eq!((second["steps"].as_u64(), second["taken"].as_u64()), (Some(70), Some(70)));
    assert!(second["seconds"].as_f64().unwrap() > 0.0 && second["ledger"]["entry"].as_u64().unwrap() > 1);
    for file in ["config.toml", "model.safetensors", "metrics.json", "report.md", "report.html"] {
        assert!(here.join("runs/digits-1").join(file).is_file(), "{file}");
    }
    assert_eq!(run(&here, "ledger verify").code, 0);
}

#[test]
fn dry_runs_and_impossible_plans_are_not_charged() {
    let here = folder("train refused");
    let looked = run(&here, "train --dry-run --epsilon 1");
    assert!(
        looked.code == 0
            && (6..=12).contains(&looked.stdout.lines().count())
            && looked.stdout.contains("guarantee:")
            && looked.stderr.contains("nothing was charged")
    );
    assert!(!here.join(".quell").exists(), "no ledger is opened");
    // The settings are read again as they are.
    let settings = run(&here, "train --dry-run --epsilon 1 --format toml");
    assert!(settings.code == 0 && settings.stdout.contains("noise_multiplier"), "{}", settings.stderr);
    std::fs::write(here.join("all.toml"), &settings.stdout).unwrap();
    assert_eq!(run(&here, "train --config all.toml --dry-run --format toml").stdout, settings.stdout);
    let toml = run(&here, "train --epsilon 1 --format toml");
    assert!(toml.code == 2 && toml.stderr.contains("add --dry-run"), "{}", toml.stderr);
    // Where there is a ledger, a dry run says what it would say.
    assert_eq!(run(&here, "ledger create digits --epsilon 2 --delta 1e-5 --ledger small").code, 0);
    let fits = run(&here, "train --dry-run --epsilon 1 --ledger small");
    assert!(fits.code == 0 && fits.stderr.contains("from 0 to 0.999"), "{}", fits.stderr);
    let refused = run(&here, "train --dry-run --epsilon 3 --ledger small");
    assert!(refused.code == 1 && refused.stderr.contains("the budget is 2"), "{}", refused.stderr);
    for (arguments, code, says) in [
        ("train --model nonsense", 2, "nonsense"),
        ("train --epsilon 0", 2, "epsilon is 0"),
        ("train --epsilon -1", 2, "epsilon"),
        ("train --steps 0", 2, "steps"),
        ("train nothing.csv --epsilon 1", 2, "does not exist"),
        ("train --config nothing.toml", 2, "nothing.toml"),
        ("train --epsilon 40 --budget 35 --delta 1e-5", 2, "budget"),
        ("train --epsilon 2 --budget 1 --delta 1e-5 --dataset small", 1, "the budget is 1"),
        ("train --sampling without-replacement", 2, ""),
        ("train --users", 2, "user"),
        ("resume nowhere", 2, "nowhere"),
    ] {
        let ran = run(&here, arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{arguments}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(says) && !ran.stderr.contains("internal error"),
            "{arguments}: {}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("error: ") || ran.stderr.contains("refused: "),
            "{arguments}: {}",
            ran.stderr
        );
    }
    std::fs::write(here.join("wrong.toml"), "[training]\nstepps = 5\n").unwrap();
    let ran = run(&here, "train --config wrong.toml");
    // A message quotes nothing of the file.
    let says = ran.stderr.contains("did you mean `steps`?") && !ran.stderr.contains("stepps");
    assert!(ran.code == 2 && says, "{}", ran.stderr);
    assert!(!here.join("runs").exists(), "a run that was refused leaves no folder");
    for dataset in ["digits", "small"] {
        let charges =
            run(&here, &format!("ledger show {dataset} --format json")).stdout.matches("charged").count();
        assert_eq!(charges, 0, "{dataset}");
    }
}

#[test]
fn a_claim_states_the_charge_even_if_settings_change_afterwards() {
    let here = folder("train claim");
    assert_eq!(run(&here, "train --model logistic --epsilon 2 --steps 5 --output paid").code, 0);
    let file = here.join("paid/config.toml");
    let settings = std::fs::read_to_string(&file).unwrap();
    let edited = settings.replace("epsilon = 2.0\n", "").replace("delta = 0.00001", "delta = 1e-30");
    assert_ne!(edited, settings);
    std::fs::write(&file, edited).unwrap();
    let claim = run(&here, "resume paid").stdout;
    assert!(claim.contains("at δ = 1e-5 when one record"), "{claim}");
    assert_eq!(json(&here, "resume paid --format json")["delta"], 1e-5);
}

#[test]
fn every_use_of_a_model_computes_its_features() {
    let here = folder("train features");
    let help = run(&here, "train --help").stdout;
    assert!(help.contains("--features") && help.contains("scattering") && help.contains("hog"), "{help}");
    let small = "[training.privacy]\nepsilon = 3.0\ndelta = 1e-5\n[training.sampling]\nrate = 0.25\n[training]\nsteps = 40\n\
                 [training.clipping.flat]\nnorm = 0.1\n[training.schedule]\nlearning_rate = 4.0\n";
    std::fs::write(here.join("small.toml"), small).unwrap();
    let trained = json(&here, "train --config small.toml --features scattering --output run --format json");
    let accuracy = trained["accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.8, "{accuracy}");
    let configuration = std::fs::read_to_string(here.join("run/config.toml")).unwrap();
    // A linear model, unless somebody says otherwise.
    assert!(configuration.contains("name = \"logistic\""), "{configuration}");
    assert!(configuration.contains("[features]\nkind = \"scattering\""), "{configuration}");
    // Evaluated and asked as records are, without a word about features.
    assert_eq!(json(&here, "evaluate run --format json")["accuracy"].as_f64(), Some(accuracy));
    assert_eq!(run(&here, "predict run/model.safetensors").code, 0);
    let report = std::fs::read_to_string(here.join("run/report.md")).unwrap();
    assert!(report.contains("scattering") && report.contains("1 × 8 × 8"), "{report}");
    // A flag goes over the file, and what does not fit is said before anything is paid.
    std::fs::write(here.join("wide.toml"), "[features]\nkind = \"scattering\"\nscales = 4\n").unwrap();
    let refused = run(&here, "train --config wide.toml --epsilon 1 --delta 1e-5 --steps 5");
    assert!(refused.code == 2 && refused.stderr.contains("2^scales"), "{}", refused.stderr);
    let looked = run(
        &here,
        "train --config wide.toml --features raw --model logistic --epsilon 1 --delta 1e-5 --steps 5 --dry-run --ledger other",
    );
    assert!(looked.code == 0 && !looked.stdout.contains("[features]"), "{} {}", looked.stdout, looked.stderr);
    assert_eq!(run(&here, "train --features pixels").code, 2);
}

/// A number that differs from time to time, without chance: a multiplicative sequence.
fn pause(time: u32) -> Duration {
    Duration::from_millis(u64::from(150 + time * 7919 % 400))
}

fn kill(mut child: Child) -> bool {
    let ended = child.try_wait().unwrap().is_some();
    child.kill().unwrap();
    child.wait().unwrap();
    ended
}

#[test]
fn twenty_kills_of_a_run_cost_steps_but_no_epsilon() {
    let here = folder("train killed");
    let steps = 3000_u64;
    let first = start(&here, &format!("train --steps {steps} --epsilon 3 --output run")).spawn().unwrap();
    while !here.join("run/paid.json").is_file() {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(pause(0));
    let mut ended = kill(first);
    let spent = |here: &Path| json(here, "ledger list --format json").to_string();
    let after_first = spent(&here);
    for time in 1..20 {
        if ended {
            break;
        }
        let child = start(&here, "resume run").spawn().unwrap();
        std::thread::sleep(pause(time));
        ended = kill(child);
    }
    let end = json(&here, "resume run --format json");
    let (taken, all) = (end["taken"].as_u64().unwrap(), end["steps"].as_u64().unwrap());
    // Each time at most the block that was leased: a run is leased in 25.
    assert!(all == steps && taken <= steps && steps - taken <= 20 * steps.div_ceil(25), "{taken} of {all}");
    assert!(end["epsilon"]["upper"].as_f64().unwrap() <= 3.0);
    let lines = run(&here, "ledger show digits --format json").stdout;
    assert_eq!(lines.matches("\"charged\"").count(), 1, "one plan was paid for once");
    // What is spent is what was reserved, however often it was taken up again.
    let epsilon = |text: &str| {
        text.split("\"spent\":").nth(1).map(|rest| rest.split([',', '}']).next().unwrap().to_owned())
    };
    assert_eq!(epsilon(&spent(&here)), epsilon(&after_first));
    assert_eq!(run(&here, "ledger verify").code, 0);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_stops_after_a_step_and_names_the_resume_command() {
    let here = folder("train stopped");
    let child = start(&here, "train --steps 20000 --output run").spawn().unwrap();
    while !here.join("run/metrics.json").is_file() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ran: Ran = child.wait_with_output().unwrap().into();
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("\nStopped at step ")
            && ran.stderr.contains(" of 20000. Continue with: quell resume run"),
        "{}",
        ran.stderr
    );
    let metrics: Value =
        serde_json::from_slice(&std::fs::read(here.join("run/metrics.json")).unwrap()).unwrap();
    assert!(metrics["taken"].as_u64().unwrap() > 0);
}

#[test]
fn the_report_of_hidden_steps_shows_that_only_the_cost_of_all_iterates_keeps_growing() {
    let here = folder("train hidden");
    let census = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/census");
    let train = format!("train {census}.csv --schema {census}.toml --records 5000 --epsilon 1");
    assert_eq!(run(&here, &format!("{train} --method hidden-state --regularization 0.02")).code, 0);
    let report = json(&here, "report runs/census-1 --format json");
    let figures = report["figures"].as_array().unwrap();
    let figure = figures.iter().find(|figure| figure["title"] == "What hidden steps save").unwrap();
    let curve = |series: usize| -> Vec<f64> {
        let points = figure["series"][series]["points"].as_array().unwrap();
        points.iter().map(|point| point["upper"].as_f64().unwrap()).collect()
    };
    let (last, all) = (curve(0), curve(1));
    let growth = |curve: &[f64]| curve[curve.len() - 1] / curve[curve.len() / 2];
    assert!((last[0] - all[0]).abs() < 1e-9 && last[last.len() - 1] <= 1.0, "{last:?} {all:?}");
    assert!(growth(&last) < 1.01 && growth(&all) > 1.5, "{last:?} {all:?}");
}

/// A run that cannot start must not fix the budget of a dataset.
#[test]
fn no_ledger_is_made_for_a_run_whose_folder_exists() {
    let here = folder("train twice");
    std::fs::create_dir(here.join("taken")).unwrap();
    let ran = run(&here, "train --epsilon 1 --steps 3 --output taken --ledger new");
    assert!(ran.code == 2 && ran.stderr.contains("taken already exists"), "{}", ran.stderr);
    assert!(!here.join("new").exists());
}
