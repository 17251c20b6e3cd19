use super::*;
use crate::{mechanism::Rows, noise::tests::stream};

const BOTH: [Neighbors; 2] = [Neighbors::AddRemove, Neighbors::Replace];

fn settings(dimension: usize, radius: f64, penalty: f64, power: f64) -> PosteriorSample {
    PosteriorSample {
        dimension,
        radius: Radius::new(radius).unwrap(),
        regularization: Regularization::new(penalty).unwrap(),
        most_records: 1 << 20,
        power: Power::new(power).unwrap(),
    }
}

fn design(dimension: usize, rows: &[(Vec<f64>, f64)]) -> Design {
    let features = rows.iter().flat_map(|(features, _)| features.clone()).collect();
    let targets = rows.iter().map(|(_, target)| *target).collect();
    Design::new(&Rows { dimension, features, targets }, 1 << 20)
}

fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut stream = stream(seed);
    move || 2.0 * (stream.bits(53) as f64 / (1_u64 << 53) as f64) - 1.0
}

/// Records whose best weights are near `scale` in every coordinate, far outside of a small ball.
fn hostile(dimension: usize, count: usize, scale: f64, seed: u64) -> Vec<(Vec<f64>, f64)> {
    let mut next = uniform(seed);
    (0..count)
        .map(|_| {
            let features: Vec<f64> =
                (0..dimension).map(|_| next() * 0.5 / (dimension as f64).sqrt()).collect();
            let target = (scale * features.iter().sum::<f64>()).clamp(-1.0, 1.0);
            (features, target)
        })
        .collect()
}

/// ρ Σ loss + λ/2 ‖w‖², in plain arithmetic.
fn potential(settings: &PosteriorSample, rows: &[(Vec<f64>, f64)], weights: &[f64]) -> f64 {
    let product = |x: &[f64]| x.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>();
    let loss = |(x, y): &(Vec<f64>, f64)| 0.5 * (y.clamp(-1.0, 1.0) - product(x)).powi(2);
    settings.power.get() * rows.iter().map(loss).sum::<f64>()
        + 0.5 * settings.regularization.get() * product_of(weights)
}

fn product_of(weights: &[f64]) -> f64 {
    weights.iter().map(|w| w * w).sum()
}

fn doubles(weights: &[f64]) -> Vec<Double> {
    weights.iter().map(|w| Double::from(*w)).collect()
}

#[test]
fn the_potential_is_the_sum_of_the_losses_and_the_prior() {
    let mut next = uniform(1);
    for dimension in [1, 2, 7] {
        let settings = settings(dimension, 3.0, 0.7, 0.2);
        let mut rows = hostile(dimension, 50, 3.0, 2);
        rows[7].1 = 30.0;
        rows[8].1 = -1.5;
        let posterior = Quadratic::new(&settings, &design(dimension, &rows));
        let zero = potential(&settings, &rows, &vec![0.0; dimension]);
        for _ in 0..20 {
            let weights: Vec<f64> = (0..dimension).map(|_| 2.0 * next()).collect();
            let expected = potential(&settings, &rows, &weights) - zero;
            let found = posterior.potential(&doubles(&weights)).high;
            assert!((expected - found).abs() < 1e-6, "{expected} {found}");
        }
    }
}

