"""Calibration: the least noise, the most steps or the largest rate that meets a target."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, Literal

from .. import _native
from ..errors import SettingError
from ..ledgers import Neighbors
from .bounds import Bound
from .events import Event, dp_sgd, text

__all__ = ["Calibrated", "calibrate", "calibrate_dp_sgd", "gaussian_noise"]

Find = Literal[
    "noise_multiplier",
    "deviation",
    "scale",
    "randomized",
    "records",
    "sensitivity",
    "choices",
    "epsilon",
    "delta",
    "rho",
    "rate",
    "sampling_rate",
    "batch",
    "count",
    "steps",
]
"""Numbers of events that can be found."""


@dataclasses.dataclass(frozen=True)
class Calibrated:
    """A number that was computed to meet a target, with its event and cost."""

    find: str
    """What was searched for."""
    value: float
    """The least or the largest number that was seen to meet the target. A whole number is an `int`."""
    event: Event
    """The event with this number."""
    bound: Bound
    """The cost of the event, in the units of the target."""

    def __float__(self) -> float:
        return float(self.value)


def calibrate(
    make: Callable[[Any], Event],
    *,
    find: Find = "noise_multiplier",
    epsilon: float | None = None,
    delta: float | None = None,
    mu: float | None = None,
    slack: float = 1e-9,
    true_positive_rate: float | None = None,
    false_positive_rate: float | None = None,
    neighbors: Neighbors = "add_remove",
    least: float | None = None,
    largest: float | None = None,
) -> Calibrated:
    """Finds the number with which `make(number)` just meets a target.

    The target is `epsilon` and `delta`; or `mu` of Gaussian differential privacy, up to `slack`; or the
    `true_positive_rate` that no attack exceeds at a `false_positive_rate`. `find` says what the number is: the least
    noise or scale is found, and the largest rate, count or ε. `least` and `largest` narrow the search.

    >>> from quell.accounting import Laplace, Exponential
    >>> found = calibrate(lambda noise: Laplace(noise).repeated(10), epsilon=2, delta=1e-6)
    >>> round(found.value, 2), float(found.bound) <= 2
    (5.0, True)
    >>> calibrate(lambda each: Exponential(each).repeated(100), find="epsilon", epsilon=1, delta=1e-6).value < 0.1
    True
    """
    wanted, what = _target(epsilon, delta, mu, slack, true_positive_rate, false_positive_rate)
    value, event, lower, upper = _native.calibrate(
        lambda number: text(make(number)), find, wanted, neighbors, least, largest
    )
    bound = Bound(lower, upper, "computed to meet the target", True, "best" if what == "ε" else "pld", what)
    whole = find in ("records", "sensitivity", "choices", "batch", "count", "steps")
    return Calibrated(find, int(value) if whole else value, Event.from_json(event), bound)


def calibrate_dp_sgd(
    *,
    noise_multiplier: float | None = None,
    sampling_rate: float | None = None,
    steps: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    mu: float | None = None,
    slack: float = 1e-9,
    true_positive_rate: float | None = None,
    false_positive_rate: float | None = None,
    neighbors: Neighbors = "add_remove",
) -> Calibrated:
    """Finds the one of noise, sampling rate and steps that is not given.

    >>> found = calibrate_dp_sgd(epsilon=2, delta=1e-5, sampling_rate=0.01, steps=6000)
    >>> round(found.value, 4)
    1.7117
    >>> calibrate_dp_sgd(epsilon=1, delta=1e-5, noise_multiplier=1.5, sampling_rate=0.01).find
    'steps'
    """
    given = {"noise_multiplier": noise_multiplier, "sampling_rate": sampling_rate, "steps": steps}
    missing: list[Find] = [name for name in ("noise_multiplier", "sampling_rate", "steps") if given[name] is None]
    if len(missing) != 1:
        raise SettingError(
            f"{len(missing)} of noise_multiplier, sampling_rate and steps are missing, expected one",
            "give two of them; epsilon(dp_sgd(...), delta=...) is the cost if all are known",
        )
    (find,) = missing
    return calibrate(
        lambda number: dp_sgd(**{**given, find: number}),
        find=find,
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        slack=slack,
        true_positive_rate=true_positive_rate,
        false_positive_rate=false_positive_rate,
        neighbors=neighbors,
    )


def gaussian_noise(*, epsilon: float, delta: float, textbook: bool = False) -> float:
    """The least noise multiplier of one Gaussian release for ε and δ.

    The relation is that of adding or removing a record.

    `textbook` is the classical formula √(2 ln(1.25/δ))/ε, which holds for ε below one.

    >>> exact = gaussian_noise(epsilon=0.5, delta=1e-5)
    >>> exact < 0.8 * gaussian_noise(epsilon=0.5, delta=1e-5, textbook=True)
    True
    """
    return _native.gaussian_noise(epsilon, delta, textbook)


def _target(
    epsilon: float | None,
    delta: float | None,
    mu: float | None,
    slack: float,
    true_positive_rate: float | None,
    false_positive_rate: float | None,
) -> tuple[str, str]:
    """The target as JSON, and the symbol of its unit."""
    groups = [(epsilon, delta), (mu,), (true_positive_rate, false_positive_rate)]
    begun = [group for group in groups if any(value is not None for value in group)]
    if len(begun) != 1 or None in begun[0]:
        raise SettingError(
            "no single target is given, expected one",
            "give epsilon and delta, or mu, or true_positive_rate and false_positive_rate",
        )
    if epsilon is not None:
        return json.dumps({"epsilon": {"epsilon": epsilon, "delta": delta}}), "ε"
    if mu is not None:
        return json.dumps({"gaussian": {"mu": mu, "slack": slack}}), "μ"
    if true_positive_rate is not None and false_positive_rate is not None and true_positive_rate <= false_positive_rate:
        raise SettingError(
            f"true_positive_rate is {true_positive_rate}, expected more than the false-positive rate {false_positive_rate}",
            "random guessing already reaches equal rates",
        )
    rates = {"false_positive_rate": false_positive_rate, "true_positive_rate": true_positive_rate}
    return json.dumps({"power": rates}), "true-positive rate"
