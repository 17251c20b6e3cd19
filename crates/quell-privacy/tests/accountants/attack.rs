//! A simple attacker, who gives a lower bound on ε.
//!
//! He shares no code and no method with the accountants. The attacker puts the outcome of each release into
//! one of finitely many bins, which is post-processing. The losses of the bins are rounded down to a grid and
//! added up. All numbers are positive, and no transform (such as Fourier's) is used.

use quell_privacy::{Event, Neighbors};

/// Probabilities of the bins: without the record, with it, and with its replacement.
type Bins = Vec<[f64; 3]>;

const ABSENT: usize = 0;
const HERE: usize = 1;
const OTHER: usize = 2;

/// Bins of one release outside, and inside, a sample of several releases.
const MANY: usize = 300;
const FEW: usize = 40;

/// Most steps of one kind that the attacker uses.
///
/// Fewer steps also give a lower bound.
const MOST_STEPS: u64 = 64;

/// The largest ε at which the attack has an advantage above δ, or zero.
pub(crate) fn epsilon(event: &Event, neighbors: Neighbors, delta: f64) -> f64 {
    let mut parts = Vec::new();
    collect(event, neighbors, 1, &mut parts);
    let other = if neighbors == Neighbors::AddRemove { ABSENT } else { OTHER };
    let forth: Vec<_> = parts.iter().map(|(bins, count)| (losses(bins, HERE, other), *count)).collect();
    let back: Vec<_> = parts.iter().map(|(bins, count)| (losses(bins, other, HERE), *count)).collect();
    solve(&forth, delta).max(solve(&back, delta))
}

/// Rényi divergence of order α between what the attacker sees of neighbours.
///
/// It is at most that of the event. Divergences of independent releases add up, and bins that are left out
/// only lower them.
pub(crate) fn divergence(event: &Event, neighbors: Neighbors, alpha: f64) -> f64 {
    let mut parts = Vec::new();
    ln_collect(event, neighbors, alpha, 1.0, &mut parts);
    let other = if neighbors == Neighbors::AddRemove { ABSENT } else { OTHER };
    let between = |p: usize, q: usize| -> f64 {
        parts.iter().map(|(bins, count)| count * ln_moment(bins, p, q, alpha).max(0.0) / (alpha - 1.0)).sum()
    };
    between(HERE, other).max(between(other, HERE))
}

fn ln_collect(event: &Event, neighbors: Neighbors, alpha: f64, count: f64, into: &mut Vec<(Bins, f64)>) {
    match event {
        Event::Composed(events) => {
            for event in events {
                ln_collect(event, neighbors, alpha, count, into);
            }
        }
        Event::Repeated { count: times, event } => {
            ln_collect(event, neighbors, alpha, count * *times as f64, into);
        }
        _ if count > 0.0 => into.push((ln_bins(event, neighbors, alpha), count)),
        _ => {}
    }
}

/// Logarithms of the bins.
///
/// For discrete Gaussian noise they never underflow, and they lie where the divergence of order α has its
/// mass.
fn ln_bins(event: &Event, neighbors: Neighbors, alpha: f64) -> Bins {
    match event {
        Event::DiscreteGaussian { deviation, sensitivity } => {
            let (s, k) = (2.0 * deviation.get().powi(2), f64::from(*sensitivity));
            let reach = (12.0 * deviation.get()).ceil() as i64;
            let ln_total = (-reach..=reach).map(|n| (-(n * n) as f64 / s).exp()).sum::<f64>().ln();
            let middle = (alpha * k).min(1e7) as i64;
            let from = -reach.min(5000);
            let numbers = (from..=-from).chain((middle - reach.min(5000)).max(1 - from)..=middle + reach);
            numbers.map(|n| [0.0, k, -k].map(|centre| -(n as f64 - centre).powi(2) / s - ln_total)).collect()
        }
        Event::PoissonSampled { rate, event } => {
            let (ln_in, ln_out) = (rate.get().ln(), (-rate.get()).ln_1p());
            let mix = |absent: f64, there: f64| {
                let (a, b) = (ln_out + absent, ln_in + there);
                a.max(b) + (-(a - b).abs()).exp().ln_1p()
            };
            let inside = ln_bins(event, neighbors, alpha).into_iter();
            inside.map(|[absent, here, other]| [absent, mix(absent, here), mix(absent, other)]).collect()
        }
        _ => bins(event, neighbors, MANY).into_iter().map(|bin| bin.map(f64::ln)).collect(),
    }
}

