"""Differentially private machine learning: a guarantee that is true, tight, paid for and checkable."""

from ._native import __version__, models
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
from .facts import find_schema
from .ledgers import Charge, Ledger
from .models import Model
from .progress import Progress
from .schemas import Schema
from .training import Plan, plan, resume, train

__all__ = [
    "BudgetError",
    "Charge",
    "DataError",
    "FileError",
    "Ledger",
    "LedgerError",
    "Model",
    "Plan",
    "Progress",
    "QuellError",
    "RunError",
    "Schema",
    "SettingError",
    "UnsupportedError",
    "__version__",
    "find_schema",
    "models",
    "plan",
    "resume",
    "train",
    "accounting",
]
