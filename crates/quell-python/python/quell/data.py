"""Records in: tables of columns, and matrices of numbers, from what Python programs hold."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _arrow, _native
from ._arrow import Column, taken
from .errors import DataError
from .schemas import AnySchema, Schema

__all__ = ["Kind", "Table", "array"]

Kind = Literal["number", "text", "boolean", "undeclared", "unreadable"]
"""What the cells of a column are. It is declared, and never found in the cells."""


class Table:
    """A table of private records: one row for each record, and columns with names.

    `data` is a dict of columns, a data frame of pandas or polars, anything with `__arrow_c_stream__`, a structured
    array of numpy, or the path of a CSV or Parquet file. Its cells are copied once, because a table owns its
    records: whoever changes the array later does not change what is computed. A file is read when a question is asked.

    The kind of a column follows from its declared type, and never from its cells: the kind would tell something
    about a record. Lists of Python and columns of CSV files declare nothing, so they are read as the question asks.
    Object columns of pandas are texts. Dates and times are texts, year first. A cell that does not fit is missing.

    `schema` declares columns: the path of a TOML file, or a dict of the same form.

    >>> people = Table({"age": np.array([36.0, 41.0, 17.0]), "city": ["Bern", "Basel", None]})
    >>> people
    <quell.Table with the columns age (number), city (undeclared)>
    >>> people.columns
    {'age': 'number', 'city': 'undeclared'}
    """

    __slots__ = ("_native", "file")

    _native: _native.Table
    file: str | None
    """The name of the file that holds the records, without its folder."""

    def __init__(self, data: Any, *, schema: AnySchema | None = None) -> None:
        if isinstance(data, (str, os.PathLike)):
            opened = Table.open(data, schema=schema)
            self._native, self.file = opened._native, opened.file
            return
        self.file = None
        if isinstance(data, Table):
            self._native, self.file = data._native, data.file
        else:
            with contextlib.ExitStack() as stack:
                self._native = _native.Table.in_memory(_columns(data, stack))
        if schema is not None:
            self._native = self._native.declared_by(_schema(schema))

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        schema: AnySchema | None = None,
        delimiter: str | None = None,
        quotes: bool | None = None,
        header: Sequence[str] | None = None,
        decimal: Literal[".", ","] | None = None,
        encoding: str | None = None,
        missing: Sequence[str] | None = None,
    ) -> Table:
        """Opens a CSV or Parquet file, and reads the names of its columns.

        The options say how a text file is written, where that is not the usual way. `header` names the columns of a
        file whose first row is a record. Cells that are in `missing` count as empty.
        """
        given = {
            "delimiter": delimiter,
            "quotes": quotes,
            "header": None if header is None else list(header),
            "decimal": decimal,
            "encoding": encoding,
            "missing": None if missing is None else list(missing),
        }
        layout = json.dumps({name: value for name, value in given.items() if value is not None})
        table = cls.__new__(cls)
        place = os.fspath(path)
        table._native = _native.Table.open(place, layout, None if schema is None else _schema(schema))
        table.file = os.path.basename(place)
        return table

    @property
    def columns(self) -> dict[str, Kind]:
        """The names and the kinds of the columns. They are public."""
        return dict(self._native.columns)

    @property
    def schema(self) -> dict[str, Any] | None:
        """What is declared about the columns, if there is a schema."""
        text = self._native.schema
        return None if text is None else dict(json.loads(text))

    def __repr__(self) -> str:
        names = ", ".join(f"{name} ({kind})" for name, kind in self._native.columns)
        return f"<quell.Table with the columns {names}>"


def array(x: Any) -> npt.NDArray[Any]:
    """A contiguous array of `float32` or `uint8`, with as few copies as the layout allows.

    `x` is an array of numpy, a tensor with `__dlpack__` on the CPU, an object with the buffer protocol, or a data
    frame of numbers. There is no copy if its numbers are `float32` or `uint8`, row after row. Otherwise there is
    exactly one, which brings them to that form. Training and votes make one more copy of whatever they are given:
    records are not changed by anyone while they are used.

    >>> array(np.eye(2))
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    view = numbers(x)
    dtype = np.uint8 if view.dtype == np.uint8 else np.float32
    # A number beyond the range becomes infinite. A warning would tell that there is one.
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(view, dtype=dtype)


def numbers(x: Any) -> npt.NDArray[Any]:
    """A view of an object as an array of numbers, without a copy where its owner allows that."""
    view = _view(x)
    if view.dtype.kind not in "biuf":
        raise DataError(
            f"an array has the type {view.dtype}, expected numbers",
            "convert it with numpy.asarray(x, dtype=numpy.float32), or make a quell.Table of its columns",
        )
    if np.ma.isMaskedArray(view):
        with np.errstate(all="ignore"):
            filled: npt.NDArray[Any] = np.ma.filled(view.astype(np.float32), np.nan)
        return filled
    return view


