"""Compares what Quell chooses by itself with the best of a sweep.

Every row is one data set at one ε. The default is `quell train` with the data, ε, δ = 1e-5 and the number of records,
and nothing else. The sweep has other models, features, learning rates, clip norms and numbers of steps, with the rest
chosen by the rules. The best of a sweep is chosen by the test records, so it is better than anyone could do privately.
Rows marked "found" were used to find the rules, rows marked "checked" were not.

    QUELL_DATA=path/to/data python3 benches/defaults.py --runs 5

Files, in the folder that --data or QUELL_DATA names, besides those of table_data.py:

    cifar10-mini/{train5k,test1k}.bin.gz                               5,000 and 1,000 images of CIFAR-10
    fashion-mnist/{train,t10k}-{images-idx3,labels-idx1}-ubyte.gz      Fashion-MNIST
"""

import dataclasses
import gzip
import json
import shutil
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

from peers import HERE, ROOT, data_parser, enter, run_timed, say

REQUIREMENTS = HERE / "tables-requirements.txt"
EPSILONS = ("0.5", "1", "3", "8")
# Learning rates of a sweep, over the one that the rules choose.
RATES = (0.25, 0.5, 2, 4)


@dataclasses.dataclass(frozen=True)
class Data:
    """A data set in files: what `quell train` is told about it, and what a sweep tries besides."""

    name: str
    part: str
    write: Callable[[Path, Path, int], list[str]]
    epsilons: tuple[str, ...] = EPSILONS
    base: tuple[str, ...] = ()
    tries: tuple[tuple[str, ...], ...] = ()
    splits: bool = False


def unpack(source: Path, target: Path) -> None:
    target.write_bytes(gzip.open(source).read())


def cifar(data: Path, folder: Path, _: int) -> list[str]:
    unpack(data / "cifar10-mini" / "train5k.bin.gz", folder / "data_batch_1.bin")
    unpack(data / "cifar10-mini" / "test1k.bin.gz", folder / "test_batch.bin")
    return [str(folder), "--public-test", "--records", "5000"]


def idx(name: str) -> Callable[[Path, Path, int], list[str]]:
    def write(data: Path, folder: Path, _: int) -> list[str]:
        for part in ("train", "t10k"):
            for kind in ("images-idx3", "labels-idx1"):
                unpack(data / name / f"{part}-{kind}-ubyte.gz", folder / f"{part}-{kind}-ubyte")
        return [str(folder), "--public-test", "--records", "60000"]

    return write


