//! Bounds and categories of columns that nobody knows, for a price.

use pyo3::prelude::*;
use quell::statistics::{Columns, Found, Unknown, WIDEST};
use quell_privacy::{ledger::Note, mechanism::Bounds};
use serde_json::json;

use crate::{
    data::PyTable,
    error::{Error, Result},
    ledger::PyLedger,
};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(find_columns, module)?)
}

/// The name of a column, the range in which its numbers are searched, and whether it holds numbers.
type AskedColumn = (String, Option<(f64, f64)>, bool);

/// Releases bounds of numbers and frequent categories, and the number of records if it is asked for.
///
/// A column has a range in which its numbers are searched, or none for categories. Returns JSON: what was found about
/// each column, and the number of records last.
#[pyfunction]
#[pyo3(signature = (table, columns, ledger, epsilon, *, label = None, label_shares = None, counts = false, delta = None, one_record_per_user = false, user = None, max_per_user = None, by = None))]
#[expect(clippy::too_many_arguments, reason = "each is an option of one question")]
fn find_columns(
    py: Python<'_>,
    table: &PyTable,
    columns: Vec<AskedColumn>,
    ledger: &PyLedger,
    epsilon: f64,
    label: Option<String>,
    label_shares: Option<f64>,
    counts: bool,
    delta: Option<f64>,
    one_record_per_user: bool,
    user: Option<&str>,
    max_per_user: Option<u32>,
    by: Option<String>,
) -> PyResult<String> {
    let table = table.table.clone();
    Ok(py.detach(|| -> Result<String> {
        let names: Vec<String> = columns.iter().map(|(name, ..)| name.clone()).collect();
        let unknown = |(name, within, is_number): AskedColumn| {
            let (low, high) = within.unwrap_or((WIDEST[0], WIDEST[1]));
            let unknown =
                if is_number { Unknown::Bounds(Bounds::new(low, high)?) } else { Unknown::Categories };
            Ok((name, unknown))
        };
        let columns = columns.into_iter().map(unknown).collect::<Result<Vec<_>>>()?;
        if let Some(shares) = label_shares.filter(|shares| !(1.0..=1e6).contains(shares)) {
            let found = format!("label_shares is {shares}, expected a number in [1, 1e6]");
            return Err(Error::Other("SettingError", found));
        }
        let asked = Columns { columns, label, label_shares, counts, delta, one_record_per_user };
        let records = match (user, max_per_user) {
            (Some(user), Some(most)) => table.all().at_most_per_user(user, most)?,
            (None, Some(_)) => {
                let found = "max_per_user is given without the column of users".to_owned();
                return Err(Error::Hinted(
                    "SettingError",
                    found,
                    "add user=..., the name of a column".into(),
                ));
            }
            (_, None) => table.all(),
        };
        let mut ledger = ledger.open()?;
        let note = Note { by, release: Some(format!("a schema of {}", names.join(", "))), ..Note::default() };
        ledger.annotate(&note);
        let found = asked.ask(&mut ledger, &records, epsilon)?;
        let found: Vec<_> = found
            .into_iter()
            .map(|found| match found {
                Found::Bounds(bounds) => json!(bounds),
                Found::Names(names) => json!(names),
                Found::Count(count) => json!(count),
            })
            .collect();
        Ok(json!(found).to_string())
    })?)
}
