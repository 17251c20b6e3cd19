//! Few huge losses beside one continuous release, compared with the exact profile.
//!
//! The attacker of `attack.rs` bins what he sees, so he is too coarse for losses of several hundred. Here
//! every outcome of the discrete releases is listed with the logarithms of its two probabilities. The profile
//! of the whole event is then a sum of closed forms, all of them positive.

use std::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};

use quell_privacy::{
    Event, Neighbors,
    accounting::Pld,
    units::{Delta, Epsilon, NoiseMultiplier, SamplingRate},
};

use super::{events::Chance, on_all_cores};

/// ln P of one outcome without the record, and with it.
type Outcome = [f64; 2];

/// Cases in `make test`.
const CASES: u64 = 500;

/// Widths of the bracket that are asked for.
const TIGHTNESSES: [f64; 6] = [1e-3, 0.5, 0.1, 0.03, 1e-4, 1e-5];

#[test]
fn few_huge_losses_cost_what_they_cost() {
    let (finite, faults) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    on_all_cores(0..CASES, |number| {
        let (is_finite, fault) = examine(number);
        finite.fetch_add(u64::from(is_finite), Ordering::Relaxed);
        faults.lock().unwrap().extend(fault);
    });
    let (faults, finite) = (faults.into_inner().unwrap(), finite.into_inner());
    println!("{CASES} cases with huge losses, {finite} finite bounds");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert!(finite >= CASES * 9 / 10, "only {finite} finite bounds");
}

/// Whether the bound of a case is finite, and what is wrong with it.
fn examine(number: u64) -> (bool, Option<String>) {
    let mut chance = Chance::new(number.wrapping_add(0x6875_6765));
    let (event, profile) = match number % 5 {
        0 => beside_noise(underflowing(&mut chance), &mut chance),
        1 => many(&mut chance),
        2 => nearly_certain(&mut chance),
        _ => beside_noise(discrete(&mut chance), &mut chance),
    };
    let delta = profile.interesting_delta(&mut chance);
    let relative = TIGHTNESSES[chance.below(6) as usize];
    let pld = Pld { relative, absolute: 0.1 * relative, ..Pld::default() };
    let bound = pld.epsilon(&event, Neighbors::AddRemove, Delta::new(delta).unwrap()).unwrap();
    // Losses of the oracle are off by 1e-12 of their size, and ln δ moves by up to 1e3 per unit of loss.
    let too_low = bound.upper.is_finite() && profile.delta(bound.upper) > delta * (1.0 + 1e-7);
    let too_high = bound.lower > 0.0 && profile.delta(bound.lower) < delta * (1.0 - 1e-7);
    let fault = (too_low || too_high).then(|| {
        format!(
            "case {number}: {} δ = {delta:e}, tightness {relative}: {bound:?}, where δ is {:e} and {:e}",
            serde_json::to_string(&event).unwrap(),
            profile.delta(bound.lower),
            profile.delta(bound.upper),
        )
    });
    (bound.upper.is_finite(), fault)
}

fn beside_noise(discrete: Event, chance: &mut Chance) -> (Event, Profile) {
    let noise = Noise::random(chance);
    let outcomes = outcomes(&discrete);
    (Event::Composed(vec![discrete, noise.event()]), Profile { outcomes, noise })
}

/// The release that makes the accountant use a grid.
#[derive(Clone, Copy)]
enum Noise {
    None,
    Gaussian(f64),
    Laplace(f64),
}

impl Noise {
    fn random(chance: &mut Chance) -> Self {
        let scale = chance.magnitude(-3.0, 1.3);
        if chance.below(2) == 0 { Self::Gaussian(scale) } else { Self::Laplace(scale) }
    }

    fn event(self) -> Event {
        match self {
            Self::None => Event::Composed(vec![]),
            Self::Gaussian(scale) => Event::gaussian(NoiseMultiplier::new(scale).unwrap()),
            Self::Laplace(scale) => Event::laplace(NoiseMultiplier::new(scale).unwrap()),
        }
    }

