//! Profiles: bounds on δ at many ε at once, from one composition.

use super::{
    Law, NEGLIGIBLE, Pld, PrivacyLoss, Question, REFINEMENTS, Target, compose, composed::End, privacy_losses,
};
use crate::{
    Error, Event, Neighbors,
    accounting::search::{Sketch, Tilt, snapped},
};

/// Upper and lower profiles of one direction at many ε, including negative ones.
///
/// Each is a list of (ε, δ(ε)) in decreasing order of ε.
pub(crate) struct Profiles {
    pub(crate) upper: Vec<(f64, f64)>,
    pub(crate) lower: Vec<(f64, f64)>,
}

impl Profiles {
    /// The trivial profiles: valid, but without information.
    fn trivial() -> Self {
        Self { upper: vec![(f64::NEG_INFINITY, 1.0)], lower: Vec::new() }
    }
}

impl Pld {
    /// The profiles of the event, precise for probabilities down to `tail`.
    ///
    /// `None` if the event has no guarantee.
    pub(crate) fn profiles(
        &self,
        event: &Event,
        neighbors: Neighbors,
        tail: f64,
    ) -> Result<Option<Vec<Profiles>>, Error> {
        let losses = privacy_losses(event, neighbors)?;
        if losses.iter().any(|loss| loss.non_private) {
            return Ok(None);
        }
        Ok(Some(losses.iter().map(|loss| self.profiles_of(loss, tail)).collect()))
    }

    /// The profiles of one direction.
    pub(super) fn profiles_of(&self, loss: &PrivacyLoss, tail: f64) -> Profiles {
        let question = Question::Epsilon { delta: tail };
        let target = Target { epsilon: 0.0, ln_delta: (1e-3 * tail).ln(), negligible: NEGLIGIBLE };
        let likely = question.first_target(&loss.factors);
        let sketch = Sketch::new(&loss.factors, Question::negligible(likely, &loss.factors));
        let tilt = sketch.tilt_for(likely.epsilon, likely.ln_delta);
        let mut h = question.first_step(self, &sketch, tilt, likely);
        // No tilt: all probabilities matter equally.
        let flat = Tilt { theta: 0.0, ln_total: 0.0, ..tilt };
        let lower = loss.attained().and_then(|alternatives| alternatives.into_iter().next());
        let lower = lower.as_deref().unwrap_or(&loss.factors);
        let (mut best, mut last_gap): (Option<Profiles>, f64) = (None, f64::INFINITY);
        for _ in 0..REFINEMENTS {
            let step = snapped(&loss.factors, h);
            let Some((upper, lower)) = self.compose_both(&loss.factors, lower, flat, target, step, true)
            else {
                if best.is_some() {
                    break;
                }
                h *= 4.0;
                continue;
            };
            let found = Profiles {
                upper: upper.profile(End::Upper),
                lower: lower.as_ref().map_or_else(Vec::new, |lower| lower.profile(End::Lower)),
            };
            // The widest gap may be next to an atom, anywhere. No profile is below that of two equal
            // distributions, 1 - e^ε.
            let from_below = |epsilon: f64| {
                lower.as_ref().map_or(0.0, |lower| lower.delta(End::Lower, epsilon)).max(-epsilon.exp_m1())
            };
            let nodes = found.upper.iter().filter(|(epsilon, _)| epsilon.is_finite());
            let gap = nodes.map(|(epsilon, delta)| delta - from_below(*epsilon)).fold(0.0, f64::max);
            best = Some(found);
            // Lower bounds next to atoms may not rise however fine the grid is.
            if gap <= 0.5 * self.absolute || gap > 0.9 * last_gap {
                break;
            }
            last_gap = gap;
            h *= (0.25 * self.absolute / gap).sqrt().clamp(0.1, 0.7);
        }
        best.unwrap_or_else(Profiles::trivial)
    }

    /// The upper profile, tilted to where δ is about `likely`.
    ///
    /// It is precise for probabilities down to `least`, and empty if it takes too many points.
    pub(super) fn far_profile(&self, factors: &[(Law, u64)], likely: f64, least: f64) -> Vec<(f64, f64)> {
        let question = Question::Epsilon { delta: likely };
        let first = question.first_target(factors);
        let sketch = Sketch::new(factors, Question::negligible(first, factors));
        let tilt = sketch.tilt_for(first.epsilon, first.ln_delta);
        let target = Target { ln_delta: least.ln(), ..first };
        let mut h = snapped(factors, question.first_step(self, &sketch, tilt, target));
        for _ in 0..REFINEMENTS {
            let composed = Self::grids(factors, tilt, target, h).and_then(|grids| {
                let upper: Vec<_> = grids.iter().map(|(grid, count)| (grid.upper(), *count)).collect();
                compose(&upper, h, tilt.theta, target, self.longest, true)
            });
            if let Some(composed) = composed {
                return composed.profile(End::Upper);
            }
            h *= 2.0;
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{NoiseMultiplier, SamplingRate};

    #[test]
    fn profiles_have_no_more_points_than_their_accuracy_needs() {
        let training =
            Event::dp_sgd(NoiseMultiplier::new(2.0).unwrap(), SamplingRate::new(0.01).unwrap(), 100);
        let profiles = Pld::default().profiles(&training, Neighbors::AddRemove, 1e-9).unwrap().unwrap();
        for direction in profiles {
            assert!(direction.upper.len() < 1 << 14, "{} points", direction.upper.len());
            let at = |side: &[(f64, f64)]| side.iter().find(|(epsilon, _)| *epsilon <= 0.0).unwrap().1;
            let (upper, lower) = (at(&direction.upper), at(&direction.lower));
            assert!(upper >= lower && upper - lower < 1e-4, "{lower} {upper}");
        }
    }
}
