//! The settings of a training run, as a TOML file.

use std::path::{Path, PathBuf};

use quell_privacy::{Neighbors, ledger::Unit};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Error,
    data::{
        self, Dataset, Examples, FeatureKind, Fit, MisfitKind, Options, RatingColumns, Records, Scaling,
        Schema, TableError, TextFeatures,
    },
    error::quoted,
    features::Features,
    file,
    learner::{self, dp_sgd::Recipe, factorization, glm, naive_bayes, synthesis, tree, unsupervised},
    network::Architecture,
    run::{self, LabelUse, Learner},
    toml_error,
};

/// The largest file that is read as a configuration, in bytes.
pub(crate) const LARGEST_CONFIGURATION: u64 = 1 << 24;

/// Reads the settings of a job from TOML.
pub(super) fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    toml::from_str(text)
        .map_err(|error| run::Error::Configuration { because: toml_error::describe(text, &error) }.into())
}

/// Writes the settings of a job as TOML.
pub(super) fn to_toml(settings: &impl Serialize) -> Result<String, Error> {
    toml::to_string(settings).map_err(|error| run::Error::Configuration { because: error.to_string() }.into())
}

/// The settings of a training run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Configuration {
    /// The learner. By default it is a linear model for tables, and DP-SGD for other data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learner: Option<Learner>,
    /// The data of a run.
    pub data: Source,
    /// The features computed from each record before training; chosen by the data if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// The model.
    pub model: Architecture,
    /// How the model is trained with DP-SGD.
    #[serde(skip_serializing_if = "is_default")]
    pub training: Recipe,
    /// How a linear model is trained.
    #[serde(skip_serializing_if = "is_default")]
    pub glm: glm::Recipe,
    /// How a model without labels is trained.
    #[serde(skip_serializing_if = "is_default")]
    pub unsupervised: unsupervised::Recipe,
    /// How naive Bayes is fitted.
    #[serde(skip_serializing_if = "is_default")]
    pub naive_bayes: naive_bayes::Recipe,
    /// How a decision tree is fitted.
    #[serde(skip_serializing_if = "is_default")]
    pub tree: tree::Recipe,
    /// How a factorization of ratings is trained.
    #[serde(skip_serializing_if = "is_default")]
    pub factorization: factorization::Recipe,
    /// How synthetic data is made.
    #[serde(skip_serializing_if = "is_default")]
    pub synthesis: synthesis::Recipe,
    /// How the settings were found, in the model of a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<run::SearchRecord>,
    /// The total budget of the dataset, used if its ledger does not exist yet.
    /// If omitted, the budget is the cost of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<NewBudget>,
    /// Whether the run is planned and never starts: then no features are computed.
    #[serde(skip)]
    pub is_only_planned: bool,
}

/// Whether no setting of a section is given.
fn is_default<R: Default + PartialEq>(recipe: &R) -> bool {
    *recipe == R::default()
}

/// The total budget of a dataset, for a ledger that the run opens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewBudget {
    /// The cap on ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
}

/// The data of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Source {
    /// A file or a folder; the embedded digits if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Public test examples, in a file of the same kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
    /// Whether the test part of the data is public. By default it is private.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub public_test: bool,
    /// Name of the dataset in the ledger; the name of the file if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// The privacy unit: one example, or one person with all their examples.
    pub unit: Unit,
    /// The file with the user of each row.
    /// It is an NPY or IDX file of integers, or a text file with one line for each row. For a table, the
    /// schema names a column instead. An archive holds an array `users`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<PathBuf>,
    /// Names of the classes, where labels are numbers or folder names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// Channels, rows and columns of pictures in folders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<[usize; 3]>,
    /// The offsets subtracted from features and the scales that divide them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// The public description of the columns of a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// BLAKE3 hashes of the absolute path of the data and of the folders around it, in a model.
    ///
    /// Private records are recognised by them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub location: Vec<String>,
    /// The columns of a table of ratings, and the public list of items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratings: Option<RatingColumns>,
    /// Records in memory, instead of a file. They are in no settings file: whoever resumes gives them again.
    #[serde(skip)]
    pub records: Option<Records>,
}

impl Configuration {
    /// What is trained, in a few words: the model, and the column that it predicts.
    #[must_use]
    pub fn subject(&self) -> String {
        let layers = self.model.layers.len();
        let model = match (&self.model.name, layers) {
            (Some(name), _) => format!("{name} model"),
            (None, 1) => "network of 1 layer".into(),
            (None, _) => format!("network of {layers} layers"),
        };
        let is_target = self.learner.is_none_or(|learner| learner.label_use() == LabelUse::Target);
        let label = self.data.schema.as_ref().and_then(|schema| schema.label.as_ref());
        match label.filter(|_| is_target) {
            Some(label) => format!("{model} that predicts {}", label.column),
            None => model,
        }
    }
}

