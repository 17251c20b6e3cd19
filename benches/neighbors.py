#!/usr/bin/env python3
"""Times an exact search of the nearest neighbours against other libraries, side by side in one run.

Three sizes, random numbers between 0 and 1, float32, squared Euclidean distance:

    60,000 records of 784 numbers, 1,000 queries, k = 100
    60,000 records of 64 numbers, 10,000 queries, k = 10
    60,000 records of 64 numbers, 10,000 queries, k = 300

The peers are scikit-learn's NearestNeighbors(algorithm="brute") and faiss's
IndexFlatL2, each with two threads, as Quell. Building the index does not count.
Each runs in a process of its own; round after round each gets its turn, alone,
so that a slow moment of the machine hits all of them. The best search counts,
by the clock on the wall and by the time of the processors: on a machine that
has other work, the second says more.

Not equal, and in whose favour:

    the peers'   Quell measures the candidates again in double precision, so that its
                 distances do not depend on how the product was cut; the peers give what
                 the product in single precision gives.
    Quell's      scikit-learn returns distances after a square root.

The peers, pinned in neighbors-requirements.txt, go into a virtual environment of
their own (target/neighbors-env by default), which is kept for the next run.
--python names an environment that has them.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from peers import HERE, ROOT, build_example, last_line, prepare_environment, say

REQUIREMENTS = HERE / "neighbors-requirements.txt"

THREADS = 2
TURN_SECONDS = 1.0

# Records, width, queries, k.
SIZES = ((60_000, 784, 1_000, 100), (60_000, 64, 10_000, 10), (60_000, 64, 10_000, 300))


def sklearn_work(records: "object", queries: "object", k: int) -> Callable[[], object]:
    from sklearn.neighbors import NearestNeighbors

    index = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(records)
    return lambda: index.kneighbors(queries)


def faiss_work(records: "object", queries: "object", k: int) -> Callable[[], object]:
    import faiss

    faiss.omp_set_num_threads(THREADS)
    index = faiss.IndexFlatL2(records.shape[1])
    index.add(records)
    return lambda: index.search(queries, k)


PEERS = {"scikit-learn brute": sklearn_work, "faiss IndexFlatL2": faiss_work}


def worker(name: str, size: list[int]) -> int:
    """Gets ready, then answers every line of stdin with the seconds of a turn's best search, on the wall and of processors."""
    import numpy as np

    records, width, queries, k = size
    generator = np.random.default_rng(1)
    rows = generator.random((records, width), dtype=np.float32)
    search = PEERS[name](rows, generator.random((queries, width), dtype=np.float32), k)
    search()
    print("ready", flush=True)
    for _ in sys.stdin:
        taken: list[tuple[float, float]] = []
        begun = time.perf_counter()
        while len(taken) < 2 or time.perf_counter() - begun < TURN_SECONDS:
            start, processors = time.perf_counter(), time.process_time()
            search()
            taken.append((time.perf_counter() - start, time.process_time() - processors))
        wall, processors = (min(numbers) for numbers in zip(*taken, strict=True))
        print(json.dumps({"seconds": wall, "processor_seconds": processors}), flush=True)
    return 0


class Runner:
    """Quell or a peer in a process of its own, made ready, that measures when told to."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        self.wall: list[float] = []
        self.processors: list[float] = []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self.read()

    def read(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with exit status {self.process.wait()}")
        return line

    def turn(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("turn\n")
        self.process.stdin.flush()
        facts = json.loads(self.read())
        self.wall.append(facts["seconds"])
        # Not every system tells.
        self.processors.append(facts["processor_seconds"] or math.nan)

    def close(self) -> None:
        """The end of its input ends it."""
        self.process.communicate()


def measure(python: Path, program: Path, size: tuple[int, ...], rounds: int) -> bool:
    """Prints the table of one size; says whether Quell took no more time than any peer."""
    numbers = [str(number) for number in size]
    commands = {"quell": [str(program), *numbers]}
    for name in PEERS:
        commands[name] = [str(python), str(Path(__file__).resolve()), "--worker", name, "--size", *numbers]
    runners = [Runner(name, command) for name, command in commands.items()]
    for number in range(rounds):
        for runner in runners:
            runner.turn()
        say(f"round {number + 1} of {rounds}: " + ", ".join(f"{r.name} {r.wall[-1]:.3f} s" for r in runners))
    for runner in runners:
        runner.close()
    records, width, queries, k = size
    say(f"\n{records:,} records of {width}, {queries:,} queries, k = {k}: seconds, times Quell's\n", sys.stdout)
    say(f"  {'':20}  {'wall':>16}  {'processors':>16}", sys.stdout)
    own_wall, own_processors = min(runners[0].wall), min(runners[0].processors)
    for runner in runners:
        wall, processors = min(runner.wall), min(runner.processors)
        shown = f"{wall:8.3f}  {wall / own_wall:6.2f}  {processors:8.3f}  {processors / own_processors:6.2f}"
        say(f"  {runner.name:20}  {shown}", sys.stdout)
    return all(min(runner.wall) >= own_wall for runner in runners)


def main() -> int:
    parser = argparse.ArgumentParser(description="Times Quell's nearest neighbours against other libraries'.")
    parser.add_argument("--env", type=Path, default=ROOT / "target" / "neighbors-env", help="where the peers go")
    parser.add_argument("--python", type=Path, help="a Python that has the peers, instead of installing them")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (5)")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker is not None:
        return worker(arguments.worker, arguments.size)

    for name in ("OMP", "OPENBLAS", "MKL", "RAYON"):
        os.environ[f"{name}_NUM_THREADS"] = str(THREADS)
    try:
        program = build_example("bench_neighbors", "quell")
        python = arguments.python or prepare_environment(arguments.env, REQUIREMENTS, complete=False)
    except (OSError, subprocess.CalledProcessError, RuntimeError) as error:
        say(f"The bench could not be prepared: {error}")
        return 1
    try:
        fastest = [measure(python, program, size, arguments.rounds) for size in SIZES]
    except (OSError, RuntimeError, ValueError) as error:
        say(f"The bench broke off: {last_line(str(error))}")
        return 1
    say(f"\nQuell is at least as fast as each peer in {sum(fastest)} of {len(fastest)} sizes.", sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
