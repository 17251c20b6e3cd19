//! Compares runs on neighbouring datasets: their public output, and their statistics before noise.

use quell::run::Folder as Run;
use quell_ledger::{Location, Store, Volume};
use quell_privacy::{
    Neighbors,
    exact::{Coins, Statistic, watch},
    ledger::{Ledger, Terms},
};

use crate::made::Folder;

/// The public output of a run, and its statistics before noise.
pub(crate) struct Seen {
    pub(crate) public: Vec<(String, Vec<u8>)>,
    pub(crate) statistics: Vec<Statistic>,
}

/// Runs a function with random numbers that depend on a seed and on the identities of the records.
pub(crate) fn seen(seed: u64, identities: Vec<u64>, run: impl FnOnce() -> Vec<(String, Vec<u8>)>) -> Seen {
    let (public, statistics) = watch(Coins { seed, identities }, run);
    Seen { public, statistics }
}

/// A new ledger and a new folder for a run, which replace those of the previous run.
pub(crate) fn opened(folder: &Folder, terms: Terms) -> (Ledger<Volume>, Run) {
    let (run, ledger) = (folder.path().join("run"), folder.path().join("ledger"));
    let _ = (std::fs::remove_dir_all(&run), std::fs::remove_dir_all(&ledger));
    std::fs::create_dir_all(&ledger).unwrap();
    let store = Store::create(Location::File(ledger.join("ledger.db"))).unwrap();
    (Ledger::create(store.book("people").unwrap(), terms).unwrap(), Run::create(&run).unwrap())
}

/// The public output of a run: its files, and the total of its ledger.
pub(crate) fn left(ledger: &mut Ledger<Volume>, run: &Run) -> Vec<(String, Vec<u8>)> {
    let mut public = files(run.path());
    let state = ledger.state().unwrap();
    public.push(("spent".into(), format!("{:?} {}", state.spent(), state.charges().len()).into_bytes()));
    public
}

/// Runs on a dataset and on its neighbours, and compares the runs.
///
/// Returns the number of compared statistics and the largest distance as a share of the allowed distance, or
/// a description of a forbidden difference.
pub(crate) fn compare<R>(
    neighbors: Neighbors,
    all: &[R],
    others: impl Iterator<Item = Vec<R>>,
    run: impl Fn(&[R]) -> Seen,
) -> Result<(usize, f64), String> {
    let base = run(all);
    if base.statistics.is_empty() {
        let words: Vec<String> = base
            .public
            .iter()
            .map(|(name, bytes)| format!("{name}: {}", String::from_utf8_lossy(bytes)))
            .collect();
        return Err(format!("nothing was released: {words:?}"));
    }
    let (mut compared, mut most) = (0, 0.0_f64);
    for (number, other) in others.enumerate() {
        most = most
            .max(leak(&base, &run(&other), neighbors).map_err(|leak| format!("neighbour {number}: {leak}"))?);
        compared += base.statistics.len();
    }
    Ok((compared, most))
}

/// Compares two runs on neighbours.
///
/// Returns the largest distance of a statistic as a share of the allowed distance, or a description of a
/// forbidden difference.
pub(crate) fn leak(base: &Seen, other: &Seen, neighbors: Neighbors) -> Result<f64, String> {
    for ((name, a), (other_name, b)) in base.public.iter().zip(&other.public) {
        if name != other_name || a != b {
            let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
            return Err(format!("{name} or {other_name} differs:\n{}\n{}", text(a), text(b)));
        }
    }
    if base.public.len() != other.public.len() || base.statistics.len() != other.statistics.len() {
        return Err("one run has more files or releases than the other".into());
    }
    let mut most = 0.0_f64;
    for (number, (a, b)) in base.statistics.iter().zip(&other.statistics).enumerate() {
        let allowed = match neighbors {
            Neighbors::AddRemove => a.addition,
            Neighbors::Replace => a.exchange,
        };
        let moved = a.distance(b) / allowed;
        // Written so that NaN is refused.
        if !(moved <= 1.0 && a.mechanism == b.mechanism) {
            return Err(format!(
                "release {number}, {}: moved by {moved} of what was charged for",
                a.mechanism
            ));
        }
        most = most.max(moved);
    }
    Ok(most)
}

/// The files of a folder without times and receipts, which differ between any two runs.
fn files(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(Result::unwrap)
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.push((name, Vec::new()));
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        // Witnesses and intents contain hashes and keys of this ledger only.
        let own = ["witness", "intended", "lock"].iter().any(|word| name.contains(word));
        let bytes = if name.ends_with(".json") { without_times(&bytes) } else { bytes };
        let bytes = if own { Vec::new() } else { bytes };
        // The model file contains a receipt, so its weights are compared separately.
        if !name.starts_with("model") && !name.starts_with("report") {
            found.push((name, bytes));
        }
    }
    found
}

/// A JSON document without times and without the key that signed it.
fn without_times(bytes: &[u8]) -> Vec<u8> {
    fn strip(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => {
                ["seconds", "receipt", "head", "ledger", "time"]
                    .iter()
                    .for_each(|name| drop(fields.remove(*name)));
                fields.values_mut().for_each(strip);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(bytes) else { return bytes.to_vec() };
    strip(&mut value);
    value.to_string().into_bytes()
}
