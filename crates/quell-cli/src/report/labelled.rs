//! What a report says about a run that labels public records: who voted and how, what was asked, and what a student made of the answers.
//!
//! Of votes nothing is said but what was released. Which questions were put, and what was answered or refused, was paid for; what is right is told by public labels.

use anyhow::Result;
use quell::{
    dp_sgd::Evaluation,
    run::{
        Folder, Model,
        labels::{Choice, Configuration, Electors, Outcome, Revealed},
    },
    voting::{Aggregator, Entry, Facts as Election, Journal, Plan, Release},
};
use quell_privacy::{
    mechanism::Screening,
    number::{brief, given},
};
use serde_json::json;

use super::{
    facts::{
        Facts, architecture, confusion, cost, debt, duration, features, layers, percent, promise, row, sentences, shortened,
        sides, source, up, words,
    },
    figures,
};
use crate::{answer::Interval, plot::Figure};

const ATTACK: &str = "a test for one record's presence by everything that was answered or refused";

/// What is said about labels and the student who learned from them.
pub(super) fn facts(folder: &Folder, model: &Model) -> Result<Facts> {
    let configuration = folder.labels_configuration()?;
    let outcome = folder.labels()?.unwrap_or_default();
    let entries = Journal::read(&folder.file(Folder::ANSWERS))?;
    let classes = model.classes.clone().unwrap_or_default();
    let election = configuration.election(classes.len())?;
    let plan = configuration.votes.plan(&election)?;
    let event = plan.release.event(plan.neighbors);
    let figures: Vec<(Figure, &str)> =
        [figures::epsilon_of_answers(&plan)?, figures::attack(&event, plan.neighbors, ATTACK)?].into_iter().flatten().collect();
    let drawn: Vec<&Figure> = figures.iter().map(|(figure, _)| figure).collect();
    let given = per_class(&entries, classes.len());
    let (receipt, student) = (&model.paid.receipt, architecture(&configuration.student.model));
    let document = json!({
        "run": folder.path(),
        "dataset": receipt.dataset,
        "unit": configuration.data.unit,
        "neighbors": plan.neighbors,
        "epsilon": Interval(model.paid.epsilon),
        "delta": model.paid.delta,
        "receipt": receipt,
        "statement": model.statement,
        "outcome": outcome,
        "answers_per_class": given,
        "model": {"name": student, "shape": model.shape, "classes": model.classes, "weights": model.network.parameters()},
        "configuration": configuration,
        "figures": drawn,
    });
    let mut promised = promise(&model.paid, configuration.data.unit, plan.neighbors);
    promised.extend(outcome.revealed.map(|revealed| at_the_votes(revealed, &plan)));
    let per_class = classes.iter().zip(given).map(|(name, count)| row(name, count.to_string())).collect();
    let mut lists = vec![
        ("The guarantee of this run", promised),
        ("The debt that paid for it", debt(&model.paid)),
        ("Who voted", voters(&configuration)),
        ("How votes became answers", counting(&configuration, &election, &plan)),
        ("What came of it", result(&configuration, &outcome)),
        ("Answers of each class", per_class),
        ("What it was about", data(&configuration, model)),
        ("Who learned from the answers", learner(&configuration, model)),
    ];
    let evaluation = outcome.unseen.as_ref().or(outcome.all.as_ref());
    let confusion = evaluation.and_then(|evaluation| confusion(evaluation, &classes, &mut lists));
    Ok(Facts {
        title: format!("{} on {}", verb(&configuration), receipt.dataset),
        kind: "Public records that were labelled by private votes with differential privacy, and a student of the answers.",
        headlines: headlines(model, &outcome),
        statement: sentences(&model.statement),
        lists,
        figures,
        confusion,
        document,
    })
}

fn verb(configuration: &Configuration) -> &'static str {
    match configuration.voters {
        Electors::Teachers { .. } => "Labels by teachers",
        Electors::Nearest { .. } => "Labels by nearest neighbours",
    }
}

/// How often each class was the answer.
fn per_class(entries: &[Entry], classes: usize) -> Vec<u64> {
    let mut counts = vec![0; classes];
    for class in entries.iter().filter_map(|entry| entry.answer) {
        if let Some(count) = counts.get_mut(class as usize) {
            *count += 1;
        }
    }
    counts
}

fn headlines(model: &Model, outcome: &Outcome) -> Vec<[String; 3]> {
    let mut all = cost(&model.paid);
    let asked = outcome.answered + outcome.refused;
    all.push(["answers".into(), outcome.answered.to_string(), format!("to {asked} questions")]);
    let (evaluation, which) = match (&outcome.unseen, &outcome.all) {
        (Some(unseen), _) => (Some(unseen), "public examples that were never asked about"),
        (None, all) => (all.as_ref(), "public examples"),
    };
    match evaluation {
        Some(evaluation @ Evaluation::Classes { count, .. }) => {
            let accuracy = evaluation.accuracy().map_or_else(|| "none".into(), percent);
            all.push(["accuracy of the student".into(), accuracy, format!("on {count} {which}")]);
        }
        _ => all.push(["accuracy of the student".into(), "not measured".into(), "the run has not come to its end".into()]),
    }
    all
}

