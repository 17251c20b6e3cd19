//! Compares accountants with each other and with an attacker, on random events.
//!
//! For each event, no accountant's upper bound is below the lower bound of another accountant or below what
//! the attacker reaches. No bound is zero, infinite or NaN unless the true value is. Privacy loss
//! distributions are also computed at several precisions, and Rényi divergences are compared with those that
//! the attacker sees. `QUELL_AUDIT_CASES` sets the number of cases, `QUELL_AUDIT_FROM` the number of the
//! first case.

// The lints against reading the environment and printing are for the library, not for its tests.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod attack;
mod events;
mod huge;

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use events::Case;
use quell_privacy::{
    Bound, Error, Event, Neighbors,
    accounting::{Answer, Method, Pld, Renyi, best},
    units::{Delta, NoiseMultiplier, Order},
};

/// Widths of the bracket, relative to ε, that are asked for beside the usual one.
const TIGHTNESSES: [f64; 2] = [0.03, 1e-4];

/// Cases in `make test`.
const CASES: u64 = 3000;

/// The results of all cases.
#[derive(Default)]
struct Tally {
    answered: BTreeMap<&'static str, u64>,
    refused: u64,
    variants: BTreeMap<&'static str, u64>,
    /// Cases in which the attack succeeded, so that the comparison could have failed.
    attacked: u64,
    /// Divergences for which the attack showed more than zero.
    divergences: u64,
    faults: Vec<String>,
    slowest: BTreeMap<&'static str, (f64, String)>,
    seconds: BTreeMap<&'static str, f64>,
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name} is {text}, expected a number"))
    })
}

/// Examines every case once, on as many threads as there are cores.
fn on_all_cores(cases: Range<u64>, examine: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(cases.start);
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= cases.end {
                break;
            }
            examine(number);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
}

#[test]
fn accountants_do_not_contradict_each_other_or_an_attacker() {
    let (first, cases) = (setting("QUELL_AUDIT_FROM", 1), setting("QUELL_AUDIT_CASES", CASES));
    let tally = Mutex::new(Tally::default());
    on_all_cores(first..first + cases, |number| examine(number, &tally));
    let tally = tally.into_inner().unwrap();
    println!(
        "{cases} cases from {first}: answers {:?}, refused by all {}, attacked {}, divergences {}",
        tally.answered, tally.refused, tally.attacked, tally.divergences
    );
    println!("variants {:?}", tally.variants);
    println!("seconds {:.1?}", tally.seconds);
    for (name, (seconds, words)) in tally.slowest.iter().filter(|(_, (seconds, _))| *seconds > 1.0) {
        println!("slowest of {name}: {seconds:.1} s, {words}");
    }
    assert!(
        tally.faults.is_empty(),
        "{} faults in {cases} cases:\n{}",
        tally.faults.len(),
        tally.faults.join("\n")
    );
    if cases >= CASES {
        assert_eq!(tally.variants.len(), 19, "not every variant occurred: {:?}", tally.variants);
        for method in Method::ALL {
            let answered = tally.answered.get(method.name()).copied().unwrap_or(0);
            assert!(answered >= cases / 100, "{} answered {answered} of {cases}", method.name());
        }
        assert!(
            tally.attacked >= cases / 2 && tally.refused <= cases / 4 && tally.divergences >= cases,
            "{} attacked, {} refused, {} divergences",
            tally.attacked,
            tally.refused,
            tally.divergences
        );
    }
}

