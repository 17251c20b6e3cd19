//! `pate --ballots`: classes, labels and numbers of teachers from elsewhere, every aggregator, unit, relation and format.
//!
//! A record, or a person, touches one teacher, so a neighbour has another column.

use std::sync::Arc;

use parquet::{
    data_type::{ByteArray, ByteArrayType, DoubleType},
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};
use quell::{
    learner::Control,
    random::PublicRandom,
    run::{
        Job, NewBudget,
        labels::{About, ExternalBallots},
    },
    voting::{Aggregator, Recipe},
};
use quell_privacy::{Neighbors, ledger::Unit, mechanism::Bounds};

use crate::{
    cases,
    compare::{Seen, leak, left, opened, seen},
    made::Folder,
};

/// How ballots are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Commas,
    Tabs,
    Parquet,
}

/// One way to ask.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) format: Format,
    pub(crate) unit: Unit,
    pub(crate) neighbors: Neighbors,
    pub(crate) about: About,
    pub(crate) aggregator: Aggregator,
    pub(crate) reveal: bool,
    pub(crate) deviation: f64,
    pub(crate) seed: u64,
}

/// What each teacher says, question by question, as it is written.
pub(crate) type Columns = Vec<Vec<String>>;

const CLASSES: usize = 3;
const LABELS: usize = 5;

/// What no ballot is, or a strange one.
const ODD: [&str; 26] = [
    "",
    " ",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "-1e400",
    "3.4e38",
    "1e308",
    "-1e308",
    "5e-324",
    "-5e-324",
    "1e-40",
    "-0",
    "-1",
    "2.5",
    "99",
    "4294967296",
    "18446744073709551616",
    "0;1;2;3;4",
    "0 0",
    "4;4;4",
    "word",
    "\u{fffd}",
    "\"",
    "0;;;;1;",
];

/// A cell of 17 MiB.
fn long() -> String {
    "1".repeat(17 << 20)
}

/// Some labels of those that a question may have, in an order of its own.
fn named(question: usize, some: impl Iterator<Item = usize>, labels: usize) -> String {
    some.map(|i| ((question + i * 2) % labels).to_string()).collect::<Vec<_>>().join(";")
}

/// An ordinary ballot on a question.
fn ballot(chance: &mut PublicRandom, about: About, question: usize) -> String {
    match about {
        // Most agree.
        About::Classes(classes) if chance.below(8) == 0 => chance.below(classes).to_string(),
        About::Classes(classes) => (question % classes).to_string(),
        About::Labels { labels, most } => named(question, 0..chance.below(most + 1), labels),
        About::Range(_) => chance.normal().to_string(),
    }
}

/// What somebody hostile makes of one teacher.
fn hostile(chance: &mut PublicRandom, about: About, questions: usize) -> Vec<String> {
    let way = chance.below(8);
    let one = ODD[chance.below(ODD.len())];
    let mut column: Vec<String> = (0..questions)
        .map(|question| match (way, about) {
            // Everywhere the same, or anything.
            (0 | 1, _) => one.to_owned(),
            (2 | 3, _) => ODD[chance.below(ODD.len())].to_owned(),
            // As far from what others say as can be.
            (4 | 5, About::Classes(classes)) => ((question + 1) % classes).to_string(),
            (4 | 5, About::Labels { labels, most }) => named(question, (most..labels).take(most), labels),
            (4, About::Range(_)) => "1e30".into(),
            (5, About::Range(_)) => "-1e30".into(),
            _ => ballot(chance, about, question),
        })
        .collect();
    if chance.below(24) == 0 && questions > 0 {
        column[chance.below(questions)] = long();
    }
    column
}

impl Way {
    pub(crate) fn new(chance: &mut PublicRandom, about: About) -> Self {
        let aggregators =
            [Aggregator::Gaussian, Aggregator::Confident, Aggregator::Stable, Aggregator::Laplace];
        let classes = matches!(about, About::Classes(_));
        let aggregator = aggregators[chance.below(if classes { 4 } else { 1 })];
        let known = classes && matches!(aggregator, Aggregator::Gaussian | Aggregator::Confident);
        Self {
            format: [Format::Commas, Format::Tabs, Format::Parquet][chance.below(3)],
            unit: [Unit::Example, Unit::User][chance.below(2)],
            neighbors: [Neighbors::AddRemove, Neighbors::Replace][chance.below(2)],
            about,
            aggregator,
            reveal: known && chance.below(3) > 0,
            deviation: if aggregator == Aggregator::Stable { 1.0 } else { [2.0, 5.0, 20.0][chance.below(3)] },
            seed: chance.bits(),
        }
    }

    fn write(&self, folder: &Folder, columns: &Columns) -> std::path::PathBuf {
        let questions = columns[0].len();
        let header: Vec<String> = (0..columns.len()).map(|teacher| format!("t{teacher}")).collect();
        let rows = |separator: &str, cell: &dyn Fn(&String) -> String| {
            let row = |question: usize| {
                columns.iter().map(|of| cell(&of[question])).collect::<Vec<_>>().join(separator)
            };
            let rows = (0..questions).map(row);
            std::iter::once(header.join(separator)).chain(rows).map(|row| row + "\n").collect::<String>()
        };
        match self.format {
            Format::Commas => {
                folder.put("votes.csv", rows(",", &|cell| format!("\"{}\"", cell.replace('"', "\"\""))))
            }
            Format::Tabs => folder.put("votes.tsv", rows("\t", &Clone::clone)),
            Format::Parquet => folder.put("votes.parquet", self.parquet(&header, columns)),
        }
    }

