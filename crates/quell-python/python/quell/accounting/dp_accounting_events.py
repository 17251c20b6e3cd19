"""Events of Google's dp_accounting, from and to.

Both libraries describe the same mechanisms, and agree about them when a record is added or removed. When a record is
replaced, they do not always agree:

- A noise multiplier is the noise over the largest contribution of one record. Replacing a record moves a sum twice as
  far. Quell and the `PLDAccountant` of dp_accounting include that; its `RdpAccountant` does not.
- On samples of fixed size dp_accounting has its `RdpAccountant` alone, so its ε is that of noise relative to what a
  replacement moves. If your noise multiplier is meant so, pass `noise_over="replacement"`.
- `REPLACE_SPECIAL` replaces a record by an empty one. For additive noise it costs what `add_remove` costs. Quell has
  no such relation.
"""

from __future__ import annotations

import fractions
import importlib
import math
from collections.abc import Callable
from typing import Any, Literal

from ..errors import SettingError, UnsupportedError
from .events import (
    BestOf,
    Composed,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    PoissonSampled,
    RandomizedResponse,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
    ZeroConcentrated,
)

__all__ = ["from_dp_accounting", "to_dp_accounting"]

NoiseOver = Literal["contribution", "replacement"]
"""What a noise multiplier of dp_accounting is relative to."""


def from_dp_accounting(event: Any, *, noise_over: NoiseOver = "contribution") -> Event:
    """The Quell event of an event object of dp_accounting; one without an equivalent is refused.

    `noise_over` says what the noise multipliers are relative to: the largest contribution of one record, as the
    documentation of dp_accounting says, or what replacing one record moves, as its `RdpAccountant` computes under
    `REPLACE_ONE`. It matters only if records are replaced.
    """
    doubled = _doubled(noise_over)
    read = _FROM.get(type(event).__name__) if _is_theirs(event) else None
    if read is not None:
        return read(event, doubled)
    if not _is_theirs(event):
        raise SettingError(
            f"the event is of type {type(event).__name__}, expected an event of dp_accounting",
            "pass an object such as dp_accounting.GaussianDpEvent(1.1)",
        )
    raise UnsupportedError(
        f"{type(event).__name__} of dp_accounting has no equivalent in Quell",
        "if a guarantee of the release is known, describe it as Pure, Approximate, ZeroConcentrated or Renyi",
    )


def to_dp_accounting(event: Event, *, noise_over: NoiseOver = "contribution") -> Any:
    """The event object of dp_accounting for a Quell event; one without an equivalent is refused.

    With `noise_over="replacement"` noise multipliers are relative to what replacing one record moves, which is what
    its `RdpAccountant` takes them for under `REPLACE_ONE`.
    """
    doubled = _doubled(noise_over)
    if not isinstance(event, Event):
        raise SettingError(f"the event is of type {type(event).__name__}, expected an event of quell.accounting")
    return _to(event, doubled, _library())


def _doubled(noise_over: str) -> bool:
    if noise_over not in ("contribution", "replacement"):
        raise SettingError(f'noise_over is {noise_over!r}, expected "contribution" or "replacement"')
    return noise_over == "replacement"


def _is_theirs(event: object) -> bool:
    return type(event).__module__.split(".")[0] == "dp_accounting"


def _library() -> Any:
    try:
        return importlib.import_module("dp_accounting.dp_event")
    except ImportError:
        raise UnsupportedError(
            "dp_accounting is not installed, so there are no event objects of it", "pip install dp-accounting"
        ) from None


def _gaussian(event: Any, doubled: bool) -> Event:
    return Gaussian(event.noise_multiplier * (2 if doubled else 1))


def _laplace(event: Any, doubled: bool) -> Event:
    return Laplace(event.noise_multiplier * (2 if doubled else 1))


