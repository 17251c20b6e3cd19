//! PATE with own teachers: their ballots are in memory, and the answers are noisy winners.

use quell::{
    ledger::InMemory,
    privacy::{ledger::Unit, mechanism::Voters, units::Epsilon},
    voting::{Entry, Recipe, VoteFacts, pate::Ballots},
};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Of 200 teachers, nine in ten name the right one of three classes for each of 30 questions.
    let mut ballots = Ballots::new(3, 30)?;
    for teacher in 0..200_u16 {
        ballots.push(
            &(0..30_u16).map(|question| (question + u16::from(teacher % 10 == 0)) % 3).collect::<Vec<_>>(),
        );
    }
    let recipe = Recipe { epsilon: Some(2.0), delta: Some(1e-5), answers: Some(30), ..Recipe::default() };
    let plan =
        recipe.plan(&VoteFacts { candidates: 3, voters: Voters::Teachers, ballots: 200, questions: 30 })?;
    let mut ledger = InMemory::ledger("patients", Epsilon::new(2.0)?, plan.delta)?;
    let answers = plan.answer(&ballots, Unit::Example, &mut ledger)?;
    let is_right = |entry: &&Entry| entry.answer.is_some_and(|class| class as usize == entry.question % 3);
    let right = answers.entries.iter().filter(is_right).count();
    assert!(right >= 25, "{right} of 30 answers are right");
    Ok(())
}
