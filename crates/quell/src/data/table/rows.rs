//! The positions of records in the raw data.

/// The row of each record in the raw data.
#[derive(Clone, Debug)]
pub(in crate::data) struct Rows {
    /// The row of each record; `None` if every row is a record.
    of: Option<Vec<u32>>,
    /// The number of rows in the raw data.
    count: usize,
    placed: bool,
}

impl Rows {
    /// Creates the map in which every row is a record.
    pub(in crate::data) fn all(count: usize) -> Self {
        Self { of: None, count, placed: true }
    }

    pub(in crate::data) fn count(&self) -> usize {
        self.count
    }

    pub(in crate::data) fn row(&self, record: usize) -> usize {
        self.of.as_ref().map_or(record, |of| of[record] as usize)
    }

    /// Returns whether replacing one record leaves all others in their rows.
    pub(in crate::data) fn has_places(&self) -> bool {
        self.placed
    }

    pub(in crate::data) fn without_places(self) -> Self {
        Self { placed: false, ..self }
    }

    /// Selects some of the records. The rows of the others are still counted.
    pub(in crate::data) fn select(&self, records: &[usize]) -> Self {
        Self { of: Some(records.iter().map(|record| self.row(*record) as u32).collect()), ..*self }
    }

    /// Returns the rows of the records that remain in `kept`.
    pub(in crate::data) fn of(&self, kept: &Self) -> Self {
        match &kept.of {
            None => self.clone(),
            Some(of) => self.select(&of.iter().map(|record| *record as usize).collect::<Vec<_>>()),
        }
    }
}
