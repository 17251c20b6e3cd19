"""Attacks: how well the best attacker tells whether a record was used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _native
from ..errors import SettingError
from ..ledgers import Neighbors
from .bounds import Bound
from .curves import Curves, Series
from .events import Event, text

__all__ = ["TradeOff"]

_THEOREM = "the trade-off function is dual to the privacy profile [DRS22, Proposition 2.12]"


class TradeOff:
    """The power of the best attack on an event: true positives against false positives.

    The event is composed once, and then answers many questions.

    >>> from quell.accounting import dp_sgd
    >>> attack = TradeOff(dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=1000))
    >>> attack.power(0.01)
    <Bound 0.02913 ≤ true-positive rate ≤ 0.02915 by pld>
    """

    __slots__ = ("_event", "_native", "_neighbors", "_tightness")

    def __init__(
        self, event: Event, *, neighbors: Neighbors = "add_remove", tightness: float | None = None
    ) -> None:
        self._event, self._neighbors, self._tightness = event, neighbors, tightness
        self._native = _native.TradeOff(text(event), neighbors, tightness)

    @property
    def event(self) -> Event:
        """The event that is attacked."""
        return self._event

    @property
    def neighbors(self) -> Neighbors:
        """What the attacker tells apart."""
        return self._neighbors

    def power(self, false_positive_rate: float) -> Bound:
        """Bounds the true-positive rate of the best attack at a false-positive rate."""
        ((lower, upper),) = self._native.powers([_rate(false_positive_rate)])
        return Bound(lower, upper, _THEOREM, True, "pld", "true-positive rate")

    def powers(
        self, false_positive_rates: Iterable[float]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Lower and upper bounds on the true-positive rates at many false-positive rates."""
        ends = np.array(self._native.powers([_rate(rate) for rate in false_positive_rates]), dtype=np.float64)
        ends = ends.reshape(-1, 2)
        return ends[:, 0], ends[:, 1]

    def gaussian(self, *, slack: float = 1e-9) -> Bound:
        """Bounds the least μ of Gaussian privacy, up to outcomes of probability `slack`."""
        lower, upper = self._native.gaussian(slack)
        return Bound(lower, upper, "δ(ε) ≤ δ_μ(ε) + slack for every ε [DRS22]", True, "pld", "μ")

    def curve(self, *, points: int = 201) -> Curves:
        """The least false-negative rate of any attack over its false-positive rate.

        Here the lower end may be claimed: no attack misses fewer records.
        """
        if points < 2:
            raise SettingError(f"points is {points}, expected at least two")
        # Points are dense at both ends, where the curve bends.
        t = np.linspace(0.0, 1.0, points)
        rates = np.clip(t * t * (3.0 - 2.0 * t), 0.0, 1.0)
        lower, upper = self.powers(rates)
        guessing = np.linspace(0.0, 1.0, 51)
        return Curves(
            title="Error rates of the best attack",
            x_label="false-positive rate α",
            y_label="false-negative rate β",
            series=(
                Series("least false-negative rate of any attack", rates, 1.0 - upper, 1.0 - lower, claim="lower"),
                Series("random guessing", guessing, 1.0 - guessing, 1.0 - guessing, claim="lower"),
            ),
        )

    def plot(self, ax: Any = None) -> Any:
        """Plots the curve with matplotlib, and returns the axes."""
        return self.curve().plot(ax)

    def __repr__(self) -> str:
        return f"TradeOff({self._event!r}, neighbors={self._neighbors!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (self._event, self._neighbors, self._tightness))


def _again(event: Event, neighbors: Neighbors, tightness: float | None) -> TradeOff:
    return TradeOff(event, neighbors=neighbors, tightness=tightness)


def _rate(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise SettingError(
            f"the false-positive rate is of type {type(value).__name__}, expected a number in [0, 1]"
        ) from None