fn at_the_votes(revealed: Revealed, plan: &Plan) -> [String; 2] {
    let Revealed { epsilon, of_the_dataset } = revealed;
    let of = if of_the_dataset { "these data and their neighbours" } else { "what came out" };
    let value = format!("ε ≤ {} at δ = {}, of {of}; shown for a price, which is in it", up(epsilon), given(plan.delta.get()));
    row("at the votes that were cast", value)
}

fn voters(configuration: &Configuration) -> Vec<[String; 2]> {
    let seen = if configuration.features.is_raw() { "records as they are".into() } else { features(&configuration.features) };
    match &configuration.voters {
        Electors::Teachers { count, model, training } => vec![
            row("voters", format!("{count} teachers; one record, or one person with all records, touches one of them")),
            row("what they look at", seen),
            row("teacher", architecture(model)),
            row("how a teacher learns", words(&training.optimizer)),
        ],
        Electors::Nearest { neighbors, rate, components, turns } => {
            let measured = components.map_or(seen.clone(), |count| format!("{count} principal components of {seen}"));
            let by_student = "from the second on, near is measured on what a student of the answers so far has learned to see";
            let turns = if *turns > 1 { format!("{turns}; {by_student}") } else { turns.to_string() };
            vec![
                row(
                    "voters",
                    format!("the {neighbors} records nearest to a question, within a sample that is drawn for it alone"),
                ),
                row("rate of a sample", brief(*rate)),
                row("what is near", measured),
                row("turns", turns),
            ]
        }
    }
}

fn counting(configuration: &Configuration, election: &Election, plan: &Plan) -> Vec<[String; 2]> {
    let mut rows = vec![row("aggregator", words(&configuration.votes.aggregator))];
    match &plan.release {
        Release::Polls(poll, rounds) => {
            rows.push(row("on each count", poll.rule.to_string()));
            if let Some(Screening { threshold, deviation }) = poll.screening {
                let what = match configuration.votes.aggregator {
                    Aggregator::Interactive => "some count exceeds what the student expects by",
                    _ => "the largest count reaches",
                };
                let ballots = election.ballots;
                let noise = format!("with Gaussian noise of standard deviation {}", brief(deviation.get()));
                rows.push(row("answered only where", format!("{what} {threshold} of {ballots} ballots, {noise}")));
                rows.push(row("questions that were paid for", (u64::from(poll.questions) * rounds).to_string()));
            }
            rows.push(row("answers that were paid for", (u64::from(poll.answers) * rounds).to_string()));
        }
        Release::Stable(stable) => {
            let threshold = format!("more than {} of {} ballots could change, with noise", stable.threshold, election.ballots);
            rows.push(row("answered only where", threshold));
            rows.push(row("noise", format!("Gaussian of standard deviation {}", brief(stable.deviation.get()))));
            rows.push(row("refusals that were paid for", stable.unstable.to_string()));
        }
        Release::Surveys(survey, _) => rows.push(row("each round", survey.to_string())),
    }
    let choice = match configuration.student.choice {
        Choice::Representative => "those in the midst of many others first",
        Choice::Active => "half of them in the midst of many others, then those that the answers so far leave in doubt",
        Choice::InOrder => "as they stand in the file",
    };
    rows.push(row("which questions", choice));
    rows
}

fn result(configuration: &Configuration, outcome: &Outcome) -> Vec<[String; 2]> {
    let asked = outcome.answered + outcome.refused;
    let of = configuration.questions.map(|questions| format!(" of {questions} that might be")).unwrap_or_default();
    let mut rows = vec![
        row("questions asked", format!("{asked}{of}")),
        row("answered", outcome.answered.to_string()),
        row("refused", outcome.refused.to_string()),
    ];
    if let Some(right) = outcome.right {
        rows.push(row("answers that are right", format!("{}, by the public labels", percent(right))));
    }
    for (name, evaluation) in [("student on what was never asked", &outcome.unseen), ("student on all public data", &outcome.all)]
    {
        if let Some(evaluation @ Evaluation::Classes { correct, count, .. }) = evaluation {
            let accuracy = evaluation.accuracy().map_or_else(|| "none".into(), percent);
            rows.push(row(name, format!("{accuracy}: {correct} of {count} examples predicted right")));
        }
    }
    rows.push(row("time", duration(outcome.seconds)));
    rows
}

fn data(configuration: &Configuration, model: &Model) -> Vec<[String; 2]> {
    let mut rows = vec![row("dataset", &model.paid.receipt.dataset), row("private records", source(&configuration.data))];
    if let Some(public) = &configuration.data.test {
        rows.push(row("public records", public.display().to_string()));
    }
    rows.push(row("numbers per example", sides(&model.shape)));
    rows.push(row("classes", shortened(model.classes.as_deref().unwrap_or_default())));
    rows
}

fn learner(configuration: &Configuration, model: &Model) -> Vec<[String; 2]> {
    let student = &configuration.student;
    let mut rows = vec![
        row("model", architecture(&student.model)),
        row("layers", layers(&model.configuration.model.layers)),
        row("weights", model.network.parameters().to_string()),
    ];
    if !student.features.is_raw() {
        rows.push(row("features", features(&student.features)));
    }
    rows.extend([
        row("how answers spread", words(&student.propagation)),
        row("optimizer", words(&student.training.optimizer)),
        row("seed of what is public", configuration.seed.to_string()),
    ]);
    rows
}
