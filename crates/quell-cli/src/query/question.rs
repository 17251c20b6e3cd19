//! From flags to mechanisms.

use anyhow::Result;
use quell::data::Selection;
use quell_ledger::Volume;
use quell_privacy::{
    Neighbors,
    accounting::closed::gaussian_sigma,
    ledger::Ledger,
    mechanism::{
        Bounds, Count, Histogram, IntegerNoise, Mean, Noise, NoisyThreshold, Quantile, Range, Sensitive, SmoothMedian,
        StableHistogram, Sum, Variance,
    },
    units::{Delta, Epsilon, NoiseMultiplier, Probability, Scale},
};

use super::{Answer, Flags, Statistic};
use crate::refusal::Refusal;

impl Flags {
    pub(super) fn ask(&self, ledger: &mut Ledger<Volume>, selection: &Selection<'_>) -> Result<()> {
        let reach = ledger.state()?.terms().neighbors.reach();
        let replace = ledger.state()?.terms().neighbors == Neighbors::Replace;
        let state = ledger.state()?;
        // Gaussian noise is made for the δ of the budget; what has a δ of its own gets a small part of it.
        let noise_delta = self.delta.map_or(Ok(state.budget().delta), Delta::new)?;
        let own_delta = Delta::new(self.delta.unwrap_or_else(|| state.usual_delta()))?;
        // One record moves a count by one under either relation.
        let count = |epsilon: f64| self.integer_noise(epsilon, noise_delta, 1);
        // Noise over a contribution, which moves a sum `reach` times.
        let multiple = |epsilon: f64| self.multiplier(epsilon, noise_delta, reach);
        let numbers = || Ok(Sensitive::new(self.numbers(selection)?));
        let records = || Ok(Sensitive::new(selection.count()?));
        let keys = || Ok(Sensitive::new(selection.texts(self.column()?)?));
        match self.statistic {
            Statistic::Count => {
                let make = |epsilon| Ok(Count { noise: count(epsilon)? });
                self.release(ledger, make, records, |paid, data| Ok(Answer::number("count", paid.run(&data)?)))
            }
            Statistic::Reaches => {
                let missing = || Refusal::new("no threshold is given, expected a number of records", "add --threshold N");
                let threshold = self.threshold.ok_or_else(missing)?;
                let make = |epsilon| Ok(NoisyThreshold { threshold, noise: count(epsilon)? });
                self.release(ledger, make, records, |paid, data| Ok(Answer::Truth(paid.run(&data)?)))
            }
            Statistic::Sum => {
                let bounds = self.bounds()?;
                let make = |epsilon| Ok(Sum { bounds, noise: self.noise.into(), noise_multiplier: multiple(epsilon)? });
                self.release(ledger, make, numbers, |paid, data| Ok(Answer::number("sum", paid.run(&data)?)))
            }
            Statistic::Mean => {
                let (bounds, noise) = (self.bounds()?, self.noise.into());
                // Half for the sum, half for the count.
                let make = |epsilon: f64| {
                    Ok(Mean { bounds, noise, noise_multiplier: multiple(epsilon / 2.0)?, count: count(epsilon / 2.0)? })
                };
                self.release(ledger, make, numbers, |paid, data| Ok(Answer::number("mean", paid.run(&data)?)))
            }
            Statistic::Variance => {
                let (bounds, noise) = (self.bounds()?, self.noise.into());
                let make = |epsilon: f64| {
                    Ok(Variance { bounds, noise, noise_multiplier: multiple(epsilon / 3.0)?, count: count(epsilon / 3.0)? })
                };
                self.release(ledger, make, numbers, |paid, data| Ok(Answer::number("variance", paid.run(&data)?)))
            }
            Statistic::Histogram => {
                let Some(known) = &self.keys else { return self.ask_unknown_keys(ledger, selection, own_delta.get()) };
                // An exchange moves two counts.
                let moves = if replace { 2 } else { 1 };
                let make =
                    |epsilon| Ok(Histogram { keys: known.clone(), noise: self.integer_noise(epsilon, noise_delta, moves)? });
                self.release(ledger, make, keys, |paid, data| Ok(Answer::Bins(paid.run(&data)?)))
            }
            Statistic::Quantile => {
                let (bounds, quantile) = (self.bounds()?, Probability::new(self.quantile)?);
                let make = |epsilon| Ok(Quantile { bounds, quantile, epsilon: Epsilon::new(epsilon)? });
                self.release(ledger, make, numbers, |paid, data| Ok(Answer::number("quantile", paid.run(&data)?)))
            }
            Statistic::SmoothMedian => {
                let bounds = self.bounds()?;
                let make = |epsilon| Ok(SmoothMedian::new(bounds, Epsilon::new(epsilon)?, own_delta)?);
                self.release(ledger, make, numbers, |paid, data| Ok(Answer::number("median", paid.run(&data)?)))
            }
            Statistic::Range => {
                let (bounds, inside) = (self.bounds()?, Probability::new(self.inside)?);
                let make = |epsilon: f64| Ok(Range { bounds, inside, epsilon: Epsilon::new(epsilon / 2.0)? });
                self.release(ledger, make, numbers, |paid, data| Ok(Answer::Ends(paid.run(&data)?)))
            }
        }
    }

    fn ask_unknown_keys(&self, ledger: &mut Ledger<Volume>, selection: &Selection<'_>, delta: f64) -> Result<()> {
        let replace = ledger.state()?.terms().neighbors == Neighbors::Replace;
        let make = |epsilon: f64| {
            // For an exchange: (2ε, (1 + e^ε)δ).
            let (epsilon, delta) =
                if replace { (epsilon / 2.0, delta / (1.0 + (epsilon / 2.0).exp())) } else { (epsilon, delta) };
            Ok(StableHistogram::new(Epsilon::new(epsilon)?, Delta::new(delta)?)?)
        };
        let keys = || Ok(Sensitive::new(selection.texts(self.column()?)?));
        self.release(ledger, make, keys, |paid, data| Ok(Answer::Bins(paid.run(&data)?)))
    }

    fn bounds(&self) -> Result<Bounds> {
        if let Some(&[lower, upper]) = self.bounds.as_deref() {
            return Ok(Bounds::new(lower, upper)?);
        }
        let hint = "add --bounds LOWER UPPER from what is publicly known, not from the data; quantile and range need them too";
        Err(Refusal::new("no bounds are given, expected the range that numbers are held to", hint).into())
    }

    /// Noise for counts of which one record moves `moves` by one each.
    fn integer_noise(&self, epsilon: f64, delta: Delta, moves: u32) -> Result<IntegerNoise> {
        Ok(match Noise::from(self.noise) {
            Noise::Laplace => IntegerNoise::for_epsilon(Epsilon::new(epsilon)?, moves)?,
            Noise::Gaussian => {
                let sigma = gaussian_sigma(Epsilon::new(epsilon)?, delta)?.get();
                IntegerNoise::new(Noise::Gaussian, Scale::new(sigma * f64::from(moves).sqrt())?)
            }
        })
    }

    /// Noise over a contribution that moves a sum `reach` times.
    fn multiplier(&self, epsilon: f64, delta: Delta, reach: f64) -> Result<NoiseMultiplier> {
        let epsilon = Epsilon::new(epsilon)?;
        let over_movement = match Noise::from(self.noise) {
            Noise::Laplace => 1.0 / epsilon.get() * (1.0 + 1e-12),
            Noise::Gaussian => gaussian_sigma(epsilon, delta)?.get(),
        };
        Ok(NoiseMultiplier::new(over_movement * reach)?)
    }
}
