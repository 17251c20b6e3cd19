//! `quell plan`: the excess risk to expect of convex learning, and its work, from public numbers alone.

use std::path::PathBuf;

use anyhow::Result;
use quell::learner::{
    convex::{Factor, Loss, Method, Plan, Privacy, Problem, Procedure},
    default_delta,
};
use quell_privacy::{
    Neighbors,
    number::{Toward, format_brief, format_exact, format_rounded},
    units::{Delta, Epsilon},
};
use quell_report::plot::{Axis, Edge, Figure, Point, Series};
use serde::Serialize;

use crate::{
    commands::curve::file::Kind,
    flags::{Format, event::Relation, parse_count},
    print,
    progress::Bar,
    refusal::Refusal,
};

const EXAMPLES: &str = "\
Examples:
  quell plan --records 10000 --dimension 50 --epsilon 1
  quell plan --records 10000 --dimension 50 --epsilon 1 --smoothness 0.25 --strong-convexity 0.01
  quell plan --records 1000 --dimension 20 --epsilon 0.5 --delta 1e-6 --loss convex --format json
  quell plan --records 2000 --dimension 10 --epsilon 1 --smoothness 0.25 --loss smooth-convex --plot epsilon
  quell plan --records 500 --dimension 10 --epsilon 1 --loss convex --plot records --output plan.svg";

/// Show the excess risk and the work of convex learning, before any data is read
///
/// The numbers describe the losses of single records and are public: logistic regression on features of norm at
/// most 1 has Lipschitz constant 1 and smoothness 0.25. The excess risk is the mean loss of the result, less the
/// least mean loss. The table has a row for each method and class of losses for which there is a theorem. Smooth
/// losses need --smoothness, strongly convex ones --strong-convexity. Nothing is read, and nothing is charged.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Number of records
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    records: u64,
    /// Number of weights
    #[arg(long, value_name = "D", value_parser = parse_count, allow_negative_numbers = true)]
    dimension: u64,
    /// ε of the guarantee
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: f64,
    /// δ of the guarantee (a tenth of 1/records, rounded down, if not given)
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Largest norm of the gradient of one record's loss
    #[arg(long, value_name = "L", default_value_t = 1.0, allow_negative_numbers = true)]
    lipschitz: f64,
    /// Lipschitz constant of that gradient
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    smoothness: Option<f64>,
    /// Strong convexity of the mean loss
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    strong_convexity: Option<f64>,
    /// Largest distance from the first weights to the minimum
    #[arg(long, value_name = "R", default_value_t = 1.0, allow_negative_numbers = true)]
    radius: f64,
    #[command(flatten)]
    relation: Relation,
    /// Save work where the bound stays within this factor of its limit
    #[arg(long, value_name = "F", default_value_t = Factor::default().get(), allow_negative_numbers = true)]
    factor: f64,
    /// Class of losses to show (all with a theorem if not given)
    #[arg(long, value_enum)]
    loss: Option<Class>,
    /// Plot the bounds over this number, for one --loss
    #[arg(long, value_enum)]
    plot: Option<Over>,
    /// File of the plot: .svg or .png (drawn in the terminal if not given)
    #[arg(long, value_name = "FILE", requires = "plot")]
    output: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A class of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Class {
    /// Convex.
    Convex,
    /// Convex with a Lipschitz gradient.
    SmoothConvex,
    /// The same for a generalised linear model.
    SmoothGlm,
    /// Strongly convex.
    StronglyConvex,
    /// Strongly convex with a Lipschitz gradient.
    SmoothStronglyConvex,
    /// With a Lipschitz gradient and any number of minima; bounds the squared gradient.
    SmoothNonConvex,
}

impl From<Class> for Loss {
    fn from(class: Class) -> Self {
        match class {
            Class::Convex => Self::Convex,
            Class::SmoothConvex => Self::SmoothConvex,
            Class::SmoothGlm => Self::SmoothGlm,
            Class::StronglyConvex => Self::StronglyConvex,
            Class::SmoothStronglyConvex => Self::SmoothStronglyConvex,
            Class::SmoothNonConvex => Self::SmoothNonConvex,
        }
    }
}

