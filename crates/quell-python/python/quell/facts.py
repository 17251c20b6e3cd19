"""Public facts about records: declared by people, released for a price, or read off records that are public."""

from __future__ import annotations

import copy
import dataclasses
import difflib
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from . import _native
from .data import Table, declared_type
from .errors import BudgetError, RunError, SettingError
from .inputs import checked_classes, label_texts, matrix_columns
from .ledgers import Ledger, author
from .schemas import Bounds, Schema
from .tables import columns_of, is_table, native_table

__all__ = ["DeclaredFacts", "Facts", "Public", "Released", "Task", "find_schema"]

Public = Literal["released", "declared", "data"]
"""Where facts come from that are not declared: a release that is paid for, nowhere, or the records themselves."""

Task = Literal["classes", "numbers", "none"]
"""What is predicted."""

LABEL = "target"
"""The name of the column of targets that are given apart from a table or a matrix."""
NUMBERS = ("numbers", "integers", "naturals")
"""The types of columns of numbers."""
SHARE = 0.1
"""The part of ε for facts that are not declared."""


@dataclasses.dataclass(frozen=True)
class Released:
    """The charge for facts that were not declared."""

    entry: int
    """The line of the ledger."""
    epsilon: float
    """The ε of that release alone."""


@dataclasses.dataclass(frozen=True)
class Facts:
    """What is public about some records."""

    schema: Schema | None
    """The columns, if the records are a table."""
    classes: Sequence[Any] | None
    """The classes, if there are some."""
    records: int | None
    """A rough number of records."""
    labels: Sequence[Any] | None = None
    """The classes as the labels are: of their type, in the order of `classes`."""
    released: Released | None = None
    """What was paid for these facts; `None` if all were declared."""
    remarks: list[str] = dataclasses.field(default_factory=list)
    """What is to be known about facts that were found."""


