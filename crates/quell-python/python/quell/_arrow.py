"""Columns of Arrow data, read through the Arrow PyCapsule interface without pyarrow.

The C structures are read with ctypes into numpy views. Nothing is copied here, except validity bits and booleans,
which are unpacked to bytes, and dictionaries. The views are valid while the `ExitStack` that is passed is open.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import DataError

Column = tuple[str, str, int, list[Any]]
"""A column for the native module: its name, its kind, units in a second of times, and its chunks."""


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

# The dtype of each Arrow format of plain numbers, and the kind of the column.
_PLAIN: dict[str, tuple[str, str]] = {
    "c": ("i1", "integers"),
    "s": ("i2", "integers"),
    "i": ("i4", "integers"),
    "l": ("i8", "integers"),
    "C": ("u1", "naturals"),
    "S": ("u2", "naturals"),
    "I": ("u4", "naturals"),
    "L": ("u8", "naturals"),
    "e": ("f2", "numbers"),
    "f": ("f4", "numbers"),
    "g": ("f8", "numbers"),
    "tdD": ("i4", "days"),
    "tts": ("i4", "times"),
    "ttm": ("i4", "times"),
    "ttu": ("i8", "times"),
    "ttn": ("i8", "times"),
}
_PER_SECOND = {"s": 1, "m": 1_000, "u": 1_000_000, "n": 1_000_000_000}
_MILLISECONDS_OF_A_DAY = 86_400_000

# The dtype in which the native module takes a kind.
_TAKEN: dict[str, type[np.generic]] = {
    "integers": np.int64,
    "naturals": np.uint64,
    "days": np.int64,
    "moments": np.int64,
    "times": np.int64,
    "truths": np.bool_,
}


def taken(kind: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Brings an array to the dtype and the alignment that the native module takes, without a copy if it has both."""
    dtype = _TAKEN.get(kind)
    if dtype is None:
        # Numbers: of single or double precision, in the byte order of the machine.
        double = values.dtype.itemsize not in (4, 8)
        dtype = np.float64 if double else np.dtype(f"f{values.dtype.itemsize}").type
    with np.errstate(all="ignore"):
        return np.require(values, dtype=dtype, requirements=["A"])


def columns(data: Any, stack: contextlib.ExitStack, *, name: str | None = None) -> list[Column]:
    """The columns of an object with `__arrow_c_stream__` or `__arrow_c_array__`.

    Data that is a single array is one column, which has the given name.
    """
    if hasattr(data, "__arrow_c_stream__"):
        schema, chunks = _stream(data.__arrow_c_stream__(), stack)
    else:
        schema, chunks = _single(data.__arrow_c_array__(), stack)
    if _text(schema.format) == "+s" and name is None:
        return [
            _column(_text(child.name), child, [_part(chunk, place) for chunk in chunks])
            for place, child in enumerate(_children(schema))
        ]
    if name is None:
        raise DataError("the Arrow data is one array, expected a table", "give a dict of columns with their names")
    return [_column(name, schema, [(chunk, chunk.offset, chunk.length, None) for chunk in chunks])]


# A chunk of a column: its array, the first cell, the number of cells, and which rows are valid.
_Chunk = tuple[_Array, int, int, "npt.NDArray[np.bool_] | None"]


def _stream(capsule: Any, stack: contextlib.ExitStack) -> tuple[_Schema, list[_Array]]:
    address = _pointer(capsule, b"arrow_array_stream")
    stream = ctypes.cast(address, ctypes.POINTER(_Stream))
    # The capsule releases the stream.
    stack.callback(lambda kept: None, capsule)
    schema = _Schema()
    if stream.contents.get_schema(stream, ctypes.byref(schema)) != 0:
        raise _broken()
    stack.callback(_release, schema)
    chunks: list[_Array] = []
    while True:
        array = _Array()
        if stream.contents.get_next(stream, ctypes.byref(array)) != 0:
            raise _broken()
        if not array.release:
            return schema, chunks
        stack.callback(_release, array)
        chunks.append(array)


def _single(capsules: tuple[Any, Any], stack: contextlib.ExitStack) -> tuple[_Schema, list[_Array]]:
    schema = _Schema.from_address(_pointer(capsules[0], b"arrow_schema") or 0)
    array = _Array.from_address(_pointer(capsules[1], b"arrow_array") or 0)
    stack.callback(lambda kept: None, capsules)
    return schema, [array]


