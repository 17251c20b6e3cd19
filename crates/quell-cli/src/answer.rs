//! Answers of accountants as JSON: intervals, or errors if there is no answer.

use quell_privacy::{
    Bound, Error,
    accounting::{self, Method},
};
pub(crate) use quell_report::Interval;
use serde::{Serialize, Serializer, ser::SerializeMap};

/// The ε or δ computed by one accountant.
#[derive(Clone, Copy)]
pub(crate) struct MethodAnswer {
    /// `epsilon` or `delta`.
    pub(crate) what: &'static str,
    pub(crate) bound: Bound,
    pub(crate) theorem: &'static str,
    /// False for estimates, which must not be claimed.
    pub(crate) claimable: bool,
}

impl From<accounting::Answer> for MethodAnswer {
    fn from(answer: accounting::Answer) -> Self {
        Self { what: "epsilon", bound: answer.epsilon, theorem: answer.theorem, claimable: answer.claimable }
    }
}

impl From<accounting::DeltaAnswer> for MethodAnswer {
    fn from(answer: accounting::DeltaAnswer) -> Self {
        Self { what: "delta", bound: answer.delta, theorem: answer.theorem, claimable: answer.claimable }
    }
}

impl Serialize for MethodAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry(self.what, &Interval(self.bound))?;
        map.serialize_entry("theorem", self.theorem)?;
        map.serialize_entry("claimable", &self.claimable)?;
        map.end()
    }
}

/// Answers of several accountants by name, in the order of the request.
pub(crate) struct Entries<'a>(pub(crate) &'a [(Method, Result<MethodAnswer, Error>)]);

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (method, answer) in self.0 {
            map.serialize_entry(method.name(), &Extra::from(answer.clone()))?;
        }
        map.end()
    }
}

/// An additional result: its value, or the reason why there is none.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Extra<T> {
    Value(T),
    Refused { error: String },
}

impl<T> From<Result<T, Error>> for Extra<T> {
    fn from(result: Result<T, Error>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            Err(error) => Self::Refused { error: error.to_string() },
        }
    }
}