    /// Labels are texts, everything else numbers; what is no number is missing.
    fn parquet(&self, header: &[String], columns: &Columns) -> Vec<u8> {
        let texts = matches!(self.about, About::Labels { .. });
        let kind = if texts { "binary" } else { "double" };
        let of = |name: &String| {
            if texts { format!("optional {kind} {name} (UTF8);") } else { format!("optional {kind} {name};") }
        };
        let schema = format!("message votes {{ {} }}", header.iter().map(of).collect::<String>());
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        let mut writer =
            SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::default())).unwrap();
        let mut group = writer.next_row_group().unwrap();
        for cells in columns {
            let mut column = group.next_column().unwrap().unwrap();
            if texts {
                let cells: Vec<ByteArray> =
                    cells.iter().map(|cell| ByteArray::from(cell.clone().into_bytes())).collect();
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&cells, Some(&vec![1; cells.len()]), None)
                    .unwrap();
            } else {
                let numbers: Vec<Option<f64>> = cells.iter().map(|cell| cell.parse().ok()).collect();
                let levels: Vec<i16> = numbers.iter().map(|number| i16::from(number.is_some())).collect();
                let there: Vec<f64> = numbers.into_iter().flatten().collect();
                column.typed::<DoubleType>().write_batch(&there, Some(&levels), None).unwrap();
            }
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.into_inner().unwrap()
    }

    /// Everything that a run on a file of ballots shows, and what its releases were made of.
    pub(crate) fn run(&self, folder: &Folder, columns: &Columns) -> Seen {
        let stable = self.aggregator == Aggregator::Stable;
        let votes = Recipe {
            aggregator: self.aggregator,
            delta: Some(1e-5),
            neighbors: self.neighbors,
            answers: (!stable).then(|| columns[0].len().clamp(1, 4) as u32),
            deviation: Some(self.deviation),
            threshold: (self.aggregator == Aggregator::Confident).then_some(0.5),
            reveal: self.reveal,
            unstable: stable.then_some(2),
            ..Recipe::default()
        };
        let ballots = self.write(folder, columns);
        let asked = ExternalBallots {
            names: None,
            ballots,
            dataset: Some("people".into()),
            unit: self.unit,
            about: self.about,
            votes,
            budget: Some(NewBudget { epsilon: 30.0, delta: 1e-5 }),
        };
        seen(self.seed, Vec::new(), || {
            let external = match asked.open() {
                Ok(external) => external,
                Err(error) => {
                    return vec![(
                        "error".into(),
                        format!(
                            "{error}
{:?}",
                            error.hint()
                        )
                        .into_bytes(),
                    )];
                }
            };
            let (mut ledger, place) = opened(folder, external.terms().unwrap());
            let quote = format!("{:?} {:?}", external.plan, external.quote(&mut ledger).unwrap());
            let mut shown = Vec::new();
            let outcome = external.go(&mut ledger, &place, &mut |moment| {
                shown.push(format!("{moment:?}"));
                Control::Continue
            });
            let outcome = outcome.map(|mut outcome| {
                outcome.paid = None;
                outcome.json.remove("seconds");
                format!("{outcome:?}")
            });
            let mut public = vec![("said".to_owned(), format!("{quote} {shown:?} {outcome:?}").into_bytes())];
            public.extend(left(&mut ledger, &place));
            public
        })
    }
}

fn look(chance: &mut PublicRandom, about: About, neighbours: usize) -> Result<(usize, f64), String> {
    let way = Way::new(chance, about);
    let folder = Folder::new();
    let teachers = if way.aggregator == Aggregator::Stable { 40 } else { [2, 3, 40][chance.below(3)] };
    let questions = [1, 2, 6][chance.below(3)];
    let mut columns: Columns = (0..teachers)
        .map(|_| (0..questions).map(|question| ballot(chance, about, question)).collect())
        .collect();
    // Some are hostile in every dataset.
    let odd = chance.below(teachers);
    columns[odd] = hostile(chance, about, questions);
    let base = way.run(&folder, &columns);
    if base.statistics.is_empty() {
        return Err(format!("{way:?}: nothing was released: {}", String::from_utf8_lossy(&base.public[0].1)));
    }
    let (mut compared, mut most) = (0, 0.0_f64);
    for number in 0..neighbours {
        let mut other = columns.clone();
        let place = chance.below(teachers);
        other[place] = hostile(chance, about, questions);
        let moved = leak(&base, &way.run(&folder, &other), way.neighbors);
        most = most.max(moved.map_err(|leak| format!("{way:?}, neighbour {number}: {leak}"))?);
        compared += base.statistics.len();
    }
    Ok((compared, most))
}

fn compared(stream: u64, about: About) {
    let (mut statistics, mut most) = (0, 0.0_f64);
    for case in 0..cases(20) {
        let (seen, moved) = look(&mut PublicRandom::of(stream, case as u64), about, 8)
            .unwrap_or_else(|leak| panic!("case {case}: {leak}"));
        (statistics, most) = (statistics + seen, most.max(moved));
    }
    assert!(most > 0.99, "{most}");
    println!(
        "{statistics} statistics about {about:?} compared, the farthest moved by {most} of what was charged for"
    );
}

#[test]
fn ballots_for_classes_move_by_one_teacher_and_nothing_else_shows() {
    compared(20, About::Classes(CLASSES));
}

#[test]
fn ballots_for_labels_move_by_one_teacher_and_nothing_else_shows() {
    compared(21, About::Labels { labels: LABELS, most: 2 });
    compared(22, About::Labels { labels: LABELS, most: 4 });
}

#[test]
fn ballots_for_numbers_move_by_one_teacher_and_nothing_else_shows() {
    compared(23, About::Range(Bounds::new(-1.0, 3.0).unwrap()));
    compared(24, About::Range(Bounds::new(0.0, 1e-150).unwrap()));
}