    /// δ(ε) = P[L > ε] - e^ε Q[L > ε], for every real ε.
    fn delta(self, epsilon: f64) -> f64 {
        match self {
            Self::None => -epsilon.min(0.0).exp_m1(),
            Self::Gaussian(scale) => {
                let mu = 1.0 / scale;
                let (p, q) = (ln_above(epsilon / mu - mu / 2.0), epsilon + ln_above(epsilon / mu + mu / 2.0));
                // P - e^ε Q
                p.exp() * -(q - p).min(0.0).exp_m1()
            }
            Self::Laplace(scale) if epsilon >= 1.0 / scale => 0.0,
            Self::Laplace(scale) if epsilon > -1.0 / scale => -(0.5 * (epsilon - 1.0 / scale)).exp_m1(),
            Self::Laplace(_) => -epsilon.exp_m1(),
        }
    }
}

/// ln of the probability that a standard normal variable is above x.
fn ln_above(x: f64) -> f64 {
    if x < 20.0 {
        return (0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2)).ln();
    }
    // Mills' ratio, as an asymptotic series.
    let s = x.powi(-2);
    let series = 1.0 - s * (1.0 - 3.0 * s * (1.0 - 5.0 * s * (1.0 - 7.0 * s * (1.0 - 9.0 * s))));
    -0.5 * x * x - (x * std::f64::consts::TAU.sqrt()).ln() + series.ln()
}

struct Profile {
    outcomes: Vec<Outcome>,
    noise: Noise,
}

impl Profile {
    fn delta(&self, epsilon: f64) -> f64 {
        let one_way = |p: usize, q: usize| -> f64 {
            let payoff = |outcome: &Outcome| {
                let loss = outcome[p] - outcome[q];
                outcome[p].exp() * if loss == f64::INFINITY { 1.0 } else { self.noise.delta(epsilon - loss) }
            };
            self.outcomes.iter().filter(|outcome| outcome[p] > f64::NEG_INFINITY).map(payoff).sum()
        };
        one_way(1, 0).max(one_way(0, 1))
    }

    /// A large δ, an ordinary one, or one next to a loss.
    fn interesting_delta(&self, chance: &mut Chance) -> f64 {
        match chance.below(4) {
            0 => return chance.magnitude(-14.0, -1.0),
            1 => return 0.05 + 0.9 * chance.unit(),
            _ => {}
        }
        let losses: Vec<f64> = self
            .outcomes
            .iter()
            .map(|[absent, here]| here - absent)
            .filter(|loss| loss.is_finite())
            .collect();
        let loss = losses[chance.below(losses.len() as u64) as usize];
        let near = (loss + 4.0 * (chance.unit() - 0.5)).max(0.0);
        (self.delta(near) * (0.5 + chance.unit())).clamp(1e-280, 0.9)
    }
}

/// A few releases with few losses, most of them huge.
fn discrete(chance: &mut Chance) -> Event {
    let leaves = 1 + chance.below(4);
    let mut parts: Vec<Event> = Vec::new();
    let mut left = leaves;
    while left > 0 {
        let together = 1 + chance.below(left.min(2));
        left -= together;
        let inner: Vec<Event> = (0..together).map(|_| leaf(chance)).collect();
        let inner = if together == 1 { inner[0].clone() } else { Event::Composed(inner) };
        parts.push(if chance.below(3) == 0 {
            inner
        } else {
            let rate = match chance.below(3) {
                0 => 1.0 - chance.magnitude(-16.0, -0.5),
                _ => chance.magnitude(-15.0, 0.0),
            };
            inner.poisson_sampled(SamplingRate::new(rate).unwrap())
        });
    }
    Event::Composed(parts)
}

/// A rarely sampled release whose probability without the record underflows.
///
/// With the record its loss is in range.
fn underflowing(chance: &mut Chance) -> Event {
    let rate = chance.magnitude(-15.0, -8.0);
    let loss = 709.7 - 9.0 * chance.unit();
    let pure = Event::Pure { epsilon: Epsilon::new(loss - rate.ln()).unwrap() };
    pure.poisson_sampled(SamplingRate::new(rate).unwrap())
}

