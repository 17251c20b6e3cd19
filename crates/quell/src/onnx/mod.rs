//! Models as ONNX files, which other programs run without Quell.
//!
//! The file is self-contained. Its inputs are what a user has: the columns of a table by name, in their own
//! units, or the numbers of an image or array. Its outputs are named `prediction` and `scores`, or
//! `prediction_output` and `scores_output` where a column has that name. Names, classes, bounds and the privacy
//! guarantee are in the metadata. An export reads the released model alone, so it costs no ε.

mod graph;
mod inputs;
mod layers;
mod message;
mod outputs;
mod scattering;
mod trees;

use serde_json::json;

use crate::{
    Error,
    features::{Features, Scattering},
    learner::{NetworkModel, prepared::Transform},
    network::channels_last,
    run::Model,
};
use graph::{Graph, Tensor};

/// Writes a model as an ONNX file.
///
/// # Errors
/// A model that is no network has no ONNX form here, and neither have oriented gradients, dates and texts.
pub(crate) fn write(model: &Model) -> Result<Vec<u8>, Error> {
    let refused = |found: String, expected| Error::Setting { name: "model", found, expected };
    let Some(network) = model.predictor.network() else {
        let name = model.configuration.model.name.clone().unwrap_or_else(|| "no network".into());
        return Err(refused(name, "a network, a linear model or a tree, which have an ONNX form"));
    };
    let mut graph = Graph::default();
    let (input, about) = inputs::add(&mut graph, model)?;
    let features = model.configuration.computed_features();
    let value = match &features {
        Features::Raw {} => input,
        Features::Network { .. } => public_network(&mut graph, model, input)?,
        Features::Hog { .. } => {
            let expected = "a model on raw pictures, a scattering transform or a public network";
            return Err(refused("trained on oriented gradients".into(), expected));
        }
        &Features::Scattering { scales, angles, order, groups } => {
            let &[channels, rows, columns] = model.shape.as_slice() else {
                return Err(refused("trained on features of other records".into(), "a model of pictures"));
            };
            let transform = Scattering::new([channels, rows, columns], scales, angles, order);
            let picture = graph.reshape(&input, &[rows, columns, channels]);
            let picture = graph.transpose(&picture, &[2, 0, 1]);
            let value = scattering::add(&mut graph, &transform, groups, &picture);
            graph.transpose(&value, &[1, 2, 0])
        }
    };
    let value = prepare(&mut graph, network, value);
    let expected = network.network.input();
    if value.size() != expected.iter().product::<usize>() {
        let found = format!("a network for {} numbers", expected.iter().product::<usize>());
        return Err(refused(found, "a network for as many numbers as the schema describes"));
    }
    let value = graph.reshape(&value, expected);
    let (value, _) = layers::chain(&mut graph, &model.configuration.model.layers, value, &network.weights)?;
    outputs::add(&mut graph, model, network.loss, &value)?;
    let name = model.configuration.model.name.as_deref().unwrap_or("network");
    Ok(graph.finish(name, &about, &metadata(model, &about)?))
}

/// The layers of a public network, which compute the features.
fn public_network(graph: &mut Graph, model: &Model, input: Tensor) -> Result<Tensor, Error> {
    let (layers, weights) = model.configuration.computed_features().public_layers()?;
    layers::chain(graph, &layers, input, &weights).map(|(value, _)| value)
}

/// The transform of a model that was trained on prepared records.
fn prepare(graph: &mut Graph, network: &NetworkModel, input: Tensor) -> Tensor {
    match &network.preparation {
        None => input,
        Some(Transform::Components(pca)) => {
            let (width, count) = (pca.mean.len(), pca.variances.len());
            let flat = graph.flatten(&input);
            let mean = graph.floats(&[width], &pca.mean);
            let centred = graph.apply("Sub", &flat, &[&mean]);
            let directions = graph.floats(&[count, width], &pca.components);
            let transposed = [("transB", message::Attribute::Integer(1))];
            graph.node("Gemm", &[&centred.name, &directions], &transposed, &[count])
        }
        Some(Transform::PiecewiseLinear(lines)) => {
            let shape = input.shape.clone();
            let flat = graph.flatten(&input);
            let result = inputs::piecewise_linear(graph, &flat, lines);
            graph.reshape(&result, &shape)
        }
    }
}

/// What a program or a person must know about the file.
fn metadata(model: &Model, about: &str) -> Result<Vec<(&'static str, String)>, Error> {
    let text = |value: serde_json::Value| value.to_string();
    let schema = model.configuration.data.schema.as_ref();
    let label = schema.and_then(|schema| schema.label.as_ref());
    let paid =
        serde_json::to_value(&model.paid).map_err(|_| Error::saved("model", "damaged", "a payment"))?;
    let mut entries = vec![
        ("quell.input", about.to_owned()),
        ("quell.classes", text(json!(model.classes))),
        ("quell.paid", text(paid)),
        ("quell.statement", model.statement.clone()),
    ];
    if let Some(schema) = schema {
        entries.push(("quell.columns", text(json!(schema.columns))));
    }
    if let Some(label) = label {
        entries.push(("quell.target", text(json!(label))));
    }
    Ok(entries)
}

impl Model {
    /// The model as an ONNX file. It costs no ε, because it is made from the released model.
    ///
    /// # Errors
    /// Models that are no networks, and features that ONNX operators cannot express, are refused.
    pub fn to_onnx(&self) -> Result<Vec<u8>, Error> {
        write(self)
    }
}

/// The shape in which a network reads examples of a shape with channels first.
fn network_shape(shape: &[usize]) -> Vec<usize> {
    channels_last(shape)
}
