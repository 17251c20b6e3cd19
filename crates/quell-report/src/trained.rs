//! The report of a run that trains a model.

use quell::{
    learner::{Evaluation, Predictor},
    run::{Description, Folder, Metrics, Model, PaymentRecord},
};
use quell_privacy::{ledger::Unit, number::format_brief, units::Delta};
use serde_json::json;

use crate::{Interval, plot::Figure};
use crate::{
    columns::Columns,
    facts::{
        Report, architecture, confusion, cost, describe, dimensions, duration, features, guarantee, kind,
        layers, ledger_entry, origin, percent, row, shortened, source,
    },
    figures,
    learned::Findings,
    measures, prepared,
    promise::{self, Covers, Released},
    synthetic, trials,
};

/// Builds the report of a model trained on private records.
pub(crate) fn facts(folder: &Folder, model: &Model) -> Result<Report, quell::Error> {
    let (mut metrics, configuration) = (folder.metrics()?, &model.configuration);
    let bounds = configuration.data.target_bounds();
    metrics.evaluation = metrics.evaluation_in_units(bounds);
    metrics.in_target_units = true;
    let method = model.description()?;
    let protected = if configuration.data.unit == Unit::User { "user" } else { "record" };
    let attack = format!(
        "a membership test for one {protected}, given all releases of this run, including {}",
        method.releases
    );
    let figures = [
        synthetic::pairs(model),
        trials::figure(&metrics),
        measures::accuracy(&metrics),
        measures::error(&metrics),
        measures::calibration(metrics.evaluation.as_ref(), model.classes.as_deref().unwrap_or_default()),
        figures::epsilon(&metrics, &model.paid, configuration.data.unit),
        figures::spectrum(model),
        figures::last_iterate(&method.event, method.neighbors, Delta::new(model.paid.delta)?)?,
        figures::attack(&method.event, method.neighbors, &attack)?,
    ];
    let figures: Vec<_> = figures.into_iter().flatten().collect();
    let (curves, learned) = (model.curves()?, model.learned());
    let findings = learned.as_ref().map(|learned| Findings::new(model, learned));
    let columns = curves.as_ref().map(Columns::new).or_else(|| synthetic::columns(model));
    // The curves are in the document already.
    let small = columns.iter().filter(|_| curves.is_none()).flat_map(|columns| &columns.figures);
    let drawings: Vec<&Figure> = small.chain(figures.iter().map(|(figure, _)| figure)).collect();
    let PaymentRecord { receipt, epsilon, delta } = &model.paid;
    let name = architecture(&configuration.model);
    let title = title(model);
    let document = json!({
        "title": title,
        "origin": folder.origin()?,
        "run": folder.path(),
        "dataset": receipt.dataset,
        "unit": configuration.data.unit,
        "neighbors": method.neighbors,
        "epsilon": Interval(*epsilon),
        "delta": delta,
        "receipt": receipt,
        "statement": model.statement,
        "accuracy": metrics.evaluation.as_ref().and_then(Evaluation::accuracy),
        "metrics": metrics,
        "model": {"name": name, "shape": model.shape, "classes": model.classes, "weights": method.weights},
        "columns": curves,
        "learned": learned,
        "configuration": configuration,
        "figures": drawings,
        "map": findings.as_ref().and_then(|findings| Some(&findings.map.as_ref()?.0)),
    });
    let mut lists = vec![
        ("The guarantee of this run", guarantee(&model.paid, configuration.data.unit, method.neighbors)),
        ("Ledger entry of the charge", ledger_entry(&model.paid)),
        (
            "Results",
            result(&metrics, model.classes.as_deref().unwrap_or_default(), configuration.search.is_some()),
        ),
        ("Training data", data(model, method.records)),
        ("Training settings", settings(model, &method)),
    ];
    lists.extend(synthetic::list(model));
    lists.extend(trials::list(model));
    lists.extend(origin(folder)?);
    let names = model.classes.as_deref().unwrap_or_default();
    let table = metrics.evaluation.as_ref().and_then(|evaluation| measures::table(evaluation, names));
    let scatter = measures::predictions(&metrics, target(model).unwrap_or("number"));
    let evaluation = metrics.evaluation.as_ref();
    let confusion = evaluation
        .zip(model.classes.as_deref())
        .and_then(|(evaluation, names)| confusion(evaluation, names, &mut lists));
    Ok(Report {
        kind: "A model trained with differential privacy.",
        title,
        headlines: headlines(model, &metrics),
        statement: promise::sentences(
            &Released {
                paid: &model.paid,
                event: Some(&method.event),
                unit: configuration.data.unit,
                neighbors: method.neighbors,
                covers: Covers::Everything,
            },
            &model.statement,
        )?,
        lists,
        figures,
        learned: findings,
        columns,
        tables: trials::table(&metrics).into_iter().chain(table).chain(prepared::findings(model)).collect(),
        scatter,
        confusion,
        document,
    })
}

