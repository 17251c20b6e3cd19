#!/usr/bin/env python3
"""Times Quell against other privacy accountants: `make bench`.

Four rows, all for the Poisson sampled Gaussian under add-or-remove-one:

    one_run            epsilon of one DP-SGD run
    calibrate          the noise multiplier that meets a given epsilon
    thousand_distinct  epsilon of a thousand different mechanisms, once each
    million_steps      epsilon of a million steps

Quell and every peer run one after the other in this script, each in its own
process, on one and the same core and on one thread. A peer is imported before
its clock starts; it is repeated until one second has passed, at most five
times, and its best time counts. A peer that exceeds the time limit or fails is
one line of the table.

The peers, pinned in requirements.txt, go into a virtual environment of their
own (target/bench-env by default), which is kept for the next run.

Run with --help for the options.
"""

import argparse
import contextlib
import dataclasses
import importlib.util
import json
import math
import os
import platform
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from peers import HERE, ROOT, build_example, last_line, prepare_environment, run_example, say

REQUIREMENTS = HERE / "requirements.txt"

REPEAT_SECONDS = 1.0
REPEAT_TIMES = 5
IMPORT_SECONDS = 60.0

# Two values closer than this count as equally tight.
EQUAL = 1e-9

# A wall time above this multiple of the processor time is reported as doubtful.
BUSY = 1.2


# --------------------------------------------------------------------------
# What is measured
# --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Step:
    """A Poisson sampled Gaussian mechanism, run `count` times."""

    rate: float
    sigma: float
    count: int


@dataclasses.dataclass(frozen=True)
class Row:
    """One workload: `steps` at `delta`, or a calibration if `target` is set.

    A calibration looks for the sigma at which the single step in `steps`,
    whose own sigma is not used, has epsilon `target`.
    """

    name: str
    title: str
    delta: float
    steps: tuple[Step, ...]
    target: float | None = None


ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        Row(
            "one_run",
            "epsilon of one DP-SGD run: q = 0.01, sigma = 1.1, 10 000 steps, delta = 1e-5",
            1e-5,
            (Step(0.01, 1.1, 10_000),),
        ),
        Row(
            "calibrate",
            "sigma for epsilon = 2: q = 0.01, 6 000 steps, delta = 1e-5",
            1e-5,
            (Step(0.01, math.nan, 6_000),),
            target=2.0,
        ),
        Row(
            "thousand_distinct",
            "epsilon of 1 000 different steps: q = 0.005 + 1e-5 i, sigma = 0.9 + 1e-3 i, delta = 1e-5",
            1e-5,
            tuple(Step(0.005 + 1e-5 * i, 0.9 + 1e-3 * i, 1) for i in range(1000)),
        ),
        Row(
            "million_steps",
            "epsilon of 1 000 000 steps: q = 0.001, sigma = 1, delta = 1e-6",
            1e-6,
            (Step(0.001, 1.0, 1_000_000),),
        ),
    )
}


@dataclasses.dataclass(frozen=True)
class Entry:
    """One accountant of one library at one setting.

    `kind` is the family it is compared within: "pld" for those that compose
    privacy loss distributions numerically, "rdp" for Renyi accountants.
    `setting` is the grid interval or the error an accountant is asked for.
    """

    library: str
    accountant: str
    kind: str
    setting: float | None = None
    label: str = ""


def entries(row: Row) -> list[Entry]:
    """The peers that `row` measures."""
    grids = [1e-4, 1e-5] if row.name == "one_run" else [1e-4]
    errors = [0.01, 0.001] if row.name == "one_run" else [0.01]
    return [
        *(Entry("dp-accounting", "pld", "pld", x, f"pld, interval {x:g}") for x in grids),
        *(Entry("prv-accountant", "prv", "pld", x, f"prv, eps_error {x:g}") for x in errors),
        Entry("opacus", "prv", "pld", 0.01, "prv, eps_error 0.01"),
        Entry("dp-accounting", "rdp", "rdp", label="rdp"),
        Entry("opacus", "rdp", "rdp", label="rdp"),
        Entry("autodp", "rdp", "rdp", label="rdp"),
    ]


@dataclasses.dataclass
class Result:
    """What one entry gave.

    `lower` and `upper` bound epsilon: of the row's mechanisms or, in a
    calibration, of the returned sigma, which is then `value`. `failure` says
    why there is no time; after a timeout `seconds` is the limit. `cpu` is the
    processor time of the repetition that took `seconds`.
    """

    row: str
    entry: Entry
    seconds: float | None = None
    cpu: float | None = None
    lower: float | None = None
    upper: float | None = None
    value: float | None = None
    failure: str | None = None
    timed_out: bool = False

    @property
    def name(self) -> str:
        return f"{self.entry.library} ({self.entry.label})"


