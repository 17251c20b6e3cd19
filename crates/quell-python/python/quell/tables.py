"""What is a table, and its columns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from . import _native
from .data import Table

__all__ = ["columns_of", "is_table", "native_table"]


def is_table(X: Any) -> bool:
    """Whether records have columns with names: a data frame, an Arrow table, a dict, or the path of a file."""
    # Some sparse matrices are dicts, too.
    named = isinstance(X, (Mapping, Table, str, os.PathLike)) or hasattr(X, "columns") or hasattr(X, "__arrow_c_stream__")
    return named and not hasattr(X, "nnz")


def columns_of(X: Any) -> dict[str, Any]:
    """The columns of a table by their names."""
    if isinstance(X, Mapping):
        return {str(name): column for name, column in X.items()}
    # An Arrow table calls its names otherwise.
    names = getattr(X, "column_names", None)
    names = X.columns if names is None else names
    return {str(name): X[name] for name in names}


def native_table(X: Any) -> _native.Table:
    """The records of a table, copied once."""
    return Table(X)._native