/// The logarithm of the density moves between neighbours within the range that is charged, and sometimes
/// over all of it.
#[test]
fn the_density_moves_within_the_range_that_is_charged_and_over_all_of_it() {
    let mut next = uniform(3);
    for radius in [0.3, 1.0, 2.0, 5.0] {
        let settings = settings(2, radius, 0.5, 0.25);
        let charged = BOTH.map(|neighbors| match settings.event(neighbors) {
            Event::Exponential { epsilon } => epsilon.get(),
            event => panic!("{event}"),
        });
        let mut widest = [0.0_f64; 2];
        let tilted = -(1.0 / radius).min(1.0);
        let records: Vec<(Vec<f64>, f64)> = (0..40)
            .map(|_| {
                let angle = 4.0 * next();
                (vec![angle.cos(), angle.sin()], if next() > 0.0 { 1.0 } else { next() })
            })
            // Records whose worst weights are those that fit the other one best.
            .chain([
                (vec![1.0, 0.0], 1.0),
                (vec![tilted, (1.0 - tilted * tilted).sqrt()], 1.0),
                (vec![-1.0, 0.0], 1.0),
                (vec![0.0, 0.0], 0.0),
            ])
            .collect();
        // The border of the ball holds the extremes of a convex function; minima are inside.
        let grid: Vec<Vec<f64>> = (0..60)
            .flat_map(|i| {
                (0..=120).map(move |j| (f64::from(i) / 60.0 * std::f64::consts::TAU, f64::from(j) / 120.0))
            })
            .map(|(angle, share)| vec![radius * share * angle.cos(), radius * share * angle.sin()])
            .chain(records.iter().flat_map(|(x, _)| {
                [-1.0, 1.0, 1.0 / radius.max(1.0)].map(|s| x.iter().map(|x| s * radius * x).collect())
            }))
            .collect();
        let tables: Vec<Vec<f64>> = records
            .iter()
            .map(|record| {
                let with = Quadratic::new(&settings, &design(2, std::slice::from_ref(record)));
                let without = Quadratic::new(&settings, &design(2, &[]));
                grid.iter()
                    .map(|w| with.potential(&doubles(w)).high - without.potential(&doubles(w)).high)
                    .collect()
            })
            .collect();
        let width = |moves: &mut dyn Iterator<Item = f64>| {
            let (low, high) = moves.fold((f64::MAX, f64::MIN), |(low, high), x| (x.min(low), x.max(high)));
            high - low
        };
        for a in &tables {
            widest[0] = widest[0].max(width(&mut a.iter().copied()));
            for b in &tables {
                widest[1] = widest[1].max(width(&mut a.iter().zip(b).map(|(a, b)| a - b)));
            }
        }
        for (widest, charged) in widest.into_iter().zip(charged) {
            assert!(widest <= charged, "radius {radius}: {widest} {charged}");
            assert!(widest > 0.995 * charged, "radius {radius}: only {widest} of {charged}");
        }
    }
}

/// Whether sorted numbers come from this distribution, at a false-alarm rate of 10⁻⁶ [Mas90].
fn fits(numbers: &mut [f64], up_to: impl Fn(f64) -> f64) -> bool {
    numbers.sort_unstable_by(f64::total_cmp);
    let n = numbers.len() as f64;
    let bound = (2e6_f64.ln() / (2.0 * n)).sqrt();
    numbers.iter().enumerate().all(|(i, x)| {
        let truth = up_to(*x);
        (i as f64 / n - truth).abs() <= bound && ((i + 1) as f64 / n - truth).abs() <= bound
    })
}

/// P[w ≤ x] of a density on [-R, R], given by its potential, by Simpson's rule between knots.
fn distribution(radius: f64, potential: impl Fn(f64) -> f64) -> impl Fn(f64) -> f64 {
    let knots = 20_000;
    let place = move |k: f64| -radius + 2.0 * radius * k / f64::from(knots);
    let least = (0..=knots).map(|k| potential(place(f64::from(k)))).fold(f64::MAX, f64::min);
    let density = |k: f64| (least - potential(place(k))).exp();
    let mut sums = vec![0.0];
    for k in 0..knots {
        let k = f64::from(k);
        let area = density(k) + 4.0 * density(k + 0.5) + density(k + 1.0);
        sums.push(sums[k as usize] + area);
    }
    let total = sums[knots as usize];
    move |x| {
        let place = (x + radius) / (2.0 * radius) * f64::from(knots);
        let knot = place.floor().clamp(0.0, f64::from(knots) - 1.0);
        let (left, right) = (sums[knot as usize], sums[knot as usize + 1]);
        (left + (right - left) * (place - knot)) / total
    }
}

