//! The vector of each record: its block, at the place of its class.

use quell_privacy::mechanism::{Clipper, Contributions};

use super::Plan;
use crate::{
    kernel::numbers::{add_scaled, add_wide, squared_length},
    learner::{Supervised, blocks::add_blocks, loss::Target},
    network::Task,
};

/// The vectors of all records.
///
/// A record with several examples has the mean of their vectors.
pub struct Vectors<'a> {
    plan: &'a Plan,
    records: &'a Supervised<'a>,
}

/// The buffers of one thread.
struct Buffers {
    example: Vec<f32>,
    /// The block of one example.
    one: Vec<f32>,
    /// The vector of a record.
    own: Vec<f32>,
    /// The sum of a block of records, in single precision.
    block: Vec<f32>,
    /// The sum of all blocks, in double precision.
    total: Vec<f64>,
}

impl<'a> Vectors<'a> {
    pub(super) fn new(plan: &'a Plan, records: &'a Supervised<'a>) -> Self {
        Self { plan, records }
    }

    fn buffers(&self) -> Buffers {
        let numbers = self.dimension();
        Buffers {
            example: vec![0.0; self.plan.block.features],
            one: vec![0.0; self.plan.block.len()],
            own: vec![0.0; numbers],
            block: vec![0.0; numbers],
            total: vec![0.0; numbers],
        }
    }

    /// Adds the clipped vector of a record to the sum of its block.
    fn add_record(&self, record: usize, clipper: &Clipper, buffers: &mut Buffers) {
        let Buffers { example, one, own, block, .. } = buffers;
        let (examples, width) = (self.records.examples(record), one.len());
        own.fill(0.0);
        for number in 0..examples {
            // An example without a known class adds nothing.
            let Target::Class(class) = self.records.target_of(record, number) else { continue };
            let Some(place) = own.chunks_exact_mut(width).nth(class as usize) else { continue };
            self.records.gather(record, number, example);
            self.plan.block.write(example, one);
            add_scaled(place, 1.0 / examples as f32, one);
        }
        let mut scale = [0.0];
        clipper.scales(&[squared_length(own)], &mut scale);
        // Zero times a number that is not finite is not zero.
        if scale[0] != 0.0 {
            add_scaled(block, scale[0], own);
        }
    }
}

impl Contributions for Vectors<'_> {
    fn dimension(&self) -> usize {
        self.plan.sums.descent.dimension
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        add_blocks(blocks, sum, |blocks| {
            let mut buffers = self.buffers();
            for block in blocks {
                buffers.block.fill(0.0);
                for record in *block {
                    self.add_record(*record, clipper, &mut buffers);
                }
                add_wide(&mut buffers.total, &buffers.block);
            }
            buffers.total
        });
    }
}

#[cfg(test)]
mod tests {
    use quell_privacy::{laws, ledger::Unit};

    use super::*;
    use crate::{
        data::{Examples, Schema, Targets},
        learner::{
            Method, PublicFacts, Subject,
            naive_bayes::{NaiveBayes, Recipe},
        },
        network::Architecture,
        random::PublicRandom,
    };

    const COLUMNS: &str = "[[column]]\nname = 'a'\nbounds = [0, 1]\n[[column]]\nname = 'b'\nbounds = [0, 1]\n\
         [[column]]\nname = 'c'\ncategories = ['x', 'y', 'z']\n";

    /// The contract of contributions, for classes and users, with hostile values.
    #[test]
    fn vectors_keep_the_contract_of_contributions() {
        let (records, mut chance) = (40, PublicRandom::of(3, 1));
        for names in [&["n"][..], &["n", "p"], &["n", "p", "q"]] {
            let label = format!("[label]\ncolumn = 'y'\nclasses = {names:?}\n{COLUMNS}");
            let schema = Schema::parse(&label).unwrap();
            let hostile = [0.4, -1.0, 1.0, 0.0, 1e30, f32::MAX, 1e-40, -7.0];
            let values = (0..5 * records).map(|_| hostile[chance.below(hostile.len())]).collect();
            let labels = (0..records).map(|_| chance.below(names.len()) as u32).collect();
            let targets = Targets::Classes { labels, names: names.iter().map(ToString::to_string).collect() };
            let users: Vec<_> = (0..records).map(|_| Some([chance.below(15) as u8])).collect();
            let examples = Examples::numbers(&[5], values, targets).unwrap().with_users(&users).unwrap();
            for unit in [Unit::Example, Unit::User] {
                let mut recipe = Recipe { records: Some(40), ..Recipe::default() };
                recipe.privacy.epsilon = Some(1.0);
                let facts = PublicFacts { records: None, classes: Some(names.len()) };
                let subject = Subject { shape: &[5], are_features: false, facts, schema: Some(&schema) };
                let method = NaiveBayes::plan(&mut recipe, &mut Architecture::default(), &subject).unwrap();
                let task = method.task(&examples, unit).unwrap();
                let all: Vec<usize> = (0..task.records()).collect();
                let kept = laws::check_contributions(&mut Vectors::new(&method.plan, &task), &all);
                assert_eq!(kept, Ok(()), "{unit:?} {names:?}");
            }
        }
    }
}
