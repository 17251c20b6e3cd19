//! `quell curve`: plots of privacy guarantees, in a file or in the terminal.

mod figures;
pub(crate) mod file;

use std::path::PathBuf;

use anyhow::Result;
use quell_report::plot::Figure;
use serde::Serialize;

use file::Kind;

use crate::{
    flags::{
        Format,
        event::{Described, Relation, RequestedMethod, Run, accountants},
    },
    print,
    refusal::Refusal,
};

const EXAMPLES: &str = "\
Examples:
  quell curve epsilon-steps
  quell curve moments-advanced --output moments.svg
  quell curve tradeoff --noise-multiplier 1 --sampling-rate 0.02 --steps 500 --output tradeoff.png
  quell curve laplace-gaussian --format json";

/// Plot privacy curves: ε over steps, δ over ε, attacks, noise, accountants
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Flags {
    #[command(subcommand)]
    curve: Curve,
}

#[derive(clap::Subcommand)]
enum Curve {
    EpsilonSteps(EpsilonSteps),
    DeltaEpsilon(DeltaEpsilon),
    Tradeoff(Tradeoff),
    LaplaceGaussian(LaplaceGaussian),
    MomentsAdvanced(MomentsAdvanced),
}

/// Plot ε over the number of steps
///
/// Without flags: noise multiplier 1.1, sampling rate 0.01, 10000 steps, the PLD accountant. With
/// --contraction or --diameter, the figure shows ε of the last iterate beside ε of all iterates.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  quell curve epsilon-steps
  quell curve epsilon-steps --noise-multiplier 0.8 --sampling-rate 0.02 --steps 2000 --delta 1e-6
  quell curve epsilon-steps --accountant pld --accountant rdp --accountant rdp-classic --output steps.svg
  quell curve epsilon-steps --noise-multiplier 20 --contraction 0.99 --steps 1000 --output last.svg")]
struct EpsilonSteps {
    #[command(flatten)]
    described: Described,
    /// δ of the guarantee
    #[arg(long, value_name = "D", default_value_t = 1e-5, allow_negative_numbers = true)]
    delta: f64,
    /// Accountant to show; may be repeated (the PLD accountant if not given)
    #[arg(long, value_name = "NAME", value_parser = accountants())]
    accountant: Vec<RequestedMethod>,
    #[command(flatten)]
    output: Output,
}

/// Plot δ over ε, on a logarithmic axis
///
/// Without flags: noise multiplier 1.1, sampling rate 0.01, 10000 steps.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  quell curve delta-epsilon
  quell curve delta-epsilon --noise-multiplier 2 --steps 10 --sampling-rate 1 --smallest-delta 1e-8 --output profile.svg
  quell curve delta-epsilon --event '{\"laplace\":{\"noise_multiplier\":1.0}}' --output profile.png")]
struct DeltaEpsilon {
    #[command(flatten)]
    described: Described,
    /// Smallest δ of the curve
    #[arg(long, value_name = "D", default_value_t = 1e-10, allow_negative_numbers = true)]
    smallest_delta: f64,
    #[command(flatten)]
    output: Output,
}

/// Plot the least false-negative rate of any attack over its false-positive rate
///
/// Without flags: noise multiplier 1.1, sampling rate 0.01, 10000 steps.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  quell curve tradeoff
  quell curve tradeoff --noise-multiplier 2 --sampling-rate 1 --steps 4 --output attack.png
  quell curve tradeoff --noise laplace --noise-multiplier 1 --sampling-rate 1 --steps 1 --format json")]
struct Tradeoff {
    #[command(flatten)]
    described: Described,
    #[command(flatten)]
    output: Output,
}

/// Plot the densities of Laplace and Gaussian noise at equal ε
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  quell curve laplace-gaussian
  quell curve laplace-gaussian --epsilon 0.9 --delta 1e-2 --output densities.svg")]
struct LaplaceGaussian {
    /// ε of both mechanisms
    #[arg(long, value_name = "E", default_value_t = 0.5, allow_negative_numbers = true)]
    epsilon: f64,
    /// δ of the Gaussian mechanism; the δ of the Laplace mechanism is zero
    #[arg(long, value_name = "D", default_value_t = 1e-5, allow_negative_numbers = true)]
    delta: f64,
    #[command(flatten)]
    output: Output,
}

/// Plot ε by the moments accountant, advanced composition and the PLD accountant
///
/// Without flags: noise multiplier 4, sampling rate 0.01, 40000 steps, δ = 1e-5, as in the paper on the
/// moments accountant.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  quell curve moments-advanced
  quell curve moments-advanced --noise-multiplier 2 --sampling-rate 0.005 --steps 10000 --output moments.png")]
struct MomentsAdvanced {
    #[command(flatten)]
    run: Run,
    #[command(flatten)]
    relation: Relation,
    /// δ of the guarantee
    #[arg(long, value_name = "D", default_value_t = 1e-5, allow_negative_numbers = true)]
    delta: f64,
    #[command(flatten)]
    output: Output,
}

/// Output of a curve.
#[derive(Clone, clap::Args)]
struct Output {
    /// File to write: .svg or .png (drawn in the terminal if not given)
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Output format; json prints the points of the curves
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(flags: Flags) -> Result<()> {
    // Check the name of the output before the work starts.
    let file_kind = |output: &Output| output.output.as_deref().map(Kind::of).transpose();
    match flags.curve {
        Curve::EpsilonSteps(flags) => {
            let kind = file_kind(&flags.output)?;
            show("epsilon-steps", &flags.output, kind, &figures::epsilon_steps(&flags)?)
        }
        Curve::DeltaEpsilon(flags) => {
            let kind = file_kind(&flags.output)?;
            show("delta-epsilon", &flags.output, kind, &figures::delta_epsilon(&flags)?)
        }
        Curve::Tradeoff(flags) => {
            let kind = file_kind(&flags.output)?;
            show("tradeoff", &flags.output, kind, &figures::tradeoff(&flags)?)
        }
        Curve::LaplaceGaussian(flags) => {
            let kind = file_kind(&flags.output)?;
            show("laplace-gaussian", &flags.output, kind, &figures::laplace_gaussian(&flags)?)
        }
        Curve::MomentsAdvanced(flags) => {
            let kind = file_kind(&flags.output)?;
            show("moments-advanced", &flags.output, kind, &figures::moments_advanced(&flags)?)
        }
    }
}

fn show(curve: &'static str, output: &Output, kind: Option<Kind>, figure: &Figure) -> Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        curve: &'static str,
        #[serde(flatten)]
        figure: &'a Figure,
    }
    let draws = output.output.is_some() || output.format == Format::Text;
    if draws && figure.is_empty() {
        let points: usize = figure.series.iter().map(|series| series.points.len()).max().unwrap_or(0);
        let sentence = if points < 2 {
            "there is nothing to draw: the curve has one point, expected two or more"
        } else {
            "there is nothing to draw: the curve has fewer than two finite values"
        };
        let hint = "ask for more steps or more noise; or print the points with --format json";
        return Err(Refusal::new(sentence, hint).into());
    }
    if let (Some(path), Some(kind)) = (&output.output, kind) {
        kind.write(figure, path)?;
        print::status(&format!("wrote {}", path.display()));
    }
    match output.format {
        Format::Json => print::json(&Document { curve, figure }),
        Format::Text if output.output.is_none() => print::lines(&figure.characters()),
        Format::Text => Ok(()),
    }
}
