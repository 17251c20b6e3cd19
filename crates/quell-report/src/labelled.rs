//! The report of a run that labels public records: voters, questions, answers and student.
//!
//! The report contains no votes, only what was released from them. The ledger paid for the choice of
//! questions and for every answer or refusal. Public labels show which answers are correct.

use quell::{
    learner::Evaluation,
    run::{
        Folder, Model,
        labels::{Choice, Configuration, Results, Revealed, VoterSettings},
    },
    voting::{Aggregation, Aggregator, Entry, Journal, Plan, VoteFacts},
};
use quell_privacy::{
    mechanism::Screening,
    number::{format_brief, format_exact},
};
use serde_json::json;

use crate::{Interval, plot::Figure};
use crate::{
    facts::{
        Report, architecture, confusion, cost, describe, dimensions, duration, features, guarantee, layers,
        ledger_entry, origin, percent, round_up, row, shortened, source,
    },
    figures, measures,
    promise::{self, Covers, Released},
};

const ATTACK: &str = "a membership test for one record, given all answers and refusals";

/// Builds the report of a labelling run and its student.
pub(crate) fn facts(folder: &Folder, model: &Model) -> Result<Report, quell::Error> {
    let configuration = folder.labels_configuration()?;
    let outcome = folder.labels()?.unwrap_or_default();
    let entries = Journal::read(&folder.file(Folder::ANSWERS))?;
    let classes = model.classes.clone().unwrap_or_default();
    let facts = configuration.vote_facts(classes.len())?;
    let plan = configuration.votes.plan(&facts)?;
    let event = plan.aggregation.event(plan.neighbors);
    let measured = outcome.unseen.as_ref().or(outcome.all.as_ref());
    let figures: Vec<(Figure, &str)> = [
        measures::calibration(measured, &classes),
        figures::epsilon_of_answers(&plan)?,
        figures::attack(&event, plan.neighbors, ATTACK)?,
    ]
    .into_iter()
    .flatten()
    .collect();
    let drawings: Vec<&Figure> = figures.iter().map(|(figure, _)| figure).collect();
    let answer_counts = per_class(&entries, classes.len());
    let (receipt, student) = (&model.paid.receipt, architecture(&configuration.student.model));
    let title = format!(
        "{} on {}, predicts one of {} classes",
        title_prefix(&configuration),
        receipt.dataset,
        classes.len()
    );
    let document = json!({
        "title": title,
        "origin": folder.origin()?,
        "run": folder.path(),
        "dataset": receipt.dataset,
        "unit": configuration.data.unit,
        "neighbors": plan.neighbors,
        "epsilon": Interval(model.paid.epsilon),
        "delta": model.paid.delta,
        "receipt": receipt,
        "statement": model.statement,
        "outcome": outcome,
        "answers_per_class": answer_counts,
        "model": {"name": student, "shape": model.shape, "classes": model.classes, "weights": model.predictor.parameters()},
        "configuration": configuration,
        "figures": drawings,
    });
    let mut guarantee_rows = guarantee(&model.paid, configuration.data.unit, plan.neighbors);
    if configuration.votes.reveal {
        let cost = "the cost of the votes that were cast; it is a second charge of the ledger";
        guarantee_rows.push(row("also released", cost));
    }
    guarantee_rows.extend(outcome.revealed.map(|revealed| data_dependent_epsilon(revealed, &plan)));
    let per_class =
        classes.iter().zip(answer_counts).map(|(name, count)| row(name, count.to_string())).collect();
    let mut lists = vec![
        (
            if configuration.votes.reveal {
                "The guarantee of the answers"
            } else {
                "The guarantee of this run"
            },
            guarantee_rows,
        ),
        ("Ledger entry of the charge", ledger_entry(&model.paid)),
        ("Voters", voters(&configuration)),
        ("Aggregation of votes", aggregation(&configuration, &facts, &plan)),
        ("Results", result(&configuration, &outcome, &classes)),
        ("Answers per class", per_class),
        ("Data", data(&configuration, model)),
        ("Student", learner(&configuration, model)),
    ];
    lists.extend(origin(folder)?);
    let evaluation = outcome.unseen.as_ref().or(outcome.all.as_ref());
    let table = evaluation.and_then(|evaluation| measures::table(evaluation, &classes));
    let confusion = evaluation.and_then(|evaluation| confusion(evaluation, &classes, &mut lists));
    Ok(Report {
        title,
        kind: "Public records labelled by private votes with differential privacy, and a student trained on the answers.",
        headlines: headlines(model, &outcome, configuration.votes.reveal),
        statement: promise::sentences(
            &Released {
                paid: &model.paid,
                event: Some(&event),
                unit: configuration.data.unit,
                neighbors: plan.neighbors,
                covers: if configuration.votes.reveal { Covers::AnswersOnly } else { Covers::Everything },
            },
            &model.statement,
        )?,
        lists,
        figures,
        learned: None,
        columns: None,
        tables: table.into_iter().collect(),
        scatter: None,
        confusion,
        document,
    })
}

