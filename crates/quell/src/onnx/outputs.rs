//! The outputs of an exported model: the scores of `quell predict --scores`, and the prediction.

use super::{
    graph::{Graph, Tensor},
    message::{Attribute, Element},
};
use crate::{Error, learner::loss::Loss, run::Model};

/// Adds the outputs that follow from the outputs of the network.
pub(super) fn add(graph: &mut Graph, model: &Model, loss: Loss, value: &Tensor) -> Result<(), Error> {
    let single = value.size() == 1;
    match loss {
        Loss::CrossEntropy { .. } => {
            let axis = [("axis", Attribute::Integer(1))];
            let scores = graph.node("Softmax", &[&value.name], &axis, &value.shape);
            classes(graph, model, value, &scores)
        }
        Loss::BinaryCrossEntropy if single => {
            let against = graph.apply("Neg", value, &[]);
            let both = graph.concatenate(&[against, value.clone()]);
            let scores = graph.apply("Sigmoid", &both, &[]);
            classes(graph, model, &both, &scores)
        }
        Loss::Hinge { .. } if single => {
            let against = graph.apply("Neg", value, &[]);
            let both = graph.concatenate(&[against, value.clone()]);
            classes(graph, model, &both, &both)
        }
        Loss::Hinge { .. } => classes(graph, model, value, value),
        Loss::Squared | Loss::Huber { .. } | Loss::Pinball { .. } if single => {
            // Predictions are within the bounds of the target.
            let is_bounded = model.configuration.data.target_bounds().is_some();
            let clamped = is_bounded.then(|| super::layers::clamp(graph, value, 1.0));
            numbers(graph, model, clamped.as_ref().unwrap_or(value));
            Ok(())
        }
        Loss::Poisson if single => {
            let (zero, one, two) = (graph.float(0.0), graph.float(1.0), graph.float(2.0));
            // The expected count is at most the largest one.
            let bounded = graph.node("Min", &[&value.name, &zero], &[], &[1]);
            let share = graph.apply("Exp", &bounded, &[]);
            let doubled = graph.apply("Mul", &share, &[&two]);
            let scaled = graph.apply("Sub", &doubled, &[&one]);
            numbers(graph, model, &scaled);
            Ok(())
        }
        _ => Err(Error::Setting {
            name: "model",
            found: format!("a network with {} outputs", value.size()),
            expected: "one output",
        }),
    }
}

/// The name of the class with the largest output, and the score of each class.
fn classes(graph: &mut Graph, model: &Model, outputs: &Tensor, scores: &Tensor) -> Result<(), Error> {
    let names = model.classes.as_deref().unwrap_or_default();
    let Some(last) = names.last() else {
        return Err(Error::Setting {
            name: "model",
            found: "without names of classes".into(),
            expected: "names of the classes",
        });
    };
    // A score of two classes may say "the second" where there is one class alone.
    let padded: Vec<String> =
        (0..outputs.size()).map(|class| names.get(class).unwrap_or(last).clone()).collect();
    let names = graph.texts(&[padded.len()], &padded);
    let settings = [("axis", Attribute::Integer(1)), ("keepdims", Attribute::Integer(0))];
    let best = graph.node("ArgMax", &[&outputs.name], &settings, &[]);
    let prediction = graph.look_up(&names, &best, &[]);
    graph.output("prediction", Element::Text, &prediction);
    graph.output("scores", Element::Float, scores);
    Ok(())
}

/// The predicted number, in the units of the target where they are known.
fn numbers(graph: &mut Graph, model: &Model, scaled: &Tensor) {
    let schema = model.configuration.data.schema.as_ref();
    let bounds = schema.and_then(|schema| schema.label.as_ref()).and_then(|label| label.bounds);
    let flat = graph.reshape(scaled, &[]);
    let prediction = match bounds {
        None => flat,
        Some([low, high]) => {
            let wide = graph.cast(&flat, Element::Double);
            let (factor, offset) = (graph.double(0.5 * (high - low)), graph.double(0.5 * (high + low)));
            let product = graph.apply("Mul", &wide, &[&factor]);
            let sum = graph.apply("Add", &product, &[&offset]);
            graph.cast(&sum, Element::Float)
        }
    };
    graph.output("prediction", Element::Float, &prediction);
    graph.output("scores", Element::Float, scaled);
}
