#!/usr/bin/env python3
"""Measures what Python adds: the package beside the program, and the accountant from Python beside dp_accounting.

    training    whole runs of the same network on the same records, in turns: `quell.train` on an array of
                numpy, beside the process `quell train` on the same array in a file
    accountant  ε of a DP-SGD run, from Python
    wheel       the size of the wheel

The package is built in release mode into a virtual environment of its own (target/python-bench by default), with
the peers pinned in python-requirements.txt. The best time of each counts.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from peers import HERE, ROOT, build, prepare_environment, run_timed, say

REQUIREMENTS = HERE / "python-requirements.txt"
RECORDS, COLUMNS, CLASSES, STEPS = 20_000, 784, 10, 100


def build_wheel(python: Path) -> Path:
    wheels = ROOT / "target" / "wheels"
    command = [str(python), "-m", "maturin", "build", "--release", "--locked", "--out", str(wheels)]
    subprocess.run([*command, "--quiet"], cwd=ROOT / "crates" / "quell-python", check=True)
    wheel = max(wheels.glob("quell-*.whl"), key=lambda path: path.stat().st_mtime)
    install = [str(python), "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", str(wheel)]
    subprocess.run(install, check=True)
    return wheel


def training(program: Path, runs: int) -> None:
    import numpy as np

    import quell

    generator = np.random.default_rng(0)
    X = generator.integers(0, 256, (RECORDS, COLUMNS), dtype=np.uint8)
    y = generator.integers(0, CLASSES, RECORDS)
    of_python, of_program = [], []
    with tempfile.TemporaryDirectory() as place:
        np.savez(Path(place) / "train.npz", x=X, y=y)
        flags = ["train", "train.npz", "--model", "mlp", "--steps", str(STEPS), "--records", str(RECORDS)]
        flags += ["--batch-size", "600", "--epsilon", "3", "--delta", "1e-6", "--classes", str(CLASSES)]
        for number in range(runs):
            _, seconds = run_timed(program, place, *flags, "--ledger", f"ledger-{number}.db", "--output", f"run-{number}")
            of_program.append(seconds)
            start = time.perf_counter()
            model = quell.train(
                X, y, epsilon=3, delta=1e-6, records=RECORDS, classes=range(CLASSES), model="mlp", progress=False,
                settings={"training": {"steps": STEPS, "sampling": {"rate": 600 / RECORDS}}},
            )
            of_python.append(time.perf_counter() - start)
    say(f"training, {STEPS} steps of 784-1000-10 at batch 600: {model}", sys.stdout)
    say(f"  quell.train   {min(of_python):.3f} s", sys.stdout)
    say(f"  quell train   {min(of_program):.3f} s   ratio {min(of_python) / min(of_program):.3f}", sys.stdout)


def best(work: Callable[[], object], seconds: float = 2.0) -> float:
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def accountant() -> None:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    from quell.accounting import dp_sgd, epsilon

    run = dp_sgd(noise_multiplier=1.1, sampling_rate=0.01, steps=10_000)
    theirs = dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.1)), 10_000
    )
    say("ε of a DP-SGD run of 10,000 steps, δ = 1e-5", sys.stdout)
    ours = best(lambda: epsilon(run, delta=1e-5, accountant="pld"))
    all_that_apply = best(lambda: epsilon(run, delta=1e-5))
    peer = best(lambda: PLDAccountant().compose(theirs).get_epsilon(1e-5))
    say(f"  quell, pld    {1000 * ours:.2f} ms   {epsilon(run, delta=1e-5)}", sys.stdout)
    say(f"  quell, best   {1000 * all_that_apply:.2f} ms", sys.stdout)
    say(f"  dp_accounting {1000 * peer:.0f} ms   {peer / ours:.0f} times as long", sys.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--env", type=Path, default=ROOT / "target" / "python-bench", help="where the package goes")
    parser.add_argument("--runs", type=int, default=5, help="runs of each (5)")
    parser.add_argument("--python", type=Path, help="a Python with the package and the peers, instead of building them")
    parser.add_argument("--quell", type=Path, help="the program, instead of building it")
    arguments = parser.parse_args()
    if arguments.python is None:
        python = prepare_environment(arguments.env, REQUIREMENTS, complete=False)
        wheel = build_wheel(python)
        say(f"the wheel has {wheel.stat().st_size / 1e6:.1f} MB", sys.stdout)
        command = [str(python), *sys.argv, "--python", str(python)]
        sys.exit(subprocess.run(command, check=False).returncode)
    accountant()
    training((arguments.quell or build()).absolute(), arguments.runs)


if __name__ == "__main__":
    main()
