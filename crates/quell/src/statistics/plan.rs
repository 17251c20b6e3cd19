//! Several statistics of a table that one charge pays for.

use std::{cell::RefCell, rc::Rc};

use quell_privacy::{
    Event, Neighbors,
    accounting::{Conversion, Pld, Renyi},
    ledger::{Book, Ledger, Paid, State},
    mechanism::{Mechanism, Noise, PerUser, Together},
    units::Delta,
};

use super::{
    Answer, Named, Statistic, Visitor,
    question::{Asked, Charge, Deltas, Limited, check_unit},
};
use crate::{Error, data::Selection};

/// A statistic of some records.
#[derive(Debug)]
pub struct Part<'a> {
    /// The statistic.
    pub statistic: Statistic,
    /// The records. All parts of a plan have the same limit on the records of a user.
    pub records: &'a Selection<'a>,
    /// What is asked, in words; they stand before the answer.
    pub name: String,
}

/// Several statistics, with the privacy that their answers may cost together.
///
/// The ledger writes one line. With Laplace noise each part has an equal share of ε, and with Gaussian noise
/// more than that, because Gaussian noise composes to less.
///
/// ```
/// use quell::{
///     data::Table,
///     ledger::InMemory,
///     privacy::{mechanism::Bounds, units::{Delta, Epsilon}},
///     statistics::{Answer, Part, Plan, Statistic},
/// };
/// # let path = std::env::temp_dir().join(format!("quell-plan-{}.csv", std::process::id()));
/// std::fs::write(&path, "age\n36\n41\n17\n")?;
/// let people = Table::open(&path)?;
/// let all = people.all();
/// let mean = Statistic::Mean { column: "age".into(), bounds: Bounds::new(0.0, 120.0)? };
/// let part = |statistic: Statistic| Part { name: statistic.to_string(), statistic, records: &all };
/// let plan = Plan::new(vec![part(Statistic::Count), part(mean)], 0.5);
/// let mut ledger = InMemory::ledger("people", Epsilon::new(1.0)?, Delta::new(1e-6)?)?;
/// let Answer::Several(answers) = plan.ask(&mut ledger)? else { unreachable!() };
/// assert_eq!(answers[1].question, "mean of age");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Plan<'a> {
    /// The statistics, in the order of their answers.
    pub parts: Vec<Part<'a>>,
    /// Noise of counts and sums.
    pub noise: Noise,
    /// ε of all answers together.
    pub epsilon: f64,
    /// δ of the answers, for Gaussian noise, unknown keys and smooth medians.
    ///
    /// By default, Gaussian noise uses the δ of the budget, and the others together a small part of that δ.
    pub delta: Option<f64>,
    /// Whether each user has one record. Without this, a ledger that protects users needs a limit.
    pub one_record_per_user: bool,
}

impl<'a> Plan<'a> {
    /// Creates a plan at this ε, with Laplace noise.
    #[must_use]
    pub fn new(parts: Vec<Part<'a>>, epsilon: f64) -> Self {
        Self { parts, noise: Noise::Laplace, epsilon, delta: None, one_record_per_user: false }
    }

    /// Pays for all answers and draws them.
    pub fn ask<B: Book>(&self, ledger: &mut Ledger<B>) -> Result<Answer, Error> {
        let state = ledger.state()?.clone();
        self.visit(&state, Charge { ledger, epsilon: self.epsilon })?
    }

    /// Passes the mechanism that answers all questions to a visitor.
    pub fn visit<'p, V: Visitor<'p>>(&'p self, state: &State, visitor: V) -> Result<V::Output, Error> {
        let most = self.most_per_user()?;
        check_unit(state, self.one_record_per_user, most)?;
        let neighbors = state.terms().neighbors;
        let with_delta = self.parts.iter().filter(|part| part.statistic.has_delta()).count();
        let asked = Asked {
            noise: self.noise,
            neighbors,
            deltas: Deltas::new(self.delta, state)?.divided(with_delta, self.noise)?,
        };
        let prepared = self.parts.iter().map(|part| part.statistic.visit(asked, part.records, Prepare));
        let prepared = prepared.collect::<Result<Vec<Prepared<'p>>, Error>>()?;
        let (adds, reads): (Vec<_>, Vec<_>) = prepared.into_iter().map(|part| (part.add, part.read)).unzip();
        let shares = Rc::new(Shares {
            adds,
            neighbors,
            noise: self.noise,
            most,
            delta: asked.deltas.of_noise(),
            known: RefCell::default(),
        });
        let paid_share = Rc::clone(&shares);
        let make = move |epsilon| shares.plan(shares.of(epsilon)?);
        let read = move || reads.into_iter().map(|read| read()).collect::<Result<Vec<Run<'p>>, Error>>();
        let run = move |mut paid: Paid<Together>, runs: Vec<Run<'p>>| {
            // The same search as before the charge, so the same share.
            let share = paid_share.of(self.epsilon).map_err(|_| UNPAID)?;
            let mut answers = Vec::new();
            for (number, (run, part)) in runs.into_iter().zip(&self.parts).enumerate() {
                let answer = run(&mut paid, number, share)?;
                answers.push(Named { question: part.name.clone(), answer });
            }
            Ok(Answer::Several(answers))
        };
        Ok(match most {
            Some(most) => Limited { most, visitor }.visit(make, read, run),
            None => visitor.visit(make, read, run),
        })
    }

    /// The limit on the records of a user, which all parts have in common.
    fn most_per_user(&self) -> Result<Option<u32>, Error> {
        let mut limits = self.parts.iter().map(|part| part.records.most_per_user());
        let first = limits.next().flatten();
        if self.parts.is_empty() || limits.any(|limit| limit != first) {
            return Err(Error::Setting {
                name: "a plan",
                found: "without statistics, or with different limits on the records of a user".into(),
                expected: "one statistic or more, and one limit",
            });
        }
        Ok(first)
    }
}