/// ln Σ p^α q^(1-α).
fn ln_moment(bins: &Bins, p: usize, q: usize, alpha: f64) -> f64 {
    let terms: Vec<f64> = bins
        .iter()
        .filter(|bin| bin[p] > f64::NEG_INFINITY)
        .map(
            |bin| {
                if bin[q] == f64::NEG_INFINITY { f64::INFINITY } else { bin[q] + alpha * (bin[p] - bin[q]) }
            },
        )
        .collect();
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() {
        largest
    } else {
        largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln()
    }
}

/// The probability of an outcome that only one neighbour can have, if known.
pub(crate) fn infinite_mass(event: &Event) -> Option<f64> {
    Some(match event {
        Event::NonPrivate => 1.0,
        Event::Approximate { delta, .. } => delta.get(),
        Event::RandomizedResponse { randomized, .. } => f64::from(u8::from(randomized.get() == 0.0)),
        Event::PoissonSampled { rate, event } => rate.get() * hidden(event)?,
        Event::SampledWithoutReplacement { batch, records, event } => {
            *batch as f64 / *records as f64 * hidden(event)?
        }
        // A record that is drawn twice contributes twice. No theorem says what that does to a guarantee.
        Event::SampledWithReplacement { event, .. } => {
            Some(0.0).filter(|_| infinite_mass(event) == Some(0.0))?
        }
        Event::Composed(events) => {
            let masses: Option<Vec<f64>> = events.iter().map(infinite_mass).collect();
            -masses?.iter().map(|mass| (-mass).ln_1p()).sum::<f64>().exp_m1()
        }
        // Such an outcome may be the best.
        Event::BestOf { expected, trials } => {
            let masses: Option<Vec<f64>> = trials.iter().map(infinite_mass).collect();
            let (mass, stop) = (masses?.into_iter().fold(0.0, f64::max), 1.0 / f64::from(*expected));
            mass / (stop + (1.0 - stop) * mass)
        }
        Event::Repeated { count, event } if *count > 0 => {
            -(*count as f64 * (-infinite_mass(event)?).ln_1p()).exp_m1()
        }
        Event::Gaussian { .. }
        | Event::Laplace { .. }
        | Event::DiscreteGaussian { .. }
        | Event::DiscreteLaplace { .. }
        | Event::Exponential { .. }
        | Event::Pure { .. }
        | Event::ZeroConcentrated { .. }
        | Event::Renyi { .. }
        | Event::Repeated { .. }
        | Event::PerturbedObjective { .. }
        | Event::HiddenState { .. } => 0.0,
    })
}

/// The same for an event that runs on a sample.
///
/// If the event hides nothing at all, accountants need not know that it hides a record outside the sample.
fn hidden(event: &Event) -> Option<f64> {
    infinite_mass(event).filter(|mass| *mass < 1.0)
}

fn collect(event: &Event, neighbors: Neighbors, count: u64, into: &mut Vec<(Bins, u64)>) {
    match event {
        Event::Composed(events) => events.iter().for_each(|event| collect(event, neighbors, count, into)),
        Event::Repeated { count: times, event } => {
            collect(event, neighbors, count.saturating_mul(*times), into);
        }
        _ if count > 0 => into.push((bins(event, neighbors, MANY), count.min(MOST_STEPS))),
        _ => {}
    }
}

