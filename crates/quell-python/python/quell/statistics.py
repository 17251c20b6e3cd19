"""Statistics of a table: counts, sums, means, histograms and quantiles, charged to the ledger of the table.

The words are those of the command `quell query`. Columns, bounds, keys and conditions are public: do not derive them
from the records.
"""

from __future__ import annotations

import dataclasses
import html
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from . import _native
from .data import Table
from .errors import DataError, SettingError
from .inputs import to_json
from .ledgers import Ledger, author
from .receipts import Receipt
from .schemas import AnySchema

__all__ = ["Answer", "Answers", "Noise", "Price", "Private", "Question", "Released", "Watch"]

Noise = Literal["laplace", "gaussian"]
"""The noise of counts and sums: Laplace noise needs no δ, and Gaussian noise is cheaper over many answers."""
ErrorUnit = Literal["value", "records", "secret"]
"""What an error counts: the unit of the answer, or records. The error of a smooth median is a secret."""

_NUMBERS = ("sum", "mean", "variance", "quantile", "median", "smooth_median", "range")
_STATISTICS = ("count", "reaches", "histogram", *_NUMBERS)


@dataclasses.dataclass(frozen=True)
class Question:
    """One question about a table. All of it is public.

    The fields are those of a `[[question]]` in the plan of `quell query`.

    >>> Question("mean", column="age", bounds=(0, 100)).words
    'mean of age'
    """

    statistic: str
    """`count`, `reaches`, `sum`, `mean`, `variance`, `histogram`, `quantile`, `median`, `smooth_median` or `range`."""
    column: str | None = None
    """The column of the statistic."""
    where: str | None = None
    """A condition on the records, such as `age >= 65 and sex = 'Female'`."""
    bounds: Sequence[float] | None = None
    """Two numbers: every number is clamped to the range between them."""
    keys: Sequence[str] | None = None
    """The keys of a histogram. Without them, the keys that many records have are shown, at the cost of a δ."""
    bins: int | None = None
    """The number of equal bins of a histogram of numbers, between the bounds."""
    edges: Sequence[float] | None = None
    """The edges of the bins of a histogram of numbers. A number beyond them is left out."""
    group_by: str | Sequence[str] | None = None
    """One or two columns that divide the records."""
    groups: Sequence[str] | Sequence[Sequence[str]] | None = None
    """The keys of the groups; two lists for two columns."""
    group_bins: Sequence[float] | None = None
    """Groups of numbers: the lower bound, the upper bound, and how many equal bins."""
    group_edges: Sequence[float] | None = None
    """Groups of numbers, between these edges."""
    parts: Sequence[str] | None = None
    """Conditions that divide the records. No record may satisfy two of them: this is proved, or refused."""
    quantile: float | Sequence[float] | None = None
    """Which quantiles: 0.5 is the median."""
    inside: float | None = None
    """The share of the records inside of a range; 0.95 if it is not given."""
    threshold: int | None = None
    """The number of records that a count must reach."""

    @classmethod
    def of(cls, question: Question | Mapping[str, Any]) -> Question:
        """A question from a dict, such as one of a plan file."""
        if isinstance(question, Question):
            return question
        names = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(question) - names)
        if unknown:
            raise SettingError(
                f"a question has {', '.join(map(repr, unknown))}, expected the names of a question",
                f"the names are {', '.join(sorted(names))}",
            )
        settings = dict(question)
        settings["statistic"] = str(settings.get("statistic", "")).replace("-", "_")
        return cls(**settings)

    @property
    def words(self) -> str:
        """The question in words, as the ledger keeps it."""
        words = self.statistic.replace("_", " ")
        if self.statistic == "quantile":
            words += " " + " and ".join(f"{quantile:g}" for quantile in _list(self.quantile, 0.5))
        if self.column is not None:
            words += f" of {self.column}"
        if self.group_by is not None:
            words += f" by {' and '.join(_texts(self.group_by))}"
        if self.parts is not None:
            words += f", in parts {' | '.join(self.parts)}"
        return words


@dataclasses.dataclass(frozen=True)
class Released:
    """A released number, with the error that the noise may have caused."""

    value: float
    """The number."""
    error: float | None
    """In nineteen of twenty cases the noise moves the number by no more than this; `None` if that is a secret."""
    unit: ErrorUnit
    """What the error counts."""

    @property
    def within(self) -> tuple[float, float] | None:
        """The interval that contains the number without noise in nineteen of twenty cases."""
        if self.unit != "value" or self.error is None:
            return None
        return self.value - self.error, self.value + self.error

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        if self.error is None:
            return f"{self.value:.6g} (the size of the error is private)"
        if self.unit == "records":
            return f"{self.value!r} ± {self.error:g} records"
        if self.value.is_integer() and self.error >= 1:
            return f"{self.value:.0f} ± {self.error:.0f}"
        places = int(min(max(1.0 - math.floor(math.log10(max(self.error, 1e-300))), 0), 17))
        # The stated error includes the rounding, and is rounded up.
        stated = self.error + 0.5 * 10.0**-places
        digits = 1 - math.floor(math.log10(stated))
        return f"{self.value:.{places}f} ± {math.ceil(stated * 10.0**digits) / 10.0**digits:.{max(digits, 0)}f}"