class DeclaredFacts:
    """What is declared about some records, and what is not."""

    def __init__(
        self,
        columns: Mapping[str, Any],
        label: str | None,
        *,
        schema: Schema | None = None,
        classes: Sequence[Any] | None = None,
        target_bounds: Bounds | None = None,
        records: int | None = None,
        task: Task = "none",
        is_table: bool = True,
        counts: bool = False,
        user: str | None = None,
    ) -> None:
        self.columns = columns
        self.types = {name: declared_type(column) for name, column in columns.items()}
        self.label = label
        self.schema = schema
        self.classes = classes
        self.target_bounds = target_bounds
        self.records = records
        self.task = task
        self.is_table = is_table
        self.counts = counts
        self.user = user
        self.bounds: dict[str, Bounds] = {}
        self.categories: dict[str, list[str]] = {}
        self.undeclared: list[tuple[str, bool]] = []
        """Columns about which nothing is known, and whether each holds numbers."""

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        *,
        label: str | None,
        classes: Sequence[Any] | None,
        bounds: Any,
        target_bounds: Bounds | None,
        categories: Mapping[str, Sequence[Any]] | None,
        schema: Schema | None,
        records: int | None,
        public: Public,
        task: Task,
        counts: bool,
        has_users: bool,
    ) -> DeclaredFacts:
        """Collects what is declared, and what `public` has to find."""
        if public not in ("released", "declared", "data"):
            raise SettingError(f"public is {public!r}, expected released, declared or data")
        _check_schema(schema, bounds=bounds, categories=categories, classes=classes, label=label)
        predicts = task != "none"
        if predicts and y is None and label is None and (schema is None or schema.label is None):
            raise SettingError("no targets are given", "give y, or label= for a column of the table")
        if isinstance(X, Table):
            columns: dict[str, Any] = {}
            if schema is None:
                raise SettingError(
                    "the columns of a file or of a quell.Table are not declared",
                    "give schema=quell.Schema.read(…), or read the file with pandas or polars",
                )
        else:
            columns = _columns(X, y, label if schema is None else schema.label, predicts)
        if public == "data":
            # The types of lists follow from their cells, which are public.
            columns = {name: np.asarray(cells) if isinstance(cells, list) else cells for name, cells in columns.items()}
        named = _label(y, label) if predicts else None
        found = cls(
            columns,
            named,
            schema=schema,
            classes=None if classes is None else checked_classes(classes),
            target_bounds=target_bounds,
            records=None if records is None else _whole(records),
            task=task,
            is_table=is_table(X) or _is_matrix(X),
            counts=counts,
            user="user" if has_users and schema is None else None,
        )
        while found.user in columns:
            found.user = f"{found.user}_"
        found._declare(bounds, categories or {})
        if public == "declared" and not found.is_complete:
            raise found._undeclared()
        if isinstance(X, Table) and records is None:
            # The cells of such a table are read by the native module only.
            found.columns = {"": X}
        return found

    def _declare(self, bounds: Any, categories: Mapping[str, Sequence[Any]]) -> None:
        """Takes what is declared about the columns."""
        if self.schema is not None:
            return
        if self.is_table:
            features = [name for name in self.columns if name != self.label]
            _check_names("bounds", bounds, features, self.label, "target_bounds=")
            _check_names("categories", categories, features, self.label, "classes=")
            numbers = [name for name in features if self._is_number(name, bounds, categories)]
            for name in features:
                if name in categories:
                    self.categories[name] = [_text(value) for value in categories[name]]
                elif name in numbers:
                    given = _given(bounds, name, numbers.index(name), len(numbers))
                    if given is None:
                        self.undeclared.append((name, True))
                    else:
                        self.bounds[name] = _pair(f"the bounds of {name!r}", given)
                elif not self._is_boolean(name):
                    self.undeclared.append((name, False))
        if self.task != "none" and self.classes is None and self.target_bounds is None:
            self.undeclared.append((self.label or "", self.task == "numbers"))

    def _is_number(self, name: str, bounds: Any, categories: Mapping[str, Sequence[Any]]) -> bool:
        if name in categories:
            return False
        if isinstance(bounds, Mapping) and name in bounds:
            return True
        if self.types[name] == "undeclared":
            return bounds is not None and not isinstance(bounds, Mapping)
        return self.types[name] in NUMBERS

    def _is_boolean(self, name: str) -> bool:
        return self.types[name] == "truths"

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to be found."""
        return not self.undeclared and self.records is not None

    def facts(self, released: Released | None = None) -> Facts:
        """The facts, all of which are known now."""
        labels = None
        if self.task == "classes" and self.schema is None and self.classes is not None:
            labels = _typed(self.classes, self.types.get(self.label or "", ""))
        if self.schema is not None:
            return Facts(self.schema, None, self.records, self.schema.classes, released)
        if not self.is_table:
            return Facts(None, self.classes, self.records, labels, released)
        left_out = [name for name, cells in self.categories.items() if not cells]
        remarks = []
        if left_out and released is not None:
            names = ", ".join(left_out)
            remarks.append(f"left out, because no category was frequent enough to be found: {names}")
        return Facts(self._schema(), self.classes, self.records, labels, released, remarks)

    def _schema(self) -> Schema:
        """The schema of the columns, in their order."""
        names = [name for name in self.columns if name not in (self.label, self.user)]
        schema = Schema.of(
            bounds={name: self.bounds[name] for name in names if name in self.bounds},
            # A column without a frequent category says nothing.
            categories={name: self.categories[name] for name in names if self.categories.get(name)},
            booleans=[name for name in names if self._is_boolean(name) and name not in self.bounds],
            ignore=[name for name in names if self.categories.get(name) == []],
            label=self.label,
            classes=None if self.classes is None else [_text(value) for value in self.classes],
            target_bounds=self.target_bounds,
            user=self.user,
        )
        schema.settings["column"].sort(key=lambda column: names.index(column["name"]))
        return schema

    def _take(self, found: Sequence[Any]) -> None:
        """Takes what was found about the undeclared columns."""
        for (name, is_number), value in zip(self.undeclared, found, strict=True):
            if name == (self.label or "") and is_number:
                low, high = value
                # Counts begin at zero.
                self.target_bounds = (0.0 if self.counts else float(low), float(high))
            elif name == (self.label or ""):
                self.classes = value
            elif is_number:
                self.bounds[name] = (float(value[0]), float(value[1]))
            else:
                self.categories[name] = value
        self.undeclared = []

    def made_up(self) -> Facts:
        """Facts of the right form, with which settings are checked before anything is paid."""
        trial = copy.copy(self)
        trial.bounds, trial.categories = dict(self.bounds), dict(self.categories)
        trial.records = 100_000 if self.records is None else self.records
        trial._take([(0.0, 1.0) if is_number else ["0", "1"] for _, is_number in self.undeclared])
        return trial.facts()

    def no_rows(self, part: Any) -> Any:
        """The columns of records without a record."""
        if part is None:
            return None
        if isinstance(part, Table):
            return part
        if is_table(part):
            return {name: column[:0] for name, column in columns_of(part).items()}
        return part[:0]

    def read(self) -> Facts:
        """Reads what is not declared off records that are public."""
        cells = self.columns
        found = [_range(cells[name]) if is_number else _unique(cells[name]) for name, is_number in self.undeclared]
        if self.records is None:
            self.records = len(next(iter(cells.values())))
        self._take(found)
        return self.facts()

    def released(self, epsilon: float, ledger: Ledger) -> Facts:
        """Releases what is not declared, for a part of ε. The ledger is charged."""
        _check_room(epsilon, ledger)
        names = {name for name, _ in self.undeclared}
        columns = {name: column for name, column in self.columns.items() if name in names}
        if self.label in columns and (self.label, False) in self.undeclared:
            # Classes are found as the texts that Python writes.
            columns[self.label] = label_texts(columns[self.label])
        # A number of records can be counted in any column.
        table = columns or dict([next(iter(self.columns.items()))])
        (first, *_) = table.values()
        others = len(columns) - (self.label in columns) + (self.records is None)
        told = json.loads(
            _native.find_columns(
                first._native if isinstance(first, Table) else native_table(table),
                [(name, None, is_number) for name, is_number in self.undeclared],
                ledger._native,
                epsilon * SHARE,
                label=self.label,
                # Nothing can be learned without classes.
                label_shares=max(float(others), 1.0),
                counts=self.records is None,
                # Where a user has several records, these facts need a schema that limits them.
                by=author(),
            )
        )
        if self.records is None:
            self.records = _rounded(told.pop())
        self._take(told)
        if self.task == "classes" and self.classes is not None and len(self.classes) < 2:
            many = "no class" if not self.classes else "only one class"
            raise RunError(
                f"{many} has enough records to be found; the search for facts was charged, and the run was not",
                "declare the classes with classes=[…], say task=\"numbers\" if the targets are quantities, or give a larger ε",
            )
        (*_, charge) = ledger.charges
        return self.facts(Released(charge.entry, epsilon * SHARE))

    def _undeclared(self) -> SettingError:
        for name, is_number in self.undeclared:
            if name == (self.label or ""):
                what = "give classes=[…] for labels, or target_bounds=(low, high) for numbers"
                return SettingError("nothing is declared about the targets", what)
            if is_number:
                what = f"give bounds=(low, high) for all columns of numbers, or {{{name!r}: (low, high), …}}"
                return SettingError(f"the column {name!r} has no bounds", what)
            return SettingError(f"the column {name!r} has no categories", f"give categories={{{name!r}: […]}}")
        return SettingError("the number of records is not declared", "give records=, a rough public number")


def _check_schema(schema: Schema | None, **others: Any) -> None:
    """Refuses a schema beside what it says."""
    for name, value in others.items():
        if schema is not None and value is not None:
            raise SettingError(f"a schema and {name} are given, expected one of them")


def _check_names(what: str, given: Any, names: Sequence[str], label: str | None, instead: str) -> None:
    """Refuses declarations about columns that the table does not have."""
    if not isinstance(given, Mapping):
        return
    for name in given:
        if name == label:
            raise SettingError(f"{what} names {name!r}, which is the target", f"give {instead} for the target")
        if name not in names:
            near = difflib.get_close_matches(str(name), names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the columns are {', '.join(names[:8])}"
            raise SettingError(f"{what} names the column {name!r}, which the table does not have", hint)


def _typed(classes: Sequence[Any], declared: str) -> list[Any]:
    """Classes of the type of the labels: those that were released are texts."""
    if not all(isinstance(name, str) for name in classes):
        return list(classes)
    if declared == "truths":
        return [name == "True" for name in classes]
    if declared in ("integers", "naturals"):
        return [int(name) for name in classes]
    return [float(name) for name in classes] if declared == "numbers" else list(classes)


def _whole(records: Any) -> int:
    if isinstance(records, (bool, str)) or int(records) != records or records < 1:
        raise SettingError(f"records is {records!r}, expected a positive whole number")
    return int(records)


def _pair(what: str, given: Any) -> Bounds:
    if isinstance(given, str) or np.shape(given) != (2,):
        raise SettingError(f"{what} are {given!r}, expected a pair of the lowest and the highest number")
    return float(given[0]), float(given[1])


def find_schema(
    X: Any,
    y: Any = None,
    *,
    epsilon: float,
    ledger: Ledger,
    label: str | None = None,
    within: Mapping[str, Bounds] | None = None,
    categories: Sequence[str] = (),
    delta: float | None = None,
    one_record_per_user: bool = False,
    user: str | None = None,
    max_per_user: int | None = None,
) -> Schema:
    """Releases bounds of numbers and frequent categories of a table, and returns its schema.

    All columns are one charge of ε. Bounds are round numbers that contain nearly all records. A column needs about
    1,000 records divided by its share of ε. `within` is a public range in which the numbers of a column are searched,
    and `categories` names columns of numbers that are categories.

    >>> import numpy as np
    >>> from quell import Ledger
    >>> ledger = Ledger.in_memory("people", epsilon=2, delta=1e-6)
    >>> ages = np.random.default_rng(0).normal(40, 10, 20_000)
    >>> schema = find_schema({"age": ages, "sick": ["no", "yes"] * 10_000}, label="sick", epsilon=1, ledger=ledger)
    >>> sorted(schema.classes)
    ['no', 'yes']
    """
    if isinstance(X, (Table, str, os.PathLike)):
        raise SettingError(
            "the columns of a file or of a quell.Table have no declared types",
            "read the file with pandas or polars, or use quell schema FILE --epsilon E",
        )
    columns = _columns(X, y, label, predicts=False)
    known = DeclaredFacts(columns, _label(y, label), user=user)
    _check_names("within", within, list(columns), None, "")
    names = [name for name in columns if name != user and (known.types[name] != "truths" or name == known.label)]
    known.undeclared = [
        (name, name not in categories and (known.types[name] in NUMBERS or name in (within or {}))) for name in names
    ]
    table = dict(columns)
    if known.label is not None and (known.label, False) in known.undeclared:
        table[known.label] = label_texts(columns[known.label])
    told = json.loads(
        _native.find_columns(
            native_table(table),
            [(name, (within or {}).get(name), is_number) for name, is_number in known.undeclared],
            ledger._native,
            float(epsilon),
            label=known.label,
            delta=delta,
            one_record_per_user=one_record_per_user,
            user=user,
            max_per_user=max_per_user,
            by=author(),
        )
    )
    known._take(told)
    return known._schema()


def _check_room(epsilon: float, ledger: Ledger) -> None:
    """Refuses a run before its facts are paid for, if they would be lost."""
    spent, most = ledger.spent, ledger.epsilon
    if spent + epsilon > most * (1 + 1e-9):
        raise BudgetError(
            f"the ledger has spent ε = {spent:.4g} of {most:.4g}, and facts and run together may cost {epsilon:.4g}",
            "give a smaller ε, or declare all facts: then the ledger decides about the run alone",
        )


def _columns(X: Any, y: Any, label: str | None, predicts: bool) -> dict[str, Any]:
    if is_table(X):
        columns = columns_of(X)
    elif _is_matrix(X):
        columns = dict(matrix_columns(X))
    else:
        # Of arrays such as images, only the number of records matters here.
        columns = {"": np.zeros(len(X))}
    if y is not None:
        columns[_label(y, label) or LABEL] = y
    elif predicts and label not in columns:
        raise SettingError(f"the table has no column {label!r}", f"its columns are {', '.join(list(columns)[:8])}")
    return columns


def _label(y: Any, label: str | None) -> str | None:
    if label is not None or y is None:
        return label
    name = getattr(y, "name", None)
    return LABEL if name is None or name == "" else str(name)


def _is_matrix(X: Any) -> bool:
    return np.ndim(X) == 2 and np.asarray(X).dtype != np.uint8


def _given(bounds: Any, name: str, place: int, count: int) -> Any:
    if bounds is None or isinstance(bounds, Mapping):
        return None if bounds is None else bounds.get(name)
    if np.ndim(bounds) == 1:
        return bounds
    if len(bounds) != count:
        raise SettingError(f"{len(bounds)} bounds are given, expected one for each of {count} columns of numbers")
    return bounds[place]


def _text(value: Any) -> str:
    return str(value.item() if isinstance(value, np.generic) else value)


def _unique(values: Any) -> list[str]:
    array = np.asarray(values)
    if array.dtype == object:
        return sorted({str(value) for value in array if value is not None and value == value})
    return [_text(value) for value in np.unique(array)]


def _range(values: Any) -> Bounds:
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)
    # Bounds have a width, also around a constant.
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _rounded(count: int) -> int:
    """A rough number: two digits are enough to plan with."""
    unit: int = 10 ** max(int(math.log10(max(count, 1))) - 1, 0)
    return max(round(count / unit) * unit, 1)