# --------------------------------------------------------------------------
# The peers: this part runs in the child processes only
# --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Work:
    """A peer ready to run: `run` is timed, `read` states what it returned.

    `read` may go on computing what does not count in the time, such as a lower
    bound that the library offers apart, and yields facts as it learns them.
    """

    run: Callable[[], Any]
    read: Callable[[Any], Iterator[dict[str, float]]]


def dp_accounting_work(row: Row, entry: Entry) -> Work:
    import dp_accounting as dpa
    from dp_accounting.pld import privacy_loss_distribution as plds
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
    from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant

    def fresh() -> Any:
        if entry.accountant == "rdp":
            return RdpAccountant()
        return PLDAccountant(value_discretization_interval=entry.setting)

    def event(steps: Iterable[Step]) -> Any:
        return dpa.ComposedDpEvent(
            [
                dpa.SelfComposedDpEvent(
                    dpa.PoissonSampledDpEvent(step.rate, dpa.GaussianDpEvent(step.sigma)), step.count
                )
                for step in steps
            ]
        )

    def epsilon(steps: Iterable[Step]) -> float:
        return float(fresh().compose(event(steps)).get_epsilon(row.delta))

    def lower(step: Step) -> dict[str, float]:
        """The optimistic epsilon, where it costs about as much as the pessimistic one."""
        optimistic = plds.from_gaussian_mechanism(
            step.sigma,
            pessimistic_estimate=False,
            value_discretization_interval=entry.setting,
            sampling_prob=step.rate,
            use_connect_dots=False,
        )
        return {"lower": float(optimistic.self_compose(step.count).get_epsilon_for_delta(row.delta))}

    def read_epsilon(upper: float) -> Iterator[dict[str, float]]:
        yield {"upper": upper}
        if entry.accountant == "pld" and len(row.steps) == 1:
            yield lower(row.steps[0])

    def calibrate() -> float:
        return float(
            dpa.calibrate_dp_mechanism(
                fresh,
                lambda sigma: event([dataclasses.replace(row.steps[0], sigma=sigma)]),
                row.target,
                row.delta,
                tol=1e-3,
            )
        )

    def read_sigma(sigma: float) -> Iterator[dict[str, float]]:
        step = dataclasses.replace(row.steps[0], sigma=sigma)
        yield {"value": sigma, "upper": epsilon([step])}
        if entry.accountant == "pld":
            yield lower(step)

    if row.target is not None:
        return Work(calibrate, read_sigma)
    return Work(lambda: epsilon(row.steps), read_epsilon)


def prv_accountant_work(row: Row, entry: Entry) -> Work:
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant
    from prv_accountant.dpsgd import find_noise_multiplier

    def bounds(steps: Iterable[Step]) -> tuple[float, float, float]:
        steps = list(steps)
        counts = [step.count for step in steps]
        accountant = PRVAccountant(
            prvs=[PoissonSubsampledGaussianMechanism(step.rate, step.sigma) for step in steps],
            eps_error=entry.setting,
            delta_error=row.delta / 1000,
            max_self_compositions=counts,
        )
        lower, estimate, upper = accountant.compute_epsilon(row.delta, counts)
        return lower, estimate, upper

    def read_epsilon(found: tuple[float, float, float]) -> Iterator[dict[str, float]]:
        yield {"lower": found[0], "upper": found[2]}

    def calibrate() -> float:
        step = row.steps[0]
        return float(
            find_noise_multiplier(
                sampling_probability=step.rate,
                num_steps=step.count,
                target_epsilon=row.target,
                target_delta=row.delta,
                eps_error=entry.setting,
            )
        )

    def read_sigma(sigma: float) -> Iterator[dict[str, float]]:
        yield {"value": sigma}
        yield from read_epsilon(bounds([dataclasses.replace(row.steps[0], sigma=sigma)]))

    if row.target is not None:
        return Work(calibrate, read_sigma)
    return Work(lambda: bounds(row.steps), read_epsilon)


