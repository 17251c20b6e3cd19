"""The learners of tables as estimators of scikit-learn, which must be installed.

They work in pipelines and in cross-validation, *and cost what they cost*: each `fit` is a charge. Give a ledger, and
fits on the same records add up there, in all folds and processes:

>>> import numpy as np
>>> from sklearn.model_selection import cross_val_score
>>> from quell import Ledger
>>> X = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
>>> y = X[:, 0] > 0
>>> ledger = Ledger.in_memory("points", epsilon=5, delta=1e-6)
>>> estimator = LogisticRegression(epsilon=1, bounds=(-1, 1), classes=[False, True], records=2000, ledger=ledger)
>>> scores = cross_val_score(estimator, X, y, cv=3)
>>> bool(scores.mean() > 0.9), len(ledger.charges)
(True, 3)

The score of a fold is computed from its private records and is not paid for: show it to nobody who may not see them.
A step before an estimator that learns from the records, such as a scaler, is not paid for either; these learners scale
by themselves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin, RegressorMixin, TransformerMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("quell.estimators needs scikit-learn 1.6 or later: pip install scikit-learn") from error

from .errors import DataError
from .facts import Public
from .inputs import as_numbers, codes_of, object_column, target_numbers
from .ledgers import Ledger
from .model import Model
from .schemas import Bounds, Schema
from .tables import is_table
from .training import train

__all__ = [
    "PCA",
    "AdditiveClassifier",
    "AdditiveRegressor",
    "Classifier",
    "DecisionTreeClassifier",
    "ForestClassifier",
    "ForestRegressor",
    "KMeans",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "MLPClassifier",
    "MLPRegressor",
    "NaiveBayes",
    "PoissonRegressor",
    "QuantileRegressor",
    "Regressor",
    "Ridge",
]


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class _Estimator(BaseEstimator):
    """What all estimators share: the options of `quell.train`, and the model.

    Parameters
    ----------
    epsilon, delta
        The guarantee of one fit. Without δ it follows from `records`.
    records
        A rough public number of records.
    bounds
        Bounds of the columns of numbers: a pair for all, a list of pairs, or a dict.
    categories
        The categories of the columns of texts: a dict.
    schema
        All public facts about a table, in place of `bounds`, `categories` and the facts about the target.
    public
        Where facts come from that are not declared: see `quell.train`.
    ledger
        The ledger that pays. Without one, a ledger in memory pays for each fit alone.
    settings
        Settings as in a configuration file.

    Attributes
    ----------
    model_ : quell.Model
        The trained model, with its claim, its receipt and its report.
    """

    _model: ClassVar[str | None] = None

    epsilon: float = 1.0
    delta: float | None = None
    records: int | None = None
    bounds: Bounds | Sequence[Bounds] | Mapping[str, Bounds] | None = None
    categories: Mapping[str, Sequence[str]] | None = None
    schema: Schema | None = None
    public: Public = "released"
    ledger: Ledger | None = None
    settings: Mapping[str, Any] | None = None

    model_: Model = dataclasses.field(init=False)

    def _settings(self) -> dict[str, Any]:
        """The settings of this learner's own options."""
        return {}

    def _options(self) -> dict[str, Any]:
        merged = dict(self.settings or {})
        for name, setting in self._settings().items():
            given = merged.get(name, {})
            merged[name] = {**setting, **given} if isinstance(setting, dict) and isinstance(given, dict) else setting
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "records": self.records,
            "bounds": self.bounds,
            "categories": self.categories,
            "schema": self.schema,
            "public": self.public,
            "ledger": self.ledger,
            "model": self._model,
            "settings": merged,
        }

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """The records, with their number of columns checked. Values decide about nothing: NaN is a missing number."""
        if is_table(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        is_public = self.public == "data"
        if reset and isinstance(X, (list, tuple)) and not is_public:
            raise DataError(
                "the records are a list, whose type is not declared, expected an array or a data frame",
                "convert them with numpy.asarray(X, dtype=float)",
            )
        if isinstance(X, np.ndarray) and X.dtype.kind == "O":
            # An error about a value would tell something about a record.
            X = as_numbers(X)
        X = validate_data(
            self, X, reset=reset, dtype="numeric", ensure_all_finite=False, ensure_min_samples=1 if is_public else 0
        )
        if not reset and hasattr(self, "feature_names_in_"):
            # The records of the fit were a table: the names of the columns are those of their places.
            return dict(zip(self.feature_names_in_, X.T, strict=True))
        return X

    def _targets(self, y: Any) -> Any:
        """Targets with one axis, whose values decide about nothing."""
        if self.public == "data":
            return column_or_1d(y, warn=True)
        if isinstance(y, (list, tuple)):
            return object_column(y)
        return column_or_1d(y, warn=True) if isinstance(y, np.ndarray) and y.ndim == 2 else y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        # Noise is drawn anew in each fit.
        tags.non_deterministic = True
        return tags


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class _Classifier(ClassifierMixin, _Estimator):
    """An estimator of classes.

    `classes` are all public labels. Labels that are none of them are left out.
    """

    classes: Sequence[Any] | None = None
    classes_: npt.NDArray[Any] = dataclasses.field(init=False)

    def fit(self, X: Any, y: Any) -> Any:
        """Trains the model, and pays for it."""
        X = self._checked(X, reset=True)
        y = self._targets(y)
        if self.public == "data":
            # Whether there is a fraction among private labels is nobody's business.
            check_classification_targets(y)
        self.model_ = train(X, y, task="classes", classes=self.classes, progress=False, **self._options())
        labels = np.asarray(self.model_.classes)
        if self.public == "data" and self.classes is None:
            labels = labels.astype(y.dtype)
        self._order = np.argsort(labels)
        self.classes_ = labels[self._order]
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each record."""
        check_is_fitted(self)
        predicted = codes_of(self.model_.predict(self._checked(X, reset=False)), list(self.classes_))
        # A record without a prediction gets the first class.
        return self.classes_[np.where(predicted < len(self.classes_), predicted, 0)]


class _Probabilistic(_Classifier):
    """An estimator of classes and of their probabilities."""

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probability of each class, in the order of `classes_`."""
        check_is_fitted(self)
        found = self.model_.predict_proba(self._checked(X, reset=False)).astype(np.float64)
        shares: npt.NDArray[np.float64] = np.clip(found[:, self._order], 0.0, 1.0)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class _Regressor(RegressorMixin, _Estimator):
    """An estimator of a number, whose public range is `target_bounds`."""

    target_bounds: Bounds | None = None

    def fit(self, X: Any, y: Any) -> Any:
        """Trains the model, and pays for it."""
        X = self._checked(X, reset=True)
        y = target_numbers(self._targets(y)) if self.public != "data" else column_or_1d(y, dtype=np.float64, warn=True)
        self.model_ = train(X, y, task="numbers", target_bounds=self.target_bounds, progress=False, **self._options())
        return self

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The number of each record, in the units of the target."""
        check_is_fitted(self)
        return self.model_.predict(self._checked(X, reset=False))


class Classifier(_Probabilistic):
    """Classes, by the model that suits the table: additive, or a small network if it is large."""


class AdditiveClassifier(_Probabilistic):
    """Classes, by a curve for each number and a value for each category."""

    _model: ClassVar[str | None] = "additive"


class ForestClassifier(_Probabilistic):
    """Classes, by random trees on top of an additive model."""

    _model: ClassVar[str | None] = "forest"


class LogisticRegression(_Probabilistic):
    """Classes, by one linear score each."""

    _model: ClassVar[str | None] = "logistic"

    def _settings(self) -> dict[str, Any]:
        # A network has this name, too: this asks for the linear learner.
        return {"learner": "glm"}


class LinearSVC(_Classifier):
    """Classes, by a support vector machine with a smoothed hinge loss. Its scores are no probabilities."""

    _model: ClassVar[str | None] = "svm"

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """The score of each class; of the second class alone if there are two."""
        check_is_fitted(self)
        found = self.model_.scores(self._checked(X, reset=False)).astype(np.float64)[:, self._order]
        return found[:, 1] - found[:, 0] if found.shape[1] == 2 else found


class NaiveBayes(_Probabilistic):
    """Classes, by independent columns that are learned from one release."""

    _model: ClassVar[str | None] = "naive-bayes"


class DecisionTreeClassifier(_Probabilistic):
    """Classes, by a decision tree: rules that people can read."""

    _model: ClassVar[str | None] = "tree"


class MLPClassifier(_Probabilistic):
    """Classes, by a network with one hidden layer of 64 on standardised columns."""

    _model: ClassVar[str | None] = "mlp-small"


class Regressor(_Regressor):
    """A number, by the model that suits the table."""


class AdditiveRegressor(_Regressor):
    """A number, by a curve for each number and a value for each category."""

    _model: ClassVar[str | None] = "additive"


class ForestRegressor(_Regressor):
    """A number, by random trees on top of an additive model."""

    _model: ClassVar[str | None] = "forest"


class LinearRegression(_Regressor):
    """A number, by a linear model."""

    _model: ClassVar[str | None] = "linear"


class Ridge(_Regressor):
    """A number, by a linear model with a penalty on its weights: `settings={"glm": {"regularization": …}}`."""

    _model: ClassVar[str | None] = "ridge"


class PoissonRegressor(_Regressor):
    """A count from 0 to its upper bound, by Poisson regression."""

    _model: ClassVar[str | None] = "poisson"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


class QuantileRegressor(_Regressor):
    """The median of a number, or another quantile: `settings={"glm": {"quantile": …}}`."""

    _model: ClassVar[str | None] = "quantile"


class MLPRegressor(_Regressor):
    """A number, by a network with one hidden layer of 64 on standardised columns."""

    _model: ClassVar[str | None] = "mlp-small"


class _Unsupervised(TransformerMixin, _Estimator):
    """An estimator without targets."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Trains the model, and pays for it."""
        X = self._checked(X, reset=True)
        self.model_ = train(X, progress=False, **self._options())
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """The coordinates of each record, or its squared distance to each centre."""
        check_is_fitted(self)
        return self.model_.scores(self._checked(X, reset=False)).astype(np.float64)


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class KMeans(ClusterMixin, _Unsupervised):
    """Centres of groups of similar records, on the scale of the bounds."""

    _model: ClassVar[str | None] = "kmeans"

    n_clusters: int = dataclasses.field(default=8, kw_only=False)
    labels_: npt.NDArray[np.int64] = dataclasses.field(init=False)

    def _settings(self) -> dict[str, Any]:
        return {"unsupervised": {"clusters": int(self.n_clusters)}}

    def fit(self, X: Any, y: Any = None) -> Any:
        """Finds the centres, and pays for them. `labels_` say which is the nearest of each record: they are private."""
        super().fit(X)
        self.labels_ = self.predict(X)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """The nearest centre of each record, counted from 0."""
        check_is_fitted(self)
        return self.model_.predict(self._checked(X, reset=False))


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class PCA(_Unsupervised):
    """The directions in which records vary most, on the scale of the bounds."""

    _model: ClassVar[str | None] = "components"

    n_components: int = dataclasses.field(default=2, kw_only=False)

    def _settings(self) -> dict[str, Any]:
        return {"unsupervised": {"components": int(self.n_components)}}
