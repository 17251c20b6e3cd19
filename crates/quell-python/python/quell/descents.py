"""Private gradient descent on vectors that a framework computes: plan, payment, steps, and checks of the vectors.

`quell.torch` and `quell.jax` stand on this module. It needs neither of them.
"""

from __future__ import annotations

import dataclasses
import json
import math
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from . import _native
from .errors import RunError, SettingError, UnsupportedError
from .ledgers import Ledger, Neighbors, author, default_delta
from .receipts import Receipt

__all__ = ["Clipping", "Descent", "DescentPlan", "Options", "Release", "Step", "Vectors", "check_vectors"]

Clipping = Literal["flat", "automatic", "per_layer", "adaptive"]
"""How vectors are clipped: shortened to the norm, scaled to it, each parameter to an equal share, or to a quantile."""

BLOCK = 96
"""The most records that a framework adds in single precision: a block of the mechanism."""

LEAST_NORM = 1e-8
"""The least clip norm: far above what small numbers can hide.

A framework may take numbers below 2⁻¹²⁶ for zero, and the proof allows for 2⁻¹⁴⁷. Squares of numbers of double precision
below 10⁻¹⁶² are zero, so the length of a vector of such numbers is reported as zero. The error of n = 97 terms of d numbers is at most 2n√d/2¹²⁶, which is below 10⁻⁷ of this norm for d up to 2³⁰.
"""

LENGTH_ERROR = 2.0**-13
"""How much too small a reported length may be, relatively."""

DRIFT = 2.0**-20
"""How much the other records of a block may change a vector, relatively to its length."""


