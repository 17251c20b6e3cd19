//! One question of a query, from flags or from a plan file.

use anyhow::Result;
use clap::ValueEnum;
use quell::{
    data::{FeatureKind, Predicate, Schema},
    statistics::{self, Axis, Bins, Grouped},
};
use quell_privacy::{mechanism::Bounds, units::Probability};
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// The statistics that the command can release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Statistic {
    /// Number of records
    Count,
    /// Whether the number of records reaches --threshold
    Reaches,
    /// Sum of a column
    Sum,
    /// Mean of a column
    Mean,
    /// Variance of a column
    Variance,
    /// Number of records for each key of a column
    Histogram,
    /// Quantiles of a column
    Quantile,
    /// Median of a column
    Median,
    /// Median of a column, with noise scaled by smooth sensitivity
    SmoothMedian,
    /// Two numbers between which most records of a column lie
    Range,
}

impl Statistic {
    /// Whether the statistic is about a column.
    pub(super) fn has_column(self) -> bool {
        !matches!(self, Self::Count | Self::Reaches)
    }

    /// Whether the statistic is about numbers.
    fn has_numbers(self) -> bool {
        self.has_column() && self != Self::Histogram
    }
}

/// One value or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T: Clone> OneOrMany<T> {
    pub(super) fn list(&self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one.clone()],
            Self::Many(many) => many.clone(),
        }
    }
}

/// One question. All of it is public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    pub(super) statistic: Statistic,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) column: Option<String>,
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub(super) condition: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bounds: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) keys: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bins: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) edges: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) group_by: Option<OneOrMany<String>>,
    /// The keys of the groups; two lists for two columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) groups: Option<Vec<OneOrMany<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) group_bins: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) group_edges: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parts: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) quantile: Option<OneOrMany<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) inside: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) threshold: Option<u64>,
}

/// A file of questions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanFile {
    pub(super) question: Vec<Asked>,
}

/// The part of the records inside a range, if not given.
const INSIDE: f64 = 0.95;

impl Asked {
    /// Takes bounds, keys and groups that are not given from a schema, and refuses numbers of other columns.
    pub(super) fn declared_by(mut self, schema: &Schema) -> Result<Self> {
        let has_bins = self.group_bins.is_some() || self.group_edges.is_some();
        let groups = self.group_by.iter().filter(|_| has_bins).flat_map(OneOrMany::list);
        for column in self.numbers().map(str::to_owned).into_iter().chain(groups) {
            if let Some(other) = Declared::of(schema, &column).other_than_numbers() {
                let sentence = format!("column {column:?} is declared as {other}, expected numbers");
                return Err(Refusal::new(
                    sentence,
                    "ask for a histogram of its keys, or name a column with bounds",
                )
                .into());
            }
        }
        if let Some(column) = self.column.clone() {
            let declared = Declared::of(schema, &column);
            let needs_bounds = self.statistic.has_numbers() || self.bins.is_some();
            if needs_bounds && self.bounds.is_none() {
                self.bounds = declared.bounds.map(|bounds| bounds.to_vec());
            }
            let has_parts = self.bins.is_some() || self.edges.is_some();
            if self.statistic == Statistic::Histogram && !has_parts && self.keys.is_none() {
                self.keys = declared.names;
            }
        }
        let is_open = self.groups.is_none() && self.group_bins.is_none() && self.group_edges.is_none();
        if let Some(columns) = self.group_by.as_ref().map(OneOrMany::list).filter(|_| is_open) {
            let lists = columns.iter().map(|column| Declared::of(schema, column).names);
            let lists = lists.collect::<Option<Vec<_>>>();
            self.groups = lists.map(|lists| lists.into_iter().map(OneOrMany::Many).collect());
        }
        Ok(self)
    }

    /// The column whose cells are read as numbers because of the question alone.
    pub(super) fn numbers(&self) -> Option<&str> {
        let has_numbers = self.statistic.has_numbers() || self.bins.is_some() || self.edges.is_some();
        self.column.as_deref().filter(|_| has_numbers)
    }

