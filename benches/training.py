#!/usr/bin/env python3
"""Times a step of private training against other libraries, side by side in one run.

Three networks, each with a fixed batch of random data, two threads, float32:

    mlp     784-1000-10, ReLU, batch 600
    cnn     Opacus's MNIST network, batch 256
    cifar   six convolutions on 3×32×32, tanh, batch 256

Quell and every peer take the same step: gradients of every example, clipped,
added up, noise, update. Choosing the batch does not count, nor does compiling.
Each runs in a process of its own that stays alive while a network is measured;
round after round each gets its turn, alone, so that a slow moment of the machine
hits all of them. The best repetition counts.

Not equal, and in whose favour:

    the peers'   Quell draws its noise from a cryptographic generator and rounds it
                 to a grid; Opacus runs without its secure mode, JAX with threefry
                 from a 64-bit key. Neither pays a ledger.
    the peers'   a fixed batch. JAX compiles again, or pads, for every new size that
                 Poisson sampling draws.
    the peers'   JAX is given its arrays to overwrite (donated), channels last, and a
                 program compiled beforehand. jax_privacy has a second row with
                 microbatches, several times faster than the first on the mlp.
    Quell's      PyTorch runs as it is by default, eager and channels first, without
                 torch.compile. Opacus's ghost clipping takes a second backward pass and,
                 having no ghost norm for convolutions, makes their gradients one by one.
    Quell's      Opacus could split the batch (BatchMemoryManager) for less memory; in
                 first trials that took longer, and it is measured whole.
    Quell's      in JAX, max pooling is reduce_window and noise is threefry, the usual
                 ways; no faster ones were looked for.
    Quell's      memory of the peers includes what their libraries set up at the first
                 step: PyTorch takes 175 to 185 MB for a single example of the mlp or cnn,
                 Opacus 130 MB, of 200 to 225 for the batch of the cnn. There a ratio of
                 memories is mostly one of libraries. JAX's includes its compiler's.

Memory is the peak resident size of the process minus the peak after imports; the
peak itself is in the column beside. All peers of a network are alive at once: the
mlp, where some keep 1.9 GB of gradients between turns, may want 16 GB (an estimate).

The peers, pinned in training-requirements.txt, go into a virtual environment of
their own (target/training-env by default), which is kept for the next run. torch
comes with several gigabytes; --python names an environment that has it.

--check measures nothing: on a batch of a few examples it compares every peer's
update with gradients taken one example at a time, and measures its noise.
"""

import argparse
import contextlib
import dataclasses
import importlib
import json
import math
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, TextIO

from peers import HERE, ROOT, build_example, last_line, prepare_environment, run_example, say
from trainers import NETWORKS, PEERS, Network, Peer, Trainer, draw_task

REQUIREMENTS = HERE / "training-requirements.txt"

THREADS = 2

# A repetition is as many steps as fit, a turn as many repetitions as fit, but at least one.
REPETITION_SECONDS = 0.25
TURN_SECONDS = 1.0

# A peer that has been measured for this long, and twice, gets no further turn.
PATIENCE_SECONDS = 30.0

# A median above this multiple of the best repetition is reported as doubtful.
BUSY = 1.2

# What a private step of Quell is wanted to reach: times the best private peer, by network.
WANTED = {"mlp": 2.0, "cnn": 3.0, "cifar": 3.0}


@dataclasses.dataclass
class Result:
    """What one peer, or Quell in one mode, gave on one network.

    `seconds` are those of a step, one number a repetition. `failure` says why
    there are none. `flops_share` is Quell's own: the share of the peak of the
    processor's arithmetic that it reached.
    """

    network: str
    name: str
    library: str
    label: str
    plain: str | None
    seconds: list[float] = dataclasses.field(default_factory=list)
    peak_memory_bytes: int | None = None
    baseline_memory_bytes: int = 0
    flops_share: float | None = None
    failure: str | None = None

    @property
    def private(self) -> bool:
        return self.plain is not None

    @property
    def best(self) -> float | None:
        return min(self.seconds, default=None)

    @property
    def memory(self) -> int | None:
        """Bytes beyond what the imports took."""
        return None if self.peak_memory_bytes is None else max(0, self.peak_memory_bytes - self.baseline_memory_bytes)


# --------------------------------------------------------------------------
# The worker: this part runs in the child processes only
# --------------------------------------------------------------------------


