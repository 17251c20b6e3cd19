"""Ledgers: the privacy budget of a dataset, what was spent of it, and what is promised."""

from __future__ import annotations

import dataclasses
import getpass
import html
import json
import math
import os
from typing import Any, Literal

from . import _native
from .errors import LedgerError

__all__ = ["Charge", "Ledger", "Neighbors", "Unit"]

Neighbors = Literal["add_remove", "replace"]
"""When two datasets are neighbours: one record is added or removed, or one record is replaced by another."""
Unit = Literal["example", "user"]
"""Who is protected: one record, or one person with all their records."""
Composition = Literal["combined", "gaussian", "renyi", "addition"]

_PLACE = "QUELL_LEDGER"


def place(at: str | os.PathLike[str] | None) -> str:
    """Where ledgers are: the argument, or the variable `QUELL_LEDGER`, or `.quell`."""
    return os.fspath(at) if at is not None else os.environ.get(_PLACE) or ".quell"


def author() -> str | None:
    """Who makes a charge: the variable `QUELL_USER`, or the name of the user. Empty means nobody."""
    named = os.environ.get("QUELL_USER")
    if named is not None:
        return named.strip() or None
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


@dataclasses.dataclass(frozen=True)
class Charge:
    """A line of a ledger that paid for a release."""

    entry: int
    """The number of the line."""
    what: str
    """The mechanism, in words."""
    steps: int
    """How often the mechanism runs."""
    event: dict[str, Any]
    """The privacy event of all runs together."""
    leased: int
    """How many runs were handed out. They count as run."""