def import_opacus_accountants() -> None:
    """Makes `opacus.accountants` importable without torch.

    The accountants need numpy and scipy only, but the package around them
    imports torch. A bare module stands in for the package, with the path of
    the real one, and another for the optimizer class named in a type hint.
    """
    spec = importlib.util.find_spec("opacus")
    if spec is None or spec.submodule_search_locations is None:
        raise ImportError("opacus is not installed")
    package = types.ModuleType("opacus")
    package.__path__ = list(spec.submodule_search_locations)
    optimizers = types.ModuleType("opacus.optimizers")
    optimizers.__dict__["DPOptimizer"] = object
    sys.modules["opacus"] = package
    sys.modules["opacus.optimizers"] = optimizers


def opacus_work(row: Row, entry: Entry) -> Work:
    import_opacus_accountants()
    from opacus.accountants import create_accountant
    from opacus.accountants.analysis.prv.prvs import DiscretePRV
    from opacus.accountants.utils import get_noise_multiplier

    # The accountant computes a lower bound too but returns the upper one only:
    # keep a copy of the pair as it passes by.
    latest: list[float] = []
    inner = DiscretePRV.compute_epsilon

    def outer(*args: Any, **kwargs: Any) -> Any:
        found = inner(*args, **kwargs)
        latest[:] = [float(found[0]), float(found[2])]
        return found

    DiscretePRV.compute_epsilon = outer
    options = {} if entry.setting is None else {"eps_error": entry.setting}

    def epsilon(steps: Iterable[Step]) -> float:
        accountant = create_accountant(entry.accountant)
        accountant.history = [(step.sigma, step.rate, step.count) for step in steps]
        return float(accountant.get_epsilon(row.delta, **options))

    def read_epsilon(upper: float) -> Iterator[dict[str, float]]:
        yield {"upper": upper}
        if entry.accountant == "prv":
            yield {"lower": latest[0]}

    def calibrate() -> float:
        return float(
            get_noise_multiplier(
                target_epsilon=row.target,
                target_delta=row.delta,
                sample_rate=row.steps[0].rate,
                steps=row.steps[0].count,
                accountant=entry.accountant,
                epsilon_tolerance=0.01,
                **options,
            )
        )

    def read_sigma(sigma: float) -> Iterator[dict[str, float]]:
        yield {"value": sigma}
        yield from read_epsilon(epsilon([dataclasses.replace(row.steps[0], sigma=sigma)]))

    if row.target is not None:
        return Work(calibrate, read_sigma)
    return Work(lambda: epsilon(row.steps), read_epsilon)


def autodp_work(row: Row, entry: Entry) -> Work:
    from autodp.calibrator_zoo import eps_delta_calibrator
    from autodp.mechanism_zoo import ExactGaussianMechanism
    from autodp.transformer_zoo import AmplificationBySampling, Composition

    def mechanism(steps: Iterable[Step]) -> Any:
        steps = list(steps)
        sample = AmplificationBySampling(PoissonSampling=True)
        sampled = [
            sample(ExactGaussianMechanism(sigma=step.sigma), step.rate, improved_bound_flag=True)
            for step in steps
        ]
        return Composition()(sampled, [step.count for step in steps])

    def read_epsilon(upper: float) -> Iterator[dict[str, float]]:
        yield {"upper": upper}

    found: list[float] = []

    def at(sigma: float) -> Any:
        """The run at `sigma`; the calibrator asks for its answer last."""
        found[:] = [float(sigma)]
        return mechanism([dataclasses.replace(row.steps[0], sigma=sigma)])

    def calibrate() -> Any:
        return eps_delta_calibrator()(at, row.target, row.delta, bounds=[0.5, 5.0])

    def read_sigma(calibrated: Any) -> Iterator[dict[str, float]]:
        yield {"value": found[0], "upper": float(calibrated.get_approxDP(row.delta))}

    if row.target is not None:
        return Work(calibrate, read_sigma)
    return Work(lambda: float(mechanism(row.steps).get_approxDP(row.delta)), read_epsilon)


WORKERS: dict[str, Callable[[Row, Entry], Work]] = {
    "dp-accounting": dp_accounting_work,
    "prv-accountant": prv_accountant_work,
    "opacus": opacus_work,
    "autodp": autodp_work,
}


