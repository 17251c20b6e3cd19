//! `quell models`: lists the named models, or prints the layers of a network.

use anyhow::Result;
use quell::{
    network::{self, Architecture},
    run::{ModelGroup, NamedModel, model_names, named_models},
};
use serde::Serialize;
use serde_json::json;

use crate::{flags::Format, print};

const EXAMPLES: &str = "\
Examples:
  quell models
  quell models --input 32x32x3 --outputs 100
  quell models cnn-tanh
  quell models transformer --input 16 --outputs 2 --format json";

/// List the named models, or print the layers of a network
///
/// Networks, kmeans and components are for all data, factorization is for ratings, and the others are for tables.
/// The layers are printed as TOML. In a configuration, they can stand in place of the name, edited or not.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Model to describe, with the layers of a network; all models if not given
    name: Option<String>,
    /// Shape of an example
    ///
    /// Rows, columns and channels of an image; length and channels of a sequence; or the number of values.
    #[arg(long, value_name = "28x28x1", default_value = "28x28x1", value_parser = shape)]
    input: Shape,
    /// Number of outputs: one per class
    #[arg(long, value_name = "N", default_value_t = 10)]
    outputs: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The models of a group.
fn of_group(group: ModelGroup) -> impl Iterator<Item = NamedModel> {
    named_models().into_iter().filter(move |model| model.group == group)
}

/// Dimensions of an example, channels last.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape(Vec<usize>);

fn shape(text: &str) -> Result<Shape, String> {
    let sides: Option<Vec<usize>> = text.split(['x', '×']).map(|side| side.trim().parse().ok()).collect();
    let sides = sides.filter(|sides| (1..=3).contains(&sides.len()) && sides.iter().all(|side| *side > 0));
    sides
        .map(Shape)
        .ok_or_else(|| "expected one to three positive whole numbers separated by x, such as 28x28x1".into())
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sides: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&sides.join(" × "))
    }
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    match &flags.name {
        Some(name) => flags.layers(name),
        None => flags.list(),
    }
}

impl Flags {
    fn list(&self) -> Result<()> {
        let weights = |model: &NamedModel| -> Result<usize, quell::Error> {
            let layers = network::layers_of(model.name, &self.input.0, self.outputs)?;
            Ok(network::build(&self.input.0, &layers)?.parameters())
        };
        let models = of_group(ModelGroup::Network).map(|model| (model, weights(&model)));
        if self.format == Format::Json {
            let row = |(model, weights): (NamedModel, Result<usize, quell::Error>)| match weights {
                Ok(weights) => json!({"name": model.name, "purpose": model.purpose, "weights": weights}),
                Err(error) => {
                    json!({"name": model.name, "purpose": model.purpose, "weights": null, "error": error.to_string()})
                }
            };
            let models: Vec<_> = models.map(row).collect();
            let described = |group: ModelGroup| -> Vec<_> {
                of_group(group).map(|model| json!({"name": model.name, "purpose": model.purpose})).collect()
            };
            return print::json(&json!({
                "input": self.input.0,
                "outputs": self.outputs,
                "models": models,
                "table_models": described(ModelGroup::Table),
                "models_without_labels": described(ModelGroup::WithoutLabels),
            }));
        }
        let mut rows = vec![["name", "weights", "description"].map(str::to_owned).to_vec()];
        rows.extend(models.map(|(model, weights)| match weights {
            Ok(weights) => vec![model.name.into(), weights.to_string(), model.purpose.into()],
            Err(_) => vec![model.name.into(), "–".into(), format!("{} Not for this shape.", model.purpose)],
        }));
        let described = |title: &str, group: ModelGroup| {
            let mut rows = vec![vec![title.to_owned(), "description".to_owned()]];
            rows.extend(of_group(group).map(|model| vec![model.name.into(), model.purpose.into()]));
            print::table(&rows, &[])
        };
        let shown = [
            print::table(&rows, &[1]),
            described("model of a table", ModelGroup::Table),
            described("model without labels", ModelGroup::WithoutLabels),
        ];
        print::lines(&shown.join("\n"))
    }

    /// Describes a model whose layers follow from the columns of a table, or that has none.
    fn describe(&self, name: &str) -> Result<()> {
        let Some(NamedModel { purpose, .. }) = named_models().into_iter().find(|model| model.name == name)
        else {
            let models = model_names();
            return Err(quell::Error::from(network::Error::NoModel { name: name.into(), models }).into());
        };
        if self.format == Format::Json {
            return print::json(&json!({"name": name, "purpose": purpose}));
        }
        print::line(&format!("{name}: {purpose}"))
    }

    fn layers(&self, name: &str) -> Result<()> {
        /// The part of a configuration that describes the model.
        #[derive(Serialize)]
        struct Part {
            model: Architecture,
        }
        let is_network = of_group(ModelGroup::Network).any(|model| model.name == name);
        if !is_network {
            return self.describe(name);
        }
        let layers = network::layers_of(name, &self.input.0, self.outputs)?;
        let weights = network::build(&self.input.0, &layers)?.parameters();
        if self.format == Format::Json {
            return print::json(
                &json!({"name": name, "input": self.input.0, "outputs": self.outputs, "weights": weights, "layers": layers}),
            );
        }
        let part = toml::to_string(&Part { model: Architecture { name: None, layers } })?;
        let plural = if self.outputs == 1 { "" } else { "s" };
        print::document(&format!(
            "# {name} for examples of {} and {} output{plural}: {weights} weights.\n{part}",
            self.input, self.outputs
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_or_refused() {
        assert_eq!(shape("28x28x1"), Ok(Shape(vec![28, 28, 1])));
        assert_eq!(shape("100"), Ok(Shape(vec![100])));
        assert_eq!(shape("16×3"), Ok(Shape(vec![16, 3])));
        for text in ["", "x", "0", "28x28x1x1", "28x-1", "1.5", "99999999999999999999"] {
            assert!(shape(text).is_err(), "{text}");
        }
    }
}
