//! Generates random events: every variant, nested, with parameters from ordinary to extreme.

use quell_privacy::{
    Event, Neighbors,
    units::{
        Contraction, CurvatureRatio, Delta, Diameter, Epsilon, NoiseMultiplier, Order, Probability, Rho,
        SamplingRate, Scale,
    },
};

/// A stream of random numbers that is the same on every machine (SplitMix64).
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        // Streams of neighbouring seeds must not be shifts of each other.
        let mut seeded = Self(seed.wrapping_mul(0xD134_2543_DE82_EF95));
        Self(seeded.bits())
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform on [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform on 0, …, `count` - 1.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        (self.unit() * count as f64) as u64
    }

    /// 10^x with x uniform on [low, high).
    pub(crate) fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        10_f64.powf(low + (high - low) * self.unit())
    }

    fn count(&mut self, largest: f64) -> u64 {
        self.magnitude(0.0, largest) as u64
    }
}

/// A question for all accountants.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) event: Event,
    pub(crate) neighbors: Neighbors,
    pub(crate) delta: Delta,
    /// Orders at which Rényi divergences are compared.
    pub(crate) orders: [f64; 2],
}

impl Case {
    /// The case with this number, the same on every machine.
    pub(crate) fn numbered(number: u64) -> Self {
        let mut chance = Chance::new(number);
        let neighbors = if chance.below(3) == 0 { Neighbors::Replace } else { Neighbors::AddRemove };
        let delta = match chance.below(10) {
            0 => chance.magnitude(-100.0, -15.0),
            1 => 0.9 * chance.unit() + 1e-6,
            _ => chance.magnitude(-14.0, -2.0),
        };
        let event = match number % 10 {
            0 => sampled_integers(&mut chance),
            7 => huge_losses(&mut chance),
            5 => {
                let (event, high) = rarely_sampled_integers(&mut chance);
                return Self { event, neighbors, delta: Delta::new(delta).unwrap(), orders: [2.0, high] };
            }
            _ => composition(&mut chance, neighbors, 2),
        };
        let orders = [1.0 + chance.magnitude(-1.5, 0.5), chance.magnitude(0.5, 1.8)];
        Self { event, neighbors, delta: Delta::new(delta).unwrap(), orders }
    }
}

/// One release several times, several releases, or compositions of those.
fn composition(chance: &mut Chance, neighbors: Neighbors, depth: u32) -> Event {
    match chance.below(if depth > 0 { 33 } else { 32 }) / 4 {
        8 => {
            let trials = (0..=chance.below(2)).map(|_| composition(chance, neighbors, 0)).collect();
            Event::BestOf { expected: 1 + chance.count(2.5) as u32, trials }
        }
        0..=2 => release(chance, neighbors),
        3..=5 => release(chance, neighbors).repeated(chance.count(3.5)),
        6 if depth > 0 => {
            let parts = 1 + chance.below(3);
            Event::Composed((0..parts).map(|_| composition(chance, neighbors, depth - 1)).collect())
        }
        6 => Event::Composed(vec![]),
        _ if depth > 0 => composition(chance, neighbors, depth - 1).repeated(chance.below(6)),
        _ => release(chance, neighbors).repeated(2),
    }
}

/// A release on all records, or on a sample of them.
fn release(chance: &mut Chance, neighbors: Neighbors) -> Event {
    let rate = |chance: &mut Chance| {
        let rate = if chance.below(4) == 0 { chance.unit() } else { chance.magnitude(-6.0, 0.0) };
        SamplingRate::new(rate.max(1e-6)).unwrap()
    };
    match chance.below(10) {
        0..=4 => leaf(chance),
        5 | 6 => leaf(chance).poisson_sampled(rate(chance)),
        7 => {
            // Gaussian noise on a sample is what most people ask about.
            let gaussian = Event::gaussian(NoiseMultiplier::new(chance.magnitude(-0.3, 1.0)).unwrap());
            gaussian.poisson_sampled(rate(chance))
        }
        8 if neighbors == Neighbors::Replace || chance.below(20) == 0 => {
            let records = 1 + chance.count(5.0);
            let batch = 1 + chance.below(records.min(1000));
            let event = Box::new(leaf(chance));
            if chance.below(2) == 0 {
                Event::SampledWithoutReplacement { batch, records, event }
            } else {
                Event::SampledWithReplacement { batch, records, event }
            }
        }
        8 => leaf(chance).poisson_sampled(rate(chance)).poisson_sampled(rate(chance)),
        _ => {
            let inner = leaf(chance);
            let inner = if chance.below(2) == 0 {
                inner.repeated(2)
            } else {
                Event::Composed(vec![inner, leaf(chance)])
            };
            inner.poisson_sampled(rate(chance))
        }
    }
}

