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
import hashlib
import importlib.util
import json
import math
import os
import platform
import subprocess
import sys
import time
import types
import venv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
REQUIREMENTS = HERE / "requirements.txt"

REPEAT_SECONDS = 1.0
REPEAT_TIMES = 5

# Two values closer than this count as equally tight.
EQUAL = 1e-9


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
    why there is no time; after a timeout `seconds` is the limit.
    """

    row: str
    entry: Entry
    seconds: float | None = None
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
        return accountant.compute_epsilon(row.delta, counts)

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
    setattr(optimizers, "DPOptimizer", object)
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
    """Runs one peer on one row and prints what it learns, one JSON object a line."""
    request = json.loads(spec)
    row, entry = ROWS[request["row"]], Entry(**request["entry"])
    out = sys.stdout

    def emit(facts: dict[str, float]) -> None:
        print(json.dumps(facts), file=out, flush=True)

    with contextlib.redirect_stdout(sys.stderr):
        work = WORKERS[entry.library](row, entry)
        best, total, times = math.inf, 0.0, 0
        answer: Any = None
        while times == 0 or (times < REPEAT_TIMES and total < REPEAT_SECONDS):
            start = time.perf_counter()
            answer = work.run()
            elapsed = time.perf_counter() - start
            best, total, times = min(best, elapsed), total + elapsed, times + 1
        emit({"seconds": best})
        for facts in work.read(answer):
            emit(facts)
    return 0


# --------------------------------------------------------------------------
# Running the peers and Quell
# --------------------------------------------------------------------------


def say(text: str, out: TextIO = sys.stderr) -> None:
    print(text, file=out, flush=True)


def prepare_environment(directory: Path) -> Path:
    """Returns the Python of an environment that holds the pinned peers."""
    python = directory / "bin" / "python"
    stamp = directory / "requirements.stamp"
    key = hashlib.sha256(sys.version.encode() + REQUIREMENTS.read_bytes()).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text().strip() == key:
        return python
    say(f"Installing the peers into {directory} ...")
    venv.create(directory, clear=True, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--requirement", str(REQUIREMENTS)], check=True)
    stamp.write_text(key + "\n")
    return python


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


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:120] if lines else "no message"


def run_peer(python: Path, row: Row, entry: Entry, limit: float) -> Result:
    """Measures one peer in a process of its own."""
    spec = json.dumps({"row": row.name, "entry": dataclasses.asdict(entry)})
    result = Result(row.name, entry)
    process = subprocess.Popen(
        [str(python), str(Path(__file__).resolve()), "--child", spec],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    expired = False
    try:
        stdout, stderr = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        expired = True
        process.kill()
        stdout, stderr = process.communicate()
    except BaseException:
        process.kill()
        raise
    for line in stdout.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            for key, number in json.loads(line).items():
                setattr(result, key, number)
    if result.seconds is None and expired:
        result.seconds, result.timed_out, result.failure = limit, True, f"> {limit:g} s"
    elif result.seconds is None or (process.returncode != 0 and not expired):
        result.seconds, result.failure = None, f"failed: {last_line(stderr)}"
    elif result.upper is not None and not math.isfinite(result.upper):
        result.seconds, result.failure = None, f"failed: returned {result.upper}"
    return result


def run_quell() -> str:
    """Builds Quell's bench; returns the lines it prints when pinned like the peers."""
    target = ["--release", "--quiet", "--example", "bench_accounting", "-p", "quell-privacy"]
    build = ["cargo", "build", *target, "--message-format", "json-render-diagnostics"]
    built = subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in built.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "bench_accounting":
            return message["executable"]
    raise RuntimeError("cargo named no executable for bench_accounting")


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
