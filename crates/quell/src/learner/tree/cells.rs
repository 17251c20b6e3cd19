//! The cells of the histograms from which splits are chosen: public facts.

use crate::{data::Schema, learner::glm::Columns, random::PublicRandom};

/// Number of cells for a column of numbers. Their bounds are the candidates for thresholds.
const BINS: usize = 16;

/// A column, as the histograms see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Column {
    /// The first feature of the column.
    feature: usize,
    /// The first cell of the column.
    cell: usize,
    /// Number of categories; 0 for a number.
    categories: usize,
}

impl Column {
    /// Number of cells: bins of a number, or the categories and one cell for none of them.
    fn cells(self) -> usize {
        if self.categories == 0 { BINS } else { self.categories + 1 }
    }
}

/// The cells of all columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cells {
    columns: Vec<Column>,
    count: usize,
    /// Number of classes; `None` for numbers.
    classes: Option<usize>,
}

/// A question about an example: whether one of its numbers is above a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Question {
    pub(super) feature: usize,
    pub(super) threshold: f32,
}

impl Question {
    /// The answer. NaN is not above any threshold.
    #[inline(always)]
    pub(super) fn is_above(self, example: &[f32]) -> bool {
        example[self.feature] > self.threshold
    }
}

/// A question that a histogram can answer: the cells for which the answer is yes.
pub(super) struct Candidate {
    pub(super) question: Question,
    pub(super) cells: std::ops::Range<usize>,
    /// All cells of the column.
    pub(super) column: std::ops::Range<usize>,
}

impl Cells {
    pub(super) fn new(schema: Option<&Schema>, width: usize, classes: Option<usize>) -> Self {
        let (mut columns, mut feature, mut cell) = (Vec::new(), 0, 0);
        for categories in Columns::new(schema, width).categories {
            let column = Column { feature, cell, categories };
            feature += categories.max(1);
            cell += column.cells();
            columns.push(column);
        }
        Self { columns, count: cell, classes }
    }

    /// Number of columns: each example is in one cell of each.
    pub(super) fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Number of features of an example.
    pub(super) fn width(&self) -> usize {
        self.columns.iter().map(|column| column.categories.max(1)).sum()
    }

    /// Number of cells of all columns.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Numbers for each cell: one for each class, or a count and a sum.
    pub(super) fn values(&self) -> usize {
        self.classes.map_or(2, |classes| classes.max(1))
    }

    /// Number of classes; `None` for numbers.
    pub(super) fn classes(&self) -> Option<usize> {
        self.classes
    }

    /// Calls `found` with the cell of an example in each column.
    #[inline(always)]
    pub(super) fn find(&self, example: &[f32], mut found: impl FnMut(usize)) {
        for column in &self.columns {
            let own = if column.categories == 0 {
                let place = (f64::from(example[column.feature]) + 1.0) * 0.5 * BINS as f64;
                // A number is above as many thresholds as there are bins below its own. NaN is in the first one.
                ((place.ceil() - 1.0).max(0.0) as usize).min(BINS - 1)
            } else {
                let indicators = &example[column.feature..][..column.categories];
                let category = indicators.iter().position(|indicator| *indicator > 0.5);
                category.unwrap_or(column.categories)
            };
            found(column.cell + own);
        }
    }

    /// All questions that histograms answer, in a fixed order.
    pub(super) fn candidates(&self) -> impl Iterator<Item = Candidate> + '_ {
        self.columns.iter().flat_map(|column| {
            let all = column.cell..column.cell + column.cells();
            let last = if column.categories == 0 { BINS - 1 } else { column.categories };
            (0..last).map(move |place| {
                let question = column.question(place);
                let cells = if column.categories == 0 {
                    all.start + place + 1..all.end
                } else {
                    all.start + place..all.start + place + 1
                };
                Candidate { question, cells, column: all.clone() }
            })
        })
    }

    /// Whether the answers to the questions above a node leave the answer to this one open.
    pub(super) fn is_open(&self, question: Question, path: &[(Question, bool)]) -> bool {
        let features = |column: &Column| column.feature..column.feature + column.categories.max(1);
        let Some(column) = self.columns.iter().find(|column| features(column).contains(&question.feature))
        else {
            return true;
        };
        path.iter().filter(|(asked, _)| features(column).contains(&asked.feature)).all(|(asked, answer)| {
            match (column.categories, answer) {
                (0, true) => question.threshold > asked.threshold,
                (0, false) => question.threshold < asked.threshold,
                // A record has one category of a column.
                (_, true) => false,
                (_, false) => question.feature != asked.feature,
            }
        })
    }

    /// A random question: whether a number is above the middle of its bounds, or whether a category is there.
    ///
    /// The column is none of those that were asked about before, as long as there are others. After that,
    /// thresholds are random ones in the middle half of the bounds.
    pub(super) fn draw(&self, before: &[usize], random: &mut PublicRandom) -> (usize, Question) {
        let fresh: Vec<usize> = (0..self.columns.len()).filter(|column| !before.contains(column)).collect();
        let number = match fresh.len() {
            0 => random.below(self.columns.len()),
            count => fresh[random.below(count)],
        };
        let column = self.columns[number];
        let place = match column.categories {
            0 if !before.contains(&number) => BINS / 2 - 1,
            0 => BINS / 4 - 1 + random.below(BINS / 2 + 1),
            categories => random.below(categories),
        };
        (number, column.question(place))
    }

    /// The cells of each column.
    pub(super) fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.columns.iter().map(|column| column.cell..column.cell + column.cells())
    }
}

impl Column {
    /// The question whether a number is above the bin of this number, or whether this category is there.
    fn question(self, place: usize) -> Question {
        if self.categories == 0 {
            let threshold = 2.0 * (place + 1) as f32 / BINS as f32 - 1.0;
            return Question { feature: self.feature, threshold };
        }
        Question { feature: self.feature + place, threshold: 0.5 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The histogram and the tree agree on the side of an example, also for numbers that no schema makes.
    #[test]
    fn cells_answer_every_question_like_the_example_itself() {
        let schema = "[[column]]\nname = 'a'\nbounds = [0, 1]\nunknown = true\n[[column]]\nname = 'c'\ncategories = ['x', 'y', 'z']\n";
        let cells = Cells::new(Some(&Schema::parse(schema).unwrap()), 5, Some(2));
        assert_eq!((cells.columns(), cells.count()), (3, BINS + 2 + 4));
        let mut chance = PublicRandom::of(1, 2);
        let numbers = [-1.0, 1.0, 0.0, 0.125, 0.126, -7.0, f32::MAX, f32::NAN, f32::INFINITY, -1e-40];
        for _ in 0..2_000 {
            let mut example = [chance.between(-1.0, 1.0), chance.below(2) as f32, 0.0, 0.0, 0.0];
            if chance.below(2) == 0 {
                example[0] = numbers[chance.below(numbers.len())];
            }
            example.iter_mut().skip(2).nth(chance.below(4)).into_iter().for_each(|place| *place = 1.0);
            let mut own = Vec::new();
            cells.find(&example, |cell| own.push(cell));
            assert_eq!(own.len(), 3);
            for candidate in cells.candidates() {
                let is_in = own.iter().any(|cell| candidate.cells.contains(cell));
                assert_eq!(
                    is_in,
                    candidate.question.is_above(&example),
                    "{example:?} {:?}",
                    candidate.question
                );
            }
        }
    }
}
