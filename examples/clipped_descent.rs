//! Descends along clipped gradients: not to the minimum of two linear losses, and to another loss's in a GLM.
//!
//! Both are about clipping alone, so there is no noise and nothing to pay for: the records are made up.

use quell::{
    learner::convex::{ClippedGlm, Glm, Squared},
    privacy::units::ClipNorm,
};

/// Clips a vector to length C.
fn clipped(vector: [f64; 2], norm: f64) -> [f64; 2] {
    let scale = (norm / vector[0].hypot(vector[1])).min(1.0);
    vector.map(|x| scale * x)
}

fn added(one: [f64; 2], other: [f64; 2]) -> [f64; 2] {
    [one[0] + other[0], one[1] + other[1]]
}

/// Descends on linear losses ⟨g, w⟩ over the square [-1, 1]², along clipped gradients.
fn descend(losses: [[f64; 2]; 2], norm: f64) -> [f64; 2] {
    let mut w = [0.0; 2];
    for _ in 0..1000 {
        let sum = losses.iter().map(|g| clipped(*g, norm)).fold([0.0; 2], added);
        w = [(w[0] - 0.01 * sum[0]).clamp(-1.0, 1.0), (w[1] - 0.01 * sum[1]).clamp(-1.0, 1.0)];
    }
    w
}

fn linear_losses() {
    let risk = |losses: [[f64; 2]; 2], w: [f64; 2]| -> f64 {
        losses.iter().map(|g| g[0] * w[0] + g[1] * w[1]).sum()
    };
    // The sum of the losses is 2w₁, with its minimum -2 at w₁ = -1. The clipped gradients cancel.
    let opposed = [[3.0, 0.0], [-1.0, 0.0]];
    let w = descend(opposed, 1.0);
    println!("opposed losses: stays at {w:?} with loss {}, the least is -2", risk(opposed, w));
    assert!(w == [0.0, 0.0] && risk(opposed, [-1.0, 0.0]) == -2.0);
    // The sum of the gradients is (10, 1), so the minimum -11 is in the corner (-1, -1). The sum of the clipped
    // gradients is about (0.96, -0.71), so descent ends in the corner (-1, 1).
    let turned = [[10.0, 3.0], [0.0, -2.0]];
    let w = descend(turned, 1.0);
    println!("turned losses: ends at {w:?} with loss {}, the least is -11", risk(turned, w));
    assert!(w == [-1.0, 1.0] && risk(turned, w) == -9.0 && risk(turned, [-1.0, -1.0]) == -11.0);
    // Without clipping, it ends in the right corner.
    assert!(descend(turned, 100.0) == [-1.0, -1.0]);
}

fn linear_model() -> Result<(), quell::Error> {
    // Linear regression. The last record is an outlier with long features.
    let records: [([f64; 2], f64); 5] =
        [([1.0, 0.0], 1.0), ([0.0, 1.0], -1.0), ([1.0, 1.0], 0.5), ([1.0, -1.0], 1.5), ([3.0, 4.0], 20.0)];
    let clip_norm = ClipNorm::new(1.0)?;
    let product = |w: [f64; 2], x: [f64; 2]| w[0] * x[0] + w[1] * x[1];
    let descend = |norm: f64| {
        let mut w = [0.0; 2];
        for _ in 0..20_000 {
            let gradients = records.map(|(x, y)| {
                let slope = Squared { target: y }.derivative(product(w, x));
                clipped([slope * x[0], slope * x[1]], norm)
            });
            let sum = gradients.into_iter().fold([0.0; 2], added);
            w = [w[0] - 0.02 * sum[0], w[1] - 0.02 * sum[1]];
        }
        w
    };
    let (with, without) = (descend(clip_norm.get()), descend(1e6));
    let (mut clipped_loss, mut loss) = ([0.0; 2], [0.0; 2]);
    let mut slopes = [[0.0; 2]; 2];
    for (x, target) in records {
        let original = Squared { target };
        let clip = ClippedGlm::new(original, x[0].hypot(x[1]), clip_norm);
        for (i, w) in [with, without].into_iter().enumerate() {
            clipped_loss[i] += clip.loss(product(w, x));
            loss[i] += original.loss(product(w, x));
        }
        // The gradients of both sums at the weights that clipped descent found.
        slopes[0] = added(slopes[0], x.map(|x_j| clip.derivative(product(with, x)) * x_j));
        slopes[1] = added(slopes[1], x.map(|x_j| original.derivative(product(with, x)) * x_j));
    }
    println!(
        "clipped descent ends at {with:.4?}: clipped loss {:.4}, squared loss {:.4}",
        clipped_loss[0], loss[0]
    );
    println!(
        "plain descent ends at {without:.4?}: clipped loss {:.4}, squared loss {:.4}",
        clipped_loss[1], loss[1]
    );
    // Clipped descent ends where the gradient of the clipped loss is zero, and that of the squared loss is not.
    assert!(slopes[0][0].hypot(slopes[0][1]) < 1e-9, "{slopes:?}");
    assert!(slopes[1][0].hypot(slopes[1][1]) > 10.0, "{slopes:?}");
    assert!(clipped_loss[0] < clipped_loss[1] - 1.0 && loss[0] > loss[1] + 10.0);
    Ok(())
}

pub(crate) fn main() -> Result<(), quell::Error> {
    linear_losses();
    linear_model()
}
