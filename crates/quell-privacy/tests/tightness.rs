//! Upper bounds are finite and near the truth.
//!
//! This is tested where the truth is known, and on random events of every kind.

use quell_privacy::{
    Bound, Event, Neighbors,
    accounting::Pld,
    units::{Delta, Epsilon, NoiseMultiplier, Probability, SamplingRate, Scale},
};

fn epsilon(event: &str, neighbors: Neighbors, delta: f64) -> Bound {
    let event: Event = serde_json::from_str(event).unwrap();
    Pld::default().epsilon(&event, neighbors, Delta::new(delta).unwrap()).unwrap()
}

fn assert_near(bound: Bound, truth: f64) {
    assert!(bound.upper >= truth * (1.0 - 1e-6), "{bound:?} claims less than {truth}");
    assert!(bound.upper <= truth * 1.002 + 2e-4, "{bound:?} is far above {truth}");
    assert!(bound.lower <= bound.upper, "{bound:?}");
}

#[test]
fn rarely_sampled_gaussians_have_finite_and_tight_bounds() {
    let once = r#"{"repeated":{"count":1484,"event":{"poisson_sampled":{"rate":3.2937108356977674e-05,"event":{"gaussian":{"noise_multiplier":1.0}}}}}}"#;
    assert_near(epsilon(once, Neighbors::AddRemove, 3.399_461_774_032_997e-9), 0.00899);
    let exchanged = r#"{"repeated":{"count":155371,"event":{"poisson_sampled":{"rate":7.1144760906088326e-06,"event":{"gaussian":{"noise_multiplier":1.0340158133487825}}}}}}"#;
    assert_near(epsilon(exchanged, Neighbors::Replace, 3.907_589_777_805_355e-12), 0.03359);
}

#[test]
fn laplace_whose_last_landmark_is_rounded_down_is_bounded_tightly() {
    let event = r#"{"repeated":{"count":1134,"event":{"laplace":{"noise_multiplier":34.90907740997051}}}}"#;
    assert_near(epsilon(event, Neighbors::AddRemove, 8.334_019_936_737_304e-11), 6.26838);
}

#[test]
fn few_losses_are_enumerated() {
    // Two (1, 1e-13): δ(ε) = 2e-13 - 1e-26 + ((1 - 1e-13)/(1 + 1/e))² (1 - e^(ε-2)).
    let two = epsilon(
        r#"{"repeated":{"count":2,"event":{"approximate":{"epsilon":1,"delta":1e-13}}}}"#,
        Neighbors::AddRemove,
        1e-8,
    );
    let square = (1.0 / (1.0 + (-1.0_f64).exp())).powi(2);
    let truth = 2.0 + (-(1e-8 - 2e-13) / square).ln_1p();
    assert!(two.lower <= truth && truth <= two.upper && two.upper - two.lower < 1e-9, "{two:?} {truth}");
    // Ten sampled pure releases, by a sum over the binomial distribution.
    let sampled = r#"{"repeated":{"count":10,"event":{"poisson_sampled":{"rate":0.5,"event":{"pure":{"epsilon":1.0}}}}}}"#;
    let bound = epsilon(sampled, Neighbors::AddRemove, 1e-9);
    let e = std::f64::consts::E;
    let high = 0.5 * e / (1.0 + e) + 0.5 / (1.0 + e); // P[loss = ln((1 + e)/2)]
    let (up, down) = (f64::midpoint(1.0, e).ln(), f64::midpoint(1.0, 1.0 / e).ln());
    let delta = |epsilon: f64| -> f64 {
        let mut ways = 1.0;
        let mut sum = 0.0;
        for k in 0..=10 {
            let loss = up * f64::from(k) + down * f64::from(10 - k);
            sum += ways * high.powi(k) * (1.0 - high).powi(10 - k) * (1.0 - (epsilon - loss).exp()).max(0.0);
            ways *= f64::from(10 - k) / f64::from(k + 1);
        }
        sum
    };
    assert!(
        delta(bound.lower) >= 1e-9 * (1.0 - 1e-5) && delta(bound.upper) <= 1e-9 * (1.0 + 1e-5),
        "{bound:?}"
    );
    assert!(bound.upper - bound.lower < 1e-9, "{bound:?}");
}

