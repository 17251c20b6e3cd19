"""Differentially private machine learning: a guarantee that is true, tight, paid for and checkable.

>>> import numpy as np
>>> import quell
>>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 2))
>>> ledger = quell.Ledger.in_memory("points", epsilon=3, delta=1e-6)
>>> model = quell.train(
...     X, X[:, 0] > 0, epsilon=1, ledger=ledger, bounds=(-1, 1), classes=[False, True], records=5000
... )
>>> mean = quell.Private({"x": X[:, 0]}, ledger=ledger).mean("x", bounds=(-1, 1), epsilon=0.5)
>>> abs(mean.value) < 0.1, ledger.spent < 1.6
(True, True)

`train`, `plan` and `resume` make a `Model`. `Private` answers questions. `Pate` and `PrivateKnn` label public records.
`quell.accounting` computes what anything costs, and `quell.estimators` has learners for scikit-learn.
"""

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
    StoppedError,
    UnsupportedError,
)
from .facts import find_schema
from .ledgers import Charge, Ledger
from .model import Model
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
    "StoppedError",
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