    /// Builds the statistic.
    pub(super) fn statistic(&self) -> Result<statistics::Statistic> {
        if self.statistic != Statistic::Histogram && (self.bins.is_some() || self.edges.is_some()) {
            let sentence = "--bins and --edges are for a histogram, expected a histogram";
            return Err(Refusal::new(sentence, "divide other statistics with --group-bins").into());
        }
        if self.statistic == Statistic::Histogram && self.bounds.is_some() && self.bins.is_none() {
            let sentence = "a histogram has --bounds and no --bins, expected a number of bins";
            return Err(Refusal::new(sentence, "add --bins 10, or leave --bounds out to count keys").into());
        }
        let columns = self.group_by.as_ref().map(OneOrMany::list);
        let groups = columns.as_deref().map(|columns| self.axes(columns)).transpose()?;
        let Some(parts) = &self.parts else {
            let Some(groups) = groups else { return self.plain() };
            return self.grouped(groups, columns.unwrap_or_default().into_iter().next().unwrap_or_default());
        };
        let conditions = parts.iter().map(|part| Ok(part.parse()?));
        let mut axes = vec![Axis::conditions(conditions.collect::<Result<Vec<Predicate>>>()?)];
        match groups {
            None => {}
            // A record is in one part and in one group at most, so it is in one cell at most.
            Some(Some(groups)) if groups.len() == 1 => axes.extend(groups),
            Some(Some(_)) => {
                let sentence = "parts have two columns of groups, expected one column";
                return Err(
                    Refusal::new(sentence, "leave one --group-by out, or write it into the parts").into()
                );
            }
            Some(None) => return Err(no_groups().into()),
        }
        self.grouped(Some(axes), String::new())
    }

    /// Builds a statistic of all selected records.
    fn plain(&self) -> Result<statistics::Statistic> {
        Ok(match self.statistic {
            Statistic::Count => statistics::Statistic::Count,
            Statistic::Reaches => {
                let missing = || {
                    Refusal::new("no threshold is given, expected a number of records", "add --threshold N")
                };
                statistics::Statistic::Reaches { threshold: self.threshold.ok_or_else(missing)? }
            }
            Statistic::Sum => statistics::Statistic::Sum { column: self.column()?, bounds: self.bounds()? },
            Statistic::Mean => statistics::Statistic::Mean { column: self.column()?, bounds: self.bounds()? },
            Statistic::Variance => {
                statistics::Statistic::Variance { column: self.column()?, bounds: self.bounds()? }
            }
            Statistic::Histogram => match self.bins()? {
                Some(bins) => {
                    let by = vec![Axis::bins(self.column()?, bins)];
                    statistics::Statistic::Grouped(Grouped::Count { by })
                }
                None => statistics::Statistic::Histogram { column: self.column()?, keys: self.keys.clone() },
            },
            Statistic::Quantile | Statistic::Median => {
                let (column, bounds, quantiles) = (self.column()?, self.bounds()?, self.quantiles()?);
                match quantiles.as_slice() {
                    [quantile] => statistics::Statistic::Quantile { column, bounds, quantile: *quantile },
                    _ => statistics::Statistic::Quantiles { column, bounds, quantiles },
                }
            }
            Statistic::SmoothMedian => {
                statistics::Statistic::SmoothMedian { column: self.column()?, bounds: self.bounds()? }
            }
            Statistic::Range => statistics::Statistic::Range {
                column: self.column()?,
                bounds: self.bounds()?,
                inside: Probability::new(self.inside.unwrap_or(INSIDE))?,
            },
        })
    }

    /// The quantiles that are asked for; the median if none is given.
    fn quantiles(&self) -> Result<Vec<Probability>> {
        let given = self.quantile.as_ref().filter(|_| self.statistic == Statistic::Quantile);
        let quantiles = given.map_or_else(|| vec![0.5], OneOrMany::list);
        if quantiles.is_empty() {
            let sentence = "the list of quantiles is empty, expected at least one quantile";
            return Err(Refusal::new(sentence, "write --quantile 0.25,0.5,0.75").into());
        }
        Ok(quantiles.into_iter().map(Probability::new).collect::<Result<_, _>>()?)
    }

