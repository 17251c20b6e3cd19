//! A graph of ONNX operators while it is being built.

use std::collections::HashSet;

use super::message::{Attribute, Element, Message, tensor, texts, value};

/// The operator set: `Equal` compares texts since 19.
pub(super) const OPERATORS: i64 = 19;
/// The version of the file format that belongs to this operator set.
pub(super) const FORMAT: i64 = 9;

/// A tensor of the graph: its name, and the shape of one example.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
}

impl Tensor {
    /// Number of numbers of one example.
    pub(super) fn size(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Nodes, constants, inputs and outputs. Nodes are in the order in which they run.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
    /// Number of names that were given.
    names: usize,
    /// Names of inputs and outputs, which are no names of anything else.
    taken: HashSet<String>,
}

impl Graph {
    fn name(&mut self, of: &str) -> String {
        loop {
            self.names += 1;
            let name = format!("{}_{}", of.to_lowercase(), self.names);
            if !self.taken.contains(&name) {
                return name;
            }
        }
    }

    /// Keeps the names of inputs that follow.
    pub(super) fn reserve<'n>(&mut self, names: impl Iterator<Item = &'n String>) {
        self.taken.extend(names.cloned());
    }

    /// Declares an input.
    pub(super) fn input(&mut self, name: &str, element: Element, shape: &[usize]) -> Tensor {
        self.taken.insert(name.into());
        self.inputs.push(value(name, element, shape));
        Tensor { name: name.into(), shape: shape.to_vec() }
    }

    /// Declares an output under its own name, followed by `_output` if a column has that name.
    pub(super) fn output(&mut self, name: &str, element: Element, tensor: &Tensor) {
        let mut name = name.to_owned();
        while self.taken.contains(&name) {
            name.push_str("_output");
        }
        let node = Message::default().text(1, &tensor.name).text(2, &name).text(4, "Identity");
        self.nodes.push(node);
        self.outputs.push(value(&name, element, &tensor.shape));
        self.taken.insert(name);
    }

    /// Adds a constant of floats.
    pub(super) fn floats(&mut self, shape: &[usize], numbers: &[f32]) -> String {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let name = self.name("weight");
        self.constants.push(tensor(&name, shape, Element::Float, &bytes));
        name
    }

    /// Adds a single float.
    pub(super) fn float(&mut self, number: f32) -> String {
        self.floats(&[], &[number])
    }

    /// Adds a single double.
    pub(super) fn double(&mut self, number: f64) -> String {
        let name = self.name("constant");
        self.constants.push(tensor(&name, &[], Element::Double, &number.to_le_bytes()));
        name
    }

    /// Adds a constant of integers.
    pub(super) fn integers(&mut self, shape: &[usize], numbers: &[i64]) -> String {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let name = self.name("constant");
        self.constants.push(tensor(&name, shape, Element::Integer, &bytes));
        name
    }

    /// Adds a constant of texts.
    pub(super) fn texts(&mut self, shape: &[usize], list: &[String]) -> String {
        let name = self.name("names");
        self.constants.push(texts(&name, shape, list));
        name
    }

