"""What the benches share: an environment for the peers, and Quell's own program."""

import hashlib
import json
import subprocess
import sys
import venv
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