/// The name of the target, if a schema names it.
fn target(model: &Model) -> Option<&str> {
    let label = model.configuration.data.schema.as_ref()?.label.as_ref()?;
    model.predictor.is_supervised().then_some(label.column.as_str())
}

/// The model in words, the dataset, and what is predicted.
fn title(model: &Model) -> String {
    let kind = kind(&model.configuration.model, model.classes.is_some());
    let predicts = match (target(model), &model.classes) {
        (Some(target), _) => format!(", predicts {target}"),
        (None, Some(classes)) if model.predictor.is_supervised() => {
            format!(", predicts one of {} classes", classes.len())
        }
        _ => String::new(),
    };
    format!("{kind} on {}{predicts}", model.paid.receipt.dataset)
}

fn headlines(model: &Model, metrics: &Metrics) -> Vec<[String; 3]> {
    let mut all = cost(&model.paid, "of this run");
    match &metrics.evaluation {
        Some(evaluation @ Evaluation::Classes { count, .. }) => {
            let accuracy = evaluation.accuracy().map_or_else(|| "none".into(), percent);
            let beside = measures::baseline(evaluation).map(|words| format!("; {words}")).unwrap_or_default();
            all.push(["accuracy".into(), accuracy, format!("on {count} public examples{beside}")]);
        }
        Some(evaluation @ Evaluation::Numbers { error, count, .. }) => {
            let beside = measures::baseline(evaluation).map(|words| format!("; {words}")).unwrap_or_default();
            all.push([
                "error".into(),
                measures::brief(*error),
                format!("root mean square on {count} public examples{beside}"),
            ]);
        }
        Some(Evaluation::Ratings { error, count, recall, users }) => {
            let remark = format!("root mean square on {count} public ratings");
            all.push(["error".into(), format_brief(*error), remark]);
            all.extend(recall.map(|recall| {
                [
                    "recall@10".into(),
                    percent(recall),
                    format!("of the held-out items that ten can be, over {users} public users"),
                ]
            }));
        }
        Some(Evaluation::Clusters { inertia, count }) => all.push([
            "inertia".into(),
            format_brief(*inertia),
            format!("mean squared distance of {count} public examples"),
        ]),
        Some(Evaluation::Components { explained, count }) => all.push([
            "explained variance".into(),
            percent(*explained),
            format!("of {count} public examples"),
        ]),
        Some(Evaluation::Pairs { distance, count }) => all.push([
            "distance".into(),
            format_brief(*distance),
            format!("mean total variation of pairs of columns, from {count} public examples"),
        ]),
        None if matches!(model.predictor, Predictor::Synthesizer(_)) => {
            all.extend(synthetic::headline(model));
        }
        None => all.push(match metrics.noisy_correct {
            Some(correct) => [
                "correct predictions".into(),
                format_brief(correct),
                "on private test records, with noise".into(),
            ],
            None => [model.predictor.measure().into(), "not measured".into(), "no public test data".into()],
        }),
    }
    // How long a search takes tells how many trials it had.
    let remark = match &model.configuration.search {
        Some(_) => "in the trial that was released".to_owned(),
        None => format!("in {}", duration(metrics.seconds)),
    };
    all.push(["steps".into(), metrics.steps.to_string(), remark]);
    all
}