#[test]
fn samples_have_the_density_of_the_posterior_on_a_line() {
    for (case, (radius, penalty, power, count, x, y)) in [
        // Inside of the ball, on its border with a steep slope, a weak prior without records, one record.
        (2.0, 1.0, 0.5, 40, 0.8, 0.6),
        (1.0, 0.5, 1.0, 300, 0.3, 0.9),
        (3.0, 1e-3, 0.1, 0, 0.0, 0.0),
        (1.0, 0.01, 0.3, 1, 1.0, -1.0),
        (0.5, 2.0, 5.0, 2_000, 0.1, -1.0),
    ]
    .into_iter()
    .enumerate()
    {
        let settings = settings(1, radius, penalty, power);
        assert_eq!(settings.check(Neighbors::Replace), Ok(()));
        let rows = vec![(vec![x], y); count];
        let design = design(1, &rows);
        let truth = distribution(radius, |w| potential(&settings, &rows, &[w]));
        let mut stream = stream(10 + case as u64);
        let mut draws: Vec<f64> = (0..100_000).map(|_| settings.sample(&design, &mut stream).0[0]).collect();
        assert!(fits(&mut draws, &truth), "case {case}");
        assert!(draws.iter().all(|w| w.abs() <= radius));
        // Samples that are seven hundredths narrower are not accepted.
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let mut narrow: Vec<f64> = draws.iter().map(|w| mean + 0.93 * (w - mean)).collect();
        assert!(!fits(&mut narrow, &truth), "case {case}: narrower samples pass");
    }
}

/// Radius and angle of samples in the plane, against integrals of the density.
#[test]
fn samples_have_the_density_of_the_posterior_in_the_plane() {
    let cases = [(1.0, 0.2, 0.5, 0.4), (2.0, 4.0, 1.0, 3.0), (0.7, 0.05, 3.0, 5.0)];
    for (case, (radius, penalty, power, scale)) in cases.into_iter().enumerate() {
        let settings = settings(2, radius, penalty, power);
        let rows = hostile(2, 200, scale, 40 + case as u64);
        let design = design(2, &rows);
        let posterior = Quadratic::new(&settings, &design);
        let (rings, sectors, fine) = (6, 8, 40);
        let mut masses = vec![0.0; rings * sectors];
        let at = |r: f64, angle: f64| posterior.potential(&doubles(&[r * angle.cos(), r * angle.sin()])).high;
        let zero = at(0.0, 0.0);
        for ring in 0..rings * fine {
            for sector in 0..sectors * fine {
                let r = (ring as f64 + 0.5) / (rings * fine) as f64 * radius;
                let angle = (sector as f64 + 0.5) / (sectors * fine) as f64 * std::f64::consts::TAU;
                masses[ring / fine * sectors + sector / fine] += r * (zero - at(r, angle)).exp();
            }
        }
        let total: f64 = masses.iter().sum();
        let mut counts = vec![0_u64; rings * sectors];
        let mut stream = stream(60 + case as u64);
        for _ in 0..100_000 {
            let weights = settings.sample(&design, &mut stream).0;
            let r = weights[0].hypot(weights[1]) / radius;
            let turn = weights[1].atan2(weights[0]) / std::f64::consts::TAU;
            let ring = ((r * rings as f64) as usize).min(rings - 1);
            let sector = (turn.rem_euclid(1.0) * sectors as f64) as usize % sectors;
            counts[ring * sectors + sector] += 1;
        }
        // Cells with few expected counts are put together.
        let cells: Vec<(u64, f64)> = counts.iter().copied().zip(masses.iter().map(|m| m / total)).collect();
        let (common, rare): (Vec<_>, Vec<_>) = cells.into_iter().partition(|(_, p)| *p > 1e-3);
        let rest = rare.iter().fold((0, 1e-9), |(n, q), (count, p)| (n + count, q + p));
        let (counts, probabilities): (Vec<u64>, Vec<f64>) = common.into_iter().chain([rest]).unzip();
        assert!(crate::noise::tests::agrees(&counts, &probabilities), "case {case}: {counts:?}");
        let shifted: Vec<f64> = probabilities.iter().map(|p| p.powf(1.3)).collect();
        let sum: f64 = shifted.iter().sum();
        let shifted: Vec<f64> = shifted.iter().map(|p| p / sum).collect();
        assert!(!crate::noise::tests::agrees(&counts, &shifted), "case {case}: a higher power passes");
    }
}

