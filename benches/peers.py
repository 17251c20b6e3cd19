"""What the benches share: an environment for the peers, and Quell's own program."""

import argparse
import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
import time
import venv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def say(text: str, out: TextIO = sys.stderr) -> None:
    print(text, file=out, flush=True)


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:120] if lines else ""


def prepare_environment(directory: Path, requirements: Path, complete: bool) -> Path:
    """Returns the Python of an environment that holds the pinned peers.

    `complete` says that the requirements list everything that is needed, so
    that nothing else is installed.
    """
    python = directory / "bin" / "python"
    stamp = directory / "requirements.stamp"
    key = hashlib.sha256(sys.version.encode() + requirements.read_bytes()).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text().strip() == key:
        return python
    say(f"Installing the peers into {directory} ...")
    venv.create(directory, clear=True, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", *(["--no-deps"] if complete else [])]
    subprocess.run([*pip, "--requirement", str(requirements)], check=True)
    stamp.write_text(key + "\n")
    return python


def data_parser(description: str, environment: str, program: bool = True) -> argparse.ArgumentParser:
    """The arguments of every bench that needs data sets. `environment` names the folder of the peers."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, default=os.environ.get("QUELL_DATA"), help="the folder of the data sets")
    parser.add_argument("--env", type=Path, default=ROOT / "target" / environment, help="where the peers go")
    parser.add_argument("--python", type=Path, help="a Python that has the peers, instead of installing them")
    parser.add_argument("--runs", type=int, default=10, help="runs of each (10)")
    if program:
        parser.add_argument("--quell", type=Path, help="the program, instead of building it")
    return parser


def enter(parser: argparse.ArgumentParser, requirements: Path, one_thread: bool = True) -> argparse.Namespace:
    """Reads the arguments, and continues in the Python that has the peers.

    `one_thread` limits the peers to one thread. With more threads their small matrix products
    take longer, and many times as long on a busy machine.
    """
    arguments = parser.parse_args()
    if arguments.data is None:
        say("The bench needs the data sets: name their folder by --data or QUELL_DATA (benches/table_data.py lists the files).")
        sys.exit(2)
    python = arguments.python or prepare_environment(arguments.env, requirements, complete=False)
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} if one_thread else {}
    if Path(sys.executable).absolute() != python.absolute() or not threads.keys() <= os.environ.keys():
        command = [str(python), *sys.argv, "--python", str(python)]
        sys.exit(subprocess.run(command, check=False, env={**threads, **os.environ}).returncode)
    warnings.filterwarnings("ignore")
    if "quell" in arguments:
        arguments.quell = (arguments.quell or build()).absolute()
    return arguments


def build() -> Path:
    """Builds the command `quell` and returns the program."""
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "quell-cli"], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "quell"


def run_timed(program: Path, place: str | Path, *arguments: str) -> tuple[str, float]:
    """Runs a command of Quell in a folder; returns what it printed, and its seconds."""
    start = time.perf_counter()
    command = [str(program), *arguments]
    finished = subprocess.run(command, cwd=place, check=False, capture_output=True, text=True)
    if finished.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {last_line(finished.stderr)}")
    return finished.stdout, time.perf_counter() - start


def run_limited(seconds: float, work: Callable[[], object]) -> object | None:
    """Runs `work` in a process of its own; `None` if it takes longer than so many seconds."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=lambda: sender.send(work()))
    process.start()
    sender.close()
    try:
        if not receiver.poll(seconds):
            return None
        return receiver.recv()
    except EOFError:
        raise RuntimeError("the peer failed") from None
    finally:
        process.kill()
        process.join()


def build_example(name: str, package: str = "quell-privacy") -> Path:
    """Builds an example of one of Quell's crates and returns the program."""
    command = ["cargo", "build", "--release", "--quiet", "--example", name]
    command += ["-p", package, "--message-format", "json-render-diagnostics"]
    built = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == name:
            return Path(message["executable"])
    raise RuntimeError(f"cargo named no executable for {name}")


def run_example(program: Path, *arguments: str) -> str:
    """Runs Quell's bench, which repeats each measurement and takes the best itself."""
    return subprocess.run([str(program), *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