@dataclasses.dataclass(frozen=True)
class Price:
    """What a question would cost. Nothing was charged."""

    what: str
    """The mechanism, in words."""
    before: float
    """ε of all charges before the question."""
    after: float
    """ε of all charges with the question."""


@dataclasses.dataclass(frozen=True, repr=False)
class Answer:
    """The answer to one question, with its error and the receipt of the charge."""

    question: str
    """What was asked."""
    value: Any
    """The answer: a number, a truth, two ends of a range, or a dict with a number for each key, pair or quantile."""
    error: Any
    """The error of each number, in the form of the value; `None` for a truth."""
    releases: dict[Any, Released]
    """Each number with its error, by its key. The key of a single number is `None`."""
    epsilon: float
    """ε that was asked for: of all answers of the charge together."""
    receipt: Receipt
    """The line of the ledger that paid."""
    least: int | None = None
    """Where no key is shown: the noisy count from which a key would be shown."""

    @property
    def within(self) -> Any:
        """The interval of each number that holds in nineteen of twenty cases, in the form of the value."""
        return _formed(self.value, {key: one.within for key, one in self.releases.items()})

    @property
    def unit(self) -> ErrorUnit | None:
        """What the errors count; `None` for a truth."""
        return next((release.unit for release in self.releases.values()), None)

    def to_dict(self) -> dict[str, list[Any]]:
        """The answer as columns, which `pandas.DataFrame` and `polars.DataFrame` take.

        There is a row for each number. The columns are `key` (or `key` and `group`, or `quantile`, or `end`) where
        there are several numbers, `value`, and `error`.
        """
        if isinstance(self.value, bool):
            return {"value": [self.value]}
        columns: dict[str, list[Any]] = {}
        keys = list(self.releases)
        if keys and isinstance(keys[0], tuple):
            columns = {"key": [key[0] for key in keys], "group": [key[1] for key in keys]}
        elif isinstance(self.value, dict):
            columns = {"quantile" if keys and isinstance(keys[0], float) else "key": list(keys)}
        elif isinstance(self.value, tuple):
            columns = {"end": list(keys)}
        columns["value"] = [release.value for release in self.releases.values()]
        columns["error"] = [release.error for release in self.releases.values()]
        return columns

    def __float__(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise TypeError(f"the answer to {self.question!r} is not one number")
        return float(self.value)

    def __bool__(self) -> bool:
        if not isinstance(self.value, bool):
            raise TypeError(f"the answer to {self.question!r} is not a truth; compare its value")
        return self.value

    def __repr__(self) -> str:
        if isinstance(self.value, bool):
            return f"{self.question}: {'yes' if self.value else 'no'}"
        if None in self.releases:
            return f"{self.question}: {self.releases[None]!r}"
        if not self.releases:
            return f"{self.question}: no key is shown: none has a noisy count of {self.least} or more"
        rows = [(_shown(key), repr(release)) for key, release in self.releases.items()]
        width = max(len(name) for name, _ in rows)
        return f"{self.question}:\n" + "\n".join(f"  {name:<{width}}  {release}" for name, release in rows)

    def _repr_html_(self) -> str:
        question = html.escape(self.question)
        paid = f"ε = {self.epsilon:g}, line {self.receipt.entry} of the ledger {html.escape(self.receipt.dataset)}"
        if isinstance(self.value, bool) or None in self.releases or not self.releases:
            text = html.escape(repr(self).removeprefix(f"{self.question}: "))
            return f"<div><strong>{question}</strong>: {text} <small>({paid})</small></div>"
        rows = "".join(
            f"<tr><td>{html.escape(_shown(key))}</td><td>{html.escape(repr(release))}</td></tr>"
            for key, release in self.releases.items()
        )
        return f"<div><strong>{question}</strong><table><tbody>{rows}</tbody></table><small>{paid}</small></div>"


class Answers(Sequence[Answer]):
    """The answers to several questions that one charge paid for, by number or by the words of the question."""

    __slots__ = ("_answers", "epsilon", "receipt")

    epsilon: float
    """ε of all answers together."""
    receipt: Receipt
    """The line of the ledger that paid."""

    def __init__(self, answers: Sequence[Answer], epsilon: float, receipt: Receipt) -> None:
        self._answers, self.epsilon, self.receipt = list(answers), epsilon, receipt

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, str):
            for answer in self._answers:
                if answer.question == place:
                    return answer
            raise KeyError(place)
        return self._answers[place]

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._answers))

    def _repr_html_(self) -> str:
        return "".join(answer._repr_html_() for answer in self._answers)


