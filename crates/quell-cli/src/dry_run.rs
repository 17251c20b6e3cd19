//! The plan of a run on a few lines, for the person who decides whether to pay.

use anyhow::Result;
use quell::run::{Guarantee, Job, Settings};
use quell_privacy::number::{Toward, format_exact, format_rounded};
use serde_json::Value;

use crate::{flags::run::RunFormat, print};

/// Prints what a job would do and cost. Everything on these lines is public.
pub(crate) fn report(job: &impl Job, format: RunFormat) -> Result<()> {
    let settings = job.settings()?;
    match format {
        RunFormat::Json => return print::json(&settings.json),
        RunFormat::Toml => print::document(&settings.toml)?,
        RunFormat::Text => {
            let rows: Vec<Vec<String>> = lines(job, &settings)
                .into_iter()
                .map(|(name, value)| vec![format!("{name}:"), value])
                .collect();
            print::lines(&print::table(&rows, &[]))?;
        }
    }
    if format == RunFormat::Text && !settings.toml.is_empty() {
        print::status("note: --format toml prints all settings, which --config reads");
    }
    let Guarantee { epsilon, delta, .. } = job.guarantee();
    let (epsilon, delta) = (format_rounded(epsilon.upper, 4, Toward::Up), format_exact(delta.get()));
    print::status(&format!(
        "dry run of {}: ε ≤ {epsilon} at δ = {delta}; nothing was charged",
        settings.amount
    ));
    Ok(())
}

/// The lines of the plan: what is learned, from what, how, and with which guarantee.
fn lines(job: &impl Job, settings: &Settings) -> Vec<(&'static str, String)> {
    let note = job.note();
    let empty = Value::Null;
    let configuration = settings.json.get("configuration").unwrap_or(&empty);
    let mut lines = vec![("data", note.file.unwrap_or_else(|| "the embedded digits".into()))];
    lines.extend(note.release.map(|release| ("release", release)));
    lines.extend(target(configuration).map(|target| ("target", target)));
    lines.extend(text(&configuration["features"]["kind"]).map(|kind| ("features", kind)));
    lines.push(("amount", settings.amount.clone()));
    lines.extend(method(configuration));
    lines.extend(votes(configuration));
    lines.extend(search(configuration));
    lines.push(("guarantee", job.guarantee().to_string()));
    lines.push(("ledger", job.dataset()));
    lines
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A number to four digits.
fn number(value: &Value) -> Option<String> {
    let number = value.as_f64()?;
    let exact = format_exact(number);
    Some(if exact.len() <= 6 { exact } else { format_rounded(number, 4, Toward::Up) })
}

/// The classes or the range of the target.
fn target(configuration: &Value) -> Option<String> {
    let data = &configuration["data"];
    let label = &data["schema"]["label"];
    let classes = label["classes"].as_array().or_else(|| data["classes"].as_array());
    if let Some(classes) = classes {
        let names: Vec<&str> = classes.iter().filter_map(Value::as_str).collect();
        let shown = names.iter().take(8).copied().collect::<Vec<_>>().join(", ");
        let more = if names.len() > 8 { ", …" } else { "" };
        return Some(format!("{} classes: {shown}{more}", names.len()));
    }
    let bounds = label["bounds"].as_array()?;
    let [lower, upper] = [bounds.first()?.as_f64()?, bounds.get(1)?.as_f64()?].map(format_exact);
    Some(format!("numbers between {lower} and {upper}"))
}

/// The sections of learners. One of them has the planned noise.
const SECTIONS: [&str; 7] =
    ["training", "glm", "unsupervised", "naive_bayes", "tree", "factorization", "synthesis"];

/// How the learner samples, clips and adds noise.
fn method(configuration: &Value) -> Vec<(&'static str, String)> {
    let planned = |section: &&&str| configuration[**section]["privacy"]["noise_multiplier"].is_number();
    let Some(section) = SECTIONS.iter().find(planned).map(|section| &configuration[*section]) else {
        return Vec::new();
    };
    let sampling = &section["sampling"];
    let batch = match (number(&sampling["rate"]), number(&sampling["size"])) {
        (Some(rate), _) => Some(format!("each record with probability {rate} in each step")),
        (None, Some(size)) => Some(format!("batches of {size} records")),
        (None, None) => None,
    };
    let clipping = number(&section["clipping"]["flat"]["norm"]);
    let noise = number(&section["privacy"]["noise_multiplier"]);
    let noise = noise.map(|noise| format!("{noise} times the most that one record adds"));
    let rate = number(&section["schedule"]["learning_rate"]).or_else(|| number(&section["learning_rate"]));
    let all = [("batches", batch), ("clip norm", clipping), ("noise", noise), ("learning rate", rate)];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The candidates of a search, and what each trial costs.
fn search(configuration: &Value) -> Vec<(&'static str, String)> {
    let Some(candidates) = configuration["candidates"].as_array() else { return Vec::new() };
    let names: Vec<&str> = candidates.iter().filter_map(|candidate| candidate["name"].as_str()).collect();
    let shown = names.iter().take(MOST_CANDIDATES).copied().collect::<Vec<_>>().join("; ");
    let more = if names.len() > MOST_CANDIDATES { "; …" } else { "" };
    let mut lines = vec![("candidates", format!("{}: {shown}{more}", names.len()))];
    lines.extend(number(&configuration["trial_epsilon"]).map(|epsilon| ("ε of a trial", epsilon)));
    lines.extend(number(&configuration["score_epsilon"]).map(|epsilon| ("ε of a score", epsilon)));
    lines
}

/// The most candidates of a search that are named.
const MOST_CANDIDATES: usize = 8;

/// Who votes, and on how many questions.
fn votes(configuration: &Value) -> Vec<(&'static str, String)> {
    let voters = &configuration["voters"];
    let nearest = &voters["nearest"];
    let who = match (voters["teachers"]["count"].as_u64(), nearest["neighbors"].as_u64()) {
        (Some(count), _) => Some(format!("{count} teachers, each trained on its own part of the records")),
        (None, Some(count)) => number(&nearest["rate"]).map(|rate| {
            format!("the {count} nearest of a sample, which holds each record with probability {rate}")
        }),
        (None, None) => None,
    };
    let asked = &configuration["questions"];
    let questions = asked.as_u64().map(|count| format!("at most {count} public records"));
    let student = text(&configuration["student"]["model"]["name"]);
    let all = [("voters", who), ("questions", questions), ("student", student)];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