class Vectors(Protocol):
    """The vectors of records, as a framework computes them.

    The contract is that of Quell's own learners. The reported length is the length of the vector that is added. The
    vector of a record depends on that record alone. Scale zero adds nothing, even where the vector is not finite.
    """

    @property
    def dimension(self) -> int:
        """The length of the vectors."""

    @property
    def most(self) -> int:
        """The most records of one call."""

    def measure(self, records: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The squared lengths of the vectors of some records: a column for each part that is clipped."""

    def add(self, scales: npt.NDArray[np.float32]) -> Sequence[npt.NDArray[np.float32]]:
        """The sum of the vectors that were measured last, with these scales, in consecutive pieces."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """What a private descent is asked for. All of it is public."""

    epsilon: float | None = None
    delta: float | None = None
    noise_multiplier: float | None = None
    records: int | None = None
    batch_size: float = 256
    steps: int | None = None
    epochs: float | None = None
    clip_norm: float = 1.0
    clipping: Clipping = "flat"
    ledger: Ledger | None = None
    neighbors: Neighbors = "add_remove"
    one_record_per_user: bool = False
    run: str | None = None


@dataclasses.dataclass(frozen=True)
class DescentPlan:
    """What a private descent does, and what it costs. It was made before anything was charged."""

    epsilon: float
    """ε of all steps alone: an upper bound."""
    delta: float
    """δ of all steps."""
    neighbors: Neighbors
    """When two datasets are neighbours."""
    noise_multiplier: float
    """Standard deviation of the noise over the clip norm."""
    clip_norm: float
    """The largest length of a clipped vector."""
    sampling_rate: float
    """Probability that a record is in a batch."""
    batch_size: float
    """The expected number of records in a batch: the divisor of every sum."""
    steps: int
    """The number of steps."""
    what: str
    """One step, in words."""

    @property
    def claim(self) -> str:
        """The guarantee, in a line."""
        epsilon = _native.rounded_text(self.epsilon, 4, True)
        change = "added or removed" if self.neighbors == "add_remove" else "replaced by another"
        return f"ε ≤ {epsilon} at δ = {self.delta:g} when one record is {change}"


@dataclasses.dataclass(frozen=True)
class Step:
    """A step that was taken. All of it is public."""

    number: int
    """The number of the step, counted from 1."""
    of: int
    """The number of all steps."""
    clip_norm: float
    """The clip norm of the step."""
    share_within: float | None = None
    """With adaptive clipping: the noisy share of vectors within the clip norm."""


@dataclasses.dataclass(frozen=True)
class Release:
    """The noisy sum of a step, before it is divided by the expected batch size."""

    sum: npt.NDArray[np.float32]
    step: Step


class Descent:
    """A private descent: its plan, and its steps once they are paid for.

    Nothing is charged before the first step. Then all steps are charged together, before anything is released. A run
    that ends early has paid for all of its steps.
    """

    def __init__(self, options: Options, *, rows: int, dimension: int, parts: Sequence[int]) -> None:
        if rows < 1:
            raise SettingError("there are no records", "give at least one, of which shapes and types are used")
        if dimension < 1:
            raise SettingError(
                "the model has no trainable parameter", "call requires_grad_(True) on what is to be trained"
            )
        if options.epsilon is None and options.noise_multiplier is None:
            raise SettingError("neither epsilon nor noise_multiplier is given", "give epsilon=, the budget of this run")
        ledger = options.ledger
        neighbors = options.neighbors if ledger is None else ledger.neighbors
        count = _records(options, rows, neighbors)
        rate, steps = _rate_and_steps(options, count)
        delta = options.delta
        if delta is None:
            delta = default_delta(count) if ledger is None else min(default_delta(count), ledger.delta)
        if ledger is not None and ledger.unit == "user" and not options.one_record_per_user:
            raise UnsupportedError(
                "the ledger protects one user, and one user may have several records",
                "group the records of each user into one, and say one_record_per_user=True",
            )
        self._options = options
        self._rows = rows
        self._settings = json.dumps(
            {
                "epsilon": None if options.epsilon is None else float(options.epsilon),
                "delta": float(delta),
                "noise_multiplier": options.noise_multiplier,
                "sampling": "full" if rate >= 1 else {"poisson": {"rate": rate}},
                "clipping": _clipping(options, rate * count, parts),
                "dimension": dimension,
                "steps": steps,
            }
        )
        told = json.loads(_native.plan_descent(self._settings, neighbors))
        if told["epsilon"] is None:
            raise UnsupportedError(
                "no ε can be promised for so many steps with so little noise", "give fewer steps, or more noise"
            )
        self.plan = DescentPlan(
            epsilon=told["epsilon"],
            delta=told["delta"],
            neighbors=neighbors,
            noise_multiplier=told["noise_multiplier"],
            clip_norm=told["clip_norm"],
            sampling_rate=rate,
            batch_size=rate * count,
            steps=steps,
            what=told["what"],
        )
        self._ledger = ledger
        self._native: _native.Descent | None = None

    @property
    def ledger(self) -> Ledger | None:
        """The ledger that pays. Without one, a ledger in memory is made that pays for this run alone."""
        return self._ledger

    @property
    def receipt(self) -> Receipt | None:
        """What paid for the steps; `None` before the first one."""
        return None if self._native is None else Receipt.of(json.loads(self._native.receipt))

    @property
    def position(self) -> int:
        """How many steps are spent. With `run=`, those of an earlier process count."""
        return 0 if self._native is None else self._native.position

    def pay(self, release: str) -> None:
        """Pays for all steps, unless they are paid for. `release` says what is released, for the ledger."""
        if self._native is not None:
            return
        if self._ledger is None:
            # Accountants of later versions may find a slightly larger ε.
            budget = self.plan.epsilon * 1.001 if math.isfinite(self.plan.epsilon) else None
            self._ledger = Ledger.in_memory(
                epsilon=budget, delta=self.plan.delta, neighbors=self.plan.neighbors, unit="example"
            )
        key = secrets.token_hex(16) if self._options.run is None else self._options.run
        self._native = _native.Descent.pay(
            self._ledger._native, self._settings, key, self._options.one_record_per_user, author(), release
        )

    def step(self, vectors: Vectors) -> Release | None:
        """Takes the next step; `None` after the last one.

        An exception of `vectors` reaches the caller. Nothing is released then, and the step stays spent.
        """
        if self._native is None:
            raise RunError("the run has not been paid for")
        most = max(1, min(vectors.most, BLOCK))
        released = self._native.step(self._rows, most, vectors.measure, vectors.add)
        if released is None:
            return None
        sum, share, norm = released
        return Release(sum, Step(self._native.position, self.plan.steps, norm, share))


def _records(options: Options, rows: int, neighbors: Neighbors) -> int:
    if options.records is not None:
        if options.records < 1:
            raise SettingError(f"records is {options.records}, expected at least 1")
        return int(options.records)
    if neighbors == "replace":
        # Neighbours have the same number of records, so it is public.
        return rows
    raise SettingError(
        "the number of records is not declared",
        "give records=, a rough public number; records=len(data) if their number is public",
    )


def _rate_and_steps(options: Options, count: int) -> tuple[float, int]:
    if not (options.batch_size > 0 and math.isfinite(options.batch_size)):
        raise SettingError(f"batch_size is {options.batch_size}, expected a number above 0")
    rate = min(1.0, options.batch_size / count)
    if options.steps is not None and options.epochs is not None:
        raise SettingError("steps and epochs are given, expected one of them")
    if options.steps is not None:
        return rate, int(options.steps)
    epochs = 10.0 if options.epochs is None else float(options.epochs)
    if not (epochs > 0 and math.isfinite(epochs)):
        raise SettingError(f"epochs is {options.epochs}, expected a number above 0")
    return rate, max(1, round(epochs / rate))


def _clipping(options: Options, batch: float, parts: Sequence[int]) -> dict[str, Any]:
    norm = float(options.clip_norm)
    if not norm >= LEAST_NORM:
        raise SettingError(f"clip_norm is {options.clip_norm}, expected at least {LEAST_NORM}")
    match options.clipping:
        case "flat":
            return {"flat": {"norm": norm}}
        case "automatic":
            return {"automatic": {"norm": norm, "stability": 0.01}}
        case "per_layer":
            share = norm / math.sqrt(len(parts))
            return {"per_part": {"parts": list(parts), "norms": [share] * len(parts)}}
        case "adaptive":
            return {
                "adaptive": {
                    "norm": norm,
                    "quantile": 0.5,
                    "learning_rate": 0.2,
                    # A twentieth of a batch, and enough for any usual noise multiplier.
                    "count_noise": max(batch / 20, 10.0),
                    "expected_batch": batch,
                }
            }
    raise SettingError(
        f"clipping is {options.clipping!r}, expected flat, automatic, per_layer or adaptive"
    )


class Violation(Exception):
    """Vectors break a clause of their contract."""


def check_vectors(
    vectors: Vectors,
    truth: Callable[[int], npt.NDArray[np.float64]],
    records: Sequence[int],
    hostile: Sequence[int] = (),
) -> None:
    """Checks on made-up records that vectors keep their contract, and raises `Violation` where they do not.

    `truth` computes the vector of one record in another way. `hostile` are records whose vectors are not finite.
    """
    alone = []
    for record in records:
        squared, vector = _vectors(vectors, [record])[0]
        expected = truth(record)
        if not np.isfinite(expected).all():
            raise Violation("the gradient of a made-up record is not finite")
        length = float(np.linalg.norm(expected))
        if np.linalg.norm(vector - expected) > LENGTH_ERROR * length + 1e-18:
            raise Violation("the vector of a record is not its gradient")
        _check_length(squared, vector)
        alone.append((squared, vector))
    together = _vectors(vectors, list(records))
    for (squared, vector), (own, lonely) in zip(together, alone, strict=True):
        length = float(np.linalg.norm(lonely))
        if np.linalg.norm(vector - lonely) > DRIFT * length + 1e-18:
            raise Violation("the vector of a record depends on other records")
        if np.abs(np.sqrt(squared) - np.sqrt(own)).max() > DRIFT * np.sqrt(own).max() + 1e-18:
            raise Violation("the length of a record's vector depends on other records")
        _check_length(squared, vector)
    # The same records with a few others, each of which has scale zero.
    mixed = [*hostile, *records]
    squared = vectors.measure(np.array(mixed, np.int64))
    scales = np.zeros(squared.shape, np.float32)
    scales[len(hostile) :] = 0.5
    sum = _joined(vectors.add(scales))
    expected = 0.5 * np.sum([vector for _, vector in alone], axis=0)
    size = 0.5 * float(np.sum([np.linalg.norm(vector) for _, vector in alone]))
    # A comparison with NaN is false.
    if not np.linalg.norm(sum - expected) <= LENGTH_ERROR * size + 1e-18:
        raise Violation("scale zero adds something, or the sum is not that of the scaled vectors")
    for row in squared[: len(hostile)]:
        if np.isfinite(row).all():
            raise Violation("the reported length of a vector that is not finite is finite")


def _vectors(
    vectors: Vectors, records: Sequence[int]
) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """The squared lengths and the vector of each record, measured together."""
    found = []
    squared = vectors.measure(np.array(records, np.int64))
    for place in range(len(records)):
        scales = np.zeros(squared.shape, np.float32)
        scales[place] = 1.0
        found.append((squared[place].copy(), _joined(vectors.add(scales))))
    return found


def _joined(pieces: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float64]:
    return np.concatenate([piece.astype(np.float64) for piece in pieces])


def _check_length(squared: npt.NDArray[np.float64], vector: npt.NDArray[np.float64]) -> None:
    reported, length = math.sqrt(float(squared.sum())), float(np.linalg.norm(vector))
    if not length * (1.0 - LENGTH_ERROR) - 1e-18 <= reported <= length * (1.0 + 2.0**-10) + 1e-18:
        raise Violation("the reported length is not that of the vector")
