//! The prediction for one example.

/// The prediction for one example.
#[derive(Clone, Debug, PartialEq)]
pub enum Prediction {
    /// The name of a class.
    Class(String),
    /// A number, in the units of the target.
    Number(f64),
    /// The number of a cluster, from 1.
    Cluster(u32),
    /// The coordinates along the components.
    Coordinates(Vec<f32>),
}

impl std::fmt::Display for Prediction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Class(name) => f.write_str(name),
            Self::Number(number) => number.fmt(f),
            Self::Cluster(number) => number.fmt(f),
            Self::Coordinates(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                f.write_str(&numbers.join(" "))
            }
        }
    }
}