class Private:
    """A table of private records that answers questions, each charged to a ledger.

    `data` is whatever `quell.Table` takes. `ε` is the cost of one answer, or of all answers of one `ask`. Every
    answer has an error that holds in nineteen of twenty cases.

    If the ledger protects users, say `max_per_user` and the column `user`: then the first records of each user are
    used, and the noise covers all of them. If every user has only one record, say `one_record_per_user=True`.

    >>> import numpy as np
    >>> from quell import Ledger
    >>> ledger = Ledger.in_memory("people", epsilon=2, delta=1e-6)
    >>> people = Private({"age": np.array([36.0, 41.0, 17.0, 80.0] * 500)}, ledger=ledger)
    >>> answer = people.mean("age", bounds=(0, 100), epsilon=0.5)
    >>> abs(answer.value - 43.5) < 5
    True
    >>> round(ledger.spent, 3)
    0.5
    """

    __slots__ = ("_max_per_user", "_one_record_per_user", "_user", "ledger", "table")

    ledger: Ledger
    """The ledger that pays."""
    table: Table
    """The records."""

    def __init__(
        self,
        data: Any,
        *,
        ledger: Ledger,
        schema: AnySchema | None = None,
        user: str | None = None,
        max_per_user: int | None = None,
        one_record_per_user: bool = False,
    ) -> None:
        self.table = Table(data, schema=schema) if schema is not None or not isinstance(data, Table) else data
        self.ledger = ledger
        declared = self.table.schema or {}
        self._user = None if max_per_user is None else user or declared.get("user")
        if max_per_user is not None and self._user is None:
            raise SettingError(
                "no column of users is given, expected the column that says whose record it is",
                "add user='COLUMN'",
            )
        if user is not None and max_per_user is None:
            raise SettingError(
                "a column of users is given without max_per_user, expected the most records of each user",
                "add max_per_user=N, or leave user out",
            )
        if max_per_user is not None and one_record_per_user:
            raise SettingError("max_per_user and one_record_per_user are both given, expected one of them")
        self._max_per_user, self._one_record_per_user = max_per_user, one_record_per_user

    def count(
        self,
        *,
        epsilon: float,
        where: str | None = None,
        group_by: str | Sequence[str] | None = None,
        groups: Sequence[str] | Sequence[Sequence[str]] | None = None,
        group_bins: Sequence[float] | None = None,
        group_edges: Sequence[float] | None = None,
        parts: Sequence[str] | None = None,
        noise: Noise = "laplace",
        delta: float | None = None,
    ) -> Answer:
        """The number of records, of all of them or in each group.

        Without `groups`, the groups that many records are in are shown, at the cost of a δ.
        """
        question = Question(
            "count",
            where=where,
            group_by=group_by,
            groups=groups,
            group_bins=group_bins,
            group_edges=group_edges,
            parts=parts,
        )
        return self._one(question, epsilon, noise, delta)

    def reaches(
        self,
        threshold: int,
        *,
        epsilon: float,
        where: str | None = None,
        noise: Noise = "laplace",
        delta: float | None = None,
    ) -> Answer:
        """Whether there are at least `threshold` records, after noise. The answer is one bit."""
        return self._one(Question("reaches", threshold=threshold, where=where), epsilon, noise, delta)

    def sum(
        self,
        column: str,
        *,
        epsilon: float,
        bounds: Sequence[float] | None = None,
        where: str | None = None,
        group_by: str | Sequence[str] | None = None,
        groups: Sequence[str] | Sequence[Sequence[str]] | None = None,
        group_bins: Sequence[float] | None = None,
        group_edges: Sequence[float] | None = None,
        parts: Sequence[str] | None = None,
        noise: Noise = "laplace",
        delta: float | None = None,
    ) -> Answer:
        """The sum of a column, clamped to the bounds. Missing cells are left out."""
        question = Question(
            "sum",
            column,
            where,
            bounds,
            group_by=group_by,
            groups=groups,
            group_bins=group_bins,
            group_edges=group_edges,
            parts=parts,
        )
        return self._one(question, epsilon, noise, delta)

    def mean(
        self,
        column: str,
        *,
        epsilon: float,
        bounds: Sequence[float] | None = None,
        where: str | None = None,
        group_by: str | Sequence[str] | None = None,
        groups: Sequence[str] | Sequence[Sequence[str]] | None = None,
        group_bins: Sequence[float] | None = None,
        group_edges: Sequence[float] | None = None,
        parts: Sequence[str] | None = None,
        noise: Noise = "laplace",
        delta: float | None = None,
    ) -> Answer:
        """The mean of a column, clamped to the bounds. Missing cells are left out."""
        question = Question(
            "mean",
            column,
            where,
            bounds,
            group_by=group_by,
            groups=groups,
            group_bins=group_bins,
            group_edges=group_edges,
            parts=parts,
        )
        return self._one(question, epsilon, noise, delta)

    def variance(
        self,
        column: str,
        *,
        epsilon: float,
        bounds: Sequence[float] | None = None,
        where: str | None = None,
        noise: Noise = "laplace",
        delta: float | None = None,
    ) -> Answer:
        """The variance of a column, clamped to the bounds. The standard deviation is its square root."""
        return self._one(Question("variance", column, where, bounds), epsilon, noise, delta)

    def histogram(
        self,
        column: str,
        *,
        epsilon: float,
        keys: Sequence[str] | None = None,
        bins: int | None = None,
        edges: Sequence[float] | None = None,
        bounds: Sequence[float] | None = None,
        where: str | None = None,
        group_by: str | None = None,
        groups: Sequence[str] | None = None,
        group_bins: Sequence[float] | None = None,
        group_edges: Sequence[float] | None = None,
        parts: Sequence[str] | None = None,
        noise: Noise = "laplace",
        delta: float | None = None,
    ) -> Answer:
        """The number of records for each key of a column, or for each bin of numbers.

        Without `keys`, the keys that many records have are shown, at the cost of a δ.
        """
        question = Question(
            "histogram",
            column,
            where,
            bounds,
            keys,
            bins,
            edges,
            group_by,
            groups,
            group_bins,
            group_edges,
            parts,
        )
        return self._one(question, epsilon, noise, delta)

    def quantile(
        self,
        column: str,
        quantile: float | Sequence[float],
        *,
        epsilon: float,
        bounds: Sequence[float] | None = None,
        where: str | None = None,
        group_by: str | Sequence[str] | None = None,
        groups: Sequence[str] | Sequence[Sequence[str]] | None = None,
        group_bins: Sequence[float] | None = None,
        group_edges: Sequence[float] | None = None,
        parts: Sequence[str] | None = None,
    ) -> Answer:
        """One quantile of a column, or several. The error is a number of records.

        A larger quantile is never a smaller number. With groups, ask for one quantile.
        """
        question = Question(
            "quantile",
            column,
            where,
            bounds,
            group_by=group_by,
            groups=groups,
            group_bins=group_bins,
            group_edges=group_edges,
            parts=parts,
            quantile=quantile,
        )
        return self._one(question, epsilon, "laplace", None)

    def median(
        self,
        column: str,
        *,
        epsilon: float,
        bounds: Sequence[float] | None = None,
        where: str | None = None,
        group_by: str | Sequence[str] | None = None,
        groups: Sequence[str] | Sequence[Sequence[str]] | None = None,
        group_bins: Sequence[float] | None = None,
        group_edges: Sequence[float] | None = None,
        parts: Sequence[str] | None = None,
    ) -> Answer:
        """The median of a column. The error is a number of records."""
        question = Question(
            "median",
            column,
            where,
            bounds,
            group_by=group_by,
            groups=groups,
            group_bins=group_bins,
            group_edges=group_edges,
            parts=parts,
        )
        return self._one(question, epsilon, "laplace", None)

    def smooth_median(
        self,
        column: str,
        *,
        epsilon: float,
        bounds: Sequence[float] | None = None,
        where: str | None = None,
        delta: float | None = None,
    ) -> Answer:
        """The median of a column, with noise scaled by smooth sensitivity. Its error is a secret; it has a δ."""
        return self._one(Question("smooth_median", column, where, bounds), epsilon, "laplace", delta)

    def range(
        self,
        column: str,
        *,
        epsilon: float,
        bounds: Sequence[float] | None = None,
        inside: float = 0.95,
        where: str | None = None,
    ) -> Answer:
        """Two numbers between which the share `inside` of a column lies."""
        return self._one(Question("range", column, where, bounds, inside=inside), epsilon, "laplace", None)

    def ask(
        self,
        questions: Sequence[Question | Mapping[str, Any]],
        *,
        epsilon: float,
        noise: Noise = "laplace",
        delta: float | None = None,
    ) -> Answers:
        """Answers several questions in one charge: ε is what all of them cost together.

        With Laplace noise each question has an equal share of ε. With Gaussian noise each has more. A question is a
        `Question`, or a dict of the same names.

        >>> import numpy as np
        >>> from quell import Ledger
        >>> ledger = Ledger.in_memory("people", epsilon=2, delta=1e-6)
        >>> people = Private({"age": np.arange(1000) % 90}, ledger=ledger)
        >>> answers = people.ask([Question("count"), Question("mean", "age", bounds=(0, 90))], epsilon=1)
        >>> [answer.question for answer in answers], len(ledger.charges)
        (['count', 'mean of age'], 1)
        """
        return self._release([Question.of(question) for question in questions], epsilon, noise, delta)

    def quote(
        self,
        questions: Question | Mapping[str, Any] | Sequence[Question | Mapping[str, Any]],
        *,
        epsilon: float,
        noise: Noise = "laplace",
        delta: float | None = None,
    ) -> Price:
        """What questions would cost together. Nothing is charged."""
        listed = [questions] if isinstance(questions, (Question, Mapping)) else questions
        settings = self._settings([Question.of(question) for question in listed], epsilon, noise, delta, dry_run=True)
        released = json.loads(_native.ask(self.table._native, self.ledger._native, settings))
        return Price(released["what"], _finite(released["before"]), _finite(released["after"]))

    def watch(self, *, threshold: int, positives: int = 1, epsilon: float) -> Watch:
        """Pays for a sparse vector: which conditions at least `threshold` records satisfy, after noise.

        Any number of conditions may be asked about, each of them chosen after earlier answers, until `positives` of
        them reached the threshold. ε is the cost of all answers together.
        """
        note = self._note(f"counts that reach {threshold}")
        settings = {
            "threshold": threshold,
            "positives": positives,
            "epsilon": epsilon,
            "records": self._records(),
            "note": note,
        }
        native = _native.watch(self.table._native, self.ledger._native, to_json(settings))
        return Watch(native, epsilon)

    def __repr__(self) -> str:
        return f"<quell.Private {self.table!r}, paid by {self.ledger!r}>"

    def _one(self, question: Question, epsilon: float, noise: Noise, delta: float | None) -> Answer:
        return self._release([question], epsilon, noise, delta)[0]  # type: ignore[no-any-return]

    def _release(self, questions: list[Question], epsilon: float, noise: Noise, delta: float | None) -> Answers:
        settings = self._settings(questions, epsilon, noise, delta, dry_run=False)
        released = json.loads(_native.ask(self.table._native, self.ledger._native, settings))
        receipt = Receipt.of(released["receipt"])
        answers = [
            _answer(one["question"], one["answer"], least, epsilon, receipt)
            for one, least in zip(released["answers"], released["least"])
        ]
        return Answers(answers, epsilon, receipt)

    def _settings(
        self, questions: list[Question], epsilon: float, noise: Noise, delta: float | None, *, dry_run: bool
    ) -> str:
        if not questions:
            raise SettingError("there is no question, expected at least one", "add a quell.Question")
        if noise not in ("laplace", "gaussian"):
            raise SettingError(f"noise is {noise!r}, expected 'laplace' or 'gaussian'")
        apart = [one for question in questions for one in _apart(question)]
        conditions = [one.where for one in apart]
        several = len(apart) > 1
        words = [
            f"{one.words} where {one.where}" if several and one.where is not None else one.words for one in apart
        ]
        note = self._note("; ".join(words))
        if not several:
            note["condition"] = conditions[0]
        names = [_name(one) for one in apart]
        asked = [
            {"name": name, "where": one.where, "statistic": _statistic(one, self.table)}
            for name, one in zip(names, apart)
        ]
        settings = {
            "questions": asked,
            "epsilon": epsilon,
            "delta": delta,
            "noise": noise,
            "records": self._records(),
            "note": note,
            "dry_run": dry_run,
        }
        return to_json(settings)

    def _records(self) -> dict[str, Any]:
        return {
            "user": self._user,
            "max_per_user": self._max_per_user,
            "one_record_per_user": self._one_record_per_user,
        }

    def _note(self, release: str) -> dict[str, Any]:
        most = self._max_per_user
        if most is not None:
            one = "one record" if most == 1 else f"at most {most} records"
            release += f" of {one} of each user"
        return {"by": author(), "file": self.table.file, "release": release, "condition": None}


