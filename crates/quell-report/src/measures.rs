//! Measures on public test data: rows, a table of classes, and figures.

use quell::{
    learner::{Calibration, ClassMeasure, ClassMeasures, Evaluation, NumberMeasures},
    run::Metrics,
};
use quell_privacy::number::format_brief;

use crate::{
    facts::{percent, row},
    learned::Findings,
    plot::{Axis, Edge, Figure, Point, Scatter, Series},
};

/// The most classes of a table.
const MOST_CLASSES: usize = 100;

/// A number with three decimals, or the word none.
fn three(measure: Option<f64>) -> String {
    measure.map_or_else(|| "none".into(), |number| format!("{number:.3}"))
}

/// A number with five digits.
pub(crate) fn brief(number: f64) -> String {
    if !number.is_finite() {
        return "none".into();
    }
    format_brief(format!("{number:.4e}").parse().unwrap_or(number))
}

/// What a constant prediction reaches, for the remark of a headline.
pub(crate) fn baseline(evaluation: &Evaluation) -> Option<String> {
    match evaluation {
        Evaluation::Classes { measures: Some(measures), .. } => {
            Some(format!("the most frequent class has {}", percent(measures.baseline?)))
        }
        Evaluation::Numbers { measures: Some(measures), .. } => {
            Some(format!("always predicting the mean has {}", brief(measures.baseline?)))
        }
        _ => None,
    }
}

/// The measures with their names.
pub(crate) fn rows(evaluation: &Evaluation, classes: &[String]) -> Vec<[String; 2]> {
    let (mut rows, notes) = match evaluation {
        Evaluation::Classes { measures: Some(measures), .. } => {
            let ClassMeasures { baseline, most_frequent, f1, auc, log_loss, calibration, notes, .. } =
                &**measures;
            let most = most_frequent.and_then(|class| classes.get(class as usize));
            let name = most.map_or_else(|| "the most frequent class".into(), |name| format!("always {name}"));
            let of_second = match classes {
                [_, second] => format!(", of {second}"),
                _ => ", the mean of all classes against the others".into(),
            };
            let rows = vec![
                row(
                    "baseline",
                    baseline.map_or_else(|| "none".into(), |x| format!("{}, {name}", percent(x))),
                ),
                row("AUC", three(*auc) + if auc.is_some() { &of_second } else { "" }),
                row("F1", three(*f1) + if f1.is_some() { ", the mean of all classes" } else { "" }),
                row("log loss", three(*log_loss)),
                row(
                    "calibration error",
                    calibration.as_ref().map_or_else(|| "none".into(), |found| percent(found.error)),
                ),
            ];
            (rows, notes)
        }
        Evaluation::Numbers { measures: Some(measures), .. } => {
            let NumberMeasures { mean_absolute_error, r_squared, baseline, notes } = measures;
            let number = |measure: &Option<f64>| measure.map_or_else(|| "none".into(), brief);
            let rows = vec![
                row("mean absolute error", number(mean_absolute_error)),
                row("R²", three(*r_squared)),
                row("baseline", number(baseline) + ", the error of always predicting the mean"),
            ];
            (rows, notes)
        }
        _ => return Vec::new(),
    };
    rows.extend(notes.iter().map(|note| row("note", note)));
    rows
}

/// Precision, recall, F1 and AUC of each class.
pub(crate) fn table(evaluation: &Evaluation, names: &[String]) -> Option<Findings> {
    let Evaluation::Classes { measures: Some(measures), .. } = evaluation else { return None };
    let head = ["class", "examples", "predicted", "precision", "recall", "F1", "AUC"];
    let cells = |(name, own): (&String, &ClassMeasure)| {
        let counts = [own.examples, own.predicted].map(|count| count.to_string());
        let measures = [own.precision, own.recall, own.f1, own.auc].map(three);
        std::iter::once(name.clone()).chain(counts).chain(measures).collect()
    };
    let mut reading =
        "On public test data. Precision is the share of predictions of a class that are correct, \
                       recall the share of its examples that are found, F1 their harmonic mean, and AUC the \
                       chance that an example of the class has a higher score than another."
            .to_owned();
    if names.len() > MOST_CLASSES {
        reading += " The report as JSON has all classes.";
    }
    Some(Findings {
        heading: "Measures of each class",
        reading,
        head: head.map(str::to_owned).to_vec(),
        rows: names.iter().zip(&measures.classes).take(MOST_CLASSES).map(cells).collect(),
        map: None,
        pictures: Vec::new(),
    })
}

