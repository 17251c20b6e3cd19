#!/usr/bin/env python3
"""Times Quell's noise against other libraries' in one run.

Two tables, in nanoseconds per number:

    vectors   a million and ten million numbers: Quell's rounded noise beside
              torch.normal and numpy's standard_normal. torch may use every core
              that Quell may use.
    integers  exact noise on the integers, one after the other: Quell's discrete
              distributions beside OpenDP's.

Quell and every peer run one after the other, each in its own process. A peer
is imported before its clock starts and repeated for at least a second and five
times; its best time counts.

The peers, pinned in noise-requirements.txt, go into a virtual environment of
their own (target/noise-env by default), which is kept for the next run. torch
comes with several gigabytes; --python names an environment that has it.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from peers import HERE, ROOT, build_example, last_line, prepare_environment, run_example, say

REQUIREMENTS = HERE / "noise-requirements.txt"

VECTORS = (1_000_000, 10_000_000)
INTEGERS = 20_000


def torch_work(numbers: int, in_place: bool) -> Callable[[], object]:
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    if in_place:
        target = torch.zeros(numbers)
        return lambda: target.normal_()
    return lambda: torch.normal(0.0, 1.0, (numbers,))


def numpy_work(numbers: int, dtype: str) -> Callable[[], object]:
    import numpy as np

    generator = np.random.default_rng()
    target = np.zeros(numbers, dtype=dtype)
    return lambda: generator.standard_normal(dtype=dtype, out=target)


def opendp_work(numbers: int, law: str, scale: float) -> Callable[[], object]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if law == "gaussian":
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
    else:
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)
    values = [0] * numbers
    return lambda: measurement(values)


PEERS: dict[str, Callable[[int], Callable[[], object]]] = {
    "torch.normal, float32": lambda n: torch_work(n, in_place=False),
    "torch.Tensor.normal_, float32": lambda n: torch_work(n, in_place=True),
    "numpy standard_normal, float32": lambda n: numpy_work(n, "float32"),
    "numpy standard_normal, float64": lambda n: numpy_work(n, "float64"),
    "opendp make_gaussian, scale 1": lambda n: opendp_work(n, "gaussian", 1.0),
    "opendp make_gaussian, scale 1000": lambda n: opendp_work(n, "gaussian", 1000.0),
    "opendp make_laplace, scale 1": lambda n: opendp_work(n, "laplace", 1.0),
    "opendp make_laplace, scale 1000": lambda n: opendp_work(n, "laplace", 1000.0),
}

# A peer of the table of integers, and what it is compared with.
EXACT = {
    f"opendp make_{law}, scale {scale}": f"discrete {law}, scale {scale}"
    for law in ("gaussian", "laplace")
    for scale in (1, 1000)
}


def child(name: str, numbers: int) -> int:
    """Times one peer and prints the best of its times in seconds."""
    run = PEERS[name](numbers)
    taken: list[float] = []
    while len(taken) < 5 or sum(taken) < 1.0:
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    print(min(taken))
    return 0


def measure(python: Path, name: str, numbers: int) -> float | None:
    """Nanoseconds per number of one peer, or nothing and a word about it."""
    command = [str(python), str(Path(__file__).resolve()), "--child", name, "--numbers", str(numbers)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        say(f"{name}: {last_line(done.stderr)}")
        return None
    nanoseconds = float(last_line(done.stdout)) * 1e9 / numbers
    say(f"{name}, {numbers:,} numbers: {nanoseconds:.3g} ns")
    return nanoseconds


def table(title: str, rows: list[tuple[str, float | None, float | None]]) -> None:
    """Rows of name, nanoseconds and those of the row compared with."""
    say(f"\n{title}\n", sys.stdout)
    width = max(len(name) for name, _, _ in rows)
    for name, nanoseconds, quell in rows:
        if nanoseconds is None:
            say(f"  {name.ljust(width)}  failed", sys.stdout)
            continue
        ratio = "" if quell is None else f"  {nanoseconds / quell:8.2f} times Quell's"
        say(f"  {name.ljust(width)}  {nanoseconds:9.2f}{ratio}", sys.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description="Times Quell's noise against other libraries'.")
    parser.add_argument("--env", type=Path, default=ROOT / "target" / "noise-env", help="where the peers go")
    parser.add_argument("--python", type=Path, help="a Python that has the peers, instead of installing them")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--numbers", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        return child(arguments.child, arguments.numbers)

    try:
        program = build_example("bench_noise")
        python = arguments.python or prepare_environment(arguments.env, REQUIREMENTS, complete=False)
    except (OSError, subprocess.CalledProcessError, RuntimeError) as error:
        say(f"The bench could not be prepared: {error}")
        return 1
    say("quell ...")
    lines = [json.loads(line) for line in run_example(program).splitlines()]
    quell = {
        (line["name"], line["numbers"], line["threads"]): line["seconds"] * 1e9 / line["numbers"] for line in lines
    }
    threads = max(line["threads"] for line in lines)

    peers = [name for name in PEERS if name not in EXACT]
    for numbers in VECTORS:
        own = quell["rounded gaussian", numbers, threads]
        rows: list[tuple[str, float | None, float | None]] = [
            (f"quell {name}, {count} threads" if count > 1 else f"quell {name}, 1 thread", time_taken, None)
            for (name, size, count), time_taken in quell.items()
            if size == numbers and name.startswith("rounded")
        ]
        rows += [(name, measure(python, name, numbers), own) for name in peers]
        table(f"{numbers:,} numbers, ns per number ({threads} cores; ratios to Quell's Gaussian on all of them)", rows)
    rows = []
    for name, ours in EXACT.items():
        own = next(value for (known, _, _), value in quell.items() if known == ours)
        rows += [(f"quell {ours}", own, None), (name, measure(python, name, INTEGERS), own)]
    table("Exact noise on the integers, ns per number, one thread", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
