//! What a model learned, in words and numbers that people can read.
//!
//! Everything here follows from releases that were paid for and from public settings, so it costs nothing.

use quell_privacy::{ledger::Unit, number::format_brief};
use serde::Serialize;

use super::Model;
use crate::data::Schema;
use crate::learner::{
    Predictor,
    factorization::{Popular, PopularItem},
    tree::{self, Rule},
    unsupervised::{Centre, Centres, Coordinate, Direction, Loadings, Mean},
};

/// What a model learned.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Learned {
    /// Centres of clusters.
    Clusters(Centres),
    /// Directions of large variance.
    Components(Loadings),
    /// Popular items.
    Items(Popular),
    /// The rules of a decision tree.
    Rules(Vec<Rule>),
}

/// The most lines that are printed after a run.
const MOST_LINES: usize = 12;
/// The most columns or features in one line.
const MOST_COLUMNS: usize = 5;
/// The most items in one line.
const MOST_ITEMS: usize = 10;

impl Model {
    /// What the model learned; `None` for models whose weights say little to people.
    #[must_use]
    pub fn learned(&self) -> Option<Learned> {
        let schema = self.configuration.data.schema.as_ref().map(Schema::plain);
        let schema = schema.as_ref().filter(|_| self.configuration.computed_features().is_raw());
        match &self.predictor {
            Predictor::Clusters(clusters) => Some(Learned::Clusters(Centres::new(clusters, schema))),
            Predictor::Components(components) => Some(Learned::Components(Loadings::new(components, schema))),
            Predictor::Factorization(model) => {
                Some(Learned::Items(Popular::new(model, self.classes.as_deref().unwrap_or_default())))
            }
            Predictor::Network(network) => {
                let layers = &self.configuration.model.layers;
                tree::rules(network, layers, schema, self.classes.as_deref()).map(Learned::Rules)
            }
            Predictor::Synthesizer(_) => None,
        }
    }

    /// What the model learned, in a few lines for a terminal.
    #[must_use]
    pub fn summary(&self) -> Vec<String> {
        let people = if self.configuration.data.unit == Unit::User { "users" } else { "records" };
        let (mut lines, count): (Vec<String>, usize) = match self.learned() {
            Some(Learned::Clusters(centres)) => {
                let schema = self.configuration.data.schema.as_ref().map(Schema::plain);
                let order = centres.order(schema.as_ref());
                let line = |centre: &Centre| cluster(centre, &order, people);
                (centres.clusters.iter().take(MOST_LINES).map(line).collect(), centres.clusters.len())
            }
            Some(Learned::Components(Loadings { directions, .. })) => {
                (directions.iter().take(MOST_LINES).map(direction).collect(), directions.len())
            }
            Some(Learned::Items(popular)) => return items(&popular),
            Some(Learned::Rules(_)) | None => return Vec::new(),
        };
        if count > lines.len() {
            lines.push(format!("… and {} more in `quell report --format json`", count - lines.len()));
        }
        lines
    }
}

fn cluster(centre: &Centre, order: &[usize], people: &str) -> String {
    let size = centre.size.map(|size| format!("about {size:.0} {people}"));
    let shown = order.iter().take(MOST_COLUMNS).filter_map(|column| centre.columns.get(*column));
    let columns: Vec<String> =
        shown.map(|column| format!("{} {}", column.column, column.describe())).collect();
    let parts: Vec<String> =
        size.into_iter().chain((!columns.is_empty()).then(|| columns.join(", "))).collect();
    let text = if parts.is_empty() { "its centre is in the model file".into() } else { parts.join("; ") };
    format!("cluster {}: {text}", centre.cluster)
}

fn direction(direction: &Direction) -> String {
    let loadings: Vec<String> = (direction.loadings.iter().take(MOST_COLUMNS))
        .map(|loading| format!("{:+.2} {}", loading.weight, loading.feature))
        .collect();
    let noise = if direction.is_above_noise { "" } else { ", which noise alone would show" };
    format!(
        "direction {}: {}; variance {}{noise}",
        direction.direction,
        loadings.join(", "),
        format_brief(digits(direction.variance, 3))
    )
}

fn items(popular: &Popular) -> Vec<String> {
    let most: Vec<&str> =
        popular.items.iter().take(MOST_ITEMS).map(|PopularItem { item, .. }| item.as_str()).collect();
    let [least, _, _, _, largest] = popular.spread;
    vec![
        format!("most popular items: {}", most.join(", ")),
        format!(
            "items are rated {least:+.2} to {largest:+.2} from the usual rating of a user; {} factors",
            popular.factors
        ),
    ]
}

impl Coordinate {
    /// The mean of the column in a few letters: a number, or the most frequent category with its share.
    #[must_use]
    pub fn describe(&self) -> String {
        let mean = match (&self.mean, self.mean.most_frequent()) {
            // A year needs more than three digits.
            (Mean::Number(number), _) => format_brief(digits(*number, 5)),
            (_, Some(most)) => format!("{} ({:.0} %)", most.category, 100.0 * most.share),
            (Mean::Shares(_), None) => String::new(),
        };
        match self.unknown {
            Some(share) if share >= 0.005 => format!("{mean}, {:.0} % unknown", 100.0 * share),
            _ => mean,
        }
    }
}

/// Rounds a number to so many digits.
fn digits(number: f64, count: usize) -> f64 {
    let places = count.saturating_sub(1);
    format!("{number:.places$e}").parse().unwrap_or(number)
}