def _broken() -> DataError:
    # The reason of the producer may hold a value.
    return DataError("the Arrow stream ended with an error, expected records to its end", "export the table again")


def _release(structure: Any) -> None:
    if structure.release:
        kind = ctypes.CFUNCTYPE(None, ctypes.POINTER(type(structure)))
        function: Callable[[Any], None] = kind(structure.release)
        function(ctypes.byref(structure))


def _text(text: bytes | None) -> str:
    return (text or b"").decode(errors="replace")


def _children(parent: Any) -> Iterator[Any]:
    for place in range(parent.n_children):
        yield parent.children[place].contents


def _part(parent: _Array, place: int) -> _Chunk:
    """A column of a struct: the rows of the struct, of the child."""
    child = parent.children[place].contents
    return child, child.offset + parent.offset, parent.length, _valid(parent, parent.offset, parent.length)


def _view(address: int | None, count: int, dtype: str) -> npt.NDArray[Any]:
    """The numbers at an address. They belong to the producer."""
    if not address or count <= 0:
        return np.zeros(0, dtype=dtype)
    size = count * np.dtype(dtype).itemsize
    bytes_ = memoryview((ctypes.c_uint8 * size).from_address(address)).cast("B")
    return np.frombuffer(bytes_, dtype=np.dtype(dtype), count=count)