/// A sample with nearly every record, beside ordinary samples.
///
/// The loss of an added record decides.
fn nearly_certain(chance: &mut Chance) -> (Event, Profile) {
    let sampled = |rate: f64, epsilon: f64| {
        Event::Pure { epsilon: Epsilon::new(epsilon).unwrap() }
            .poisson_sampled(SamplingRate::new(rate).unwrap())
    };
    let ordinary = sampled(0.5 + 0.49 * chance.unit(), 0.5 + 2.5 * chance.unit());
    let mut parts = vec![ordinary; 1 + chance.below(8) as usize];
    parts.push(sampled(1.0 - chance.magnitude(-16.0, -9.0), 5.0 + 32.0 * chance.unit()));
    let event = Event::Composed(parts);
    if chance.below(2) == 0 {
        return beside_noise(event, chance);
    }
    let outcomes = outcomes(&event);
    (event, Profile { outcomes, noise: Noise::None })
}

/// Many repetitions of large losses.
///
/// There are too many sums to list, but few have a relevant probability. Outcomes are listed with the record,
/// down to a probability of e^-90; without it they are the mirror image.
fn many(chance: &mut Chance) -> (Event, Profile) {
    let mut outcomes: Vec<Outcome> = vec![[0.0; 2]];
    let mut parts = Vec::new();
    for _ in 0..4 + chance.below(3) {
        let (epsilon, count) = (8.0 + chance.magnitude(0.0, 1.8), 20 + chance.below(40));
        parts.push(Event::Pure { epsilon: Epsilon::new(epsilon).unwrap() }.repeated(count));
        let likely = -(-epsilon).exp().ln_1p();
        let mut ln_ways = 0.0;
        let mut one: Vec<Outcome> = Vec::new();
        for k in 0..=count {
            let (k, others) = (k as f64, (count - k) as f64);
            let both = ln_ways + count as f64 * likely;
            one.push([both - others * epsilon, both - k * epsilon]);
            ln_ways += (others / (k + 1.0)).ln();
        }
        outcomes = outcomes
            .iter()
            .flat_map(|a| one.iter().map(|b| [a[0] + b[0], a[1] + b[1]]))
            .filter(|outcome| outcome[1] > -90.0)
            .collect();
    }
    (Event::Composed(parts), Profile { outcomes, noise: Noise::None })
}

fn leaf(chance: &mut Chance) -> Event {
    let loss = match chance.below(3) {
        0 => chance.magnitude(-1.0, 3.3),
        // Around where e^ε and e^-ε leave the range of double precision.
        1 => 690.0 + 70.0 * chance.unit(),
        _ => chance.magnitude(1.0, 3.0),
    };
    let epsilon = Epsilon::new(loss).unwrap();
    if chance.below(4) == 0 {
        Event::Approximate { epsilon, delta: Delta::new(chance.magnitude(-40.0, -3.0)).unwrap() }
    } else {
        Event::Pure { epsilon }
    }
}

/// Every outcome of the mechanisms that have these guarantees and no better ones.
fn outcomes(event: &Event) -> Vec<Outcome> {
    let guaranteed = |epsilon: f64, delta: f64| {
        let likely = (-delta).ln_1p() - (-epsilon).exp().ln_1p();
        let unlikely = likely - epsilon;
        let mut outcomes = vec![[unlikely, likely], [likely, unlikely]];
        if delta > 0.0 {
            outcomes.extend([[f64::NEG_INFINITY, delta.ln()], [delta.ln(), f64::NEG_INFINITY]]);
        }
        outcomes
    };
    match event {
        Event::Pure { epsilon } => guaranteed(epsilon.get(), 0.0),
        Event::Approximate { epsilon, delta } => guaranteed(epsilon.get(), delta.get()),
        Event::PoissonSampled { rate, event } => {
            let (ln_in, ln_out) = (rate.get().ln(), (-rate.get()).ln_1p());
            let mix = |absent: f64, here: f64| {
                let (a, b) = (ln_out + absent, ln_in + here);
                if a == f64::NEG_INFINITY || b == f64::NEG_INFINITY {
                    return a.max(b);
                }
                a.max(b) + (-(a - b).abs()).exp().ln_1p()
            };
            outcomes(event).into_iter().map(|[absent, here]| [absent, mix(absent, here)]).collect()
        }
        Event::Composed(events) => events.iter().map(outcomes).fold(vec![[0.0; 2]], |all, one| {
            all.iter().flat_map(|a| one.iter().map(|b| [a[0] + b[0], a[1] + b[1]])).collect()
        }),
        other => unreachable!("{} is not made here", other.name()),
    }
}