class Watch:
    """A charge that answers which conditions enough records satisfy: the sparse vector technique.

    >>> import numpy as np
    >>> from quell import Ledger
    >>> ledger = Ledger.in_memory("people", epsilon=1, delta=1e-6)
    >>> people = Private({"age": np.arange(20000) % 90}, ledger=ledger)
    >>> watch = people.watch(threshold=5000, positives=1, epsilon=0.5)
    >>> [watch.ask(where=f"age >= {age}") for age in (89, 80, 10, 0)]
    [False, False, True, None]
    """

    __slots__ = ("_native", "epsilon")

    epsilon: float
    """ε of all answers together."""

    def __init__(self, native: _native.Watch, epsilon: float) -> None:
        """Wraps a native watch. Use `Private.watch` instead."""
        self._native, self.epsilon = native, epsilon

    def ask(self, *, where: str | None = None) -> bool | None:
        """Whether enough records satisfy a condition, after noise; `None` once the answers are used up."""
        return self._native.ask(where)

    @property
    def receipt(self) -> Receipt:
        """The line of the ledger that paid."""
        return Receipt.of(json.loads(self._native.receipt))


def _finite(number: float | None) -> float:
    return math.inf if number is None else float(number)


def _shown(key: Any) -> str:
    """A key as it is printed. Keys come from records: control characters must not act on a terminal."""
    texts = key if isinstance(key, tuple) else (key,)
    return ", ".join(text if str(text).isprintable() else repr(text) for text in map(str, texts))


