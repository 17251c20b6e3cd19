"""Writes one small table of people with three libraries, for crates/quell/tests/parquet.rs to read.

    pip install pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.0 && python golden/tables/make.py
"""

import datetime
import decimal
import pathlib

import duckdb
import polars
import pyarrow
import pyarrow.parquet

folder = pathlib.Path(__file__).parent
people = pyarrow.table({
    "name": pyarrow.array(["Ada", "Bob", None, "Zoë"]),
    "age": pyarrow.array([36, None, 17, 41], pyarrow.uint8()),
    "income": pyarrow.array([5000.5, float("nan"), None, 1e9], pyarrow.float64()),
    "price": pyarrow.array([decimal.Decimal(text) for text in ["1.25", "0.00", "-0.01", "1234567.89"]], pyarrow.decimal128(9, 2)),
    "born": pyarrow.array(
        [datetime.date(1987, 12, 10), None, datetime.date(2008, 2, 29), datetime.date(1899, 3, 1)], pyarrow.date32()
    ),
    "seen": pyarrow.array(
        [datetime.datetime(2024, 2, 29, 23, 59, 59, 500000), None, datetime.datetime(1969, 12, 31, 23), datetime.datetime(2000, 1, 1)],
        pyarrow.timestamp("us"),
    ),
    "smoker": pyarrow.array([True, False, None, True]),
    "home": pyarrow.array([{"city": "Bern"}, {"city": None}, None, {"city": "Basel"}]),
    "tags": pyarrow.array([[1], [2, 3], [], None], pyarrow.list_(pyarrow.int32())),
})

# Each with its own default compression and encodings; pyarrow in two row groups.
pyarrow.parquet.write_table(people, folder / "pyarrow.parquet", row_group_size=3)
polars.from_arrow(people).write_parquet(folder / "polars.parquet")
duckdb.sql(f"copy people to '{folder / 'duckdb.parquet'}' (format parquet)")
