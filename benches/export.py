#!/usr/bin/env python3
"""Compares exported ONNX models with `quell predict`, model by model.

Each named model is trained for a few steps on random records, exported with
`quell export`, and run by onnxruntime on the records that `quell predict`
gets. The greatest difference of the scores counts, relative to the largest
score of the model, and predictions must agree wherever the two best scores
differ by more than the tolerance. The command exits with 1 if a difference
exceeds 1e-5.

onnxruntime, pinned in export-requirements.txt, goes into a virtual environment
of its own (target/export-env by default), which is kept for the next run.
--python names an environment that has it.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from peers import HERE, ROOT, build, prepare_environment, say

REQUIREMENTS = HERE / "export-requirements.txt"
TOLERANCE = 1e-5
RECORDS = 400

COLOURS = ["red", "green", "blue", "pale green"]
SCHEMA = """
[label]
column = "{label}"
{values}

[[column]]
name = "age"
bounds = [0, 100]
unknown = true

[[column]]
name = "weight in kg"
bounds = [40, 120]

[[column]]
name = "colour"
categories = ["red", "green", "blue", "pale green"]
unknown = true

[[column]]
name = "smokes"
categories = ["yes", "no"]
aliases = {{ Yes = "yes", "never" = "no" }}

[[column]]
name = "insured"
boolean = true
unknown = true

[[column]]
name = "scores"
boolean = true
"""

CLASSES = 'classes = ["low", "middle", "high"]'
TWO = 'classes = ["no", "yes"]'
NUMBERS = "bounds = [0, 50]"

# Name of the case, flags, label and its values.
TABLES = [
    ("additive", "--model additive", "level", CLASSES),
    ("additive of two classes", "--model additive", "ill", TWO),
    ("forest", "--model forest", "level", CLASSES),
    ("logistic", "--model logistic", "ill", TWO),
    ("svm", "--model svm", "level", CLASSES),
    ("svm of two classes", "--model svm", "ill", TWO),
    ("linear", "--model linear", "visits", NUMBERS),
    ("ridge", "--model ridge --regularization 0.1", "visits", NUMBERS),
    ("poisson", "--model poisson", "visits", NUMBERS),
    ("quantile", "--model quantile --quantile 0.9", "visits", NUMBERS),
    ("naive-bayes", "--model naive-bayes", "level", CLASSES),
    ("tree", "--model tree", "level", CLASSES),
    ("tree of a number", "--model tree", "visits", NUMBERS),
    ("mlp", "--model mlp --steps 20", "level", CLASSES),
    ("mlp-tanh of a number", "--model mlp-tanh --steps 20", "visits", NUMBERS),
    ("mlp on scaled columns", "--model mlp --steps 20 --prepare standardize", "level", CLASSES),
    ("mlp on quantiles", "--model mlp --steps 20 --prepare quantiles", "level", CLASSES),
    ("transformer of a table", "--model transformer --steps 5", "level", CLASSES),
]

# Name of the model, channels, rows and columns.
IMAGES = [
    ("logistic", 1, 28, 28),
    ("mlp", 1, 28, 28),
    ("mlp-tanh", 1, 28, 28),
    ("cnn", 1, 28, 28),
    ("cnn-tanh", 1, 28, 28),
    ("cifar-cnn", 3, 32, 32),
    ("digits", 1, 8, 8),
    ("resnet", 3, 16, 16),
    ("transformer", 3, 8, 8),
]

# Layers and preparations that no named model has: the shape of a record, and the configuration.
CONFIGURED = {
    "causal attention on words": (
        [12],
        """
[[model.layers]]
kind = "embedding"
words = 40
width = 16
[[model.layers]]
kind = "positions"
[[model.layers]]
kind = "self_attention"
heads = 2
causal = true
[[model.layers]]
kind = "layer_norm"
over = "all"
[[model.layers]]
kind = "convolution"
outputs = 8
kernel = 3
stride = 2
padding = 1
[[model.layers]]
kind = "mean_pool"
kernel = 2
[[model.layers]]
kind = "silu"
[[model.layers]]
kind = "flatten"
[[model.layers]]
kind = "linear"
outputs = 3
""",
    ),
    "groups, dropout and activations": (
        [3, 9, 10],
        """
