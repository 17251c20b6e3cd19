//! The public results of a labelling run.

use quell_privacy::number::{Toward, format_exact, format_rounded};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;

use super::Revealed;
use crate::{
    learner::Evaluation,
    run::{Folder, Outcome, PaymentRecord},
    voting::{Journal, Plan},
};

/// The public results of a labelling run, as `outcome.json` holds them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// The payment; `None` if nothing was paid yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paid: Option<PaymentRecord>,
    /// The data-dependent cost of the votes, if it was requested and released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revealed: Option<Revealed>,
    /// Whether that release was paid for, and lost when the run was killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reveal_lost: bool,
    /// Questions that were answered.
    pub answered: usize,
    /// Questions that were refused.
    pub refused: usize,
    /// The share of answers that are right, if the public records have labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<f64>,
    /// The evaluation of the student on public records outside the questions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen: Option<Evaluation>,
    /// The evaluation of the student on all public records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Evaluation>,
    /// Total time of the run in seconds, including earlier sessions.
    pub seconds: f64,
    /// Whether the run is complete.
    pub finished: bool,
}

impl Results {
    /// The results in words and as JSON.
    pub(super) fn describe(&self, plan: &Plan, has_student: bool) -> Outcome {
        let right = self
            .right
            .map(|share| format!(", {:.1} % of the answers are correct", 100.0 * share))
            .unwrap_or_default();
        let mut results =
            vec![format!("questions: {} answered, {} refused{right}", self.answered, self.refused)];
        let evaluations =
            [(&self.unseen, "public records without a question"), (&self.all, "public records in all")];
        results.extend(evaluations.iter().filter_map(|(found, whose)| Some(found.as_ref()?.describe(whose))));
        if let Some(Revealed { epsilon, of_the_dataset }) = self.revealed {
            let of = if of_the_dataset { "these data and their neighbours" } else { "what came out" };
            let delta = self.paid.as_ref().map_or(plan.delta.get(), |paid| paid.delta);
            let (epsilon, delta) = (format_rounded(epsilon, 4, Toward::Up), format_exact(delta));
            results.push(format!(
                "at the votes that were cast: ε ≤ {epsilon} at δ = {delta}, of {of}, this line included"
            ));
        }
        let lost = "what the votes cost was paid for, and lost when the run was killed";
        let mut json = json!({
            "revealed": self.revealed,
            "reveal_lost": self.reveal_lost,
            "answered": self.answered,
            "refused": self.refused,
        });
        if has_student {
            let accuracy = |found: &Option<Evaluation>| found.as_ref().and_then(Evaluation::accuracy);
            json["answers_right"] = json!(self.right);
            json["accuracy"] = json!({"unseen": accuracy(&self.unseen), "all": accuracy(&self.all)});
            json["seconds"] = json!(self.seconds);
        }
        Outcome {
            is_finished: self.finished,
            position: format!("{} answers", self.answered),
            paid: self.paid.clone(),
            results,
            remarks: self.reveal_lost.then(|| lost.to_owned()).into_iter().collect(),
            json: json.as_object().cloned().unwrap_or_default(),
            answers: (!has_student).then_some(Folder::ANSWERS),
        }
    }

    pub(super) fn count<A: Clone + Serialize + DeserializeOwned>(&mut self, journal: &Journal<A>) {
        self.answered = journal.answers().len();
        self.refused = journal.entries().len() - self.answered;
    }
}
