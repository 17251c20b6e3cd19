//! The records of a task, as linear mechanisms read them.

use quell_privacy::mechanism::LinearRecords;

use super::Columns;
use crate::{
    learner::{Supervised, loss::Target},
    network::Task,
};

/// The records as a linear mechanism reads them: features of length at most one, and one target.
pub(super) struct Rows<'a, 'e> {
    pub(super) task: &'a Supervised<'e>,
    pub(super) columns: &'a Columns,
    /// The class that is separated from all others; `None` if there are two classes or none.
    pub(super) class: Option<u32>,
}

impl Rows<'_, '_> {
    /// The factor that makes an example and its constant feature at most one long.
    pub(super) fn scale(&self) -> f64 {
        (self.columns.count as f64 + 1.0).sqrt().recip()
    }
}

impl LinearRecords for Rows<'_, '_> {
    fn records(&self) -> usize {
        self.task.records()
    }

    fn dimension(&self) -> usize {
        self.columns.width() + 1
    }

    fn read(&self, record: usize, features: &mut [f64]) -> Option<f64> {
        if self.task.examples(record) == 0 {
            return None;
        }
        let (constant, features) = features.split_last_mut()?;
        let mut example = vec![0.0; features.len()];
        self.task.gather(record, 0, &mut example);
        features.iter_mut().zip(&example).for_each(|(to, x)| *to = f64::from(*x) * self.scale());
        *constant = self.scale();
        Some(match (self.task.target_of(record, 0), self.class) {
            (Target::Number(number), _) => number.into(),
            (Target::Class(class), Some(wanted)) => {
                if class == wanted {
                    1.0
                } else {
                    -1.0
                }
            }
            (Target::Class(class), None) => {
                if class == 1 {
                    1.0
                } else {
                    -1.0
                }
            }
        })
    }
}
