//! Reservations per second on SQLite, by one process and by two, while a ledger grows to 10 000 entries. Prints JSON.
//!
//! `cargo run --release -p quell-ledger --example bench_ledger [ENTRIES [DIRECTORY]]`. The disk decides: each reservation is forced to it.
//! With `QUELL_BENCH_URL=postgres://…` also on that server, in an empty database.

use std::{
    error::Error,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use quell_ledger::{Store, Volume};
use quell_privacy::{
    Neighbors,
    ledger::{Budget, Composition, Ledger, Terms, Unit},
    mechanism::{Count, IntegerNoise, Noise},
    units::{Delta, Scale},
};

type Answer<T> = Result<T, Box<dyn Error>>;

const DATASET: &str = "bench";

fn main() -> Answer<()> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("worker") {
        let (place, times) = (arguments.next().ok_or("no place")?, arguments.next().ok_or("no number")?);
        let mut ledger = Ledger::open(Store::open(place.as_str())?.book(DATASET)?)?;
        return charge(&mut ledger, times.parse()?);
    }
    let entries: usize = first.map_or(Ok(10_000), |first| first.parse())?;
    let place = arguments.next().map_or_else(std::env::temp_dir, Into::into);

    let directory = tempfile::tempdir_in(&place)?;
    let mut store = Store::create(directory.path())?;
    let mut ledger = create(&store)?;
    let tenth = (entries / 10).max(1);
    charge(&mut ledger, 1)?;
    let rates = (0..10).map(|_| rate(tenth, || charge(&mut ledger, tenth))).collect::<Answer<Vec<f64>>>()?;
    drop(ledger);
    let began = Instant::now();
    let mut ledger = Ledger::open(store.book(DATASET)?)?;
    let open = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let report = store.verify(&[], &[]);
    let verify = began.elapsed().as_secs_f64();
    let bytes = std::fs::metadata(directory.path().join("ledger.db"))?.len();

    let two = tempfile::tempdir_in(&place)?;
    create(&Store::create(two.path())?)?;
    let half = entries / 4;
    let pair = rate(2 * half, || race(two.path(), half))?;
    let server =
        std::env::var("QUELL_BENCH_URL").ok().map(|url| on_server(&url, two.path(), half)).transpose()?;
    let result = serde_json::json!({
        "entries": ledger.state()?.charges().len(),
        "one_process_per_second": { "first_tenth": rates[0], "last_tenth": rates[9], "all": mean(&rates) },
        "two_processes_per_second": pair,
        "server_per_second": server,
        "fsyncs_per_second": fsyncs(directory.path())?,
        "open_seconds": open,
        "verify_seconds": verify,
        "verified": report.is_good(),
        "bytes_per_entry": bytes as f64 / entries as f64,
    });
    println!("{}", serde_json::to_string_pretty(&result)?);
    Ok(())
}

fn create(store: &Store) -> Answer<Ledger<Volume>> {
    let terms = Terms {
        dataset: DATASET.into(),
        unit: Unit::Example,
        neighbors: Neighbors::AddRemove,
        budget: Budget { epsilon: None, delta: Delta::new(1e-6)? },
        composition: Composition::Combined,
    };
    Ok(Ledger::create(store.book(DATASET)?, terms)?)
}

fn charge(ledger: &mut Ledger<Volume>, times: usize) -> Answer<()> {
    for _ in 0..times {
        let _paid = ledger.charge(Count { noise: IntegerNoise::new(Noise::Laplace, Scale::new(100.0)?) })?;
    }
    Ok(())
}

fn on_server(url: &str, directory: &Path, times: usize) -> Answer<f64> {
    let store = Store::create_with_key(url, &directory.join("server.key"))?;
    let mut ledger = create(&store)?;
    rate(times, || charge(&mut ledger, times))
}

fn race(place: &Path, each: usize) -> Answer<()> {
    let worker = || {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("worker").arg(place).arg(each.to_string()).stdout(Stdio::null()).spawn()
    };
    for mut worker in [worker()?, worker()?] {
        if !worker.wait()?.success() {
            return Err("a worker failed".into());
        }
    }
    Ok(())
}

/// What the disk can do at best: writing a page at the end of a file and forcing it to disk.
fn fsyncs(place: &Path) -> Answer<f64> {
    let mut file = std::fs::File::create(place.join("fsync"))?;
    rate(500, || {
        for _ in 0..500 {
            std::io::Write::write_all(&mut file, &[1; 4096])?;
            file.sync_data()?;
        }
        Ok(())
    })
}

fn rate(times: usize, run: impl FnOnce() -> Answer<()>) -> Answer<f64> {
    let began = Instant::now();
    run()?;
    Ok(times as f64 / began.elapsed().as_secs_f64())
}

/// Of rates over equal numbers: the harmonic mean.
fn mean(rates: &[f64]) -> f64 {
    rates.len() as f64 / rates.iter().map(|rate| rate.recip()).sum::<f64>()
}