/// The bins of one release that some mechanism with this event really has.
fn bins(event: &Event, neighbors: Neighbors, most: usize) -> Bins {
    match event {
        Event::Gaussian { noise_multiplier } => gaussian(1.0 / noise_multiplier.get(), true, most),
        // For the relation in force: the two laws are this far apart.
        Event::ZeroConcentrated { rho } => gaussian((2.0 * rho.get()).sqrt(), false, most),
        Event::Laplace { noise_multiplier } => laplace(1.0 / noise_multiplier.get(), most),
        Event::DiscreteGaussian { deviation, sensitivity } => {
            let variance = deviation.get().powi(2);
            let reach = (12.0 * deviation.get()).ceil() as i64;
            integers(*sensitivity, reach, most, |n| (-(n * n) as f64 / (2.0 * variance)).exp())
        }
        Event::DiscreteLaplace { scale, sensitivity } => {
            let reach = (40.0 * scale.get()).ceil() as i64;
            integers(*sensitivity, reach, most, |n| (-(n.abs() as f64) / scale.get()).exp())
        }
        Event::RandomizedResponse { choices, randomized } if neighbors == Neighbors::Replace => {
            let other = randomized.get() / f64::from(*choices);
            let same = 1.0 - randomized.get() + other;
            let neither = f64::from(choices - 2) * other;
            vec![[other, same, other], [same, other, same], [neither; 3]]
        }
        Event::SampledWithReplacement { batch, records, event } => drawn(*batch, *records, event, most),
        Event::RandomizedResponse { .. } | Event::Renyi { .. } => vec![[1.0; 3]],
        // Losses of ±ε/2 have range ε.
        Event::Exponential { epsilon } => guaranteed(epsilon.get() / 2.0, 0.0),
        Event::Pure { epsilon } => guaranteed(epsilon.get(), 0.0),
        Event::Approximate { epsilon, delta } => guaranteed(epsilon.get(), delta.get()),
        Event::NonPrivate => guaranteed(0.0, 1.0),
        Event::HiddenState { noise_multiplier, contraction, steps, diameter } => {
            // Linear maps; on a domain, maps that forget all iterates but the last.
            let steps = if diameter.is_some() { 1 } else { (*steps).min(10_000) };
            let (mut apart, mut variance) = (0.0, 0.0);
            for _ in 0..steps {
                let c = contraction.get();
                (apart, variance) = (c * apart + 1.0, c * c * variance + 1.0);
            }
            // Beyond that, losses are out of range here. A smaller shift is attained, too.
            let shift = (apart / f64::sqrt(variance) / noise_multiplier.get()).min(8.0);
            gaussian(shift, true, most)
        }
        Event::BestOf { expected, trials } => {
            best(1.0 / f64::from(*expected), bins(&trials[0], neighbors, most))
        }
        Event::PoissonSampled { rate, event } => sampled(rate.get(), bins(event, neighbors, most)),
        Event::SampledWithoutReplacement { batch, records, event } => {
            sampled(*batch as f64 / *records as f64, bins(event, neighbors, most))
        }
        Event::Composed(events) => events
            .iter()
            .map(|event| bins(event, neighbors, FEW))
            .fold(vec![[1.0; 3]], |all, one| both(&all, &one)),
        Event::Repeated { count, event } => (0..*count.min(&2))
            .map(|_| bins(event, neighbors, FEW))
            .fold(vec![[1.0; 3]], |all, one| both(&all, &one)),
        // A record whose loss has constant slope shifts the linear term.
        Event::PerturbedObjective { noise_multiplier, .. } => {
            gaussian(1.0 / noise_multiplier.get(), true, most)
        }
    }
}

/// The best of a geometric number of trials of one kind. The likelier a bin is with the record, the better.
///
/// The generating function is f(x) = γx/(1 - (1 - γ)x), and a bin between a and b has f(b) - f(a) =
/// γ(b - a)/((1 - (1 - γ)a)(1 - (1 - γ)b)).
fn best(stop: f64, mut bins: Bins) -> Bins {
    let ratio = |bin: &[f64; 3]| if bin[HERE] > 0.0 { bin[ABSENT] / bin[HERE] } else { f64::INFINITY };
    bins.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let mut above = [0.0; 3];
    for bin in &mut bins {
        for side in [ABSENT, HERE, OTHER] {
            let mass = bin[side];
            let rest = |above: f64| stop + (1.0 - stop) * above;
            bin[side] = stop * mass / (rest(above[side]) * rest(above[side] + mass));
            above[side] += mass;
        }
    }
    bins
}

/// Two releases on the same records.
fn both(one: &Bins, other: &Bins) -> Bins {
    one.iter().flat_map(|a| other.iter().map(|b| std::array::from_fn(|i| a[i] * b[i]))).collect()
}

/// The record enters the sample with this probability.
fn sampled(rate: f64, bins: Bins) -> Bins {
    let mix = |absent: f64, there: f64| (1.0 - rate) * absent + rate * there;
    bins.into_iter().map(|[absent, here, other]| [absent, mix(absent, here), mix(absent, other)]).collect()
}

