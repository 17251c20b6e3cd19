//! Every error has a hint, or is listed as having none; hints name no flags and no commands.

use std::path::PathBuf;

use super::Error;
use crate::{
    Hint, Input,
    data::{FormatError, Kind, Place, TableError, Use},
    layer, network, run,
};

/// Names of errors whose message says all there is to say.
const WITHOUT_HINT: [(&str, &str); 6] = [
    ("general", "Setting"),
    ("general", "OutOfRange"),
    ("general", "Length"),
    ("Privacy", "OutOfRange"),
    ("Privacy", "Book"),
    ("Privacy", "NoEntropy"),
];

/// Declares a function that names the variant of a value, and a list of all names.
/// It does not compile if a variant is not listed.
macro_rules! variants {
    ($name:ident, $names:ident, $type:path: $($variant:ident)*) => {
        const $names: &[&str] = &[$(stringify!($variant)),*];
        fn $name(value: &$type) -> &'static str {
            use $type as Of;
            match value {
                $(Of::$variant { .. } => stringify!($variant),)*
            }
        }
    };
}

variants!(format_name, FORMAT, FormatError:
    Unrecognised NoTable NoHeader Separator NoDelimiter Damaged Codec Packed Broken NoArchive NoImage Shape SingleImage
    NoClass TooLarge NoLabels NoClasses Undeclared Counts);
variants!(table_name, TABLE, TableError:
    DuplicateColumn NoColumn WrongUse Excluded TextOrder FractionsAsUsers Malformed NoSchema NoLabel Schema UnfitRecords
    Unmentioned);
variants!(layer_name, LAYER, layer::Error:
    Input Setting MixesExamples TooLarge TooDeep NoLayers);
variants!(network_name, NETWORK, network::Error: NoModel PublicNetwork);
variants!(run_name, RUN, run::Error:
    Configuration Exists NotFound NoModel UnreadableModel Busy AnswerExists EarlierQuestion AnswerLost
    AllStepsLost LedgerRolledBack SearchReleased AheadOfLease);
variants!(general_name, GENERAL, Error:
    Format Table Layer Network Run Privacy Absent Unreadable TooLong Unwritable Setting OutOfRange Length Sizes Missing
    OtherTerms SavedState);
variants!(hint_name, HINTS, Hint:
    CheckPath CheckPermissions FreeSpace ExportAgain ExportTable NameColumns DeclareDelimiter ExportColumn DidYouMean
    CheckColumnName AskAsDeclared CompareWith Example ConvertImage AllowMemory SupportedFormats AddLabels DeclareClasses
    DeclareImages MatchRecords WriteSchema DeclareColumn MatchSchema ChangeLayer ShrinkKernel KeepShape
    NarrowLayers ListLayers UseGroupNorm ChooseModel RestoreNetwork Give ResumeRun NameRun FinishRun NameModel
    WaitForProcess NewOutput AskAgain StartAgain SameConfiguration RestoreLedger MatchLedger SpendLess ChangePrivacy);
variants!(input_name, INPUTS, Input:
    PublicRecords Questions Answers Users RecordCount Epsilon Budget);

/// The name of the enum and the variant of an error.
fn name(error: &Error) -> (&'static str, &'static str) {
    match error {
        Error::Format(error) => ("Format", format_name(error)),
        Error::Table(error) => ("Table", table_name(error)),
        Error::Layer(error) => ("Layer", layer_name(error)),
        Error::Network(error) => ("Network", network_name(error)),
        Error::Run(error) => ("Run", run_name(error)),
        Error::Privacy(error) => match error {
            quell_privacy::Error::Refused { .. } => ("Privacy", "Refused"),
            quell_privacy::Error::Book { .. } => ("Privacy", "Book"),
            quell_privacy::Error::NoEntropy => ("Privacy", "NoEntropy"),
            quell_privacy::Error::OutOfRange { .. } => ("Privacy", "OutOfRange"),
            _ => ("Privacy", "other"),
        },
        error => ("general", general_name(error)),
    }
}

fn path() -> PathBuf {
    "people.csv".into()
}

fn text() -> String {
    "b".into()
}

