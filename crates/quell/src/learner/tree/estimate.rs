//! What the leaves of a tree predict, from released values alone.

use super::{Plan, growth::Growth};

/// Variance of the shares of a class around those of the parent node, as prior knowledge.
const PRIOR: f64 = 0.05;

/// The smallest share of a class that is predicted.
const LEAST_SHARE: f64 = 1e-4;

/// The weights of the layer of the model.
pub(super) fn weights(plan: &Plan, growth: &Growth) -> Vec<f32> {
    let questions = (1_usize << plan.depth) - 1;
    let layer = Filling {
        plan,
        growth,
        predictions: predictions(plan, growth),
        features: vec![0.0; questions],
        thresholds: vec![f32::MAX; questions],
        values: Vec::new(),
    };
    layer.fill()
}

/// Shares of the classes, or the mean, for each node.
///
/// Values of a leaf that are mostly noise are drawn towards those of its parent, those towards the next
/// parent, and those of the root towards equal classes or the middle of the bounds.
fn predictions(plan: &Plan, growth: &Growth) -> Vec<Vec<f64>> {
    let (leaves, noise) = growth.leaf_values();
    let (count, mut leaves) = (growth.nodes.len(), leaves.into_iter());
    // The values of each node, and the number of leaves below it. The noise of each leaf is added.
    let mut values: Vec<(Vec<f64>, f64)> = growth
        .nodes
        .iter()
        .map(|node| match node.split {
            None => (leaves.next().unwrap_or_default(), 1.0),
            Some(_) => (Vec::new(), 0.0),
        })
        .collect();
    // Children come after their parents.
    for node in (0..count).rev() {
        if let Some((_, children)) = growth.nodes[node].split {
            let (no, yes) = (&values[children], &values[children + 1]);
            let sums = no.0.iter().zip(&yes.0).map(|(no, yes)| no + yes).collect();
            values[node] = (sums, no.1 + yes.1);
        }
    }
    let root = match plan.classes {
        Some(classes) => vec![1.0 / classes.max(1) as f64; classes.max(1)],
        None => vec![0.0],
    };
    let mut predictions = vec![root; count];
    for node in 0..count {
        let (values, noises) = &values[node];
        let records = if plan.classes.is_some() { values.iter().sum::<f64>() } else { values[0] };
        let records = records.max(1.0);
        let own: Vec<f64> = match plan.classes {
            Some(_) => values.iter().map(|value| value / records).collect(),
            None => vec![(values[1] / records).clamp(-1.0, 1.0)],
        };
        let weight = 1.0 / (1.0 + noises * noise * noise / (PRIOR * records * records));
        let mut drawn: Vec<f64> =
            predictions[node].iter().zip(own).map(|(parent, own)| parent + weight * (own - parent)).collect();
        if plan.classes.is_some() {
            for share in &mut drawn {
                *share = share.max(0.0);
            }
            let sum: f64 = drawn.iter().sum();
            for share in &mut drawn {
                *share /= sum;
            }
            // Shares that are no numbers say nothing.
            if !sum.is_finite() || sum <= 0.0 {
                drawn.clone_from(&predictions[node]);
            }
        }
        if let Some((_, children)) = growth.nodes[node].split {
            predictions[children].clone_from(&drawn);
            predictions[children + 1].clone_from(&drawn);
        }
        predictions[node] = drawn;
    }
    predictions
}

/// The weights of a tree whose leaves all have the same depth.
struct Filling<'a> {
    plan: &'a Plan,
    growth: &'a Growth,
    predictions: Vec<Vec<f64>>,
    features: Vec<f32>,
    thresholds: Vec<f32>,
    values: Vec<f32>,
}

impl Filling<'_> {
    fn fill(mut self) -> Vec<f32> {
        // Level by level. A leaf above the last level is both of its children: no number is above its threshold.
        let mut level = vec![0];
        for _ in 0..self.plan.depth {
            let first = level.len() - 1;
            let mut next = Vec::with_capacity(2 * level.len());
            for (place, node) in level.into_iter().enumerate() {
                next.extend(match self.growth.nodes[node].split {
                    Some((question, children)) => {
                        self.features[first + place] = question.feature as f32;
                        self.thresholds[first + place] = question.threshold;
                        [children, children + 1]
                    }
                    None => [node, node],
                });
            }
            level = next;
        }
        for node in level {
            self.values.extend(outputs(self.plan.classes, &self.predictions[node]));
        }
        [self.features, self.thresholds, self.values].concat()
    }
}

/// The outputs of the model: scores of classes, or a number.
fn outputs(classes: Option<usize>, prediction: &[f64]) -> Vec<f32> {
    let score = |share: f64| share.max(LEAST_SHARE).ln();
    match (classes, prediction) {
        (None, _) => prediction.iter().map(|number| *number as f32).collect(),
        (Some(classes), _) if classes > 2 => prediction.iter().map(|share| score(*share) as f32).collect(),
        (_, [no, yes]) => vec![(score(*yes) - score(*no)) as f32],
        // There is only the first class.
        _ => vec![LEAST_SHARE.ln() as f32],
    }
}