def peak_memory() -> int:
    """Linux counts in kibibytes. What a child inherits is the peak of this small script, below any import."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def prepare(peer: Peer) -> None:
    """Imports what the peer needs, on the threads it may use."""
    for name in peer.imports:
        importlib.import_module(name)
    # jax has no such setting: the cores that the process may run on are its bound.
    if "torch" in peer.imports:
        import torch

        torch.set_num_threads(THREADS)


def take(trainer: Trainer, steps: int) -> float:
    """Seconds per step of a repetition."""
    start = time.perf_counter()
    for _ in range(steps):
        trainer.step()
    return (time.perf_counter() - start) / steps


def worker(name: str, network: str, limit: float) -> int:
    """Gets ready, then answers every line of stdin with a turn's measurements, one JSON object a line.

    Getting ready and each turn have the time limit; the alarm then ends the
    process, whatever it is doing.
    """
    out, peer = sys.stdout, PEERS[name]

    def emit(facts: dict[str, Any]) -> None:
        print(json.dumps({**facts, "peak_memory_bytes": peak_memory()}), file=out, flush=True)

    with contextlib.redirect_stdout(sys.stderr):
        prepare(peer)
        baseline = peak_memory()
        signal.setitimer(signal.ITIMER_REAL, limit)
        trainer = peer.build(draw_task(NETWORKS[network], NETWORKS[network].batch))
        take(trainer, 1)  # compiles
        steps = max(1, min(100, round(REPETITION_SECONDS / take(trainer, 1))))
        emit({"baseline_memory_bytes": baseline})
        signal.setitimer(signal.ITIMER_REAL, 0)
        for _ in sys.stdin:
            signal.setitimer(signal.ITIMER_REAL, limit)
            seconds: list[float] = []
            while not seconds or (sum(seconds) + seconds[-1]) * steps < TURN_SECONDS:
                seconds.append(take(trainer, steps))
            signal.setitimer(signal.ITIMER_REAL, 0)
            emit({"seconds": seconds})
    return 0


# Few enough to take them one at a time, and two microbatches.
CHECK_BATCH = 16


def check(names: list[str], networks: list[str]) -> int:
    """Compares every peer with gradients taken one example at a time, in float64.

    Without noise, at a clip norm that some of the examples exceed and some do
    not, the update must be theirs. With noise a thousand times the clip norm,
    two steps must move the weights by √2 deviations: by less if there is too
    little noise, by 2 if both steps had the same.
    """
    import numpy as np

    # Opacus's backward hooks make torch warn of every first layer.
    warnings.simplefilter("ignore")
    failures = 0
    for network in networks:
        task = draw_task(NETWORKS[network], CHECK_BATCH)
        gradients = one_at_a_time(task)
        norms = np.linalg.norm(gradients, axis=1)
        task = dataclasses.replace(task, clip_norm=float(np.median(norms)), learning_rate=1e-2)
        scales = np.minimum(1.0, task.clip_norm / norms)
        assert scales.min() < 1.0 and scales.max() == 1.0, "the clip norm tells nothing apart"
        for name in names:
            peer = PEERS[name]
            prepare(peer)

            def moved(steps: int, noise: float, peer: Peer = peer, task: Any = task) -> Any:
                """The sum of all updates, in units of the sum over the batch."""
                trainer = peer.build(dataclasses.replace(task, noise_multiplier=noise))
                for _ in range(steps):
                    trainer.step()
                change = [old - new.astype(float) for old, new in zip(task.weights, trainer.weights(), strict=True)]
                return np.concatenate([c.ravel() for c in change]) * (task.batch / task.learning_rate)

            expected = (scales[:, None] * gradients).sum(axis=0) if peer.private else gradients.sum(axis=0)
            error = float(np.linalg.norm(moved(1, 0.0) - expected) / np.linalg.norm(expected))
            right = error < 1e-3
            text = f"{network}: {name}: update off by {error:.1e}"
            if peer.private:
                noise = float(moved(2, 1000.0).std() / (1000.0 * task.clip_norm * math.sqrt(2)))
                # Five deviations of the estimate from that many numbers.
                right = right and abs(noise - 1) < 5 / math.sqrt(2 * expected.size)
                text += f", noise {noise:.4f} of what it should be"
            say(f"{text}{'' if right else ': WRONG'}", sys.stdout)
            failures += not right
    return 1 if failures else 0


def one_at_a_time(task: Any) -> Any:
    """The gradient of each example, flattened, by one backward pass each."""
    import numpy as np
    import torch
    from trainers import torch_module

    module = torch_module(task).double()
    inputs, labels = torch.from_numpy(task.inputs).double(), torch.from_numpy(task.labels)
    gradients = []
    for i in range(task.batch):
        module.zero_grad()
        torch.nn.functional.cross_entropy(module(inputs[i : i + 1]), labels[i : i + 1]).backward()
        gradients.append(np.concatenate([parameter.grad.numpy().ravel() for parameter in module.parameters()]))
    return np.stack(gradients)


# --------------------------------------------------------------------------
# Running the peers and Quell
# --------------------------------------------------------------------------


def pin(cores: list[int] | None) -> list[int]:
    """Confines this process, and so its children, to two cores and two threads."""
    for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "RAYON"):
        os.environ[f"{name}_NUM_THREADS"] = str(THREADS)
    os.environ["JAX_PLATFORMS"] = "cpu"
    # Or the last line of an error is a word about the traceback.
    os.environ["JAX_TRACEBACK_FILTERING"] = "off"
    os.environ.pop("PYTHONPATH", None)
    if not hasattr(os, "sched_setaffinity"):
        say("This system cannot pin a process to cores; jax may use more threads than two.")
        return []
    cores = cores or sorted(os.sched_getaffinity(0))[-THREADS:]
    os.sched_setaffinity(0, cores)
    if len(cores) < THREADS:
        say(f"There are fewer than {THREADS} cores: times are of {THREADS} threads that share them.")
    return cores


class Runner:
    """A peer in a process of its own, made ready, that measures when told to."""

    def __init__(self, python: Path, peer: Peer, network: Network, limit: float) -> None:
        self.result = Result(network.name, peer.name, peer.library, peer.label, peer.plain)
        self.limit = limit
        # A file, not a pipe: nobody reads while the peer runs.
        self.errors: IO[str] = tempfile.TemporaryFile("w+")
        command = [str(python), str(Path(__file__).resolve()), "--worker", peer.name]
        command += ["--network", network.name, "--limit", str(limit)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )
        self.read()

    def read(self) -> None:
        """Takes in one answer, or what became of the process."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.result.failure = self.reason(self.process.wait())
            return
        facts = json.loads(line)
        self.result.seconds += facts.pop("seconds", [])
        for key, number in facts.items():
            setattr(self.result, key, number)

    def reason(self, status: int) -> str:
        if status == -signal.SIGALRM:
            return f"over the limit of {self.limit:g} s"
        if status == -signal.SIGKILL:
            return "failed: killed, perhaps for want of memory"
        self.errors.seek(0)
        return f"failed: {last_line(self.errors.read()) or f'exit status {status}'}"

    def turn(self) -> None:
        spent = sum(self.result.seconds)
        enough = len(self.result.seconds) > 1 and spent > PATIENCE_SECONDS
        if self.result.failure is not None or enough:
            return
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("turn\n")
            self.process.stdin.flush()
        self.read()

    def close(self) -> None:
        """The end of its input ends the worker."""
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()
        self.errors.close()