#[test]
fn losses_next_to_the_largest_are_rounded_up() {
    // Nothing is lost below the top atom of a sampled Laplace release: its loss is ln(1 + q(e^(1/z) - 1)).
    for (rate, noise) in [(0.3_f64, 0.7_f64), (0.017, 1.3), (0.81, 0.31)] {
        let event = Event::laplace(NoiseMultiplier::new(noise).unwrap())
            .poisson_sampled(SamplingRate::new(rate).unwrap());
        let bound = Pld::default().epsilon(&event, Neighbors::AddRemove, Delta::new(1e-17).unwrap()).unwrap();
        let top = (rate * (1.0 / noise).exp_m1()).ln_1p();
        // At δ = 1e-17 the truth is the top loss, to 16 digits.
        assert!(bound.upper >= top * (1.0 - 4.0 * f64::EPSILON), "{bound:?} {top}");
        assert!(bound.upper <= top + 1e-12, "{bound:?} {top}");
    }
}

#[test]
fn a_replaced_record_in_a_poisson_sample_costs_between_a_lost_one_and_one_in_a_sample_of_fixed_size() {
    let delta = Delta::new(1e-6).unwrap();
    let laplace = |noise: f64| {
        Event::laplace(NoiseMultiplier::new(noise).unwrap()).poisson_sampled(SamplingRate::new(0.01).unwrap())
    };
    for count in [1, 30] {
        let replaced =
            Pld::default().epsilon(&laplace(1.0).repeated(count), Neighbors::Replace, delta).unwrap();
        let lost =
            Pld::default().epsilon(&laplace(1.0).repeated(count), Neighbors::AddRemove, delta).unwrap();
        let fixed = Event::SampledWithoutReplacement {
            batch: 1,
            records: 100,
            event: Box::new(Event::laplace(NoiseMultiplier::new(1.0).unwrap())),
        };
        let fixed = Pld::default().epsilon(&fixed.repeated(count), Neighbors::Replace, delta).unwrap();
        assert!(
            replaced.lower >= 0.99 * lost.lower && replaced.upper <= fixed.upper * 1.003 + 3e-4,
            "{lost:?} {replaced:?} {fixed:?}"
        );
    }
    // A guarantee about replacing a record says nothing about losing it.
    let pure =
        Event::Pure { epsilon: Epsilon::new(1.0).unwrap() }.poisson_sampled(SamplingRate::new(0.01).unwrap());
    assert!(Pld::default().epsilon(&pure, Neighbors::Replace, delta).is_err());
}

#[test]
fn infinite_mass_beyond_delta_is_said_from_below_too() {
    let event = r#"{"composed":[{"repeated":{"count":22,"event":{"laplace":{"noise_multiplier":28.5}}}},{"repeated":{"count":14,"event":{"approximate":{"epsilon":0.1,"delta":1.8e-10}}}}]}"#;
    assert_eq!(
        epsilon(event, Neighbors::AddRemove, 2e-11),
        Bound { lower: f64::INFINITY, upper: f64::INFINITY }
    );
    assert!(epsilon(event, Neighbors::AddRemove, 3e-9).upper.is_finite());
}

/// SplitMix64: the same cases every time.
struct Cases(u64);

