#!/usr/bin/env python3
"""Compares trees, forests, boosting and naive Bayes with other libraries: accuracy or R², and time, at equal ε.

Digits, Adult and Bank Marketing for classes, California housing for numbers (table_data.py), and MNIST if asked
for, δ = 1e-5, the mean of several runs. A fifth of the rows is held out, another fifth in every run; Adult has a
test set of its own. Every library gets the same split and the same declared bounds and categories.

    quell           `train --model naive-bayes | tree | forest | additive`, without any other setting
    diffprivlib     GaussianNB, DecisionTreeClassifier and RandomForestClassifier, with their default settings
    interpret       DP-EBM, with the declared bounds; it finds the categories by itself
    scikit-learn    GaussianNB, DecisionTree (depth 8), RandomForest and HistGradientBoosting, without privacy

Not equal, and in whose favour:

    the peers'   Quell's time is that of the whole command: reading the CSV file, planning, paying, and writing
                 the files of the run. The time of the peers is that of fitting arrays in memory. A second time of
                 diffprivlib, "as a program", is that of a Python program that starts, reads the same CSV file,
                 fits once and writes the model.
    Quell's      diffprivlib promises δ = 0, and Quell and interpret δ = 1e-5.
    Quell's      the rules that choose Quell's settings were found with these tables.

The peers, pinned in estimators-requirements.txt, go into a virtual environment of their own
(target/estimators-env by default). --quell names a program `quell`, instead of building one.
"""

import argparse
import functools
import json
import pickle
import sys
import tempfile
import time
import tomllib
import warnings
from pathlib import Path

from peers import HERE, ROOT, data_parser, enter, run_timed, say

REQUIREMENTS = HERE / "estimators-requirements.txt"
EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5
TABLES = ("digits", "adult", "bank", "california")
MODELS = ("naive-bayes", "tree", "forest", "additive")

Scored = tuple[float, float]


def score(table: "object", wanted: "object", predicted: "object") -> float:
    if table.classifies:
        return float((wanted == predicted).mean())
    return float(1 - ((wanted - predicted) ** 2).mean() / wanted.var())


def quell(program: Path, folder: Path, table: "object", number: int, epsilon: float, model: str) -> Scored | None:
    """Trains once, and compares the predictions for the held-out rows."""
    import pandas as pd

    if model == "naive-bayes" and not table.classifies:
        return None
    records = table.write(folder, number)
    with tempfile.TemporaryDirectory() as place:
        command = ["train", str(folder / "train.csv"), "--schema", str(folder / "schema.toml")]
        command += ["--records", str(records), "--epsilon", str(epsilon), "--delta", str(DELTA), "--model", model]
        _, seconds = run_timed(program, place, *command, "--output", "run", "--ledger", "ledger")
        asked = ["evaluate", "run", str(folder / "test.csv"), "--public", "--format", "json"]
        printed, _ = run_timed(program, place, *asked)
    measured = json.loads(printed)
    if table.classifies:
        return measured["accuracy"], seconds
    _, test = table.split(number)
    low, high = table.label.bounds
    spread = pd.Series(test[table.label.name]).clip(low, high).var(ddof=0)
    (numbers,) = measured["evaluation"].values()
    return 1 - numbers["error"] ** 2 / spread, seconds


def diffprivlib(model: str, table: "object", epsilon: float, seed: int) -> "object | None":
    from diffprivlib import models

    if not table.classifies:
        return None
    classes = list(range(len(table.label.categories)))
    if model == "naive-bayes":
        return models.GaussianNB(epsilon=epsilon, bounds=(-1, 1), random_state=seed)
    made = {"tree": models.DecisionTreeClassifier, "forest": models.RandomForestClassifier}.get(model)
    return made and made(epsilon=epsilon, bounds=(-1, 1), classes=classes, random_state=seed)


def interpret(model: str, table: "object", epsilon: float, seed: int) -> "object | None":
    """DP-EBM knows no more than two classes."""
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    if model != "additive" or (table.classifies and len(table.label.categories) > 2):
        return None
    kinds = ["continuous" if column.bounds else "nominal" for column in table.columns]
    names = [column.name for column in table.columns]
    settings = {"epsilon": epsilon, "delta": DELTA, "feature_names": names, "feature_types": kinds, "random_state": seed}
    settings["privacy_bounds"] = {column.name: column.bounds for column in table.columns if column.bounds}
    if table.classifies:
        return DPExplainableBoostingClassifier(**settings)
    return DPExplainableBoostingRegressor(privacy_target_min=-1, privacy_target_max=1, **settings)


def plain(model: str, classifies: bool) -> "object | None":
    from sklearn import ensemble, naive_bayes, tree

    if model == "naive-bayes":
        return naive_bayes.GaussianNB() if classifies else None
    kind = "Classifier" if classifies else "Regressor"
    if model == "tree":
        return getattr(tree, f"DecisionTree{kind}")(max_depth=8)
    name = "RandomForest" if model == "forest" else "HistGradientBoosting"
    return getattr(ensemble, f"{name}{kind}")()