fn format_samples() -> Vec<FormatError> {
    let (found, expected) = ("a", "b");
    vec![
        FormatError::Unrecognised { path: path() },
        FormatError::NoTable { path: path(), found },
        FormatError::NoHeader { path: path() },
        FormatError::Separator { path: path(), found, expected },
        FormatError::NoDelimiter { path: path() },
        FormatError::Damaged { path: path(), part: text() },
        FormatError::Codec { path: path(), codec: "lzo" },
        FormatError::Packed { path: path() },
        FormatError::Broken { path: path(), found: text(), expected: text() },
        FormatError::NoArchive { path: path() },
        FormatError::NoImage { path: path(), found },
        FormatError::Shape { path: path(), found: [1, 2, 2], expected: [3, 2, 2] },
        FormatError::SingleImage { path: path() },
        FormatError::NoClass { path: path(), name: text(), classes: vec!["cat".into()] },
        FormatError::TooLarge { path: path(), limit: 1 },
        FormatError::NoLabels { path: path(), expected },
        FormatError::NoClasses { path: path() },
        FormatError::Undeclared { path: path(), what: "shape of the images" },
        FormatError::Counts { path: path(), other: path() },
    ]
}

fn table_samples() -> Vec<TableError> {
    let place = Place { expression: "b = 1".into(), at: 0 };
    let wrong = |kind, place| TableError::WrongUse { name: text(), kind, usage: Use::Number, place };
    let missing = |near| TableError::NoColumn { name: text(), file: None, columns: 2, near, place: None };
    vec![
        TableError::DuplicateColumn { path: path(), columns: [1, 2] },
        missing(None),
        missing(Some("a".into())),
        wrong(Kind::Text, Some(place.clone())),
        wrong(Kind::Number, Some(place.clone())),
        wrong(Kind::Unreadable, Some(place.clone())),
        wrong(Kind::Text, None),
        TableError::Excluded {
            name: text(),
            found: "b".into(),
            expected: "b".into(),
            near: None,
            place: None,
        },
        TableError::TextOrder { name: text(), place: place.clone() },
        TableError::FractionsAsUsers { name: text() },
        TableError::Malformed { found: text(), expected: "a name", place },
        TableError::NoSchema { path: path() },
        TableError::NoLabel,
        TableError::UnfitRecords { found: text(), expected: text() },
        TableError::Schema { path: None, because: text() },
        TableError::Unmentioned { path: path(), name: text() },
    ]
}

fn layer_samples() -> Vec<layer::Error> {
    let setting = |setting| layer::Error::Setting { layer: text(), setting, found: text(), expected: text() };
    vec![
        layer::Error::Input { layer: text(), found: vec![1], expected: text() },
        setting("kernel"),
        setting("output"),
        setting("outputs"),
        layer::Error::MixesExamples { layer: text() },
        layer::Error::TooLarge { layer: text(), what: "weights", most: 1 },
        layer::Error::TooDeep { layer: text(), most: 1 },
        layer::Error::NoLayers { place: text() },
    ]
}

fn network_samples() -> Vec<network::Error> {
    let model = |name: &str| network::Error::NoModel { name: name.into(), models: vec!["logistic".into()] };
    vec![
        model("logistc"),
        model("other"),
        network::Error::PublicNetwork { path: path(), found: text(), expected: "a model" },
    ]
}

fn run_samples() -> Vec<run::Error> {
    vec![
        run::Error::Configuration { because: text() },
        run::Error::Exists { path: path() },
        run::Error::NotFound { path: path() },
        run::Error::NoModel { folder: path() },
        run::Error::UnreadableModel { path: path(), because: text() },
        run::Error::Busy { path: path() },
        run::Error::AnswerExists { path: path() },
        run::Error::EarlierQuestion { path: path() },
        run::Error::AnswerLost { path: path() },
        run::Error::AllStepsLost { path: path() },
        run::Error::LedgerRolledBack { path: path(), dataset: text(), line: 2, lines: 1 },
        run::Error::SearchReleased { path: path() },
        run::Error::AheadOfLease { path: path(), what: "steps", found: 2, leased: 1 },
    ]
}