fn result(metrics: &Metrics, classes: &[String], is_search: bool) -> Vec<[String; 2]> {
    let mut rows = match &metrics.evaluation {
        Some(evaluation @ Evaluation::Classes { correct, count, .. }) => vec![
            row("accuracy", evaluation.accuracy().map_or_else(|| "none".into(), percent)),
            row("public test data", format!("{correct} of {count} examples predicted correctly")),
        ],
        Some(Evaluation::Numbers { error, count, .. }) => vec![
            row("root mean square error", measures::brief(*error)),
            row("public test data", format!("{count} examples")),
        ],
        Some(Evaluation::Ratings { error, count, recall, users }) => vec![
            row("root mean square error", format_brief(*error)),
            row("recall@10", recall.map_or_else(|| "none: no user has five ratings".into(), percent)),
            row("public test data", format!("{count} ratings; recall of {users} users")),
        ],
        Some(Evaluation::Clusters { inertia, count }) => vec![
            row("mean squared distance to the centres", format_brief(*inertia)),
            row("public test data", format!("{count} examples")),
        ],
        Some(Evaluation::Components { explained, count }) => vec![
            row("explained variance", percent(*explained)),
            row("public test data", format!("{count} examples")),
        ],
        Some(Evaluation::Pairs { distance, count }) => vec![
            row("mean total variation distance between pairs of columns", format_brief(*distance)),
            row("public test data", format!("{count} examples")),
        ],
        None => vec![row(
            "public test data",
            "none, or the run is not finished; an evaluation on private data is a paid release",
        )],
    };
    rows.extend(metrics.evaluation.iter().flat_map(|evaluation| measures::rows(evaluation, classes)));
    if metrics.taken < metrics.steps {
        let lost = "charged, but lost in an interruption or not yet run";
        rows.push(row(
            "steps",
            format!("{} of {} were run; the others were {lost}", metrics.taken, metrics.steps),
        ));
    }
    rows.extend((!is_search).then(|| row("time", duration(metrics.seconds))));
    rows
}

fn data(model: &Model, records: u64) -> Vec<[String; 2]> {
    let data = &model.configuration.data;
    let what = if data.unit == Unit::User { "users" } else { "examples" };
    let mut rows = vec![
        row("dataset", &model.paid.receipt.dataset),
        row("source", source(data)),
        row("public size", format!("{records} {what}")),
    ];
    if let Predictor::Factorization(_) = &model.predictor {
        let items = model.classes.as_ref().map_or(0, Vec::len);
        rows.push(row("public list", format!("{items} items")));
        rows.extend(data.test.as_ref().map(|test| row("public test data", test.display().to_string())));
        return rows;
    }
    rows.push(row("shape of an example", dimensions(&model.shape)));
    let computed = model.configuration.computed_features();
    if !computed.is_raw() {
        rows.push(row("features", features(&computed)));
    }
    match (&model.classes, model.predictor.is_supervised()) {
        (_, false) if matches!(model.predictor, Predictor::Synthesizer(_)) => {}
        (_, false) => rows.push(row("target", "none: the model uses no label")),
        (Some(names), true) => rows.push(row("classes", shortened(names))),
        (None, true) => rows.push(row("target", "a number")),
    }
    if let Some(schema) = &data.schema {
        let columns = schema.columns.len();
        let is_synthetic = matches!(model.predictor, Predictor::Synthesizer(_));
        let columns = columns + usize::from(is_synthetic && schema.label.is_some());
        match schema.label.as_ref().filter(|_| model.predictor.is_supervised()) {
            Some(label) => {
                rows.push(row("label", format!("{}, predicted from {columns} columns", label.column)));
            }
            None => rows.push(row("columns", columns.to_string())),
        }
    }
    if let Some(test) = &data.test {
        rows.push(row("public test data", test.display().to_string()));
    }
    rows
}

fn settings(model: &Model, method: &Description) -> Vec<[String; 2]> {
    let mut rows = vec![
        row("model", architecture(&model.configuration.model)),
        row("weights", method.weights.to_string()),
    ];
    if model.predictor.is_supervised() {
        rows.insert(1, row("layers", layers(&model.configuration.model.layers)));
    }
    rows.extend(method.settings.iter().map(|(name, value)| row(name, describe(value))));
    rows
}