impl Cases {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A power of ten between 10^low and 10^high.
    fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        10_f64.powf(low + (high - low) * self.unit())
    }

    fn below(&mut self, n: u32) -> u32 {
        (self.unit() * f64::from(n)) as u32
    }

    /// A release whose dominating pair some mechanism attains.
    ///
    /// The width of its bracket therefore shows how loose the bounds are.
    fn attained(&mut self, neighbors: Neighbors) -> Event {
        let guarantee = |x: f64| Epsilon::new(x).unwrap();
        let kinds = if neighbors == Neighbors::Replace { 7 } else { 6 };
        let leaf = match self.below(kinds) {
            0 => Event::gaussian(NoiseMultiplier::new(self.magnitude(-0.3, 1.5)).unwrap()),
            1 => Event::laplace(NoiseMultiplier::new(self.magnitude(-0.3, 1.7)).unwrap()),
            2 => Event::DiscreteGaussian {
                deviation: Scale::new(self.magnitude(-0.3, 1.5)).unwrap(),
                sensitivity: 1 + self.below(3),
            },
            3 => Event::DiscreteLaplace {
                scale: Scale::new(self.magnitude(-0.3, 1.5)).unwrap(),
                sensitivity: 1 + self.below(3),
            },
            4 => Event::Pure { epsilon: guarantee(self.magnitude(-2.0, 0.5)) },
            5 => Event::Approximate {
                epsilon: guarantee(self.magnitude(-2.0, 0.5)),
                delta: Delta::new(self.magnitude(-20.0, -16.0)).unwrap(),
            },
            _ => Event::RandomizedResponse {
                choices: 2 + self.below(4),
                randomized: Probability::new(self.magnitude(-2.0, -0.05)).unwrap(),
            },
        };
        let sampled = self.unit() < 0.6;
        let gaussian = matches!(leaf, Event::Gaussian { .. });
        if sampled && (neighbors == Neighbors::AddRemove || gaussian) {
            return leaf.poisson_sampled(SamplingRate::new(self.magnitude(-6.0, -0.1)).unwrap());
        }
        leaf
    }
}

#[test]
fn brackets_of_random_compositions_are_narrow_and_finite() {
    let mut cases = Cases(20_261_116);
    let (mut narrow, mut total) = (0, 0);
    for case in 0..120 {
        let neighbors = if case % 2 == 0 { Neighbors::AddRemove } else { Neighbors::Replace };
        let delta = Delta::new(cases.magnitude(-12.0, -2.0)).unwrap();
        let parts = if case % 3 == 0 { 1 + cases.below(4) } else { 1 };
        let event = Event::Composed(
            (0..parts)
                .map(|_| {
                    let count = cases.magnitude(0.0, if parts == 1 { 4.0 } else { 2.5 }) as u64;
                    cases.attained(neighbors).repeated(count)
                })
                .collect(),
        );
        let bound = Pld::default().epsilon(&event, neighbors, delta).unwrap();
        assert!(
            bound.upper.is_finite() && bound.lower <= bound.upper,
            "{bound:?} {delta:?} {neighbors:?} {event:?}"
        );
        assert!(
            bound.upper - bound.lower <= 0.01 * bound.upper + 2e-3,
            "{bound:?} {delta:?} {neighbors:?} {}",
            serde_json::to_string(&event).unwrap()
        );
        narrow += u32::from(bound.upper - bound.lower <= 2e-3 * bound.upper + 2e-4);
        total += 1;
    }
    println!("{narrow} of {total} brackets are within 0.2 % + 2e-4");
    assert!(
        f64::from(narrow) >= 0.97 * f64::from(total),
        "only {narrow} of {total} brackets are within 0.2 % + 2e-4"
    );
}

/// A finer answer lies inside a coarser one.
///
/// This holds also where tilts are huge and sums over spectra cancel.
#[test]
fn answers_at_several_tightnesses_agree() {
    for (count, rate, noise, delta) in [
        (10, 0.866_022_639_964_097_6, 11_425.423_869_205_164, 2.79e-195),
        (374, 0.367_779_216_599_327_83, 318_678.045_434_366_5, 4.97e-103),
        (7, 0.523_946_778_777_348_5, 84_738.181_872_481_41, 5.612_142_648_198_431e-31),
    ] {
        let at = |steps: u64, relative: f64| {
            let event =
                Event::dp_sgd(NoiseMultiplier::new(noise).unwrap(), SamplingRate::new(rate).unwrap(), steps);
            let pld = Pld { relative, absolute: 0.1 * relative, ..Pld::default() };
            pld.epsilon(&event, Neighbors::AddRemove, Delta::new(delta).unwrap()).unwrap()
        };
        let (coarse, one) = (at(count, 1e-3), at(1, 1e-3));
        for relative in [1e-4, 1e-5, 1e-6, 1e-8] {
            let fine = at(count, relative);
            assert!(
                fine.lower <= coarse.upper && fine.upper >= coarse.lower,
                "{relative}: {fine:?} against {coarse:?}"
            );
            assert!(
                fine.upper >= one.lower && fine.upper.is_finite(),
                "{relative}: {fine:?}, one step costs {one:?}"
            );
        }
    }
}
