"""Tables: every kind of input gives the same records, and no error depends on a cell."""

from __future__ import annotations

import array as buffers
import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quell
from quell.data import Table, array

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

LONG = "Zürich, a name of more than twelve bytes"
IDS = [1, 2, 2**63 - 1, 4, 5, 6]
AGES = [36.5, None, 17.0, 80.25, 41.0, 36.5]
CITIES = ["Bern", LONG, None, "Bern", "", LONG]
SMOKES = [True, False, None, True, False, True]
BORN = [dt.date(1984, 2, 29), None, dt.date(2003, 5, 17), dt.date(1940, 1, 1), dt.date(1969, 12, 31), None]
SEEN = [
    dt.datetime(2020, 1, 1, 12, 0, 0, 500000),
    dt.datetime(1969, 12, 31, 23, 59, 59),
    None,
    dt.datetime(2024, 2, 29),
    None,
    dt.datetime(2020, 1, 1, 12, 0, 0, 500000),
]
PLANS = ["basic", "full", "full", None, "basic", "basic"]

CONDITIONS = {
    "id = 2": 1,
    "id >= 5": 3,
    "age >= 36": 4,
    "age is missing": 1,
    "age = 36.5": 2,
    "city = 'Bern'": 2,
    f"city = '{LONG}'": 2,
    "smokes = 'true'": 3,
    "smokes = 'false'": 2,
    "smokes is missing": 1,
    "born = '1984-02-29'": 1,
    "born = '1969-12-31'": 1,
    "born is missing": 2,
    "seen = '2020-01-01 12:00:00.5'": 2,
    "seen = '1969-12-31 23:59:59'": 1,
    "seen = '2024-02-29 00:00:00'": 1,
    "seen is missing": 2,
    "plan = 'basic'": 3,
    "plan = 'full'": 2,
    "plan is missing": 1,
    f"age >= 36 and city = '{LONG}'": 1,
    "plan = 'basic' and smokes = 'true' and born is missing": 1,
}


def exact() -> quell.Ledger:
    """A ledger without a cap, for questions whose noise is too small to be seen."""
    return quell.Ledger.in_memory("test", epsilon=None, delta=1e-6)


def counts(table: Any, conditions: list[str] | None = None) -> dict[str, float]:
    conditions = list(CONDITIONS) if conditions is None else conditions
    questions = [quell.Question("count", where=condition) for condition in conditions]
    answers = quell.Private(table, ledger=exact()).ask(questions, epsilon=500.0 * len(questions))
    return {condition: answer.value for condition, answer in zip(conditions, answers)}


def arrow_table() -> Any:
    return pyarrow.table(
        {
            "id": pyarrow.array(IDS, pyarrow.int64()),
            "age": pyarrow.array(AGES, pyarrow.float64()),
            "city": pyarrow.array(CITIES, pyarrow.string()),
            "smokes": pyarrow.array(SMOKES, pyarrow.bool_()),
            "born": pyarrow.array(BORN, pyarrow.date32()),
            "seen": pyarrow.array(SEEN, pyarrow.timestamp("us")),
            "plan": pyarrow.array(PLANS, pyarrow.string()).dictionary_encode(),
        }
    )


def recast(**types: Any) -> Any:
    table = arrow_table()
    for name, kind in types.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table.column(name).cast(kind))
    return table


def in_chunks() -> Any:
    table = arrow_table()
    # Each chunk has a dictionary of its own, and begins inside of its buffers.
    again = pyarrow.table({**{name: table[name] for name in table.column_names[:-1]}, "plan": pyarrow.array(PLANS)})
    parts = []
    for first, count in [(0, 1), (1, 0), (1, 3), (4, 2)]:
        part = again.slice(first, count)
        place = part.schema.get_field_index("plan")
        parts.append(part.set_column(place, "plan", part["plan"].dictionary_encode()))
    return pyarrow.concat_tables(parts)


def in_slices() -> Any:
    twice = pyarrow.concat_tables([arrow_table(), arrow_table()]).combine_chunks()
    return twice.slice(6, 6)


class OfStruct:
    """One struct array, as a producer without tables exports it: `__arrow_c_array__` alone, with an offset."""

    def __init__(self) -> None:
        batch = pyarrow.concat_tables([arrow_table(), arrow_table()]).combine_chunks().to_batches()[0]
        self.struct = batch.to_struct_array().slice(6)

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.struct.__arrow_c_array__(requested_schema)


def numpy_columns() -> dict[str, Any]:
    missing = [smokes is None for smokes in SMOKES]
    return {
        "id": np.array(IDS, dtype=np.int64),
        "age": np.array([np.nan if age is None else age for age in AGES]),
        "city": np.array(CITIES, dtype=object),
        "smokes": np.ma.array([bool(smokes) for smokes in SMOKES], mask=missing),
        "born": np.array(BORN, dtype="M8[D]"),
        "seen": np.array(SEEN, dtype="M8[us]"),
        "plan": np.ma.array(np.array([str(plan) for plan in PLANS]), mask=[plan is None for plan in PLANS]),
    }


