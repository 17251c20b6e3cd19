//! Answers as JSON: bounds, of which an infinite one is no number there, and errors where there is no answer.

use quell_privacy::{
    Bound, Error,
    accounting::{self, Method},
};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeStruct},
};

/// An interval. Infinity is not JSON: it is written as null, and said in words.
pub(crate) struct Interval(pub(crate) Bound);

impl Serialize for Interval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let unbounded = self.0.upper.is_infinite();
        let mut object = serializer.serialize_struct("Interval", 2 + usize::from(unbounded))?;
        object.serialize_field("lower", &self.0.lower)?;
        object.serialize_field("upper", &self.0.upper)?;
        if unbounded {
            object.serialize_field("unbounded", &true)?;
        }
        object.end()
    }
}

/// What one accountant says, ε or δ.
#[derive(Clone, Copy)]
pub(crate) struct Said {
    /// `epsilon` or `delta`.
    pub(crate) what: &'static str,
    pub(crate) bound: Bound,
    pub(crate) theorem: &'static str,
    /// False for estimates, which must not be claimed.
    pub(crate) claimable: bool,
}

impl From<accounting::Answer> for Said {
    fn from(answer: accounting::Answer) -> Self {
        Self { what: "epsilon", bound: answer.epsilon, theorem: answer.theorem, claimable: answer.claimable }
    }
}

impl From<accounting::DeltaAnswer> for Said {
    fn from(answer: accounting::DeltaAnswer) -> Self {
        Self { what: "delta", bound: answer.delta, theorem: answer.theorem, claimable: answer.claimable }
    }
}

impl Serialize for Said {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry(self.what, &Interval(self.bound))?;
        map.serialize_entry("theorem", self.theorem)?;
        map.serialize_entry("claimable", &self.claimable)?;
        map.end()
    }
}

/// What several accountants say, by name, in the order in which they were asked.
pub(crate) struct Entries<'a>(pub(crate) &'a [(Method, Result<Said, Error>)]);

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (method, answer) in self.0 {
            map.serialize_entry(method.name(), &Extra::from(answer.clone()))?;
        }
        map.end()
    }
}

/// Something else that was asked along with ε: its value, or why there is none.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinity_is_null_and_said() {
        let text = |lower, upper| serde_json::to_string(&Interval(Bound { lower, upper })).unwrap();
        assert_eq!(text(0.5, 1.0), r#"{"lower":0.5,"upper":1.0}"#);
        assert_eq!(text(0.5, f64::INFINITY), r#"{"lower":0.5,"upper":null,"unbounded":true}"#);
        assert_eq!(text(f64::INFINITY, f64::INFINITY), r#"{"lower":null,"upper":null,"unbounded":true}"#);
    }
}