def png(pixels: bytes, side: int) -> bytes:
    """A grey picture."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + pixels[side * row : side * (row + 1)] for row in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def fashion_files(data: Path, folder: Path, _: int) -> list[str]:
    """6,000 training and 2,000 test pictures as PNG files, in a folder for each class."""
    for part, count, place in (("train", 6_000, "train"), ("t10k", 2_000, "test")):
        images = gzip.open(data / "fashion-mnist" / f"{part}-images-idx3-ubyte.gz").read()[16:]
        labels = gzip.open(data / "fashion-mnist" / f"{part}-labels-idx1-ubyte.gz").read()[8:]
        for number in range(count):
            kind = folder / place / str(labels[number])
            kind.mkdir(parents=True, exist_ok=True)
            (kind / f"{number}.png").write_bytes(png(images[784 * number : 784 * (number + 1)], 28))
    return [
        *(str(folder / "train"), "--test", str(folder / "test"), "--classes", "0,1,2,3,4,5,6,7,8,9"),
        *("--shape", "28x28", "--records", "6000"),
    ]


def table(name: str) -> Callable[[Path, Path, int], list[str]]:
    def write(data: Path, folder: Path, number: int) -> list[str]:
        from table_data import INTERACTIONS, TABLES, UNTUNED

        read = {**TABLES, **UNTUNED, **INTERACTIONS}[name]
        records = read(data).write(folder, number)
        files = [str(folder / part) for part in ("train.csv", "schema.toml", "test.csv")]
        return [files[0], "--schema", files[1], "--test", files[2], "--records", str(records)]

    return write


PICTURES = (
    ("--features", "hog"),
    ("--features", "raw", "--model", "logistic"),
    ("--features", "raw", "--model", "cnn-tanh"),
)
MODELS = tuple(("--model", name) for name in ("additive", "logistic", "forest", "mlp-small", "mlp"))
REGRESSIONS = tuple(("--model", name) for name in ("additive", "linear", "forest", "mlp-small", "mlp"))
NETWORK = ("--model", "mlp")

DATA = (
    Data("CIFAR-10, 5,000 images", "found", cifar, tries=PICTURES),
    Data("MNIST", "found", idx("mnist"), ("1",), tries=PICTURES),
    Data("Fashion-MNIST, 6,000 PNG files", "checked", fashion_files, ("3",), tries=PICTURES),
    Data("table 5,000 × 100", "found", table("clusters-100"), tries=MODELS, splits=True),
    Data("linear table 5,000 × 100", "found", table("wide"), tries=MODELS, splits=True),
    Data("table 20,000 × 20", "found", table("clusters-20"), tries=MODELS, splits=True),
    Data("table with products, 20,000 × 20", "found", table("products"), tries=MODELS, splits=True),
    Data("Adult", "found", table("adult"), tries=MODELS, splits=True),
    Data("Bank", "checked", table("bank"), tries=MODELS, splits=True),
    Data("Breast cancer", "checked", table("breast-cancer"), tries=MODELS, splits=True),
    Data("Digits", "checked", table("digits"), tries=MODELS, splits=True),
    Data("California", "checked", table("california"), tries=REGRESSIONS, splits=True),
    Data("California, --model mlp", "checked", table("california"), base=NETWORK, splits=True),
)


def train(program: Path, arguments: list[str], epsilon: str) -> tuple[float, dict]:
    """Trains once; returns accuracy in %, or the error in units of the target, and the settings."""
    with tempfile.TemporaryDirectory() as place:
        whole = ["train", *arguments, "--epsilon", epsilon, "--delta", "1e-5", "--format", "json", "--output", "run"]
        printed = json.loads(run_timed(program, place, *whole)[0])
        settings = dry_run(program, place, arguments, epsilon)
    if printed["accuracy"] is not None:
        return 100 * printed["accuracy"], settings
    return printed["evaluation"]["numbers"]["error"], settings


def dry_run(program: Path, place: str, arguments: list[str], epsilon: str) -> dict:
    whole = ["train", *arguments, "--epsilon", epsilon, "--delta", "1e-5", "--format", "json", "--dry-run"]
    # A ledger of its own: that of the training is spent.
    whole += ["--ledger", "other"]
    return json.loads(run_timed(program, place, *whole)[0])["configuration"]


def tried(data: Data, settings: dict) -> list[list[str]]:
    """The settings of a sweep: other models, and for a network other learning rates, clip norms and steps."""
    choices = [list(choice) for choice in data.tries]
    training = settings.get("training", {})
    if settings["learner"] != "dp-sgd" or "schedule" not in training:
        return choices
    rate, steps = training["schedule"]["learning_rate"], training["steps"]
    norm = training["clipping"]["flat"]["norm"]
    # A learning rate or a clip norm in the settings would turn the default preparation off.
    kept = ["--prepare", training["preparation"]["kind"]] if "preparation" in training else []
    if "preparation" in training and "--model" not in data.base:
        kept += ["--model", settings["model"]["name"]]
    choices += [[*kept, "--learning-rate", f"{factor * rate:g}"] for factor in RATES]
    choices += [[*kept, "--clip-norm", f"{factor * norm:g}"] for factor in (0.3, 3)]
    choices += [[*kept, "--steps", str(max(20, round(factor * steps)))] for factor in (0.5, 2)]
    return choices


def measure(data: Data, program: Path, source: Path, runs: int, with_sweep: bool) -> None:
    is_error = data.name.startswith("California")
    for epsilon in data.epsilons:
        scores, best = [], {}
        for number in range(runs):
            folder = ROOT / "target" / "defaults" / f"{data.name}-{number if data.splits else 0}".replace("/", "-")
            if not (folder / "arguments.json").exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                (folder / "arguments.json").write_text(json.dumps(data.write(source, folder, number)))
            arguments = [*json.loads((folder / "arguments.json").read_text()), *data.base]
            score, settings = train(program, arguments, epsilon)
            scores.append(score)
            for choice in tried(data, settings) if with_sweep and number == 0 else []:
                try:
                    best[" ".join(choice)] = train(program, [*arguments, *choice], epsilon)[0]
                except RuntimeError as error:
                    say(f"{data.name}: {error}")
        mean = sum(scores) / len(scores)
        # The best of the first split is repeated on the others, so that luck does not choose.
        line = f"{data.name} ({data.part}), ε = {epsilon}: default {mean:.1f}"
        if best:
            name = (min if is_error else max)(best, key=best.get)
            repeated = [best[name]]
            for number in range(1, runs):
                folder = ROOT / "target" / "defaults" / f"{data.name}-{number if data.splits else 0}".replace("/", "-")
                arguments = [*json.loads((folder / "arguments.json").read_text()), *data.base]
                repeated.append(train(program, [*arguments, *name.split()], epsilon)[0])
            line += f", best of {len(best)} settings {sum(repeated) / len(repeated):.1f} ({name})"
        say(line, sys.stdout)


def main() -> int:
    parser = data_parser("Compares Quell's defaults with the best of a sweep.", "tables-env")
    parser.add_argument("--only", nargs="*", help="the data sets whose names hold one of these words (all)")
    parser.add_argument("--epsilons", nargs="*", default=EPSILONS, help="some of the values of ε (all)")
    parser.add_argument("--no-sweep", action="store_true", help="measure the defaults alone")
    arguments = enter(parser, REQUIREMENTS, one_thread=False)
    for data in DATA:
        if not arguments.only or any(word.lower() in data.name.lower() for word in arguments.only):
            chosen = tuple(epsilon for epsilon in data.epsilons if epsilon in arguments.epsilons)
            part = dataclasses.replace(data, epsilons=chosen)
            measure(part, arguments.quell, arguments.data.absolute(), arguments.runs, not arguments.no_sweep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
