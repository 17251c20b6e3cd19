//! An event with one unknown number, written as "?".

use anyhow::Result;
use quell_privacy::{Error, Event, accounting::Parameter, event::Record};
use serde_json::{Map, Value, json};

use crate::{
    flags::event::{event_text, parse_event},
    refusal::Refusal,
};

/// An event with "?" for one number, in one or more fields of one name.
pub(crate) struct IncompleteEvent {
    event: Value,
    pub(crate) parameter: Parameter,
    /// JSON name of the field.
    pub(crate) field: &'static str,
}

/// Fields that may be unknown.
///
/// Each has a name, whether larger values cost more, whether the value is whole, and a range.
const FIELDS: [(&str, bool, bool, f64, f64, &str); 13] = [
    ("noise_multiplier", false, false, 1e-6, 1e12, "[1e-6, 1e12]"),
    ("deviation", false, false, 1e-3, 1e9, "[1e-3, 1e9]"),
    ("scale", false, false, 1e-3, 1e9, "[1e-3, 1e9]"),
    ("randomized", false, false, 1e-15, 1.0, "[1e-15, 1]"),
    ("records", false, true, 1.0, 9e15, "[1, 9e15]"),
    ("sensitivity", true, true, 1.0, 5e5, "[1, 500000]"),
    ("choices", true, true, 2.0, 4e9, "[2, 4e9]"),
    ("epsilon", true, false, 1e-12, 1e6, "[1e-12, 1e6]"),
    ("delta", true, false, 1e-300, 0.999_999, "[1e-300, 1)"),
    ("rho", true, false, 1e-12, 1e6, "[1e-12, 1e6]"),
    ("rate", true, false, 1e-15, 1.0, "[1e-15, 1]"),
    ("batch", true, true, 1.0, 9e15, "[1, 9e15]"),
    ("count", true, true, 1.0, 9e15, "[1, 9e15]"),
];

impl IncompleteEvent {
    /// Reads the argument of `--event`.
    pub(crate) fn read(argument: &str) -> Result<Self> {
        let text = event_text(argument)?;
        let event: Value = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
        let mut placeholders = Vec::new();
        find(&event, None, &mut placeholders);
        let Some((name, least, largest)) = placeholders.first().cloned() else {
            return Err(Refusal::new(
                "the event has no unknown number, expected \"?\" in place of one number",
                EXAMPLE,
            )
            .into());
        };
        if placeholders.iter().any(|(other, ..)| *other != name) {
            return Err(Refusal::new(
                "several fields of the event are \"?\", expected one unknown number",
                EXAMPLE,
            )
            .into());
        }
        let known = FIELDS.iter().find(|(field, ..)| *field == name);
        let Some(&(field, costs, whole, low, high, range)) = known else {
            return Err(Refusal::new(
                "\"?\" is not the value of a numeric field that can be calibrated",
                EXAMPLE,
            )
            .into());
        };
        let (low, high) = (least.unwrap_or(low), largest.unwrap_or(high));
        let parameter = Parameter { name: field, costs, whole, least: low, largest: high, range };
        let open = Self { event, parameter, field };
        // With any value filled in, all other errors of the event show up here.
        open.parsed(open.start()).map_err(|error| unreadable(&error))?;
        Ok(open)
    }

    /// Start value of the search.
    pub(crate) fn start(&self) -> f64 {
        1.0_f64.clamp(self.parameter.least, self.parameter.largest)
    }

    fn parsed(&self, value: f64) -> Result<Event, serde_json::Error> {
        let number = if self.parameter.whole { json!(value as u64) } else { json!(value) };
        parse_event(&fill(&self.event, &number).to_string())
    }

    /// The event with a value for its unknown number.
    pub(crate) fn with(&self, value: f64) -> Result<Event, Error> {
        self.parsed(value).map_err(|_| Error::Malformed {
            event: self.field.into(),
            because: "expected a value that the event can have",
        })
    }

    /// The event with a value for its unknown number, as a versioned record.
    pub(crate) fn record(&self, value: f64) -> Result<Record, Error> {
        Ok(self.with(value)?.into())
    }
}

const EXAMPLE: &str = r#"an event with an unknown number looks like {"repeated":{"count":100,"event":{"laplace":{"noise_multiplier":"?"}}}}"#;

fn unreadable(error: &serde_json::Error) -> anyhow::Error {
    Refusal::new(format!("the event cannot be read: {error}"), EXAMPLE).into()
}

/// Finds all "?": field name, and the limits set by a neighboring field.
fn find(
    value: &Value,
    field: Option<(&str, &Map<String, Value>)>,
    found: &mut Vec<(String, Option<f64>, Option<f64>)>,
) {
    match value {
        Value::String(text) if text == "?" => {
            let sibling = |name: &str| field.and_then(|(_, fields)| fields.get(name)?.as_f64());
            let name = field.map_or("", |(name, _)| name);
            let least = if name == "records" { sibling("batch") } else { None };
            let largest = if name == "batch" { sibling("records") } else { None };
            found.push((name.to_owned(), least, largest));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| find(value, Some((name.as_str(), fields)), found));
        }
        Value::Array(values) => values.iter().for_each(|value| find(value, None, found)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn fill(value: &Value, number: &Value) -> Value {
    match value {
        Value::String(text) if text == "?" => number.clone(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), fill(value, number))).collect()
        }
        Value::Array(values) => values.iter().map(|value| fill(value, number)).collect(),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_of_an_unknown_number_sets_its_range() {
        let open =
            IncompleteEvent::read(r#"{"repeated":{"count":"?","event":{"pure":{"epsilon":0.1}}}}"#).unwrap();
        assert_eq!((open.field, open.parameter.costs, open.parameter.whole), ("count", true, true));
        assert_eq!(
            open.with(7.0).unwrap(),
            serde_json::from_str(r#"{"repeated":{"count":7,"event":{"pure":{"epsilon":0.1}}}}"#).unwrap()
        );
        let both =
            r#"{"composed":[{"laplace":{"noise_multiplier":"?"}},{"gaussian":{"noise_multiplier":"?"}}]}"#;
        assert!(!IncompleteEvent::read(both).unwrap().parameter.costs);
        let fixed = r#"{"sampled_without_replacement":{"batch":"?","records":50,"event":{"gaussian":{"noise_multiplier":1}}}}"#;
        assert_eq!(IncompleteEvent::read(fixed).unwrap().parameter.largest, 50.0);
    }

    #[test]
    fn events_without_exactly_one_unknown_number_are_refused() {
        for text in [
            r#"{"pure":{"epsilon":0.1}}"#,
            r#"{"repeated":{"count":"?","event":{"pure":{"epsilon":"?"}}}}"#,
            r#"{"renyi":{"curve":[["?",1.0]]}}"#,
            r#"{"pure":{"epsilon":"?"},"more":1}"#,
            r#""?""#,
            "?",
        ] {
            assert!(IncompleteEvent::read(text).is_err(), "{text}");
        }
    }
}
