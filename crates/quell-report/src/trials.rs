//! The search that found a model: its candidates, and the trials that are shown.

use quell::run::{Metrics, Model, TrialRecord};

use crate::{
    facts::row,
    learned::{Findings, MOST_ROWS},
    plot::{Axis, Edge, Figure, Point, Series},
};

/// The most candidates that the list names.
const MOST_CANDIDATES: usize = 30;
/// The largest value of a setting over the smallest, from which on its axis is logarithmic.
const WIDE: f64 = 20.0;

/// What was searched; none for a model of a single training.
pub(crate) fn list(model: &Model) -> Option<(&'static str, Vec<[String; 2]>)> {
    let search = model.configuration.search.as_ref()?;
    let shown =
        search.candidates.iter().take(MOST_CANDIDATES).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = search.candidates.len().saturating_sub(MOST_CANDIDATES);
    let candidates = if more > 0 { format!("{shown}; and {more} more") } else { shown };
    let (trials, charge) = if search.shows_trials {
        (format!("{}, one of each candidate", search.candidates.len()), "all trials together")
    } else {
        (
            format!("a random number, {} expected; all but the best stay hidden", search.expected),
            "the best trial",
        )
    };
    let score =
        if search.private_score { "a noisy count on private test records" } else { "public test records" };
    let rows = vec![
        row("settings of this model", &search.winner),
        row("candidates", candidates),
        row("trials", trials),
        row("score", score),
        row("charged for", charge),
    ];
    Some(("Search of settings", rows))
}

/// The table of all trials, the best first; none if they stay hidden.
pub(crate) fn table(metrics: &Metrics) -> Option<Findings> {
    let trials = from_the_best(metrics);
    let first = trials.first()?;
    let cells = |trial: &&TrialRecord| vec![trial.settings.clone(), trial.describe_value()];
    Some(Findings {
        heading: "Trials",
        reading: "Every candidate was tried once, and the ledger was charged for all trials. The model of this report \
                  is the best of them, so its score is a little too good."
            .into(),
        head: vec!["settings".into(), first.measure.clone()],
        rows: trials.iter().take(MOST_ROWS).map(cells).collect(),
        map: None,
        pictures: Vec::new(),
    })
}

/// The trials, from the best to the worst. Those without a value come last.
fn from_the_best(metrics: &Metrics) -> Vec<&TrialRecord> {
    let mut trials: Vec<&TrialRecord> = metrics.trials.iter().collect();
    trials.sort_by(|a, b| b.goodness().total_cmp(&a.goodness()));
    trials
}

/// The score of every trial; none if fewer than two have one.
pub(crate) fn figure(metrics: &Metrics) -> Option<(Figure, &'static str)> {
    let trials = from_the_best(metrics);
    let measure = &trials.first()?.measure;
    let factor = if measure == "accuracy" { 100.0 } else { 1.0 };
    let scored: Vec<(&TrialRecord, f64)> =
        trials.iter().filter_map(|trial| Some((*trial, factor * trial.value?))).collect();
    let settings: Option<Vec<(&str, f64)>> =
        scored.iter().map(|(trial, _)| number(&trial.settings)).collect();
    let settings = settings.filter(|all| all.iter().all(|(flag, _)| *flag == all[0].0));
    let (x, mut points, reading) = if let Some(settings) = settings {
        let values = || settings.iter().map(|(_, value)| *value);
        let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
        let label = settings.first()?.0;
        let axis =
            if least > 0.0 && most > WIDE * least { Axis::logarithmic(label) } else { Axis::linear(label) };
        let points: Vec<Point> =
            values().zip(&scored).map(|(value, (_, score))| Point::exact(value, *score)).collect();
        (axis, points, "The score of every trial over the setting that was tried.")
    } else {
        let places = (1..).zip(&scored);
        let points = places.map(|(place, (_, score))| Point::exact(f64::from(place), *score)).collect();
        (
            Axis::linear("trial, the best first"),
            points,
            "The scores of all trials, from the best to the worst.",
        )
    };
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    (points.len() > 1).then(|| {
        let unit = if factor == 1.0 { "" } else { " (%)" };
        let figure = Figure {
            title: "Scores of all trials".into(),
            subtitle: "every trial is charged".into(),
            x,
            y: Axis::close(format!("{measure}{unit}")),
            series: vec![Series { name: measure.clone(), claim: Edge::Upper, points }],
        };
        (figure, reading)
    })
}

/// The flag and the number in settings such as `--learning-rate=0.5`; none for all others.
fn number(settings: &str) -> Option<(&str, f64)> {
    let (flag, value) = settings.strip_prefix("--")?.split_once('=')?;
    Some((flag, value.parse().ok().filter(|value: &f64| value.is_finite())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(measure: &str, trials: &[(&str, Option<f64>)]) -> Metrics {
        let record = |(settings, value): &(&str, Option<f64>)| TrialRecord {
            settings: (*settings).into(),
            measure: measure.into(),
            higher_is_better: measure == "accuracy",
            value: *value,
        };
        Metrics { trials: trials.iter().map(record).collect(), ..Metrics::default() }
    }

    #[test]
    fn trials_are_listed_from_the_best_and_drawn_over_the_setting_that_varies() {
        let all = [
            ("--learning-rate=0.01", Some(0.2)),
            ("--learning-rate=4", None),
            ("--learning-rate=1", Some(0.8)),
        ];
        let (figure, _) = figure(&metrics("accuracy", &all)).unwrap();
        let points: Vec<[f64; 2]> =
            figure.series[0].points.iter().map(|point| [point.x, point.lower]).collect();
        assert_eq!((figure.x.label.as_str(), points), ("learning-rate", vec![[0.01, 20.0], [1.0, 80.0]]));
        let rows = table(&metrics("accuracy", &all)).unwrap().rows;
        assert_eq!(
            rows,
            [
                ["--learning-rate=1", "80.0 %"],
                ["--learning-rate=0.01", "20.0 %"],
                ["--learning-rate=4", "none"]
            ]
        );
        // The smallest error is the best.
        let rows = table(&metrics("root mean square error", &all)).unwrap().rows;
        assert_eq!(rows[0][0], "--learning-rate=0.01");
    }

    #[test]
    fn settings_that_are_no_numbers_are_drawn_in_the_order_of_their_scores() {
        let all = [("--model=tree", Some(0.5)), ("--model=forest --steps=2", Some(0.9))];
        let (figure, _) = figure(&metrics("accuracy", &all)).unwrap();
        let points: Vec<[f64; 2]> =
            figure.series[0].points.iter().map(|point| [point.x, point.lower]).collect();
        assert_eq!(points, [[1.0, 90.0], [2.0, 50.0]]);
        assert!(super::figure(&metrics("accuracy", &[("--model=tree", Some(0.5))])).is_none());
        assert!(super::figure(&Metrics::default()).is_none() && table(&Metrics::default()).is_none());
    }
}
