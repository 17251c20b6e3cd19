//! Seconds for a step of DP-SGD and of plain SGD, on three networks, as lines of JSON: `benches/training.py` sets them beside other libraries.
//!
//! A step is everything: gather the batch, forward, backward, lengths, scales, sums, noise, update. The batch has exactly the size given, for the sake of comparison.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a benchmark reads files and the clock"
)]

use std::time::Instant;

use quell::{
    learner::{
        Gradients,
        optimizer::{Optimizer, Update},
    },
    network::{self, Network, Task, Workspace},
    random::PublicRandom,
};
use quell_privacy::{
    Neighbors,
    ledger::{Book, Budget, Composition, Ledger, Line, Permit, Receipt, Terms, Unit},
    mechanism::{Clipping, Descent, Sampling},
    units::{ClipNorm, Delta, NoiseMultiplier},
};

/// Numbers between 0 and 1, and labels, without meaning.
struct Noise {
    inputs: usize,
    values: Vec<f32>,
}

impl Noise {
    fn new(network: &Network, batch: usize) -> Self {
        let inputs = network.input().iter().product();
        let mut chance = PublicRandom::new(1);
        Self { inputs, values: (0..batch * inputs).map(|_| chance.between(0.0, 1.0)).collect() }
    }
}

impl Task for Noise {
    fn gather(&self, record: usize, _: usize, input: &mut [f32]) {
        input.copy_from_slice(&self.values[record * self.inputs..(record + 1) * self.inputs]);
    }

    fn differentiate(&self, record: usize, _: usize, outputs: &[f32], gradient: &mut [f32]) {
        let largest = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        gradient.iter_mut().zip(outputs).for_each(|(g, x)| *g = (x - largest).exp());
        let sum: f32 = gradient.iter().sum();
        for g in gradient.iter_mut() {
            *g /= sum;
        }
        gradient[record % 10] -= 1.0;
    }
}

/// Name, model, shape and batch.
const NETWORKS: [(&str, &str, &[usize], usize); 3] = [
    ("mlp", "mlp", &[784], 600),
    ("cnn", "cnn", &[28, 28, 1], 256),
    ("cifar", "cifar-cnn", &[32, 32, 3], 256),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A network and a mode, if only they are wanted.
    let (only, mode) = (std::env::args().nth(1), std::env::args().nth(2));
    let wanted = |only: &Option<String>, name: &str| only.as_deref().is_none_or(|only| only == name);
    for (name, model, shape, batch) in NETWORKS.into_iter().filter(|(name, ..)| wanted(&only, name)) {
        let network = network::build(shape, &network::layers_of(model, shape, 10)?)?;
        for mode in ["private", "plain"].into_iter().filter(|name| wanted(&mode, name)) {
            let seconds = if mode == "private" { private(&network, batch)? } else { plain(&network, batch)? };
            let memory = peak_memory();
            #[allow(clippy::print_stdout, reason = "lines of JSON are what this program is for")]
            {
                println!(
                    "{}",
                    serde_json::json!({"network": name, "mode": mode, "seconds_per_step": seconds, "peak_memory_bytes": memory})
                );
            }
        }
    }
    Ok(())
}

/// Steps until this much time has passed, and at least four.
const SECONDS: f64 = 2.0;

/// The best time of several.
fn best(
    mut step: impl FnMut() -> Result<(), Box<dyn std::error::Error>>,
) -> Result<f64, Box<dyn std::error::Error>> {
    let (begun, mut best, mut taken) = (Instant::now(), f64::INFINITY, 0);
    while taken < 4 || begun.elapsed().as_secs_f64() < SECONDS {
        let start = Instant::now();
        step()?;
        best = best.min(start.elapsed().as_secs_f64());
        taken += 1;
    }
    Ok(best)
}

fn private(network: &Network, batch: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let step = Descent {
        sampling: Sampling::Full,
        clipping: Clipping::Flat { norm: ClipNorm::new(1.0)? },
        noise_multiplier: NoiseMultiplier::new(1.0)?,
        dimension: network.parameters(),
    };
    let (task, mut weights, mut workspace) =
        (Noise::new(network, batch), network.initialize(1), Workspace::default());
    let mut optimizer = SGD.start(&network.parts())?;
    let mut ledger = ledger()?;
    let mut lease = ledger.reserve(step, 1_000_000)?.in_blocks_of(1_000_000);
    best(|| {
        let paid = lease.next().ok_or("the lease is at its end")??;
        let mut gradients = Gradients::new(network, &task, &weights, &mut workspace);
        let released = paid.start(batch)?.next(&mut gradients).ok_or("one batch a run")??;
        Ok(optimizer.step(&mut weights, &released.sum, update(batch))?)
    })
}

fn plain(network: &Network, batch: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let (task, mut weights, mut workspace) =
        (Noise::new(network, batch), network.initialize(1), Workspace::default());
    let mut optimizer = SGD.start(&network.parts())?;
    let records: Vec<usize> = (0..batch).collect();
    let mut wide = vec![0.0_f64; network.parameters()];
    let mut sum = vec![0.0_f32; network.parameters()];
    best(|| {
        wide.fill(0.0);
        Gradients::new(network, &task, &weights, &mut workspace).add(&records, &mut wide);
        sum.iter_mut().zip(&wide).for_each(|(narrow, wide)| *narrow = *wide as f32);
        Ok(optimizer.step(&mut weights, &sum, update(batch))?)
    })
}

const SGD: Optimizer = Optimizer::Sgd { weight_decay: 0.0 };

fn update(batch: usize) -> Update {
    Update { learning_rate: 0.1, scale: 1.0 / batch as f64, noise_variance: 0.0 }
}

/// The most memory this process has had, in bytes, where the system says so.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// A book that forgets: nothing here is worth a ledger.
#[derive(Default)]
struct Forgetful(Vec<Line>);

impl Book for Forgetful {
    type Error = String;

    fn read(&mut self, from: u64) -> Result<Vec<Line>, String> {
        Ok(self.0[from as usize..].to_vec())
    }

    fn append(&mut self, permit: &Permit<'_>) -> Result<Option<Receipt>, String> {
        self.0.push(permit.line().clone());
        self.receipt(self.0.len() as u64 - 1).map(Some)
    }

    fn receipt(&mut self, number: u64) -> Result<Receipt, String> {
        Ok(Receipt::new("noise".into(), number, String::new()))
    }
}

fn ledger() -> Result<Ledger<Forgetful>, quell_privacy::Error> {
    let budget = Budget { epsilon: None, delta: Delta::new(1e-5)? };
    let terms = Terms {
        dataset: "noise".into(),
        unit: Unit::Example,
        neighbors: Neighbors::AddRemove,
        budget,
        composition: Composition::Combined,
    };
    Ledger::create(Forgetful::default(), terms)
}