def _view(x: Any) -> npt.NDArray[Any]:
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, (str, bytes, list, tuple, Mapping)):
        raise DataError(
            f"the numbers are a {type(x).__name__}, expected an array",
            "convert it with numpy.asarray(x, dtype=numpy.float32): the type of an array is declared, not found",
        )
    if _is_pandas(x):
        return _of_frame(x)
    if hasattr(x, "__arrow_c_stream__") or hasattr(x, "__arrow_c_array__"):
        return _of_arrow(x)
    if hasattr(x, "__dlpack__"):
        if hasattr(x, "detach"):
            # A tensor that requires gradients is not exported.
            x = x.detach()
        try:
            tensor: npt.NDArray[Any] = np.from_dlpack(x)
            return tensor
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise DataError(
                "a tensor cannot be read by numpy, expected one on the CPU with a type that numpy has",
                "call x.cpu().float() first",
            ) from error
    try:
        return np.asarray(memoryview(x))
    except TypeError:
        pass
    if hasattr(x, "__array__"):
        converted: npt.NDArray[Any] = np.asarray(x)
        return converted
    raise DataError(
        f"the numbers are of the type {type(x).__name__}, expected an array",
        "give an array of numpy, or an object with __dlpack__ or the buffer protocol",
    )


def _of_frame(x: Any) -> npt.NDArray[Any]:
    """The numbers of a data frame or a series of pandas, by its dtypes alone: a missing number is NaN."""
    dtypes = list(x.dtypes) if x.ndim == 2 else [x.dtype]
    if any(getattr(dtype, "kind", "O") not in "biuf" for dtype in dtypes):
        raise _no_numbers()
    values: npt.NDArray[Any]
    if all(isinstance(dtype, np.dtype) for dtype in dtypes):
        values = x.to_numpy()
    else:
        # Without a dtype, pandas would choose one by whether a cell is missing.
        values = x.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _of_arrow(x: Any) -> npt.NDArray[Any]:
    """The numbers of Arrow data, in single precision: a missing number is NaN."""
    with contextlib.ExitStack() as stack:
        is_series = not hasattr(x, "columns")
        columns = _arrow.columns(x, stack, name="x" if is_series else None)
        filled = []
        for _, kind, _, chunks in columns:
            if kind not in ("numbers", "integers", "naturals", "truths"):
                raise _no_numbers()
            parts = [np.zeros(0, dtype=np.float32)]
            for chunk in chunks:
                with np.errstate(all="ignore"):
                    part = chunk[0].astype(np.float32)
                if chunk[-1] is not None:
                    part[~chunk[-1]] = np.nan
                parts.append(part)
            filled.append(np.concatenate(parts))
    return filled[0] if is_series else np.stack(filled, axis=1)


def _no_numbers() -> DataError:
    return DataError(
        "a data frame has columns that are no numbers, expected numbers only",
        "select the columns of numbers, or make a quell.Table of all",
    )


def _schema(schema: AnySchema) -> str:
    return json.dumps(_without_none(Schema.from_any(schema).settings))


def _without_none(value: Any) -> Any:
    """Leaves out what is not given: TOML has no null."""
    if isinstance(value, Mapping):
        return {name: _without_none(one) for name, one in value.items() if one is not None}
    if isinstance(value, (list, tuple)):
        return [_without_none(one) for one in value]
    return value


