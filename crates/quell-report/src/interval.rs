//! Intervals as JSON.

use quell_privacy::Bound;
use serde::{Serialize, Serializer, ser::SerializeStruct};

/// An interval. JSON has no infinity: an infinite end is null, and `unbounded` is true.
pub struct Interval(pub Bound);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinity_is_null_and_marked_as_unbounded() {
        let text = |lower, upper| serde_json::to_string(&Interval(Bound { lower, upper })).unwrap();
        assert_eq!(text(0.5, 1.0), r#"{"lower":0.5,"upper":1.0}"#);
        assert_eq!(text(0.5, f64::INFINITY), r#"{"lower":0.5,"upper":null,"unbounded":true}"#);
        assert_eq!(text(f64::INFINITY, f64::INFINITY), r#"{"lower":null,"upper":null,"unbounded":true}"#);
    }
}
