//! Shards, ballots, plans and the journal: what voting rests on before anybody votes.

use quell::{
    Error,
    data::{Examples, Targets, digits},
    learner::Control,
    run::{Folder, Job, labels},
    voting::{
        Aggregation, Aggregator, Entry, Journal, Recipe, SurveyAnswer, VoteFacts,
        pate::{Ballots, Shards, SurveyBallots},
    },
};
use quell_ledger::{Location, Store};
use quell_privacy::{
    Neighbors,
    accounting::{Conversion, Renyi},
    ledger::{Budget, Ledger},
    mechanism::{Ballot, Bounds, Form, Mechanism, Voters},
    units::{Delta, Epsilon, SamplingRate},
};

fn without(examples: &Examples, record: usize) -> Examples {
    examples.select(&(0..examples.len()).filter(|other| *other != record).collect::<Vec<_>>())
}

#[test]
fn a_record_that_leaves_touches_one_shard() {
    let digits = digits().unwrap().train;
    let all = Shards::deal(&digits, 30, Neighbors::AddRemove).unwrap();
    let sizes: Vec<usize> = (0..30).map(|shard| all.records(shard).len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), digits.len());
    // About 48 each; five standard deviations.
    assert!(sizes.iter().all(|size| (14..=82).contains(size)), "{sizes:?}");
    for record in [0, 700, digits.len() - 1] {
        let fewer = Shards::deal(&without(&digits, record), 30, Neighbors::AddRemove).unwrap();
        let mut expected = all.of().to_vec();
        expected.remove(record);
        assert!(fewer.of() == expected, "others moved when record {record} left");
    }
}

/// Records whose content says nothing, two for each of so many users.
fn people(users: usize) -> Examples {
    let names = vec!["no".into(), "yes".into()];
    let values: Vec<f32> = (0..2 * users).map(|record| record as f32).collect();
    let labels = vec![0; 2 * users];
    let of: Vec<Option<String>> =
        (0..2 * users).map(|record| Some(format!("user {}", record % users))).collect();
    Examples::numbers(&[1], values, Targets::Classes { labels, names }).unwrap().with_users(&of).unwrap()
}

#[test]
fn all_records_of_a_person_are_in_one_shard() {
    let people = people(200);
    let shards = Shards::deal(&people, 10, Neighbors::AddRemove).unwrap();
    assert!((0..200).all(|user| shards.of()[user] == shards.of()[user + 200]));
    assert!((0..10).all(|shard| !shards.records(shard).is_empty()));
    // A person exchanged for another would touch two.
    assert!(Shards::deal(&people, 10, Neighbors::Replace).is_err());
    let mut given: Vec<u32> = (0..400).map(|record| record % 200 % 10).collect();
    assert!(Shards::given(&people, given.clone(), 10).is_ok());
    assert!(matches!(Shards::given(&people, given.clone(), 5), Err(Error::Setting { name: "shard", .. })));
    assert!(matches!(Shards::given(&people, given[1..].to_vec(), 10), Err(Error::Sizes { .. })));
    given[399] = (given[399] + 1) % 10;
    assert!(matches!(Shards::given(&people, given, 10), Err(Error::Setting { name: "shard", .. })));
}

#[test]
fn where_one_record_is_exchanged_its_place_says_the_shard() {
    let digits = digits().unwrap().train;
    let shards = Shards::deal(&digits, 7, Neighbors::Replace).unwrap();
    assert!((0..digits.len()).all(|record| shards.of()[record] as usize == record % 7));
    assert!(Shards::deal(&digits, 0, Neighbors::Replace).is_err());
}

const FACTS: VoteFacts =
    VoteFacts { candidates: 10, voters: Voters::Teachers, ballots: 250, questions: 9000 };

fn answers(release: &Aggregation) -> u64 {
    release.answers().unwrap()
}

