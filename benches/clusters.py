#!/usr/bin/env python3
"""Compares private k-means and principal components with other libraries, at equal ε.

Digits (64 columns), the numeric columns of Adult and Bank Marketing, and MNIST if asked
for (table_data.py), δ = 1e-5, the mean of several runs. Every library gets the same
declared bounds and the same numbers, scaled from their bounds to [-1, 1], and is measured
on all records:

    k-means       mean squared distance to the nearest centre; less is better
    components    share of the variance that is explained; more is better
    seconds       of one run

    quell           `train --model kmeans` and `--model components`, without any other setting
    diffprivlib     KMeans and PCA, with the declared bounds
    scikit-learn    KMeans (ten starts) and PCA, without privacy

Not equal, and in whose favour:

    the peers'   Quell's time is that of the whole command: reading the CSV file, planning, paying, and writing
                 the files of the run. The time of the peers is that of fitting arrays in memory.
    Quell's      diffprivlib promises δ = 0, and Quell δ = 1e-5.
    Quell's      the rules that choose Quell's settings were found with the first three tables.

The peers, pinned in tables-requirements.txt, go into the environment of tables.py.
--quell names a program `quell`, instead of building one. A peer that takes longer than
--limit seconds for one run is left out.
"""

import json
import shutil
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from peers import HERE, ROOT, data_parser, enter, run_limited, run_timed, say

REQUIREMENTS = HERE / "tables-requirements.txt"
EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5
# Clusters and components of each table.
TASKS = {"digits": (10, 10), "adult": (8, 3), "bank": (8, 5), "mnist": (10, 60)}

Scored = tuple[float, float]


def quell(program: Path, folder: Path, records: int, epsilon: float, model: list[str]) -> Scored:
    """Trains once, and measures the model on a public copy of the records."""
    with tempfile.TemporaryDirectory() as place:
        command = ["train", str(folder / "train.csv"), "--schema", str(folder / "schema.toml")]
        command += ["--records", str(records), "--epsilon", str(epsilon), "--delta", str(DELTA), *model]
        _, seconds = run_timed(program, place, *command, "--output", "run", "--ledger", "ledger")
        copy = str(folder / "copy.csv")
        printed, _ = run_timed(program, place, "evaluate", "run", copy, "--public", "--format", "json")
    (measured,) = json.loads(printed)["evaluation"].values()
    return measured.get("inertia", measured.get("explained")), seconds


def inertia(values: "object", centres: "object") -> float:
    squared = ((values[:, None, :] - centres[None]) ** 2).sum(2) if len(values) < 3000 else None
    if squared is None:
        squared = (values**2).sum(1)[:, None] - 2 * values @ centres.T + (centres**2).sum(1)
    return float(squared.min(1).mean())


def explained(values: "object", directions: "object") -> float:
    centred = values - values.mean(0)
    return float(((centred @ directions.T) ** 2).sum() / (centred**2).sum())


def clusters(values: "object", count: int, epsilon: float | None, seed: int) -> Scored:
    if epsilon is None:
        from sklearn.cluster import KMeans

        model = KMeans(count, n_init=10, random_state=seed)
    else:
        from diffprivlib.models import KMeans

        model = KMeans(count, epsilon=epsilon, bounds=(-1, 1), random_state=seed)
    start = time.perf_counter()
    model.fit(values)
    seconds = time.perf_counter() - start
    return inertia(values, model.cluster_centers_), seconds


def components(values: "object", count: int, epsilon: float | None, seed: int) -> Scored:
    if epsilon is None:
        from sklearn.decomposition import PCA

        model = PCA(count)
    else:
        from diffprivlib.models import PCA

        norm = values.shape[1] ** 0.5
        model = PCA(count, epsilon=epsilon, bounds=(-1, 1), data_norm=norm, centered=False, random_state=seed)
    start = time.perf_counter()
    model.fit(values)
    seconds = time.perf_counter() - start
    return explained(values, model.components_), seconds


def cells(scored: list[Scored], exact: float) -> str:
    score, seconds = (statistics.mean(column) for column in zip(*scored, strict=True))
    return f"{score:.4f} | {score / exact:.3f} | {seconds:.2f}"


def measure(table: "object", program: Path, folder: Path, counts: tuple[int, int], runs: int, limit: float) -> None:
    table.columns = [column for column in table.columns if column.bounds is not None]
    table.test = table.rows.iloc[:0]
    shutil.rmtree(folder, ignore_errors=True)
    records = table.write(folder, 0)
    shutil.copy(folder / "train.csv", folder / "copy.csv")
    values = table.features(table.rows)
    for title, flag, peer, count in (
        ("k-means, inertia", ["--model", "kmeans", "--clusters"], clusters, counts[0]),
        ("components, explained", ["--model", "components", "--components"], components, counts[1]),
    ):
        exact, seconds = peer(values, count, None, 0)
        say(f"\n{table.name}, {title} ({count}), {values.shape[1]} columns; scikit-learn {exact:.4f} in {seconds:.2f} s", sys.stdout)
        say("| ε | quell | relative | seconds | diffprivlib | relative | seconds |\n|---|---|---|---|---|---|---|", sys.stdout)
        has_time = True
        for epsilon in EPSILONS:
            own = [quell(program, folder, records, epsilon, [*flag, str(count)]) for _ in range(runs)]
            others = []
            for seed in range(runs):
                scored = run_limited(limit, partial(peer, values, count, epsilon, seed)) if has_time else None
                has_time = scored is not None
                others.append(scored)
            other = cells(others, exact) if has_time else f"– | – | more than {limit:.0f}"
            say(f"| {epsilon} | {cells(own, exact)} | {other} |", sys.stdout)


def main() -> int:
    parser = data_parser("Compares Quell's clusters and components with those of other libraries.", "tables-env")
    known = list(TASKS)
    parser.add_argument("--tables", nargs="*", choices=known, default=known[:3], help="the tables (digits, adult, bank; mnist)")
    parser.add_argument("--limit", type=float, default=60, help="the most seconds that a run of a peer may take (60)")
    arguments = enter(parser, REQUIREMENTS)
    import table_data

    for name in arguments.tables:
        table = getattr(table_data, name)(arguments.data)
        folder = ROOT / "target" / "clusters" / name
        measure(table, arguments.quell, folder, TASKS[name], arguments.runs, arguments.limit)
    return 0


if __name__ == "__main__":
    sys.exit(main())