class Quell:
    """Quell's program, run anew for each turn; it prints one JSON object a mode, for the network it is given."""

    def __init__(self, program: Path, network: Network) -> None:
        self.program = program
        self.network = network.name
        self.results = {
            mode: Result(network.name, f"quell-{mode}", "Quell", label, "quell-plain" if mode == "private" else None)
            for mode, label in (("private", "DP-SGD"), ("plain", "no privacy"))
        }

    def turn(self) -> None:
        for mode, result in self.results.items():
            if result.failure is not None:
                continue
            try:
                # One mode a process: the peak of one would hide in the other's.
                self.read(run_example(self.program, self.network, mode), mode)
            except (OSError, subprocess.CalledProcessError, ValueError, KeyError, TypeError) as error:
                result.failure = f"failed: {type(error).__name__}: {error}"

    def read(self, text: str, mode: str) -> None:
        lines = [json.loads(line) for line in text.splitlines() if line.strip()]
        result = self.results[mode]
        for line in lines:
            if (line["network"], line["mode"]) == (self.network, mode):
                result.seconds.append(float(line["seconds_per_step"]))
                result.peak_memory_bytes = max(result.peak_memory_bytes or 0, int(line["peak_memory_bytes"]))
                if line.get("flops_share") is not None:
                    result.flops_share = max(result.flops_share or 0.0, float(line["flops_share"]))
                return
        raise ValueError(f"no line for {self.network}, {mode}")


