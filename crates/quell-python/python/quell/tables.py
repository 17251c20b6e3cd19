from __future__ import annotations
from typing import Any
import numpy as np
from . import _native


def is_table(X: Any) -> bool:
    # Some sparse matrices are dicts, too.
    return not hasattr(X, "nnz") and (isinstance(X, dict) or hasattr(X, "columns") or isinstance(X, _native.Table))


def native_table(X: Any) -> _native.Table:
    if isinstance(X, _native.Table):
        return X
    names = list(X) if isinstance(X, dict) else list(X.columns)
    cells = []
    for name in names:
        column = np.asarray(X[name])
        if column.dtype.kind in "biuf":
            cells.append((str(name), column.astype(np.float64).tolist()))
        else:
            cells.append((str(name), [None if v is None or v != v else str(v) for v in column]))
    return _native.Table.of_columns(cells)
