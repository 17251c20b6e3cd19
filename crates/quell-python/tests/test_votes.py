"""Votes: one record influences one ballot, answers are noisy winners, and the ledger pays for all of them."""

from __future__ import annotations

import json
import random
import warnings
from typing import Any

import numpy as np
import pytest

import quell
from quell import _native
from quell.votes import Pate, PrivateKnn, shards

CLASSES = ["left", "right"]


def ledger(epsilon: float | None = 20.0, **settings: Any) -> quell.Ledger:
    return quell.Ledger.in_memory("patients", epsilon=epsilon, delta=1e-5, **settings)


def records(count: int = 4000, seed: int = 1) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, count)
    features = generator.normal(size=(count, 3)) + 3.0 * labels[:, None]
    return features, np.array(CLASSES)[labels]


QUESTIONS = np.array([[0.0, 0.0, 0.0], [3.0, 3.0, 3.0]] * 10)
ANSWERS = CLASSES * 10


class Centroids:
    """An estimator: the nearest of the means of the classes."""

    def fit(self, features: Any, labels: Any) -> Centroids:
        self.names = sorted(set(labels.tolist()))
        self.means = np.array([features[labels == name].mean(axis=0) for name in self.names])
        return self

    def predict(self, questions: Any) -> list[str]:
        distances = ((questions[:, None] - self.means[None]) ** 2).sum(axis=2)
        return [self.names[place] for place in distances.argmin(axis=1)]


def learn(features: Any, labels: Any) -> Any:
    """A function that fails on some shards, warns, and draws as many random numbers as it has records."""
    warnings.warn("there are only a few records", stacklevel=1)
    np.random.random(len(features))
    random.random()
    model = Centroids().fit(features, labels)
    if len(features) % 5 == 0:
        raise ValueError(f"the first record is {features[0]}")

    def predict(questions: Any) -> list[str]:
        # Depends on the generators, as a network with dropout does.
        noise = np.random.normal(scale=2.0, size=np.shape(questions)) + random.random()
        return model.predict(questions + noise)

    return predict