#[test]
fn of_epsilon_noise_and_answers_any_may_be_left_out() {
    for aggregator in [Aggregator::Gaussian, Aggregator::Confident, Aggregator::Laplace] {
        let recipe = |epsilon, deviation, answers| Recipe {
            aggregator,
            epsilon,
            deviation,
            answers,
            ..Recipe::default()
        };
        let fixed = recipe(None, Some(60.0), Some(64)).plan(&FACTS).unwrap();
        let epsilon = fixed.epsilon.upper;
        assert_eq!(answers(&fixed.aggregation), 64);
        // Given that ε, as many answers; given ε and answers, as little noise.
        let most = recipe(Some(epsilon * 1.001), Some(60.0), None).plan(&FACTS).unwrap();
        assert_eq!(answers(&most.aggregation), 64, "{aggregator:?}");
        let least = recipe(Some(epsilon), None, Some(64)).plan(&FACTS).unwrap();
        assert!(
            least.epsilon.upper <= epsilon && least.epsilon.upper > 0.99 * epsilon,
            "{aggregator:?}: {least:?}"
        );
        assert!(recipe(Some(0.9 * epsilon), Some(60.0), Some(64)).plan(&FACTS).is_err(), "{aggregator:?}");
    }
}

#[test]
fn the_plan_costs_what_its_mechanism_says() {
    let recipe = Recipe { epsilon: Some(1.0), ..Recipe::default() };
    let plan = recipe.plan(&FACTS).unwrap();
    assert!(plan.epsilon.upper <= 1.0 && plan.epsilon.lower > 0.97, "{plan:?}");
    let Aggregation::Polls(poll, rounds) = plan.aggregation else { panic!() };
    assert_eq!(plan.aggregation.event(plan.neighbors), poll.event(plan.neighbors).repeated(rounds));
    assert_eq!(poll.screening, None);
    let confident = Recipe { aggregator: Aggregator::Confident, ..recipe.clone() }.plan(&FACTS).unwrap();
    let Aggregation::Polls(poll, _) = confident.aggregation else { panic!() };
    assert_eq!((poll.screening.unwrap().threshold, poll.questions > poll.answers), (150, true));
    // Sampling makes answers cheaper: more of them for the same ε.
    let nearest = VoteFacts { voters: Voters::Nearest { rate: SamplingRate::new(0.1).unwrap() }, ..FACTS };
    let more = recipe.plan(&nearest).unwrap();
    assert!(answers(&more.aggregation) > 20 * answers(&plan.aggregation), "{}", answers(&more.aggregation));
    for wrong in [Aggregator::Laplace, Aggregator::Interactive, Aggregator::Stable] {
        assert!(Recipe { aggregator: wrong, ..recipe.clone() }.plan(&nearest).is_err(), "{wrong:?}");
    }
}

#[test]
fn stable_winners_need_many_teachers() {
    let recipe =
        Recipe { aggregator: Aggregator::Stable, epsilon: Some(4.0), unstable: Some(1), ..Recipe::default() };
    let plan = recipe.plan(&VoteFacts { ballots: 2000, ..FACTS }).unwrap();
    let Aggregation::Stable(stable) = plan.aggregation else { panic!() };
    assert!(plan.epsilon.upper <= 4.0 && stable.threshold < 1000 && stable.distance() < 1e-9, "{plan:?}");
    assert!(recipe.plan(&VoteFacts { ballots: 30, ..FACTS }).is_err());
}

#[test]
fn stable_winners_cost_what_noise_costs_and_what_mistakes_cost() {
    let facts = VoteFacts { candidates: 4, voters: Voters::Teachers, ballots: 2000, questions: 30 };
    for deviation in [2.0, 3.0, 10.0, 60.0] {
        let recipe =
            Recipe { aggregator: Aggregator::Stable, deviation: Some(deviation), ..Recipe::default() };
        let plan = recipe.plan(&facts).unwrap();
        let Aggregation::Stable(stable) = plan.aggregation else { panic!("{plan:?}") };
        let epsilon = plan.epsilon.upper;
        // Within `distance` of the ideal, (ε, δ) of the ideal is (ε, δ + (1 + e^ε) distance).
        let left = plan.delta.get() - (1.0 + epsilon.exp()) * stable.distance();
        assert!(left > 0.0, "noise of {deviation}: mistakes alone cost more than δ at ε = {epsilon}");
        let ideal = Renyi::new(&stable.event(plan.neighbors), plan.neighbors).unwrap();
        let ideal = ideal.epsilon(Delta::new(left).unwrap(), Conversion::Tight).upper;
        assert!(
            ideal <= epsilon * (1.0 + 1e-9) && epsilon < ideal * 1.01,
            "noise of {deviation}: {ideal} and {epsilon}"
        );
    }
}

