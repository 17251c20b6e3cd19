"""Differentially private machine learning: a guarantee that is true, tight, paid for and checkable."""

from ._native import __version__
from .errors import (
    BudgetError,
    DataError,
    FileError,
    LedgerError,
    QuellError,
    RunError,
    SettingError,
    UnsupportedError,
)

__all__ = [
    "BudgetError",
    "DataError",
    "FileError",
    "LedgerError",
    "QuellError",
    "RunError",
    "SettingError",
    "UnsupportedError",
    "__version__",
]
