//! Seconds for a step of DP-SGD and of plain SGD, on three networks, as lines of JSON: `benches/training.py` sets them beside other libraries.
//!
//! A step is everything: gather the batch, forward, backward, lengths, scales, sums, noise, update. The batch has exactly the size given, for the sake of comparison.

use std::time::Instant;

use quell::{
    dp_sgd::Gradients,
    layer::{Activation, Convolution, Function, Layer, Linear, Pool, Pooling},
    network::{Network, Task, Workspace},
};
use quell_privacy::{
    Neighbors,
    ledger::{Book, Budget, Composition, Ledger, Line, Receipt, Terms, Unit},
    mechanism::{ClippedSum, Clipping, Sampling},
    units::{ClipNorm, Delta, NoiseMultiplier},
};

/// Numbers between 0 and 1, and labels, without meaning.
struct Noise {
    inputs: usize,
    values: Vec<f32>,
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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let only = std::env::args().nth(1);
    for name in ["mlp", "cnn", "cifar"] {
        if only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let (network, batch) = build(name).ok_or("the layers do not fit")?;
        measure(name, &network, batch)?;
    }
    Ok(())
}

fn measure(name: &str, network: &Network, batch: usize) -> Result<(), Box<dyn std::error::Error>> {
    let inputs: usize = network.input().iter().product();
    let mut chance = quell::chance::Chance::new(1);
    let task = Noise { inputs, values: (0..batch * inputs).map(|_| chance.between(0.0, 1.0)).collect() };
    let mut weights = network.initialize(1);
    let mut workspace = Workspace::default();
    let records: Vec<usize> = (0..batch).collect();
    let mut best = [f64::INFINITY; 2];
    let rounds = if name == "cifar" { 6 } else { 40 };
    let step = ClippedSum {
        sampling: Sampling::Full,
        clipping: Clipping::Flat { norm: ClipNorm::new(1.0)? },
        noise_multiplier: NoiseMultiplier::new(1.0)?,
        dimension: network.parameters(),
    };
    let mut ledger = ledger()?;
    for paid in ledger.reserve(step, rounds)? {
        let start = Instant::now();
        let released = paid?.run(batch, &mut Gradients::new(network, &task, &weights, &mut workspace))?;
        update(&mut weights, released.sum.iter().copied(), batch);
        best[0] = best[0].min(start.elapsed().as_secs_f64());

        let start = Instant::now();
        let mut sum = vec![0.0; network.parameters()];
        Gradients::new(network, &task, &weights, &mut workspace).add(&records, &mut sum);
        update(&mut weights, sum.iter().map(|x| *x as f32), batch);
        best[1] = best[1].min(start.elapsed().as_secs_f64());
    }
    let memory = peak_memory();
    for (mode, seconds) in ["private", "plain"].into_iter().zip(best) {
        #[allow(clippy::print_stdout)]
        {
            println!(
                "{}",
                serde_json::json!({"network": name, "mode": mode, "batch": batch, "seconds_per_step": seconds, "peak_memory_bytes": memory})
            );
        }
    }
    Ok(())
}

fn update(weights: &mut [f32], sum: impl Iterator<Item = f32>, batch: usize) {
    let rate = 0.1 / batch as f32;
    weights.iter_mut().zip(sum).for_each(|(weight, g)| *weight -= rate * g);
}

/// The three networks that benches compare, and their batches.
fn build(name: &str) -> Option<(Network, usize)> {
    let mut layers: Vec<Box<dyn Layer>> = Vec::new();
    let add = |layers: &mut Vec<Box<dyn Layer>>, layer: Box<dyn Layer>, function: Option<Function>| {
        let shape = layer.output().clone();
        layers.push(layer);
        layers.extend(function.map(|function| Box::new(Activation::new(function, shape)) as Box<dyn Layer>));
    };
    match name {
        "mlp" => {
            add(&mut layers, Box::new(Linear::new(784, 1000)), Some(Function::Relu));
            add(&mut layers, Box::new(Linear::new(1000, 10)), None);
            Some((Network::new(vec![784], layers)?, 600))
        }
        "cnn" => {
            let relu = Some(Function::Relu);
            add(&mut layers, Box::new(Convolution::over_image([28, 28, 1], 16, [8, 8], [2, 2], [3, 3], 1)?), relu);
            add(&mut layers, Box::new(Pooling::new(Pool::Largest, [14, 14, 16], [2, 2], [1, 1])?), None);
            add(&mut layers, Box::new(Convolution::over_image([13, 13, 16], 32, [4, 4], [2, 2], [0, 0], 1)?), relu);
            add(&mut layers, Box::new(Pooling::new(Pool::Largest, [5, 5, 32], [2, 2], [1, 1])?), None);
            add(&mut layers, Box::new(Linear::new(512, 32)), relu);
            add(&mut layers, Box::new(Linear::new(32, 10)), None);
            Some((Network::new(vec![28, 28, 1], layers)?, 256))
        }
        _ => {
            let tanh = Some(Function::Tanh);
            let (mut side, mut channels) = (32, 3);
            for width in [32, 64, 128] {
                for _ in 0..2 {
                    let layer = Convolution::over_image([side, side, channels], width, [3, 3], [1, 1], [1, 1], 1)?;
                    add(&mut layers, Box::new(layer), tanh);
                    channels = width;
                }
                add(&mut layers, Box::new(Pooling::new(Pool::Largest, [side, side, width], [2, 2], [2, 2])?), None);
                side /= 2;
            }
            add(&mut layers, Box::new(Linear::new(2048, 128)), tanh);
            add(&mut layers, Box::new(Linear::new(128, 10)), None);
            Some((Network::new(vec![32, 32, 3], layers)?, 256))
        }
    }
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

    fn append(&mut self, _: u64, line: &Line, _: f64, _: f64) -> Result<Option<Receipt>, String> {
        self.0.push(line.clone());
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
        composition: Composition::Best,
    };
    Ledger::create(Forgetful::default(), terms)
}