#[test]
fn a_journal_survives_a_line_that_was_cut_off() {
    let folder = std::env::temp_dir().join(format!("quell-journal-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("answers.jsonl");
    let entry = |question, answer| Entry { question, answer };
    let mut journal = Journal::<u32>::open(&path).unwrap();
    journal.record(&[entry(3, Some(1)), entry(5, None)]).unwrap();
    drop(journal);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}{{\"question\":9,\"ans")).unwrap();
    let mut journal = Journal::open(&path).unwrap();
    assert_eq!(journal.entries(), [entry(3, Some(1)), entry(5, None)]);
    journal.record(&[entry(9, Some(2))]).unwrap();
    drop(journal);
    let journal = Journal::open(&path).unwrap();
    assert_eq!((journal.answers(), journal.entries().len()), (vec![(3, 1), (9, 2)], 3));
    drop(journal);
    std::fs::write(&path, "nonsense\n").unwrap();
    assert!(Journal::<u32>::open(&path).is_err());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn ballots_are_read_as_they_were_cast() {
    let path = std::env::temp_dir().join(format!("quell-ballots-{}.csv", std::process::id()));
    std::fs::write(&path, "a,b,c\n0,1,1\n2,2,0\n").unwrap();
    let ballots = Ballots::read(&path, 3).unwrap();
    assert_eq!((ballots.teachers(), ballots.questions(), ballots.classes()), (3, 2, 3));
    assert!(!format!("{ballots:?}").contains("of:"), "ballots are not for reading");
    std::fs::remove_file(&path).unwrap();
    assert!(Ballots::new(1, 5).is_err() && Ballots::new(70_000, 5).is_err());
}

#[test]
fn a_survey_costs_what_was_asked_for_whatever_is_left_out() {
    let forms = [Form::Labels { labels: 14, most: 3 }, Form::Number(Bounds::new(-1.0, 4.0).unwrap())];
    for form in forms {
        let recipe =
            |epsilon, deviation, answers| Recipe { epsilon, deviation, answers, ..Recipe::default() };
        let fixed = recipe(None, Some(60.0), Some(64)).survey(form, 250, 9000).unwrap();
        let epsilon = fixed.epsilon.upper;
        assert_eq!(fixed.aggregation.answers(), Some(64));
        let Aggregation::Surveys(survey, rounds) = fixed.aggregation else { panic!("{fixed:?}") };
        assert_eq!((survey.form, survey.teachers, u64::from(survey.questions) * rounds), (form, 250, 64));
        assert_eq!(fixed.aggregation.event(fixed.neighbors), survey.event(fixed.neighbors).repeated(rounds));
        let most = recipe(Some(epsilon * 1.001), Some(60.0), None).survey(form, 250, 9000).unwrap();
        assert_eq!(most.aggregation.answers(), Some(64), "{form}");
        let least = recipe(Some(epsilon), None, Some(64)).survey(form, 250, 9000).unwrap();
        assert!(least.epsilon.upper <= epsilon && least.epsilon.upper > 0.99 * epsilon, "{form}: {least:?}");
        let usual = recipe(Some(1.0), None, None).survey(form, 250, 9000).unwrap();
        assert!(usual.epsilon.upper <= 1.0 && usual.aggregation.answers() > Some(1), "{form}: {usual:?}");
        assert!(recipe(Some(0.9 * epsilon), Some(60.0), Some(64)).survey(form, 250, 9000).is_err(), "{form}");
        for wrong in [
            Recipe { aggregator: Aggregator::Confident, ..Recipe::default() },
            Recipe { reveal: true, ..Recipe::default() },
            recipe(None, None, Some(9001)),
        ] {
            assert!(wrong.survey(form, 250, 9000).is_err(), "{wrong:?}");
        }
        assert!(recipe(None, None, None).survey(form, 0, 9000).is_err());
    }
}

#[test]
fn survey_ballots_are_read_as_they_are_written() {
    let path = std::env::temp_dir().join(format!("quell-survey-{}.csv", std::process::id()));
    std::fs::write(&path, "a,b,c\n0, 2;1 ,\n3;0 1,,2\n").unwrap();
    let read = |form| SurveyBallots::read(&path, form);
    let ballots = read(Form::Labels { labels: 4, most: 3 }).unwrap();
    assert_eq!((ballots.teachers(), ballots.questions()), (3, 2));
    let said = |labels: &[u32]| Ballot::Labels(labels.to_vec());
    assert!(ballots.ballots(0) == [said(&[0]), said(&[2, 1]), said(&[])]);
    assert!(ballots.ballots(1) == [said(&[3, 0, 1]), said(&[]), said(&[2])]);
    assert!(
        ballots.ballots(2).is_empty() && !format!("{ballots:?}").contains("sheet"),
        "ballots are not for reading"
    );
    // A cell that is no valid ballot names no label, and causes no error.
    for other in [Form::Labels { labels: 4, most: 2 }, Form::Labels { labels: 3, most: 3 }] {
        assert!(read(other).unwrap().ballots(1) == [said(&[]), said(&[]), said(&[2])], "{other}");
    }
    let number = Form::Number(Bounds::new(0.0, 1.0).unwrap());
    assert!(matches!(read(number).unwrap().ballots(0)[1], Ballot::Number(number) if number.is_nan()));
    std::fs::write(&path, "a,b\n0.5,-7\n").unwrap();
    // The reader keeps numbers outside the bounds; the mechanism clamps them.
    assert!(read(number).unwrap().ballots(0) == [Ballot::Number(0.5), Ballot::Number(-7.0)]);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_journal_keeps_sets_and_numbers_apart() {
    let folder = std::env::temp_dir().join(format!("quell-survey-journal-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("answers.jsonl");
    let answers = [
        SurveyAnswer::Labels(vec![]),
        SurveyAnswer::Labels(vec![3, 5]),
        SurveyAnswer::Number(4.0),
        SurveyAnswer::Number(-0.1),
    ];
    let entries: Vec<Entry<SurveyAnswer>> = answers
        .into_iter()
        .enumerate()
        .map(|(question, answer)| Entry { question, answer: Some(answer) })
        .collect();
    Journal::open(&path).unwrap().record(&entries).unwrap();
    assert_eq!(Journal::open(&path).unwrap().entries(), entries);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_run_that_is_refused_leaves_nothing_private() {
    let here = std::env::temp_dir().join(format!("quell-refused-{}", std::process::id()));
    let mut asked = labels::Configuration::digits_by_teachers().unwrap();
    asked.voters = labels::VoterSettings::teachers(20);
    let job = labels::Labelling::new(asked).unwrap();
    // As if another run had spent almost everything while the teachers learned.
    let terms = job.terms().unwrap();
    let budget = Budget { epsilon: Some(Epsilon::new(1e-3).unwrap()), ..terms.budget };
    std::fs::create_dir_all(&here).unwrap();
    let store = Store::create(Location::File(here.join("ledger.db"))).unwrap();
    let mut ledger =
        Ledger::create(store.book("digits").unwrap(), quell_privacy::ledger::Terms { budget, ..terms })
            .unwrap();
    let run = here.join("run");
    let mut learned = false;
    let refused = job.go(&mut ledger, &Folder::create(&run).unwrap(), &mut |_| {
        learned |= run.join("private").exists();
        Control::Continue
    });
    assert!(matches!(refused, Err(Error::Privacy(_))), "{refused:?}");
    assert!(learned && !run.join("private").exists(), "teachers learned: {learned}");
    std::fs::remove_dir_all(&here).unwrap();
}