def _formed(value: Any, found: dict[Any, Any]) -> Any:
    """Numbers by their keys, in the form of the value of the answer."""
    if isinstance(value, bool):
        return None
    if isinstance(value, tuple):
        return tuple(found.values())
    return found if isinstance(value, dict) else found.get(None)


def _answer(
    question: str, answer: dict[str, Any], least: int | None, epsilon: float, receipt: Receipt
) -> Answer:
    """An answer of the native module."""
    ((kind, found),) = answer.items()
    releases: dict[Any, Released]
    if kind == "truth":
        return Answer(question, bool(found), None, {}, epsilon, receipt)
    if kind == "number":
        releases = {None: _released(found)}
        value: Any = releases[None].value
    elif kind == "ends":
        releases = {"from": _released(found[0]), "to": _released(found[1])}
        value = tuple(release.value for release in releases.values())
    else:
        releases = {tuple(key) if isinstance(key, list) else key: _released(one) for key, one in found}
        value = {key: release.value for key, release in releases.items()}
    error = _formed(value, {key: release.error for key, release in releases.items()})
    return Answer(question, value, error, releases, epsilon, receipt, least)


def _released(found: dict[str, Any]) -> Released:
    within = found["within"]
    if within == "secret":
        return Released(float(found["value"]), None, "secret")
    ((unit, error),) = within.items()
    return Released(float(found["value"]), float(error), "value" if unit == "value" else "records")


