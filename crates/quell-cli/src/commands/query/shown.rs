//! Answers as they are printed.

use std::collections::{HashMap, HashSet};

use quell::{privacy::mechanism::Release, statistics::Answer};
use serde::Serialize;

use crate::print;

/// An answer. Bins and cells are printed as tables.
#[derive(Serialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    pub(super) answer: Answer,
    /// The most records of each user that the answer is about, if they are limited.
    #[serde(rename = "max_per_user", skip_serializing_if = "Option::is_none")]
    pub(super) most: Option<u32>,
}

/// The records that an answer is about, if those of each user are limited.
pub(super) fn limit(most: Option<u32>) -> String {
    match most {
        Some(1) => " of one record of each user".into(),
        Some(most) => format!(" of at most {most} records of each user"),
        None => String::new(),
    }
}

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let answers = match (&self.answer, self.most) {
            (Answer::Several(answers), _) => answers,
            (answer, None) => return f.write_str(&text(answer)),
            (Answer::Number { name, release }, most) => {
                return write!(f, "{name}{}: {}", limit(most), Answer::describe(release));
            }
            (answer @ Answer::Truth(_), most) => return write!(f, "{answer},{}", limit(most)),
            (answer, most) => {
                return write!(f, "answer{}:\n  {}", limit(most), text(answer).replace('\n', "\n  "));
            }
        };
        for (number, named) in answers.iter().enumerate() {
            let name = quell_report::escape::line(&named.question);
            let answer = match &named.answer {
                Answer::Number { release, .. } => format!(" {}", Answer::describe(release)),
                answer @ Answer::Truth(_) => format!(" {answer}"),
                answer => format!("\n  {}", text(answer).replace('\n', "\n  ")),
            };
            write!(f, "{}{name}:{answer}", if number == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// A single answer; bins, cells and quantiles as a table.
fn text(answer: &Answer) -> String {
    let rows: Vec<Vec<String>> = match answer {
        Answer::Bins(bins) => {
            bins.iter().map(|(key, release)| vec![key.clone(), Answer::describe(release)]).collect()
        }
        Answer::Quantiles(quantiles) => {
            quantiles.iter().map(|(q, release)| vec![q.to_string(), Answer::describe(release)]).collect()
        }
        Answer::Cells(cells) => grid(cells),
        answer => return answer.to_string(),
    };
    print::table(&rows, &[]).trim_end_matches('\n').to_owned()
}

/// A line for each key of the first column, below a line with the keys of the second column.
fn grid(cells: &[([String; 2], Release)]) -> Vec<Vec<String>> {
    let keys = |place: usize| {
        let mut seen = HashSet::new();
        let all = cells.iter().map(|(pair, _)| pair[place].as_str());
        all.filter(|key| seen.insert(*key)).collect::<Vec<_>>()
    };
    let (first, second) = (keys(0), keys(1));
    let known: HashMap<[&str; 2], &Release> =
        cells.iter().map(|([one, other], release)| ([one.as_str(), other.as_str()], release)).collect();
    // A pair that too few records have is not in the answer.
    let cell = |one, other| known.get(&[one, other]).map_or("-".to_owned(), |it| Answer::describe(it));
    let header = std::iter::once(String::new()).chain(second.iter().map(ToString::to_string)).collect();
    let line =
        |one| std::iter::once(String::from(one)).chain(second.iter().map(|other| cell(one, other))).collect();
    std::iter::once(header).chain(first.into_iter().map(line)).collect()
}