[[model.layers]]
kind = "convolution"
outputs = 6
kernel = [3, 2]
stride = [2, 1]
padding = [1, 0]
groups = 3
standardized = true
[[model.layers]]
kind = "selu"
[[model.layers]]
kind = "group_norm"
groups = 2
[[model.layers]]
kind = "dropout"
rate = 0.2
[[model.layers]]
kind = "max_pool"
kernel = 2
stride = [1, 2]
[[model.layers]]
kind = "sigmoid"
[[model.layers]]
kind = "mean_pool"
kernel = [1, 2]
[[model.layers]]
kind = "hard_tanh"
[[model.layers]]
kind = "linear"
outputs = 12
[[model.layers]]
kind = "reshape"
shape = [4, 3]
[[model.layers]]
kind = "pointwise"
outputs = 5
[[model.layers]]
kind = "gelu"
[[model.layers]]
kind = "append_squares"
[[model.layers]]
kind = "bound_length"
[[model.layers]]
kind = "linear"
outputs = 3
""",
    ),
    "components (images)": (
        [3, 6, 6],
        """
[model]
name = "mlp-tanh"
[training.preparation]
kind = "components"
count = 5
""",
    ),
    "scattering of three scales (images)": (
        [1, 16, 24],
        """
[features]
kind = "scattering"
scales = 3
angles = 3
groups = 0
""",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", type=Path, default=ROOT / "target" / "export-env", help="where onnxruntime goes")
    parser.add_argument("--python", type=Path, help="a Python that has onnxruntime, instead of installing it")
    parser.add_argument("--quell", type=Path, help="the program, instead of building it")
    parser.add_argument("--only", help="the cases whose names contain this text")
    arguments = parser.parse_args()
    python = arguments.python or prepare_environment(arguments.env, REQUIREMENTS, complete=False)
    if Path(sys.executable).absolute() != python.absolute():
        command = [str(python), *sys.argv, "--python", str(python)]
        sys.exit(subprocess.run(command, check=False).returncode)
    quell = (arguments.quell or build()).absolute()
    worst = 0.0
    with tempfile.TemporaryDirectory() as place:
        for name, work in cases(quell, Path(place)):
            if arguments.only and arguments.only not in name:
                continue
            try:
                difference = work()
            except Exception as error:
                say(f"{name:40} failed: {error}", sys.stdout)
                worst = float("inf")
                continue
            worst = max(worst, difference)
            say(f"{name:40} {difference:.1e}{'' if difference <= TOLERANCE else '  TOO LARGE'}", sys.stdout)
    say(f"{'largest difference':40} {worst:.1e}", sys.stdout)
    sys.exit(0 if worst <= TOLERANCE else 1)


def cases(quell: Path, place: Path):
    for name, flags, label, values in TABLES:
        yield f"{name} (table)", lambda f=flags, l=label, v=values, n=name: table(quell, fresh(place, n), f, l, v)
    for name, *shape in IMAGES:
        yield f"{name} (images)", lambda n=name, s=shape: array(quell, fresh(place, n), f"--model {n}", s)
    for name, (shape, text) in CONFIGURED.items():
        yield name, lambda s=shape, t=text, n=name: array(quell, fresh(place, n), "--config run.toml", s, t)
    for shape in ([1, 28, 28], [3, 13, 18]):
        yield f"scattering of {shape[0]} channels (images)", lambda s=shape: array(
            quell, fresh(place, "scattering"), "--features scattering", s
        )
    yield "public network (images)", lambda: on_public_network(quell, fresh(place, "public"))


def fresh(place: Path, name: str) -> Path:
    folder = Path(tempfile.mkdtemp(dir=place, prefix=name.split()[0]))
    return folder


def run(quell: Path, place: Path, line: str) -> str:
    finished = subprocess.run([str(quell), *line.split()], cwd=place, check=False, capture_output=True, text=True)
    if finished.returncode != 0:
        raise RuntimeError(f"quell {line}: {finished.stderr.strip()}")
    return finished.stdout


def table(quell: Path, place: Path, flags: str, label: str, values: str) -> float:
    """Trains, exports and compares a model of a table with missing and unknown cells."""
    import numpy as np

    random = np.random.default_rng(7)
    age = np.round(random.uniform(-10, 110, RECORDS))
    weight = np.round(random.normal(80, 20, RECORDS), 1)
    colour = random.choice([*COLOURS, "violet"], RECORDS)
    smokes = random.choice(["yes", "no", "Yes", "never", "sometimes"], RECORDS)
    insured = random.choice(["TRUE", "False", "y", "0", "1", "perhaps"], RECORDS)
    scores = random.choice(["on", "oFF"], RECORDS)
    level = np.array(["low", "middle", "high"])[np.clip(age / 34, 0, 2).astype(int)]
    visits = np.clip(np.round(age / 4 + random.normal(0, 3, RECORDS)), 0, 50)
    targets = {"level": level, "ill": np.where(weight > 80, "yes", "no"), "visits": visits}
    missing = random.uniform(size=RECORDS) < 0.1
    with open(place / "people.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "weight in kg", "colour", "smokes", "insured", "scores", label])
        for i in range(RECORDS):
            number = "" if missing[i] else f"{age[i]:.0f}"
            cells = [number, weight[i], colour[i], smokes[i], insured[i], scores[i], targets[label][i]]
            writer.writerow(cells)
    (place / "schema.toml").write_text(SCHEMA.format(label=label, values=values))
    run(quell, place, f"train people.csv --schema schema.toml --records {RECORDS} --epsilon 20 --delta 1e-4 {flags} --output run")
    wanted = run(quell, place, "predict run people.csv --scores --predict-all --format json")
    age[missing] = np.nan
    inputs = {
        "age": age.astype(np.float32)[:, None],
        "weight in kg": weight.astype(np.float32)[:, None],
        "colour": colour.astype(object)[:, None],
        "smokes": smokes.astype(object)[:, None],
        "insured": insured.astype(object)[:, None],
        "scores": scores.astype(object)[:, None],
    }
    return difference(quell, place, inputs, wanted)


def array(quell: Path, place: Path, flags: str, shape: list[int], configuration: str = "") -> float:
    """Trains, exports and compares a model of images or of lists of numbers."""
    import numpy as np

    random = np.random.default_rng(8)
    if len(shape) == 1:
        records = np.floor(random.uniform(-1, 42, (60, *shape))).astype(np.float32)
        inputs = records
    else:
        records = random.integers(0, 256, (60, *shape), dtype=np.uint8)
        inputs = records.astype(np.float32) / 255
    stored = records if len(shape) == 1 else np.moveaxis(records, 1, -1)
    np.savez(place / "records.npz", x=stored, y=random.integers(0, 3, 60, dtype=np.uint8))
    (place / "run.toml").write_text(configuration)
    run(quell, place, f"train records.npz --classes a,b,c --records 60 --epsilon 20 --delta 1e-3 --steps 8 {flags} --output run")
    wanted = run(quell, place, "predict run records.npz --scores --format json")
    return difference(quell, place, {"input": inputs}, wanted)


def on_public_network(quell: Path, place: Path) -> float:
    """A linear model on the features of a public network."""
    array(quell, place, "--model cnn-tanh", [1, 28, 28])
    (place / "run").rename(place / "public")
    return array(quell, place, "--public-network public/model.safetensors --dataset other", [1, 28, 28])


def difference(quell: Path, place: Path, inputs: dict, wanted: str) -> float:
    """The greatest difference between onnxruntime and `quell predict`."""
    import numpy as np
    import onnxruntime

    run(quell, place, "export run --output model.onnx")
    session = onnxruntime.InferenceSession(place / "model.onnx", providers=["CPUExecutionProvider"])
    # A column that has the name of an output changes that name.
    prediction, scores = session.run([output.name for output in session.get_outputs()], inputs)
    rows = json.loads(wanted)
    if scores.shape[1] == 1:
        expected = np.array([row["prediction"] for row in rows])
        return float(np.max(np.abs(prediction - expected)) / np.max(np.abs(expected)))
    expected = np.array([list(row["scores"].values()) for row in rows])
    names = list(rows[0]["scores"])
    classes = json.loads(session.get_modelmeta().custom_metadata_map["quell.classes"])
    expected = expected[:, [names.index(name) for name in classes]]
    ordered = np.sort(expected, axis=1)
    decided = ordered[:, -1] - ordered[:, -2] > TOLERANCE
    for row, name, is_decided in zip(rows, prediction, decided):
        if is_decided and row["prediction"] != name:
            return float("inf")
    return float(np.max(np.abs(scores - expected)) / np.max(np.abs(expected)))


if __name__ == "__main__":
    main()
