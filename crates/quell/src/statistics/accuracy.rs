//! The accuracy of a model on private records, as a paid release.

use quell_privacy::{
    ledger::{Book, Ledger, State},
    mechanism::{Count, Histogram, Price, Release, Sensitive, Within},
    number::{Toward, format_rounded},
    units::Epsilon,
};
use serde::Serialize;

use super::{
    Visitor,
    question::{Charge, Limited, check_unit},
};
use crate::Error;

/// A question about the accuracy of a model, with the privacy that its answer may cost.
///
/// ```
/// use quell::{data, learner::{correct, loss::Loss}, network, statistics::Accuracy};
/// use quell::{ledger::InMemory, privacy::units::{Delta, Epsilon}};
/// # let digits = data::digits()?.train;
/// # let network = network::named("logistic", digits.shape(), 10)?;
/// # let weights = vec![0.0; network.parameters()];
/// # let loss = Loss::CrossEntropy { label_smoothing: 0.0 };
/// let mut ledger = InMemory::ledger("digits", Epsilon::new(1.0)?, Delta::new(1e-5)?)?;
/// let correct = correct(&network, &weights, &digits, loss);
/// println!("{}", Accuracy::new(0.5).ask(&mut ledger, &correct)?);
/// # Ok::<(), quell::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Accuracy {
    /// ε of the answer.
    pub epsilon: f64,
    /// The number of evaluated records, if this number is public.
    ///
    /// Then the noise is on the number of correct predictions only.
    pub records: Option<u64>,
    /// Whether each user has one record. Without this, a ledger that protects users needs a limit.
    pub one_record_per_user: bool,
    /// The most evaluated records of a user, if they are limited. The noise is for all of them.
    pub most_per_user: Option<u32>,
}

/// The bins of records that are predicted correctly and wrongly.
const KEYS: [&str; 2] = ["right", "wrong"];

impl Accuracy {
    /// Creates a question at this ε. The number of records is not public.
    #[must_use]
    pub fn new(epsilon: f64) -> Self {
        Self { epsilon, records: None, one_record_per_user: false, most_per_user: None }
    }

    /// Pays for the accuracy and draws it.
    ///
    /// `correct` says for each record whether the model predicts its class
    /// ([`correct`](crate::learner::correct)).
    ///
    /// # Contract
    /// Where the ledger protects users, `one_record_per_user` is true only if each user has one record. With a limit,
    /// `correct` has at most so many records of each user ([`Examples::at_most_per_user`]).
    ///
    /// [`Examples::at_most_per_user`]: crate::data::Examples::at_most_per_user
    pub fn ask<B: Book>(&self, ledger: &mut Ledger<B>, correct: &[bool]) -> Result<Score, Error> {
        let state = ledger.state()?.clone();
        self.visit(&state, correct, Charge { ledger, epsilon: self.epsilon })?
    }

    /// Passes the mechanism that answers this question to a visitor.
    pub fn visit<'a, V: Visitor<'a, Score>>(
        &'a self,
        state: &State,
        correct: &'a [bool],
        visitor: V,
    ) -> Result<V::Output, Error> {
        check_unit(state, self.one_record_per_user, self.most_per_user)?;
        match self.most_per_user {
            Some(most) => Ok(self.of_records(state, correct, Limited { most, visitor })),
            None => Ok(self.of_records(state, correct, visitor)),
        }
    }

    /// Passes the mechanism to a visitor, with noise for all records of a user.
    ///
    /// The visitor makes the charge one for users.
    fn of_records<'a, V: Visitor<'a, Score>>(
        &'a self,
        state: &State,
        correct: &'a [bool],
        visitor: V,
    ) -> V::Output {
        let (neighbors, most) = (state.terms().neighbors, self.most_per_user.unwrap_or(1));
        let price = move |epsilon: f64| {
            Ok::<_, Error>(Price::laplace(Epsilon::new(epsilon)?).under(neighbors).for_users_with(most))
        };
        if let Some(records) = self.records {
            return visitor.visit(
                move |epsilon| Ok(Count::for_epsilon(price(epsilon)?)?),
                || Ok(Sensitive::new(correct.iter().filter(|correct| **correct).count() as u64)),
                move |paid, data| Ok(Score::new(paid.run(&data)?, records as f64)),
            );
        }
        // A record is either right or wrong, so it is in one of two bins.
        let bin = |correct: &bool| Some(KEYS[usize::from(!correct)].to_owned());
        visitor.visit(
            move |epsilon| Ok(Histogram::for_epsilon(KEYS.map(str::to_owned).to_vec(), price(epsilon)?)?),
            move || Ok(Sensitive::new(correct.iter().map(bin).collect::<Vec<_>>())),
            |paid, data| {
                let counts = paid.run(&data)?;
                let all: f64 = counts.iter().map(|(_, count)| count.value).sum();
                let nothing = Release { value: 0.0, within: Within::Secret };
                Ok(Score::new(counts.first().map_or(nothing, |(_, right)| *right), all))
            },
        )
    }
}

/// The released accuracy on private data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Correct predictions divided by records, with the error that holds with probability 95 %.
    pub accuracy: Option<Release>,
    /// The noisy number of correct predictions.
    #[serde(rename = "right")]
    pub correct: Release,
    /// The number of records: public, or the sum of both noisy counts.
    pub records: f64,
}

impl Score {
    /// Computes the accuracy and its error.
    ///
    /// Let r records be predicted correctly and w wrongly, with noise x and y on these counts. Then the error
    /// of (r + x)/(r + x + w + y) is ((1 - a)x - ay)/(r + x + w + y) for a = r/(r + w). That is a weighted mean
    /// of two independent noises, divided by the noisy number of records. By Proschan (1965), a weighted mean
    /// of independent symmetric log-concave noises is more peaked around zero than one of them.
    fn new(correct: Release, records: f64) -> Self {
        let accuracy = match correct.within {
            Within::Value(error) if records > 0.0 => Some(Release {
                value: (correct.value / records).clamp(0.0, 1.0),
                within: Within::Value(error / records),
            }),
            _ => None,
        };
        Self { accuracy, correct, records }
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(Release { value, within: Within::Value(error) }) = self.accuracy else {
            return f.write_str("accuracy: unknown, because the noise is larger than the number of records");
        };
        let (share, error) = (100.0 * value, 100.0 * error);
        let places = (1.0 - error.max(1e-300).log10().floor()).clamp(0.0, 6.0) as usize;
        // The stated error includes the rounding error.
        let about = format_rounded(error + 0.5 * 10_f64.powi(-(places as i32)), 2, Toward::Up);
        write!(
            f,
            "accuracy: {share:.places$} % ± {about} percentage points, {} of {} correct",
            self.correct.value, self.records
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noisy_accuracy_is_printed_with_its_error() {
        let right = Release { value: 900.0, within: Within::Value(30.0) };
        assert_eq!(
            Score::new(right, 1000.0).to_string(),
            "accuracy: 90.0 % ± 3.1 percentage points, 900 of 1000 correct"
        );
        let nothing = Score::new(Release { value: 3.0, within: Within::Value(30.0) }, -4.0).to_string();
        assert!(nothing.starts_with("accuracy: unknown"), "{nothing}");
        let more = Score::new(Release { value: 20.0, within: Within::Value(30.0) }, 10.0);
        assert_eq!(more.accuracy.map(|accuracy| accuracy.value), Some(1.0));
    }
}