    /// The bins of a histogram of numbers, if they are given.
    fn bins(&self) -> Result<Option<Bins>> {
        Ok(match (&self.edges, self.bins) {
            (Some(edges), _) => Some(Bins::new(edges.clone())?),
            (None, Some(count)) => {
                Some(Bins::equal(self.bounds()?, usize::try_from(count).unwrap_or(usize::MAX))?)
            }
            (None, None) => None,
        })
    }

    /// The columns that divide the records into groups; `None` if the groups are not known.
    fn axes(&self, columns: &[String]) -> Result<Option<Vec<Axis>>> {
        let bins = match (&self.group_edges, self.group_bins.as_deref()) {
            (Some(edges), _) => Some(Bins::new(edges.clone())?),
            (None, Some(&[lower, upper, count])) => {
                if count.fract() != 0.0 {
                    let sentence = format!("the number of bins is {count}, expected a whole number");
                    return Err(Refusal::new(sentence, "write --group-bins LOWER UPPER N").into());
                }
                Some(Bins::equal(Bounds::new(lower, upper)?, count as usize)?)
            }
            (None, Some(_)) => {
                let sentence = "the bins of groups are not three numbers, expected lower, upper and how many";
                return Err(Refusal::new(sentence, "write group_bins = [0, 100, 10]").into());
            }
            (None, None) => None,
        };
        let lists: Option<Vec<Vec<String>>> =
            self.groups.as_ref().map(|lists| lists.iter().map(OneOrMany::list).collect());
        match (columns, bins, lists) {
            ([column], Some(bins), _) => Ok(Some(vec![Axis::bins(column, bins)])),
            ([column], None, Some(lists)) => Ok(Some(vec![Axis::keys(column, lists.concat())])),
            ([_], None, None) => Ok(None),
            ([one, other], None, Some(lists)) if lists.len() == 2 => {
                let [first, second] = [&lists[0], &lists[1]].map(Clone::clone);
                Ok(Some(vec![Axis::keys(one, first), Axis::keys(other, second)]))
            }
            ([_, _], ..) => {
                let sentence =
                    "two columns of groups have no two lists of groups, expected one list for each";
                Err(Refusal::new(sentence, "write --group-by A --groups a,b --group-by B --groups c,d")
                    .into())
            }
            _ => {
                let sentence = format!("--group-by is given {} times, expected once or twice", columns.len());
                Err(Refusal::new(sentence, "select the others with --where").into())
            }
        }
    }