def _discrete_laplace(event: Any, doubled: bool) -> Event:
    if not event.noise_parameter > 0:
        raise UnsupportedError("noise_parameter is not above zero: there is no noise", "describe the release as NonPrivate")
    scale = _reciprocal(event.noise_parameter, up=False)
    if doubled and event.sensitivity % 2:
        raise UnsupportedError(
            f"a replacement moves the integer by {event.sensitivity}, expected an even number: twice a contribution"
        )
    return DiscreteLaplace(scale, event.sensitivity // 2 if doubled else event.sensitivity)


def _concentrated(event: Any, doubled: bool) -> Event:
    if event.xi != 0:
        raise UnsupportedError(
            f"ZCDpEvent with xi = {event.xi} has no equivalent in Quell, which has xi = 0 only",
            "describe it as Renyi, with xi + rho·α at each order α",
        )
    return ZeroConcentrated(event.rho)


def _best_of(event: Any, doubled: bool) -> Event:
    if event.shape != 1 or event.mean != int(event.mean):
        raise UnsupportedError(
            f"RepeatAndSelectDpEvent with shape {event.shape} and mean {event.mean} has no equivalent in Quell",
            "Quell has a geometric number of trials, shape = 1, whose mean is a whole number",
        )
    return BestOf(int(event.mean), (_inside(event, doubled),))


def _inside(event: Any, doubled: bool) -> Event:
    return from_dp_accounting(event.event, noise_over="replacement" if doubled else "contribution")


def _composed(event: Any, doubled: bool) -> Event:
    noise_over: NoiseOver = "replacement" if doubled else "contribution"
    return Composed(tuple(from_dp_accounting(each, noise_over=noise_over) for each in event.events))


_FROM: dict[str, Callable[[Any, bool], Event]] = {
    "NoOpDpEvent": lambda event, _: Composed(),
    "NonPrivateDpEvent": lambda event, _: NonPrivate(),
    "RandomizedResponseDpEvent": lambda event, _: RandomizedResponse(event.num_buckets, event.noise_parameter),
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "ZCDpEvent": _concentrated,
    "SelfComposedDpEvent": lambda event, doubled: Repeated(_inside(event, doubled), event.count),
    "ComposedDpEvent": _composed,
    "PoissonSampledDpEvent": lambda event, doubled: PoissonSampled(
        _inside(event, doubled), event.sampling_probability
    ),
    "SampledWithoutReplacementDpEvent": lambda event, doubled: SampledWithoutReplacement(
        _inside(event, doubled), event.sample_size, event.source_dataset_size
    ),
    "SampledWithReplacementDpEvent": lambda event, doubled: SampledWithReplacement(
        _inside(event, doubled), event.sample_size, event.source_dataset_size
    ),
    "RepeatAndSelectDpEvent": _best_of,
}


def _to(event: Event, doubled: bool, theirs: Any) -> Any:
    """Converts one event. Every kind is named: one that is not is refused."""
    if isinstance(event, Gaussian):
        return theirs.GaussianDpEvent(event.noise_multiplier / (2 if doubled else 1))
    if isinstance(event, Laplace):
        return theirs.LaplaceDpEvent(event.noise_multiplier / (2 if doubled else 1))
    if isinstance(event, DiscreteLaplace):
        parameter = _reciprocal(event.scale, up=True)
        return theirs.DiscreteLaplaceDpEvent(parameter, event.sensitivity * (2 if doubled else 1))
    if isinstance(event, RandomizedResponse):
        return theirs.RandomizedResponseDpEvent(event.randomized, event.choices)
    if isinstance(event, ZeroConcentrated):
        return theirs.ZCDpEvent(event.rho)
    if isinstance(event, NonPrivate):
        return theirs.NonPrivateDpEvent()
    if isinstance(event, Repeated):
        return theirs.SelfComposedDpEvent(_to(event.event, doubled, theirs), event.count)
    if isinstance(event, Composed):
        return theirs.ComposedDpEvent([_to(each, doubled, theirs) for each in event.events])
    if isinstance(event, PoissonSampled):
        return theirs.PoissonSampledDpEvent(event.rate, _to(event.event, doubled, theirs))
    if isinstance(event, SampledWithoutReplacement):
        inner = _to(event.event, doubled, theirs)
        return theirs.SampledWithoutReplacementDpEvent(event.records, event.batch, inner)
    if isinstance(event, SampledWithReplacement):
        inner = _to(event.event, doubled, theirs)
        return theirs.SampledWithReplacementDpEvent(event.records, event.batch, inner)
    if isinstance(event, BestOf) and len(event.trials) == 1:
        return theirs.RepeatAndSelectDpEvent(_to(event.trials[0], doubled, theirs), event.expected, 1)
    raise UnsupportedError(
        f"{event._kind} has no equivalent in dp_accounting",
        "compute its cost with quell.accounting.epsilon",
    )


def _reciprocal(value: float, *, up: bool) -> float:
    """1/x, rounded so that it is never on the wrong side: less scale, or a larger parameter, is less noise."""
    found = 1.0 / value
    exact = 1 / fractions.Fraction(value)
    if up and fractions.Fraction(found) < exact:
        return math.nextafter(found, math.inf)
    if not up and fractions.Fraction(found) > exact:
        return math.nextafter(found, 0.0)
    return found