/// The comparison finds each of these faults, and none where there is none.
#[test]
fn a_wrong_answer_is_noticed() {
    let event = Event::laplace(NoiseMultiplier::new(1.0).unwrap()).repeated(3);
    let case = Case {
        event,
        neighbors: Neighbors::AddRemove,
        delta: Delta::new(1e-6).unwrap(),
        orders: [2.0, 30.0],
    };
    let attack = attack::epsilon(&case.event, case.neighbors, case.delta.get());
    let honest = Method::ALL.map(|method| (method, method.epsilon(&case.event, case.neighbors, case.delta)));
    assert!(attack > 1.0 && faults(&case, &honest, None, attack).is_empty());
    for (lower, upper) in
        [(0.0, 0.0), (f64::NAN, f64::NAN), (0.0, f64::INFINITY), (0.0, 0.99 * attack), (3.1, 3.2), (2.0, 1.0)]
    {
        let mut answers = honest.clone();
        let wrong = answers.iter_mut().find(|(method, _)| *method == Method::Pld).unwrap();
        wrong.1.as_mut().unwrap().epsilon = Bound { lower, upper };
        assert!(!faults(&case, &answers, None, attack).is_empty(), "[{lower}, {upper}] passes");
    }
    for honest in divergences(&case, &Renyi::new(&case.event, case.neighbors).unwrap()) {
        assert!(honest.attack > 0.5 && honest.fault().is_none());
        for claimed in [0.0, f64::NAN, 0.99 * honest.attack] {
            assert!(
                Divergence { claimed, ..honest }.fault().is_some(),
                "{claimed} passes for {}",
                honest.attack
            );
        }
    }
}

fn examine(number: u64, tally: &Mutex<Tally>) {
    let case = Case::numbered(number);
    let mut seconds = Vec::new();
    let mut answers: Vec<(Method, Result<Answer, Error>)> = Vec::new();
    for method in Method::ALL {
        let start = std::time::Instant::now();
        answers.push((method, method.epsilon(&case.event, case.neighbors, case.delta)));
        seconds.push((method.name(), start.elapsed().as_secs_f64()));
    }
    // A sixth of the cases is asked again, coarsely and very precisely: all three brackets contain the truth.
    if number % 6 == 1 {
        let start = std::time::Instant::now();
        for relative in TIGHTNESSES {
            let pld = Pld { relative, absolute: 0.1 * relative, ..Pld::default() };
            answers
                .push((Method::Pld, Method::Pld.epsilon_by(&pld, &case.event, case.neighbors, case.delta)));
        }
        seconds.push(("other tightnesses", start.elapsed().as_secs_f64()));
    }
    let start = std::time::Instant::now();
    // The default asks the other methods again, which takes as long.
    let claimed = number.is_multiple_of(4).then(|| best(&case.event, case.neighbors, case.delta));
    seconds.push(("the default", start.elapsed().as_secs_f64()));
    let attack = attack::epsilon(&case.event, case.neighbors, case.delta.get());
    let mut found = faults(&case, &answers, claimed.as_ref(), attack);
    let curve = Renyi::new(&case.event, case.neighbors);
    let divergences = curve.iter().flat_map(|curve| divergences(&case, curve)).collect::<Vec<_>>();
    found.extend(divergences.iter().filter_map(Divergence::fault));
    let words = || {
        let event = serde_json::to_string(&case.event).unwrap();
        format!("case {number}: {event} {:?} δ = {:e}", case.neighbors, case.delta.get())
    };
    let mut tally = tally.lock().unwrap();
    count_variants(&case.event, &mut tally.variants);
    for (method, _) in answers.iter().filter(|(_, answer)| answer.is_ok()) {
        *tally.answered.entry(method.name()).or_default() += 1;
    }
    tally.refused += u64::from(answers.iter().all(|(_, answer)| answer.is_err()));
    tally.attacked += u64::from(attack > 0.0);
    tally.divergences += divergences.iter().filter(|divergence| divergence.attack > 0.0).count() as u64;
    for fault in found {
        let sentence = format!("{}: {fault}", words());
        // Printed at once, because a long audit may be stopped.
        println!("{sentence}");
        tally.faults.push(sentence);
    }
    for (name, seconds) in seconds {
        *tally.seconds.entry(name).or_default() += seconds;
        let slowest = tally.slowest.entry(name).or_default();
        if seconds > slowest.0 {
            *slowest = (seconds, words());
        }
    }
}

/// A claimed Rényi divergence, and what the attacker shows of it.
struct Divergence {
    order: f64,
    claimed: f64,
    attack: f64,
}

fn divergences(case: &Case, curve: &Renyi) -> Vec<Divergence> {
    let at = |order: f64| Divergence {
        order,
        claimed: curve.divergence(Order::new(order).unwrap()),
        attack: attack::divergence(&case.event, case.neighbors, order),
    };
    case.orders.map(at).into()
}

