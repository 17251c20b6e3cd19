"""Intervals that contain a true value."""

from __future__ import annotations

import dataclasses
import decimal
import math

from .. import _native
from ..errors import UnsupportedError

__all__ = ["Bound"]

_DIGITS = 4


@dataclasses.dataclass(frozen=True, repr=False)
class Bound:
    """An interval that contains the true value. Only the upper end may be claimed.

    `float(bound)` is the upper end, and formatting rounds it up. Both are refused for an estimate, which may not be
    claimed: read its `lower` and `upper` instead.

    >>> from quell.accounting import dp_sgd, epsilon
    >>> bound = epsilon(dp_sgd(noise_multiplier=1.1, sampling_rate=0.01, steps=10_000), delta=1e-5)
    >>> bound
    <Bound 5.189 ≤ ε ≤ 5.194 by pld>
    >>> f"{bound:.2f}"
    '5.20'
    >>> float(bound) == bound.upper
    True
    """

    lower: float
    """Rounded down: shows how tight the upper end is."""
    upper: float
    """Rounded up: may be claimed, if `claimable`."""
    theorem: str
    """The theorem behind the upper end, or why the numbers are estimates."""
    claimable: bool
    """False for estimates."""
    accountant: str
    """The name of the accountant."""
    what: str = "ε"
    """What is bounded, for texts."""

    @property
    def width(self) -> float:
        """How far the ends are apart; zero if both are infinite."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def __float__(self) -> float:
        self._claimed()
        return self.upper

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        self._claimed()
        if math.isinf(self.upper):
            return format(self.upper, spec)
        with decimal.localcontext() as context:
            context.rounding = decimal.ROUND_CEILING
            return format(decimal.Decimal(repr(self.upper)), spec)

    def __str__(self) -> str:
        lower = _native.rounded_text(self.lower, _DIGITS, False)
        upper = _native.rounded_text(self.upper, _DIGITS, True)
        words = f"{lower} ≤ {self.what} ≤ {upper}"
        return words if self.claimable else f"{words}, an estimate"

    def __repr__(self) -> str:
        return f"<Bound {self} by {self.accountant}>"

    def _claimed(self) -> None:
        if not self.claimable:
            raise UnsupportedError(
                f"{self.accountant} gives an estimate of {self.what}, which cannot be claimed",
                'use accountant="best" for a bound, or read the attributes lower and upper',
            )