class Ledger:
    """The ledger of one dataset: a budget, and every charge against it.

    Make one with `Ledger.create`, `Ledger.open`, `Ledger.open_or_create` or `Ledger.in_memory`. A charge is on the
    disk before anything is released, and it is never given back. Several processes may use one ledger.

    >>> ledger = Ledger.in_memory("survey", epsilon=1, delta=1e-6)
    >>> ledger
    <quell.Ledger "survey" in memory: ε 0 of 1 is spent, at δ = 1e-06>
    >>> ledger.remaining
    1.0
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Ledger) -> None:
        """Wraps a native ledger. Use `create`, `open`, `open_or_create` or `in_memory` instead."""
        self._native = native

    @classmethod
    def create(
        cls,
        dataset: str,
        *,
        epsilon: float | None,
        delta: float,
        unit: Unit = "example",
        neighbors: Neighbors = "add_remove",
        composition: Composition = "combined",
        at: str | os.PathLike[str] | None = None,
    ) -> Ledger:
        """Creates the ledger of a dataset.

        `epsilon` is the most that all releases together may cost, at `delta`. `None` sets no cap, and nothing is
        promised then. `at` is a folder, a file or the address of a PostgreSQL server; the default is the variable
        `QUELL_LEDGER`, or `.quell`.
        """
        terms = _terms(dataset, epsilon, delta, unit, neighbors, composition)
        return cls(_native.Ledger.create(terms, place(at), author()))

    @classmethod
    def open(cls, dataset: str, *, at: str | os.PathLike[str] | None = None) -> Ledger:
        """Opens the ledger of a dataset, and checks every line of it."""
        return cls(_native.Ledger.existing(dataset, place(at)))

    @classmethod
    def open_or_create(
        cls,
        dataset: str,
        *,
        epsilon: float | None,
        delta: float,
        unit: Unit = "example",
        neighbors: Neighbors = "add_remove",
        composition: Composition = "combined",
        at: str | os.PathLike[str] | None = None,
    ) -> Ledger:
        """Opens the ledger of a dataset, or creates it with this budget.

        The budget of a ledger that exists stays as it is. A ledger with other neighbours or another unit is refused.
        """
        if not _native.Ledger.exists(dataset, place(at)):
            try:
                return cls.create(
                    dataset,
                    epsilon=epsilon,
                    delta=delta,
                    unit=unit,
                    neighbors=neighbors,
                    composition=composition,
                    at=at,
                )
            except LedgerError:
                # Another process may have created it in the meantime.
                if not _native.Ledger.exists(dataset, place(at)):
                    raise
        ledger = cls.open(dataset, at=at)
        if (ledger.unit, ledger.neighbors) != (unit, neighbors):
            raise LedgerError(
                f"the ledger of {dataset!r} protects one {ledger.unit} under {ledger.neighbors}, "
                f"expected one {unit} under {neighbors}",
                "ask for the unit and the neighbours of the ledger, or use another dataset name for other data",
            )
        return ledger

    @classmethod
    def in_memory(
        cls,
        dataset: str = "records",
        *,
        epsilon: float | None,
        delta: float,
        unit: Unit = "example",
        neighbors: Neighbors = "add_remove",
        composition: Composition = "combined",
    ) -> Ledger:
        """Creates a ledger that ends with the program: for tests, notebooks and public data."""
        return cls(_native.Ledger.create(_terms(dataset, epsilon, delta, unit, neighbors, composition), None, None))

    @property
    def dataset(self) -> str:
        """The name of the dataset."""
        return self._native.dataset

    @property
    def location(self) -> str | None:
        """Where the ledger is stored, without passwords; `None` if it is in memory."""
        return self._native.location

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        unit: Unit = self._state()["terms"]["unit"]
        return unit

    @property
    def neighbors(self) -> Neighbors:
        """The relation between neighbouring datasets."""
        neighbors: Neighbors = self._state()["terms"]["neighbors"]
        return neighbors

    @property
    def epsilon(self) -> float:
        """The most that all releases together may cost; infinite if there is no cap."""
        cap = self._state()["budget"]["epsilon"]
        return float("inf") if cap is None else float(cap)

    @property
    def delta(self) -> float:
        """δ of the budget."""
        return float(self._state()["budget"]["delta"])

    @property
    def spent(self) -> float:
        """ε of all releases so far; infinite if there is no bound."""
        return _spent(self._state())

    @property
    def remaining(self) -> float:
        """The cap less the spent ε. A release may cost less than its ε alone, because charges compose."""
        return max(self.epsilon - self.spent, 0.0)

    @property
    def charges(self) -> list[Charge]:
        """All charges, in their order."""
        return [
            Charge(
                entry=account["entry"],
                what=account["charge"]["what"],
                steps=account["charge"]["steps"],
                event=account["charge"]["plan"]["event"],
                leased=account["leased"],
            )
            for account in self._state()["charges"]
        ]

    def statement(self) -> str:
        """The promise of the ledger, in sentences."""
        return self._native.statement()

    def set_budget(self, *, epsilon: float | None, delta: float | None = None, reason: str) -> None:
        """Sets another budget. What was spent stays spent, and the reason is kept for the auditor."""
        self._native.set_budget(epsilon, self.delta if delta is None else delta, reason, author())

    def __repr__(self) -> str:
        state = self._state()
        where = "in memory" if self.location is None else f"at {self.location}"
        return f"<quell.Ledger {json.dumps(self.dataset, ensure_ascii=False)} {where}: {_balance(state)}>"

    def _repr_html_(self) -> str:
        state = self._state()
        rows = "".join(
            f"<tr><td>{account['entry']}</td><td>{html.escape(account['charge']['what'])}</td>"
            f"<td>{account['charge']['steps']}</td></tr>"
            for account in state["charges"]
        )
        return (
            f"<div><strong>{html.escape(self.dataset)}</strong>: {html.escape(_balance(state))}"
            f"<table><thead><tr><th>line</th><th>charge</th><th>runs</th></tr></thead><tbody>{rows}</tbody></table></div>"
        )

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: object) -> Ledger:
        # A copy would forget what the original pays for: estimators that are cloned share their ledger.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._native.place is None:
            raise LedgerError(
                "a ledger in memory cannot be pickled: its copy would have a budget of its own",
                "use Ledger.create, which several processes can share",
            )
        return (_reopen, (self.dataset, self._native.place))

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self._native.state())
        return state


def default_delta(records: int | None) -> float:
    """δ where none is given: a tenth of a record, rounded down to a power of ten; a millionth of an unknown number.

    >>> default_delta(1000), default_delta(1001)
    (0.0001, 1e-05)
    """
    return 1e-6 if records is None else 10.0 ** -max(2, math.ceil(math.log10(10 * max(records, 1))))


def _reopen(dataset: str, at: str) -> Ledger:
    return Ledger.open(dataset, at=at)


def _terms(
    dataset: str, epsilon: float | None, delta: float, unit: str, neighbors: str, composition: str
) -> str:
    budget = {"epsilon": epsilon, "delta": delta}
    return json.dumps(
        {
            "dataset": dataset,
            "unit": unit,
            "neighbors": neighbors,
            "budget": budget,
            "composition": composition,
        }
    )


def _spent(state: dict[str, Any]) -> float:
    return float("inf") if state["spent"] is None else float(state["spent"])


def _balance(state: dict[str, Any]) -> str:
    cap, delta = state["budget"]["epsilon"], state["budget"]["delta"]
    of = "without a cap" if cap is None else f"of {cap:g}"
    return f"ε {_spent(state):.4g} {of} is spent, at δ = {delta:g}"