@functools.lru_cache(maxsize=20)
def arrays(table: "object", number: int, raw: bool) -> tuple["object", ...]:
    """The features and targets of training and test rows; `raw` features are as the file has them."""
    parts = table.split(number)
    names = [column.name for column in table.columns]
    features = [part[names].to_numpy(object) if raw else table.features(part) for part in parts]
    return *features, *(table.targets(part) for part in parts)


def fit(made: "object | None", table: "object", number: int, raw: bool) -> Scored | None:
    if made is None:
        return None
    features, others, targets, wanted = arrays(table, table.split_number(number), raw)
    start = time.perf_counter()
    made.fit(features, targets)
    seconds = time.perf_counter() - start
    return score(table, wanted, made.predict(others)), seconds


def fit_as_program(folder: Path, model: str) -> None:
    """Does with diffprivlib what the command `quell train` does: reads the CSV file, fits, and writes a file."""
    import pandas as pd
    from table_data import Column, Table

    schema = tomllib.loads((folder / "schema.toml").read_text())
    kinds = [(one["name"], one.get("bounds"), one.get("categories")) for one in schema["column"]]
    columns = [Column(name, bounds and tuple(bounds), names and tuple(names)) for name, bounds, names in kinds]
    label = Column(schema["label"]["column"], categories=tuple(schema["label"]["classes"]))
    rows = pd.read_csv(folder / "train.csv", dtype={label.name: str})
    table = Table(folder.name, columns, label, rows)
    made = diffprivlib(model, table, 1.0, 0).fit(table.features(rows), table.targets(rows))
    with tempfile.TemporaryFile() as file:
        pickle.dump(made, file)


def program_seconds(folder: Path, model: str) -> float:
    """The seconds of a program that fits with diffprivlib."""
    return run_timed(Path(sys.executable), HERE, "estimators.py", "--python", sys.executable, "--fit", str(folder), model)[1]


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def cell(scored: list[Scored | None]) -> str:
    known = [one for one in scored if one is not None]
    return f"{100 * mean([one[0] for one in known]):.1f}" if known else "–"


def timed(scored: list[list[Scored | None]]) -> str:
    """The scores at each ε, and the seconds of a run."""
    seconds = [one[1] for cells in scored for one in cells if one is not None]
    return f"{' / '.join(cell(cells) for cells in scored)} ({mean(seconds):.2f} s)" if seconds else "–"


def measure(table: "object", program: Path, folder: Path, model: str, runs: int) -> list[str]:
    """What the row of a model says: Quell, diffprivlib, interpret and scikit-learn."""
    makers = (
        lambda epsilon, n: quell(program, folder / str(table.split_number(n)), table, n, epsilon, model),
        lambda epsilon, n: fit(diffprivlib(model, table, epsilon, n), table, n, raw=False),
        lambda epsilon, n: fit(interpret(model, table, epsilon, n), table, n, raw=True),
    )
    row = [timed([[maker(epsilon, number) for number in range(runs)] for epsilon in EPSILONS]) for maker in makers]
    if row[1] != "–":
        row[1] = row[1].replace(" s)", f" s; as a program {program_seconds(folder / '0', model):.2f} s)")
    return [*row, timed([[fit(plain(model, table.classifies), table, number, raw=False) for number in range(runs)]])]


def main() -> int:
    parser = data_parser("Compares Quell's trees, forests and naive Bayes with those of other libraries.", "estimators-env")
    parser.add_argument("--tables", nargs="*", default=list(TABLES), help="the tables (digits, adult, bank, california; mnist)")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS), help="the models (all)")
    parser.add_argument("--fit", nargs=2, help=argparse.SUPPRESS)
    if "--fit" in sys.argv:
        warnings.filterwarnings("ignore")
        folder, model = parser.parse_args().fit
        fit_as_program(Path(folder), model)
        return 0
    arguments = enter(parser, REQUIREMENTS)
    import table_data

    for name in arguments.tables:
        table = getattr(table_data, name)(arguments.data)
        folder = ROOT / "target" / "estimators" / name
        measured = "accuracy in %" if table.classifies else "100 R²"
        epsilons = " / ".join(map(str, EPSILONS))
        say(f"\n{table.name}: {measured} at ε = {epsilons}, mean of {arguments.runs} runs, and seconds of one run", sys.stdout)
        say("| | Quell | diffprivlib | interpret | scikit-learn, not private |\n|---|---|---|---|---|", sys.stdout)
        for model in arguments.models:
            row = measure(table, arguments.quell, folder, model, arguments.runs)
            say(f"| {model} | {' | '.join(row)} |", sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