def _list(value: Any, default: Any) -> list[Any]:
    if value is None:
        return [default]
    return list(value) if isinstance(value, Sequence) or hasattr(value, "tolist") and value.ndim else [value]


def _texts(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else [str(one) for one in value]


def _apart(question: Question) -> list[Question]:
    """One question for each quantile, where there are groups: each group has one quantile."""
    divided = question.group_by is not None or question.parts is not None
    if question.statistic == "quantile" and divided:
        return [dataclasses.replace(question, quantile=one) for one in _list(question.quantile, 0.5)]
    return [question]


def _name(question: Question) -> str:
    where = "" if question.where is None else f" where {question.where}"
    return question.words + where


def _statistic(question: Question, table: Table) -> dict[str, Any]:
    """The statistic as the native module reads it. What is not given is taken from the schema."""
    name = question.statistic
    if name in ("std", "stddev", "stdev", "standard_deviation"):
        raise SettingError(
            "a standard deviation is not among the statistics, expected its square, the variance",
            "ask for the variance, and take its square root",
        )
    if name not in _STATISTICS:
        raise SettingError(f"the statistic is {name!r}, expected one of {', '.join(_STATISTICS)}")
    asked = _declared(question, table)
    if name != "histogram" and (asked.bins is not None or asked.edges is not None):
        raise SettingError(
            "bins and edges are for a histogram, expected a histogram", "divide other statistics with group_bins"
        )
    if name == "histogram" and asked.bounds is not None and asked.bins is None:
        raise SettingError(
            "a histogram has bounds and no bins, expected a number of bins",
            "add bins=10, or leave bounds out to count keys",
        )
    by = _by(asked, table)
    if name in ("count", "histogram"):
        return _counts(asked, by, table)
    if asked.group_by is not None and by is None:
        raise _no_groups()
    if by and name not in ("sum", "mean", "quantile", "median"):
        raise SettingError(
            "this statistic has no groups, expected a count, sum, mean, median, quantile or histogram",
            "leave group_by out, or ask about one group with where",
        )
    if name == "reaches":
        if asked.threshold is None:
            raise SettingError("no threshold is given, expected a number of records", "add threshold=N")
        return {"reaches": {"threshold": asked.threshold}}
    common: dict[str, Any] = {"column": _column(asked), "bounds": _bounds(asked)}
    if name in ("sum", "mean"):
        return {name: {**common, "by": by or []}}
    if name in ("quantile", "median"):
        quantiles = _list(asked.quantile, 0.5) if name == "quantile" else [0.5]
        if not quantiles:
            raise SettingError("the list of quantiles is empty, expected at least one", "add quantile=[0.25, 0.5, 0.75]")
        if len(quantiles) == 1:
            return {"quantile": {**common, "quantile": quantiles[0], "by": by or []}}
        return {"quantiles": {**common, "quantiles": quantiles}}
    if name == "range":
        return {"range": {**common, "inside": 0.95 if asked.inside is None else asked.inside}}
    return {name: common}


def _counts(asked: Question, by: list[Any] | None, table: Table) -> dict[str, Any]:
    """A count or a histogram, of all records or in groups."""
    if asked.statistic == "count":
        if by is None and asked.group_by is not None:
            # The number of records in each group is a histogram of the groups.
            columns = _texts(asked.group_by)
            return {"histogram": {"column": columns[0], "keys": None}}
        return {"count": {"by": by or []}}
    column = _column(asked)
    own: dict[str, Any] | None = None
    if asked.edges is not None:
        own = {"edges": {"column": column, "edges": list(asked.edges)}}
    elif asked.bins is not None:
        own = {"bins": {"column": column, "bounds": _bounds(asked), "bins": asked.bins}}
    elif asked.keys is not None:
        own = {"keys": {"column": column, "keys": _spelled(table, column, asked.keys)}}
    if by is None and asked.group_by is not None:
        if own is None and asked.parts is None:
            return {"pairs": {"columns": [column, _texts(asked.group_by)[0]]}}
        raise _no_groups()
    if not by:
        if own is not None and "keys" not in own:
            return {"count": {"by": [own]}}
        return {"histogram": {"column": column, "keys": None if own is None else own["keys"]["keys"]}}
    if len(by) > 1:
        raise SettingError(
            "a histogram is divided twice, expected one column of groups, or parts alone",
            "leave one out, or ask for a count",
        )
    if own is None:
        raise SettingError(
            "no keys are given, expected keys, because groups are given", "add keys or bins, or leave groups out"
        )
    return {"count": {"by": [own, *by]}}


def _by(asked: Question, table: Table) -> list[Any] | None:
    """How the records are divided; `None` if the groups are not known."""
    for name in ("groups", "keys"):
        if isinstance(getattr(asked, name, None), str):
            raise SettingError(f"{name} is a text, expected a list of keys", f"write {name}=[{getattr(asked, name)!r}]")
    parts = [] if asked.parts is None else [{"conditions": list(asked.parts)}]
    if asked.group_by is None:
        for name in ("groups", "group_bins", "group_edges"):
            if getattr(asked, name) is not None:
                raise SettingError(f"{name} is given without group_by, expected the column of the groups")
        return parts
    columns = _texts(asked.group_by)
    numbers = asked.group_edges is not None or asked.group_bins is not None
    if not 1 <= len(columns) <= 2:
        raise SettingError(
            f"group_by has {len(columns)} columns, expected one or two", "select the others with where"
        )
    if len(columns) == 2:
        lists = [] if asked.groups is None else list(asked.groups)
        if numbers or len(lists) != 2 or any(isinstance(keys, str) for keys in lists):
            raise SettingError(
                "two columns of groups have no two lists of groups, expected one list for each",
                "write group_by=['A', 'B'], groups=[['a', 'b'], ['c', 'd']]",
            )
        if parts:
            raise SettingError(
                "parts have two columns of groups, expected one column",
                "leave one column of group_by out, or write it into the parts",
            )
        return [
            {"keys": {"column": column, "keys": _spelled(table, column, keys)}} for column, keys in zip(columns, lists)
        ]
    (column,) = columns
    if asked.group_edges is not None:
        return [*parts, {"edges": {"column": column, "edges": list(asked.group_edges)}}]
    if asked.group_bins is not None:
        if len(asked.group_bins) != 3 or int(asked.group_bins[2]) != asked.group_bins[2]:
            raise SettingError(
                "the bins of groups are not three numbers, expected lower, upper and how many",
                "write group_bins=(0, 100, 10)",
            )
        lower, upper, bins = asked.group_bins
        return [*parts, {"bins": {"column": column, "bounds": [lower, upper], "bins": int(bins)}}]
    if asked.groups is None:
        if parts:
            raise _no_groups()
        return None
    keys = [key for keys in asked.groups for key in ([keys] if isinstance(keys, str) else keys)]
    return [*parts, {"keys": {"column": column, "keys": _spelled(table, column, keys)}}]


def _spelled(table: Table, column: str, keys: Sequence[Any]) -> list[str]:
    """Keys as the table writes them."""
    return [table._native.key(column, _key(key)) for key in keys]


def _key(key: Any) -> str:
    if isinstance(key, bool) or type(key).__name__ in ("bool", "bool_"):
        return "true" if key else "false"
    return str(key)


def _column(asked: Question) -> str:
    if asked.column is None:
        raise SettingError("no column is given, expected the column of the statistic", "add column='NAME'")
    return asked.column


def _bounds(asked: Question) -> list[float]:
    if asked.bounds is None or len(asked.bounds) != 2:
        raise SettingError(
            "no bounds are given, expected the range to which numbers are clamped",
            "add bounds=(LOWER, UPPER) from public knowledge, not from the data",
        )
    return list(asked.bounds)


def _no_groups() -> SettingError:
    return SettingError(
        "no groups are given, expected the keys of the groups",
        "add groups=['A', 'B'] from public knowledge, not from the data",
    )


@dataclasses.dataclass(frozen=True)
class _Declared:
    """What a schema says about a column."""

    bounds: list[float] | None = None
    names: list[str] | None = None
    other: str | None = None

    @classmethod
    def of(cls, schema: Mapping[str, Any], column: str) -> _Declared:
        label = schema.get("label") or {}
        if label.get("column") == column:
            return cls(label.get("bounds"), label.get("classes"))
        for feature in schema.get("column", []):
            if feature["name"] != column:
                continue
            if feature.get("boolean"):
                # As a number, true is 1: the mean is the share of true.
                return cls([0.0, 1.0], ["false", "true"])
            other = "dates" if "date" in feature else "text" if "text" in feature else None
            return cls(feature.get("bounds"), feature.get("categories"), other)
        return cls()

    def other_than_numbers(self) -> str | None:
        """What the cells are, if they are no numbers. Categories may be numbers, all of them."""
        if self.other is not None or self.names is None or self.bounds is not None:
            return self.other
        return None if all(map(_is_number, self.names)) else "categories"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _declared(asked: Question, table: Table) -> Question:
    """Takes bounds, keys and groups that are not given from the schema, and refuses numbers of other columns."""
    schema = table.schema
    if schema is None:
        return asked
    has_bins = asked.group_bins is not None or asked.group_edges is not None
    groups = [] if asked.group_by is None else _texts(asked.group_by)
    is_about_numbers = asked.statistic in _NUMBERS or asked.bins is not None or asked.edges is not None
    numbers = [asked.column] if asked.column is not None and is_about_numbers else []
    for column in [*numbers, *(groups if has_bins else [])]:
        other = _Declared.of(schema, column).other_than_numbers()
        if other is not None:
            raise DataError(
                f"column {json.dumps(column, ensure_ascii=False)} is declared as {other}, expected numbers",
                "ask for a histogram of its keys, or name a column with bounds",
            )
    changes: dict[str, Any] = {}
    if asked.column is not None:
        declared = _Declared.of(schema, asked.column)
        needs_bounds = asked.statistic in _NUMBERS or asked.bins is not None
        if needs_bounds and asked.bounds is None:
            changes["bounds"] = declared.bounds
        if asked.statistic == "histogram" and asked.bins is None and asked.edges is None and asked.keys is None:
            if declared.bounds is not None and declared.names is None:
                lower, upper = declared.bounds
                raise SettingError(
                    f"column {json.dumps(asked.column, ensure_ascii=False)} is declared as numbers, expected bins",
                    f"add bins=10 for bins from {lower:g} to {upper:g}, or edges=[A, B, C]",
                )
            changes["keys"] = declared.names
    if groups and asked.groups is None and not has_bins:
        found = [_Declared.of(schema, column) for column in groups]
        for column, declared in zip(groups, found):
            if declared.bounds is not None and declared.names is None:
                lower, upper = declared.bounds
                raise SettingError(
                    f"groups of column {json.dumps(column, ensure_ascii=False)} are numbers, expected bins",
                    f"add group_bins=({lower:g}, {upper:g}, 10), or group_edges=[A, B, C]",
                )
        if all(declared.names is not None for declared in found):
            lists = [declared.names for declared in found]
            changes["groups"] = lists if len(lists) == 2 else lists[0]
    return dataclasses.replace(asked, **changes)