def child(spec: str) -> int:
    """Runs one peer on one row and prints what it learns, one JSON object a line.

    The time limit starts after the imports; the alarm then ends the process,
    whatever it is doing, and what it has printed stands.
    """
    request = json.loads(spec)
    row, entry = ROWS[request["row"]], Entry(**request["entry"])
    out = sys.stdout

    def emit(facts: dict[str, float]) -> None:
        print(json.dumps(facts), file=out, flush=True)

    with contextlib.redirect_stdout(sys.stderr):
        work = WORKERS[entry.library](row, entry)
        signal.setitimer(signal.ITIMER_REAL, request["limit"])
        taken: list[tuple[float, float]] = []
        answer: Any = None
        while len(taken) < REPEAT_TIMES and sum(wall for wall, _ in taken) < REPEAT_SECONDS:
            wall, cpu = time.perf_counter(), time.process_time()
            answer = work.run()
            taken.append((time.perf_counter() - wall, time.process_time() - cpu))
            best = min(taken)
            emit({"seconds": best[0], "cpu": best[1]})
        for facts in work.read(answer):
            emit(facts)
    return 0


# --------------------------------------------------------------------------
# Running the peers and Quell
# --------------------------------------------------------------------------


def pin(core: int | None) -> int | None:
    """Confines this process, and so its children, to one core and one thread."""
    for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "RAYON"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    os.environ.pop("PYTHONPATH", None)
    if not hasattr(os, "sched_setaffinity"):
        say("This system cannot pin a process to a core; times are of one thread all the same.")
        return None
    core = max(os.sched_getaffinity(0)) if core is None else core
    os.sched_setaffinity(0, {core})
    return core


def run_peer(python: Path, row: Row, entry: Entry, limit: float) -> Result:
    """Measures one peer in a process of its own."""
    spec = json.dumps({"row": row.name, "entry": dataclasses.asdict(entry), "limit": limit})
    result = Result(row.name, entry)
    command = [str(python), str(Path(__file__).resolve()), "--child", spec]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit + IMPORT_SECONDS)
    except subprocess.TimeoutExpired:
        result.failure = "failed: the import took too long"
        return result
    expired = done.returncode == -signal.SIGALRM
    for line in done.stdout.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            for key, number in json.loads(line).items():
                setattr(result, key, number)
    if result.seconds is None and expired:
        result.seconds, result.timed_out, result.failure = limit, True, f"> {limit:g} s"
    elif result.seconds is None or (done.returncode != 0 and not expired and result.upper is None):
        reason = last_line(done.stderr) or f"exit status {done.returncode}"
        result.seconds, result.failure = None, f"failed: {reason}"
    elif result.upper is not None and not math.isfinite(result.upper):
        result.seconds, result.failure = None, f"failed: returned {result.upper}"
    return result


def read_quell(text: str) -> list[Result]:
    """Reads the JSON lines of Quell's bench."""
    results = []
    for line in text.splitlines():
        if not line.strip():
            continue
        fields = json.loads(line)
        if fields["row"] not in ROWS or fields["accountant"] not in ("pld", "rdp"):
            raise ValueError(f"unknown row or accountant: {line}")
        results.append(
            Result(
                row=fields["row"],
                entry=Entry("quell", fields["accountant"], fields["accountant"], label=fields["accountant"]),
                seconds=float(fields["seconds"]),
                lower=None if fields.get("lower") is None else float(fields["lower"]),
                upper=float(fields["upper"]),
                value=None if fields.get("value") is None else float(fields["value"]),
            )
        )
    return results


# --------------------------------------------------------------------------
# The report
# --------------------------------------------------------------------------