fn title_prefix(configuration: &Configuration) -> &'static str {
    match configuration.voters {
        VoterSettings::Teachers { .. } => "Labels by teachers",
        VoterSettings::Nearest { .. } => "Labels by nearest neighbours",
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

fn headlines(model: &Model, outcome: &Results, reveals_cost: bool) -> Vec<[String; 3]> {
    let whose = if reveals_cost { "of the answers, without the revealed cost" } else { "of this run" };
    let mut all = cost(&model.paid, whose);
    let asked = outcome.answered + outcome.refused;
    all.push(["answers".into(), outcome.answered.to_string(), format!("to {asked} questions")]);
    let (evaluation, which) = match (&outcome.unseen, &outcome.all) {
        (Some(unseen), _) => (Some(unseen), "public examples without a question"),
        (None, all) => (all.as_ref(), "public examples"),
    };
    match evaluation {
        Some(evaluation @ Evaluation::Classes { count, .. }) => {
            let accuracy = evaluation.accuracy().map_or_else(|| "none".into(), percent);
            all.push(["accuracy of the student".into(), accuracy, format!("on {count} {which}")]);
        }
        _ => all.push([
            "accuracy of the student".into(),
            "not measured".into(),
            "the run is not finished".into(),
        ]),
    }
    all
}

fn data_dependent_epsilon(revealed: Revealed, plan: &Plan) -> [String; 2] {
    let Revealed { epsilon, of_the_dataset } = revealed;
    let scope =
        if of_the_dataset { "for this dataset and its neighbours" } else { "for the released answers" };
    let value = format!(
        "ε ≤ {} at δ = {}, {scope}; includes the cost of showing it",
        round_up(epsilon),
        format_exact(plan.delta.get())
    );
    row("data-dependent ε", value)
}

fn voters(configuration: &Configuration) -> Vec<[String; 2]> {
    let inputs = if configuration.features.is_raw() {
        "raw records".into()
    } else {
        features(&configuration.features)
    };
    match &configuration.voters {
        VoterSettings::Teachers { count, model, training } => vec![
            row(
                "voters",
                format!(
                    "{count} teachers; each record, or each person with all their records, affects only one teacher"
                ),
            ),
            row("input of the teachers", inputs),
            row("teacher", architecture(model)),
            row("optimizer of a teacher", describe(&training.optimizer)),
        ],
        VoterSettings::Nearest { neighbors, rate, components, turns } => {
            let distance_space = components
                .map_or(inputs.clone(), |count| format!("{count} principal components of {inputs}"));
            let by_student = "from the second turn on, distances use the features of a student that was trained on the answers so far";
            let turns = if *turns > 1 { format!("{turns}; {by_student}") } else { turns.to_string() };
            vec![
                row(
                    "voters",
                    format!(
                        "the {neighbors} records nearest to a question, in a Poisson sample for this question"
                    ),
                ),
                row("sampling rate", format_brief(*rate)),
                row("features for distances", distance_space),
                row("turns", turns),
            ]
        }
    }
}

fn aggregation(configuration: &Configuration, facts: &VoteFacts, plan: &Plan) -> Vec<[String; 2]> {
    let mut rows = vec![row("aggregator", describe(&configuration.votes.aggregator))];
    match &plan.aggregation {
        Aggregation::Polls(poll, rounds) => {
            rows.push(row("noisy maximum", poll.rule.to_string()));
            if let Some(Screening { threshold, deviation }) = poll.screening {
                let what = match configuration.votes.aggregator {
                    Aggregator::Interactive => "some count exceeds the student's prediction by",
                    _ => "the largest count reaches",
                };
                let ballots = facts.ballots;
                let noise =
                    format!("with Gaussian noise of standard deviation {}", format_brief(deviation.get()));
                rows.push(row(
                    "answered only if",
                    format!("{what} {threshold} of {ballots} ballots, {noise}"),
                ));
                rows.push(row("questions paid for", (u64::from(poll.questions) * rounds).to_string()));
            }
            rows.push(row("answers paid for", (u64::from(poll.answers) * rounds).to_string()));
        }
        Aggregation::Stable(stable) => {
            let threshold = format!(
                "more than {} of {} ballots could change without another winner, with noise",
                stable.threshold, facts.ballots
            );
            rows.push(row("answered only if", threshold));
            rows.push(row(
                "noise",
                format!("Gaussian of standard deviation {}", format_brief(stable.deviation.get())),
            ));
            rows.push(row("unstable questions paid for", stable.unstable.to_string()));
        }
        Aggregation::Surveys(survey, _) => rows.push(row("each round", survey.to_string())),
    }
    let choice = match configuration.student.choice {
        Choice::Representative => "representative records first (those close to many others)",
        Choice::Active => {
            "half of them representative records (close to many others), then the most uncertain records"
        }
        Choice::InOrder => "in the order of the file",
    };
    rows.push(row("choice of questions", choice));
    rows
}

fn result(configuration: &Configuration, outcome: &Results, classes: &[String]) -> Vec<[String; 2]> {
    let asked = outcome.answered + outcome.refused;
    let limit =
        configuration.questions.map(|questions| format!(" of at most {questions}")).unwrap_or_default();
    let mut rows = vec![
        row("questions asked", format!("{asked}{limit}")),
        row("answered", outcome.answered.to_string()),
        row("refused", outcome.refused.to_string()),
    ];
    if let Some(right) = outcome.right {
        rows.push(row("correct answers", format!("{}, compared with the public labels", percent(right))));
    }
    for (name, evaluation) in [
        ("student on public records without a question", &outcome.unseen),
        ("student on all public records", &outcome.all),
    ] {
        if let Some(evaluation @ Evaluation::Classes { correct, count, .. }) = evaluation {
            let accuracy = evaluation.accuracy().map_or_else(|| "none".into(), percent);
            rows.push(row(name, format!("{accuracy}: {correct} of {count} examples predicted correctly")));
        }
    }
    if let Some(evaluation) = outcome.unseen.as_ref().or(outcome.all.as_ref()) {
        rows.extend(measures::rows(evaluation, classes));
    }
    rows.push(row("time", duration(outcome.seconds)));
    rows
}

fn data(configuration: &Configuration, model: &Model) -> Vec<[String; 2]> {
    let mut rows = vec![
        row("dataset", &model.paid.receipt.dataset),
        row("private records", source(&configuration.data)),
    ];
    if let Some(public) = &configuration.data.test {
        rows.push(row("public records", public.display().to_string()));
    }
    rows.push(row("shape of an example", dimensions(&model.shape)));
    rows.push(row("classes", shortened(model.classes.as_deref().unwrap_or_default())));
    rows
}

fn learner(configuration: &Configuration, model: &Model) -> Vec<[String; 2]> {
    let student = &configuration.student;
    let mut rows = vec![
        row("model", architecture(&student.model)),
        row("layers", layers(&model.configuration.model.layers)),
        row("weights", model.predictor.parameters().to_string()),
    ];
    if !student.features.is_raw() {
        rows.push(row("features", features(&student.features)));
    }
    rows.extend([
        row("label propagation", describe(&student.propagation)),
        row("optimizer", describe(&student.training.optimizer)),
        row("seed of public randomness", configuration.seed.to_string()),
    ]);
    rows
}