fn general_samples() -> Vec<Error> {
    let because = std::io::ErrorKind::PermissionDenied;
    vec![
        quell_privacy::Error::Refused { would_be: 2.0, spent: 0.0, budget: 1.0 }.into(),
        quell_privacy::Error::Unfit { what: "a", because: "b" }.into(),
        quell_privacy::Error::OutOfRange { what: "delta", value: 2.0, range: "(0, 1)" }.into(),
        quell_privacy::Error::Book { cause: text() }.into(),
        quell_privacy::Error::NoEntropy.into(),
        Error::Absent { path: path() },
        Error::Unreadable { path: path(), because },
        Error::TooLong { path: path(), most: 1 },
        Error::Unwritable { path: path(), because },
        Error::Setting { name: "steps", found: "0".into(), expected: "at least 1" },
        Error::OutOfRange { what: "decay", value: 2.0, range: "[0, 1)" },
        Error::Length { what: "gradient", found: 1, expected: 2 },
        Error::Sizes { name: "features" },
        Error::Missing { what: Input::PublicRecords },
        Error::Missing { what: Input::Questions },
        Error::Missing { what: Input::Answers },
        Error::Missing { what: Input::Users },
        Error::Missing { what: Input::RecordCount },
        Error::Missing { what: Input::Epsilon },
        Error::Missing { what: Input::Budget },
        Error::OtherTerms { dataset: text() },
        Error::SavedState { part: text(), found: "damaged", expected: "a checkpoint" },
    ]
}

/// At least one error of each variant.
fn samples() -> Vec<Error> {
    let mut all = general_samples();
    all.extend(format_samples().into_iter().map(Error::from));
    all.extend(table_samples().into_iter().map(Error::from));
    all.extend(layer_samples().into_iter().map(Error::from));
    all.extend(network_samples().into_iter().map(Error::from));
    all.extend(run_samples().into_iter().map(Error::from));
    all
}

#[test]
fn every_error_is_sampled() {
    let named: Vec<_> = samples().iter().map(name).collect();
    for (of, names) in [
        ("Format", FORMAT),
        ("Table", TABLE),
        ("Layer", LAYER),
        ("Network", NETWORK),
        ("Run", RUN),
        ("general", GENERAL),
    ] {
        for variant in names {
            let holds_another = of == "general" && named.iter().any(|(other, _)| other == variant);
            assert!(holds_another || named.contains(&(of, variant)), "{of}: no sample of {variant}");
        }
    }
}

#[test]
fn every_error_gives_a_hint_or_is_listed_as_having_none() {
    for error in samples() {
        assert_eq!(error.hint().is_none(), WITHOUT_HINT.contains(&name(&error)), "{error:?}");
    }
}

#[test]
fn every_hint_belongs_to_an_error() {
    let hints: Vec<Hint> = samples().iter().filter_map(Error::hint).collect();
    for variant in HINTS {
        assert!(hints.iter().any(|hint| hint_name(hint) == *variant), "{variant}");
    }
    for variant in INPUTS {
        let gives = |hint: &Hint| matches!(hint, Hint::Give { what } if input_name(what) == *variant);
        assert!(hints.iter().any(gives), "{variant}");
    }
}

#[test]
fn hints_and_messages_name_no_flag_and_no_command() {
    for error in samples() {
        let hint = error.hint().map(|hint| hint.to_string());
        for said in [Some(error.to_string()), hint.clone()].into_iter().flatten() {
            assert!(!said.is_empty() && !said.contains("--") && !said.contains("quell "), "{said}");
        }
        // A hint is one line: the command prints it below the message.
        assert!(hint.is_none_or(|hint| !hint.is_empty() && !hint.contains('\n')), "{error:?}");
    }
}

#[test]
fn a_picture_is_the_end_of_the_message() {
    let with_picture: Vec<Error> = samples().into_iter().filter(|error| error.picture().is_some()).collect();
    assert_eq!(with_picture.len(), 5);
    for error in with_picture {
        assert!(error.to_string().ends_with(&format!("\n{}", error.picture().unwrap())), "{error:?}");
    }
}