class Comparison:
    """The results of one row, against Quell's."""

    def __init__(self, row: Row, results: Iterable[Result]) -> None:
        self.row = row
        mine = [result for result in results if result.row == row.name]
        self.quell = {r.entry.kind: r for r in mine if r.entry.library == "quell"}
        self.peers = [r for r in mine if r.entry.library != "quell"]

    def gap(self, result: Result) -> float | None:
        """Between the library's own bounds on epsilon.

        In a calibration, how much of the target may be left unused: the target,
        or the upper bound where that misses it, minus the lower bound.
        """
        if result.upper is None or result.lower is None:
            return None
        return max(result.upper, self.row.target or 0.0) - result.lower

    def excess(self, result: Result) -> float | None:
        """At most how far a result is from the best possible one.

        The upper bound minus the lower bound that Quell proves. In a
        calibration, the excess of sigma over that of Quell's PLD accountant.
        """
        reference = self.quell.get("pld")
        if reference is None:
            return None
        if self.row.target is None:
            theirs, best = result.upper, reference.lower
        else:
            theirs, best = result.value, reference.value
        return None if theirs is None or best is None else theirs - best

    def misses(self, result: Result) -> bool:
        """Whether a calibrated sigma is not known to meet the target."""
        target = self.row.target
        return target is not None and result.upper is not None and result.upper > target + EQUAL

    def tightness(self, result: Result) -> str:
        """The cell of the table for `gap`; starred where Quell's lower bound stands in."""
        gap = self.gap(result)
        if gap is not None:
            return f"{gap:.1e}  "
        excess = self.excess(result)
        if result.entry.kind == "rdp" and self.row.target is None and excess is not None:
            return f"{excess:.1e} *"
        return "-  "

    def speed(self, result: Result) -> str:
        """How Quell's accountant of the same family compares in time."""
        quell = self.quell.get(result.entry.kind)
        if result.entry.library == "quell" or quell is None or result.seconds is None:
            return ""
        return ("> " if result.timed_out else "") + times_faster(result.seconds, quell)

    def doubts(self) -> Iterator[str]:
        """Results that cannot be taken at face value."""
        reference = self.quell.get("pld")
        for result in self.peers:
            if result.seconds and result.cpu and result.seconds > BUSY * result.cpu:
                yield f"{result.name}: the core was shared, it had {result.cpu:.3g} of {result.seconds:.3g} s"
            if result.upper is None:
                continue
            target = self.row.target
            if target is not None and self.misses(result):
                yield f"{result.name}: epsilon at its sigma is up to {result.upper - target:.1e} over target"
            if target is None and reference and reference.lower is not None:
                if result.upper < reference.lower - EQUAL:
                    yield f"{result.name}: upper bound below the lower bound that Quell proves"

    def table(self) -> Iterator[str]:
        calibration = self.row.target is not None
        header = [
            "library",
            "accountant",
            "seconds",
            "sigma" if calibration else "epsilon",
            "unused eps  " if calibration else "upper - lower  ",
            "over Quell's sigma" if calibration else "over Quell's lower",
            "Quell is",
        ]
        lines = [header]
        for result in [*self.quell.values(), *self.peers]:
            lines.append([result.entry.library, result.entry.label, *self.cells(result)])
        widths = [max(len(line[i]) for line in lines if i < len(line) - 1) for i in range(len(header) - 1)]
        for line in lines:
            names = [cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)]
            numbers = [cell.rjust(width) for cell, width in zip(line[2:-1], widths[2:], strict=False)]
            yield "  ".join([*names, *numbers, line[-1]]).rstrip()

    def cells(self, result: Result) -> list[str]:
        """The columns after the name: a failure stands alone."""
        if result.failure is not None and not result.timed_out:
            return [result.failure]
        shown = result.upper if self.row.target is None else result.value
        excess = self.excess(result)
        return [
            result.failure or f"{result.seconds:.3g}",
            "-" if shown is None else f"{shown:.6f}",
            self.tightness(result),
            "-" if excess is None else f"{excess:.1e}",
            self.speed(result),
        ]

    def summary(self) -> Iterator[str]:
        if self.row.target is None:
            far, near = "upper - lower", "distance from Quell's lower bound"
        else:
            far, near = "unused epsilon", "sigma"
        for kind in ("pld", "rdp"):
            quell = self.quell.get(kind)
            if quell is None:
                yield f"{kind.upper()}: no measurement of Quell"
                continue
            peers = [peer for peer in self.peers if peer.entry.kind == kind]
            if kind == "pld":
                yield self.fastest("PLD against PLD", quell, peers, self.gap, far)
            yield self.fastest(f"{kind.upper()} against {kind.upper()}", quell, peers, self.excess, near)
        if "pld" in self.quell:
            yield self.fastest("PLD against every peer", self.quell["pld"], self.peers, self.excess, near)

    def fastest(
        self,
        title: str,
        quell: Result,
        peers: Iterable[Result],
        measure: Callable[[Result], float | None],
        meaning: str,
    ) -> str:
        """The fastest of the peers that are as tight as Quell or less."""
        mine = measure(quell)
        start = f"{title}, by {meaning}: "
        if mine is None:
            return start + "Quell gives none"
        peers = list(peers)
        slow = [p for p in peers if p.timed_out]
        known = [(p, measure(p)) for p in peers if p.seconds is not None and not p.timed_out]
        judged = [(p, theirs >= mine - EQUAL or self.misses(p)) for p, theirs in known if theirs is not None]
        worse = [p for p, is_worse in judged if is_worse]
        tighter = [p for p, is_worse in judged if not is_worse]
        if worse:
            best = min(worse, key=lambda p: p.seconds or math.inf)
            text = f"the fastest peer of equal or worse tightness is {best.name}, {best.seconds:.3g} s; "
            text += f"Quell is {times_faster(best.seconds or math.inf, quell)}"
        else:
            text = "no peer of equal or worse tightness finished"
        if tighter:
            text += "; tighter than Quell: "
            text += ", ".join(f"{p.name}, {p.seconds:.3g} s" for p in tighter)
        if slow:
            text += f"; over the limit of {slow[0].seconds:g} s: " + ", ".join(p.name for p in slow)
        return start + text


