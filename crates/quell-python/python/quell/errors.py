"""Exceptions of Quell. All of them are `QuellError`, and say what to try next in `hint`."""

from __future__ import annotations

__all__ = [
    "BudgetError",
    "DataError",
    "FileError",
    "LedgerError",
    "QuellError",
    "RunError",
    "SettingError",
    "StoppedError",
    "UnsupportedError",
]


class QuellError(Exception):
    """An error of Quell: what was found and what was expected, and a hint."""

    message: str
    """What was found, and what was expected."""
    hint: str | None
    """What to try next; `None` if the message says it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class SettingError(QuellError, ValueError):
    """A setting is invalid, or does not fit other settings."""


class UnsupportedError(QuellError):
    """No theorem covers what was asked, so there is no number."""


class DataError(QuellError, ValueError):
    """The shape, the columns or the declarations of the data do not fit. No record decides about this error."""


class FileError(QuellError, OSError):
    """A file or a folder cannot be read or written."""

    # OSError has a text of its own for two arguments.
    __str__ = QuellError.__str__


class RunError(QuellError):
    """The folder of a run cannot be used."""


class StoppedError(RunError):
    """A watcher stopped the run. What was paid for is kept, if the run has a folder."""


class LedgerError(QuellError):
    """A ledger cannot be used, or is not the one that was expected."""


class BudgetError(LedgerError):
    """The release would exceed the budget. Nothing was released or charged."""