    /// Builds a statistic for each group of the selected records. `first` is the first column of groups.
    fn grouped(&self, axes: Option<Vec<Axis>>, first: String) -> Result<statistics::Statistic> {
        Ok(match (self.statistic, axes) {
            (Statistic::Count, Some(by)) => statistics::Statistic::Grouped(Grouped::Count { by }),
            // The number of records in each group is a histogram.
            (Statistic::Count, None) => statistics::Statistic::Histogram { column: first, keys: None },
            (Statistic::Histogram, Some(groups)) if groups.len() == 1 => {
                let column = self.column()?;
                let own = match (self.bins()?, self.keys.clone()) {
                    (Some(bins), _) => Axis::bins(column, bins),
                    (None, Some(keys)) => Axis::keys(column, keys),
                    (None, None) => {
                        let sentence = "no keys are given, expected keys, because groups are given";
                        return Err(
                            Refusal::new(sentence, "add --keys or --bins, or leave --groups out").into()
                        );
                    }
                };
                statistics::Statistic::Grouped(Grouped::Count { by: [vec![own], groups].concat() })
            }
            (Statistic::Histogram, None) if self.keys.is_none() && self.bins()?.is_none() => {
                let columns = [self.column()?, first];
                statistics::Statistic::Grouped(Grouped::UnknownPairs { columns })
            }
            (Statistic::Histogram, Some(_)) => {
                let sentence = "a histogram is divided twice, expected one column of groups, or parts alone";
                return Err(Refusal::new(sentence, "leave one out, or ask for a count").into());
            }
            (Statistic::Sum, by) => statistics::Statistic::Grouped(Grouped::Sum {
                column: self.column()?,
                bounds: self.bounds()?,
                by: by.ok_or_else(no_groups)?,
            }),
            (Statistic::Mean, by) => statistics::Statistic::Grouped(Grouped::Mean {
                column: self.column()?,
                bounds: self.bounds()?,
                by: by.ok_or_else(no_groups)?,
            }),
            (Statistic::Quantile | Statistic::Median, by) => {
                let quantiles = self.quantiles()?;
                let &[quantile] = quantiles.as_slice() else {
                    let sentence = "several quantiles have groups, expected one quantile";
                    return Err(Refusal::new(sentence, "ask for one, or leave the groups out").into());
                };
                statistics::Statistic::Grouped(Grouped::Quantile {
                    column: self.column()?,
                    bounds: self.bounds()?,
                    quantile,
                    by: by.ok_or_else(no_groups)?,
                })
            }
            (Statistic::Histogram, None) => return Err(no_groups().into()),
            _ => {
                let sentence = "this statistic has no groups, expected a count, sum, mean, median, quantile or histogram";
                let hint = "leave --group-by out, or ask about one group with --where";
                return Err(Refusal::new(sentence, hint).into());
            }
        })
    }

    /// Returns the column that the question is about.
    fn column(&self) -> Result<String> {
        let missing =
            || Refusal::new("no column is given, expected the column of the statistic", "add --column NAME");
        Ok(self.column.clone().ok_or_else(missing)?)
    }

    fn bounds(&self) -> Result<Bounds> {
        if let Some(&[lower, upper]) = self.bounds.as_deref() {
            return Ok(Bounds::new(lower, upper)?);
        }
        let hint = "add --bounds LOWER UPPER from public knowledge, not from the data";
        Err(Refusal::new("no bounds are given, expected the range to which numbers are clamped", hint).into())
    }
}

/// The refusal of a statistic whose groups are not listed.
fn no_groups() -> Refusal {
    let sentence = "no groups are given, expected the keys of the groups";
    Refusal::new(sentence, "add --groups A,B,C from public knowledge, not from the data")
}

/// What a schema says about a column.
#[derive(Default)]
struct Declared {
    bounds: Option<[f64; 2]>,
    names: Option<Vec<String>>,
    /// What the cells are, if they are neither numbers nor of a list of names.
    other: Option<&'static str>,
}

impl Declared {
    fn of(schema: &Schema, column: &str) -> Self {
        let label = schema.label.iter().find(|label| label.column == column);
        if let Some(label) = label {
            return Self { bounds: label.bounds, names: label.classes.clone(), other: None };
        }
        let feature = schema.columns.iter().find(|feature| feature.name == column);
        match feature.map(|feature| &feature.kind) {
            Some(FeatureKind::Bounds(bounds)) => Self { bounds: Some(*bounds), ..Self::default() },
            Some(FeatureKind::Categories { names, .. }) => {
                Self { names: Some(names.clone()), ..Self::default() }
            }
            Some(FeatureKind::Boolean) => Self { other: Some("true or false"), ..Self::default() },
            Some(FeatureKind::Date(_)) => Self { other: Some("dates"), ..Self::default() },
            Some(FeatureKind::Text(_)) => Self { other: Some("text"), ..Self::default() },
            None => Self::default(),
        }
    }

    /// What the cells are, if they are no numbers. Categories may be numbers, all of them.
    fn other_than_numbers(&self) -> Option<&'static str> {
        let is_number = |name: &String| name.trim().parse::<f64>().is_ok_and(f64::is_finite);
        let has_texts = self.names.as_ref().is_some_and(|names| !names.iter().all(is_number));
        self.other.or(has_texts.then_some("categories"))
    }
}
