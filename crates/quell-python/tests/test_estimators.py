"""Estimators: the checks of scikit-learn, pipelines and cross-validation."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import quell
from conftest import points
from quell import estimators

NOISE = "noise is drawn anew in each fit: two fits on the same records must differ"
MISSING = "whether a target is missing or infinite is private: such a record is left out without a word"

CONTRADICT_PRIVACY = {
    "check_fit_idempotent": NOISE,
    "check_supervised_y_2d": NOISE,
    "check_classifier_data_not_an_array": NOISE,
    "check_regressor_data_not_an_array": NOISE,
    "check_regressors_int": NOISE,
    "check_supervised_y_no_nan": MISSING,
    "check_dtype_object": "whether a value is a number is private: one that is none is missing",
}
"""The checks that contradict privacy, each with its reason."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", estimators.__all__)
def test_the_checks_of_scikit_learn_pass_but_for_those_that_contradict_privacy(name):
    # Small public data with hardly any noise.
    estimator = getattr(estimators, name)(epsilon=30, delta=1e-3, public="data")
    results = check_estimator(estimator, on_fail=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    unexpected = {check: error for check, error in failed.items() if check not in CONTRADICT_PRIVACY}
    assert unexpected == {}
    assert sum(result["status"] == "passed" for result in results) > 35


def test_cross_validation_costs_what_it_costs():
    X, y = points(3000)
    ledger = quell.Ledger.in_memory("points", epsilon=2.1, delta=1e-6, composition="addition")
    estimator = estimators.AdditiveClassifier(
        epsilon=0.5, delta=1e-7, bounds=(-1, 1), classes=[0, 1], records=2000, ledger=ledger
    )
    scores = cross_val_score(estimator, X, y, cv=3)
    assert scores.mean() > 0.9 and len(ledger.charges) == 3
    # Addition divides δ among the fits, so each counts a little more than alone.
    assert 1.4 < ledger.spent < 1.6
    with pytest.raises(quell.BudgetError):
        cross_val_score(estimator, X, y, cv=3, error_score="raise")
    # One more fit was paid for before the budget was used up.
    assert len(ledger.charges) == 4


def test_a_pipeline_trains_and_predicts():
    X, y = points()
    pipeline = make_pipeline(
        FunctionTransformer(lambda X: 2 * X), estimators.Classifier(epsilon=1, bounds=(-2, 2), classes=[0, 1], records=4000)
    )
    assert pipeline.fit(X, y).score(X, y) > 0.95


def test_clones_share_their_ledger():
    ledger = quell.Ledger.in_memory(epsilon=1, delta=1e-6)
    estimator = estimators.KMeans(3, ledger=ledger)
    assert clone(estimator).get_params()["ledger"] is ledger


def test_a_search_pays_for_every_fit():
    X, y = points(2000)
    ledger = quell.Ledger.in_memory(epsilon=30, delta=1e-6)
    estimator = estimators.LogisticRegression(
        bounds=(-1, 1), classes=[0, 1], records=1000, delta=1e-7, ledger=ledger
    )
    GridSearchCV(estimator, {"epsilon": [0.5, 1.0]}, cv=2).fit(X, y)
    assert len(ledger.charges) == 5


def test_labels_keep_their_type():
    X, y = points()
    for labels in (y, y > 0, np.where(y == 1, "up", "down"), y.astype(float), np.where(y == 1, "up", "down").astype(object)):
        estimator = estimators.AdditiveClassifier(epsilon=2, delta=1e-6, public="data").fit(X, labels)
        assert estimator.classes_.dtype.kind == np.unique(labels).dtype.kind
        assert (estimator.predict(X) == labels).mean() > 0.9
        assert estimator.predict_proba(X).shape == (4000, 2)


def test_numbers_have_their_units():
    X, _ = points()
    for estimator in (
        estimators.LinearRegression(epsilon=2, bounds=(-1, 1), target_bounds=(-10, 10), records=4000),
        estimators.Regressor(epsilon=2, bounds=(-1, 1), target_bounds=(-10, 10), records=4000),
    ):
        assert estimator.fit(X, 10 * X[:, 0]).score(X, 10 * X[:, 0]) > 0.9
