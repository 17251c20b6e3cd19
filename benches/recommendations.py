#!/usr/bin/env python3
"""Compares recommendations from ratings with what is possible without privacy.

MovieLens latest-small: 610 users, 100,836 ratings, and a public list of 9,742 films. The guarantee protects each user
with all their ratings, δ = 1e-5, the mean of several runs. A fifth of the ratings of each user is held out, another
fifth in every run:

    error      root mean square error of the held-out ratings, in stars; less is better
    recall     how many of the ten films that are recommended to a user are among the held-out ones, divided by ten
               or by the number of held-out ones if there are fewer; the mean of all users; more is better
    seconds    of one training run

    quell           `train --model factorization`, and `predict` with the other ratings of each user
    quell, means    the same without factors: private popularity and biases of films
    own mean        the mean of the user's other ratings and three ratings of 3.5, for every film: no model at all
    item means      the mean rating of each film, with five ratings at the mean of all
    biases          what each film and each user add to the mean of all ratings, for the error
    popularity      the films with the most ratings that the user has not rated, for the recall
    factorisation   alternating least squares in NumPy: for the error, 10 factors of what is left after the biases
                    of users and films; for the recall, 30 factors of which films are rated (Hu, Koren and
                    Volinsky 2008). A user's factors are fitted to the other ratings of the user.

Only Quell is private. The own mean needs no privacy.

Not equal, and in whose favour:

    the others'  the settings of the factorisation were chosen by looking at held-out ratings.
    the others'  Quell's time is that of the whole command; theirs is that of fitting arrays in memory.
    Quell's      the rules that choose Quell's settings were found with these ratings.

Where Quell predicts no rating, because the model does not hold the film, the own mean is taken. NumPy and pandas come from estimators-requirements.txt.
The files, in the folder that --data or QUELL_DATA names: ml-latest-small/ratings.csv.gz and movies.csv.gz.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from peers import HERE, data_parser, enter, run_timed, say

REQUIREMENTS = HERE / "estimators-requirements.txt"
EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5
TOP = 10
LOW, HIGH, MIDDLE = 0.5, 5.0, 3.5
# A public, rough number of users.
USERS = 600

Scored = tuple[float, float, float]


class Split:
    """Ratings with users and films as whole numbers, and which of them are held out."""

    def __init__(self, ratings: "object", films: "object", number: int):
        import numpy as np
        import pandas as pd

        self.films = films
        users, self.names = pd.factorize(ratings["userId"], sort=True)
        places = pd.Index(films).get_indexer(ratings["movieId"])
        order = np.random.default_rng(1000 + number).permutation(len(ratings))
        # The rank of each rating among those of its user, in random order.
        rank = pd.Series(users[order]).groupby(users[order]).cumcount().to_numpy()
        is_held = np.empty(len(order), bool)
        is_held[order] = rank < np.bincount(users)[users[order]] // 5
        self.train, self.held = ratings[~is_held], ratings[is_held]
        stars = ratings["rating"].to_numpy()
        self.known = users[~is_held], places[~is_held], stars[~is_held]
        self.asked = users[is_held], places[is_held], stars[is_held]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.names), len(self.films)

    def matrix(self, values: "object") -> "object":
        """A value for each known rating, and zero elsewhere."""
        import numpy as np

        made = np.zeros(self.shape)
        made[self.known[0], self.known[1]] = values
        return made

    def own_means(self) -> "object":
        """The mean of each user's known ratings and three ratings of 3.5, as a column."""
        import numpy as np

        users, _, stars = self.known
        count, total = np.bincount(users), np.bincount(users, stars)
        return ((total + 3 * MIDDLE) / (count + 3))[:, None]

    def error(self, predicted: "object") -> float:
        """The root mean square error of the held-out ratings, from a matrix of all predictions."""
        users, films, stars = self.asked
        return float(((predicted[users, films].clip(LOW, HIGH) - stars) ** 2).mean() ** 0.5)

    def recall(self, top: "object") -> float:
        """From the films that are recommended to each user, as rows of places."""
        import numpy as np

        wanted = np.zeros(self.shape, bool)
        wanted[self.asked[0], self.asked[1]] = True
        hits = np.take_along_axis(wanted, top, axis=1).sum(1)
        return float((hits / wanted.sum(1).clip(1, TOP)).mean())

    def best(self, scores: "object") -> "object":
        """The films of the largest scores that the user has not rated."""
        import numpy as np

        scores = np.where(self.matrix(1.0) > 0, -np.inf, scores)
        return np.argsort(-scores, axis=1, kind="stable")[:, :TOP]