def measure(
    python: Path, network: Network, peers: Iterable[Peer], program: Path | None, rounds: int, limit: float
) -> list[Result]:
    """All peers and Quell on one network, each in turn, `rounds` times."""
    runners: list[Runner] = []
    try:
        for peer in peers:
            runners.append(Runner(python, peer, network, limit))
            say(f"{network.name}: {peer.name}: {runners[-1].result.failure or 'ready'}")
        quell = None if program is None else Quell(program, network)
        for number in range(1, rounds + 1):
            say(f"{network.name}: round {number} of {rounds} ...")
            if quell is not None:
                quell.turn()
            for runner in runners:
                runner.turn()
    finally:
        for runner in runners:
            runner.close()
    own = [] if quell is None else list(quell.results.values())
    return own + [runner.result for runner in runners]


# --------------------------------------------------------------------------
# The report
# --------------------------------------------------------------------------


def megabytes(count: float | None) -> str:
    return "-" if count is None else f"{count / 1e6:,.0f}"


def times(ratio: float) -> str:
    return f"{ratio:.3g} times" if ratio < 1000 else f"{ratio:,.0f} times"


class Comparison:
    """The results on one network, against Quell's."""

    def __init__(self, network: Network, results: Iterable[Result]) -> None:
        self.network = network
        self.results = {result.name: result for result in results if result.network == network.name}

    def over_plain(self, result: Result) -> float | None:
        """What privacy costs in the same library."""
        plain = self.results.get(result.plain or "")
        if plain is None or plain.best is None or result.best is None:
            return None
        return result.best / plain.best

    def over_quell(self, result: Result) -> float | None:
        """In units of Quell's private step, whether or not the peer's is private."""
        quell = self.results.get("quell-private")
        if quell is None or quell.best is None or result.best is None:
            return None
        return result.best / quell.best

    def table(self) -> Iterator[str]:
        header = ["library", "mode", "ms a step", "examples/s", "DP / plain", "of Quell's DP", "MB", "MB in all"]
        lines = [header, *([result.library, result.label, *self.cells(result)] for result in self.results.values())]
        # A failure stands alone and may be as long as it likes.
        widths = [max(len(line[i]) for line in lines if len(line) == len(header) or i < 2) for i in range(len(header))]
        for line in lines:
            if len(line) < len(header):
                widths_of_names = zip(line[:2], widths[:2], strict=True)
                yield "  ".join([*(cell.ljust(width) for cell, width in widths_of_names), line[2]])
                continue
            names = [cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)]
            numbers = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
            yield "  ".join([*names, *numbers])

    def cells(self, result: Result) -> list[str]:
        if result.best is None:
            return [result.failure or "not measured"]
        ratios = (self.over_plain(result), self.over_quell(result))
        return [
            f"{result.best * 1e3:.1f}",
            f"{self.network.batch / result.best:,.0f}",
            *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios),
            megabytes(result.memory),
            megabytes(result.peak_memory_bytes),
        ]

    def doubts(self) -> Iterator[str]:
        """Results that cannot be taken at face value."""
        for result in self.results.values():
            if result.best is None:
                continue
            name = f"{result.library} ({result.label})"
            if result.failure is not None:
                yield f"{name}: {result.failure}, after {len(result.seconds)} repetitions"
            middle = statistics.median(result.seconds)
            if middle > BUSY * result.best:
                yield f"{name}: the machine was busy, half of its repetitions took {times(middle / result.best)} the best or more"

    def summary(self) -> Iterator[str]:
        quell = self.results.get("quell-private")
        peers = [r for r in self.results.values() if r.library != "Quell" and r.best is not None]
        private = sorted((r for r in peers if r.private), key=lambda r: r.best or math.inf)
        if private:
            text = f"best private peer: {private[0].library} ({private[0].label}), {private[0].best or 0:.3g} s"
            ratio = self.over_quell(private[0])
            if ratio is not None:
                text += f": {times(ratio)} Quell's step (wanted: {WANTED[self.network.name]:g})"
            yield text
        if quell is None or quell.best is None:
            yield "no measurement of Quell"
            return
        torch = self.results.get("torch")
        if torch is not None and (ratio := self.over_quell(torch)) is not None:
            yield f"PyTorch without privacy: {times(ratio)} Quell's private step (wanted: 1)"
        if (ratio := self.over_plain(quell)) is not None:
            yield f"Quell's private step: {times(ratio)} its own without privacy (wanted: at most 1.1)"
        opacus = [r for r in peers if r.library == "Opacus" and r.memory]
        if opacus and quell.peak_memory_bytes:
            least = min(opacus, key=lambda r: r.memory or math.inf)
            # All of Quell's process against what Opacus takes beyond its imports.
            ratio = (least.memory or 0) / quell.peak_memory_bytes
            yield f"memory of Opacus at its smallest ({least.label}): {times(ratio)} Quell's whole process (wanted: 10)"
        if quell.flops_share is not None:
            yield f"share of the processor's peak that Quell reaches: {quell.flops_share:.0%}"