/// The horizontal axis of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Over {
    /// From a tenth of the number of records to ten times as many.
    Records,
    /// From a tenth of ε to ten times as much.
    Epsilon,
}

/// Significant digits in text.
const DIGITS: usize = 3;

/// Points of a plot on either side of the given number.
const POINTS: i32 = 5;

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let kind = flags.output.as_deref().map(Kind::of).transpose()?;
    let (problem, privacy, factor) =
        (flags.problem(), flags.privacy(flags.epsilon)?, Factor::new(flags.factor)?);
    problem.check()?;
    if flags.plot.is_some() && flags.loss.is_none() {
        return Err(Refusal::new(
            "--plot is given without a class of losses, expected --loss",
            "for example, add --loss convex; `quell plan` without --plot shows all classes",
        )
        .into());
    }
    let losses: Vec<Loss> = match flags.loss {
        Some(class) => {
            let loss = class.into();
            check_loss(&problem, loss)?;
            vec![loss]
        }
        None => Loss::ALL.into_iter().filter(|loss| problem.has(*loss)).collect(),
    };
    if let (Some(over), [loss]) = (flags.plot, losses.as_slice()) {
        let figure = flags.figure(over, *loss, factor)?;
        if let (Some(path), Some(kind)) = (&flags.output, kind) {
            kind.write(&figure, path)?;
            print::status(&format!("wrote {}", path.display()));
        }
        return match flags.format {
            Format::Json => print::json(&figure),
            Format::Text if flags.output.is_none() => print::lines(&figure.characters()),
            Format::Text => Ok(()),
        };
    }
    let rows: Vec<(Method, Loss)> = losses
        .iter()
        .flat_map(|loss| Method::ALL.into_iter().map(move |method| (method, *loss)))
        .filter(|(method, loss)| method.applies_to(*loss))
        // A linear model is a smooth convex loss, so only what differs is shown beside it.
        .filter(|(method, loss)| {
            flags.loss.is_some() || *loss != Loss::SmoothGlm || *method == Method::ObjectivePerturbation
        })
        .collect();
    let progress = Bar::with_parts("planning", rows.len());
    let plans: Vec<Planned> = rows
        .into_iter()
        .map(|(method, loss)| {
            let plan = Plan::new(&problem, privacy, method, loss, factor);
            progress.step();
            Planned::new(method, loss, plan)
        })
        .collect();
    drop(progress);
    match flags.format {
        Format::Json => print::json(&Document {
            problem,
            epsilon: privacy.epsilon.get(),
            delta: privacy.delta.get(),
            neighbors: privacy.neighbors,
            factor: factor.get(),
            plans,
        }),
        Format::Text => print::lines(&(table(&problem, &plans) + &flags.summary(privacy))),
    }
}

/// Checks that the numbers that a class needs are given.
fn check_loss(problem: &Problem, loss: Loss) -> Result<()> {
    let missing = match (problem.smoothness, problem.strong_convexity) {
        (None, _) if loss.is_smooth() => "smoothness",
        (_, None) if loss.is_strongly_convex() => "strong-convexity",
        _ => return Ok(()),
    };
    let sentence = format!("no {missing} is given, expected one for a loss that is {}", loss.name());
    Err(Refusal::new(sentence, format!("give --{missing}")).into())
}

