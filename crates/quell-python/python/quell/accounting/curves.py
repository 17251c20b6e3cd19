"""Curves: ε over steps, δ over ε, Rényi divergences, noise densities. Each can be plotted."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .. import _native
from ..errors import SettingError, UnsupportedError
from ..ledgers import Neighbors
from .accountants import Accountant, delta as bound_delta, epsilon as bound_epsilon
from .calibration import gaussian_noise
from .events import Event, Repeated, text

__all__ = [
    "Curves",
    "Series",
    "delta_over_epsilon",
    "epsilon_over_steps",
    "noise_densities",
    "renyi_curve",
]

_Array = npt.NDArray[np.float64]
_POINTS = 40


@dataclasses.dataclass(frozen=True, eq=False)
class Series:
    """One curve: bounds from below and from above at each point."""

    name: str
    """What the curve shows, for a legend."""
    x: _Array
    lower: _Array
    upper: _Array
    claim: Literal["lower", "upper"] = "upper"
    """Which end may be claimed."""

    def __repr__(self) -> str:
        return f"<Series {self.name!r}: {len(self.x)} points>"


@dataclasses.dataclass(frozen=True, eq=False)
class Curves:
    """Curves over one axis. Iterate over them, find one by its name, or plot them."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_y: bool = False
    log_x: bool = False

    def __iter__(self) -> Iterator[Series]:
        return iter(self.series)

    def __len__(self) -> int:
        return len(self.series)

    def __getitem__(self, name: str) -> Series:
        for series in self.series:
            if series.name == name:
                return series
        raise KeyError(name)

    def plot(self, ax: Any = None) -> Any:
        """Plots the curves with matplotlib, and returns the axes.

        Each line is the end that may be claimed; the shade reaches to the other end.
        """
        axes = _axes() if ax is None else ax
        for series in self.series:
            claim, other = series.lower, series.upper
            if series.claim == "upper":
                claim, other = other, claim
            shown = np.isfinite(claim)
            if self.log_y:
                shown &= claim > 0
            (line,) = axes.plot(series.x[shown], claim[shown], label=series.name)
            # An accountant without a lower bound has no shade: it would bury the others.
            shade = shown & np.isfinite(other) & (other > 0)
            axes.fill_between(
                series.x[shade], claim[shade], other[shade], color=line.get_color(), alpha=0.2, linewidth=0
            )
        axes.set(title=self.title, xlabel=self.x_label, ylabel=self.y_label)
        if self.log_y:
            axes.set_yscale("log")
        if self.log_x:
            axes.set_xscale("log")
        if len(self.series) > 1:
            axes.legend()
        return axes

    def __repr__(self) -> str:
        return f"<Curves {self.title!r}: {', '.join(series.name for series in self.series)}>"


def epsilon_over_steps(
    step: Event | Callable[[int], Event],
    *,
    delta: float,
    steps: int | Iterable[int] | None = None,
    neighbors: Neighbors = "add_remove",
    accountants: Sequence[Accountant] = ("pld",),
    tightness: float | None = None,
) -> Curves:
    """ε over the number of steps, by one or more accountants.

    `step` is the event of one step, or a function from the number of steps to the event of all of them. `steps` is
    the largest number of steps, or a list of numbers. A repeated event, such as `dp_sgd` makes, has both.

    >>> from quell.accounting import dp_sgd
    >>> run = dp_sgd(noise_multiplier=1.1, sampling_rate=0.01, steps=1000)
    >>> epsilon_over_steps(run, delta=1e-5, accountants=["pld", "rdp"])
    <Curves 'Privacy loss over a run': pld, rdp>
    """
    one: Event | Callable[[int], Event] = step
    if isinstance(step, Repeated) and steps is None:
        one, steps = step.event, step.count
    if steps is None:
        raise SettingError("the number of steps is not given", "pass steps=1000, or a repeated event")
    counts = _counts(steps)
    make = one.repeated if isinstance(one, Event) else one
    events = [make(count) for count in counts]
    series = []
    refused: UnsupportedError | None = None
    for name in accountants:
        try:
            bounds = [
                bound_epsilon(event, delta=delta, neighbors=neighbors, accountant=name, tightness=tightness)
                for event in events
            ]
        except UnsupportedError as error:
            refused = error
            continue
        label = name if all(bound.claimable for bound in bounds) else f"{name}, an estimate"
        series.append(
            Series(
                label,
                np.array(counts, dtype=np.float64),
                np.array([bound.lower for bound in bounds]),
                np.array([bound.upper for bound in bounds]),
            )
        )
    if refused is not None and not series:
        raise refused
    if not series:
        raise SettingError("no accountant is named, expected at least one", 'pass accountants=["pld"]')
    return Curves("Privacy loss over a run", "steps", f"ε at δ = {delta:g}", tuple(series))


