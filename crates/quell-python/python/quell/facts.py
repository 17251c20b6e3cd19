"""Public facts about records: declared by people, released for a price, or read off records that are public."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from . import _native
from .data import Table, declared_type
from .errors import BudgetError, DataError, SettingError
from .inputs import matrix_columns
from .ledgers import Ledger, author
from .schemas import Bounds, Schema
from .tables import columns_of, is_table, native_table

__all__ = ["Facts", "Public", "Task", "find_schema", "known_facts"]

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
RECORDS = "the number of records"


@dataclasses.dataclass(frozen=True)
class Facts:
    """What is public about some records."""

    schema: Schema | None
    """The columns, if the records are a table."""
    classes: Sequence[Any] | None
    """The classes, if the records are arrays."""
    records: int | None
    """A rough number of records."""


class _Columns:
    """The columns of some records, what is declared about them, and what is not."""

    def __init__(self, columns: Mapping[str, Any], label: str | None) -> None:
        self.columns = columns
        self.types = {name: declared_type(column) for name, column in columns.items()}
        self.label = label
        self.bounds: dict[str, Bounds] = {}
        self.categories: dict[str, list[str]] = {}
        self.missing: list[tuple[str, bool]] = []
        """Columns about which nothing is known, and whether each holds numbers."""

    def declare(self, bounds: Any, categories: Mapping[str, Sequence[Any]]) -> None:
        """Takes what is declared about the columns besides the label."""
        numbers = [name for name in self.columns if name != self.label and self._is_number(name, bounds, categories)]
        for name in self.columns:
            if name == self.label or self._is_boolean(name):
                continue
            if name in categories:
                self.categories[name] = [_text(value) for value in categories[name]]
            elif name not in numbers:
                self.missing.append((name, False))
            else:
                given = _given(bounds, name, numbers.index(name), len(numbers))
                if given is None:
                    self.missing.append((name, True))
                else:
                    self.bounds[name] = (float(given[0]), float(given[1]))

    def _is_number(self, name: str, bounds: Any, categories: Mapping[str, Sequence[Any]]) -> bool:
        if name in categories:
            return False
        if self.types[name] == "undeclared":
            return bounds is not None and (not isinstance(bounds, Mapping) or name in bounds)
        return self.types[name] in NUMBERS

    def _is_boolean(self, name: str) -> bool:
        return self.types[name] == "truths"

    def schema(self, classes: Sequence[Any] | None, target_bounds: Bounds | None, user: str | None) -> Schema:
        """The schema of the columns, in their order."""
        names = [name for name in self.columns if name != self.label and name != user]
        return Schema.of(
            bounds={name: self.bounds[name] for name in names if name in self.bounds},
            # A column without a frequent category says nothing.
            categories={name: self.categories[name] for name in names if self.categories.get(name)},
            booleans=[name for name in names if self._is_boolean(name)],
            ignore=[name for name in names if self.categories.get(name) == []],
            label=self.label,
            classes=None if classes is None else [_text(value) for value in classes],
            target_bounds=target_bounds,
            user=user,
        )


def known_facts(
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
    has_users: bool,
    epsilon: float,
    ledger: Ledger | None,
) -> Facts:
    """Collects what is declared, and finds the rest as `public` says. A release is charged to the ledger."""
    if public not in ("released", "declared", "data"):
        raise SettingError(f"public is {public!r}, expected released, declared or data")
    if schema is not None:
        for name, value in (("bounds", bounds), ("categories", categories), ("classes", classes), ("label", label)):
            if value is not None:
                raise SettingError(f"a schema and {name} are given, expected one of them")
    predicts = task != "none"
    if predicts and y is None and label is None and (schema is None or schema.label is None):
        raise SettingError("no targets are given", "give y, or label= for a column of the table")
    if isinstance(X, Table):
        return _facts_of_file(X, schema, records, public, epsilon, ledger)
    columns = _columns(X, y, label if schema is None else schema.label, predicts)
    if public == "data":
        # The types of lists follow from their cells, which are public.
        columns = {name: np.asarray(column) if isinstance(column, list) else column for name, column in columns.items()}
    known = _Columns(columns, _label(y, label) if predicts else None)
    is_array = not is_table(X) and not _is_matrix(X)
    if schema is None and not is_array:
        known.declare(bounds, categories or {})
    if schema is None and predicts and classes is None and target_bounds is None:
        known.missing.append((known.label or "", task == "numbers"))
    wants_count = records is None
    if known.missing or wants_count:
        if public == "declared":
            raise _undeclared(known)
        if public == "released" and ledger is not None:
            _check_room(epsilon, ledger)
        found, count = (
            _read(known) if public == "data" else _released(known, wants_count, epsilon * SHARE, ledger)
        )
        records = count if wants_count else records
        for (name, is_number), value in zip(known.missing, found, strict=True):
            if name == known.label and is_number:
                target_bounds = value
            elif name == known.label:
                classes = value
            elif is_number:
                known.bounds[name] = value
            else:
                known.categories[name] = value
    if schema is not None:
        return Facts(schema, None, records)
    if predicts and classes is not None and len(classes) == 0:
        raise DataError("no class has enough records to be found", "declare the classes with classes=[…]")
    if is_array:
        return Facts(None, classes, records)
    return Facts(known.schema(classes, target_bounds, _user(known) if has_users else None), None, records)


def _user(known: _Columns) -> str:
    """A name for the column of users that no other column has."""
    name = "user"
    while name in known.columns:
        name += "_"
    return name


def _facts_of_file(
    table: Table, schema: Schema | None, records: int | None, public: Public, epsilon: float, ledger: Ledger | None
) -> Facts:
    """The facts of a table whose cells only the native module reads."""
    if schema is None:
        raise SettingError(
            "the columns of a file or of a quell.Table are not declared",
            "give schema=quell.Schema.read(…), or read the file with pandas or polars",
        )
    if records is None and public != "released":
        raise SettingError(f"{RECORDS} is not declared", "give records=, a rough public number")
    if records is None and ledger is not None:
        _check_room(epsilon, ledger)
        told = _native.find_columns(table._native, [], ledger._native, SHARE * epsilon, counts=True, by=author())
        records = _rounded(json.loads(told)["found"].pop())
    return Facts(schema, None, records)


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
    columns = _columns(X, y, label, predicts=False)
    named = _label(y, label)
    known = _Columns(columns, named)
    names = [name for name in columns if name != user and (known.types[name] != "truths" or name == named)]
    known.missing = [
        (name, name not in categories and (known.types[name] in NUMBERS or name in (within or {}))) for name in names
    ]
    told = json.loads(
        _native.find_columns(
            native_table(columns),
            [(name, (within or {}).get(name), is_number) for name, is_number in known.missing],
            ledger._native,
            float(epsilon),
            label=named,
            delta=delta,
            one_record_per_user=one_record_per_user,
            user=user if max_per_user is not None else None,
            max_per_user=max_per_user,
            by=author(),
        )
    )
    classes, target_bounds = None, None
    for (name, is_number), value in zip(known.missing, told["found"], strict=True):
        if name == named:
            classes, target_bounds = (None, (value[0], value[1])) if is_number else (value, None)
        elif is_number:
            known.bounds[name] = (value[0], value[1])
        else:
            known.categories[name] = value
    return known.schema(classes, target_bounds, user)


def _released(
    known: _Columns, wants_count: bool, epsilon: float, ledger: Ledger | None
) -> tuple[list[Any], int | None]:
    if ledger is None:
        raise SettingError("facts are to be released without a ledger")
    names = {name for name, _ in known.missing}
    columns = {name: column for name, column in known.columns.items() if name in names}
    if not columns:
        # A number of records can be counted in any column.
        name, column = next(iter(known.columns.items()))
        columns = {name: column}
    told = json.loads(
        _native.find_columns(
            native_table(columns),
            [(name, None, is_number) for name, is_number in known.missing],
            ledger._native,
            float(epsilon),
            label=known.label,
            counts=wants_count,
            # Where a user has several records, these facts need a schema that limits them.
            by=author(),
        )
    )
    found = list(told["found"])
    count = _rounded(found.pop()) if wants_count else None
    return found, count


def _check_room(epsilon: float, ledger: Ledger) -> None:
    """Refuses a run before its facts are paid for, if they would be lost."""
    spent, most = ledger.spent, ledger.epsilon
    if spent + epsilon > most * (1 + 1e-9):
        raise BudgetError(
            f"the ledger has spent ε = {spent:.4g} of {most:.4g}, and facts and run together may cost {epsilon:.4g}",
            "give a smaller ε, or declare all facts: then the ledger decides about the run alone",
        )


def _read(known: _Columns) -> tuple[list[Any], int]:
    found = [_range(known.columns[name]) if is_number else _unique(known.columns[name]) for name, is_number in known.missing]
    return found, len(next(iter(known.columns.values())))


def _undeclared(known: _Columns) -> SettingError:
    hint = 'or public="released" to pay for them, or public="data" if what the records show is public'
    for name, is_number in known.missing:
        if name == known.label:
            what = f"give classes=[…] for labels, target_bounds=(low, high) for numbers, {hint}"
            return SettingError("nothing is declared about the targets", what)
        if is_number:
            what = f"give bounds=(low, high) for all columns of numbers, a dict for each, {hint}"
            return SettingError(f"the column {name!r} has no bounds", what)
        return SettingError(f"the column {name!r} has no categories", f"give categories={{{name!r}: […]}}, {hint}")
    return SettingError(f"{RECORDS} is not declared", "give records=, a rough public number")


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