/// One row of the table: a plan, or why there is none.
#[derive(Serialize)]
struct Planned {
    method: Method,
    loss: Loss,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Plan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl Planned {
    fn new(method: Method, loss: Loss, plan: Result<Plan, quell::Error>) -> Self {
        let (plan, refused) = match plan {
            Ok(plan) => (Some(plan), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self { method, loss, plan, refused }
    }
}

#[derive(Serialize)]
struct Document {
    problem: Problem,
    epsilon: f64,
    delta: f64,
    neighbors: Neighbors,
    factor: f64,
    plans: Vec<Planned>,
}

fn table(problem: &Problem, plans: &[Planned]) -> String {
    let head = ["loss", "method", "risk ≤", "steps", "batch", "gradients", "bound"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for Planned { method, loss, plan, refused } in plans {
        let mut row = vec![loss.name().to_owned(), method.name().to_owned()];
        match plan {
            Some(plan) => row.extend(cells(problem, plan)),
            None => row.push(refused.clone().unwrap_or_default()),
        }
        rows.push(row);
    }
    print::table(&rows, &[2, 3, 4, 5])
}

fn cells(problem: &Problem, plan: &Plan) -> [String; 5] {
    let (steps, batch) = match plan.procedure {
        Procedure::Descend(descend) => (descend.steps.to_string(), descend.batch_size.to_string()),
        Procedure::Minimise { .. } => ("-".into(), "-".into()),
    };
    let useless = if plan.is_useful(problem) { "" } else { "; no better than the first weights" };
    [
        format_rounded(plan.risk, DIGITS, Toward::Up),
        steps,
        batch,
        plan.gradient_evaluations.map_or_else(|| "-".into(), format_brief),
        format!("{}{useless}", plan.theorem),
    ]
}

impl Flags {
    fn problem(&self) -> Problem {
        Problem {
            records: self.records,
            dimension: self.dimension,
            lipschitz: self.lipschitz,
            smoothness: self.smoothness,
            strong_convexity: self.strong_convexity,
            radius: self.radius,
        }
    }

    fn privacy(&self, epsilon: f64) -> Result<Privacy> {
        Ok(Privacy {
            epsilon: Epsilon::new(epsilon)?,
            delta: Delta::new(self.delta.unwrap_or_else(|| default_delta(self.records)))?,
            neighbors: self.relation.neighbors(),
        })
    }

    fn summary(&self, privacy: Privacy) -> String {
        format!(
            "every plan: ε ≤ {} at δ = {} {}\n",
            format_exact(privacy.epsilon.get()),
            format_exact(privacy.delta.get()),
            self.relation.when(),
        )
    }

    /// The bounds of all methods for a class, over the records or over ε.
    fn figure(&self, over: Over, loss: Loss, factor: Factor) -> Result<Figure> {
        let methods: Vec<Method> = Method::ALL.into_iter().filter(|method| method.applies_to(loss)).collect();
        let scales: Vec<f64> =
            (-POINTS..=POINTS).map(|i| 10_f64.powf(f64::from(i) / f64::from(POINTS))).collect();
        let progress = Bar::with_parts("planning", methods.len() * scales.len());
        let (mut series, mut refused) = (Vec::new(), None);
        for method in methods {
            let mut points = Vec::new();
            for scale in &scales {
                let (mut problem, mut epsilon) = (self.problem(), self.epsilon);
                let x = match over {
                    Over::Records => {
                        problem.records = ((self.records as f64 * scale).round() as u64).max(1);
                        problem.records as f64
                    }
                    Over::Epsilon => {
                        epsilon *= scale;
                        epsilon
                    }
                };
                match Plan::new(&problem, self.privacy(epsilon)?, method, loss, factor) {
                    Ok(plan) => points.push(Point::exact(x, plan.risk)),
                    Err(error) => refused = Some(error),
                }
                progress.step();
            }
            if !points.is_empty() {
                series.push(Series { name: method.name().into(), claim: Edge::Upper, points });
            }
        }
        drop(progress);
        if let (true, Some(error)) = (series.is_empty(), refused) {
            return Err(error.into());
        }
        let epsilon = match over {
            Over::Records => format!("ε = {}, ", format_exact(self.epsilon)),
            Over::Epsilon => format!("{} records, ", self.records),
        };
        let delta = format_exact(self.privacy(self.epsilon)?.delta.get());
        Ok(Figure {
            title: format!("Excess risk, {}", loss.name()),
            subtitle: format!(
                "{epsilon}δ = {delta}, {} weights, L = {}, R = {}, {}",
                self.dimension,
                format_exact(self.lipschitz),
                format_exact(self.radius),
                self.relation.when()
            ),
            x: Axis::logarithmic(match over {
                Over::Records => "records",
                Over::Epsilon => "ε",
            }),
            y: Axis::logarithmic(match loss {
                Loss::SmoothNonConvex => "bound on the squared gradient",
                _ => "bound on the excess risk",
            }),
            series,
        })
    }
}