def times_faster(seconds: float, quell: Result) -> str:
    ratio = seconds / max(quell.seconds or 0.0, 1e-9)
    factor = max(ratio, 1 / ratio)
    shown = f"{factor:,.0f}" if factor >= 100 else f"{factor:.3g}"
    return f"{shown} times {'faster' if ratio >= 1 else 'slower'}"


NOTES = """\
seconds: best wall time on one core and one thread, imports not counted.
upper - lower: between the library's own bounds; the time is that of the upper bound.
  * A Renyi accountant has no lower bound: its upper bound minus the lower bound
    that Quell's PLD accountant proves, that is, the distance from the truth at most.
unused eps: the target, or the library's own upper bound on epsilon at its sigma where
  that is above the target, minus its own lower bound; a Renyi accountant has none.
dp-accounting's lower bound is its optimistic estimate, far coarser than its upper
  bound; "over Quell's lower" is the fairer measure of how tight that upper bound is."""


def report(rows: Iterable[Row], results: list[Result], out: TextIO = sys.stdout) -> None:
    comparisons = [Comparison(row, results) for row in rows]
    for comparison in comparisons:
        say(f"\n{comparison.row.name}: {comparison.row.title}\n", out)
        for line in comparison.table():
            say("  " + line, out)
        for line in comparison.doubts():
            say(f"  ! {line}", out)
    say("\n" + NOTES, out)
    say("\nSummary", out)
    for comparison in comparisons:
        say(f"\n  {comparison.row.name}", out)
        for line in comparison.summary():
            say("    " + line, out)


def as_json(results: Iterable[Result], core: int | None, limit: float) -> str:
    document = {
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "core": core,
        "limit": limit,
        "requirements": [
            line for line in REQUIREMENTS.read_text().splitlines() if line and not line.startswith("#")
        ],
        "results": [
            {**dataclasses.asdict(result), "entry": dataclasses.asdict(result.entry)} for result in results
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Times Quell against other privacy accountants.")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that a peer has for a row (120)")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS), help="rows to run (all)")
    parser.add_argument("--env", type=Path, default=ROOT / "target" / "bench-env", help="where the peers go")
    parser.add_argument("--core", type=int, help="core to run on (the last that is allowed)")
    parser.add_argument("--quell-json", type=Path, metavar="FILE", help="read Quell's lines, do not run it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results as JSON")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    if arguments.child is not None:
        return child(arguments.child)
    rows = [ROWS[name] for name in arguments.rows]

    # Build and install on all cores, then measure on one.
    failure: str | None = None
    program: Path | None = None
    if arguments.quell_json is None:
        try:
            program = build_example("bench_accounting")
        except (OSError, subprocess.CalledProcessError, RuntimeError) as error:
            failure = f"Quell's bench did not build: {error}"
            say(failure)
    try:
        python = prepare_environment(arguments.env, REQUIREMENTS, complete=True)
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"The peers could not be installed: {error}")
        return 1
    core = pin(arguments.core)

    results: list[Result] = []
    try:
        if arguments.quell_json is not None:
            results += read_quell(arguments.quell_json.read_text())
        elif program is not None:
            say("quell ...")
            results += read_quell(run_example(program))
    except (OSError, subprocess.CalledProcessError, ValueError, KeyError, TypeError) as error:
        failure = f"Quell's bench failed: {type(error).__name__}: {error}"
        say(failure)

    for row in rows:
        for entry in entries(row):
            result = run_peer(python, row, entry, arguments.limit)
            say(f"{row.name}: {result.name} ... {result.failure or f'{result.seconds:.3g} s'}")
            results.append(result)

    report(rows, results)
    if arguments.json is not None:
        arguments.json.write_text(as_json(results, core, arguments.limit))
    if failure is not None:
        say(f"\n{failure}", sys.stdout)
    return 0 if failure is None else 1


if __name__ == "__main__":
    sys.exit(main())