def test_shards_are_disjoint_and_follow_the_record() -> None:
    features, labels = records(500)
    labels = labels.astype(object)
    labels[7] = "other"
    dealt = shards(features, labels, count=10, classes=CLASSES, ledger=ledger())
    together = np.concatenate(dealt)
    assert sorted(together.tolist()) == [row for row in range(500) if row != 7]
    # Without the first record, all others stay in their shards.
    fewer = shards(features[1:], labels[1:], count=10, classes=CLASSES, ledger=ledger())
    assert [(rows + 1).tolist() for rows in fewer] == [[row for row in rows.tolist() if row > 0] for rows in dealt]
    # Where a record is replaced, its row decides.
    other = features.copy()
    other[3] += 1.0
    replace = ledger(neighbors="replace")
    rows = [
        [shard.tolist() for shard in shards(one, labels, count=10, classes=CLASSES, ledger=replace)]
        for one in (features, other)
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("users", [np.arange(500) % 50, [f"user {row % 50}" for row in range(500)]], ids=["ids", "names"])
def test_all_records_of_a_user_are_in_one_shard(users: Any) -> None:
    features, labels = records(500)
    paying = ledger(unit="user")
    dealt = shards(features, labels, count=8, classes=CLASSES, ledger=paying, users=users)
    homes = [{row % 50 for row in rows.tolist()} for rows in dealt]
    assert sum(map(len, homes)) == len(set().union(*homes)) == 50
    with pytest.raises(quell.SettingError, match="users"):
        shards(features, labels, count=8, classes=CLASSES, ledger=paying)
    nameless = [None, *list(users)[1:]]
    assert 0 not in np.concatenate(
        shards(features, labels, count=8, classes=CLASSES, ledger=paying, users=np.array(nameless, dtype=object))
        if isinstance(users, list)
        else [np.array([1])]
    )


@pytest.mark.parametrize("change", ["removed", "hostile", "relabelled"])
def test_one_record_changes_the_ballots_of_one_teacher(change: str) -> None:
    features, labels = records(600)
    if change == "removed":
        other = features[1:], labels[1:]
    elif change == "hostile":
        hostile = np.array([[np.nan, np.inf, -1e300]])
        other = np.concatenate([features, hostile]), np.append(labels, "left")
    else:
        other = np.concatenate([features, features[:1]]), np.append(labels, "nobody")
    ballots = []
    for one in ((features, labels), other):
        pate = Pate.train(learn, *one, teachers=12, classes=CLASSES, ledger=ledger(), seed=5)
        ballots.append(pate._ballots(QUESTIONS, len(QUESTIONS)))
    changed = (ballots[0] != ballots[1]).any(axis=1).sum()
    assert changed <= 1
    assert (ballots[0] == 65535).all(axis=1).sum() not in (0, 12)


@pytest.mark.parametrize("teacher", [Centroids(), learn], ids=["estimator", "function"])
def test_teachers_answer_public_questions(teacher: Any) -> None:
    features, labels = records()
    paying = ledger(1.6)
    pate = Pate.train(teacher, features, labels, teachers=200, classes=CLASSES, ledger=paying)
    assert paying.charges == []
    price = pate.quote(QUESTIONS, epsilon=1.5, answers=10)
    assert paying.charges == []
    found = pate.answer(QUESTIONS, epsilon=1.5, answers=10)
    assert paying.spent == price.after <= 1.5 * (1 + 1e-9) and len(paying.charges) == 1
    asked = len(found.answered)
    assert asked == 10 and found.epsilon <= 1.5 and found.delta == paying.delta
    assert sum(found.answers[place] == ANSWERS[place] for place in found.answered) >= 0.6 * asked
    assert found.labels.tolist() == [found.answers[place] for place in found.answered]
    assert found.to_dict()["question"] == found.answered.tolist()
    assert found.receipt.entry == paying.charges[0].entry and "answered" in repr(found)
    with pytest.raises(quell.BudgetError):
        pate.answer(QUESTIONS, epsilon=1.5, answers=10)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("aggregator", ["laplace", "gaussian", "confident"])
def test_the_ledger_is_charged_what_the_event_costs(aggregator: Any, neighbors: Any) -> None:
    paying = ledger(neighbors=neighbors)
    pate = Pate([lambda questions: ["left"] * len(questions)] * 250, classes=CLASSES, ledger=paying)
    found = pate.answer(QUESTIONS, epsilon=3.0, answers=10, aggregator=aggregator)
    assert len(found.answered) >= 8 and found.epsilon <= 3.0
    assert set(found.labels.tolist()) == {"left"}
    (charge,) = paying.charges
    upper = _native.epsilon(json.dumps(charge.event), neighbors, paying.delta, "pld", None)[2]
    assert paying.spent == pytest.approx(upper, rel=1e-3) == pytest.approx(found.epsilon, rel=1e-3)


def test_confident_and_stable_teachers_refuse_where_they_disagree() -> None:
    generator = np.random.default_rng(2)

    def teacher(questions: Any) -> list[str]:
        # All agree on the first ten questions, and half of them on the others.
        return ["left"] * 10 + generator.choice(CLASSES, len(questions) - 10).tolist()

    pate = Pate([teacher] * 2000, classes=CLASSES, ledger=ledger(None))
    confident = pate.answer(QUESTIONS, aggregator="confident", epsilon=5.0, answers=12, threshold=0.8)
    assert confident.answers[:10].count("left") >= 9 and len([q for q in confident.refused if q >= 10]) >= 1
    stable = pate.answer(QUESTIONS, aggregator="stable", epsilon=5.0, unstable=5)
    assert stable.answers[:10] == ["left"] * 10 and stable.refused == [10, 11, 12, 13, 14]
    assert len(stable.answered) == 10


def test_ballots_that_name_no_class_are_abstentions() -> None:
    def fails(questions: Any) -> Any:
        raise ValueError("the first record is 36")

    odd: list[Any] = [
        fails,
        lambda questions: ["left"],
        lambda questions: ["nobody"] * len(questions),
        lambda questions: [[]] * len(questions),
        lambda questions: None,
        lambda questions: np.array(["right"] * len(questions)),
        lambda questions: np.zeros((len(questions), 2)),
    ]
    pate = Pate(odd, classes=CLASSES, ledger=ledger())
    ballots = pate._ballots(QUESTIONS, len(QUESTIONS))
    assert (ballots[5] == 1).all() and (np.delete(ballots, 5, axis=0) == 65535).all()
    assert len(pate.answer(QUESTIONS, deviation=20.0, answers=2).answered) == 2


def test_a_mistake_in_learning_is_seen_on_made_up_records() -> None:
    features, labels = records(100)

    def mistaken(features: Any, labels: Any) -> Any:
        return features.no_such_method()

    with pytest.raises(AttributeError):
        Pate.train(mistaken, features, labels, teachers=5, classes=CLASSES, ledger=ledger())
    with pytest.raises(AttributeError):
        Pate.train(lambda f, t: lambda q: q.nothing, features, labels, teachers=5, classes=CLASSES, ledger=ledger())


def test_interrupts_are_no_abstentions() -> None:
    def interrupted(questions: Any) -> Any:
        raise KeyboardInterrupt

    paying = ledger()
    with pytest.raises(KeyboardInterrupt):
        Pate([interrupted] * 50, classes=CLASSES, ledger=paying).answer(QUESTIONS, epsilon=1)
    assert paying.charges == []


def test_teachers_leave_the_generators_as_they_were() -> None:
    features, labels = records(200)
    np.random.seed(3)
    random.seed(3)
    expected = np.random.random(), random.random()
    np.random.seed(3)
    random.seed(3)
    Pate.train(learn, features, labels, teachers=5, classes=CLASSES, ledger=ledger())
    assert (np.random.random(), random.random()) == expected


@pytest.mark.parametrize("aggregator", ["gaussian", "confident"])
def test_the_nearest_records_answer_public_questions(aggregator: Any) -> None:
    features, labels = records()
    paying = ledger(2)
    knn = PrivateKnn(features, labels, classes=CLASSES, ledger=paying, neighbors=200, rate=0.2)
    price = knn.quote(QUESTIONS, epsilon=1.5, answers=10, aggregator=aggregator)
    assert paying.charges == []
    found = knn.answer(QUESTIONS, epsilon=1.5, answers=10, aggregator=aggregator)
    assert paying.spent == price.after <= 1.5 * (1 + 1e-9) and len(found.answered) == 10
    assert sum(found.answers[place] == ANSWERS[place] for place in found.answered) >= 8
    (charge,) = paying.charges
    upper = _native.epsilon(json.dumps(charge.event), "add_remove", paying.delta, "pld", None)[2]
    assert paying.spent == pytest.approx(upper, rel=1e-3) == pytest.approx(found.epsilon, rel=1e-3)
    assert "nearest" in found.what and "nearest" in repr(knn)


def test_nearest_records_are_refused_for_users() -> None:
    features, labels = records(100)
    paying = ledger(unit="user")
    knn = PrivateKnn(features, labels, classes=CLASSES, ledger=paying, neighbors=5)
    with pytest.raises(quell.SettingError, match="unit"):
        knn.answer(QUESTIONS, epsilon=8, answers=1)
    assert paying.charges == []


def test_records_of_no_class_and_hostile_features_change_no_outcome() -> None:
    features, labels = records(1000)
    outcomes = []
    for row, label in [([0.0, 0.0, 0.0], "left"), ([np.nan, np.inf, 1e300], "left"), ([0.0, 0.0, 0.0], None)]:
        paying = ledger()
        names = np.append(labels.astype(object), label)
        knn = PrivateKnn(
            np.concatenate([features, [row]]), names, classes=CLASSES, ledger=paying, neighbors=50, rate=0.5
        )
        found = knn.answer(QUESTIONS[:2], epsilon=8.0, answers=2)
        outcomes.append((found.answers, found.epsilon, paying.spent))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"aggregator": "interactive"}, "aggregator"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": 1.0, "answers": 21}, "answers"),
        ({"epsilon": 0.01, "answers": 20, "deviation": 1.0}, "epsilon"),
        ({"epsilon": 1.0, "threshold": 2.0, "aggregator": "confident"}, "threshold"),
        ({"epsilon": 0.1, "aggregator": "stable"}, "epsilon"),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_a_teacher_votes(settings: dict[str, Any], words: str) -> None:
    def unasked(questions: Any) -> Any:
        raise AssertionError("no teacher votes")

    paying = ledger()
    with pytest.raises(quell.SettingError, match=words):
        Pate([unasked] * 50, classes=CLASSES, ledger=paying).answer(QUESTIONS, **settings)
    assert paying.charges == []


