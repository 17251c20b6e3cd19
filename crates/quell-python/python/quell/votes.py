"""Labels for public questions by private votes: teachers on disjoint shards, or the nearest records."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import html
import json
import math
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _native
from .data import Table, array, numbers
from .errors import DataError, SettingError
from .inputs import checked_classes, codes_of, object_column, to_json, user_texts
from .ledgers import Ledger, author
from .receipts import Receipt
from .statistics import Price

__all__ = ["Aggregator", "Labels", "Pate", "PrivateKnn", "shards"]

Aggregator = Literal["laplace", "gaussian", "confident", "stable"]
"""How votes become an answer.

`laplace` and `gaussian` answer with the class that has most votes after noise. `confident` does so where enough
voters agree. `stable` answers without noise, where no few ballots could change the winner.
"""
Learn = Callable[[npt.NDArray[Any], npt.NDArray[Any]], Any]

# A ballot for no class.
_ABSTAINS = 65535


@dataclasses.dataclass(frozen=True, repr=False)
class Labels:
    """Released answers to public questions. A student may be trained on them at no cost."""

    answers: list[Any]
    """The class of each question; `None` where there is no answer."""
    refused: list[int]
    """The questions that were asked and refused. Others without an answer were not paid for."""
    epsilon: float
    """ε of all answers, whatever the votes were."""
    delta: float
    """δ at which ε holds."""
    what: str
    """The mechanism, in words."""
    receipt: Receipt
    """The line of the ledger that paid."""

    @property
    def answered(self) -> npt.NDArray[np.int64]:
        """The places of the questions that have an answer."""
        return np.array([place for place, answer in enumerate(self.answers) if answer is not None], dtype=np.int64)

    @property
    def labels(self) -> npt.NDArray[Any]:
        """The classes of the questions that have an answer, in their order."""
        return np.array([answer for answer in self.answers if answer is not None])

    def to_dict(self) -> dict[str, list[Any]]:
        """The answered questions as columns, which `pandas.DataFrame` and `polars.DataFrame` take."""
        places = self.answered.tolist()
        return {"question": places, "answer": [self.answers[place] for place in places]}

    def __len__(self) -> int:
        return len(self.answers)

    def __repr__(self) -> str:
        return (
            f"<quell.Labels: {len(self.answered)} of {len(self.answers)} questions are answered, "
            f"{len(self.refused)} refused, ε ≤ {self.epsilon:.4g} at δ = {self.delta:g}>"
        )

    def _repr_html_(self) -> str:
        return f"<div>{html.escape(repr(self)[1:-1])}</div>"


def shards(
    features: Any, labels: Any, *, count: int, classes: Sequence[Any], ledger: Ledger, users: Any = None
) -> list[npt.NDArray[np.int64]]:
    """The rows of each of `count` disjoint shards of private records.

    If records are added and removed, the shard of a record depends on that record alone, or on its user. If they are
    replaced, it depends on the row. So one record, or one user, is in one shard. Records without one of the classes, or without a user, are in no shard. The rows are private.
    """
    view = _features(features)
    codes = codes_of(labels, classes)
    named = user_texts(users)
    owners = None if named is None else Table({"user": object_column(named)})._native
    of = _native.shards(ledger._native, view, codes, len(classes), owners, count)
    return [np.flatnonzero(of == shard) for shard in range(count)]


class Pate:
    """Private aggregation of teacher ensembles: teachers vote, and noisy winners are released.

    A teacher is a function from features to labels, or an object with `predict`. Use `Pate.train` to train teachers
    on shards that Quell makes. To bring teachers of your own, give a list of them. Then you promise: one unit of the
    ledger (a record, or a user) influences one teacher only, and if a record replaces another, both influence the
    same teacher. `quell.votes.shards` divides records so.

    A teacher that fails, or names no class, abstains: an error would tell something about its records.

    >>> from quell import Ledger
    >>> ledger = Ledger.in_memory("patients", epsilon=2, delta=1e-5)
    >>> teachers = [lambda questions: ["sick" if q > 0 else "well" for q in questions]] * 200
    >>> pate = Pate(teachers, classes=["well", "sick"], ledger=ledger)
    >>> pate.answer(np.array([-1.0, 1.0]), epsilon=1).answers
    ['well', 'sick']
    """

    __slots__ = ("_classes", "_ledger", "_seeds", "_teachers")

    def __init__(self, teachers: Sequence[Any], *, classes: Sequence[Any], ledger: Ledger) -> None:
        self._classes = checked_classes(classes)
        for teacher in teachers:
            if teacher is not None and not (callable(teacher) or hasattr(teacher, "predict")):
                raise SettingError(
                    f"a teacher is of the type {type(teacher).__name__}, expected a function or an object with predict"
                )
        if len(teachers) < 2:
            raise SettingError(f"there are {len(teachers)} teachers, expected at least 2")
        self._teachers, self._ledger, self._seeds = list(teachers), ledger, 0

    @property
    def ledger(self) -> Ledger:
        """The ledger that pays. Teachers were made for its unit and its neighbours, so it stays the same."""
        return self._ledger

    @classmethod
    def train(
        cls,
        learn: Any,
        features: Any,
        labels: Any,
        *,
        teachers: int,
        classes: Sequence[Any],
        ledger: Ledger,
        users: Any = None,
        seed: int = 0,
    ) -> Pate:
        """Trains one teacher on each of `teachers` disjoint shards of the private records. Nothing is charged.

        `learn` is an estimator with `fit` and `predict`, which is copied for each teacher, or a function that takes
        features and labels and returns a teacher. It may depend on nothing else that is private. It is first tried
        on made-up records, so that an error in it is seen; an error in a shard is an abstention. Each teacher starts
        from random numbers of its own, so that it depends on no other shard.

        `users` names the user of each record: all records of a user are in one shard.
        """
        view = _features(features)
        known = checked_classes(classes)
        codes = codes_of(labels, known)
        rows = shards(view, labels, count=teachers, classes=known, ledger=ledger, users=users)
        # The type of labels follows from the classes, which are public.
        names = np.asarray(known)
        made_up = np.random.default_rng(seed).standard_normal((max(4 * len(known), 16), *view.shape[1:]))
        trial = (100 * np.abs(made_up) if view.dtype.kind in "bu" else made_up).astype(view.dtype)
        with _alone(seed):
            teacher = _learned(learn, trial, names[np.arange(len(trial)) % len(known)])
            _predict(teacher, trial)
        trained: list[Any] = []
        for shard, members in enumerate(rows):
            if len(members) == 0:
                trained.append(None)
                continue
            try:
                with _alone(seed + shard + 1):
                    trained.append(_learned(learn, view[members], names[codes[members]]))
            except KeyboardInterrupt:
                raise
            except BaseException:
                trained.append(None)
        pate = cls(trained, classes=known, ledger=ledger)
        pate._seeds = seed
        return pate

    def answer(
        self,
        questions: Any,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        aggregator: Aggregator = "gaussian",
        answers: int | None = None,
        deviation: float | None = None,
        threshold: float | None = None,
        screening_deviation: float | None = None,
        unstable: int | None = None,
    ) -> Labels:
        """Pays for answers, lets the teachers vote on public questions, and releases the noisy winners.

        Give ε, and the noise follows from the number of `answers`, or their number from the noise (`deviation`, in
        ballots). With ε alone, the noise is a sixth of the ballots, and as many answers are bought as fit. Answers are
        bought in rounds, so there may be a few more than `answers`. ε holds whatever the votes are. δ is that of the ledger if it is not given. `threshold` is the share of ballots at which
        `confident` answers. `unstable` is the number of unstable questions that `stable` pays for.
        """
        recipe = _recipe(epsilon, delta, aggregator, answers, deviation, threshold, screening_deviation, unstable)
        count = _length(questions)
        # All settings are checked before the teachers vote.
        self._ask(np.full((len(self._teachers), count), _ABSTAINS, dtype=np.uint16), recipe, dry_run=True)
        return _labels(self._ask(self._ballots(questions, count), recipe, dry_run=False), self._classes, count)

    def quote(
        self,
        questions: Any,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        aggregator: Aggregator = "gaussian",
        answers: int | None = None,
        deviation: float | None = None,
        threshold: float | None = None,
        screening_deviation: float | None = None,
        unstable: int | None = None,
    ) -> Price:
        """What `answer` would cost. Nothing is charged, and no teacher votes."""
        recipe = _recipe(epsilon, delta, aggregator, answers, deviation, threshold, screening_deviation, unstable)
        empty = np.full((len(self._teachers), _length(questions)), _ABSTAINS, dtype=np.uint16)
        return _price(self._ask(empty, recipe, dry_run=True))

    def _ask(self, ballots: npt.NDArray[np.uint16], recipe: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
        settings = _settings(recipe, f"answers by votes of {len(self._teachers)} teachers", dry_run=dry_run)
        text = _native.ask_teachers(self.ledger._native, ballots, len(self._classes), settings)
        found: dict[str, Any] = json.loads(text)
        return found

    def _ballots(self, questions: Any, count: int) -> npt.NDArray[np.uint16]:
        """A row of ballots for each teacher, who votes with random numbers of its own."""
        ballots = np.full((len(self._teachers), count), _ABSTAINS, dtype=np.uint16)
        for number, teacher in enumerate(self._teachers):
            if teacher is None:
                continue
            try:
                with _alone(self._seeds + number + 1):
                    # A copy: a teacher that changes the questions would tell the next one about its records.
                    named = _predict(teacher, copy.deepcopy(questions))
                    codes = codes_of(named, self._classes)
            except KeyboardInterrupt:
                raise
            except BaseException:
                # Also what ends a program, such as SystemExit: whether a teacher raises it is private.
                continue
            if codes.shape == (count,):
                ballots[number] = np.where(codes < len(self._classes), codes, _ABSTAINS)
        return ballots

    def __repr__(self) -> str:
        return f"<quell.Pate of {len(self._teachers)} teachers for {len(self._classes)} classes, paid by {self.ledger!r}>"


class PrivateKnn:
    """Private nearest neighbours: the records nearest to a question vote, within a fresh random sample.

    `neighbors` records vote on each question. A record is in a sample with probability `rate`, and a smaller rate
    makes answers cheaper. Distances are Euclidean, so features should have similar scales, from public knowledge. The
    ledger must protect records, not users: several records of one user could vote at once.

    >>> from quell import Ledger
    >>> ledger = Ledger.in_memory("patients", epsilon=2, delta=1e-5)
    >>> features = np.repeat([[0.0], [1.0]], 2000, axis=0)
    >>> knn = PrivateKnn(features, np.repeat(["well", "sick"], 2000), classes=["well", "sick"], ledger=ledger)
    >>> knn.answer(np.array([[0.1], [0.9]]), epsilon=1).answers
    ['well', 'sick']
    """

    __slots__ = ("_classes", "_native", "_neighbors", "_rate", "ledger")

    ledger: Ledger
    """The ledger that pays."""

    def __init__(
        self,
        features: Any,
        labels: Any,
        *,
        classes: Sequence[Any],
        ledger: Ledger,
        neighbors: int = 300,
        rate: float = 0.2,
    ) -> None:
        self._classes = checked_classes(classes)
        self._native = _native.Nearest(_matrix(features), codes_of(labels, self._classes), len(self._classes))
        self.ledger, self._neighbors, self._rate = ledger, neighbors, rate

    def answer(
        self,
        questions: Any,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        aggregator: Literal["gaussian", "confident"] = "gaussian",
        answers: int | None = None,
        deviation: float | None = None,
        threshold: float | None = None,
        screening_deviation: float | None = None,
    ) -> Labels:
        """Pays for answers, lets the nearest records vote on public questions, and releases the noisy winners.

        Give ε, and the noise follows from the number of `answers`, or their number from the noise (`deviation`, in
        ballots). With ε alone, the noise is a sixth of the ballots, and as many answers are bought as fit. Answers are
        bought in rounds, so there may be a few more than `answers`. ε holds whatever the votes are. δ is that of the ledger if it is not given.
        """
        recipe = _recipe(epsilon, delta, aggregator, answers, deviation, threshold, screening_deviation, None)
        matrix = _matrix(questions)
        return _labels(self._ask(matrix, recipe, dry_run=False), self._classes, len(matrix))

    def quote(
        self,
        questions: Any,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        aggregator: Literal["gaussian", "confident"] = "gaussian",
        answers: int | None = None,
        deviation: float | None = None,
        threshold: float | None = None,
        screening_deviation: float | None = None,
    ) -> Price:
        """What `answer` would cost. Nothing is charged."""
        recipe = _recipe(epsilon, delta, aggregator, answers, deviation, threshold, screening_deviation, None)
        return _price(self._ask(_matrix(questions), recipe, dry_run=True))

    def _ask(self, questions: npt.NDArray[Any], recipe: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
        settings = _settings(recipe, "answers by votes of the nearest records", dry_run=dry_run)
        text = self._native.ask(self.ledger._native, questions, self._neighbors, self._rate, settings)
        found: dict[str, Any] = json.loads(text)
        return found

    def __repr__(self) -> str:
        return (
            f"<quell.PrivateKnn: the {self._neighbors} nearest in samples at rate {self._rate:g} vote for "
            f"{len(self._classes)} classes, paid by {self.ledger!r}>"
        )


def _recipe(
    epsilon: float | None,
    delta: float | None,
    aggregator: str,
    answers: int | None,
    deviation: float | None,
    threshold: float | None,
    screening_deviation: float | None,
    unstable: int | None,
) -> dict[str, Any]:
    if aggregator not in ("laplace", "gaussian", "confident", "stable"):
        raise SettingError(
            f"the aggregator is {aggregator!r}, expected 'laplace', 'gaussian', 'confident' or 'stable'"
        )
    if epsilon is None and (answers is None or deviation is None):
        raise SettingError("no price is given", "add epsilon=..., or both answers=... and deviation=...")
    given = {
        "aggregator": aggregator,
        "epsilon": epsilon,
        "delta": delta,
        "answers": answers,
        "deviation": deviation,
        "threshold": threshold,
        "screening_deviation": screening_deviation,
        "unstable": unstable,
    }
    return {name: value for name, value in given.items() if value is not None}


def _settings(recipe: dict[str, Any], release: str, *, dry_run: bool) -> str:
    note = {"by": author(), "file": None, "release": release, "condition": None}
    return to_json({"votes": recipe, "note": note, "dry_run": dry_run})


def _labels(found: dict[str, Any], classes: list[Any], count: int) -> Labels:
    answers: list[Any] = [None] * count
    refused = []
    for entry in found["entries"]:
        if entry["answer"] is None:
            refused.append(int(entry["question"]))
        else:
            answers[entry["question"]] = classes[entry["answer"]]
    epsilon = float(found["epsilon"]["upper"])
    return Labels(answers, refused, epsilon, float(found["delta"]), found["what"], Receipt.of(found["receipt"]))


def _price(found: dict[str, Any]) -> Price:
    infinite = float("inf")
    before, after = (infinite if found[name] is None else float(found[name]) for name in ("before", "after"))
    return Price(found["what"], before, after)


def _features(features: Any) -> npt.NDArray[Any]:
    """Features as an array of numbers that the native module takes, one row for each record."""
    view = numbers(features)
    if view.ndim < 2:
        raise DataError(
            f"the features have {view.ndim} dimensions, expected a row of features for each record",
            "add a dimension: features.reshape(-1, 1)",
        )
    return view if view.dtype in (np.float32, np.float64, np.uint8) else array(view)


def _matrix(features: Any) -> npt.NDArray[Any]:
    view = _features(features)
    return view.reshape(len(view), math.prod(view.shape[1:]))


def _length(questions: Any) -> int:
    shape = getattr(questions, "shape", None)
    return int(shape[0]) if shape is not None and len(shape) > 0 else len(questions)


def _learned(learn: Any, features: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Any:
    if hasattr(learn, "fit"):
        estimator = copy.deepcopy(learn)
        fitted = estimator.fit(features, labels)
        return estimator if fitted is None else fitted
    return learn(features, labels)


def _predict(teacher: Any, questions: Any) -> Any:
    return teacher.predict(questions) if hasattr(teacher, "predict") else teacher(questions)


@contextlib.contextmanager
def _alone(seed: int) -> Iterator[None]:
    """Gives a teacher random numbers of its own, and keeps its warnings to itself.

    With a shared generator, the number of draws of one teacher would change the next one: then one record would
    influence more than one ballot. A warning would tell something about the records of a shard.
    """
    torch = sys.modules.get("torch")
    states = random.getstate(), np.random.get_state(), None if torch is None else torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if torch is not None:
        torch.manual_seed(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        if torch is not None:
            torch.set_rng_state(states[2])
