#!/usr/bin/env python3
"""Compares synthetic data with other libraries, at equal ε.

Adult (table_data.py: 32,561 rows, 14 columns with the label), δ = 1e-5, the mean of several runs. Every library
gets the same declared bounds and categories, and makes as many rows as there are records:

    distance     total variation distance between the synthetic and the real rows, the mean of all pairs of
                 columns: numbers in 16 equal bins between their bounds, unknown cells as one more value; less is better
    accuracy     gradient boosting (scikit-learn) that is trained on synthetic rows, on the real test rows
    seconds      of one run; of Quell, with reading, paying and writing

    quell           `synthesize`, without any setting but ε and the number of records
    mst, aim        smartnoise-synth, on the same bins as the distance; AIM with --aim, which takes minutes
    scikit-learn    gradient boosting that is trained on the real rows, without privacy

Not equal, and in whose favour:

    the peers'   they are measured on the very bins that they are given. Quell bins by itself.
    Quell's      the rules that choose Quell's pairs were found with this table.

The peers, pinned in synthesis-requirements.txt, go into a virtual environment of their own (target/synthesis-env by
default); they need Python 3.11. A peer that cannot be installed or fails is left out, with its reason.
"""

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from peers import HERE, ROOT, last_line, prepare_environment, say

REQUIREMENTS = HERE / "synthesis-requirements.txt"
EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5
BINS = 16
# Columns with unknown cells, by the description of the data.
UNKNOWN = ("workclass", "occupation", "native-country")


def build() -> Path:
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "quell-cli"], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "quell"


def schema(table: "object") -> str:
    """The schema, with the columns in which cells can be unknown."""
    text = table.schema()
    for name in UNKNOWN:
        text = text.replace(f'name = "{name}"', f'name = "{name}"\nunknown = true')
    return text


def codes(table: "object", rows: "object") -> "object":
    """The values of all columns as whole numbers: bins or categories, then unknown."""
    import numpy as np

    parts = []
    for column in [*table.columns, table.label]:
        values = rows[column.name]
        if column.bounds is not None:
            low, high = column.bounds
            numbers = values.to_numpy(float)
            bins = np.floor((numbers.clip(low, high) - low) / (high - low) * BINS).clip(0, BINS - 1)
            parts.append(np.where(np.isnan(numbers), BINS, bins).astype(int))
        else:
            places = {name: place for place, name in enumerate(column.categories)}
            parts.append(values.map(places).fillna(len(places)).to_numpy(int))
    return np.stack(parts, axis=1)


def distance(real: "object", made: "object") -> float:
    """The mean total variation distance of all pairs of columns."""
    import numpy as np

    distances = []
    for a, b in itertools.combinations(range(real.shape[1]), 2):
        width = 1 + max(real[:, b].max(), made[:, b].max())
        cells = [part[:, a] * width + part[:, b] for part in (real, made)]
        size = 1 + max(part.max() for part in cells)
        one, other = (np.bincount(part, minlength=size) / len(part) for part in cells)
        distances.append(0.5 * np.abs(one - other).sum())
    return float(np.mean(distances))


