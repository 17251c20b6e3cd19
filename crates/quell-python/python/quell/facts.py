"""Public facts about records: declared by people, or read off records that are declared public."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .errors import SettingError
from .inputs import matrix_columns
from .schemas import Schema
from .tables import is_table

__all__ = ["Facts", "known_facts"]

LABEL = "target"
"""The name of the column of targets that are given apart."""
USER = "user"
"""The name of the column of users that are given apart."""


@dataclasses.dataclass
class Facts:
    """What is public about some records."""

    schema: Schema | None
    """The columns, if the records are a table."""
    classes: Sequence[Any] | None
    """The classes, if the records are arrays."""
    records: int | None
    """A rough number of records."""


def known_facts(
    X: Any,
    y: Any,
    *,
    label: str | None,
    classes: Sequence[Any] | None,
    bounds: Any,
    target_bounds: tuple[float, float] | None,
    categories: Mapping[str, Sequence[str]] | None,
    schema: Schema | None,
    records: int | None,
    is_public: bool,
    predicts: bool,
) -> Facts:
    """Collects what is declared. With `is_public`, the rest is read off the records."""
    if schema is not None:
        given = [("bounds", bounds), ("categories", categories), ("classes", classes), ("label", label)]
        for name, value in given:
            if value is not None:
                raise SettingError(f"a schema and {name} are given, expected one of them")
        return Facts(schema, None, _count(X, records, is_public))
    table = is_table(X)
    matrix = not table and np.ndim(X) == 2 and np.asarray(X).dtype != np.uint8
    if predicts and y is None and label is None:
        raise SettingError("no targets are given", "give y, or label= for a column of the table")
    if not table and not matrix:
        if is_public and classes is None and y is not None and _are_labels(y):
            classes = _unique(y)
        return Facts(None, classes, _count(X, records, is_public))
    columns = _columns(X) if table else matrix_columns(X)
    name = label if label is not None else (_name(y) if y is not None else None)
    targets = y if y is not None else columns.get(label or "")
    if label is not None and y is None and label not in columns:
        raise SettingError(f"the table has no column {label!r}", f"its columns are {', '.join(list(columns)[:8])}")
    features = {key: column for key, column in columns.items() if key != name}
    if predicts and classes is None and target_bounds is None:
        if not is_public:
            raise SettingError(
                "nothing is declared about the targets",
                "give classes=[…] for labels, target_bounds=(low, high) for numbers, or public=\"data\" if what the "
                "records show is public",
            )
        if _are_labels(targets):
            classes = _unique(targets)
        else:
            target_bounds = _range(targets)
    schema = Schema.of(
        bounds=_bounds(features, bounds, categories or {}, is_public),
        categories=_categories(features, categories or {}, is_public),
        booleans=[key for key, column in features.items() if np.asarray(column).dtype == bool],
        label=name if predicts else None,
        classes=None if classes is None else [_text(value) for value in classes],
        target_bounds=target_bounds,
    )
    return Facts(schema, None, _count(X, records, is_public))


def _columns(X: Any) -> dict[str, Any]:
    names = list(X) if isinstance(X, Mapping) else list(X.columns)
    return {str(name): X[name] for name in names}


def _name(y: Any) -> str:
    name = getattr(y, "name", None)
    return LABEL if name is None else str(name)


def _text(value: Any) -> str:
    return str(value.item() if isinstance(value, np.generic) else value)


def _are_labels(y: Any) -> bool:
    return np.asarray(y).dtype.kind not in "f"


def _unique(values: Any) -> list[Any]:
    array = np.asarray(values)
    if array.dtype == object:
        return sorted({str(value) for value in array if value is not None and value == value})
    return list(np.unique(array))


def _range(values: Any) -> tuple[float, float]:
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)
    # Bounds have a width, also around a constant.
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _is_number(column: Any) -> bool:
    return np.asarray(column).dtype.kind in "iuf"


def _bounds(
    columns: Mapping[str, Any], bounds: Any, categories: Mapping[str, Sequence[str]], is_public: bool
) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    names = [name for name, column in columns.items() if _is_number(column) and name not in categories]
    for place, name in enumerate(names):
        if isinstance(bounds, Mapping):
            given = bounds.get(name)
        elif bounds is None:
            given = None
        else:
            given = bounds if np.ndim(bounds) == 1 else bounds[place]
        if given is None and is_public:
            given = _range(columns[name])
        if given is None:
            raise SettingError(
                f"the column {name!r} has no bounds",
                "give bounds=(low, high) for all columns of numbers or a dict for each, or public=\"data\" if what the "
                "records show is public",
            )
        found[name] = (float(given[0]), float(given[1]))
    return found


def _categories(
    columns: Mapping[str, Any], categories: Mapping[str, Sequence[str]], is_public: bool
) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {}
    for name, column in columns.items():
        kind = np.asarray(column).dtype.kind
        if name in categories:
            found[name] = categories[name]
        elif kind not in "iufb":
            if not is_public:
                raise SettingError(
                    f"the column {name!r} has no categories",
                    f"give categories={{{name!r}: […]}}, or public=\"data\" if what the records show is public",
                )
            found[name] = [str(value) for value in _unique(column)]
    return found


def _count(X: Any, records: int | None, is_public: bool) -> int | None:
    if records is not None or not is_public:
        return records
    if is_table(X):
        columns = _columns(X)
        return len(next(iter(columns.values()))) if columns else 0
    return len(X)