/// Means far outside of the ball, in all directions or one: proposals are few, and far fewer than the bound.
#[test]
fn no_data_makes_proposals_many() {
    for dimension in [1, 3, 10, 40, 100] {
        for (count, scale, penalty) in [(0, 0.0, 1e-3), (3, 50.0, 0.1), (2_000, 50.0, 0.1), (2_000, 2.0, 5.0)]
        {
            let settings =
                PosteriorSample { power: Power::new(1.0).unwrap(), ..settings(dimension, 1.0, penalty, 1.0) };
            let rows = hostile(dimension, count, scale, 7);
            let design = design(dimension, &rows);
            let mut stream = stream(99);
            let proposals: u64 = (0..20).map(|_| settings.sample(&design, &mut stream).1).sum();
            let mean = proposals as f64 / 20.0;
            assert!(mean < 300.0, "{dimension} {count} {scale}: {mean}");
            assert!(mean < settings.most_proposals());
        }
    }
}

/// A thin posterior that touches the ball from the outside, whose tangent directions are wide.
#[test]
fn a_thin_posterior_beside_the_ball_is_sampled() {
    for dimension in [2, 10, 30] {
        for target in [0.9, 0.99, 1.0] {
            let settings = settings(dimension, 0.95, 0.1, 10.0);
            let mut axis = vec![0.0; dimension];
            axis[0] = 1.0;
            let rows = vec![(axis, target); 20_000];
            let design = design(dimension, &rows);
            let mut stream = stream(5);
            let (weights, proposals) = settings.sample(&design, &mut stream);
            assert!(product_of(&weights) <= 0.95 * 0.95 + 1e-9);
            assert!(proposals < 20_000, "{dimension} {target}: {proposals}");
        }
    }
}

#[test]
fn the_offset_is_below_all_proposals_and_close() {
    for (dimension, penalty) in [(1, 0.01), (4, 1.0), (25, 1e-3)] {
        let settings = settings(dimension, 1.0, penalty, 2.0);
        let rows = hostile(dimension, 500, 8.0, 11);
        let posterior = Quadratic::new(&settings, &design(dimension, &rows));
        let envelope = posterior.envelope(1.0, settings.most_squared());
        let mut stream = stream(3);
        let mut least = f64::MAX;
        for _ in 0..2_000 {
            if let Some((weights, squares)) = settings.proposal(&envelope, &mut stream) {
                let gap = posterior.potential(&weights).add(squares).add(envelope.offset.signed(-1.0)).high;
                assert!(gap >= 0.0, "{dimension}: {gap}");
                least = least.min(gap);
            }
        }
        assert!(least < 2.0, "{dimension}: {least}");
    }
}

#[test]
fn plans_that_cannot_be_sampled_exactly_are_refused() {
    let usual = settings(10, 3.0, 1.0, 0.125);
    for refused in [
        PosteriorSample { dimension: 0, ..usual },
        PosteriorSample { dimension: 400, ..usual },
        PosteriorSample { most_records: 0, ..usual },
        PosteriorSample { most_records: 1 << 41, ..usual },
        PosteriorSample {
            most_records: 1 << 40,
            regularization: Regularization::new(1e-6).unwrap(),
            ..usual
        },
    ] {
        assert!(refused.check(Neighbors::AddRemove).is_err(), "{refused}");
        assert_eq!(refused.event(Neighbors::AddRemove), Event::NonPrivate);
    }
    for neighbors in BOTH {
        assert_eq!(usual.check(neighbors), Ok(()));
    }
    assert!(usual.distance() < 1e-15, "{}", usual.distance());
}

#[test]
fn hostile_records_do_not_stop_a_sample() {
    let settings = settings(3, 2.0, 1.0, 0.5);
    let rows = [
        (vec![f64::NAN, 0.0, 1.0], 1.0),
        (vec![1.0, 0.0, 1.0], f64::INFINITY),
        (vec![1e300, -1e300, 1e300], 1e300),
        (vec![0.0; 3], 1.0),
        (vec![1e-300, 0.0, 0.0], -1.0),
    ];
    for count in 0..=rows.len() {
        let (weights, _) = settings.sample(&design(3, &rows[..count]), &mut stream(1));
        assert!(product_of(&weights) <= 4.0 + 1e-8);
        // Weights are on the grid.
        assert!(weights.iter().all(|w| (w / settings.step()).fract() == 0.0));
    }
}
