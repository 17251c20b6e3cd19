//! Answers as they are printed.

use std::collections::{HashMap, HashSet};

use quell::{privacy::mechanism::Release, statistics::Answer};
use serde::Serialize;

use crate::print;

/// An answer. Bins and cells are printed as tables.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Shown(pub(super) Answer);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Answer::Several(answers) = &self.0 else { return f.write_str(&text(&self.0)) };
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
