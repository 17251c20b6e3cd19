"""Arrays and tables of people, as native records. An error depends on shapes and types alone."""

from __future__ import annotations

import math
import numbers as numbers_abc
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native
from .data import array, declared_type, numbers
from .errors import DataError, SettingError
from .tables import is_table, native_table

__all__ = [
    "as_numbers",
    "checked_classes",
    "codes_of",
    "examples_of",
    "label_texts",
    "matrix_columns",
    "native_records",
    "pictures",
    "target_numbers",
    "users_of",
]


def _cells(values: Any) -> list[Any]:
    """The cells of a column, each by itself: the type of them all might follow from one of them."""
    for listed in ("tolist", "to_list", "to_pylist"):
        if hasattr(values, listed):
            return list(getattr(values, listed)())
    return list(values)


def _is_missing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or cell is np.ma.masked or bool(cell != cell)


def _is_plain(values: Any) -> bool:
    """Whether values are an array of numbers without a mask."""
    return isinstance(values, np.ndarray) and values.dtype.kind in "biuf" and not np.ma.isMaskedArray(values)


def label_texts(y: Any) -> Any:
    """Labels as texts. Those of a list, and those of columns with missing labels, are read one by one."""
    if _is_plain(y):
        return y.astype(str)
    return np.array([None if _is_missing(cell) else str(cell) for cell in _cells(y)], dtype=object)


def as_numbers(values: Any) -> npt.NDArray[np.float64]:
    """Values as numbers. What is no number is missing: it would be a private fact that there is such a value."""
    if not isinstance(values, (list, tuple)) and getattr(getattr(values, "dtype", None), "kind", "") != "O":
        with np.errstate(all="ignore"):
            return numbers(values).astype(np.float64)

    def number(cell: Any) -> float:
        return float(cell) if isinstance(cell, numbers_abc.Real) else math.nan

    if np.ndim(np.asarray(values, dtype=object)) == 1:
        return np.array([number(cell) for cell in _cells(values)], dtype=np.float64)
    rows = np.asarray(values, dtype=object)
    return np.array([number(cell) for cell in rows.ravel()], dtype=np.float64).reshape(rows.shape)


def checked_classes(classes: Sequence[Any]) -> list[Any]:
    """Public classes as a list: at least two, each once."""
    listed = list(classes.tolist() if hasattr(classes, "tolist") else classes)
    if len(listed) < 2 or len(set(listed)) != len(listed):
        raise SettingError(
            f"there are {len(set(listed))} classes in a list of {len(listed)}, expected at least two, each once",
            "list all classes, from public knowledge",
        )
    if any(one is None for one in listed):
        raise SettingError("a class is None, expected names or numbers")
    return listed


def codes_of(y: Any, classes: Sequence[Any]) -> npt.NDArray[np.uint32]:
    """The place of each label among the classes. A label that is no class has a place beyond the list."""
    shape = np.shape(y)
    if len(shape) == 2 and shape[1] == 1:
        y = np.asarray(y).reshape(-1)
    elif len(shape) != 1:
        raise DataError(f"the labels have {len(shape)} axes, expected one label for each record")
    if _is_plain(y) and not any(isinstance(name, str) for name in classes):
        codes = np.full(len(y), len(classes), dtype=np.uint32)
        for place, name in enumerate(classes):
            codes[y == name] = place
        return codes
    places = {name: place for place, name in enumerate(classes)}
    texts = {str(name): place for place, name in enumerate(classes)}

    def code(cell: Any) -> int:
        if _is_missing(cell):
            return len(classes)
        try:
            return places[cell]
        except (KeyError, TypeError):
            return texts.get(str(cell), len(classes))

    return np.array([code(cell) for cell in _cells(y)], dtype=np.uint32)


def users_of(users: Any) -> list[bytes | None] | None:
    """The user of each record as bytes. A record without a user is left out."""
    if users is None:
        return None

    def name(user: Any) -> bytes | None:
        if user is None or user != user:
            return None
        return bytes(user) if isinstance(user, bytes) else str(user).encode()

    return [name(user) for user in np.asarray(users, dtype=object)]


def pictures(features: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Arrays with the axes that layers of images expect: records, channels, height and width.

    Three axes are pictures of one channel. A last axis of 1 or 3 is that of the channels, unless the second may be.
    """
    if features.ndim == 3:
        return features[:, np.newaxis]
    if features.ndim == 4 and features.shape[3] in (1, 3) and features.shape[1] not in (1, 3):
        return np.ascontiguousarray(np.moveaxis(features, 3, 1))
    return features


def examples_of(
    X: Any, y: Any = None, *, classes: Sequence[Any] | None = None, users: Any = None
) -> _native.Examples:
    """Arrays as records, with a class or a number each if there are targets."""
    features = pictures(array(X))
    names = users_of(users)
    if y is None:
        return _native.Examples.unlabelled(features, names)
    if classes is not None:
        return _native.Examples.classes(features, codes_of(y, classes), [str(name) for name in classes], names)
    with np.errstate(all="ignore"):
        targets = np.ascontiguousarray(target_numbers(y).reshape(-1), dtype=np.float32)
    return _native.Examples.numbers(features, targets, names)


def target_numbers(y: Any) -> npt.NDArray[np.float64]:
    """Targets as numbers. Texts are refused, by their type."""
    if not isinstance(y, (list, tuple)) and declared_type(y) in ("texts", "listed", "days", "moments", "unreadable"):
        raise DataError(
            "the targets are an array of texts, expected numbers",
            "declare the classes with classes=[…] if the targets are labels",
        )
    return as_numbers(y)


def matrix_columns(X: Any, names: Sequence[str] | None = None) -> dict[str, npt.NDArray[np.float64]]:
    """The columns of a matrix by their names: x0, x1, … without others."""
    matrix = np.asarray(X)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise DataError(
            f"the records are an array of {matrix.ndim} axes and {matrix.dtype}, expected a matrix of numbers"
        )
    named = [f"x{place}" for place in range(matrix.shape[1])] if names is None else list(names)
    if len(named) != matrix.shape[1]:
        raise DataError(f"the records have {matrix.shape[1]} columns, expected {len(named)}")
    return {name: matrix[:, place].astype(np.float64) for place, name in enumerate(named)}


def native_records(X: Any, schema: dict[str, Any] | None, shape: Sequence[int]) -> Any:
    """Records to predict, as the training records were."""
    if schema is None:
        features = pictures(array(X))
        return _native.Examples.unlabelled(features.reshape(len(features), *shape), None)
    names = [column["name"] for column in schema["column"]]
    return native_table(X if is_table(X) else matrix_columns(X, names))
