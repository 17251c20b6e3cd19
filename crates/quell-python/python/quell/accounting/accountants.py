"""Accountants: bounds on ε and δ of an event, each with its theorem."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from typing import Literal

from .. import _native
from ..errors import SettingError, UnsupportedError
from ..ledgers import Neighbors
from .bounds import Bound
from .events import Event, text

__all__ = [
    "ACCOUNTANTS",
    "Accountant",
    "Comparison",
    "compare",
    "delta",
    "epsilon",
    "group_epsilon",
    "renyi_divergence",
]

Accountant = Literal[
    "best",
    "pld",
    "rdp",
    "rdp-classic",
    "moments",
    "fourier",
    "closed",
    "basic",
    "advanced",
    "optimal",
    "clt",
]
"""Names of accountants. `best` is the least upper bound of several."""

ACCOUNTANTS: Mapping[str, str] = dict(_native.accountants())
"""All accountants by name, each with its theorem."""


def epsilon(
    event: Event,
    *,
    delta: float,
    neighbors: Neighbors = "add_remove",
    accountant: Accountant = "best",
    tightness: float | None = None,
) -> Bound:
    """Bounds the least ε for which an event is (ε, δ)-DP.

    `accountant` names one method; `best` is the least upper bound of all that apply. `tightness` is the width of the
    interval of privacy loss distributions, relative to ε; a wider interval is still valid.

    >>> from quell.accounting import Gaussian
    >>> epsilon(Gaussian(2), delta=1e-5)
    <Bound 1.993 ≤ ε ≤ 1.994 by closed>
    >>> epsilon(Gaussian(2), delta=1e-5, neighbors="replace").upper > 4.37
    True
    """
    return _bound("ε", _native.epsilon(text(event), neighbors, _number("delta", delta), _named(accountant), tightness))


def delta(
    event: Event,
    *,
    epsilon: float,
    neighbors: Neighbors = "add_remove",
    accountant: Accountant = "best",
    tightness: float | None = None,
) -> Bound:
    """Bounds the least δ for which an event is (ε, δ)-DP.

    >>> from quell.accounting import Laplace
    >>> delta(Laplace(1), epsilon=0.5)
    <Bound 0.2211 ≤ δ ≤ 0.2212 by closed>
    """
    return _bound("δ", _native.delta(text(event), neighbors, _number("epsilon", epsilon), _named(accountant), tightness))


class Comparison(Mapping[str, "Bound | UnsupportedError"]):
    """The answers of several accountants by name: a bound, or the error of an accountant without a theorem."""

    def __init__(self, answers: Mapping[str, Bound | UnsupportedError]) -> None:
        self._answers = dict(answers)

    @property
    def claim(self) -> Bound:
        """The least upper bound that may be claimed."""
        claimable = [bound for bound in self._answers.values() if isinstance(bound, Bound) and bound.claimable]
        if not claimable:
            raise UnsupportedError("all of these numbers are estimates, so nothing can be claimed")
        return min(claimable, key=lambda bound: bound.upper)

    def __getitem__(self, accountant: str) -> Bound | UnsupportedError:
        return self._answers[accountant]

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)

    def __repr__(self) -> str:
        wide = max(map(len, self._answers), default=0)
        return "\n".join(f"{name:{wide}}  {answer}" for name, answer in self._rows())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{html.escape(answer)}</td></tr>" for name, answer in self._rows()
        )
        return f"<table><thead><tr><th>accountant</th><th>answer</th></tr></thead><tbody>{rows}</tbody></table>"

    def _rows(self) -> list[tuple[str, str]]:
        return [
            (name, str(answer) if isinstance(answer, Bound) else answer.message) for name, answer in self._answers.items()
        ]


def compare(
    event: Event,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    neighbors: Neighbors = "add_remove",
    accountants: tuple[Accountant, ...] | list[Accountant] | None = None,
    tightness: float | None = None,
) -> Comparison:
    """Asks several accountants for ε at `delta`, or for δ at `epsilon`. The default is all of them.

    >>> from quell.accounting import dp_sgd
    >>> compare(dp_sgd(noise_multiplier=1.1, sampling_rate=0.01, steps=100), delta=1e-5, accountants=["pld", "rdp"])
    pld  0.5496 ≤ ε ≤ 0.5499
    rdp  0 ≤ ε ≤ 0.9561
    """
    if (delta is None) == (epsilon is None):
        raise SettingError("give either delta or epsilon", "with delta the answers are ε, with epsilon they are δ")
    answers: dict[str, Bound | UnsupportedError] = {}
    for name in ACCOUNTANTS if accountants is None else accountants:
        try:
            if delta is not None:
                answer = _native.epsilon(text(event), neighbors, _number("delta", delta), _named(name), tightness)
            else:
                answer = _native.delta(text(event), neighbors, _number("epsilon", epsilon), _named(name), tightness)
            answers[name] = _bound("ε" if epsilon is None else "δ", answer)
        except UnsupportedError as error:
            answers[name] = error
    return Comparison(answers)


def group_epsilon(
    event: Event,
    *,
    delta: float,
    size: int,
    neighbors: Neighbors = "add_remove",
    tightness: float | None = None,
) -> Bound:
    """Bounds ε for groups of `size` records, from the privacy profile of one record.

    >>> from quell.accounting import Laplace
    >>> print(group_epsilon(Laplace(2), delta=1e-6, size=3))
    0 ≤ ε ≤ 1.501
    """
    if not 1 <= size <= 0xFFFF_FFFF:
        raise SettingError(f"size is {size}, expected a whole number of at least one")
    upper = _native.group_epsilon(text(event), neighbors, _number("delta", delta), size, tightness)
    return Bound(0.0, upper, "group privacy from the privacy profile [Vad17, Lemma 2.2]", True, "group")


def renyi_divergence(event: Event, *, order: float, neighbors: Neighbors = "add_remove") -> Bound:
    """Bounds the Rényi divergence of an order above one from above.

    >>> from quell.accounting import Gaussian
    >>> print(renyi_divergence(Gaussian(2), order=4))
    0 ≤ ε(α) ≤ 0.5001
    """
    (upper,) = _native.renyi_divergences(text(event), neighbors, [_number("order", order)])
    return Bound(0.0, upper, "Rényi divergences add [Mir17, Proposition 1]", True, "rdp", "ε(α)")


def _bound(what: str, answer: tuple[str, float, float, str, bool]) -> Bound:
    name, lower, upper, theorem, claimable = answer
    return Bound(lower, upper, theorem, claimable, name, what)


def _named(accountant: str) -> str | None:
    return None if accountant == "best" else accountant


def _number(name: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise SettingError(f"{name} is of type {type(value).__name__}, expected a number") from None
