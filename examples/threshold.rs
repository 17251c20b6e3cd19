//! Learns a threshold privately, and draws what is reached beside what no pure guarantee can beat.

use quell::{
    learner::bayes::{LabelledPoint, Thresholds, Tree},
    ledger::InMemory,
    privacy::{
        Neighbors,
        units::{Delta, Epsilon, Probability},
    },
};
use quell_report::plot::{Axis, Edge, Figure, Point, Series};

/// Errors beyond the least, in records, for one domain.
struct Reached {
    domain: f64,
    /// No mechanism with a pure guarantee is below this for all data.
    packing: f64,
    /// What the exponential mechanism needed on the data of the lower bound.
    exponential: f64,
    exponential_bound: f64,
    tree: f64,
    tree_bound: f64,
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reached = [4, 7, 10, 13].map(|bits| measure(1 << bits)).into_iter().collect::<Result<Vec<_>, _>>()?;
    for row in &reached {
        // The lower bound, the measured error and the proven bound are in this order. The measured one is an
        // estimate from 200 cases: two records more than the bound divide the failures by e², so they suffice.
        assert!(row.packing <= row.exponential && row.exponential <= row.exponential_bound + 2.0);
        assert!(row.tree <= row.tree_bound);
    }
    let (first, last) = (&reached[0], &reached[reached.len() - 1]);
    // The exponential mechanism grows like ln |X|, and so does the lower bound. The tree grows faster.
    let growth = |of: fn(&Reached) -> f64| of(last) / of(first);
    assert!(growth(|row| row.exponential_bound) < 1.2 * growth(|row| row.packing));
    assert!(growth(|row| row.tree_bound) > 1.5 * growth(|row| row.exponential_bound));
    println!("{}", figure(&reached).characters());
    Ok(())
}

/// In this share of cases errors may be larger.
const FAILURE: f64 = 0.05;

fn measure(domain: u32) -> Result<Reached, Box<dyn std::error::Error>> {
    let (epsilon, delta, failure) = (Epsilon::new(1.0)?, Delta::new(1e-6)?, Probability::new(FAILURE)?);
    let thresholds = Thresholds { domain };
    let tree = Tree::for_epsilon(thresholds, epsilon, delta, Neighbors::AddRemove)?;
    // The threshold in the middle is right, and every other one errs on `margin` records or more.
    let middle = domain / 2;
    let data = |margin: usize| -> Vec<LabelledPoint> {
        [vec![(middle - 1, false); margin], vec![(middle, true); margin]].concat()
    };
    // The least margin for which the right threshold is found in nineteen of twenty cases.
    let least = |find: &dyn Fn(&[LabelledPoint]) -> Result<u32, quell::Error>| {
        let (mut low, mut high) = (0, 1);
        let is_enough = |margin: usize| -> Result<bool, quell::Error> {
            let points = data(margin);
            let mut wrong = 0.0;
            for _ in 0..200 {
                wrong += if find(&points)? == middle { 0.0 } else { 1.0 / 200.0 };
            }
            Ok(wrong <= FAILURE)
        };
        while !is_enough(high)? {
            (low, high) = (high, 2 * high);
        }
        while high - low > 1 + high / 20 {
            let between = usize::midpoint(low, high);
            if is_enough(between)? { high = between } else { low = between }
        }
        Ok::<f64, quell::Error>(high as f64)
    };
    let ledger = || InMemory::ledger("points", epsilon, delta);
    Ok(Reached {
        domain: domain.into(),
        packing: thresholds.least_excess(epsilon, Neighbors::AddRemove, failure),
        exponential: least(&|points| thresholds.choose(&mut ledger()?, epsilon, points))?,
        exponential_bound: thresholds.class(epsilon).excess(Neighbors::AddRemove, failure).ceil(),
        tree: least(&|points| tree.choose(&mut ledger()?, points))?,
        tree_bound: tree.excess(failure).ceil(),
    })
}

fn figure(reached: &[Reached]) -> Figure {
    let series = |name: &str, of: fn(&Reached) -> f64| Series {
        name: name.into(),
        claim: Edge::Upper,
        points: reached.iter().map(|row| Point::exact(row.domain, of(row))).collect(),
    };
    Figure {
        title: "Learning a threshold".into(),
        subtitle: "at ε = 1, in nineteen of twenty cases".into(),
        x: Axis::logarithmic("points of the domain"),
        y: Axis::logarithmic("errors beyond the least, in records"),
        series: vec![
            series("least for a pure guarantee", |row| row.packing),
            series("exponential mechanism", |row| row.exponential),
            series("its bound", |row| row.exponential_bound),
            series("tree of counts", |row| row.tree),
            series("its bound", |row| row.tree_bound),
        ],
    }
}