def quell(program: Path, split: Split, films: Path, epsilon: float, settings: str) -> Scored:
    import numpy as np
    import pandas as pd

    with tempfile.TemporaryDirectory() as place:
        split.train.to_csv(Path(place) / "ratings.csv", index=False)
        (Path(place) / "settings.toml").write_text(settings)
        command = ["train", "ratings.csv", "--config", "settings.toml", "--model", "factorization", "--user", "userId"]
        command += ["--item", "movieId", "--value", "rating", "--bounds", str(LOW), str(HIGH), "--items", str(films)]
        command += ["--records", str(USERS), "--epsilon", str(epsilon), "--delta", str(DELTA)]
        _, seconds = run_timed(program, place, *command, "--output", "run", "--ledger", "ledger")
        asked = ["predict", "run", "ratings.csv", "--top", str(len(split.films)), "--output", "best.csv"]
        run_timed(program, place, *asked)
        found = pd.read_csv(Path(place) / "best.csv")
    users = pd.Index(split.names).get_indexer(found["userId"])
    places = pd.Index(split.films).get_indexer(found["movieId"])
    predicted = np.repeat(split.own_means(), len(split.films), axis=1)
    predicted[users, places] = found["prediction"]
    scores = np.full(split.shape, -np.inf)
    scores[users, places] = -found["rank"]
    return split.error(predicted), split.recall(split.best(scores)), seconds


def item_means(split: Split) -> tuple[float, None, float]:
    import numpy as np

    start = time.perf_counter()
    _, films, stars = split.known
    count, total = np.bincount(films, minlength=len(split.films)), np.bincount(films, stars, len(split.films))
    means = (total + 5 * stars.mean()) / (count + 5)
    seconds = time.perf_counter() - start
    return split.error(np.broadcast_to(means, split.shape)), None, seconds


def own_mean(split: Split) -> tuple[float, None, None]:
    import numpy as np

    return split.error(np.broadcast_to(split.own_means(), split.shape)), None, None


def only_biases(split: Split) -> tuple[float, None, float]:
    start = time.perf_counter()
    middle, of_users, of_films = biases(split)
    seconds = time.perf_counter() - start
    return split.error(middle + of_users[:, None] + of_films), None, seconds


def popularity(split: Split) -> tuple[None, float, float]:
    import numpy as np

    start = time.perf_counter()
    count = np.bincount(split.known[1], minlength=len(split.films))
    seconds = time.perf_counter() - start
    return None, split.recall(split.best(np.broadcast_to(count, split.shape))), seconds


def biases(split: Split) -> tuple[float, "object", "object"]:
    """The mean of all ratings, and what users and films add to it."""
    import numpy as np

    users, films, stars = split.known
    middle = stars.mean()
    of_users, of_films = (np.zeros(count) for count in split.shape)
    for _ in range(10):
        rest = stars - middle - of_users[users]
        of_films = np.bincount(films, rest, len(of_films)) / (np.bincount(films, minlength=len(of_films)) + 4)
        rest = stars - middle - of_films[films]
        of_users = np.bincount(users, rest, len(of_users)) / (np.bincount(users, minlength=len(of_users)) + 4)
    return middle, of_users, of_films


