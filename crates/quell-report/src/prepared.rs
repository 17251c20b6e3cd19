//! What a preparation found about all records before training: released, so public.

use quell::{
    data::{Feature, Schema, unscaled},
    learner::prepared::{PiecewiseLinear, Preparation, Transform},
    run::Model,
};

use crate::{
    learned::{Findings, MOST_ROWS},
    measures::brief,
    pictures,
};

/// The most features that are named for a direction.
const MOST_FEATURES: usize = 6;
/// Shares of the records below the quantiles that are shown.
const SHARES: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];

/// What the preparation of a model found; `None` without one.
pub(crate) fn findings(model: &Model) -> Option<Findings> {
    let transform = model.predictor.network()?.preparation.as_ref()?;
    let preparation = model.configuration.training.preparation?;
    let schema =
        model.configuration.data.schema.as_ref().filter(|_| model.configuration.computed_features().is_raw());
    match transform {
        Transform::Components(pca) => {
            let names = schema.map(Schema::features).filter(|names| names.len() == pca.mean.len());
            let mut findings = Findings {
                heading: "What the preparation found",
                reading:
                    "Directions of much variance, on which every record was projected before training. A row \
                          shows the features that a direction weighs most. The ledger was charged for them \
                          together with the training."
                        .into(),
                head: ["direction", "largest weights"].map(str::to_owned).to_vec(),
                rows: Vec::new(),
                map: None,
                pictures: pictures::of_directions(model, pca),
            };
            let name = |feature: usize| {
                names
                    .as_ref()
                    .map_or_else(|| format!("feature {}", feature + 1), |names| names[feature].clone())
            };
            for (number, weights) in
                pca.components.chunks_exact(pca.mean.len().max(1)).take(MOST_ROWS).enumerate()
            {
                let mut order: Vec<usize> = (0..weights.len()).collect();
                order.sort_by(|a, b| weights[*b].abs().total_cmp(&weights[*a].abs()));
                let largest = order.iter().take(MOST_FEATURES);
                let words: Vec<String> =
                    largest.map(|feature| format!("{:+.2} {}", weights[*feature], name(*feature))).collect();
                findings.rows.push(vec![(number + 1).to_string(), words.join(", ")]);
            }
            Some(findings)
        }
        Transform::PiecewiseLinear(lines) => columns(lines, &preparation, schema?),
    }
}

/// One row for each column of numbers.
fn columns(lines: &PiecewiseLinear, preparation: &Preparation, schema: &Schema) -> Option<Findings> {
    let names = schema.features();
    if names.len() != lines.width() {
        return None;
    }
    let is_standard = matches!(preparation, Preparation::Standardize { .. });
    let mut rows = Vec::new();
    for (feature, name) in names.iter().enumerate() {
        // The features of categories have names of their own.
        let column = schema.columns.iter().find(|column| &column.name == name);
        let Some([low, high]) = column.and_then(Feature::bounds) else { continue };
        let unscaled = |x: f64| unscaled(x, [low, high]);
        let points = |values: &[f32]| -> Vec<f64> {
            values[feature * lines.knots..][..lines.knots].iter().map(|x| f64::from(*x)).collect()
        };
        let (inputs, outputs) = (points(&lines.inputs), points(&lines.outputs));
        let cells: Vec<f64> = if is_standard {
            let last = lines.knots - 1;
            let spread = (inputs[last] - inputs[0]) / (outputs[last] - outputs[0]);
            let mean = inputs[0] - outputs[0] * spread;
            vec![unscaled(mean), 0.5 * spread * (high - low)]
        } else {
            SHARES.iter().map(|share| unscaled(place(&inputs, &outputs, 2.0 * share - 1.0))).collect()
        };
        let cells = cells.into_iter().map(|number| rounded(number, high - low));
        rows.push(std::iter::once(name.clone()).chain(cells).collect());
    }
    rows.truncate(MOST_ROWS);
    let titles: Vec<String> = if is_standard {
        ["column", "mean", "spread"].map(str::to_owned).to_vec()
    } else {
        let share = |share: &f64| format!("{:.0} % are below", 100.0 * share);
        std::iter::once("column".to_owned()).chain(SHARES.iter().map(share)).collect()
    };
    let what = if is_standard { "The mean and the spread" } else { "Quantiles" };
    let reading = format!(
        "{what} of each column of numbers, in its units, by which every record was scaled before training. They \
         are released with noise, and the ledger was charged for them together with the training."
    );
    (!rows.is_empty()).then(|| Findings {
        heading: "What the preparation found",
        reading,
        head: titles,
        rows,
        map: None,
        pictures: Vec::new(),
    })
}

/// Where the lines reach a value.
fn place(inputs: &[f64], outputs: &[f64], value: f64) -> f64 {
    let after = outputs.partition_point(|output| *output < value).clamp(1, outputs.len() - 1);
    let ([low, high], [from, to]) =
        ([inputs[after - 1], inputs[after]], [outputs[after - 1], outputs[after]]);
    if to > from { low + ((value - from) / (to - from)).clamp(0.0, 1.0) * (high - low) } else { low }
}

/// A number to a thousandth of a range.
fn rounded(number: f64, range: f64) -> String {
    let decimals = (3.0 - range.abs().max(1e-300).log10().floor()).clamp(0.0, 12.0) as usize;
    format!("{number:.decimals$}").parse().map_or_else(|_| brief(number), |short: f64| format!("{short}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = "[label]\ncolumn = 'y'\nclasses = ['a', 'b']\n[[column]]\nname = 'sex'\n\
                          categories = ['f', 'm']\n[[column]]\nname = 'age'\nbounds = [0, 100]\n";

    #[test]
    fn means_and_quantiles_are_in_the_units_of_their_columns() {
        let schema = Schema::parse(SCHEMA).unwrap();
        // The mean is at -0.2 on the scale of training, and the spread is 0.25.
        let inputs = vec![-1.0, 1.0, -1.0, 1.0, -1.0, 1.0];
        let outputs = vec![-1.0, 1.0, -1.0, 1.0, -3.2, 4.8];
        let lines = PiecewiseLinear { knots: 2, inputs, outputs };
        let found = columns(&lines, &Preparation::Standardize { noise_multiplier: None }, &schema).unwrap();
        assert_eq!(found.rows, [["age", "40", "12.5"].map(str::to_owned).to_vec()]);
        // Half of the records are below 20 years, and the others are spread evenly up to 100.
        let inputs = vec![-1.0, 0.0, 1.0, -1.0, 0.0, 1.0, -1.0, -0.6, 1.0];
        let outputs = vec![-1.0, 0.0, 1.0, -1.0, 0.0, 1.0, -1.0, 0.0, 1.0];
        let lines = PiecewiseLinear { knots: 3, inputs, outputs };
        let found = columns(&lines, &Preparation::Quantiles { noise_multiplier: None }, &schema).unwrap();
        assert_eq!(found.rows, [["age", "4", "10", "20", "60", "84"].map(str::to_owned).to_vec()]);
        assert_eq!(found.head.len(), 6);
    }
}