/// Predicted probabilities against how often they come true.
pub(crate) fn calibration(
    evaluation: Option<&Evaluation>,
    names: &[String],
) -> Option<(Figure, &'static str)> {
    let Some(Evaluation::Classes { measures: Some(measures), .. }) = evaluation else { return None };
    let Calibration { error, bins } = measures.calibration.as_ref()?;
    let whose = match names {
        [_, second] => second.as_str(),
        _ => "the predicted class",
    };
    let points = bins.iter().map(|bin| Point::exact(bin.probability, bin.share)).collect();
    let equal = vec![Point::exact(0.0, 0.0), Point::exact(1.0, 1.0)];
    let figure = Figure {
        title: "Calibration of the probabilities".into(),
        subtitle: format!(
            "on public test data, in ten groups; expected calibration error {}",
            percent(*error)
        ),
        x: Axis::linear(format!("predicted probability of {whose}")),
        y: Axis { includes: vec![0.0, 1.0], ..Axis::linear("share that comes true") },
        series: vec![
            Series { name: "this model".into(), claim: Edge::Upper, points },
            Series { name: "probabilities that come true".into(), claim: Edge::Upper, points: equal },
        ],
    };
    Some((figure, "Above the dashed line, the model is too careful; below it, the model is too sure."))
}

/// Accuracy on public data over the steps; none if it was measured less than twice.
pub(crate) fn accuracy(metrics: &Metrics) -> Option<(Figure, &'static str)> {
    let points = |point: &quell::run::Point| Some((point.step, 100.0 * point.accuracy?));
    let baseline = match &metrics.evaluation {
        Some(Evaluation::Classes { measures: Some(measures), .. }) => measures.baseline,
        _ => None,
    };
    let series =
        over_steps(metrics, points, "this model", baseline.map(|x| 100.0 * x), "most frequent class")?;
    let figure = Figure {
        title: "Accuracy over the run".into(),
        subtitle: "on public test data, whose evaluation costs no privacy".into(),
        x: Axis::linear("steps"),
        y: Axis::close("accuracy (%)"),
        series,
    };
    Some((figure, "Accuracy of the model during the run. The vertical axis fits the values."))
}

/// Error on public data over the steps; none if it was measured less than twice.
pub(crate) fn error(metrics: &Metrics) -> Option<(Figure, &'static str)> {
    let points = |point: &quell::run::Point| Some((point.step, point.error?));
    let baseline = match &metrics.evaluation {
        Some(Evaluation::Numbers { measures: Some(measures), .. }) => measures.baseline,
        _ => None,
    };
    let series = over_steps(metrics, points, "this model", baseline, "always the mean")?;
    let figure = Figure {
        title: "Error over the run".into(),
        subtitle: "on public test data, whose evaluation costs no privacy".into(),
        x: Axis::linear("steps"),
        y: Axis::close("root mean square error, in units of the target"),
        series,
    };
    Some((figure, "Error of the model during the run. The vertical axis fits the values."))
}

/// A measure over the steps, and the level of a constant prediction.
fn over_steps(
    metrics: &Metrics,
    measure: impl Fn(&quell::run::Point) -> Option<(u64, f64)>,
    name: &str,
    level: Option<f64>,
    level_name: &str,
) -> Option<Vec<Series>> {
    let found = metrics.points.iter().filter_map(measure);
    let points: Vec<Point> = found.map(|(step, value)| Point::exact(step as f64, value)).collect();
    let (first, last) = (points.first()?.x, points.last()?.x);
    if points.len() < 2 {
        return None;
    }
    let mut series = vec![Series { name: name.into(), claim: Edge::Upper, points }];
    series.extend(level.map(|level| {
        let points = [first, last].map(|step| Point::exact(step, level)).to_vec();
        Series { name: level_name.into(), claim: Edge::Upper, points }
    }));
    Some(series)
}

/// Predicted numbers against actual ones.
pub(crate) fn predictions(metrics: &Metrics, target: &str) -> Option<(Scatter, &'static str)> {
    (metrics.predictions.len() > 1).then(|| {
        let scatter = Scatter {
            title: "Predicted against actual".into(),
            subtitle: format!("{} examples of the public test data", metrics.predictions.len()),
            x: format!("actual {target}"),
            y: format!("predicted {target}"),
            points: metrics.predictions.clone(),
        };
        (scatter, "On the dashed line, prediction and target are equal.")
    })
}
