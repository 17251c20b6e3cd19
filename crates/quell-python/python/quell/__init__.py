"""Differentially private machine learning: a guarantee that is true, tight, paid for and checkable."""

from . import accounting
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
from .ledgers import Charge, Ledger

__all__ = [
    "BudgetError",
    "Charge",
    "DataError",
    "FileError",
    "Ledger",
    "LedgerError",
    "QuellError",
    "RunError",
    "SettingError",
    "UnsupportedError",
    "__version__",
    "accounting",
]
