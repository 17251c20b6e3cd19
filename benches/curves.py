"""How many waves an additive model should have where records are few for each column of numbers.

Every line is one table with a number of training records, drawn from its training part, at one ε: accuracy in %, or
100 R² for numbers, of models with no wave, two and eight, with the standard error of the mean.

    QUELL_DATA=path/to/data python3 benches/curves.py --runs 5
"""

import json
import sys
import tempfile
from pathlib import Path

from peers import HERE, data_parser, enter, run_timed, say

REQUIREMENTS = HERE / "tables-requirements.txt"
WAVES = (0, 2, 8)


def sums(columns: int, rows: int, is_curved: bool):
    """A number that is a sum of lines, or of lines and bends, with noise."""
    import numpy as np
    from table_data import made

    random = np.random.default_rng(6)
    values = random.normal(size=(rows, columns))
    lines = random.normal(size=columns) / columns**0.5
    bends = random.normal(size=columns) / columns**0.5 if is_curved else np.zeros(columns)
    target = 8 * (values @ lines) + 8 * ((abs(values) - 0.8) @ bends)
    return made("Curved" if is_curved else "Lines", values, target + 4 * random.normal(size=rows))


def tables() -> dict:
    """The tables, with their numbers of training records (0: all) and values of ε."""
    from table_data import INTERACTIONS, TABLES, UNTUNED

    known = {**TABLES, **UNTUNED, **INTERACTIONS}
    return {
        "wide": (known["wide"], (0,), ("3", "8")),
        "lines-100": (lambda _: sums(100, 5_000, is_curved=False), (0,), ("3", "8")),
        "curved-100": (lambda _: sums(100, 5_000, is_curved=True), (0,), ("3", "8")),
        "clusters-100": (known["clusters-100"], (0,), ("3", "8")),
        "breast-cancer": (known["breast-cancer"], (0,), ("3", "8")),
        "lines-30": (lambda _: sums(30, 20_000, is_curved=False), (1_000, 2_400, 4_800), ("8",)),
        "curved-30": (lambda _: sums(30, 20_000, is_curved=True), (1_000, 2_400, 4_800), ("8",)),
        "california": (known["california"], (320, 800, 1_600), ("8",)),
        "heavy-tails": (known["heavy-tails"], (600, 1_500, 3_000), ("8",)),
        "bank-age": (known["bank-age"], (240, 600, 1_200), ("8",)),
        "adult": (known["adult"], (300, 500, 1_000), ("8",)),
        "bank-additional": (known["bank-additional"], (500, 1_000, 1_500), ("8",)),
    }


def score(program: Path, table, records: int, epsilon: str, run: int, settings: tuple[str, int]) -> float:
    """Accuracy in %, or 100 R², of one model."""
    model, waves = settings
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        train, test = table.split(run)
        train = train.sample(records, random_state=run) if records else train
        names = [column.name for column in [*table.columns, table.label]]
        train[names].to_csv(folder / "train.csv", index=False)
        test[names].to_csv(folder / "test.csv", index=False)
        (folder / "schema.toml").write_text(table.schema())
        (folder / "waves.toml").write_text(f"[glm]\nwaves = {waves}\n")
        arguments = ["--config", "waves.toml", "--schema", "schema.toml", "--test", "test.csv", "--model", model]
        arguments += ["--records", str(len(train)), "--epsilon", epsilon, "--delta", "1e-5", "--format", "json"]
        printed = json.loads(run_timed(program, place, "train", "train.csv", *arguments, "--output", "run")[0])
    if printed["accuracy"] is not None:
        return 100 * printed["accuracy"]
    error = printed["evaluation"]["numbers"]["error"]
    return 100 * (1 - error**2 / test[table.label.name].var(ddof=0))


def main() -> int:
    parser = data_parser("Compares numbers of waves where records are few for each column.", "tables-env")
    parser.add_argument("--only", nargs="*", help="the tables with these names (all)")
    parser.add_argument("--model", default="additive", help="additive or forest (additive)")
    arguments = enter(parser, REQUIREMENTS, one_thread=False)
    for name, (read, counts, epsilons) in tables().items():
        if arguments.only and name not in arguments.only:
            continue
        table = read(arguments.data.absolute())
        numbers = sum(column.bounds is not None for column in table.columns)
        for records in counts:
            for epsilon in epsilons:
                found = []
                for waves in WAVES:
                    settings = (arguments.model, waves)
                    runs = range(arguments.runs)
                    scores = [score(arguments.quell, table, records, epsilon, run, settings) for run in runs]
                    mean = sum(scores) / len(scores)
                    spread = (sum((one - mean) ** 2 for one in scores) / len(scores)) ** 0.5
                    found.append(f"{waves} waves {mean:.1f} ± {spread / len(scores) ** 0.5:.1f}")
                each = (records or len(table.split(0)[0])) / numbers
                say(f"{name}, {each:.0f} records a number, ε = {epsilon}: {', '.join(found)}", sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
