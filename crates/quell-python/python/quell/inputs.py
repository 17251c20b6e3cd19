"""Arrays and tables of people, as native records. An error depends on shapes and types alone."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
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
    "class_names",
    "codes_of",
    "examples_of",
    "label_texts",
    "matrix_columns",
    "native_records",
    "object_column",
    "pictures",
    "target_numbers",
    "to_json",
    "user_texts",
    "users_of",
]


def to_json(settings: Any) -> str:
    """Writes settings as JSON, with numbers of numpy as numbers."""

    def plain(value: Any) -> Any:
        if hasattr(value, "tolist"):
            return value.tolist()
        raise SettingError(f"a setting is of the type {type(value).__name__}, expected a number, a text or a list")

    try:
        return json.dumps(settings, default=plain, allow_nan=False)
    except ValueError:
        raise SettingError("a setting is no finite number, expected one that is") from None


def object_column(cells: Iterable[Any]) -> npt.NDArray[Any]:
    """Cells as an array of objects, each by itself: numpy would choose a type for all by looking at them."""
    listed = list(cells)
    column = np.empty(len(listed), dtype=object)
    for place, cell in enumerate(listed):
        column[place] = cell
    return column


def _cells(values: Any) -> list[Any]:
    """The cells of a column, each by itself."""
    for listed in ("tolist", "to_list", "to_pylist"):
        if hasattr(values, listed):
            return list(getattr(values, listed)())
    return list(values)


def _is_plain(values: Any) -> bool:
    """Whether values are an array of numbers without a mask."""
    return isinstance(values, np.ndarray) and values.dtype.kind in "biuf" and not np.ma.isMaskedArray(values)


def cell_text(cell: Any) -> str | None:
    """The text of a cell; `None` for a missing one, and for an object whose text its own code would make."""
    if isinstance(cell, (float, np.floating)):
        return None if cell != cell else str(float(cell))
    if isinstance(cell, (bool, np.bool_)):
        return str(bool(cell))
    if isinstance(cell, (int, np.integer)):
        return str(int(cell)) if abs(int(cell)) < 10**30 else None
    if isinstance(cell, str):
        return str(cell)
    return None


def label_texts(y: Any) -> Any:
    """Labels as texts, one by one."""
    if _is_plain(y) and y.dtype.kind in "biu":
        return y.astype(str)
    return object_column(map(cell_text, _cells(y)))


def as_numbers(values: Any) -> npt.NDArray[np.float64]:
    """Values as numbers. What is no number is missing: it would be a private fact that there is such a value."""
    if not isinstance(values, (list, tuple)) and getattr(getattr(values, "dtype", None), "kind", "") != "O":
        with np.errstate(all="ignore"):
            return numbers(values).astype(np.float64)

    def number(cell: Any) -> float:
        try:
            return float(cell) if isinstance(cell, (int, float, np.number, np.bool_)) else math.nan
        except (OverflowError, TypeError):
            return math.nan

    if isinstance(values, np.ndarray):
        flat = np.array([number(cell) for cell in values.ravel().tolist()], dtype=np.float64)
        return flat.reshape(values.shape)
    return np.array([number(cell) for cell in _cells(values)], dtype=np.float64)


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
    """The place of each label among the classes. A label that is no class has a place beyond the list.

    A label is a class if it is equal to it, has the same text, or is the number that the text of the class says. Each
    label is looked at by itself.
    """
    if isinstance(y, np.ndarray):
        if y.ndim == 2 and y.shape[1] == 1:
            y = y.reshape(-1)
        if y.ndim != 1:
            raise DataError(f"the labels have {y.ndim} axes, expected one label for each record")
    places: dict[Any, int] = {}
    for place, name in enumerate(classes):
        text = cell_text(name)
        places[text if text is not None else str(name)] = place
    values: dict[float, int] = {}
    for place, name in enumerate(classes):
        value = _number_of(name)
        if value is not None:
            values.setdefault(value, place)

    def code(cell: Any) -> int:
        text = cell_text(cell)
        if text in places:
            return places[text]
        if isinstance(cell, (int, float, np.number, np.bool_)) and not isinstance(cell, complex):
            try:
                return values.get(float(cell), len(classes))
            except (OverflowError, TypeError):
                return len(classes)
        return len(classes)

    if _is_plain(y):
        found, inverse = np.unique(y, return_inverse=True)
        return np.array([code(cell) for cell in found], dtype=np.uint32)[inverse.reshape(-1)]
    return np.array([code(cell) for cell in _cells(y)], dtype=np.uint32)


def _number_of(name: Any) -> float | None:
    """The number that a class says, if it says one."""
    try:
        value = float(name)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if value == value else None


def class_names(y: Any, classes: Sequence[str]) -> npt.NDArray[Any]:
    """The class of each label as the schema names it; `None` for a label that is no class."""
    return object_column([*classes, None])[codes_of(y, classes)]


def users_of(users: Any) -> list[bytes | None] | None:
    """The user of each record as bytes. A record without a user is left out."""
    texts = user_texts(users)
    return None if texts is None else [None if user is None else user.encode("utf-8", "surrogatepass") for user in texts]


def user_texts(users: Any) -> list[str | None] | None:
    """The user of each record as a text. Numbers with fractions are refused by their type, and missing in a list."""
    if users is None:
        return None
    if not isinstance(users, (list, tuple)) and declared_type(users) == "numbers":
        raise DataError(
            "the users are numbers with fractions, expected whole numbers or texts",
            "a column of whole numbers with a missing one becomes fractions in pandas: read it with dtype=\"Int64\"",
        )

    def text(user: Any) -> str | None:
        if isinstance(user, bytes):
            return user.decode("utf-8", "surrogateescape")
        return None if isinstance(user, (float, np.floating)) else cell_text(user)

    return [text(user) for user in _cells(users)]


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


def matrix_columns(X: Any) -> dict[str, npt.NDArray[np.float64]]:
    """The columns of a matrix: x0, x1, …"""
    matrix = numbers(X)
    if matrix.ndim != 2:
        raise DataError(f"the records are an array of {matrix.ndim} axes, expected a matrix of numbers")
    with np.errstate(all="ignore"):
        return {f"x{place}": matrix[:, place].astype(np.float64) for place in range(matrix.shape[1])}


def native_records(X: Any, schema: dict[str, Any] | None, shape: Sequence[int]) -> Any:
    """Records to predict, as the training records were."""
    if schema is None:
        features = pictures(array(X))
        return _native.Examples.unlabelled(features.reshape(len(features), *shape), None)
    if is_table(X):
        return native_table(X)
    columns = matrix_columns(X)
    names = [column["name"] for column in schema["column"]]
    if not set(names) <= columns.keys():
        raise DataError(
            f"the model was trained on columns with names, such as {names[0]!r}, and the records are a matrix without",
            "give a data frame, or a dict of columns",
        )
    return native_table(columns)
