"""Differentially private machine learning: a guarantee that is true, tight, paid for and checkable."""

from . import data, mechanisms, statistics, votes
from ._native import __version__
from .data import Table
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
from .receipts import Receipt
from .statistics import Answer, Answers, Private, Question
from .votes import Labels, Pate, PrivateKnn

__all__ = [
    "Answer",
    "Answers",
    "BudgetError",
    "Charge",
    "DataError",
    "FileError",
    "Labels",
    "Ledger",
    "LedgerError",
    "Pate",
    "Private",
    "PrivateKnn",
    "QuellError",
    "Question",
    "Receipt",
    "RunError",
    "SettingError",
    "Table",
    "UnsupportedError",
    "__version__",
    "data",
    "mechanisms",
    "statistics",
    "votes",
]
