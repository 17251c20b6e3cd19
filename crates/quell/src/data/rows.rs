//! Where records stand in the raw data.

/// For each record its row in the raw data.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    /// Nothing if every row is a record.
    of: Option<Vec<u32>>,
    /// Rows of the raw data.
    count: usize,
    placed: bool,
}

impl Rows {
    /// Every row is a record.
    pub(super) fn all(count: usize) -> Self {
        Self { of: None, count, placed: true }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn row(&self, record: usize) -> usize {
        self.of.as_ref().map_or(record, |of| of[record] as usize)
    }

    /// Whether an exchange of one record leaves all others in their rows.
    pub(super) fn has_places(&self) -> bool {
        self.placed
    }

    pub(super) fn without_places(self) -> Self {
        Self { placed: false, ..self }
    }

    /// Some of the records. The rows of the others are still counted.
    pub(super) fn select(&self, records: &[usize]) -> Self {
        Self { of: Some(records.iter().map(|record| self.row(*record) as u32).collect()), ..*self }
    }

    /// The rows of those records that `kept` has left of them.
    pub(super) fn of(&self, kept: &Self) -> Self {
        match &kept.of {
            None => self.clone(),
            Some(of) => self.select(&of.iter().map(|record| *record as usize).collect::<Vec<_>>()),
        }
    }
}