def accuracy(table: "object", rows: "object", test: "object") -> float:
    """Trains on rows with a known label, and predicts the test rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    known = rows[rows[table.label.name].isin(table.label.categories)]
    model = HistGradientBoostingClassifier(random_state=0)
    model.fit(table.features(known), table.targets(known))
    return float((model.predict(table.features(test)) == table.targets(test)).mean())


def quell(program: Path, table: "object", folder: Path, epsilon: float) -> "object":
    import pandas as pd

    with tempfile.TemporaryDirectory() as place:
        command = [str(program), "synthesize", str(folder / "train.csv"), "--schema", str(folder / "schema.toml")]
        command += ["--records", str(len(table.rows)), "--epsilon", str(epsilon), "--delta", str(DELTA)]
        command += ["--output", "run", "--ledger", "ledger"]
        subprocess.run(command, cwd=place, check=True, capture_output=True)
        return pd.read_csv(Path(place) / "run" / "synthetic.csv")


def smartnoise(name: str, table: "object", epsilon: float) -> "object":
    """Synthetic codes by MST or AIM."""
    import pandas as pd
    from snsynth import Synthesizer

    columns = [*table.columns, table.label]
    frame = pd.DataFrame(codes(table, table.rows), columns=[column.name for column in columns])
    synthesizer = Synthesizer.create(name, epsilon=epsilon, delta=DELTA)
    synthesizer.fit(frame, categorical_columns=list(frame.columns), preprocessor_eps=0.0)
    return synthesizer.sample(len(frame))


def decoded(table: "object", rows: "object") -> "object":
    """Rows of codes with the middle of each bin, and the names of categories."""
    import pandas as pd

    made = {}
    for column in [*table.columns, table.label]:
        values = rows[column.name].astype(int)
        if column.bounds is not None:
            low, high = column.bounds
            made[column.name] = low + (values + 0.5) / BINS * (high - low)
        else:
            names = dict(enumerate(column.categories))
            made[column.name] = values.map(names)
    return pd.DataFrame(made)


def measure(table: "object", program: Path, folder: Path, runs: int, peers: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = [column.name for column in [*table.columns, table.label]]
    table.rows[names].to_csv(folder / "train.csv", index=False)
    (folder / "schema.toml").write_text(schema(table))
    real = codes(table, table.rows)
    say(f"Adult; scikit-learn on the real rows: accuracy {100 * accuracy(table, table.rows, table.test):.2f} %", sys.stdout)
    say("| ε | library | distance | accuracy (%) | seconds |\n|---|---|---|---|---|", sys.stdout)
    failed = set()
    for epsilon in EPSILONS:
        for name in ["quell", *peers]:
            if name in failed:
                continue
            found = []
            for _ in range(runs):
                begun = time.perf_counter()
                try:
                    rows = quell(program, table, folder, epsilon) if name == "quell" else smartnoise(name, table, epsilon)
                except Exception as error:  # noqa: BLE001, a peer may fail in any way
                    if name == "quell":
                        raise
                    say(f"{name} is left out: {last_line(str(error)) or type(error).__name__}")
                    failed.add(name)
                    break
                seconds = time.perf_counter() - begun
                rows = rows if name == "quell" else decoded(table, rows)
                found.append((distance(real, codes(table, rows)), 100 * accuracy(table, rows, table.test), seconds))
            if len(found) == runs:
                means = [statistics.mean(column) for column in zip(*found, strict=True)]
                say(f"| {epsilon} | {name} | {means[0]:.4f} | {means[1]:.2f} | {means[2]:.1f} |", sys.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares Quell's synthetic data with that of other libraries.")
    parser.add_argument("--data", type=Path, default=os.environ.get("QUELL_DATA"), help="the folder of the data sets")
    parser.add_argument("--env", type=Path, default=ROOT / "target" / "synthesis-env", help="where the peers go")
    parser.add_argument("--python", type=Path, help="a Python that has the peers, instead of installing them")
    parser.add_argument("--quell", type=Path, help="the program, instead of building it")
    parser.add_argument("--runs", type=int, default=10, help="runs of each (10)")
    parser.add_argument("--aim", action="store_true", help="measure AIM, too")
    parser.add_argument("--alone", action="store_true", help="measure no peer")
    arguments = parser.parse_args()
    if arguments.data is None:
        say("The bench needs the data sets: name their folder by --data or QUELL_DATA (benches/table_data.py lists the files).")
        return 2
    python = arguments.python or prepare_environment(arguments.env, REQUIREMENTS, complete=False)
    if Path(sys.executable).absolute() != python.absolute():
        return subprocess.run([str(python), *sys.argv, "--python", str(python)], check=False).returncode
    warnings.filterwarnings("ignore")
    import table_data

    peers = [] if arguments.alone else ["mst", *(["aim"] if arguments.aim else [])]
    program = arguments.quell or build()
    measure(table_data.adult(arguments.data), program, ROOT / "target" / "synthesis", arguments.runs, peers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