/// A statistic that is ready to be paid for, whatever its mechanism is.
struct Prepared<'p> {
    add: Add<'p>,
    read: Box<dyn FnOnce() -> Result<Run<'p>, Error> + 'p>,
}

/// Adds the mechanism for an ε to a plan.
type Add<'p> = Box<dyn Fn(f64, &mut Together) -> Result<(), Error> + 'p>;

/// Runs the part of a plan with this number, at the ε that was paid for.
type Run<'p> = Box<dyn FnOnce(&mut Paid<Together>, usize, f64) -> Result<Answer, quell_privacy::Error> + 'p>;

/// A mechanism that could be made before the charge can be made after it.
const UNPAID: quell_privacy::Error =
    quell_privacy::Error::Unfit { what: "this statistic", because: "it was not part of the charge" };

/// Keeps the mechanism of a statistic until the whole plan is known.
struct Prepare;

impl<'p> Visitor<'p> for Prepare {
    type Output = Prepared<'p>;

    fn visit<M: Mechanism + 'p, D: 'p>(
        self,
        make: impl Fn(f64) -> Result<M, Error> + 'p,
        read: impl FnOnce() -> Result<D, Error> + 'p,
        run: impl FnOnce(Paid<M>, D) -> Result<Answer, quell_privacy::Error> + 'p,
    ) -> Prepared<'p> {
        let make = Rc::new(make);
        let again = Rc::clone(&make);
        Prepared {
            add: Box::new(move |epsilon, plan| Ok(plan.add(&make(epsilon)?)?)),
            read: Box::new(move || {
                let data = read()?;
                Ok(Box::new(move |paid: &mut Paid<Together>, number, epsilon| {
                    run(paid.take(number, again(epsilon).map_err(|_| UNPAID)?)?, data)
                }))
            }),
        }
    }
}

/// Finds the ε of each part, so that all parts together cost a given ε.
struct Shares<'p> {
    adds: Vec<Add<'p>>,
    neighbors: Neighbors,
    noise: Noise,
    most: Option<u32>,
    delta: Delta,
    /// Shares that were searched for before.
    known: RefCell<Vec<(f64, f64)>>,
}

impl Shares<'_> {
    /// The plan in which every part has this ε.
    fn plan(&self, share: f64) -> Result<Together, Error> {
        let mut plan = Together::new(self.neighbors);
        self.adds.iter().try_for_each(|add| add(share, &mut plan))?;
        Ok(plan)
    }

    /// The ε of each part.
    ///
    /// Pure ε add up. Gaussian noise composes to less, so the largest share is searched for, by bisection, with
    /// which the plan still meets ε at the δ of the noise. A search that ends early only adds noise.
    fn of(&self, epsilon: f64) -> Result<f64, Error> {
        let parts = self.adds.len() as f64;
        if self.noise == Noise::Laplace || parts == 1.0 {
            return Ok(epsilon / parts);
        }
        if let Some((_, share)) = self.known.borrow().iter().find(|(known, _)| *known == epsilon) {
            return Ok(*share);
        }
        let (mut low, mut high) = (0.0, epsilon);
        for _ in 0..16 {
            let middle = if low == 0.0 { high / 2.0 } else { 0.5 * (low + high) };
            if self.cost(&self.plan(middle)?) <= epsilon { low = middle } else { high = middle }
        }
        if low == 0.0 {
            return Err(Error::Setting {
                name: "noise",
                found: "Gaussian, and no known theorem bounds the ε of these statistics together".into(),
                expected: "Laplace noise, or other statistics",
            });
        }
        self.known.borrow_mut().push((epsilon, low));
        Ok(low)
    }

    /// ε of a plan, at the δ of its noise.
    fn cost(&self, plan: &Together) -> f64 {
        let event: Event = match self.most {
            Some(records) => PerUser { mechanism: plan.clone(), records }.event(self.neighbors),
            None => plan.event(self.neighbors),
        };
        let renyi = || {
            let renyi = Renyi::new(&event, self.neighbors)?;
            Ok::<_, quell_privacy::Error>(renyi.epsilon(self.delta, Conversion::Tight))
        };
        let bound = Pld::default().epsilon(&event, self.neighbors, self.delta).or_else(|_| renyi());
        bound.map_or(f64::INFINITY, |bound| bound.upper)
    }
}