def pandas_frame() -> Any:
    return pandas.DataFrame(
        {
            "id": np.array(IDS, dtype=np.int64),
            "age": np.array([np.nan if age is None else age for age in AGES]),
            "city": pandas.Series(CITIES, dtype="string"),
            "smokes": pandas.Series(SMOKES, dtype="boolean"),
            "born": pandas.Series(BORN, dtype=object),
            "seen": pandas.Series(SEEN, dtype="datetime64[ns]"),
            "plan": pandas.Categorical(PLANS, categories=["none", "full", "basic"]),
        }
    )


def pandas_nullable() -> Any:
    frame = pandas_frame().astype({"id": "UInt64", "age": "Float64", "city": object, "plan": object})
    return frame.assign(seen=frame["seen"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"))


def structured() -> Any:
    columns = numpy_columns()
    fields = [("id", ">i8"), ("flag", "i1"), ("age", ">f8"), ("city", object), ("born", "M8[D]"), ("seen", "M8[ms]")]
    rows = np.zeros(len(IDS), dtype=fields)
    for name in ("id", "age", "city", "born", "seen"):
        rows[name] = columns[name]
    return rows


def polars_frame() -> Any:
    return polars.DataFrame(
        {"id": IDS, "age": AGES, "city": CITIES, "smokes": SMOKES, "born": BORN, "seen": SEEN, "plan": PLANS},
        schema_overrides={"id": polars.Int64, "plan": polars.Categorical},
    )


SOURCES: dict[str, Callable[[], Any]] = {
    "dict of numpy": numpy_columns,
    "dict of lists": lambda: {
        "id": IDS,
        "age": AGES,
        "city": CITIES,
        "smokes": SMOKES,
        "born": BORN,
        "seen": [None if seen is None else str(seen).replace(".500000", ".5") for seen in SEEN],
        "plan": PLANS,
    },
    "dict of series": lambda: {name: arrow_table()[name] for name in arrow_table().column_names},
    "dict of pandas": lambda: dict(pandas_frame().items()),
    "pandas": pandas_frame,
    "pandas nullable": pandas_nullable,
    "pandas arrow": lambda: arrow_table().to_pandas(types_mapper=pandas.ArrowDtype),
    "polars": polars_frame,
    "polars enum": lambda: polars_frame().with_columns(
        polars.col("plan").cast(polars.Enum(["none", "full", "basic"])), polars.col("seen").dt.cast_time_unit("ns")
    ),
    "pyarrow": arrow_table,
    "pyarrow in chunks": in_chunks,
    "pyarrow in slices": in_slices,
    "pyarrow reader": lambda: arrow_table().to_reader(),
    "struct array": OfStruct,
    "large strings": lambda: recast(city=pyarrow.large_string(), born=pyarrow.date64(), seen=pyarrow.timestamp("ns")),
    "string views": lambda: recast(city=pyarrow.string_view()),
    "other numbers": lambda: recast(age=pyarrow.decimal128(12, 3), seen=pyarrow.timestamp("ms", tz="Asia/Tokyo")),
    "single precision": lambda: recast(age=pyarrow.float32(), id=pyarrow.uint64()),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_records(source: str) -> None:
    assert counts(SOURCES[source]()) == CONDITIONS


def test_a_structured_array_gives_the_same_records() -> None:
    shared = [text for text in CONDITIONS if "smokes" not in text and "plan" not in text]
    assert counts(structured(), shared) == {text: CONDITIONS[text] for text in shared}


def test_files_give_the_same_records(tmp_path: Path) -> None:
    parquet.write_table(recast(plan=pyarrow.string()), tmp_path / "people.parquet")
    assert counts(tmp_path / "people.parquet") == CONDITIONS
    assert counts(str(tmp_path / "people.parquet")) == CONDITIONS
    rows = zip(IDS, AGES, CITIES, SMOKES, BORN, SEEN, PLANS)
    lines = ["id;age;city;smokes;born;seen;plan"]
    for row in rows:
        cells = ["" if cell is None else str(cell) for cell in row]
        lines.append(";".join([*cells[:3], cells[3].lower(), cells[4], cells[5].replace(".500000", ".5"), cells[6]]))
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert counts(tmp_path / "people.csv") == CONDITIONS
    written = (tmp_path / "people.csv").read_text(encoding="utf-8").split("\n", 1)[1].replace(";", "|")
    (tmp_path / "bare.csv").write_text(written, encoding="utf-8")
    bare = Table.open(tmp_path / "bare.csv", header=list(arrow_table().column_names), delimiter="|")
    assert counts(bare) == CONDITIONS and bare.file == "bare.csv"


def test_kinds_follow_from_declared_types() -> None:
    kinds = {
        "id": "number",
        "age": "number",
        "city": "text",
        "smokes": "boolean",
        "born": "text",
        "seen": "text",
        "plan": "text",
    }
    for source in SOURCES:
        expected = dict.fromkeys(kinds, "undeclared") if source == "dict of lists" else kinds
        assert Table(SOURCES[source]()).columns == expected, source
    odd = pyarrow.table({"list": [[1], [2]], "none": pyarrow.nulls(2), "bytes": [b"a", b"b"]})
    assert Table(odd).columns == {"list": "unreadable", "none": "number", "bytes": "unreadable"}
    frame = pandas.DataFrame({"wait": pandas.to_timedelta([1, 2], unit="s"), "half": np.zeros(2, dtype=np.float16)})
    assert Table(frame).columns == {"wait": "unreadable", "half": "number"}


HOSTILE: list[Any] = [None, 7, 1e400, float("nan"), b"x", "\ud800", "7", [1], {}, object(), 10**400, pandas.NaT, pandas.NA]


@pytest.mark.parametrize("cell", HOSTILE, ids=repr)
def test_no_cell_makes_an_error_or_a_kind(cell: Any) -> None:
    objects = np.empty(3, dtype=object)
    objects[:] = ["Bern", "Bern", "Basel"]
    objects[2] = cell
    tables = [Table({"x": objects}), Table({"x": ["Bern", "Bern", cell]}), Table({"x": pandas.Series(objects, dtype=object)})]
    for table, kind in zip(tables, ["text", "undeclared", "text"]):
        assert table.columns == {"x": kind}
        assert counts(table, ["x = 'Bern'"]) == {"x = 'Bern'": 2}
        ledger = exact()
        asked = quell.Private(table, ledger=ledger)
        if kind == "text":
            with pytest.raises(quell.DataError) as refused:
                asked.mean("x", bounds=(0, 1), epsilon=1)
            assert refused.value.message == 'column "x" contains text, expected numbers'
            assert ledger.charges == []
        else:
            # Nothing is declared, so whatever is no number is left out, as in a CSV file.
            assert asked.sum("x", bounds=(0, 1), epsilon=1e6).value == pytest.approx(
                1 if isinstance(cell, int) and cell == 7 else 0, abs=0.01
            )


def test_damaged_texts_are_missing() -> None:
    damaged = pyarrow.StringArray.from_buffers(2, pyarrow.array([0, 2, 4], pyarrow.int32()).buffers()[1], pyarrow.py_buffer(b"ok\xff\xfe"))
    assert counts({"x": damaged}, ["x = 'ok'", "x is missing"]) == {"x = 'ok'": 1, "x is missing": 1}


def test_a_table_owns_its_records() -> None:
    ages = np.array([30.0, 40.0])
    table = Table({"age": ages})
    ages[:] = 0
    assert counts(table, ["age >= 30"]) == {"age >= 30": 2}


def test_nothing_private_is_printed() -> None:
    table = Table({"age": np.array([31.25, 40.0]), "city": ["Bern", "Basel"]})
    assert repr(table) == "<quell.Table with the columns age (number), city (undeclared)>"
    assert "31.25" not in repr(quell.Private(table, ledger=exact()))


def test_a_schema_declares_columns(tmp_path: Path) -> None:
    schema = {"column": [{"name": "smokes", "boolean": True}, {"name": "age", "bounds": [0, 100], "unknown": None}]}
    answers = {"smokes": ["Yes", "no", "maybe"], "age": ["41", "x", "17"]}
    # Lists hold texts here, which are no numbers.
    table = Table({name: list(cells) for name, cells in answers.items()}, schema=schema)
    assert table.columns == {"smokes": "boolean", "age": "number"}
    assert table.schema is not None and table.schema["column"][1]["bounds"] == [0.0, 100.0]
    text = '[[column]]\nname = "smokes"\nboolean = true\n'
    (tmp_path / "schema.toml").write_text(text, encoding="utf-8")
    (tmp_path / "people.csv").write_text("smokes\nYes\nno\nmaybe\n", encoding="utf-8")
    declared = Table(tmp_path / "people.csv", schema=tmp_path / "schema.toml")
    assert counts(declared, ["smokes = 'true'", "smokes is missing"]) == {"smokes = 'true'": 1, "smokes is missing": 1}
    with pytest.raises(quell.DataError, match="invalid"):
        Table({"x": [1]}, schema={"columns": []})


@pytest.mark.parametrize("data", [[1, 2], 7, np.zeros((2, 2)), {"x": 7}, {"x": "text"}, {"x": np.float64(7)}], ids=repr)
def test_what_is_no_table_is_refused(data: Any) -> None:
    with pytest.raises(quell.DataError) as refused:
        Table(data)
    assert refused.value.hint or "array of cells" in refused.value.message


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(quell.DataError):
        Table({"a": [1, 2], "b": [1]})


def test_files_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(quell.FileError):
        Table(tmp_path / "nobody.csv")


def test_matrices_are_copied_only_if_their_layout_needs_it() -> None:
    singles, pixels = np.ones((3, 4), dtype=np.float32), np.ones((3, 4), dtype=np.uint8)
    for same in (singles, pixels):
        assert np.shares_memory(array(same), same) and array(same).dtype == same.dtype
        assert np.shares_memory(array(memoryview(same)), same)
        exchanged = array(polars.from_numpy(same).to_numpy(order="c"))
        assert np.array_equal(exchanged, same)
    for other in (np.ones((3, 4)), np.ones((3, 4), dtype=np.int64), np.ones((3, 4), dtype=bool), singles.T):
        converted = array(other)
        assert converted.dtype == np.float32 and converted.flags.c_contiguous
        assert np.array_equal(converted, other)
    assert array(buffers.array("d", [1.0, 2.0])).tolist() == [1.0, 2.0]
    assert array(pandas.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})).tolist() == [[1.0, 0.5], [2.0, 1.5]]
    assert np.isnan(array(np.ma.array([1.0, 2.0], mask=[False, True])))[1]
    # A number beyond single precision gives no warning: it would tell that there is one.
    assert array(np.array([1e300, np.nan]))[0] == np.inf


def test_a_missing_cell_does_not_change_the_type_of_a_matrix() -> None:
    frames = [
        [pandas.DataFrame({"a": pandas.array(cells, dtype="Int64"), "b": [0.5, 1.5]}) for cells in ([1, 2], [1, None])],
        [pandas.Series(cells, dtype="boolean") for cells in ([True, False], [True, None])],
        [polars.DataFrame({"a": cells}, schema={"a": polars.UInt8}) for cells in ([1, 2], [1, None])],
        [polars.Series(cells, dtype=polars.Boolean) for cells in ([True, False], [True, None])],
        [pyarrow.table({"a": pyarrow.array(cells, pyarrow.uint8())}) for cells in ([1, 2], [1, None])],
        [pyarrow.array(cells, pyarrow.int32()) for cells in ([1, 2], [1, None])],
        [np.ma.array([1, 2], mask=mask) for mask in ([False, False], [False, True])],
    ]
    for whole, with_gap in frames:
        one, other = array(whole), array(with_gap)
        assert (one.dtype, one.shape) == (other.dtype, other.shape) == (np.float32, one.shape)
        assert one.ravel()[0] == other.ravel()[0] == 1 and np.isnan(other.reshape(len(other), -1)[1, 0])
    for texts in (pandas.DataFrame({"a": ["x"]}), polars.DataFrame({"a": ["x"]}), pyarrow.array(["x"])):
        with pytest.raises(quell.DataError, match="no numbers"):
            array(texts)


def test_hostile_categories_and_moments_are_missing() -> None:
    odd = pandas.Series(pandas.Categorical.from_codes([0, 1, -1], pandas.Index(["a", "\ud800"], dtype=object)))
    assert counts({"x": odd}, ["x = 'a'", "x is missing"]) == {"x = 'a'": 1, "x is missing": 2}
    numbers = pandas.Series(pandas.Categorical([3, 7, None]))
    assert Table({"x": numbers}).columns == {"x": "number"}
    assert counts({"x": numbers}, ["x >= 7", "x is missing"]) == {"x >= 7": 1, "x is missing": 1}
    for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs"):
        moments = np.array([0, 2**62, -(2**62), -(2**63)], dtype=np.int64).view(f"M8[{unit}]")
        table = Table({"x": moments})
        assert table.columns == {"x": "text"}
        assert counts(table, ["x = '1970-01-01' or x = '1970-01-01 00:00:00'"]).popitem()[1] >= 1


class OnDevice:
    """A tensor by DLPack alone."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __dlpack__(self, **settings: Any) -> Any:
        return self.values.__dlpack__(**settings)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


def test_tensors_come_in_by_dlpack_without_a_copy() -> None:
    values = np.ones((2, 3), dtype=np.float32)
    assert np.shares_memory(array(OnDevice(values)), values)
    assert counts({"x": OnDevice(np.array([1.0, 2.0]))}, ["x >= 2"]) == {"x >= 2": 1}


@pytest.mark.parametrize("x", [[[1.0]], "text", b"bytes", np.array(["a"]), np.array([None]), {}, 7], ids=repr)
def test_what_declares_no_numbers_is_no_matrix(x: Any) -> None:
    with pytest.raises(quell.DataError) as refused:
        array(x)
    assert refused.value.hint