NOTES = """\
ms a step: the best repetition, wall time, two threads.
DP / plain: over the step without privacy in the same library (Opacus: PyTorch).
of Quell's DP: over Quell's private step; above 1, Quell is faster.
MB: peak resident memory beyond that after imports; of Quell, which imports nothing, all of it."""


def report(networks: Iterable[Network], results: list[Result], out: TextIO = sys.stdout) -> None:
    comparisons = [Comparison(network, results) for network in networks]
    for comparison in comparisons:
        network = comparison.network
        say(f"\n{network.name}: {network.title}, batch {network.batch}\n", out)
        for line in comparison.table():
            say("  " + line, out)
        for line in comparison.doubts():
            say(f"  ! {line}", out)
    say("\n" + NOTES, out)
    say("\nSummary", out)
    for comparison in comparisons:
        say(f"\n  {comparison.network.name}", out)
        for line in comparison.summary():
            say("    " + line, out)


def as_json(results: Iterable[Result], cores: list[int], rounds: int) -> str:
    document = {
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "cores": cores,
        "threads": THREADS,
        "rounds": rounds,
        "requirements": [
            line for line in REQUIREMENTS.read_text().splitlines() if line and not line.startswith("#")
        ],
        "batches": {name: network.batch for name, network in NETWORKS.items()},
        "results": [{**dataclasses.asdict(result), "best_seconds": result.best} for result in results],
    }
    return json.dumps(document, indent=2) + "\n"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Times private training against other libraries'.")
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=list(NETWORKS), help="(all)")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS), help="(all)")
    parser.add_argument("--rounds", type=int, default=5, help="turns that each gets on a network (5)")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that a peer has for a turn (300)")
    parser.add_argument("--cores", type=int, nargs=THREADS, help="cores to run on (the last that are allowed)")
    parser.add_argument("--env", type=Path, default=ROOT / "target" / "training-env", help="where the peers go")
    parser.add_argument("--python", type=Path, help="a Python that has the peers, instead of installing them")
    parser.add_argument("--skip-quell", action="store_true", help="measure the peers alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results as JSON")
    parser.add_argument("--check", action="store_true", help="check what the peers compute, measure nothing")
    parser.add_argument("--worker", choices=[*PEERS, "check"], help=argparse.SUPPRESS)
    parser.add_argument("--network", choices=list(NETWORKS), help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    if arguments.worker == "check":
        return check(arguments.peers, arguments.networks)
    if arguments.worker is not None:
        return worker(arguments.worker, arguments.network, arguments.limit)

    # Build and install on all cores, then measure on two.
    failure: str | None = None
    program: Path | None = None
    if not arguments.skip_quell and not arguments.check:
        try:
            program = build_example("bench_training", package="quell")
        except (OSError, subprocess.CalledProcessError, RuntimeError) as error:
            failure = f"Quell's bench did not build: {error}"
            say(failure)
    try:
        python = arguments.python or prepare_environment(arguments.env, REQUIREMENTS, complete=False)
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"The peers could not be installed: {error}")
        return 1
    cores = pin(arguments.cores)
    if arguments.check:
        command = [str(python), str(Path(__file__).resolve()), "--worker", "check"]
        return subprocess.run([*command, "--peers", *arguments.peers, "--networks", *arguments.networks]).returncode

    networks = [NETWORKS[name] for name in arguments.networks]
    peers = [PEERS[name] for name in arguments.peers]
    results: list[Result] = []
    for network in networks:
        results += measure(python, network, peers, program, arguments.rounds, arguments.limit)
    for result in results:
        if result.library == "Quell" and result.failure is not None:
            failure = f"Quell's bench on {result.network}: {result.failure}"

    report(networks, results)
    if arguments.json is not None:
        arguments.json.write_text(as_json(results, cores, arguments.rounds))
    if failure is not None:
        say(f"\n{failure}", sys.stdout)
    return 0 if failure is None else 1


if __name__ == "__main__":
    sys.exit(main())