    /// Adds a node with one output.
    pub(super) fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        settings: &[(&str, Attribute)],
        shape: &[usize],
    ) -> Tensor {
        let name = self.name(operator);
        let node = inputs.iter().fold(Message::default(), |node, input| node.text(1, input));
        let node = node.text(2, &name).text(3, &name).text(4, operator);
        let node =
            settings.iter().fold(node, |node, (name, setting)| node.message(5, &setting.message(name)));
        self.nodes.push(node);
        Tensor { name, shape: shape.to_vec() }
    }

    /// Adds a node without settings whose output has the shape of its first input.
    pub(super) fn apply(&mut self, operator: &str, input: &Tensor, others: &[&str]) -> Tensor {
        let inputs: Vec<&str> = std::iter::once(input.name.as_str()).chain(others.iter().copied()).collect();
        self.node(operator, &inputs, &[], &input.shape)
    }

    /// Gives each example another shape.
    pub(super) fn reshape(&mut self, input: &Tensor, shape: &[usize]) -> Tensor {
        if input.shape == shape {
            return input.clone();
        }
        // Zero keeps the length of the batch.
        let sides: Vec<i64> = std::iter::once(0).chain(shape.iter().map(|side| *side as i64)).collect();
        let target = self.integers(&[sides.len()], &sides);
        self.node("Reshape", &[&input.name, &target], &[], shape)
    }

    /// Makes each example a list of numbers.
    pub(super) fn flatten(&mut self, input: &Tensor) -> Tensor {
        self.reshape(input, &[input.size()])
    }

    /// Reorders the axes of each example. Axes are counted from 0, without the batch.
    pub(super) fn transpose(&mut self, input: &Tensor, axes: &[usize]) -> Tensor {
        let order: Vec<i64> = std::iter::once(0).chain(axes.iter().map(|axis| *axis as i64 + 1)).collect();
        let shape: Vec<usize> = axes.iter().map(|axis| input.shape[*axis]).collect();
        self.node("Transpose", &[&input.name], &[("perm", Attribute::Integers(order))], &shape)
    }

    /// Casts to another type.
    pub(super) fn cast(&mut self, input: &Tensor, element: Element) -> Tensor {
        let setting = [("to", Attribute::Integer(element.code()))];
        self.node("Cast", &[&input.name], &setting, &input.shape)
    }

    /// Joins tensors along the last axis.
    pub(super) fn concatenate(&mut self, parts: &[Tensor]) -> Tensor {
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        let width = parts.iter().map(Tensor::size).sum();
        self.node("Concat", &names, &[("axis", Attribute::Integer(1))], &[width])
    }

    /// Selects entries of a list of numbers.
    pub(super) fn select(&mut self, input: &Tensor, indices: &[usize]) -> Tensor {
        let indices: Vec<i64> = indices.iter().map(|index| *index as i64).collect();
        let list = self.integers(&[indices.len()], &indices);
        let axis = [("axis", Attribute::Integer(1))];
        self.node("Gather", &[&input.name, &list], &axis, &[indices.len()])
    }

    /// Looks up entries of a constant by the indices of each example.
    pub(super) fn look_up(&mut self, constant: &str, indices: &Tensor, entry: &[usize]) -> Tensor {
        let shape = [indices.shape.as_slice(), entry].concat();
        self.node("Gather", &[constant, &indices.name], &[("axis", Attribute::Integer(0))], &shape)
    }

    /// The mean over some axes, which stay with length 1. Axes are counted from 0, without the batch.
    pub(super) fn mean(&mut self, input: &Tensor, axes: &[usize]) -> Tensor {
        let list: Vec<i64> = axes.iter().map(|axis| *axis as i64 + 1).collect();
        let list = self.integers(&[list.len()], &list);
        let mut shape = input.shape.clone();
        for axis in axes {
            shape[*axis] = 1;
        }
        self.node("ReduceMean", &[&input.name, &list], &[("keepdims", Attribute::Integer(1))], &shape)
    }

    /// Writes the whole file.
    pub(super) fn finish(self, name: &str, about: &str, metadata: &[(&str, String)]) -> Vec<u8> {
        let all = |message: Message, field: u64, parts: &[Message]| {
            parts.iter().fold(message, |message, part| message.message(field, part))
        };
        let graph = all(Message::default(), 1, &self.nodes).text(2, name);
        let graph = all(graph, 5, &self.constants);
        let graph = all(all(graph, 11, &self.inputs), 12, &self.outputs);
        let operators = Message::default().text(1, "").number(2, OPERATORS);
        let model = Message::default()
            .number(1, FORMAT)
            .text(2, "quell")
            .text(3, env!("CARGO_PKG_VERSION"))
            .text(6, about)
            .message(7, &graph)
            .message(8, &operators);
        let entry = |key: &str, value: &str| Message::default().text(1, key).text(2, value);
        let model = metadata.iter().fold(model, |model, (key, value)| model.message(14, &entry(key, value)));
        model.bytes()
    }
}