/// A sample with replacement, in which all other records contribute nothing.
///
/// The output is noise around the contribution of the record times the number of its draws, up or down.
fn drawn(batch: u64, records: u64, event: &Event, most: usize) -> Bins {
    let above: Box<dyn Fn(f64) -> f64> = match event {
        Event::Gaussian { noise_multiplier } => {
            let sigma = noise_multiplier.get();
            Box::new(move |x| 0.5 * libm::erfc(x / sigma * std::f64::consts::FRAC_1_SQRT_2))
        }
        Event::Laplace { noise_multiplier } => {
            let scale = noise_multiplier.get();
            Box::new(move |x| if x > 0.0 { 0.5 * (-x / scale).exp() } else { 1.0 - 0.5 * (x / scale).exp() })
        }
        _ => return vec![[1.0; 3]],
    };
    let between =
        |low: f64, high: f64| if low > 0.0 { above(low) - above(high) } else { above(-high) - above(-low) };
    let times = times_drawn(batch, records);
    let farthest =
        times.iter().filter(|(_, chance)| *chance > 1e-3).map(|(times, _)| *times).fold(1.0, f64::max);
    let (Event::Gaussian { noise_multiplier } | Event::Laplace { noise_multiplier }) = event else {
        return vec![[1.0; 3]];
    };
    let reach = farthest + 6.0 * noise_multiplier.get();
    let around = |sign: f64, e: &[f64]| -> f64 {
        times.iter().map(|(times, chance)| chance * between(e[0] - sign * times, e[1] - sign * times)).sum()
    };
    let bins = edges(-reach, reach, most);
    let bins = bins.windows(2).map(|e| [between(e[0], e[1]), around(1.0, e), around(-1.0, e)]);
    // What was left out of the number of draws must not show: the attacker does not look at bins of that
    // size.
    bins.filter(|bin: &[f64; 3]| bin.iter().all(|p| *p > 1e-25)).collect()
}

/// How often a record is among `batch` draws, with probabilities.
///
/// Probabilities below 1e-40 are left out.
fn times_drawn(batch: u64, records: u64) -> Vec<(f64, f64)> {
    let (m, n) = (batch as f64, records as f64);
    if records == 1 {
        return vec![(m, 1.0)];
    }
    let mut ln_chance = m * (-1.0 / n).ln_1p();
    let mut times = Vec::new();
    for j in 0..=batch {
        let j = j as f64;
        if ln_chance > -92.0 {
            times.push((j, ln_chance.exp()));
        } else if j > m / n {
            break;
        }
        ln_chance += ((m - j) / (j + 1.0)).ln() - (n - 1.0).ln();
    }
    times
}

/// The mechanism that has a guarantee and no better one.
///
/// The replacement has the same effect as no record.
fn guaranteed(epsilon: f64, delta: f64) -> Bins {
    let (likely, unlikely) =
        ((1.0 - delta) / (1.0 + (-epsilon).exp()), (1.0 - delta) / (1.0 + epsilon.exp()));
    vec![[unlikely, likely, unlikely], [likely, unlikely, likely], [0.0, delta, 0.0], [delta, 0.0, delta]]
}

/// N(0, 1), N(μ, 1), and N(-μ, 1) or N(0, 1) again.
fn gaussian(mu: f64, additive: bool, most: usize) -> Bins {
    let above = |x: f64| 0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2);
    let between =
        |low: f64, high: f64| if low > 0.0 { above(low) - above(high) } else { above(-high) - above(-low) };
    let (from, to) = (if additive { -mu - 9.0 } else { -9.0 }, mu + 9.0);
    let edges = edges(from, to, most);
    let other = if additive { -mu } else { 0.0 };
    edges.windows(2).map(|e| [0.0, mu, other].map(|centre| between(e[0] - centre, e[1] - centre))).collect()
}

/// Laplace noise of scale 1/`epsilon` around 0, 1 and -1. Beyond these, losses are constant.
fn laplace(epsilon: f64, most: usize) -> Bins {
    let above = |x: f64| if x > 0.0 { 0.5 * (-epsilon * x).exp() } else { 1.0 - 0.5 * (epsilon * x).exp() };
    let between =
        |low: f64, high: f64| if low > 0.0 { above(low) - above(high) } else { above(-high) - above(-low) };
    edges(-1.0, 1.0, most)
        .windows(2)
        .map(|e| [0.0, 1.0, -1.0].map(|centre| between(e[0] - centre, e[1] - centre)))
        .collect()
}

/// From -∞ over evenly spaced points to ∞.
fn edges(from: f64, to: f64, most: usize) -> Vec<f64> {
    let inner = (0..=most - 2).map(|i| from + (to - from) * i as f64 / (most - 2) as f64);
    std::iter::once(f64::NEG_INFINITY).chain(inner).chain([f64::INFINITY]).collect()
}

