//! Computes the points of each curve.

use anyhow::Result;
use quell_privacy::{
    Error, Event, Neighbors,
    accounting::{Method, Pld, Renyi, TradeOff, closed},
    number::format_exact,
    units::{Delta, Epsilon, Probability},
};
use quell_report::plot::{Axis, Edge, Figure, Point, Series};

use super::{DeltaEpsilon, EpsilonSteps, LaplaceGaussian, MomentsAdvanced, Tradeoff};
use crate::{
    flags::event::{Defaults, describe_step, methods},
    print,
    progress::Bar,
    refusal::Refusal,
};

/// Default: a training run of the size used in tutorials.
const TRAINING: Defaults = Defaults { noise_multiplier: 1.1, sampling_rate: 0.01, steps: 10_000 };
/// Default: figure 2 of the paper on the moments accountant.
const MOMENTS: Defaults = Defaults { noise_multiplier: 4.0, sampling_rate: 0.01, steps: 40_000 };

/// Number of points on a curve where each point needs a composition.
const POINTS: u32 = 40;

pub(super) fn epsilon_steps(flags: &EpsilonSteps) -> Result<Figure> {
    let delta = Delta::new(flags.delta)?;
    let relation = flags.described.relation;
    let methods_shown = match methods(&flags.accountant) {
        none if none.is_empty() => vec![Method::Pld],
        some => some,
    };
    if let Some(event) = flags.described.hidden_event(&TRAINING)? {
        return last_iterate(&event, flags, delta, &methods_shown);
    }
    let (step, steps, description) = match flags.described.json_event()? {
        Some(Event::Repeated { count, event }) if count > 0 => (*event.clone(), count, event.to_string()),
        Some(other) => {
            let sentence = format!("the event is {}, expected a repeated event", other.name());
            return Err(Refusal::new(sentence, r#"write {"repeated":{"count":1000,"event":…}}"#).into());
        }
        None => {
            let run = flags.described.run.with_defaults(&TRAINING, relation)?;
            (run.step(), run.steps, run.to_string())
        }
    };
    let series = over_steps(&[Run::all(step)], (1, steps), relation.neighbors(), delta, &methods_shown)?;
    let by = only_name(&series);
    Ok(Figure {
        title: "Privacy loss over a run".into(),
        subtitle: format!("{description}, δ = {}, {}{by}", format_exact(flags.delta), relation.when()),
        x: Axis::linear("steps"),
        y: Axis::linear(format!("ε at δ = {}", format_exact(flags.delta))),
        series,
    })
}

/// ε of the last iterate over the number of steps, beside ε of all iterates.
fn last_iterate(
    event: &Event,
    flags: &EpsilonSteps,
    delta: Delta,
    methods_shown: &[Method],
) -> Result<Figure> {
    let Event::HiddenState { noise_multiplier, contraction, steps, diameter } = *event else {
        anyhow::bail!("the event is {}, expected hidden_state", event.name());
    };
    let last = move |steps: u64| Event::HiddenState { noise_multiplier, contraction, steps, diameter };
    let all = Event::gaussian(noise_multiplier);
    let runs = [
        Run { name: Some("last iterate"), event: Box::new(last) },
        Run { name: Some("all iterates"), ..Run::all(all) },
    ];
    let relation = flags.described.relation;
    Ok(Figure {
        title: "Privacy loss of the last iterate".into(),
        subtitle: format!("{}, δ = {}, {}", describe_step(event), format_exact(flags.delta), relation.when()),
        x: Axis::linear("steps"),
        y: Axis::linear(format!("ε at δ = {}", format_exact(flags.delta))),
        series: over_steps(&runs, (1, steps), relation.neighbors(), delta, methods_shown)?,
    })
}

/// A run whose number of steps varies.
struct Run {
    /// Name in a legend; none if there is one run.
    name: Option<&'static str>,
    /// The event of so many steps.
    event: Box<dyn Fn(u64) -> Event>,
}

impl Run {
    /// A run that releases every step.
    fn all(step: Event) -> Self {
        Self { name: None, event: Box::new(move |steps| step.clone().repeated(steps)) }
    }

    /// The name of its curve by this method.
    fn label(&self, method: Method, methods: usize) -> String {
        match self.name {
            None => long_name(method),
            Some(name) if methods == 1 => name.into(),
            Some(name) => format!("{name}: {}", long_name(method)),
        }
    }
}

pub(super) fn moments_advanced(flags: &MomentsAdvanced) -> Result<Figure> {
    let delta = Delta::new(flags.delta)?;
    let run = flags.run.with_defaults(&MOMENTS, flags.relation)?;
    let methods_shown = [Method::Pld, Method::Moments, Method::Advanced];
    Ok(Figure {
        title: "Moments accountant against advanced composition".into(),
        subtitle: format!("{run}, {}", flags.relation.when()),
        x: Axis::linear("steps"),
        y: Axis::logarithmic(format!("ε at δ = {}", format_exact(flags.delta))),
        // Skip the first steps: there the logarithm of ε falls steeply and would take half of the picture.
        series: over_steps(
            &[Run::all(run.step())],
            (run.steps.div_ceil(200), run.steps),
            flags.relation.neighbors(),
            delta,
            &methods_shown,
        )?,
    })
}

/// Computes ε over the number of steps, for each run and method.
fn over_steps(
    runs: &[Run],
    (first, last): (u64, u64),
    neighbors: Neighbors,
    delta: Delta,
    methods_shown: &[Method],
) -> Result<Vec<Series>> {
    // ε grows about like the square root of the steps, so points are closer at the start, where the curve
    // bends.
    let between = |i: u32| (last as f64 * (f64::from(i) / f64::from(POINTS)).powi(2)) as u64;
    let mut counts: Vec<u64> =
        (0..POINTS).map(between).filter(|count| (first..last).contains(count)).chain([first, last]).collect();
    counts.sort_unstable();
    counts.dedup();
    let progress = Bar::with_parts("composing", counts.len() * runs.len() * methods_shown.len());
    let mut series = Vec::new();
    let mut refused: Vec<(Method, Error)> = Vec::new();
    for (run, method) in runs.iter().flat_map(|run| methods_shown.iter().map(move |method| (run, method))) {
        let points = counts.iter().map(|count| {
            let epsilon = method.epsilon(&(run.event)(*count), neighbors, delta)?.epsilon;
            progress.step();
            Ok(Point { x: *count as f64, lower: epsilon.lower, upper: epsilon.upper })
        });
        match points.collect() {
            Ok(points) => {
                let name = run.label(*method, methods_shown.len());
                series.push(Series { name, claim: Edge::Upper, points });
            }
            Err(error) => refused.push((*method, error)),
        }
    }
    drop(progress);
    for (method, error) in refused.iter().filter(|_| !series.is_empty()) {
        print::status(&format!("note: {} is left out: {error}", method.name()));
    }
    if series.is_empty()
        && let Some((_, error)) = refused.into_iter().next()
    {
        return Err(error.into());
    }
    Ok(series)
}

/// The accountant of a figure with one curve, which has no legend.
fn only_name(series: &[Series]) -> String {
    match series {
        [one] => format!(", by {}", one.name),
        _ => String::new(),
    }
}

/// Name of a method in a legend.
fn long_name(method: Method) -> String {
    match method {
        Method::Pld => "privacy loss distributions (pld)",
        Method::Renyi => "Rényi (rdp)",
        Method::RenyiClassic => "Rényi, classic conversion (rdp-classic)",
        Method::Moments => "moments accountant",
        Method::Fourier => "Fourier, an estimate",
        Method::Closed => "exact (closed)",
        Method::Basic => "basic composition",
        Method::Advanced => "advanced composition",
        Method::Optimal => "optimal composition",
        Method::Clt => "central limit, an estimate",
    }
    .into()
}

pub(super) fn delta_epsilon(flags: &DeltaEpsilon) -> Result<Figure> {
    let smallest = Delta::new(flags.smallest_delta)?;
    let (event, relation) = (flags.described.event(Some(&TRAINING))?, flags.described.relation);
    let neighbors = relation.neighbors();
    let pld = Pld::default();
    let renyi = match pld.epsilon(&event, neighbors, smallest) {
        Err(Error::Unsupported { .. }) => Some(Renyi::new(&event, neighbors)?),
        _ => None,
    };
    let last = match &renyi {
        Some(renyi) => renyi.epsilon(smallest, quell_privacy::accounting::Conversion::Tight).upper,
        None => pld.epsilon(&event, neighbors, smallest)?.upper,
    };
    if !last.is_finite() {
        let sentence = format!(
            "no finite ε is known at δ = {}, so there is no curve",
            format_exact(flags.smallest_delta)
        );
        return Err(Refusal::new(sentence, "raise --smallest-delta or the noise").into());
    }
    let progress = Bar::with_parts("composing", POINTS as usize + 1);
    let points = (0..=POINTS).map(|i| {
        let epsilon = last * f64::from(i) / f64::from(POINTS);
        let delta = match &renyi {
            Some(renyi) => renyi.delta(epsilon),
            None => pld.delta(&event, neighbors, epsilon)?,
        };
        progress.step();
        Ok(Point { x: epsilon, lower: delta.lower, upper: delta.upper })
    });
    let name = long_name(if renyi.is_some() { Method::Renyi } else { Method::Pld });
    Ok(Figure {
        title: "Privacy profile".into(),
        subtitle: format!("{}, {}, by {name}", flags.described.describe(&event, &TRAINING)?, relation.when()),
        x: Axis::linear("ε"),
        y: Axis::logarithmic("δ"),
        series: vec![Series { name, claim: Edge::Upper, points: points.collect::<Result<_, Error>>()? }],
    })
}

pub(super) fn tradeoff(flags: &Tradeoff) -> Result<Figure> {
    let (event, relation) = (flags.described.event(Some(&TRAINING))?, flags.described.relation);
    let attack = {
        let _bar = Bar::spinner("composing");
        TradeOff::new(&Pld::default(), &event, relation.neighbors())?
    };
    let points = (0..=200_u32).map(|i| {
        // Points are dense at both ends, where the curve bends.
        let t = f64::from(i) / 200.0;
        let alpha = t * t * (3.0 - 2.0 * t);
        let beta = attack.beta(Probability::new(alpha)?);
        Ok(Point { x: alpha, lower: beta.lower, upper: beta.upper })
    });
    let guessing = (0..=50_u32).map(|i| f64::from(i) / 50.0).map(|alpha| Point::exact(alpha, 1.0 - alpha));
    Ok(Figure {
        title: "Error rates of the best attack".into(),
        subtitle: format!("{}, {}", flags.described.describe(&event, &TRAINING)?, relation.when()),
        x: Axis::linear("false-positive rate α"),
        y: Axis::linear("false-negative rate β"),
        series: vec![
            Series {
                name: "least false-negative rate of any attack".into(),
                claim: Edge::Lower,
                points: points.collect::<Result<_, Error>>()?,
            },
            Series { name: "random guessing".into(), claim: Edge::Lower, points: guessing.collect() },
        ],
    })
}

pub(super) fn laplace_gaussian(flags: &LaplaceGaussian) -> Result<Figure> {
    let (epsilon, delta) = (Epsilon::new(flags.epsilon)?, Delta::new(flags.delta)?);
    if epsilon.get() == 0.0 {
        return Err(Error::OutOfRange { what: "epsilon", value: 0.0, range: "(0, inf)" }.into());
    }
    let scale = 1.0 / epsilon.get();
    let exact = closed::gaussian_sigma(epsilon, delta)?.get();
    let textbook = match closed::classic_gaussian_sigma(epsilon, delta) {
        Ok(sigma) => Some(sigma.get()),
        Err(error) => {
            print::status(&format!("note: the textbook Gaussian is left out: {error}"));
            None
        }
    };
    let end = 3.0 * textbook.unwrap_or(exact).max(scale);
    let curve = |name: String, density: &dyn Fn(f64) -> f64| {
        // An odd number of points, so that the peak of the Laplace density is one of them.
        let points =
            (-150_i32..=150).map(|i| f64::from(i) / 150.0 * end).map(|x| Point::exact(x, density(x)));
        Series { name, claim: Edge::Upper, points: points.collect() }
    };
    let normal = |sigma: f64| {
        move |x: f64| (-x * x / (2.0 * sigma * sigma)).exp() / (sigma * std::f64::consts::TAU.sqrt())
    };
    let digits = |value: f64| format_exact(format!("{value:.2e}").parse().unwrap_or(value));
    let mut series =
        vec![curve(format!("Laplace, b = {}", digits(scale)), &|x| (-x.abs() / scale).exp() / (2.0 * scale))];
    series.push(curve(format!("exact Gaussian, σ = {}", digits(exact)), &normal(exact)));
    if let Some(sigma) = textbook {
        series.push(curve(format!("textbook Gaussian, σ = {}", digits(sigma)), &normal(sigma)));
    }
    Ok(Figure {
        title: "Laplace and Gaussian noise of equal privacy".into(),
        subtitle: format!(
            "ε = {}, δ = {} for the Gaussians and 0 for Laplace",
            format_exact(flags.epsilon),
            format_exact(flags.delta)
        ),
        x: Axis::linear("noise (in units of the sensitivity)"),
        y: Axis::linear("density (per unit of the sensitivity)"),
        series,
    })
}
