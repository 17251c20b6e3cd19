#!/usr/bin/env python3
"""Compares models of tables with other libraries: accuracy or R², and time, at equal ε.

Adult, Bank Marketing, breast cancer, California housing and digits (table_data.py),
δ = 1e-5, the mean of several runs. A fifth of the rows is held out, another fifth in
every run; Adult has a test set of its own. Every library gets the same split, the same
declared bounds, and the same features: numbers scaled from their bounds to [-1, 1], and
an indicator for every category.

    quell           `train` without any setting but ε and the number of records; then
                    every method by name
    diffprivlib     LogisticRegression and GaussianNB, or LinearRegression
    opacus          a linear model, at settings set by hand for each table (HAND_SET)
    scikit-learn    LogisticRegression or Ridge on standardised columns, without privacy

Not equal, and in whose favour:

    the peers'   Quell's time includes planning and paying; that of a method by name also
                 reading the CSV file and writing the files of the run. The time of the
                 peers is that of fitting arrays in memory.
    the peers'   Opacus's settings were chosen by looking at the results on these tables.
    Quell's      diffprivlib promises δ = 0, and Quell δ = 1e-5.
    Quell's      the rules that choose Quell's settings were found with these five tables.
                 --untuned measures tables that had no part in it: the automatic choice
                 against the best of a sweep over methods, learning rates and steps, at ε = 1.

The peers, pinned in tables-requirements.txt, go into a virtual environment of their own
(target/tables-env by default), which is kept for the next run. --python names an
environment that has them. --figure draws the scores into an SVG file.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from peers import HERE, ROOT, build_example, data_parser, enter, run_example, say

REQUIREMENTS = HERE / "tables-requirements.txt"
EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5

METHODS = (
    *("newton", "adassp", "noisy-gd", "noisy-sgd", "svrg", "output-perturbation", "objective-perturbation"),
    *("hidden-state", "frank-wolfe", "one-posterior", "sgld"),
)

# Batch size, epochs and learning rate of Opacus, at clip norm 1.
HAND_SET = {
    "Adult": (2048, 20, 2.0),
    "Bank": (2048, 20, 4.0),
    "Breast cancer": (227, 20, 0.5),
    "California": (1024, 20, 0.5),
    "Digits": (512, 30, 1.0),
}

# Learning rates, relative to the default, and numbers of steps of the sweep.
RATES, STEPS = (0.25, 0.5, 2.0, 4.0), (20, 90, 180)

# A score and the seconds that it took.
Scored = tuple[float, float]


def quell(program: Path, folder: Path, records: int, epsilon: float, settings: str) -> Scored | None:
    """Trains once; `None` if Quell refuses the settings for this table."""
    arguments = [str(folder), str(records), str(epsilon), "1", settings]
    finished = subprocess.run([str(program), *arguments], cwd=ROOT, check=False, capture_output=True, text=True)
    if finished.returncode != 0:
        return None
    run = json.loads(finished.stdout)
    return run["scores"][0], run["fit_seconds"] or run["seconds"][0]


def score(classifies: bool, targets: "object", predicted: "object") -> float:
    from sklearn.metrics import accuracy_score, r2_score

    return float(accuracy_score(targets, predicted) if classifies else r2_score(targets, predicted))


def fit_diffprivlib(name: str, table: "object", epsilon: float) -> "object":
    from diffprivlib import models

    if name == "LogisticRegression":
        return models.LogisticRegression(epsilon=epsilon, data_norm=len(table.columns) ** 0.5, max_iter=1000)
    low = [-1.0 if column.bounds else 0.0 for column in table.columns for _ in column.categories or (0,)]
    bounds = (low, [1.0] * len(low))
    if name == "GaussianNB":
        return models.GaussianNB(epsilon=epsilon, bounds=bounds)
    return models.LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=(-1, 1))


def fit_opacus(table: "object", features: "object", targets: "object", epsilon: float) -> Callable:
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    batch, epochs, rate = HAND_SET[table.name]
    outputs = len(table.label.categories) if table.classifies else 1
    x = torch.tensor(features, dtype=torch.float32) / len(table.columns) ** 0.5
    y = torch.tensor(targets) if table.classifies else torch.tensor(targets, dtype=torch.float32)[:, None]
    model = torch.nn.Linear(x.shape[1], outputs)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    loss = torch.nn.CrossEntropyLoss() if table.classifies else torch.nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    model, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=batch),
        target_epsilon=epsilon,
        target_delta=DELTA,
        epochs=epochs,
        max_grad_norm=1.0,
    )
    for _ in range(epochs):
        for rows, wanted in loader:
            optimizer.zero_grad()
            loss(model(rows), wanted).backward()
            optimizer.step()

    def predict(features: "object") -> "object":
        with torch.no_grad():
            scores = model(torch.tensor(features, dtype=torch.float32) / len(table.columns) ** 0.5)
        return scores.argmax(1).numpy() if table.classifies else scores[:, 0].numpy()

    return predict


def fit_sklearn(classifies: bool) -> "object":
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000) if classifies else Ridge())


def peers(table: "object", epsilon: float, number: int, names: list[str]) -> dict[str, Scored]:
    """Fits every peer to one split."""
    train, test = table.split(number)
    features, targets = table.features(train), table.targets(train)
    others, wanted = table.features(test), table.targets(test)
    results = {}
    for name in names:
        start = time.perf_counter()
        if name == "opacus":
            predict = fit_opacus(table, features, targets, epsilon)
        else:
            kind, _, model = name.partition(" ")
            fitted = fit_diffprivlib(model, table, epsilon) if kind == "diffprivlib" else fit_sklearn(table.classifies)
            predict = fitted.fit(features, targets).predict
        seconds = time.perf_counter() - start
        results[name] = score(table.classifies, wanted, predict(others)), seconds
    return results


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def measure(table: "object", program: Path, folder: Path, runs: int, methods: list[str]) -> dict:
    """Scores and seconds by library and ε."""
    private = ["opacus", *(["diffprivlib LogisticRegression", "diffprivlib GaussianNB"] if table.classifies else ["diffprivlib LinearRegression"])]
    results: dict[str, dict[float, list[Scored]]] = {}
    for number in range(runs):
        split = folder / table.name.replace(" ", "-") / str(number)
        records = table.write(split, number)
        plain = peers(table, 0.0, number, ["scikit-learn"])["scikit-learn"]
        for epsilon in EPSILONS:
            scored = {"quell": quell(program, split, records, epsilon, "")}
            for method in methods:
                settings = f"learner = 'glm'\nglm = {{ method = '{method}' }}"
                scored[f"quell {method}"] = quell(program, split, records, epsilon, settings)
            scored |= peers(table, epsilon, number, private)
            scored["scikit-learn"] = plain
            for name, result in scored.items():
                if result is not None:
                    results.setdefault(name, {}).setdefault(epsilon, []).append(result)
        say(f"{table.name}: run {number + 1} of {runs}")
    return results


def show(table: "object", results: dict) -> None:
    measured = "accuracy in %" if table.classifies else "100 R²"
    say(f"\n{table.name}: {measured}, mean of the runs, and seconds of one run\n", sys.stdout)
    say(f"  {'':32}" + "".join(f"  ε = {epsilon:<4}" for epsilon in EPSILONS) + "  seconds", sys.stdout)
    for name, cells in results.items():
        scores = "".join(f"  {100 * mean([s for s, _ in cells[epsilon]]):8.1f}" for epsilon in EPSILONS if epsilon in cells)
        seconds = mean([s for cell in cells.values() for _, s in cell])
        say(f"  {name:32}{scores}  {seconds:7.2f}", sys.stdout)


def draw(measured: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "quell"
    from matplotlib import pyplot

    shown = {"quell": ("Quell", "#0b6e4f", "o"), "opacus": ("Opacus, set by hand", "#c8553d", "s")}
    shown |= {f"diffprivlib {kind}": (f"diffprivlib {kind}", color, mark) for kind, color, mark in (
        ("LogisticRegression", "#3d5a80", "^"), ("LinearRegression", "#3d5a80", "^"), ("GaussianNB", "#98c1d9", "v"))}
    figure, axes = pyplot.subplots(1, len(measured), figsize=(3.2 * len(measured), 3.4))
    for axis, (table, results) in zip(axes, measured.items(), strict=True):
        for name, (label, color, mark) in shown.items():
            if name in results:
                values = [100 * mean([s for s, _ in results[name][epsilon]]) for epsilon in EPSILONS]
                axis.plot(EPSILONS, values, color=color, marker=mark, label=label, markersize=4)
        plain = 100 * mean([s for s, _ in results["scikit-learn"][EPSILONS[0]]])
        axis.axhline(plain, color="black", linestyle=":", linewidth=1, label="scikit-learn, not private")
        axis.set_xscale("log")
        axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axis.minorticks_off()
        axis.set_title(table, fontsize=10)
        axis.set_xlabel("ε")
        if table == "California":
            # A model worse than the mean is off the chart.
            axis.set_ylim(0, 1.1 * plain)
        axis.set_ylabel("100 R²" if table == "California" else "accuracy in %", fontsize=8)
    entries = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="lower center", ncols=len(entries), fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path, metadata={"Date": None})


def sweep(table: "object", program: Path, folder: Path, runs: int) -> None:
    """The automatic choice against the best of many settings, at ε = 1."""
    choices = {"automatic": ""}
    for method in METHODS:
        choices[method] = f"learner = 'glm'\nglm = {{ method = '{method}' }}"
    if table.classifies:
        choices["svm"] = "model = { name = 'svm' }"
    probe = folder / table.name.replace(" ", "-").replace(",", "") / "0"
    records = table.write(probe, 0)
    automatic = json.loads(run_example(program, str(probe), str(records), "1.0", "1", ""))
    usual, usual_steps = automatic["learning_rate"], automatic["steps"]
    for rate in RATES:
        choices[f"learning rate × {rate:g}"] = f"[glm]\nlearning_rate = {rate * usual}"
        for steps in STEPS:
            # The default learning rate is inverse to the number of steps.
            own = rate * usual * usual_steps / steps
            choices[f"{steps} steps, learning rate × {rate:g}"] = f"[glm]\nsteps = {steps}\nlearning_rate = {own}"
    for steps in STEPS:
        choices[f"{steps} steps"] = f"[glm]\nsteps = {steps}"
    results: dict[str, list[float]] = {name: [] for name in choices}
    for number in range(runs):
        split = probe.parent / str(number)
        records = table.write(split, number)
        for name, settings in choices.items():
            if (scored := quell(program, split, records, 1.0, settings)) is not None:
                results[name].append(scored[0])
        say(f"{table.name}: run {number + 1} of {runs}")
    plain = mean([peers(table, 0.0, number, ["scikit-learn"])["scikit-learn"][0] for number in range(runs)])
    means = {name: 100 * mean(scores) for name, scores in results.items() if scores}
    best = max(means, key=means.get)
    say(
        f"{table.name}: automatic {means['automatic']:.1f}, best of {len(means)} settings {means[best]:.1f} ({best}), "
        f"not private {100 * plain:.1f}",
        sys.stdout,
    )


def main() -> int:
    parser = data_parser("Compares Quell's models of tables with those of other libraries.", "tables-env", program=False)
    parser.add_argument("--tables", nargs="*", help="the tables, by their names in table_data.py (all)")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), help="methods besides the automatic choice (all)")
    parser.add_argument("--figure", type=Path, help="an SVG file for the scores")
    parser.add_argument("--untuned", action="store_true", help="compare with a sweep, on tables without influence on defaults")
    arguments = enter(parser, REQUIREMENTS, one_thread=False)
    from table_data import TABLES, UNTUNED

    program = build_example("bench_tables", "quell")
    folder = ROOT / "target" / "tables"
    known = UNTUNED if arguments.untuned else TABLES
    names = arguments.tables or list(known)
    measured = {}
    for name in names:
        table = known[name](arguments.data)
        if arguments.untuned:
            sweep(table, program, folder, arguments.runs)
            continue
        methods = [method for method in arguments.methods if method != "adassp" or not table.classifies]
        measured[table.name] = measure(table, program, folder, arguments.runs, methods)
        show(table, measured[table.name])
    if arguments.figure:
        draw(measured, arguments.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