impl Divergence {
    fn fault(&self) -> Option<String> {
        let Self { order, claimed, attack } = *self;
        // Probabilities of bins add up to one except for rounding. That error is divided by order - 1.
        let rounding = 1e-9 * attack + 1e-10 * (1.0 + 1.0 / (order - 1.0));
        let is_wrong = claimed.is_nan() || claimed < attack - rounding;
        is_wrong.then(|| {
            format!("the divergence of order {order} is claimed to be {claimed}, an attack shows {attack}")
        })
    }
}

/// Everything that is wrong with the answers to one question.
fn faults(
    case: &Case,
    answers: &[(Method, Result<Answer, Error>)],
    claimed: Option<&Result<(Method, Answer), Error>>,
    attack: f64,
) -> Vec<String> {
    let mut faults = Vec::new();
    let mass = attack::infinite_mass(&case.event);
    let delta = case.delta.get();
    let known_infinite = mass.is_some_and(|mass| mass * (1.0 - 1e-9) > delta);
    let known_finite = mass.is_some_and(|mass| mass < delta * (1.0 - 1e-3));
    let mut greatest_lower = ("nothing", 0.0);
    let given = answers.iter().filter_map(|(method, answer)| Some((*method, answer.as_ref().ok()?)));
    for (method, answer) in given.clone() {
        let bound = answer.epsilon;
        if bound.lower.is_nan() || bound.upper.is_nan() || bound.lower < 0.0 || bound.lower > bound.upper {
            faults.push(format!("{} says {bound:?}", method.name()));
        }
        if answer.claimable && bound.lower > greatest_lower.1 {
            greatest_lower = (method.name(), bound.lower);
        }
    }
    for (method, answer) in given {
        let (name, upper) = (method.name(), answer.epsilon.upper);
        // An approximation says so, and is not compared.
        if method == Method::Clt {
            continue;
        }
        if upper < greatest_lower.1 {
            faults.push(format!(
                "{name} claims {upper}, {} shows at least {}",
                greatest_lower.0, greatest_lower.1
            ));
        }
        if upper < attack * (1.0 - 1e-9) {
            faults.push(format!("{name} claims {upper}, an attack reaches {attack}"));
        }
        if known_infinite && upper.is_finite() {
            faults.push(format!("{name} claims {upper}, {mass:?} is infinite"));
        }
        // Where the δs of several guarantees are added up, their sum may exceed one although the δ of their
        // composition does not. And some curves have no bound at any integer order.
        let gives_up = matches!(method, Method::Basic | Method::Advanced | Method::Moments);
        if known_finite && upper.is_infinite() && !gives_up {
            faults.push(format!("{name} claims nothing, the truth is finite"));
        }
    }
    match claimed {
        Some(Ok((method, answer))) => {
            let least = answers
                .iter()
                .filter_map(|(_, a)| a.as_ref().ok().filter(|a| a.claimable))
                .map(|a| a.epsilon.upper)
                .reduce(f64::min);
            if least.is_some_and(|least| answer.epsilon.upper > least * (1.0 + 2e-3) + 2e-4) {
                faults.push(format!(
                    "the default claims {} by {}, the best is {least:?}",
                    answer.epsilon.upper,
                    method.name()
                ));
            }
            if known_finite && answer.epsilon.upper.is_infinite() {
                faults.push("the default claims nothing, the truth is finite".into());
            }
        }
        None | Some(Err(Error::Unsupported { .. })) => {}
        Some(Err(other)) => faults.push(format!("the default fails: {other}")),
    }
    faults
}

fn count_variants(event: &Event, into: &mut BTreeMap<&'static str, u64>) {
    *into.entry(event.name()).or_default() += 1;
    match event {
        Event::PoissonSampled { event, .. }
        | Event::SampledWithoutReplacement { event, .. }
        | Event::SampledWithReplacement { event, .. }
        | Event::Repeated { event, .. } => count_variants(event, into),
        Event::Composed(events) => events.iter().for_each(|event| count_variants(event, into)),
        _ => {}
    }
}