fn leaf(chance: &mut Chance) -> Event {
    let noise = |value: f64| NoiseMultiplier::new(value).unwrap();
    let epsilon = |value: f64| Epsilon::new(value).unwrap();
    match chance.below(34) {
        32 | 33 => {
            // From no contraction to forgetting everything, with and without a domain.
            let contraction = 1.0 - chance.magnitude(-8.0, 0.0) * f64::from(u8::from(chance.below(4) > 0));
            Event::HiddenState {
                noise_multiplier: noise(chance.magnitude(-0.5, 2.5)),
                contraction: Contraction::new(contraction).unwrap(),
                steps: chance.count(5.0),
                diameter: (chance.below(2) == 0).then(|| Diameter::new(chance.magnitude(-2.0, 5.0)).unwrap()),
            }
        }
        0..=4 => Event::gaussian(noise(chance.magnitude(-0.7, 2.5))),
        5..=8 => Event::laplace(noise(chance.magnitude(-0.7, 2.5))),
        9..=12 => {
            let deviation = Scale::new(chance.magnitude(-0.5, 2.0)).unwrap();
            Event::DiscreteGaussian { deviation, sensitivity: 1 + chance.below(4) as u32 }
        }
        13..=15 => {
            let scale = Scale::new(chance.magnitude(-0.5, 2.0)).unwrap();
            Event::DiscreteLaplace { scale, sensitivity: 1 + chance.below(4) as u32 }
        }
        16 | 17 => {
            let randomized = if chance.below(20) == 0 { 0.0 } else { chance.magnitude(-3.0, 0.0) };
            Event::RandomizedResponse {
                choices: 2 + chance.below(5) as u32,
                randomized: Probability::new(randomized).unwrap(),
            }
        }
        18..=20 => Event::Exponential { epsilon: epsilon(chance.magnitude(-3.0, 0.7)) },
        21..=23 => Event::Pure { epsilon: epsilon(chance.magnitude(-3.0, 0.7)) },
        24..=26 => {
            let delta = Delta::new(chance.magnitude(-16.0, -4.0)).unwrap();
            Event::Approximate { epsilon: epsilon(chance.magnitude(-3.0, 0.7)), delta }
        }
        27 | 28 => Event::ZeroConcentrated { rho: Rho::new(chance.magnitude(-6.0, 0.5)).unwrap() },
        29 | 30 => {
            // The curve of some Gaussian, at some orders.
            let rho = chance.magnitude(-5.0, 0.0);
            let mut order = 1.0 + chance.magnitude(-2.5, 0.7);
            let mut curve = Vec::new();
            for _ in 0..=chance.below(6) {
                curve.push((Order::new(order).unwrap(), epsilon(rho * order)));
                order += chance.magnitude(-1.0, 1.5);
            }
            Event::Renyi { curve }
        }
        _ if chance.below(4) == 0 => Event::NonPrivate,
        _ if chance.below(3) > 0 => Event::PerturbedObjective {
            noise_multiplier: noise(chance.magnitude(-0.7, 2.0)),
            curvature_ratio: CurvatureRatio::new(chance.magnitude(-4.0, 1.0)).unwrap(),
        },
        _ => Event::Pure { epsilon: epsilon(0.0) },
    }
}

/// Sampled releases with finitely many losses in memory.
///
/// Rényi bounds were once too small for them.
fn sampled_integers(chance: &mut Chance) -> Event {
    let rate = SamplingRate::new(chance.magnitude(-2.5, 0.0)).unwrap();
    let release = match chance.below(3) {
        0 => Event::Pure { epsilon: Epsilon::new(chance.magnitude(-1.0, 0.5)).unwrap() },
        1 => {
            Event::DiscreteLaplace { scale: Scale::new(chance.magnitude(-0.3, 1.0)).unwrap(), sensitivity: 1 }
        }
        _ => Event::DiscreteGaussian {
            deviation: Scale::new(chance.magnitude(0.5, 2.0)).unwrap(),
            sensitivity: 1 + chance.below(4) as u32,
        },
    };
    release.poisson_sampled(rate).repeated(1 + chance.below(12))
}

/// A few releases of which nearly every loss is the largest.
///
/// They need steep tilts of few atoms, on a sample or not.
fn huge_losses(chance: &mut Chance) -> Event {
    let part = |chance: &mut Chance| {
        let loss = chance.magnitude(0.8, 2.0);
        match chance.below(3) {
            0 => Event::Pure { epsilon: Epsilon::new(loss).unwrap() },
            1 => Event::DiscreteLaplace { scale: Scale::new(1.0 / loss).unwrap(), sensitivity: 1 },
            _ => {
                let delta = Delta::new(chance.magnitude(-40.0, -14.0)).unwrap();
                Event::Approximate { epsilon: Epsilon::new(loss).unwrap(), delta }
            }
        }
    };
    let inner = match chance.below(3) {
        0 => part(chance).repeated(2 + chance.below(3)),
        1 => Event::Composed((0..2 + chance.below(2)).map(|_| part(chance)).collect()),
        _ => part(chance),
    };
    match chance.below(4) {
        0 => inner.repeated(1 + chance.below(3)),
        1 => inner.poisson_sampled(SamplingRate::new(1.0 - chance.magnitude(-12.0, -0.5)).unwrap()),
        _ => inner.poisson_sampled(SamplingRate::new(chance.magnitude(-4.0, 0.0)).unwrap()),
    }
}

/// A few rarely sampled releases of discrete Gaussian noise, at a large order.
///
/// At that order losses beyond 39 deviations decide the divergence. Losses in memory do not include these.
/// Their probability is 1e-330, so that no ε at a δ shows whether they were forgotten. A divergence does.
fn rarely_sampled_integers(chance: &mut Chance) -> (Event, f64) {
    let rate = chance.magnitude(-3.5, -0.5);
    let sensitivity = 1 + chance.below(4) as u32;
    let ratio = chance.magnitude(0.0, 1.5);
    let deviation = Scale::new(ratio * f64::from(sensitivity)).unwrap();
    let release = Event::DiscreteGaussian { deviation, sensitivity };
    let event = release.poisson_sampled(SamplingRate::new(rate).unwrap()).repeated(1 + chance.below(4));
    (event, (39.0 * ratio * chance.magnitude(0.0, 1.5)).ceil())
}
