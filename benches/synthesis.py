#!/usr/bin/env python3
"""Compares synthetic data with other libraries, at equal ε.

Adult (table_data.py: 32,561 rows, 14 columns with the label), δ = 1e-5, the mean of several runs. Every library
gets the same declared bounds and categories, and makes as many rows as there are records:

    distance     total variation distance between the synthetic and the real rows, the mean of all pairs of
                 columns: numbers in 16 equal bins between their bounds, unknown cells as one more value; less is better
    accuracy     gradient boosting (scikit-learn) that is trained on synthetic rows, on the real test rows
    seconds      of one run; of Quell, with reading, paying and writing

    quell           `synthesize`, without any setting but ε and the number of records
    mst, aim        smartnoise-synth, on the same bins as the distance; AIM with --aim RUNS, since it takes minutes
    scikit-learn    gradient boosting that is trained on the real rows, without privacy

Not equal, and in whose favour:

    the peers'   they are measured on the very bins that they are given. Quell bins by itself.
    Quell's      the rules that choose Quell's pairs were found with this table.

The peers, pinned in synthesis-requirements.txt, go into a virtual environment of their own (target/synthesis-env by
default); they need Python 3.11. A peer that cannot be installed or fails is left out, with its reason.
"""

import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path

from peers import HERE, ROOT, data_parser, enter, last_line, run_timed, say

REQUIREMENTS = HERE / "synthesis-requirements.txt"
EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5
BINS = 16
# Columns with unknown cells, by the description of the data.
UNKNOWN = ("workclass", "occupation", "native-country")


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


def quell(program: Path, table: "object", folder: Path, epsilon: float) -> tuple["object", float]:
    """Synthetic rows, and the seconds of the whole command."""
    import pandas as pd

    with tempfile.TemporaryDirectory() as place:
        arguments = ["synthesize", str(folder / "train.csv"), "--schema", str(folder / "schema.toml")]
        arguments += ["--records", str(len(table.rows)), "--epsilon", str(epsilon), "--delta", str(DELTA)]
        _, seconds = run_timed(program, place, *arguments, "--output", "run", "--ledger", "ledger")
        return pd.read_csv(Path(place) / "run" / "synthetic.csv"), seconds


def smartnoise(name: str, table: "object", epsilon: float) -> tuple["object", float]:
    """Synthetic rows by MST or AIM, and the seconds."""
    import pandas as pd
    from snsynth import Synthesizer

    columns = [*table.columns, table.label]
    frame = pd.DataFrame(codes(table, table.rows), columns=[column.name for column in columns])
    start = time.perf_counter()
    synthesizer = Synthesizer.create(name, epsilon=epsilon, delta=DELTA)
    synthesizer.fit(frame, categorical_columns=list(frame.columns), preprocessor_eps=0.0)
    made = synthesizer.sample(len(frame))
    return decoded(table, made), time.perf_counter() - start


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


def measure(table: "object", program: Path, folder: Path, runs: dict[str, int]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = [column.name for column in [*table.columns, table.label]]
    table.rows[names].to_csv(folder / "train.csv", index=False)
    (folder / "schema.toml").write_text(schema(table))
    real = codes(table, table.rows)
    say(f"Adult; scikit-learn on the real rows: accuracy {100 * accuracy(table, table.rows, table.test):.2f} %", sys.stdout)
    say("| ε | library | runs | distance | accuracy (%) | seconds |\n|---|---|---|---|---|---|", sys.stdout)
    failed = set()
    for epsilon in EPSILONS:
        for name in runs:
            if name in failed:
                continue
            found = []
            for _ in range(runs[name]):
                try:
                    made = quell(program, table, folder, epsilon) if name == "quell" else smartnoise(name, table, epsilon)
                except Exception as error:  # noqa: BLE001, a peer may fail in any way
                    if name == "quell":
                        raise
                    say(f"{name} is left out: {last_line(str(error)) or type(error).__name__}")
                    failed.add(name)
                    break
                rows, seconds = made
                found.append((distance(real, codes(table, rows)), 100 * accuracy(table, rows, table.test), seconds))
                say(f"{name} at {epsilon}, run {len(found)}: {found[-1][0]:.4f}, {found[-1][1]:.2f} %, {seconds:.1f} s")
            if name not in failed:
                means = [statistics.mean(column) for column in zip(*found, strict=True)]
                say(f"| {epsilon} | {name} | {len(found)} | {means[0]:.4f} | {means[1]:.2f} | {means[2]:.1f} |", sys.stdout)


def main() -> int:
    parser = data_parser("Compares Quell's synthetic data with that of other libraries.", "synthesis-env")
    parser.add_argument("--aim", type=int, default=0, metavar="RUNS", help="runs of AIM, which takes minutes (none)")
    parser.add_argument("--alone", action="store_true", help="measure no peer")
    arguments = enter(parser, REQUIREMENTS)
    import table_data

    runs = {"quell": arguments.runs, "mst": arguments.runs, "aim": arguments.aim}
    asked = {name: count for name, count in runs.items() if count and (name == "quell" or not arguments.alone)}
    measure(table_data.adult(arguments.data), arguments.quell, ROOT / "target" / "synthesis", asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