def alternate(solve: "object", split: Split, factors: int, rounds: int) -> tuple["object", "object"]:
    """Fits the factors of users and films in turns. `solve` fits one side to the other."""
    import numpy as np

    random = np.random.default_rng(0)
    of_films = 0.1 * random.normal(size=(split.shape[1], factors))
    for _ in range(rounds):
        of_users = solve(of_films, False)
        of_films = solve(of_users, True)
    return solve(of_films, False), of_films


def explicit(split: Split, factors: int = 10, ridge: float = 15.0, rounds: int = 8) -> "object":
    """Predicted ratings: biases, and factors of what they leave."""
    import numpy as np

    middle, of_users, of_films = biases(split)
    users, films, stars = split.known
    rest = split.matrix(stars - middle - of_users[users] - of_films[films])
    is_known = split.matrix(1.0) > 0

    def solve(others: "object", transposed: bool) -> "object":
        made = np.zeros((split.shape[1 if transposed else 0], factors))
        for row, mask in enumerate(is_known.T if transposed else is_known):
            if mask.any():
                own = others[mask]
                values = rest[mask, row] if transposed else rest[row, mask]
                made[row] = np.linalg.solve(own.T @ own + ridge * np.eye(factors), own.T @ values)
        return made

    a, b = alternate(solve, split, factors, rounds)
    return middle + of_users[:, None] + of_films + a @ b.T


def implicit(split: Split, factors: int = 30, weight: float = 10.0, ridge: float = 100.0, rounds: int = 8) -> "object":
    """Scores: how likely a user is to rate a film."""
    import numpy as np

    is_known = split.matrix(1.0) > 0

    def solve(others: "object", transposed: bool) -> "object":
        whole = others.T @ others + ridge * np.eye(factors)
        made = np.zeros((split.shape[1 if transposed else 0], factors))
        for row, mask in enumerate(is_known.T if transposed else is_known):
            if mask.any():
                own = others[mask]
                made[row] = np.linalg.solve(whole + weight * own.T @ own, (1 + weight) * own.sum(0))
        return made

    a, b = alternate(solve, split, factors, rounds)
    return a @ b.T


def factorisation(split: Split) -> Scored:
    start = time.perf_counter()
    predicted, scores = explicit(split), implicit(split)
    seconds = time.perf_counter() - start
    return split.error(predicted), split.recall(split.best(scores)), seconds


def line(name: str, epsilon: float | None, scored: list) -> str:
    texts = []
    for column, digits in zip(zip(*scored, strict=True), (3, 3, 2), strict=True):
        texts.append("–" if column[0] is None else f"{statistics.mean(column):.{digits}f}")
    return f"| {'–' if epsilon is None else epsilon} | {name} | {' | '.join(texts)} |"


def main() -> int:
    parser = data_parser("Compares Quell's recommendations with those without privacy.", "estimators-env")
    arguments = enter(parser, REQUIREMENTS)
    import pandas as pd

    data = arguments.data / "ml-latest-small"
    listed = pd.read_csv(data / "movies.csv.gz")
    ratings = pd.read_csv(data / "ratings.csv.gz")
    splits = [Split(ratings, listed["movieId"].to_numpy(), number) for number in range(arguments.runs)]
    say(f"MovieLens latest-small, {arguments.runs} runs", sys.stdout)
    say("| ε | method | error | recall | seconds |\n|---|---|---|---|---|", sys.stdout)
    with tempfile.TemporaryDirectory() as place:
        films = Path(place) / "movies.csv"
        listed.to_csv(films, index=False)
        for name, settings in (("quell", ""), ("quell, means", "[factorization]\nfactors = false\n")):
            for epsilon in EPSILONS:
                scored = [quell(arguments.quell, split, films, epsilon, settings) for split in splits]
                say(line(name, epsilon, scored), sys.stdout)
    others = {"own mean": own_mean, "item means": item_means, "biases": only_biases, "popularity": popularity}
    for name, method in {**others, "factorisation": factorisation}.items():
        say(line(name, None, [method(split) for split in splits]), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