@pytest.mark.parametrize("classes", [["one"], ["a", "a"], ["a", None], []])
def test_classes_are_two_or_more_names(classes: list[Any]) -> None:
    with pytest.raises(quell.SettingError, match="class"):
        Pate([Centroids()] * 2, classes=classes, ledger=ledger())


def test_teachers_are_functions_or_estimators() -> None:
    with pytest.raises(quell.SettingError, match="int"):
        Pate([3, 4], classes=CLASSES, ledger=ledger())
    with pytest.raises(quell.SettingError, match="at least 2"):
        Pate([Centroids()], classes=CLASSES, ledger=ledger())


def test_features_that_do_not_fit_are_refused() -> None:
    features, labels = records(50)
    for wrong in (features[:, 0], features.astype(str), features.tolist(), features[1:]):
        with pytest.raises(quell.DataError):
            PrivateKnn(wrong, labels, classes=CLASSES, ledger=ledger())
    with pytest.raises(quell.DataError):
        PrivateKnn(features, labels, classes=CLASSES, ledger=ledger(), neighbors=5).answer(features[:, :2], epsilon=1)
    with pytest.raises(quell.DataError):
        shards(features, labels[1:], count=5, classes=CLASSES, ledger=ledger())


def test_pixels_and_images_are_features() -> None:
    pixels = (np.random.default_rng(0).integers(0, 100, (300, 4, 4)) + 100 * (np.arange(300) % 2)[:, None, None]).astype(
        np.uint8
    )
    labels = np.array(CLASSES)[np.arange(300) % 2]
    assert sum(map(len, shards(pixels, labels, count=7, classes=CLASSES, ledger=ledger()))) == 300
    knn = PrivateKnn(pixels, labels, classes=CLASSES, ledger=ledger(None), neighbors=40, rate=0.9)
    assert knn.answer(pixels[:2], epsilon=15.0, answers=2).answers == CLASSES


