//! The records of a task as a linear model reads them: numbers, and the categories that are there.
//!
//! Most indicators of a table are 0. A record keeps its numbers and the few indicators that are not 0, which
//! takes an eighth of the memory of all features on usual tables.

use std::collections::HashMap;

use super::Columns;
use crate::{
    layer::Trees,
    learner::{Supervised, loss::Target},
    network::Task,
};

/// The features and targets of all examples, in the order of the records.
pub(super) struct CompactRecords {
    /// The features that are numbers, in increasing order.
    pub(super) numbers: Vec<usize>,
    /// The features that are indicators, in increasing order.
    pub(super) indicators: Vec<usize>,
    /// The values that indicators take, other than 0. First comes the value 1 of each indicator.
    pub(super) indicator_values: Vec<IndicatorValue>,
    /// Where the examples of each record begin; the last entry is the number of examples.
    starts: Vec<usize>,
    /// The numbers of all examples, row after row.
    values: Vec<f32>,
    /// The values of indicators of all examples, and where those of each example begin.
    present: Vec<u32>,
    present_starts: Vec<usize>,
    targets: Vec<Target>,
}

/// A value of an indicator. It is 1, except in data that was not made by a schema.
#[derive(Clone, Copy)]
pub(super) struct IndicatorValue {
    /// The place among the indicators.
    pub(super) indicator: usize,
    pub(super) value: f32,
}

/// One example: its numbers, the indicators that are not 0, and its target.
#[derive(Clone, Copy)]
pub(super) struct CompactExample<'a> {
    pub(super) numbers: &'a [f32],
    pub(super) indicator_values: &'a [u32],
    pub(super) target: Target,
}

impl CompactRecords {
    pub(super) fn new(task: &Supervised<'_>, columns: &Columns) -> Self {
        let (indicators, numbers): (Vec<usize>, Vec<usize>) =
            (0..columns.width()).partition(|feature| columns.is_indicator(*feature));
        let indicator_values =
            (0..indicators.len()).map(|indicator| IndicatorValue { indicator, value: 1.0 }).collect();
        let mut records = Self {
            numbers,
            indicators,
            indicator_values,
            starts: vec![0],
            values: Vec::new(),
            present: Vec::new(),
            present_starts: vec![0],
            targets: Vec::new(),
        };
        let (mut raw, mut others) = (vec![0.0; columns.width()], HashMap::new());
        for record in 0..task.records() {
            for number in 0..task.examples(record) {
                task.gather(record, number, &mut raw);
                records.push(&raw, task.target_of(record, number), &mut others);
            }
            records.starts.push(records.targets.len());
        }
        records
    }

    fn push(&mut self, raw: &[f32], target: Target, others: &mut HashMap<(usize, u32), u32>) {
        self.values.extend(self.numbers.iter().map(|feature| raw[*feature]));
        for (indicator, feature) in self.indicators.iter().enumerate() {
            let value = raw[*feature];
            // A value that is not finite counts as 0, as it does in all examples that are read.
            if value == 1.0 {
                self.present.push(indicator as u32);
            } else if value != 0.0 && value.is_finite() {
                let indicator_values = &mut self.indicator_values;
                self.present.push(*others.entry((indicator, value.to_bits())).or_insert_with(|| {
                    indicator_values.push(IndicatorValue { indicator, value });
                    indicator_values.len() as u32 - 1
                }));
            }
        }
        self.present_starts.push(self.present.len());
        self.targets.push(target);
    }

    /// Adds the leaves that each example is in, as indicators after all features.
    ///
    /// They follow from the example and from thresholds that were released (THEORY, Forests).
    pub(super) fn with_leaves(mut self, task: &Supervised<'_>, trees: &Trees, thresholds: &[f32]) -> Self {
        let (width, own) = (self.numbers.len() + self.indicators.len(), self.indicators.len());
        let leaves = trees.leaves();
        self.indicators.extend(width..width + leaves);
        let added = (own..own + leaves).map(|indicator| IndicatorValue { indicator, value: 1.0 });
        self.indicator_values.splice(own..own, added);
        let (before, starts) = (std::mem::take(&mut self.present), self.present_starts.clone());
        let (mut raw, mut categories) = (vec![0.0; width], Vec::new());
        let mut example = 0;
        for record in 0..task.records() {
            for number in 0..task.examples(record) {
                let indicator_values = &before[starts[example]..starts[example + 1]];
                // Other values than 1 come after the leaves now.
                let moved = indicator_values.iter().map(|indicator_value| {
                    if (*indicator_value as usize) < own {
                        *indicator_value
                    } else {
                        *indicator_value + leaves as u32
                    }
                });
                self.present.extend(moved);
                task.gather(record, number, &mut raw);
                trees.find(&raw, thresholds, &mut categories, |leaf| self.present.push((own + leaf) as u32));
                example += 1;
                self.present_starts[example] = self.present.len();
            }
        }
        self
    }

    /// The numbers of the examples of a record.
    #[inline(always)]
    pub(super) fn examples(&self, record: usize) -> std::ops::Range<usize> {
        self.starts[record]..self.starts[record + 1]
    }

    #[inline(always)]
    pub(super) fn example(&self, example: usize) -> CompactExample<'_> {
        let width = self.numbers.len();
        CompactExample {
            numbers: &self.values[width * example..width * (example + 1)],
            indicator_values: &self.present[self.present_starts[example]..self.present_starts[example + 1]],
            target: self.targets[example],
        }
    }
}
