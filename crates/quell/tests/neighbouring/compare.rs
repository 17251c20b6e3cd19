//! What two runs have in common and what they may not.

use quell::run::Folder as Run;
use quell_ledger::{Location, Store, Volume};
use quell_privacy::{
    Neighbors,
    exact::{Coins, Statistic, watch},
    ledger::{Ledger, Terms},
};

use crate::{datasets::Record, made::Folder};

/// What everyone may see of a run, and what noise was to be added to.
pub(crate) struct Seen {
    pub(crate) public: Vec<(String, Vec<u8>)>,
    pub(crate) statistics: Vec<Statistic>,
}

/// Runs something with coins that follow from a seed and from who the records are.
pub(crate) fn seen(seed: u64, identities: Vec<u64>, run: impl FnOnce() -> Vec<(String, Vec<u8>)>) -> Seen {
    let (public, statistics) = watch(Coins { seed, identities }, run);
    Seen { public, statistics }
}

/// A ledger and a folder for a run, where those of the run before were.
pub(crate) fn opened(folder: &Folder, terms: Terms) -> (Ledger<Volume>, Run) {
    let (run, ledger) = (folder.path().join("run"), folder.path().join("ledger"));
    let _ = (std::fs::remove_dir_all(&run), std::fs::remove_dir_all(&ledger));
    std::fs::create_dir_all(&ledger).unwrap();
    let store = Store::create(Location::File(ledger.join("ledger.db"))).unwrap();
    (Ledger::create(store.book("people").unwrap(), terms).unwrap(), Run::create(&run).unwrap())
}

/// What a run has left: files, and what the ledger counts.
pub(crate) fn left(ledger: &mut Ledger<Volume>, run: &Run) -> Vec<(String, Vec<u8>)> {
    let mut public = files(run.path());
    let state = ledger.state().unwrap();
    public.push(("spent".into(), format!("{:?} {}", state.spent(), state.charges().len()).into_bytes()));
    public
}

/// Runs on a dataset and on its neighbours: how many statistics were compared and how far one moved, at most, of what is allowed; or what is wrong.
pub(crate) fn compare(
    neighbors: Neighbors,
    all: &[Record],
    others: impl Iterator<Item = Vec<Record>>,
    run: impl Fn(&[Record]) -> Seen,
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

/// What is wrong with two runs on neighbours, if anything. Also how far, at most, a statistic moved of what is allowed.
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
        // A NaN is not within it.
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

/// Everything in a folder but times and receipts, which no two runs have in common.
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
        // Witnesses and intents hold heads and keys of this ledger alone.
        let own = ["witness", "intended", "lock"].iter().any(|word| name.contains(word));
        let bytes = if name.ends_with(".json") { without_times(&bytes) } else { bytes };
        let bytes = if own { Vec::new() } else { bytes };
        // The model holds a receipt: what is learned is compared apart.
        if !name.starts_with("model") && !name.starts_with("report") {
            found.push((name, bytes));
        }
    }
    found
}

/// A JSON document without what says when it was written, and under which key it was signed.
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
