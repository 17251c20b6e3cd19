#!/usr/bin/env python3
"""Compares private k-means and principal components with other libraries, at equal ε.

Digits (64 columns) and the numeric columns of Adult and Bank Marketing (table_data.py),
δ = 1e-5, the median of several runs. Every library gets the same declared bounds and
the same numbers, scaled from their bounds to [-1, 1], and is measured on all records:

    k-means       mean squared distance to the nearest centre; less is better
    components    share of the variance that is explained; more is better

    quell           `train --model kmeans` and `--model components`, without any other setting
    diffprivlib     KMeans and PCA, with the declared bounds
    scikit-learn    KMeans (ten starts) and PCA, without privacy

Not equal, and in whose favour:

    Quell's      diffprivlib promises δ = 0, and Quell δ = 1e-5.
    Quell's      the rules that choose Quell's settings were found with these tables.

The peers, pinned in tables-requirements.txt, go into the environment of tables.py.
--quell names a program `quell`, instead of building one. The PCA of diffprivlib takes
minutes for each run on 64 columns.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from peers import HERE, ROOT, prepare_environment, say

REQUIREMENTS = HERE / "tables-requirements.txt"
EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5
# Table, clusters, components.
TASKS = (("digits", 10, 10), ("adult", 8, 3), ("bank", 8, 5))


def build() -> Path:
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "quell-cli"], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "quell"


def quell(program: Path, folder: Path, records: int, epsilon: float, model: list[str]) -> float:
    """Trains once, and measures the model on a public copy of the records."""
    with tempfile.TemporaryDirectory() as place:
        shutil.copy(folder / "train.csv", Path(place) / "copy.csv")
        command = [str(program), "train", str(folder / "train.csv"), "--schema", str(folder / "schema.toml")]
        command += ["--records", str(records), "--epsilon", str(epsilon), "--delta", str(DELTA), *model]
        command += ["--test", "copy.csv", "--output", "run", "--ledger", "ledger", "--format", "json"]
        finished = subprocess.run(command, cwd=place, check=True, capture_output=True, text=True)
    (measured,) = json.loads(finished.stdout)["evaluation"].values()
    return measured.get("inertia", measured.get("explained"))


def inertia(values: "object", centres: "object") -> float:
    squared = ((values[:, None, :] - centres[None]) ** 2).sum(2) if len(values) < 3000 else None
    if squared is None:
        squared = (values**2).sum(1)[:, None] - 2 * values @ centres.T + (centres**2).sum(1)
    return float(squared.min(1).mean())


def explained(values: "object", directions: "object") -> float:
    centred = values - values.mean(0)
    return float(((centred @ directions.T) ** 2).sum() / (centred**2).sum())


def peer_clusters(values: "object", clusters: int, epsilon: float | None, seed: int) -> float:
    if epsilon is None:
        from sklearn.cluster import KMeans

        return inertia(values, KMeans(clusters, n_init=10, random_state=seed).fit(values).cluster_centers_)
    from diffprivlib.models import KMeans

    return inertia(values, KMeans(clusters, epsilon=epsilon, bounds=(-1, 1), random_state=seed).fit(values).cluster_centers_)


def peer_components(values: "object", count: int, epsilon: float | None, seed: int) -> float:
    if epsilon is None:
        from sklearn.decomposition import PCA

        return explained(values, PCA(count).fit(values).components_)
    from diffprivlib.models import PCA

    norm = values.shape[1] ** 0.5
    model = PCA(count, epsilon=epsilon, bounds=(-1, 1), data_norm=norm, centered=False, random_state=seed)
    return explained(values, model.fit(values).components_)


def measure(table: "object", program: Path, folder: Path, task: tuple[int, int], runs: int) -> None:
    clusters, components = task
    table.columns = [column for column in table.columns if column.bounds is not None]
    table.test = table.rows.iloc[:0]
    folder = folder / table.name.lower()
    shutil.rmtree(folder, ignore_errors=True)
    records = table.write(folder, 0)
    values = table.features(table.rows)
    for title, flags, peer, count in (
        ("k-means, inertia", ["--model", "kmeans", "--clusters", str(clusters)], peer_clusters, clusters),
        ("components, explained", ["--model", "components", "--components", str(components)], peer_components, components),
    ):
        exact = peer(values, count, None, 0)
        say(f"\n{table.name}, {title} ({count}), {values.shape[1]} columns; scikit-learn {exact:.4f}", sys.stdout)
        say("| ε | quell | relative | diffprivlib | relative |\n|---|---|---|---|---|", sys.stdout)
        for epsilon in EPSILONS:
            own = statistics.median(quell(program, folder, records, epsilon, flags) for _ in range(runs))
            other = statistics.median(peer(values, count, epsilon, seed) for seed in range(runs))
            say(f"| {epsilon} | {own:.4f} | {own / exact:.3f} | {other:.4f} | {other / exact:.3f} |", sys.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares Quell's clusters and components with those of other libraries.")
    parser.add_argument("--data", type=Path, default=os.environ.get("QUELL_DATA"), help="the folder of the data sets")
    parser.add_argument("--env", type=Path, default=ROOT / "target" / "tables-env", help="where the peers go")
    parser.add_argument("--python", type=Path, help="a Python that has the peers, instead of installing them")
    parser.add_argument("--quell", type=Path, help="the program, instead of building it")
    parser.add_argument("--runs", type=int, default=10, help="runs of each (10)")
    parser.add_argument("--tables", nargs="*", help="the tables (digits, adult, bank)")
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
    for name, *task in TASKS:
        if arguments.tables is None or name in arguments.tables:
            table = getattr(table_data, name)(arguments.data)
            measure(table, program, ROOT / "target" / "clusters", tuple(task), arguments.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