def test_a_teacher_changes_the_questions_of_no_other() -> None:
    questions = np.arange(6.0).reshape(3, 2)

    def changing(asked: Any) -> list[str]:
        asked += 100
        return ["left"] * len(asked)

    def honest(asked: Any) -> list[str]:
        return ["left" if row[0] < 50 else "right" for row in asked]

    pate = Pate([changing, *[honest] * 400], classes=["left", "right"], ledger=ledger())
    assert pate.answer(questions, epsilon=3).answers == ["left"] * 3
    assert questions[0, 0] == 0


def test_a_teacher_that_ends_the_program_abstains() -> None:
    def ending(asked: Any) -> list[str]:
        raise SystemExit(3)

    pate = Pate([ending, *[lambda asked: ["left"] * len(asked)] * 400], classes=["left", "right"], ledger=ledger())
    assert pate.answer(np.zeros((2, 1)), epsilon=3).answers == ["left"] * 2


def test_a_vote_has_a_price_and_its_ledger_stays() -> None:
    pate = Pate([lambda asked: ["left"] * len(asked)] * 100, classes=["left", "right"], ledger=ledger())
    with pytest.raises(quell.SettingError, match="no price"):
        pate.answer(np.zeros((2, 1)))
    with pytest.raises(AttributeError):
        pate.ledger = ledger()  # type: ignore[misc]
