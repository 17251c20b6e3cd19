"""Mechanisms on values in memory: one value, or one row of values, for each record.

Whoever calls them states no sensitivity: it follows from the bounds, or from one ballot for each record. A number
that you computed yourself has an unknown sensitivity, so there is no mechanism for it here.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native
from .data import numbers
from .errors import DataError, SettingError
from .inputs import checked_classes, codes_of, to_json
from .ledgers import Ledger, author
from .receipts import Receipt
from .statistics import Answer, Noise, Private, Question

__all__ = ["Choice", "Responses", "choose", "count", "mean", "noisy_max", "quantile", "randomized_response", "sum"]


@dataclasses.dataclass(frozen=True)
class Choice:
    """A candidate that was chosen, and the receipt of the charge."""

    value: Any
    """The candidate."""
    epsilon: float
    """ε of the choice."""
    receipt: Receipt
    """The line of the ledger that paid."""


@dataclasses.dataclass(frozen=True)
class Responses:
    """Randomized responses: one answer for each record, true or random."""

    answers: list[Any]
    """The answer of each record."""
    epsilon: float
    """ε of the answers."""
    receipt: Receipt
    """The line of the ledger that paid."""


def count(
    truths: Any, *, epsilon: float, ledger: Ledger, noise: Noise = "laplace", one_record_per_user: bool = False
) -> Answer:
    """The number of records whose truth is true, after noise.

    >>> ledger = Ledger.in_memory("ages", epsilon=1, delta=1e-6)
    >>> abs(count(np.arange(1000) >= 400, epsilon=0.5, ledger=ledger).value - 600) < 100
    True
    """
    values: npt.NDArray[Any] = np.ma.filled(truths, False) if isinstance(truths, np.ndarray) else numbers(truths)
    if values.dtype != np.bool_:
        raise DataError(
            f"the truths have the type {values.dtype}, expected one truth for each record", "compare first: x >= 65"
        )
    question = Question("count", where="value = 'true'")
    return _ask(values, question, epsilon, ledger, noise, one_record_per_user)


def sum(
    values: Any,
    *,
    bounds: Sequence[float],
    epsilon: float,
    ledger: Ledger,
    noise: Noise = "laplace",
    one_record_per_user: bool = False,
) -> Answer:
    """The sum of one number for each record, clamped to the bounds, after noise."""
    return _ask(values, Question("sum", "value", bounds=bounds), epsilon, ledger, noise, one_record_per_user)


def mean(
    values: Any,
    *,
    bounds: Sequence[float],
    epsilon: float,
    ledger: Ledger,
    noise: Noise = "laplace",
    one_record_per_user: bool = False,
) -> Answer:
    """The mean of one number for each record, clamped to the bounds, after noise."""
    return _ask(values, Question("mean", "value", bounds=bounds), epsilon, ledger, noise, one_record_per_user)


def quantile(
    values: Any,
    quantile: float | Sequence[float],
    *,
    bounds: Sequence[float],
    epsilon: float,
    ledger: Ledger,
    one_record_per_user: bool = False,
) -> Answer:
    """A quantile of one number for each record. The error is a number of records."""
    question = Question("quantile", "value", bounds=bounds, quantile=quantile)
    return _ask(values, question, epsilon, ledger, "laplace", one_record_per_user)


def _ask(
    values: Any, question: Question, epsilon: float, ledger: Ledger, noise: Noise, one_record_per_user: bool
) -> Answer:
    people = Private({"value": values}, ledger=ledger, one_record_per_user=one_record_per_user)
    answer: Answer = people.ask([question], epsilon=epsilon, noise=noise)[0]
    return answer


def noisy_max(
    ballots: Any, candidates: Sequence[Any], *, epsilon: float, ledger: Ledger, one_record_per_user: bool = False
) -> Choice:
    """The candidate with most ballots, after noise. Each record has one ballot; others than candidates are none.

    >>> ledger = Ledger.in_memory("ballots", epsilon=1, delta=1e-6)
    >>> noisy_max(["tea"] * 300 + ["coffee"] * 100, ["tea", "coffee"], epsilon=0.5, ledger=ledger).value
    'tea'
    """
    known = checked_classes(candidates)
    settings = _settings(epsilon, f"the candidate with most ballots of {len(known)}", one_record_per_user)
    place, receipt = _native.noisy_max(ledger._native, codes_of(ballots, known), len(known), settings)
    return Choice(known[place], epsilon, Receipt.of(json.loads(receipt)))


def choose(
    scores: Any,
    candidates: Sequence[Any],
    *,
    bounds: Sequence[float],
    epsilon: float,
    ledger: Ledger,
    permute_and_flip: bool = False,
    one_record_per_user: bool = False,
) -> Choice:
    """The candidate with the highest total score, by the exponential mechanism.

    `scores` has a row for each record and a column for each candidate. Every score is clamped to the bounds, so a
    record moves no total by more than they say. `permute_and_flip` chooses better, and composes less well.

    >>> ledger = Ledger.in_memory("scores", epsilon=1, delta=1e-6)
    >>> scores = np.tile([0.1, 0.9, 0.5], (1000, 1))
    >>> choose(scores, ["a", "b", "c"], bounds=(0, 1), epsilon=0.5, ledger=ledger).value
    'b'
    """
    known = checked_classes(candidates)
    with np.errstate(all="ignore"):
        matrix: npt.NDArray[np.float64] = np.require(numbers(scores), dtype=np.float64, requirements=["A"])
    if matrix.ndim != 2 or matrix.shape[1] != len(known):
        raise DataError(
            f"the scores have the wrong shape, expected a row for each record and {len(known)} columns",
            "give one column of scores for each candidate",
        )
    if len(bounds) != 2:
        raise SettingError("the bounds are not two numbers, expected the range of a score", "add bounds=(0, 1)")
    settings = _settings(epsilon, f"the best of {len(known)} candidates by their scores", one_record_per_user)
    range_ = (float(bounds[0]), float(bounds[1]))
    place, receipt = _native.choose(ledger._native, matrix, range_, permute_and_flip, settings)
    return Choice(known[place], epsilon, Receipt.of(json.loads(receipt)))


def randomized_response(
    answers: Any, choices: Sequence[Any], *, epsilon: float, ledger: Ledger, one_record_per_user: bool = False
) -> Responses:
    """One answer for each record, which is sometimes replaced by a random one.

    The number of records is released, too, so the ledger must protect against replacing a record. An answer that is
    none of the choices is random.

    >>> ledger = Ledger.in_memory("survey", epsilon=2, delta=1e-6, neighbors="replace")
    >>> responses = randomized_response(["yes"] * 5000, ["yes", "no"], epsilon=1, ledger=ledger)
    >>> 0.6 < responses.answers.count("yes") / 5000 < 0.8
    True
    """
    known = checked_classes(choices)
    settings = _settings(epsilon, f"randomized responses of {len(known)} choices", one_record_per_user)
    places, receipt = _native.randomized_response(ledger._native, codes_of(answers, known), len(known), settings)
    return Responses([known[place] for place in places], epsilon, Receipt.of(json.loads(receipt)))


def _settings(epsilon: float, release: str, one_record_per_user: bool) -> str:
    note = {"by": author(), "file": None, "release": release, "condition": None}
    return to_json({"epsilon": epsilon, "one_record_per_user": one_record_per_user, "note": note})
