//! `train --model factorization`: a user with all their ratings comes, goes or is exchanged.

use std::fmt::Write;

use quell::{
    data::RatingColumns,
    random::PublicRandom,
    run::{Configuration, NewBudget, Source, train},
};
use quell_privacy::Neighbors;

use crate::{
    cases,
    compare::{Seen, compare, seen},
    made::Folder,
    training::Show,
};

/// One row of a table of ratings, as text.
#[derive(Clone, Debug)]
struct Rating {
    user: String,
    item: String,
    value: String,
}

const ITEMS: usize = 30;

/// A rating as people give it, or anything else that can be written down.
fn rating(chance: &mut PublicRandom, user: &str) -> Rating {
    const ODD: [&str; 10] = ["", "NaN", "inf", "-inf", "1e300", "-7", "abc", "5.5", "1e-300", "\"5\""];
    let is_odd = chance.below(4) == 0;
    let item = chance.below(ITEMS + if is_odd { 20 } else { 0 });
    let value = if is_odd { ODD[chance.below(ODD.len())].into() } else { (1 + chance.below(5)).to_string() };
    Rating { user: user.into(), item: format!("item {item}"), value }
}

/// All ratings of somebody: none, some, or thousands, with some items more than once.
fn somebody(chance: &mut PublicRandom, name: &str) -> Vec<Rating> {
    let count = [0, 1, 3, 8, 25, 3_000][chance.below(6)];
    (0..count).map(|_| rating(chance, name)).collect()
}

fn neighbour(chance: &mut PublicRandom, all: &[Rating], neighbors: Neighbors) -> Vec<Rating> {
    let mut other = all.to_vec();
    let goes = neighbors == Neighbors::Replace || chance.below(2) == 0;
    if goes && !all.is_empty() {
        let gone = all[chance.below(all.len())].user.clone();
        other.retain(|rating| rating.user != gone || gone.is_empty());
    }
    if neighbors == Neighbors::Replace || !goes {
        let name = format!("new {}", chance.below(1000));
        for rating in somebody(chance, &name) {
            other.insert(chance.below(other.len() + 1), rating);
        }
    }
    other
}

/// Everything that a run on these ratings shows, and its statistics before noise.
fn run(folder: &Folder, all: &[Rating], asked: &Configuration, seed: u64) -> Seen {
    let mut text = String::from("item,stars,user,other\n");
    for Rating { user, item, value } in all {
        writeln!(text, "{item},{value},{user},x").unwrap();
    }
    std::fs::write(folder.path().join("people.csv"), text).unwrap();
    seen(seed, Vec::new(), || match train(asked.clone(), Show(folder)) {
        Ok(public) => public,
        Err(error) => vec![("error".into(), format!("{error}\n{:?}", error.hint()).into_bytes())],
    })
}

fn configuration(folder: &Folder, neighbors: Neighbors, records: u64, factors: bool) -> Configuration {
    let items = folder.path().join("items.txt");
    std::fs::write(&items, (0..ITEMS).map(|item| format!("item {item}\n")).collect::<String>()).unwrap();
    let columns = RatingColumns {
        user: "user".into(),
        item: "item".into(),
        value: "stars".into(),
        items,
        digest: None,
    };
    let data = Source {
        path: Some(folder.path().join("people.csv")),
        dataset: Some("people".into()),
        ratings: Some(columns),
        ..Source::default()
    };
    let mut asked = Configuration { data, ..Configuration::default() };
    asked.budget = Some(NewBudget { epsilon: 30.0, delta: 1e-5 });
    let recipe = &mut asked.factorization;
    (recipe.bounds, recipe.records, recipe.factors) = (Some([1.0, 5.0]), Some(records), Some(factors));
    (recipe.privacy.noise_multiplier, recipe.privacy.delta) = (Some(3.0), Some(1e-5));
    recipe.privacy.neighbors = neighbors;
    asked
}

#[test]
fn recommendations_move_by_what_is_charged_for_a_user_and_show_nothing_else() {
    let (mut statistics, mut most) = (0, 0.0_f64);
    for case in 0..cases(24) {
        let mut chance = PublicRandom::of(90, case as u64);
        let neighbors = [Neighbors::AddRemove, Neighbors::Replace][case % 2];
        let folder = Folder::new();
        let users = [0, 1, 4, 12][chance.below(4)];
        let mut all: Vec<Rating> =
            (0..users).flat_map(|user| somebody(&mut chance, &format!("user {user}"))).collect();
        // A row without a user.
        all.push(rating(&mut chance, ""));
        let records = 3 + chance.below(60) as u64;
        let asked = configuration(&folder, neighbors, records, chance.below(2) == 0);
        let others: Vec<_> = (0..4).map(|_| neighbour(&mut chance, &all, neighbors)).collect();
        let seed = chance.bits();
        let (seen, moved) =
            compare(neighbors, &all, others.into_iter(), |all| run(&folder, all, &asked, seed))
                .unwrap_or_else(|leak| panic!("case {case}: {leak}"));
        (statistics, most) = (statistics + seen, most.max(moved));
    }
    // Vectors are as long as they may be.
    assert!(most > 0.9, "{most}");
    println!("{statistics} statistics of ratings compared, the farthest moved by {most}");
}
