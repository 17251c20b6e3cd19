"""Receipts: which line of which ledger paid for a release."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

__all__ = ["Receipt"]


@dataclasses.dataclass(frozen=True)
class Receipt:
    """The line of a ledger that paid for a release. Keep it with the release."""

    dataset: str
    """The name of the dataset."""
    entry: int
    """The number of the line."""
    head: str
    """The head of the hash chain after that line, in hexadecimal."""
    ledger: str | None = None
    """The public key of the ledger, in hexadecimal."""

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Receipt:
        """A receipt from the JSON of the library."""
        return cls(found["dataset"], int(found["entry"]), found["head"], found.get("ledger"))
