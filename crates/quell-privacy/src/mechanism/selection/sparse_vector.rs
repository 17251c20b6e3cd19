//! The sparse vector technique: which of many counts reach a threshold.
//!
//! Only the counts that reach it cost privacy.

use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{IntegerNoise, Mechanism, Noise, Sealed, Sensitive, unit_event},
    noise::random::{Key, Stream},
    number::format_brief,
    units::{Epsilon, Order, Scale},
};

/// The sparse vector technique with Laplace noise.
///
/// It reports which counts reach a threshold, until a given number of counts did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparseVector {
    threshold: i64,
    positives: u32,
    epsilon: Epsilon,
    on_threshold: IntegerNoise,
    on_counts: IntegerNoise,
}

impl SparseVector {
    /// Stops after `positives` counts that reached the threshold; ε is the total cost.
    ///
    /// # Theorem
    /// [LSL17], for counts that move by at most one between neighbours: ε₁ for the threshold with noise 1/ε₁,
    /// ε₂ for the answers with noise 2c/ε₂, divided in the ratio 1 : (2c)^(2/3), which is best for a fixed ε.
    /// Counts and noise are integers, and the argument shifts the noise by integers only.
    pub fn new(threshold: i64, positives: u32, epsilon: Epsilon) -> Result<Self, Error> {
        let c = f64::from(positives.max(1));
        let first = epsilon.get() / (1.0 + (2.0 * c).powf(2.0 / 3.0));
        let second = epsilon.get() - first;
        let noise = |scale: f64| {
            Ok::<_, Error>(IntegerNoise::new(Noise::Laplace, Scale::new(scale * (1.0 + 1e-12))?))
        };
        Ok(Self {
            threshold,
            positives,
            epsilon,
            on_threshold: noise(1.0 / first)?,
            on_counts: noise(2.0 * c / second)?,
        })
    }
}

impl Sealed for SparseVector {}

impl Mechanism for SparseVector {
    fn event(&self, _: Neighbors) -> Event {
        Event::Pure { epsilon: self.epsilon }
    }
}

impl std::fmt::Display for SparseVector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { threshold, positives, epsilon, .. } = self;
        write!(
            f,
            "sparse vector technique: the first {positives} counts that reach {threshold}, with Laplace noise and epsilon {}",
            format_brief(epsilon.get())
        )
    }
}

impl Paid<SparseVector> {
    /// Starts to answer questions.
    pub fn run(mut self) -> Result<AboveThreshold, Error> {
        let SparseVector { threshold, positives, on_threshold, on_counts, .. } = self.mechanism;
        // The threshold's noise is drawn once. [LSL17]
        Ok(AboveThreshold::new(self.key()?.stream(0), threshold, positives, None, [on_threshold, on_counts]))
    }
}

/// The sparse vector technique with Gaussian noise: lighter tails, and a Rényi bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianSparseVector {
    /// The value that counts must reach.
    pub threshold: i64,
    /// Number of counts above the threshold after which to stop.
    pub positives: u32,
    /// Largest number of questions between two positives.
    pub questions: u32,
    /// Noise on the threshold, drawn anew after each positive.
    pub on_threshold: Scale,
    /// Noise on every count.
    pub on_counts: Scale,
}

/// Orders at which the Rényi bound is stated.
const ORDERS: [f64; 20] = [
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0,
    128.0, 256.0,
];

impl Sealed for GaussianSparseVector {}

impl Mechanism for GaussianSparseVector {
    /// # Theorem
    /// (THEORY, Sparse vector) [ZW20] Up to one positive among k questions, for counts that move by at most
    /// one: ε(α) = α/2σ₁² + 4α/2σ₂² + ln(k + 1)/(α - 1). Several positives compose.
    fn event(&self, _: Neighbors) -> Event {
        let (first, second) = (
            IntegerNoise::new(Noise::Gaussian, self.on_threshold),
            IntegerNoise::new(Noise::Gaussian, self.on_counts),
        );
        let rate = 0.5 / first.scale().powi(2) + 2.0 / second.scale().powi(2);
        let bound = |alpha: f64| {
            (alpha * rate + f64::from(self.questions).ln_1p() / (alpha - 1.0))
                * f64::from(self.positives)
                * (1.0 + 1e-14)
        };
        let curve: Result<Vec<_>, Error> =
            ORDERS.iter().map(|&alpha| Ok((Order::new(alpha)?, Epsilon::new(bound(alpha))?))).collect();
        unit_event(curve, |curve| Event::Renyi { curve })
    }
}

impl std::fmt::Display for GaussianSparseVector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { threshold, positives, questions, on_threshold, on_counts } = self;
        write!(
            f,
            "sparse vector technique: the first {positives} counts that reach {threshold}, at most {questions} questions before each, with Gaussian noise of standard deviation {} on the threshold and {} on the counts",
            format_brief(on_threshold.get()),
            format_brief(on_counts.get())
        )
    }
}

impl Paid<GaussianSparseVector> {
    /// Starts to answer questions.
    pub fn run(mut self) -> Result<AboveThreshold, Error> {
        Ok(self.mechanism.open(&self.key()?))
    }
}

impl GaussianSparseVector {
    /// Starts to answer questions for a mechanism that was already paid for.
    pub(in crate::mechanism) fn open(self, key: &Key) -> AboveThreshold {
        let noise =
            [self.on_threshold, self.on_counts].map(|scale| IntegerNoise::new(Noise::Gaussian, scale));
        AboveThreshold::new(key.stream(0), self.threshold, self.positives, Some(self.questions), noise)
    }
}

/// A paid run, which answers until its positives are used up.
pub struct AboveThreshold {
    stream: Stream,
    threshold: i64,
    noisy_threshold: i128,
    positives_left: u32,
    /// Largest number of questions for one noisy threshold; after that, `ask` answers nothing.
    ///
    /// `None`: the threshold's noise is drawn once and questions are not limited.
    questions: Option<u32>,
    asked: u32,
    on_threshold: IntegerNoise,
    on_counts: IntegerNoise,
}

impl AboveThreshold {
    fn new(
        mut stream: Stream,
        threshold: i64,
        positives_left: u32,
        questions: Option<u32>,
        noise: [IntegerNoise; 2],
    ) -> Self {
        let [on_threshold, on_counts] = noise;
        let noisy_threshold = i128::from(threshold) + i128::from(on_threshold.draw(&mut stream));
        Self {
            stream,
            threshold,
            noisy_threshold,
            positives_left,
            questions,
            asked: 0,
            on_threshold,
            on_counts,
        }
    }

    /// Answers whether a count reaches the threshold, after noise.
    ///
    /// Returns `None` once the answers that were paid for are used up.
    ///
    /// # Contract
    /// One record moves the count by at most one. The question may depend on earlier answers.
    pub fn ask(&mut self, count: &Sensitive<i64>) -> Option<bool> {
        if self.positives_left == 0 || self.questions.is_some_and(|most| self.asked >= most) {
            return None;
        }
        self.asked = self.asked.saturating_add(1);
        let reached =
            i128::from(count.0) + i128::from(self.on_counts.draw(&mut self.stream)) >= self.noisy_threshold;
        if reached {
            self.positives_left -= 1;
            self.asked = 0;
            if self.questions.is_some() {
                self.noisy_threshold =
                    i128::from(self.threshold) + i128::from(self.on_threshold.draw(&mut self.stream));
            }
        }
        Some(reached)
    }
}