def _is_pandas(x: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(x, (pandas.DataFrame, pandas.Series, pandas.Index))


def _columns(data: Any, stack: contextlib.ExitStack) -> list[Column]:
    if isinstance(data, Mapping):
        return [_column(str(name), cells, stack) for name, cells in data.items()]
    if _is_pandas(data):
        frame = data.to_frame() if data.ndim == 1 else data
        return [_of_series(str(name), frame.iloc[:, place], stack) for place, name in enumerate(frame.columns)]
    if isinstance(data, np.ndarray) and data.dtype.names is not None:
        return [_of_array(name, data[name]) for name in data.dtype.names]
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _arrow.columns(data, stack)
    raise DataError(
        f"the records are of the type {type(data).__name__}, expected a table with names of columns",
        "give a dict of columns, a data frame, a structured array, or the path of a CSV or Parquet file",
    )


def declared_type(cells: Any) -> str:
    """What the type of a column declares about its cells: `numbers`, `integers`, `texts`, …, or `undeclared`."""
    with contextlib.ExitStack() as stack:
        return _column("", cells, stack)[1]


def _column(name: str, cells: Any, stack: contextlib.ExitStack) -> Column:
    if isinstance(cells, np.ndarray):
        return _of_array(name, cells)
    if _is_pandas(cells):
        return _of_series(name, cells.to_series() if not hasattr(cells, "iloc") else cells, stack)
    if hasattr(cells, "__arrow_c_stream__") or hasattr(cells, "__arrow_c_array__"):
        return _arrow.columns(cells, stack, name=name)[0]
    if isinstance(cells, (list, tuple)):
        # A warning about an imaginary part would tell that there is one.
        plain = [None if isinstance(cell, (complex, np.complexfloating)) else cell for cell in cells]
        return name, "undeclared", 0, [plain]
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(cells, pandas.api.extensions.ExtensionArray):
        return _of_series(name, pandas.Series(cells), stack)
    if not isinstance(cells, (str, bytes, Mapping)):
        return _of_array(name, _view(cells))
    raise DataError(
        f"the column {json.dumps(name, ensure_ascii=False)} is of the type {type(cells).__name__}, expected cells",
        "give an array, a series or a list with one cell for each record",
    )


def _of_array(
    name: str, values: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None = None
) -> Column:
    """A column of an array. Its dtype alone decides what it is."""
    if values.ndim != 1:
        if values.ndim == 0:
            raise DataError(f"the column {json.dumps(name, ensure_ascii=False)} is one value, expected an array of cells")
        # A field with several numbers for each record.
        return name, "unreadable", 0, [len(values)]
    if np.ma.isMaskedArray(values):
        is_known: npt.NDArray[np.bool_] = ~np.ma.getmaskarray(values)
        valid = is_known if valid is None else valid & is_known
        values = np.ma.getdata(values)
    kind = {"b": "truths", "i": "integers", "u": "naturals", "f": "numbers"}.get(values.dtype.kind)
    if kind is not None:
        return name, kind, 0, [(taken(kind, values), valid)]
    if values.dtype.kind == "M":
        return _of_moments(name, values, valid)
    if values.dtype.kind in "OUTS":
        cells = values.tolist()
        if values.dtype.kind == "S":
            cells = [_arrow._decoded(cell) for cell in cells]
        if valid is not None:
            cells = [cell if is_valid else None for cell, is_valid in zip(cells, valid)]
        return name, "texts", 0, [cells]
    # Durations, complex numbers and records in records.
    return name, "unreadable", 0, [len(values)]


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _of_moments(
    name: str, values: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None
) -> Column:
    """Days or moments, counted from 1970."""
    known = ~np.isnat(values)
    valid = known if valid is None else valid & known
    unit, many = np.datetime_data(values.dtype)
    if unit in ("Y", "M", "W", "D"):
        return name, "days", 0, [(taken("days", values.astype("M8[D]").view(np.int64)), valid)]
    finer = {"h": "s", "m": "s", "ps": "ns", "fs": "ns", "as": "ns"}.get(unit, unit)
    if finer not in _PER_SECOND:
        return name, "unreadable", 0, [len(values)]
    if finer != unit or many != 1 or not values.dtype.isnative:
        values = values.astype(f"M8[{finer}]")
    return name, "moments", _PER_SECOND[finer], [(taken("moments", values.view(np.int64)), valid)]


def _of_series(name: str, series: Any, stack: contextlib.ExitStack) -> Column:
    """A column of a pandas series, of any dtype."""
    pandas = sys.modules["pandas"]
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return _of_array(name, series.to_numpy())
    if isinstance(dtype, pandas.CategoricalDtype):
        return _of_categories(name, series)
    if isinstance(dtype, pandas.DatetimeTZDtype):
        return _of_array(name, series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    if isinstance(dtype, pandas.StringDtype):
        return name, "texts", 0, [series.to_numpy(dtype=object).tolist()]
    if hasattr(series.array, "__arrow_array__") and type(dtype).__name__ == "ArrowDtype":
        return _arrow.columns(series.array.__arrow_array__(), stack, name=name)[0]
    numpy_dtype = getattr(dtype, "numpy_dtype", None)
    if getattr(dtype, "kind", "O") in "biuf" and isinstance(numpy_dtype, np.dtype):
        valid = ~series.isna().to_numpy()
        filler = np.zeros((), dtype=numpy_dtype).item()
        return _of_array(name, series.array.to_numpy(dtype=numpy_dtype, na_value=filler), valid)
    # Periods, intervals and sparse columns.
    return name, "unreadable", 0, [len(series)]


def _is_text(text: str) -> bool:
    """Whether a string is a text: one with lone surrogates is not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_categories(name: str, series: Any) -> Column:
    places = series.cat.codes.to_numpy().astype(np.int64)
    categories = series.cat.categories
    if categories.dtype == object or type(categories.dtype).__name__ == "StringDtype":
        texts = [text if isinstance(text, str) and _is_text(text) else None for text in categories.tolist()]
        return name, "listed", 0, [(places, texts)]
    if not isinstance(categories.dtype, np.dtype):
        return name, "unreadable", 0, [len(places)]
    listed = categories.to_numpy()
    known = places >= 0
    values = np.zeros(len(places), dtype=listed.dtype)
    values[known] = listed[places[known]]
    return _of_array(name, values, known)
