//! Trees as ONNX operators: the leaves of random trees, and decision trees.

use super::{
    graph::{Graph, Tensor},
    message::{Attribute, Element},
};
use crate::layer::Trees;

/// The numbers, followed by the leaves of random trees.
///
/// Each question is a column of a matrix, and each tree reads its leaf from the answers to its questions.
pub(super) fn leaves(
    graph: &mut Graph,
    input: &Tensor,
    columns: &[usize],
    (trees, seed): (usize, u64),
    thresholds: &[f32],
) -> Tensor {
    let flat = graph.flatten(input);
    let trees = Trees::new(columns, trees, seed);
    let questions = trees.asked();
    let count = questions.len();
    if count == 0 {
        return flat;
    }
    let (mut numbers, mut limits, mut sets) = (Vec::new(), Vec::new(), vec![0.0_f32; flat.size() * count]);
    let mut bits = vec![0.0_f32; count * trees.count()];
    let mut thresholds = thresholds.iter();
    for (place, question) in questions.iter().enumerate() {
        bits[place * trees.count() + question.tree] = question.bit as f32;
        match question.set {
            None => {
                numbers.push(question.feature);
                limits.push(thresholds.next().copied().unwrap_or(f32::MAX));
            }
            Some(set) => {
                // A comparison that is never true leaves the answer to the set.
                numbers.push(question.feature);
                limits.push(f32::MAX);
                for (category, _) in set.iter().enumerate().filter(|(_, is_in)| **is_in) {
                    sets[(question.feature + category) * count + place] = 1.0;
                }
            }
        }
    }
    let half = graph.float(0.5);
    let above = graph.select(&flat, &numbers);
    let limits = graph.floats(&[count], &limits);
    let above = graph.apply("Greater", &above, &[&limits]);
    let indicators = graph.apply("Greater", &flat, &[&half]);
    let indicators = graph.cast(&indicators, Element::Float);
    let sets = graph.floats(&[flat.size(), count], &sets);
    let inside = graph.node("MatMul", &[&indicators.name, &sets], &[], &[count]);
    let inside = graph.apply("Greater", &inside, &[&half]);
    let answers = graph.apply("Or", &above, &[&inside.name]);
    let answers = graph.cast(&answers, Element::Float);
    let bits = graph.floats(&[count, trees.count()], &bits);
    let own = graph.node("MatMul", &[&answers.name, &bits], &[], &[trees.count()]);
    // For each leaf: is it the leaf of its tree?
    let (tree_of, number_of) = trees.leaf_places();
    let own = graph.select(&own, &tree_of);
    let numbers: Vec<f32> = number_of.iter().map(|number| *number as f32).collect();
    let numbers = graph.floats(&[numbers.len()], &numbers);
    let found = graph.apply("Equal", &own, &[&numbers]);
    let found = graph.cast(&found, Element::Float);
    let shares = graph.floats(&[trees.shares.len()], &trees.shares);
    let found = graph.apply("Sub", &found, &[&shares]);
    graph.concatenate(&[flat, found])
}

/// A decision tree whose leaves have the same depth.
pub(super) fn decision_tree(
    graph: &mut Graph,
    input: &Tensor,
    depth: usize,
    outputs: usize,
    weights: &[f32],
) -> Tensor {
    let flat = graph.flatten(input);
    let questions = (1_usize << depth) - 1;
    let (features, rest) = weights.split_at(questions);
    let (thresholds, values) = rest.split_at(questions);
    let values = graph.floats(&[1 << depth, outputs], values);
    // The first node of every example is 0, whatever its numbers are.
    let size = graph.node("Shape", &[&flat.name], &[("end", Attribute::Integer(1))], &[]);
    let one = graph.integers(&[1], &[1]);
    let axis = [("axis", Attribute::Integer(0))];
    let size = graph.node("Concat", &[&size.name, &one], &axis, &[]);
    let zero = graph.integers(&[1], &[0]);
    let mut node = graph.node("Expand", &[&zero, &size.name], &[], &[1]);
    if depth > 0 {
        let features: Vec<i64> =
            features.iter().map(|feature| (*feature as usize).min(flat.size() - 1) as i64).collect();
        let features = graph.integers(&[questions], &features);
        let thresholds = graph.floats(&[questions], thresholds);
        let two = graph.integers(&[1], &[2]);
        for _ in 0..depth {
            let feature = graph.look_up(&features, &node, &[]);
            let threshold = graph.look_up(&thresholds, &node, &[]);
            let axis = [("axis", Attribute::Integer(1))];
            let number = graph.node("GatherElements", &[&flat.name, &feature.name], &axis, &[1]);
            let answer = graph.apply("Greater", &number, &[&threshold.name]);
            let answer = graph.cast(&answer, Element::Integer);
            let doubled = graph.apply("Mul", &node, &[&two]);
            let child = graph.apply("Add", &doubled, &[&one]);
            node = graph.apply("Add", &child, &[&answer.name]);
        }
    }
    let first = graph.integers(&[1], &[questions as i64]);
    let leaf = graph.apply("Sub", &node, &[&first]);
    let found = graph.look_up(&values, &leaf, &[outputs]);
    graph.reshape(&found, &[outputs])
}
