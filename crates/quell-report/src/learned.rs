//! What a model learned: a table of centres, directions, items or rules, and a map of clusters.

// Writing to a string does not fail.
use std::fmt::Write as _;

use quell::{
    learner::{
        Predictor,
        factorization::Popular,
        tree::Rule,
        unsupervised::{Centre, Centres, Loadings},
    },
    run::{Learned, Model},
};
use quell_privacy::{ledger::Unit, number::format_brief};

use crate::{
    facts::percent,
    pictures::{self, Picture},
    plot::{Map, Place},
};

/// A section of the report: a table, with sentences that explain it.
pub(crate) struct Findings {
    pub(crate) heading: &'static str,
    /// Sentences that explain how to read the table.
    pub(crate) reading: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// A map, with a sentence that explains how to read it.
    pub(crate) map: Option<(Map, String)>,
    /// Small pictures, where the records are images.
    pub(crate) pictures: Vec<Picture>,
}

/// The most rows of a table. The report as JSON has all of them.
pub(crate) const MOST_ROWS: usize = 50;
/// The most columns of a table of centres.
const MOST_COLUMNS: usize = 16;
/// The most features that are named for a direction.
const MOST_FEATURES: usize = 6;
/// The most items in a table.
const MOST_ITEMS: usize = 20;
/// The most rules in a table.
const MOST_RULES: usize = 16;
/// The most clusters on a map.
const MOST_PLACES: usize = 200;