/// Noise on the integers, around 0, k and -k.
///
/// The attacker leaves out numbers far from zero.
fn integers(shift: u32, reach: i64, most: usize, weight: impl Fn(i64) -> f64) -> Bins {
    let shift = i64::from(shift);
    let total: f64 = (-reach..=reach).map(&weight).sum();
    let all: Vec<i64> = (-reach..=reach).collect();
    let bin = |numbers: &[i64]| {
        [0, shift, -shift].map(|centre| numbers.iter().map(|n| weight(n - centre) / total).sum())
    };
    all.chunks(all.len().div_ceil(most))
        .map(bin)
        .filter(|bin: &[f64; 3]| bin.iter().all(|p| *p > 0.0))
        .collect()
}

/// Losses with their probabilities, and the probability of an infinite loss.
struct Losses {
    finite: Vec<(f64, f64)>,
    infinite: f64,
}

fn losses(bins: &Bins, p: usize, q: usize) -> Losses {
    let finite = bins
        .iter()
        .filter(|bin| bin[p] > 0.0 && bin[q] > 0.0)
        .map(|bin| ((bin[p] / bin[q]).ln(), bin[p]))
        .collect();
    let infinite = bins.iter().filter(|bin| bin[q] == 0.0).map(|bin| bin[p]).sum();
    Losses { finite, infinite }
}

/// Nodes of the grid.
const NODES: usize = 1200;

fn solve(parts: &[(Losses, u64)], delta: f64) -> f64 {
    let moments = |part: &Losses| {
        let mean: f64 = part.finite.iter().map(|(loss, p)| p * loss).sum();
        let square: f64 = part.finite.iter().map(|(loss, p)| p * loss * loss).sum();
        (mean, (square - mean * mean).max(0.0))
    };
    let (mut mean, mut variance, mut top) = (0.0, 0.0, 0.0);
    for (part, count) in parts {
        let (m, v) = moments(part);
        mean += *count as f64 * m;
        variance += *count as f64 * v;
        top += *count as f64 * part.finite.iter().map(|(loss, _)| *loss).fold(0.0, f64::max);
    }
    // The window: to where δ is decided, or to the largest loss.
    let high = (mean + (2.0 * -delta.ln()).sqrt().max(6.0) * variance.sqrt() * 1.5).min(top);
    let low = -4.0 * variance.sqrt() - 0.1;
    let h = ((high - low) / NODES as f64).max(1e-12);
    let bottom = (low / h).floor() as i64;
    let mut sum = Grid { bottom, masses: vec![0.0; NODES + 2] };
    sum.add(0, 1.0);
    let mut spared = 0.0;
    for (part, count) in parts {
        spared += *count as f64 * (-part.infinite).ln_1p();
        let mut power = Grid { bottom, masses: vec![0.0; NODES + 2] };
        part.finite.iter().for_each(|(loss, p)| power.add((loss / h).floor() as i64, *p));
        let mut left = *count;
        while left > 0 {
            if left % 2 == 1 {
                sum = sum.convolved(&power);
            }
            left /= 2;
            if left > 0 {
                power = power.convolved(&power);
            }
        }
    }
    // What is known to be infinite, and the finite losses.
    let infinite = -spared.exp_m1();
    let advantage = |epsilon: f64| {
        let payoff =
            |(i, p): (usize, &f64)| p * -(epsilon - (bottom + i as i64) as f64 * h).min(0.0).exp_m1();
        (infinite + sum.masses.iter().enumerate().map(payoff).sum::<f64>()) * (1.0 - 1e-9)
    };
    if infinite * (1.0 - 1e-9) > delta {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, high.max(0.0) + h);
    if advantage(0.0) <= delta {
        return 0.0;
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if advantage(middle) > delta { low = middle } else { high = middle }
    }
    low
}

/// Masses at (bottom + i)h.
///
/// Mass below the grid is left out, and mass above it is moved to the top. Both lower every advantage.
struct Grid {
    bottom: i64,
    masses: Vec<f64>,
}

impl Grid {
    fn add(&mut self, index: i64, mass: f64) {
        let place = index - self.bottom;
        if place >= 0 {
            let last = self.masses.len() - 1;
            self.masses[(place as usize).min(last)] += mass;
        }
    }

    fn convolved(&self, other: &Self) -> Self {
        let mut sum = Self { bottom: self.bottom, masses: vec![0.0; self.masses.len()] };
        let last = self.masses.len() as i64 - 1;
        for (i, a) in self.masses.iter().enumerate().filter(|(_, a)| **a > 1e-30) {
            // (bottom + i) + (bottom + j) - bottom
            let shift = self.bottom + i as i64;
            for (j, b) in other.masses.iter().enumerate() {
                let place = shift + j as i64;
                if place >= 0 {
                    sum.masses[place.min(last) as usize] += a * b;
                }
            }
        }
        sum
    }
}
