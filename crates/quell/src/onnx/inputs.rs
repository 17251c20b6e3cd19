//! The inputs of an exported model: the columns of a table by name, or the numbers of an image or array.

use std::collections::BTreeMap;

use super::{
    graph::{Graph, Tensor},
    message::{Attribute, Element},
    network_shape,
};
use crate::{
    Error,
    data::{Feature, FeatureKind, Scaling, Schema, TRUTHS},
    learner::prepared::PiecewiseLinear,
    run::Model,
};

/// Adds the inputs; returns the numbers that the model reads, and a sentence on the inputs.
pub(super) fn add(graph: &mut Graph, model: &Model) -> Result<(Tensor, String), Error> {
    if let Some(schema) = &model.configuration.data.schema {
        return table(graph, schema);
    }
    let input = graph.input("input", Element::Float, &model.shape);
    let scaled = match &model.configuration.data.scaling {
        Some(scaling) => scale(graph, &input, scaling),
        None => input.clone(),
    };
    let about = match *model.shape.as_slice() {
        [channels, rows, columns] => format!(
            "input holds images with {channels} channels, {rows} rows and {columns} columns, channels first; \
             bytes are divided by 255"
        ),
        _ => format!("input holds {} numbers for each record, as the file has them", input.size()),
    };
    let shape = network_shape(&model.shape);
    let ordered = if scaled.shape.len() == 3 { graph.transpose(&scaled, &[1, 2, 0]) } else { scaled };
    Ok((graph.reshape(&ordered, &shape), about))
}

/// (x - mean) / deviation, with constants for all numbers or for each channel.
fn scale(graph: &mut Graph, input: &Tensor, scaling: &Scaling) -> Tensor {
    let constant = |graph: &mut Graph, numbers: &[f32]| match numbers.len() {
        1 => graph.float(numbers[0]),
        channels => graph.floats(&[channels, 1, 1], numbers),
    };
    let (mean, deviation) = (constant(graph, &scaling.mean), constant(graph, &scaling.deviation));
    let centred = graph.apply("Sub", input, &[&mean]);
    graph.apply("Div", &centred, &[&deviation])
}

/// One input for each column of a table.
fn table(graph: &mut Graph, schema: &Schema) -> Result<(Tensor, String), Error> {
    let mut parts = Vec::new();
    graph.reserve(schema.columns.iter().map(|column| &column.name));
    for column in &schema.columns {
        let other = match &column.kind {
            FeatureKind::Bounds(bounds) => {
                number(graph, column, *bounds, &mut parts);
                continue;
            }
            FeatureKind::Categories { names, aliases } => {
                category(graph, column, &Spellings::of_categories(names, aliases), &mut parts);
                continue;
            }
            FeatureKind::Boolean => {
                category(graph, column, &Spellings::of_truths(), &mut parts);
                continue;
            }
            FeatureKind::Date(_) => "dates",
            FeatureKind::Text(_) => "text",
        };
        return Err(Error::Setting {
            name: "model",
            found: format!("trained on column {:?}, which has {other}", column.name),
            expected: "columns with bounds, categories, or true and false",
        });
    }
    let about = "each column of the table is an input of shape [batch, 1]: numbers as floats in their own \
                 units, NaN where they are missing; categories, true and false as texts without blanks around them";
    Ok((graph.concatenate(&parts), about.into()))
}

/// A number, clamped to its bounds and scaled to [-1, 1]. A missing number is 0.
fn number(graph: &mut Graph, column: &Feature, [low, high]: [f64; 2], parts: &mut Vec<Tensor>) {
    let input = graph.input(&column.name, Element::Float, &[1]);
    // In double precision, as a table is read, so that a number at a threshold falls on the same side.
    let wide = graph.cast(&input, Element::Double);
    let [lower, upper, width, two, one] =
        [low, high, high - low, 2.0, 1.0].map(|number| graph.double(number));
    let clamped = graph.apply("Clip", &wide, &[&lower, &upper]);
    let above = graph.apply("Sub", &clamped, &[&lower]);
    let share = graph.apply("Div", &above, &[&width]);
    let doubled = graph.apply("Mul", &share, &[&two]);
    let scaled = graph.apply("Sub", &doubled, &[&one]);
    let scaled = graph.cast(&scaled, Element::Float);
    let missing = graph.apply("IsNaN", &input, &[]);
    let zero = graph.float(0.0);
    parts.push(graph.node("Where", &[&missing.name, &zero, &scaled.name], &[], &[1]));
    if column.unknown {
        parts.push(graph.cast(&missing, Element::Float));
    }
}

/// The categories of a column, and how cells write them.
struct Spellings {
    categories: usize,
    /// The category of each text.
    texts: BTreeMap<String, usize>,
}