impl Findings {
    /// What the model learned; `None` for other models.
    pub(crate) fn new(model: &Model, learned: &Learned) -> Self {
        match learned {
            Learned::Clusters(centres) => clusters(model, centres),
            Learned::Components(loadings) => directions(model, loadings),
            Learned::Items(popular) => items(popular),
            Learned::Rules(all) => rules(all),
        }
    }
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A number with three digits.
fn brief(number: f64) -> String {
    format_brief(format!("{number:.2e}").parse().unwrap_or(number))
}

fn clusters(model: &Model, centres: &Centres) -> Findings {
    let is_user = model.configuration.data.unit == Unit::User;
    let people = if is_user { "users" } else { "records" };
    let schema = model.configuration.data.schema.as_ref().map(quell::data::Schema::plain);
    let mut order = centres.order(schema.as_ref());
    let mut reading = String::new();
    let pictures = match &model.predictor {
        Predictor::Clusters(clusters) => pictures::of_centres(model, clusters),
        _ => Vec::new(),
    };
    if order.is_empty() && !pictures.is_empty() {
        reading += "A picture is the released centre of a cluster: the mean of its images, with noise. ";
    } else if order.is_empty() {
        reading +=
            "The features of these records have no names, so the centres are in the model file alone. ";
    } else {
        reading += "A row is the released centre of a cluster. A number is a mean, in the units of its column. \
                    A category is the most frequent one, with its share. Columns in which the centres differ \
                    most come first. ";
    }
    match centres.size_noise {
        Some(noise) => {
            let _ = write!(
                reading,
                "Sizes are noisy numbers of {people}, with a standard deviation of {}.",
                brief(noise)
            );
        }
        None => reading += "The run released no sizes.",
    }
    if order.len() > MOST_COLUMNS {
        let _ = write!(reading, " {} more columns are in the report as JSON.", order.len() - MOST_COLUMNS);
        order.truncate(MOST_COLUMNS);
    }
    if centres.clusters.len() > MOST_ROWS {
        let _ = write!(reading, " {} more clusters are, too.", centres.clusters.len() - MOST_ROWS);
    }
    let mut titles = head(&["cluster"]);
    titles.extend(centres.size_noise.map(|_| "size".into()));
    if let Some(first) = centres.clusters.first() {
        titles.extend(order.iter().map(|column| first.columns[*column].column.clone()));
    }
    let row = |centre: &Centre| {
        let size = centre.size.map(|size| format!("{size:.0}"));
        let columns = order.iter().map(|column| centre.columns[*column].describe());
        std::iter::once(centre.cluster.to_string()).chain(size).chain(columns).collect()
    };
    Findings {
        heading: "The clusters",
        reading,
        head: titles,
        rows: centres.clusters.iter().take(MOST_ROWS).map(row).collect(),
        map: map(centres, people),
        pictures,
    }
}

/// The centres along the directions in which they differ most.
fn map(centres: &Centres, people: &str) -> Option<(Map, String)> {
    let [first, second] = centres.map_shares;
    let is_drawn = (2..=MOST_PLACES).contains(&centres.clusters.len()) && first > 0.0;
    is_drawn.then(|| {
        let place = |centre: &Centre| Place {
            name: centre.cluster.to_string(),
            x: centre.map[0],
            y: centre.map[1],
            size: centre.size,
        };
        let area = if centres.size_noise.is_some() {
            format!("the area of a circle is the released number of {people}")
        } else {
            "all circles are equal, because no size was released".into()
        };
        let map = Map {
            title: "Map of the clusters".into(),
            subtitle: format!("released centres, on the scale of training; {area}"),
            x: format!("first direction: {} of the spread between centres", percent(first)),
            y: format!("second direction: {}", percent(second)),
            places: centres.clusters.iter().map(place).collect(),
        };
        let reading = "The closer two circles are, the more alike are the centres, as far as two directions \
                       can show it. The map is computed from released numbers alone.";
        (map, reading.into())
    })
}

fn directions(model: &Model, loadings: &Loadings) -> Findings {
    let pictures = match &model.predictor {
        Predictor::Components(components) => pictures::of_directions(model, &components.pca),
        _ => Vec::new(),
    };
    let above = loadings.directions.iter().filter(|direction| direction.is_above_noise).count();
    let count = loadings.directions.len();
    let mut reading = format!(
        "A row is a released direction, with the features that it weighs most: the coordinate of a record is \
         the sum of its features, less their means, times these weights. Numbers are scaled to [-1, 1], and \
         records far from the mean are shortened before variances are measured. Noise alone would show a variance of \
         {}; {above} of {count} directions are above it.",
        brief(loadings.noise)
    );
    if !pictures.is_empty() {
        reading += " In a picture of a direction, blue weights are positive and orange weights are negative.";
    }
    if count > MOST_ROWS {
        let _ = write!(reading, " {} more directions are in the report as JSON.", count - MOST_ROWS);
    }
    let rows = loadings.directions.iter().take(MOST_ROWS).map(|direction| {
        let features: Vec<String> = (direction.loadings.iter().take(MOST_FEATURES))
            .map(|loading| format!("{:+.2} {}", loading.weight, loading.feature))
            .collect();
        let noise = if direction.is_above_noise { "above" } else { "below" };
        let mut row = vec![direction.direction.to_string(), brief(direction.variance), noise.into()];
        // Pixels have no names. The pictures show their weights.
        row.extend(pictures.is_empty().then(|| features.join(", ")));
        row
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut titles = head(&["direction", "variance", "noise"]);
    titles.extend(pictures.is_empty().then(|| "largest weights".to_owned()));
    Findings { heading: "The directions", reading, head: titles, rows, map: None, pictures }
}

fn items(popular: &Popular) -> Findings {
    let [least, quarter, middle, three_quarters, largest] = popular.spread;
    let count = popular.items.len();
    let mut reading = format!(
        "The {} most popular of {count} items that were kept, by released counts in which users with many \
         ratings count less. The last column says by how much users rate an item above their own usual rating; \
         where noise is large, it is drawn to zero. Over all kept items it is {least:+.2} to {largest:+.2}, and \
         {quarter:+.2} to {three_quarters:+.2} for the middle half, with a median of {middle:+.2}.",
        count.min(MOST_ITEMS)
    );
    if count > MOST_ITEMS {
        reading += " The report as JSON has all.";
    }
    let rows = popular.items.iter().take(MOST_ITEMS).map(|item| {
        vec![item.item.clone(), format!("{:.1}", item.popularity), format!("{:+.2}", item.above_usual)]
    });
    Findings {
        heading: "The most popular items",
        reading,
        head: head(&["item", "released popularity", "above the usual rating"]),
        rows: rows.collect(),
        map: None,
        pictures: Vec::new(),
    }
}

fn rules(all: &[Rule]) -> Findings {
    // The tree says nothing about how many records a leaf has. Rules with few conditions are the easiest to read.
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|rule| all[*rule].conditions.len());
    order.truncate(MOST_RULES);
    order.sort_unstable();
    let mut reading =
        "A record has the prediction of the one rule whose conditions it meets. A share is that \
                       of the predicted class, from noisy counts."
            .to_owned();
    let mut rows: Vec<Vec<String>> = order
        .into_iter()
        .map(|number| {
            let Rule { conditions, prediction } = &all[number];
            let conditions = conditions.join(" and ");
            vec![if conditions.is_empty() { "always".into() } else { conditions }, prediction.clone()]
        })
        .collect();
    if all.len() > rows.len() {
        let more = all.len() - rows.len();
        let _ = write!(reading, " The {MOST_RULES} rules with the fewest conditions are shown.");
        rows.push(vec![format!("… and {more} more rules in the report as JSON"), String::new()]);
    }
    Findings {
        heading: "The rules of the tree",
        reading,
        head: head(&["conditions", "prediction"]),
        rows,
        map: None,
        pictures: Vec::new(),
    }
}
