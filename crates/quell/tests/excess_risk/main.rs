//! Bounds on the excess risk of convex learning, and the plans that follow from them.

mod objective;
mod plans;
mod simulated;
mod slopes;

use quell::{
    learner::convex::{Descend, Factor, Loss, Method, Plan, Privacy, Problem, Procedure},
    random::PublicRandom,
};
use quell_privacy::{
    Neighbors,
    units::{Delta, Epsilon},
};

/// A problem with L = R = 1.
fn problem(records: u64, dimension: u64) -> Problem {
    Problem {
        records,
        dimension,
        lipschitz: 1.0,
        smoothness: Some(0.5),
        strong_convexity: Some(0.1),
        radius: 1.0,
    }
}

fn privacy(epsilon: f64) -> Privacy {
    Privacy {
        epsilon: Epsilon::new(epsilon).unwrap(),
        delta: Delta::new(1e-5).unwrap(),
        neighbors: Neighbors::AddRemove,
    }
}

fn plan(problem: &Problem, epsilon: f64, method: Method, loss: Loss) -> Plan {
    Plan::new(problem, privacy(epsilon), method, loss, Factor::default()).unwrap()
}

fn steps_of(plan: &Plan) -> Descend {
    match plan.procedure {
        Procedure::Descend(descend) => descend,
        Procedure::Minimise { .. } => panic!("{plan:?} takes no steps"),
    }
}

/// Standard normal numbers.
fn normal(random: &mut PublicRandom) -> f64 {
    f64::from(random.normal())
}

fn length(w: &[f64]) -> f64 {
    w.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Mean and standard error of the mean.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Standard errors by which a mean is off with probability at most 1e-6.
const ERRORS: f64 = 4.9;