impl Source {
    /// The name of the file or folder of the records, without the folders around it.
    #[must_use]
    pub fn file_name(&self) -> Option<String> {
        let name = self.path.as_ref()?.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// Reads the training data and the test data.
    pub fn open(&self) -> Result<Dataset, Error> {
        self.read(true)
    }

    /// Reads the data like [`Source::open`], for a learner that needs no label.
    ///
    /// The label of a table is not read, and a schema needs none. Other formats are read as usual.
    pub fn open_without_labels(&self) -> Result<Dataset, Error> {
        self.read(false)
    }

    /// Reads the data like [`Source::open`], with the label of a table as one more column.
    pub fn open_with_label_as_column(&self) -> Result<Dataset, Error> {
        let schema = self.schema.as_ref().map(Schema::with_label_as_column);
        Self { schema, ..self.clone() }.open_without_labels()
    }

    /// Reads the data for a learner that uses labels in this way.
    pub(super) fn open_for(&self, label: LabelUse) -> Result<Dataset, Error> {
        match label {
            LabelUse::Target => self.open(),
            LabelUse::Ignored => self.open_without_labels(),
            LabelUse::Column => self.open_with_label_as_column(),
        }
    }

    fn read(&self, needs_label: bool) -> Result<Dataset, Error> {
        if let Some(columns) = &self.ratings {
            return self.read_ratings(columns);
        }
        if let Some(records) = &self.records {
            return records.open(&self.options(needs_label));
        }
        let Some(path) = &self.path else {
            if self.classes.is_some() || self.shape.is_some() {
                let name = if self.classes.is_some() { "classes" } else { "shape" };
                return Err(Error::Setting {
                    name,
                    found: "given".into(),
                    expected: "none: the embedded digits have theirs",
                });
            }
            let mut digits = data::digits()?;
            if let Some(scaling) = &self.scaling {
                digits.train = digits.train.scaled(scaling)?;
                digits.test = digits.test.map(|test| test.scaled(scaling)).transpose()?;
            }
            return Ok(digits);
        };
        let mut options = self.options(needs_label);
        if self.test.as_ref().is_some_and(|test| data::shares_records(test, path)) {
            return Err(Error::Setting {
                name: "test",
                found: "the data that is trained on, or a part of it".into(),
                expected: "other records, which are public; a test part of the data itself can be declared public with public_test",
            });
        }
        // The split in the schema applies to the private data only. All of the test file is test data.
        let whole = self.schema.clone().map(|schema| Schema { test: None, ..schema });
        let of_file = Options { public: true, schema: whole, ..options.clone() };
        let open = |test: &PathBuf| data::open(test, &of_file).map_err(|error| in_file(error, test));
        let test = self.test.as_ref().map(open).transpose()?.map(everything);
        if let Some(test) = &test {
            // Classes and shape of images may be taken from the images that are public.
            options.classes = options.classes.or_else(|| test.classes().map(<[String]>::to_vec));
            options.shape = options.shape.or_else(|| test.shape().try_into().ok());
        }
        // An image with several users is one example of each: that protects users, and not examples.
        if self.unit == Unit::User {
            options.users.clone_from(&self.users);
        }
        let mut dataset = data::open(path, &options)
            .map_err(|error| if self.test.is_some() { in_file(error, path) } else { error })?;
        if let Some(test) = test {
            (dataset.test, dataset.test_is_public) = (Some(test), true);
        }
        Ok(dataset)
    }

    /// What the settings say about the records, besides where they are.
    fn options(&self, needs_label: bool) -> Options {
        Options {
            schema: self.schema.clone(),
            classes: self.classes.clone(),
            shape: self.shape,
            scaling: self.scaling.clone(),
            public_test: self.public_test,
            ignore_label: !needs_label,
            ..Options::default()
        }
    }

    /// Whether the records are the embedded digits, which are public.
    pub(super) fn is_embedded(&self) -> bool {
        self.path.is_none() && self.records.is_none()
    }

    /// Compares public test records with the schema, before anything is paid.
    ///
    /// Returns remarks about records that do not fit. Records of which most do not fit are refused.
    /// The caller has refused test records that are records of the private data.
    pub(super) fn check_public_test(&self, label: LabelUse) -> Result<Vec<String>, Error> {
        let Some(schema) = &self.schema else { return Ok(Vec::new()) };
        if let Some(table) = self.records.as_ref().and_then(Records::public_table) {
            let fit = Fit::of_table(table, &label.schema(schema), label == LabelUse::Target)?;
            return check_fit(&fit, &label.schema(schema), "the test table");
        }
        let part = schema.test.as_ref().filter(|test| test.public || self.public_test);
        let beside = part.and_then(|test| {
            let path = self.path.as_ref()?;
            Some(path.parent().unwrap_or(path).join(test.file.as_ref()?))
        });
        let Some(path) = self.test.clone().or(beside) else { return Ok(Vec::new()) };
        self.check_public_table(&path, label)
    }

    /// Compares a table of public records with the schema. Records of which most do not fit are refused.
    pub(super) fn check_public_table(&self, path: &Path, label: LabelUse) -> Result<Vec<String>, Error> {
        let Some(schema) = &self.schema else { return Ok(Vec::new()) };
        let schema = label.schema(schema);
        let fit = Fit::new(path, &schema, label == LabelUse::Target).map_err(|error| in_file(error, path))?;
        check_fit(&fit, &schema, &path.display().to_string())
    }

    /// Reads ratings. All of the test file is test data.
    fn read_ratings(&self, columns: &RatingColumns) -> Result<Dataset, Error> {
        let others = [
            ("schema", self.schema.is_some()),
            ("classes", self.classes.is_some()),
            ("shape", self.shape.is_some()),
            ("users", self.users.is_some()),
            ("scaling", self.scaling.is_some()),
            ("public_test", self.public_test),
        ];
        if let Some((name, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
            let expected = "none: ratings are described by their columns and the list of items";
            return Err(Error::Setting { name, found: "given".into(), expected });
        }
        let Some(path) = &self.path else {
            let found = "not given".into();
            return Err(Error::Setting { name: "the data", found, expected: "a table of ratings" });
        };
        if self.test.as_deref().is_some_and(|test| data::shares_records(test, path)) {
            return Err(Error::Setting {
                name: "test",
                found: "the data that is trained on".into(),
                expected: "ratings of other users, which are public",
            });
        }
        let items = columns.list()?;
        // Several files have the columns, so a message says which one lacks one.
        let open = |path: &Path| columns.open(path, &items).map_err(|error| in_file(error, path));
        let test = self.test.as_deref().map(open).transpose()?;
        let test_is_public = test.is_some();
        Ok(Dataset { name: self.name(), train: open(path)?, test, test_is_public })
    }

    /// Records what the public files hold, and refuses files that changed since.
    ///
    /// A file with private records is refused before anything of it is read: whether it is empty, or has a
    /// certain hash, would be a release that nobody pays for.
    pub(super) fn pin(&mut self, features: &mut Features) -> Result<(), Error> {
        let is_private = |public: &Path| {
            let private = [&self.path, &self.users].into_iter().flatten();
            private.into_iter().any(|path| data::belongs_to(public, path))
        };
        if let Features::Network { path, .. } = &*features
            && is_private(path)
        {
            return Err(Error::Setting {
                name: "the public network",
                found: "the data that is trained on".into(),
                expected: "another file, with a model that is public",
            });
        }
        if self.ratings.as_ref().is_some_and(|columns| is_private(&columns.items)) {
            return Err(Error::Setting {
                name: "the list of items",
                found: "the data that is trained on".into(),
                expected: "another file with all items, which is public",
            });
        }
        let texts = || self.schema.iter().flat_map(Schema::texts).flat_map(TextFeatures::files);
        if texts().any(|path| is_private(path)) {
            return Err(Error::Setting {
                name: "the embedding",
                found: "the data that is trained on".into(),
                expected: "another file, with vectors that are public",
            });
        }
        features.pin(&mut self.scaling)?;
        self.schema.as_mut().map_or(Ok(()), Schema::pin)?;
        self.ratings.as_mut().map_or(Ok(()), RatingColumns::pin)
    }

    /// Whether a file or folder shares records with the data.
    ///
    /// The path of the data may be relative to a folder that nobody knows any more. Its location is not.
    #[must_use]
    pub fn has_records_of(&self, path: &Path) -> bool {
        let place = data::whole(path);
        let lies_within = || {
            let own = place.ancestors().find(|place| self.location.first() == Some(&data::location(place)));
            own.is_some_and(|own| !data::is_test_part(own, &place))
        };
        let lies_around = || self.location.contains(&data::location(&place));
        self.path.as_deref().is_some_and(|own| data::shares_records(path, own))
            || lies_within()
            || lies_around()
    }

    /// Checks that the data can be protected as the settings ask.
    /// The check depends on no value of a record.
    pub(super) fn check(&self, train: &Examples, neighbors: Neighbors) -> Result<(), Error> {
        if self.unit == Unit::User && train.users().is_none() {
            return Err(learner::NO_USERS);
        }
        let splits = self
            .schema
            .as_ref()
            .and_then(|schema| schema.test.as_ref())
            .is_some_and(|test| test.share.is_some());
        if neighbors == Neighbors::Replace && splits && !self.is_embedded() {
            return Err(Error::Setting {
                name: "neighbors",
                found: "replace, with a test share chosen by the values of the records".into(),
                expected: "add_remove, or a test part in a separate file: replacing a record could change the numbers of training and test records",
            });
        }
        Ok(())
    }

    /// The declared bounds of a numeric target, which is scaled to [-1, 1].
    #[must_use]
    pub fn target_bounds(&self) -> Option<[f64; 2]> {
        self.schema.as_ref().and_then(|schema| schema.label.as_ref()?.bounds)
    }

    /// Name of the dataset in the ledger.
    #[must_use]
    pub fn name(&self) -> String {
        let stem = || self.path.as_deref().and_then(data::name_of);
        let usual = if self.is_embedded() { "digits" } else { "records" };
        self.dataset.clone().or_else(stem).unwrap_or_else(|| usual.into())
    }

    /// Names that earlier versions gave the dataset. None if the settings name the dataset.
    #[must_use]
    pub fn former_names(&self) -> Vec<String> {
        let path = self.path.as_deref().filter(|_| self.dataset.is_none());
        path.map(data::former_names).unwrap_or_default()
    }
}

/// Describes public records that do not fit the schema. Records of which most do not fit are refused.
fn check_fit(fit: &Fit, schema: &Schema, name: &str) -> Result<Vec<String>, Error> {
    let mut remarks = Vec::new();
    for (count, first) in fit.by_column() {
        let is_label = matches!(first.kind, MisfitKind::NoClass | MisfitKind::NoTarget);
        let column = quoted(&first.column);
        let found = format!("column {column} of {count} of {} records of {name} {first}", fit.records);
        let error = TableError::UnfitRecords { found, expected: declared(schema, &first.column) };
        if 2 * count > fit.records && !first.is_declared {
            return Err(error.into());
        }
        let effect = match (is_label, first.is_declared) {
            (true, _) => "these records are left out",
            (false, true) => "these cells count as unknown",
            (false, false) => "these cells count as missing",
        };
        remarks.push(format!("note: {error}; {effect}"));
    }
    Ok(remarks)
}

/// Names the file in an error about a missing column.
fn in_file(error: Error, path: &Path) -> Error {
    match error {
        Error::Table(error) => error.in_file(path).into(),
        error => error,
    }
}

/// All examples of a public file, whether it calls them training or test examples.
fn everything(dataset: Dataset) -> Examples {
    match dataset.test {
        Some(test) if dataset.train.is_empty() => test,
        _ => dataset.train,
    }
}

impl Configuration {
    /// The features computed from each record. Features that were not given or chosen are the raw records.
    #[must_use]
    pub fn computed_features(&self) -> Features {
        self.features.clone().unwrap_or_default()
    }

    /// The number of records, if it is public whatever the ledger says.
    /// That holds for the embedded digits only. The number is also public under replace-one neighbours, but
    /// the ledger decides which neighbours apply, not the caller.
    pub(super) fn public_count(&self, train: &Examples) -> Option<u64> {
        self.data.is_embedded().then_some(train.row_count() as u64)
    }

    /// Reads settings from TOML.
    pub fn parse(text: &str) -> Result<Self, Error> {
        from_toml(text)
    }

    /// Reads settings from a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&file::read_text(path, LARGEST_CONFIGURATION)?)
    }

    /// Writes the settings as TOML.
    pub fn write(&self) -> Result<String, Error> {
        to_toml(self)
    }

    /// The default settings for training on the embedded digits.
    pub fn digits() -> Result<Self, Error> {
        Self::parse(include_str!("digits.toml"))
    }
}

/// What a schema declares about a column, in words.
fn declared(schema: &Schema, column: &str) -> String {
    const SHOWN: usize = 6;
    let mut labels = schema.label.iter().filter(|label| label.column == column);
    let classes = labels.find_map(|label| label.classes.as_deref());
    let feature = schema.columns.iter().find(|feature| feature.name == column);
    let names = match feature.map(|feature| &feature.kind) {
        Some(FeatureKind::Categories { names, .. }) => names,
        Some(FeatureKind::Boolean) => return "true or false".into(),
        Some(FeatureKind::Date(date)) => return format!("dates such as {}", date.order.example()),
        Some(FeatureKind::Text(_)) => return "text".into(),
        Some(FeatureKind::Bounds(_)) => return "numbers".into(),
        None => match classes {
            Some(names) => names,
            None => return "numbers".into(),
        },
    };
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    let more = if names.len() > SHOWN { " …" } else { "" };
    format!("one of {}{more}", shown.join(", "))
}
