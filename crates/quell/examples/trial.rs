#![allow(clippy::all, clippy::pedantic, missing_docs)]
use quell::{data, dp_sgd::*, layer::*, network::Network};
use quell_privacy::{Neighbors, ledger::*, units::*};
use std::time::Instant;
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
        Ok(Receipt::new("n".into(), number, String::new()))
    }
}
fn net(name: &str, shape: &[usize]) -> Network {
    let mut l: Vec<Box<dyn Layer>> = vec![];
    let act = if name.ends_with("relu") { Function::Relu } else { Function::Tanh };
    let s = if shape.len() == 3 { vec![shape[1], shape[2], shape[0]] } else { shape.to_vec() };
    fn a(l: &mut Vec<Box<dyn Layer>>, x: Box<dyn Layer>, f: Option<Function>) {
        let sh = x.output().clone();
        l.push(x);
        if let Some(f) = f {
            l.push(Box::new(Activation::new(f, sh)))
        }
    }
    let n: usize = s.iter().product();
    if name.starts_with("logistic") {
        a(&mut l, Box::new(Linear::new(n, 10)), None);
    } else if name.starts_with("mlp") {
        let h = name[3..].trim_end_matches("-relu").trim_end_matches("-tanh").parse().unwrap_or(100);
        a(&mut l, Box::new(Linear::new(n, h)), Some(act));
        a(&mut l, Box::new(Linear::new(h, 10)), None);
    } else if name.starts_with("dcnn") {
        a(&mut l, Box::new(Convolution::over_image([8, 8, 1], 16, [3, 3], [1, 1], [1, 1], 1).unwrap()), Some(act));
        a(&mut l, Box::new(Pooling::new(Pool::Largest, [8, 8, 16], [2, 2], [2, 2]).unwrap()), None);
        a(&mut l, Box::new(Convolution::over_image([4, 4, 16], 32, [3, 3], [1, 1], [1, 1], 1).unwrap()), Some(act));
        a(&mut l, Box::new(Pooling::new(Pool::Mean, [4, 4, 32], [2, 2], [2, 2]).unwrap()), None);
        a(&mut l, Box::new(Linear::new(128, 10)), None);
    } else {
        a(&mut l, Box::new(Convolution::over_image([28, 28, 1], 16, [8, 8], [2, 2], [3, 3], 1).unwrap()), Some(act));
        a(&mut l, Box::new(Pooling::new(Pool::Largest, [14, 14, 16], [2, 2], [1, 1]).unwrap()), None);
        a(&mut l, Box::new(Convolution::over_image([13, 13, 16], 32, [4, 4], [2, 2], [0, 0], 1).unwrap()), Some(act));
        a(&mut l, Box::new(Pooling::new(Pool::Largest, [5, 5, 32], [2, 2], [1, 1]).unwrap()), None);
        a(&mut l, Box::new(Linear::new(512, 32)), Some(act));
        a(&mut l, Box::new(Linear::new(32, 10)), None);
    }
    Network::new(s, l).unwrap()
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mut recipe: Recipe = toml::from_str(&std::fs::read_to_string(&args[3]).unwrap()).unwrap();
    let ds = if args[1] == "digits" { data::digits().unwrap() } else { data::open(&args[1], &data::Options::default()).unwrap() };
    let runs: u64 = args.get(4).map_or(1, |x| x.parse().unwrap());
    let test = ds.test.as_ref().unwrap();
    let network = net(&args[2], ds.train.shape());
    let facts = Facts { records: Some(ds.train.len() as u64), classes: Some(10) };
    let mut all = vec![];
    for run in 0..runs {
        recipe.seed = run + 1;
        let plan = recipe.plan(&facts, &network).unwrap();
        let t = Instant::now();
        if run == 0 {
            eprintln!(
                "n {} z {:.3} eps {:?} steps {} batch {}",
                ds.train.len(),
                plan.release.noise_multiplier(),
                plan.epsilon,
                plan.release.steps(),
                plan.expected_batch
            );
        }
        let mut progress = Progress::new(&network, &plan).unwrap();
        let mut task = Supervised::new(&ds.train, plan.loss, plan.augmentation);
        let terms = Terms {
            dataset: "n".into(),
            unit: Unit::Example,
            neighbors: Neighbors::AddRemove,
            budget: Budget { epsilon: None, delta: Delta::new(1e-5).unwrap() },
            composition: Composition::Best,
        };
        let mut ledger = Ledger::create(Forgetful::default(), terms).unwrap();
        let Release::Sums(sum, steps) = plan.release.clone() else { panic!() };
        let lease = Leased::Sums(ledger.reserve(sum, steps).unwrap());
        let mut curve = vec![];
        train(lease, &plan, &network, &mut task, &mut progress, |p| {
            if p.position() % (steps / 5).max(1) == 0 {
                curve.push(format!("{:.2}", 100.0 * evaluate(&network, &p.model(), test, plan.loss).accuracy().unwrap()));
            }
            Ok(Going::On)
        })
        .unwrap();
        let acc = 100.0 * evaluate(&network, &progress.model(), test, plan.loss).accuracy().unwrap();
        all.push(acc);
        println!("{} {} run {run}: {acc:.2} % in {:.1} s  [{}]", args[2], args[3], t.elapsed().as_secs_f64(), curve.join(" "));
    }
    println!("{} {} MEAN {:.2}", args[2], args[3], all.iter().sum::<f64>() / all.len() as f64);
}