def delta_over_epsilon(
    event: Event,
    *,
    epsilons: Iterable[float] | None = None,
    smallest_delta: float = 1e-10,
    neighbors: Neighbors = "add_remove",
    accountant: Accountant = "best",
    tightness: float | None = None,
) -> Curves:
    """The privacy profile: δ over ε, up to the ε at which δ is `smallest_delta`.

    >>> from quell.accounting import Gaussian
    >>> profile = delta_over_epsilon(Gaussian(2), epsilons=[0.0, 1.0])
    >>> round(float(profile["best"].upper[0]), 4)
    0.1974
    """
    if epsilons is None:
        last = bound_epsilon(
            event, delta=smallest_delta, neighbors=neighbors, accountant=accountant, tightness=tightness
        ).upper
        if not math.isfinite(last):
            raise SettingError(
                f"no finite ε is known at δ = {smallest_delta:g}, so there is no curve",
                "raise smallest_delta or the noise",
            )
        epsilons = [last * index / _POINTS for index in range(_POINTS + 1)]
    at = np.array(list(epsilons), dtype=np.float64)
    bounds = [
        bound_delta(event, epsilon=float(each), neighbors=neighbors, accountant=accountant, tightness=tightness)
        for each in at
    ]
    series = Series(
        accountant, at, np.array([bound.lower for bound in bounds]), np.array([bound.upper for bound in bounds])
    )
    return Curves("Privacy profile", "ε", "δ", (series,), log_y=True)


def renyi_curve(
    event: Event, *, orders: Iterable[float] | None = None, neighbors: Neighbors = "add_remove"
) -> Curves:
    """Upper bounds on the Rényi divergences of an event over their orders.

    >>> from quell.accounting import Gaussian
    >>> renyi_curve(Gaussian(1), orders=[2, 4])["rdp"].upper.round(6).tolist()
    [1.0, 2.0]
    """
    default = 1.0 + np.geomspace(1e-2, 1e3, 101)
    at = default if orders is None else np.array(list(orders), dtype=np.float64)
    upper = np.array(_native.renyi_divergences(text(event), neighbors, at.tolist()), dtype=np.float64)
    series = Series("rdp", at, np.zeros_like(upper), upper)
    return Curves("Rényi divergences", "order α", "ε(α)", (series,), log_y=True, log_x=True)


def noise_densities(*, epsilon: float, delta: float) -> Curves:
    """Densities of Laplace and Gaussian noise of equal ε, in units of the sensitivity.

    `delta` is δ of the Gaussians; δ of Laplace noise is zero. The textbook Gaussian is shown for ε below one.
    """
    if not 0 < epsilon < math.inf:
        raise SettingError(f"epsilon is {epsilon}, expected a number in (0, inf)")
    scale = 1.0 / epsilon
    noises = {"exact Gaussian": gaussian_noise(epsilon=epsilon, delta=delta)}
    if epsilon < 1:
        noises["textbook Gaussian"] = gaussian_noise(epsilon=epsilon, delta=delta, textbook=True)
    # An odd number of points, so that the peak of the Laplace density is one of them.
    x = np.linspace(-1.0, 1.0, 301) * 3.0 * max(scale, *noises.values())
    laplace = np.exp(-np.abs(x) / scale) / (2.0 * scale)
    series = [Series(f"Laplace, b = {scale:.3g}", x, laplace, laplace)]
    for name, sigma in noises.items():
        density = np.exp(-0.5 * (x / sigma) ** 2) / (sigma * math.sqrt(2.0 * math.pi))
        series.append(Series(f"{name}, σ = {sigma:.3g}", x, density, density))
    return Curves(
        "Laplace and Gaussian noise of equal privacy",
        "noise (in units of the sensitivity)",
        "density (per unit of the sensitivity)",
        tuple(series),
    )


def _counts(steps: int | Iterable[int]) -> list[int]:
    if isinstance(steps, Iterable):
        counts = sorted({int(count) for count in steps})
        last = 1
    else:
        last = int(steps)
        # ε grows about like the square root of the steps, so points are closer at the start, where the curve bends.
        between = (int(last * (index / _POINTS) ** 2) for index in range(_POINTS))
        counts = sorted({count for count in between if 1 <= count < last} | {1, last})
    if last < 1 or not counts or counts[0] < 1:
        raise SettingError("the number of steps is below one, expected whole numbers of at least one")
    return counts


def _axes() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise UnsupportedError(
            "matplotlib is not installed, so there is no plot",
            "install matplotlib; the numbers are in the attribute series",
        ) from None
    return pyplot.subplots()[1]
