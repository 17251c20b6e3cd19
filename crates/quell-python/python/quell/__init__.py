"""Differentially private machine learning: a guarantee that is true, tight, paid for and checkable."""

from . import accounting, data, mechanisms, statistics, votes
from ._native import __version__, models
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
from .facts import find_schema
from .ledgers import Charge, Ledger
from .models import Model
from .progress import Progress
from .receipts import Receipt
from .schemas import Schema
from .statistics import Answer, Answers, Private, Question
from .training import Plan, plan, resume, train
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
    "Model",
    "Pate",
    "Plan",
    "Private",
    "PrivateKnn",
    "Progress",
    "QuellError",
    "Question",
    "Receipt",
    "RunError",
    "Schema",
    "SettingError",
    "Table",
    "UnsupportedError",
    "__version__",
    "accounting",
    "data",
    "find_schema",
    "mechanisms",
    "models",
    "plan",
    "resume",
    "statistics",
    "train",
    "votes",
]