def _bits(address: int | None, first: int, count: int) -> npt.NDArray[np.bool_]:
    bytes_ = _view(address, (first + count + 7) // 8, "u1")[first // 8 :]
    bits = np.unpackbits(bytes_, bitorder="little")[first % 8 : first % 8 + count]
    return bits.view(np.bool_)


def _valid(array: _Array, first: int, count: int) -> npt.NDArray[np.bool_] | None:
    if array.n_buffers == 0 or array.null_count == 0 or not array.buffers[0]:
        return None
    return _bits(array.buffers[0], first, count)


def _both(
    one: npt.NDArray[np.bool_] | None, other: npt.NDArray[np.bool_] | None
) -> npt.NDArray[np.bool_] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _column(name: str, schema: _Schema, chunks: list[_Chunk]) -> Column:
    """A column for the native module. Its kind follows from the format alone."""
    if schema.dictionary:
        return _dictionary(name, schema, chunks)
    kind, per_second, read = _reader(_text(schema.format))
    read_chunks: list[Any] = []
    for array, first, count, rows in chunks:
        if count == 0:
            continue
        if kind == "unreadable":
            read_chunks.append(count)
        else:
            valid = _both(_valid(array, first, count), rows)
            read_chunks.append((*read(array, first, count), valid))
    return name, kind, per_second, read_chunks


_Read = Callable[[_Array, int, int], tuple[Any, ...]]


def _reader(text: str) -> tuple[str, int, _Read]:
    """The kind of a format, its units in a second, and the function that reads the cells of a chunk."""
    plain = _PLAIN.get(text)
    if plain is not None:
        dtype, kind = plain
        per_second = _PER_SECOND[text[2]] if kind == "times" else 0

        def numbers(array: _Array, first: int, count: int) -> tuple[Any, ...]:
            return (taken(kind, _view(array.buffers[1], first + count, dtype)[first:]),)

        return kind, per_second, numbers
    if text == "b":
        return "truths", 0, lambda array, first, count: (_bits(array.buffers[1], first, count),)
    if text == "n":
        return "numbers", 0, lambda array, first, count: (np.full(count, np.nan),)
    if text == "tdm":
        return "days", 0, _milliseconds
    if text.startswith("ts") and text[2:3] in _PER_SECOND:
        # A time zone is only how a moment is shown: units count from 1970-01-01 00:00:00 UTC, as in Parquet files.
        def moments(array: _Array, first: int, count: int) -> tuple[Any, ...]:
            return (taken("moments", _view(array.buffers[1], first + count, "i8")[first:]),)

        return "moments", _PER_SECOND[text[2]], moments
    if text in ("u", "U"):
        return "utf8", 0, lambda array, first, count: _utf8(array, first, count, "i4" if text == "u" else "i8")
    if text == "vu":
        return "views", 0, _views
    if text.startswith("d:"):
        settings = [int(number) for number in text[2:].split(",")]
        bits = settings[2] if len(settings) > 2 else 128
        if bits <= 128:
            return "numbers", 0, lambda array, first, count: _decimals(array, first, count, bits, settings[1])
    # Lists, structs, intervals and bytes.
    return "unreadable", 0, lambda array, first, count: ()


def _milliseconds(array: _Array, first: int, count: int) -> tuple[Any, ...]:
    return (_view(array.buffers[1], first + count, "i8")[first:] // _MILLISECONDS_OF_A_DAY,)


def _utf8(array: _Array, first: int, count: int, dtype: str) -> tuple[Any, ...]:
    offsets = _view(array.buffers[1], first + count + 1, dtype)[first:]
    return np.require(offsets, dtype=np.int64, requirements=["A"]), _view(array.buffers[2], int(offsets[-1]), "u1")


def _views(array: _Array, first: int, count: int) -> tuple[Any, ...]:
    last = array.n_buffers - 1
    sizes = _view(array.buffers[last], last - 2, "i8")
    buffers = [_view(array.buffers[2 + place], int(size), "u1") for place, size in enumerate(sizes)]
    return _view(array.buffers[1], 16 * (first + count), "u1")[16 * first :], buffers


def _decimals(array: _Array, first: int, count: int, bits: int, scale: int) -> tuple[Any, ...]:
    if bits < 128:
        integers = _view(array.buffers[1], first + count, f"i{bits // 8}")[first:].astype(np.float64)
    else:
        halves = _view(array.buffers[1], 2 * (first + count), "u8")[2 * first :].reshape(-1, 2)
        low, high = np.ascontiguousarray(halves[:, 0]), np.ascontiguousarray(halves[:, 1]).view(np.int64)
        # Most decimals fit 64 bits, and then the upper half is the sign.
        is_short = high == (low.view(np.int64) >> 63)
        integers = np.where(is_short, low.view(np.int64).astype(np.float64), high * 2.0**64 + low)
    return (integers / 10.0**scale if scale >= 0 else integers * 10.0**-scale,)


def _dictionary(name: str, schema: _Schema, chunks: list[_Chunk]) -> Column:
    """A column whose cells are places in a list. If the list has texts, the places are kept."""
    list_schema = schema.dictionary.contents
    dtype, _ = _PLAIN[_text(schema.format)]
    kind, per_second, read = _reader(_text(list_schema.format))
    if list_schema.dictionary:
        kind = "unreadable"
    read_chunks: list[Any] = []
    for array, first, count, rows in chunks:
        if count == 0:
            continue
        if kind == "unreadable":
            read_chunks.append(count)
            continue
        places = _view(array.buffers[1], first + count, dtype)[first:].astype(np.int64)
        valid = _both(_valid(array, first, count), rows)
        places = places if valid is None else np.where(valid, places, -1)
        entries = array.dictionary.contents
        length = entries.length
        in_list = _valid(entries, entries.offset, length)
        parts = read(entries, entries.offset, length) if length else ()
        if kind in ("utf8", "views"):
            texts = (_decoded_utf8 if kind == "utf8" else _decoded_views)(*parts) if length else []
            known = in_list if in_list is not None else np.ones(length, dtype=np.bool_)
            read_chunks.append((places, [text if is_text else None for text, is_text in zip(texts, known)]))
        else:
            is_known = (places >= 0) & (places < length)
            values = np.zeros(count, dtype=parts[0].dtype if parts else taken(kind, np.zeros(0)).dtype)
            if parts:
                values[is_known] = parts[0][places[is_known]]
                if in_list is not None:
                    is_known[is_known] = in_list[places[is_known]]
            read_chunks.append((values, is_known))
    return name, "listed" if kind in ("utf8", "views") else kind, per_second, read_chunks


def _decoded_utf8(offsets: npt.NDArray[Any], data: npt.NDArray[Any]) -> list[str | None]:
    data_bytes = data.tobytes()
    return [_decoded(data_bytes[start:end]) for start, end in zip(offsets[:-1], offsets[1:])]


def _decoded_views(views: npt.NDArray[Any], buffers: list[npt.NDArray[Any]]) -> list[str | None]:
    texts = []
    for view in views.reshape(-1, 16):
        length, _, buffer, start = (int(number) for number in view.copy().view("<i4"))
        short = view[4 : 4 + length] if length <= 12 else buffers[buffer][start : start + length]
        texts.append(_decoded(short.tobytes()))
    return texts


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None