impl Spellings {
    fn of_categories(names: &[String], aliases: &BTreeMap<String, String>) -> Self {
        let place = |name: &str| names.iter().position(|other| other.trim() == name.trim());
        let aliases = aliases.iter().filter_map(|(alias, name)| Some((alias, place(name)?)));
        let all = names.iter().zip(0..).chain(aliases);
        let texts = all.map(|(text, place)| (text.trim().to_owned(), place)).collect();
        Self { categories: names.len(), texts }
    }

    /// The words for false and true, in small and capital letters: ONNX compares texts letter by letter.
    fn of_truths() -> Self {
        let words = TRUTHS.iter().zip(0..).flat_map(|(words, place)| words.map(|word| (word, place)));
        let cases = words.flat_map(|(word, place)| {
            (0..1_u32 << word.len()).map(move |capitals| {
                let letter = |(at, letter): (usize, char)| match capitals >> at & 1 {
                    0 => letter,
                    _ => letter.to_ascii_uppercase(),
                };
                (word.chars().enumerate().map(letter).collect(), place)
            })
        });
        Self { categories: TRUTHS.len(), texts: cases.collect() }
    }
}

/// A category: one number for each, which is 1 where the input is one of its texts.
fn category(graph: &mut Graph, column: &Feature, spellings: &Spellings, parts: &mut Vec<Tensor>) {
    let input = graph.input(&column.name, Element::Text, &[1]);
    let texts: Vec<String> = spellings.texts.keys().cloned().collect();
    let names = graph.texts(&[1, texts.len()], &texts);
    let found = graph.node("Equal", &[&input.name, &names], &[], &[texts.len()]);
    let found = graph.cast(&found, Element::Float);
    // One row for each text, with a 1 at its category.
    let mut meanings = vec![0.0; texts.len() * spellings.categories];
    for (row, place) in spellings.texts.values().enumerate() {
        meanings[row * spellings.categories + place] = 1.0;
    }
    let meanings = graph.floats(&[texts.len(), spellings.categories], &meanings);
    let found = graph.node("MatMul", &[&found.name, &meanings], &[], &[spellings.categories]);
    if column.unknown {
        let axes = graph.integers(&[1], &[1]);
        let keep = [("keepdims", Attribute::Integer(1))];
        let known = graph.node("ReduceMax", &[&found.name, &axes], &keep, &[1]);
        let one = graph.float(1.0);
        let unknown = graph.node("Sub", &[&one, &known.name], &[], &[1]);
        parts.extend([found, unknown]);
    } else {
        parts.push(found);
    }
}

/// One function of each number: straight lines between knots, constant beyond them.
pub(super) fn piecewise_linear(graph: &mut Graph, input: &Tensor, lines: &PiecewiseLinear) -> Tensor {
    let (width, knots) = (lines.width(), lines.knots);
    let inputs = graph.floats(&[width, knots], &lines.inputs);
    let column = graph.reshape(input, &[width, 1]);
    // The number of knots at or before each number.
    let before = graph.node("GreaterOrEqual", &[&column.name, &inputs], &[], &[width, knots]);
    let before = graph.cast(&before, Element::Integer);
    let axes = graph.integers(&[1], &[2]);
    let settings = [("keepdims", Attribute::Integer(0))];
    let after = graph.node("ReduceSum", &[&before.name, &axes], &settings, &[width]);
    let (one, last) = (graph.integers(&[], &[1]), graph.integers(&[], &[knots as i64 - 1]));
    let after = graph.apply("Clip", &after, &[&one, &last]);
    let starts: Vec<i64> = (0..width).map(|feature| (feature * knots) as i64).collect();
    let starts = graph.integers(&[width], &starts);
    let second = graph.apply("Add", &after, &[&starts]);
    let first = graph.apply("Sub", &second, &[&one]);
    let places = graph.floats(&[width * knots], &lines.inputs);
    let values = graph.floats(&[width * knots], &lines.outputs);
    let [low, high] = [&first, &second].map(|index| graph.look_up(&places, index, &[]));
    let [from, to] = [&first, &second].map(|index| graph.look_up(&values, index, &[]));
    let along = graph.apply("Sub", input, &[&low.name]);
    let length = graph.apply("Sub", &high, &[&low.name]);
    let share = graph.apply("Div", &along, &[&length.name]);
    let (zero, whole) = (graph.float(0.0), graph.float(1.0));
    let share = graph.apply("Clip", &share, &[&zero, &whole]);
    let rises = graph.apply("Greater", &high, &[&low.name]);
    let share = graph.node("Where", &[&rises.name, &share.name, &whole], &[], &[width]);
    let rise = graph.apply("Sub", &to, &[&from.name]);
    let added = graph.apply("Mul", &rise, &[&share.name]);
    graph.apply("Add", &from, &[&added.name])
}
