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
                 the files of the run. The time of the peers is that of fitting arrays in memory.
    Quell's      diffprivlib promises δ = 0, and Quell and interpret δ = 1e-5.
    Quell's      the rules that choose Quell's settings were found with these tables.

The peers, pinned in estimators-requirements.txt, go into a virtual environment of their own
(target/estimators-env by default). --quell names a program `quell`, instead of building one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from peers import HERE, ROOT, prepare_environment, say

REQUIREMENTS = HERE / "estimators-requirements.txt"
EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5
TABLES = ("digits", "adult", "bank", "california")
MODELS = ("naive-bayes", "tree", "forest", "additive")

Scored = tuple[float, float]


def build() -> Path:
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "quell-cli"], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "quell"


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
        command = [str(program), "train", str(folder / "train.csv"), "--schema", str(folder / "schema.toml")]
        command += ["--records", str(records), "--epsilon", str(epsilon), "--delta", str(DELTA), "--model", model]
        command += ["--output", "run", "--ledger", "ledger", "--format", "json"]
        start = time.perf_counter()
        subprocess.run(command, cwd=place, check=True, capture_output=True)
        seconds = time.perf_counter() - start
        asked = [str(program), "evaluate", "run", str(folder / "test.csv"), "--public", "--format", "json"]
        finished = subprocess.run(asked, cwd=place, check=True, capture_output=True, text=True)
    measured = json.loads(finished.stdout)
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


def fit(made: "object | None", table: "object", number: int, raw: bool) -> Scored | None:
    if made is None:
        return None
    train, test = table.split(number)
    if raw:
        names = [column.name for column in table.columns]
        features, others = train[names].to_numpy(object), test[names].to_numpy(object)
    else:
        features, others = table.features(train), table.features(test)
    start = time.perf_counter()
    made.fit(features, table.targets(train))
    seconds = time.perf_counter() - start
    return score(table, table.targets(test), made.predict(others)), seconds


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def cell(scored: list[Scored | None]) -> str:
    known = [one for one in scored if one is not None]
    return f"{100 * mean([one[0] for one in known]):.1f}" if known else "–"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares Quell's trees, forests and naive Bayes with those of other libraries.")
    parser.add_argument("--data", type=Path, default=os.environ.get("QUELL_DATA"), help="the folder of the data sets")
    parser.add_argument("--env", type=Path, default=ROOT / "target" / "estimators-env", help="where the peers go")
    parser.add_argument("--python", type=Path, help="a Python that has the peers, instead of installing them")
    parser.add_argument("--quell", type=Path, help="the program, instead of building it")
    parser.add_argument("--runs", type=int, default=10, help="runs of each (10)")
    parser.add_argument("--tables", nargs="*", default=list(TABLES), help="the tables (digits, adult, bank, california; mnist)")
    arguments = parser.parse_args()
    if arguments.data is None:
        say("The bench needs the data sets: name their folder by --data or QUELL_DATA (benches/table_data.py lists the files).")
        return 2
    python = arguments.python or prepare_environment(arguments.env, REQUIREMENTS, complete=False)
    if Path(sys.executable).absolute() != python.absolute():
        return subprocess.run([str(python), *sys.argv, "--python", str(python)], check=False).returncode
    warnings.filterwarnings("ignore")
    import table_data

    program = arguments.quell or build()
    for name in arguments.tables:
        table = mnist(arguments.data) if name == "mnist" else getattr(table_data, name)(arguments.data)
        folder = ROOT / "target" / "estimators" / name
        measured = "accuracy in %" if table.classifies else "100 R²"
        say(f"\n{table.name}: {measured} at ε = {' / '.join(map(str, EPSILONS))}, seconds of one run", sys.stdout)
        say("| | Quell | diffprivlib | interpret | scikit-learn, not private |\n|---|---|---|---|---|", sys.stdout)
        for model in MODELS:
            makers = {
                "quell": lambda e, n, m=model: quell(program, folder / str(n), table, n, e, m),
                "diffprivlib": lambda e, n, m=model: fit(diffprivlib(m, table, e, n), table, n, raw=False),
                "interpret": lambda e, n, m=model: fit(interpret(m, table, e, n), table, n, raw=True),
            }
            row = []
            for maker in makers.values():
                scored = [[maker(epsilon, number) for number in range(arguments.runs)] for epsilon in EPSILONS]
                seconds = [one[1] for cells in scored for one in cells if one is not None]
                text = " / ".join(cell(cells) for cells in scored)
                row.append(f"{text} ({mean(seconds):.2f} s)" if seconds else "–")
            row.append(cell([fit(plain(model, table.classifies), table, number, raw=False) for number in range(arguments.runs)]))
            say(f"| {model} | {' | '.join(row)} |", sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
