"""Privacy events: what was done to the data, in the terms that accountants need.

Events are values: they are immutable, compare by their fields, and can be hashed and pickled. A number out of its
range is refused when the event is made.
"""

from __future__ import annotations

import dataclasses
import json
import math
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from .. import _native
from ..errors import SettingError

__all__ = [
    "Approximate",
    "BestOf",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "Gaussian",
    "HiddenState",
    "Laplace",
    "NonPrivate",
    "PerturbedObjective",
    "PoissonSampled",
    "Pure",
    "RandomizedResponse",
    "Renyi",
    "Repeated",
    "SampledWithReplacement",
    "SampledWithoutReplacement",
    "ZeroConcentrated",
    "dp_sgd",
]


@dataclasses.dataclass(frozen=True, repr=False)
class Event:
    """One release, or several. Each class of event below is a kind of release or a way to combine releases.

    >>> step = Gaussian(1.1).poisson_sampled(0.01)
    >>> step.repeated(10_000) + Laplace(20)
    Composed([Gaussian(1.1).poisson_sampled(0.01).repeated(10000), Laplace(20.0)])
    """

    _kind: ClassVar[str]

    def __post_init__(self) -> None:
        if type(self) is Event:
            raise SettingError("an event has a kind", "use Gaussian, Laplace, dp_sgd or another kind of event")
        for field in dataclasses.fields(self):
            # Annotations are text here: each names the kind of value that a field holds.
            read = _READERS[str(field.type)]
            object.__setattr__(self, field.name, read(f"{self._kind}.{field.name}", getattr(self, field.name)))
        # The library checks the ranges. Events inside this one were checked before.
        _native.read_event(_text(self._written(lambda _: "non_private")))

    def poisson_sampled(self, rate: float) -> PoissonSampled:
        """This event on a sample that each record enters with probability `rate`."""
        return PoissonSampled(self, rate)

    def sampled_without_replacement(self, *, batch: int, records: int) -> SampledWithoutReplacement:
        """This event on a random set of `batch` out of `records` records."""
        return SampledWithoutReplacement(self, batch, records)

    def sampled_with_replacement(self, *, batch: int, records: int) -> SampledWithReplacement:
        """This event on `batch` independent draws out of `records` records."""
        return SampledWithReplacement(self, batch, records)

    def repeated(self, count: int) -> Repeated:
        """This event, `count` times, each time with independent randomness."""
        return Repeated(self, count)

    def best_of(self, expected: int) -> BestOf:
        """The best of a random number of runs of this event. `expected` runs are expected."""
        return BestOf(expected, (self,))

    def __add__(self, other: object) -> Composed:
        """This event and then another one."""
        if not isinstance(other, Event):
            return NotImplemented
        return Composed((*_parts(self), *_parts(other)))

    def __radd__(self, other: object) -> Event:
        """Nothing and then this event, so that `sum` adds events."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def to_json(self, *, versioned: bool = False) -> str:
        """The event as JSON, for the command; with its version, as a ledger stores it.

        >>> Gaussian(2).to_json()
        '{"gaussian":{"noise_multiplier":2.0}}'
        >>> Gaussian(2).to_json(versioned=True)
        '{"version":1,"event":{"gaussian":{"noise_multiplier":2.0}}}'
        """
        return _native.event_record(text(self)) if versioned else _native.read_event(text(self))

    @staticmethod
    def from_json(json_text: str | bytes | Mapping[str, Any]) -> Event:
        """Reads an event from JSON: bare, or with its version. What `json.loads` returns works, too.

        >>> Event.from_json('{"version": 1, "event": {"repeated": {"count": 3, "event": {"pure": {"epsilon": 0.1}}}}}')
        Pure(0.1).repeated(3)
        """
        if isinstance(json_text, Mapping):
            json_text = _text(dict(json_text))
        elif isinstance(json_text, (bytes, bytearray)):
            json_text = bytes(json_text).decode("utf-8", "replace")
        elif not isinstance(json_text, str):
            raise SettingError(f"the event is of type {type(json_text).__name__}, expected JSON text")
        return _event_of(json.loads(_native.read_event(json_text)))

    def _written(self, inner: Callable[[Event], Any]) -> Any:
        """The event as a value that `json.dumps` writes; `inner` writes the events in it."""
        fields: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Event):
                value = inner(value)
            elif field.type == "tuple[Event, ...]":
                value = [inner(event) for event in value]
            if value is not None:
                fields[field.name] = value
        return {self._kind: fields}

    def __repr__(self) -> str:
        values = [getattr(self, field.name) for field in dataclasses.fields(self)]
        while values and values[-1] is None:
            values.pop()
        return f"{type(self).__name__}({', '.join(map(repr, values))})"

    def __str__(self) -> str:
        return repr(self)


@dataclasses.dataclass(frozen=True, repr=False)
class Gaussian(Event):
    """A sum of contributions of L2 length at most C, plus Gaussian noise."""

    _kind = "gaussian"
    noise_multiplier: float
    """Standard deviation of the noise over C, the largest contribution of one record."""


@dataclasses.dataclass(frozen=True, repr=False)
class Laplace(Event):
    """A sum of contributions of L1 length at most C, plus Laplace noise."""

    _kind = "laplace"
    noise_multiplier: float
    """Scale of the noise over C, the largest contribution of one record."""


@dataclasses.dataclass(frozen=True, repr=False)
class DiscreteGaussian(Event):
    """An integer plus discrete Gaussian noise, Pr[n] ∝ exp(-n²/2σ²)."""

    _kind = "discrete_gaussian"
    deviation: float
    """σ."""
    sensitivity: int = 1
    """The most that one record contributes to the integer."""


@dataclasses.dataclass(frozen=True, repr=False)
class DiscreteLaplace(Event):
    """An integer plus discrete Laplace noise, Pr[n] ∝ exp(-|n|/s)."""

    _kind = "discrete_laplace"
    scale: float
    """s."""
    sensitivity: int = 1
    """The most that one record contributes to the integer."""


@dataclasses.dataclass(frozen=True, repr=False)
class RandomizedResponse(Event):
    """Each record gives its true answer or, with probability `randomized`, a uniformly random one."""

    _kind = "randomized_response"
    choices: int
    """Number of possible answers, at least two."""
    randomized: float
    """Probability of a random answer, which may be the true one."""


@dataclasses.dataclass(frozen=True, repr=False)
class Exponential(Event):
    """A selection whose log-probabilities shift within a range of ε: the exponential mechanism."""

    _kind = "exponential"
    epsilon: float
    """Width of that range."""


@dataclasses.dataclass(frozen=True, repr=False)
class Pure(Event):
    """Anything that is ε-DP."""

    _kind = "pure"
    epsilon: float
    """ε."""


@dataclasses.dataclass(frozen=True, repr=False)
class Approximate(Event):
    """Anything that is (ε, δ)-DP."""

    _kind = "approximate"
    epsilon: float
    """ε."""
    delta: float
    """δ."""


@dataclasses.dataclass(frozen=True, repr=False)
class ZeroConcentrated(Event):
    """Anything that is ρ-zCDP."""

    _kind = "zero_concentrated"
    rho: float
    """ρ."""


@dataclasses.dataclass(frozen=True, repr=False)
class Renyi(Event):
    """Anything whose Rényi divergences are bounded at the given orders."""

    _kind = "renyi"
    curve: tuple[tuple[float, float], ...]
    """Pairs of order α and bound ε(α), in increasing order."""


@dataclasses.dataclass(frozen=True, repr=False)
class PoissonSampled(Event):
    """An event on a Poisson sample: each record enters independently with probability `rate`."""

    _kind = "poisson_sampled"
    event: Event
    """What runs on the batch."""
    rate: float
    """Probability of entering."""

    def __repr__(self) -> str:
        return f"{self.event!r}.poisson_sampled({self.rate!r})"


@dataclasses.dataclass(frozen=True, repr=False)
class SampledWithoutReplacement(Event):
    """An event on a uniformly random set of `batch` out of `records` records."""

    _kind = "sampled_without_replacement"
    event: Event
    """What runs on the batch."""
    batch: int
    """Size of the batch."""
    records: int
    """Size of the dataset."""

    def __repr__(self) -> str:
        return f"{self.event!r}.sampled_without_replacement(batch={self.batch}, records={self.records})"


@dataclasses.dataclass(frozen=True, repr=False)
class SampledWithReplacement(Event):
    """An event on `batch` records drawn independently and uniformly out of `records`."""

    _kind = "sampled_with_replacement"
    event: Event
    """What runs on the batch; a record drawn k times contributes k times."""
    batch: int
    """Number of draws."""
    records: int
    """Size of the dataset."""

    def __repr__(self) -> str:
        return f"{self.event!r}.sampled_with_replacement(batch={self.batch}, records={self.records})"


@dataclasses.dataclass(frozen=True, repr=False)
class Composed(Event):
    """A sequence of events, each with independent randomness. `a + b` makes one, too."""

    _kind = "composed"
    events: tuple[Event, ...] = ()
    """The events, in their order."""

    def _written(self, inner: Callable[[Event], Any]) -> Any:
        return {self._kind: [inner(event) for event in self.events]}

    def __repr__(self) -> str:
        return f"Composed([{', '.join(map(repr, self.events))}])"


@dataclasses.dataclass(frozen=True, repr=False)
class Repeated(Event):
    """An event, `count` times, each time with independent randomness."""

    _kind = "repeated"
    event: Event
    """The repeated event."""
    count: int
    """Number of repetitions."""

    def __repr__(self) -> str:
        return f"{self.event!r}.repeated({self.count})"


@dataclasses.dataclass(frozen=True, repr=False)
class NonPrivate(Event):
    """No guarantee at all: every accountant answers infinity."""

    _kind = "non_private"

    def _written(self, inner: Callable[[Event], Any]) -> Any:
        return self._kind


@dataclasses.dataclass(frozen=True, repr=False)
class PerturbedObjective(Event):
    """The exact minimiser of a perturbed convex objective of a linear model."""

    _kind = "perturbed_objective"
    noise_multiplier: float
    """Standard deviation of the perturbation over the Lipschitz constant of the loss."""
    curvature_ratio: float
    """Largest curvature of the loss over that of the penalty."""


@dataclasses.dataclass(frozen=True, repr=False)
class HiddenState(Event):
    """The last of several iterates, which is the only one released.

    The first iterate is public, each step has fresh noise, and each step brings any two points to at most
    `contraction` times their distance, whatever the records are.
    """

    _kind = "hidden_state"
    noise_multiplier: float
    """Noise of one step over what one record contributes to that step."""
    contraction: float
    """The factor of distances, at most one."""
    steps: int
    """Number of steps, at least one."""
    diameter: float | None = None
    """Diameter of the domain over the contribution of one record to a step; `None` if it is unbounded."""


@dataclasses.dataclass(frozen=True, repr=False)
class BestOf(Event):
    """The best of a random number of trials, which is the only one released.

    After each trial the search ends with probability one over `expected`. The number of trials stays hidden.
    """

    _kind = "best_of"
    expected: int
    """Expected number of trials, at least one."""
    trials: tuple[Event, ...]
    """What a trial may be, at least one kind."""


def dp_sgd(*, noise_multiplier: float, sampling_rate: float, steps: int) -> Repeated:
    """DP-SGD: `steps` Gaussian steps, each on a Poisson sample.

    >>> dp_sgd(noise_multiplier=1.1, sampling_rate=0.01, steps=1000)
    Gaussian(1.1).poisson_sampled(0.01).repeated(1000)
    """
    return Gaussian(noise_multiplier).poisson_sampled(sampling_rate).repeated(steps)


def text(event: object) -> str:
    """The event as JSON for the native module."""
    try:
        return _text(_whole_event(_an_event("the event", event)))
    except RecursionError:
        raise SettingError("the events are nested too deeply", "write a + b, or Composed([a, b])") from None


def _whole_event(event: Event) -> Any:
    return event._written(_whole_event)


def _text(value: object) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SettingError(f"the event cannot be written as JSON: {error}") from None


def _parts(event: Event) -> tuple[Event, ...]:
    return event.events if isinstance(event, Composed) else (event,)


_KINDS: dict[str, type[Event]] = {kind._kind: kind for kind in Event.__subclasses__()}


def _event_of(value: Any) -> Event:
    """The event of a JSON value that the library has read and written again."""
    kind, fields = (value, {}) if isinstance(value, str) else next(iter(value.items()))
    made = _KINDS[kind]
    if made is Composed:
        return Composed(tuple(map(_event_of, fields)))
    if "event" in fields:
        fields["event"] = _event_of(fields["event"])
    if "trials" in fields:
        fields["trials"] = tuple(map(_event_of, fields["trials"]))
    return made(**fields)


def _real(name: str, value: object) -> float:
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise SettingError(f"{name} is of type {type(value).__name__}, expected a number")
    number = float(value)
    if not math.isfinite(number):
        raise SettingError(f"{name} is {number}, expected a finite number")
    return number


def _whole(name: str, value: object) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise SettingError(f"{name} is of type {type(value).__name__}, expected a whole number") from None
    if not 0 <= number < 1 << 64:
        raise SettingError(f"{name} is {number}, expected a whole number from 0 on")
    return number


def _an_event(name: str, value: object) -> Event:
    if not isinstance(value, Event):
        raise SettingError(
            f"{name} is of type {type(value).__name__}, expected an event of quell.accounting",
            "from_dp_accounting and from_opacus read the events of other libraries",
        )
    return value


def _several(name: str, value: object) -> tuple[Event, ...]:
    if isinstance(value, Event) or not isinstance(value, Iterable):
        raise SettingError(f"{name} is of type {type(value).__name__}, expected a list of events")
    return tuple(_an_event(f"a member of {name}", event) for event in value)


def _pairs(name: str, value: object) -> tuple[tuple[float, float], ...]:
    pairs = [tuple(pair) if isinstance(pair, Iterable) else () for pair in value] if isinstance(value, Iterable) else []
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise SettingError(f"{name} is not a list of pairs, expected pairs of an order and a bound")
    return tuple((_real(name, order), _real(name, bound)) for order, bound in pairs)


_READERS: dict[str, Callable[[str, object], object]] = {
    "float": _real,
    "float | None": lambda name, value: None if value is None else _real(name, value),
    "int": _whole,
    "Event": _an_event,
    "tuple[Event, ...]": _several,
    "tuple[tuple[float, float], ...]": _pairs,
}
