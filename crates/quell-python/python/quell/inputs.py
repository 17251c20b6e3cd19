"""Arrays and tables of people, as native records. An error depends on shapes and types alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native
from .data import array
from .errors import DataError
from .tables import is_table, native_table

__all__ = ["codes_of", "examples_of", "matrix_columns", "native_records", "users_of"]


def codes_of(y: Any, classes: Sequence[Any]) -> npt.NDArray[np.uint32]:
    """The place of each label among the classes. A label that is no class has a place beyond the list."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        labels = labels.reshape(-1) if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise DataError(f"the labels have {labels.ndim} axes, expected one label for each record")
    codes = np.full(len(labels), len(classes), dtype=np.uint32)
    for place, name in enumerate(classes):
        if labels.dtype.kind in "biuf" and not isinstance(name, str):
            codes[labels == name] = place
        else:
            codes[labels.astype(str) == str(name)] = place
    return codes


def users_of(users: Any) -> list[bytes | None] | None:
    """The user of each record as bytes. A record without a user is left out."""
    if users is None:
        return None

    def name(user: Any) -> bytes | None:
        if user is None or user != user:
            return None
        return bytes(user) if isinstance(user, bytes) else str(user).encode()

    return [name(user) for user in np.asarray(users, dtype=object)]


def examples_of(
    X: Any, y: Any = None, *, classes: Sequence[Any] | None = None, users: Any = None
) -> _native.Examples:
    """Arrays as records, with a class or a number each if there are targets."""
    features = array(X)
    names = users_of(users)
    if y is None:
        return _native.Examples.unlabelled(features, names)
    if classes is not None:
        return _native.Examples.classes(features, codes_of(y, classes), [str(name) for name in classes], names)
    targets = np.asarray(y)
    if targets.dtype.kind not in "biuf":
        raise DataError(
            f"the targets are an array of {targets.dtype}, expected numbers",
            "declare the classes with classes=[…] if the targets are labels",
        )
    return _native.Examples.numbers(features, np.ascontiguousarray(targets.reshape(-1), dtype=np.float32), names)


def matrix_columns(X: Any, names: Sequence[str] | None = None) -> dict[str, npt.NDArray[np.float64]]:
    """The columns of a matrix by their names: x0, x1, … without others."""
    array = np.asarray(X)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise DataError(
            f"the records are an array of {array.ndim} axes and {array.dtype}, expected a matrix of numbers"
        )
    named = [f"x{place}" for place in range(array.shape[1])] if names is None else list(names)
    if len(named) != array.shape[1]:
        raise DataError(f"the records have {array.shape[1]} columns, expected {len(named)}")
    return {name: array[:, place].astype(np.float64) for place, name in enumerate(named)}


def native_records(X: Any, schema: dict[str, Any] | None, shape: Sequence[int]) -> Any:
    """Records to predict, as the training records were."""
    if schema is None:
        array = array(X)
        return _native.Examples.unlabelled(array.reshape(len(array), *shape), None)
    names = [column["name"] for column in schema["column"]]
    return native_table(X if is_table(X) else matrix_columns(X, names))
