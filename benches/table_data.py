"""The tables that benches learn from, with what is declared about them.

Bounds and categories come from the descriptions of the data sets, or are round
numbers that a person who knows the subject would state. None is read off the records.
The files are looked for in the folder that --data or QUELL_DATA names:

    adult/adult-train.parquet, adult/adult-test.parquet        UCI Adult
    bank-marketing/bank-full.parquet                           UCI Bank Marketing
    bank-marketing/bank-additional-full.parquet                the same with more columns
    breast-cancer/breast_cancer.csv.gz                         as in scikit-learn
    california-housing/california-housing.parquet              StatLib
    digits-sklearn/digits.csv.gz                               as in scikit-learn
    mnist/{train,t10k}-{images-idx3,labels-idx1}-ubyte.gz      MNIST
    ml-latest-small/{ratings,movies}.csv.gz                    MovieLens, for recommendations.py
"""

import dataclasses
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of numbers with bounds, or of categories."""

    name: str
    bounds: tuple[float, float] | None = None
    categories: tuple[str, ...] | None = None


@dataclasses.dataclass(eq=False)
class Table:
    """A table with its public facts. The target is a class or a number with bounds."""

    name: str
    columns: list[Column]
    label: Column
    rows: pd.DataFrame
    # The rows of an official test set; else a fifth of the rows is held out, another one in every run.
    test: pd.DataFrame | None = None

    @property
    def classifies(self) -> bool:
        return self.label.categories is not None

    def split_number(self, number: int) -> int:
        """The number of the split of a run: a table with its own test set has one."""
        return number if self.test is None else 0

    def split(self, number: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        if self.test is not None:
            return self.rows, self.test
        order = np.random.default_rng(1000 + number).permutation(len(self.rows))
        held = len(order) // 5
        return self.rows.iloc[order[held:]], self.rows.iloc[order[:held]]

    def features(self, rows: pd.DataFrame) -> np.ndarray:
        """Numbers from their bounds to [-1, 1], and an indicator for every category."""
        parts = []
        for column in self.columns:
            values = rows[column.name]
            if column.bounds is not None:
                low, high = column.bounds
                numbers = values.to_numpy(float).clip(low, high)
                parts.append((2 * (numbers - low) / (high - low) - 1)[:, None])
            else:
                parts.append(np.stack([values.to_numpy() == name for name in column.categories], axis=1))
        return np.concatenate(parts, axis=1).astype(np.float64)

    def targets(self, rows: pd.DataFrame) -> np.ndarray:
        values = rows[self.label.name]
        if self.label.categories is not None:
            return values.map({name: place for place, name in enumerate(self.label.categories)}).to_numpy(int)
        low, high = self.label.bounds
        return 2 * (values.to_numpy(float).clip(low, high) - low) / (high - low) - 1

    def write(self, folder: Path, number: int) -> int:
        """Writes one split with its schema; returns the number of training rows."""
        folder.mkdir(parents=True, exist_ok=True)
        train, test = self.split(number)
        names = [column.name for column in self.columns] + [self.label.name]
        if not (folder / "done").exists():
            train[names].to_csv(folder / "train.csv", index=False)
            test[names].to_csv(folder / "test.csv", index=False)
            (folder / "schema.toml").write_text(self.schema())
            (folder / "done").touch()
        return len(train)

    def schema(self) -> str:
        label = [f"[label]\ncolumn = {json.dumps(self.label.name)}"]
        if self.label.categories is not None:
            label.append(f"classes = {json.dumps(list(self.label.categories))}")
        else:
            label.append(f"bounds = {list(self.label.bounds)}")
        parts = ["\n".join(label)]
        for column in self.columns:
            kind = f"bounds = {list(column.bounds)}" if column.bounds else f"categories = {json.dumps(list(column.categories))}"
            parts.append(f"[[column]]\nname = {json.dumps(column.name)}\n{kind}")
        return "\n\n".join(parts) + "\n"


def numbers(**bounds: tuple[float, float]) -> list[Column]:
    return [Column(name.replace("__", "-").replace("_dot_", "."), bounds=pair) for name, pair in bounds.items()]


def kinds(**categories: str) -> list[Column]:
    """Columns of categories, which are separated by spaces."""
    return [
        Column(name.replace("__", "-"), categories=tuple(text.split())) for name, text in categories.items()
    ]


ADULT = [
    *numbers(
        age=(17, 90),
        education__num=(1, 16),
        capital__gain=(0, 20_000),
        capital__loss=(0, 3_000),
        hours__per__week=(1, 99),
    ),
    *kinds(
        workclass="Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked",
        education="Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters "
        "1st-4th 10th Doctorate 5th-6th Preschool",
        marital__status="Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
        "Married-AF-spouse",
        occupation="Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
        "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces",
        relationship="Wife Own-child Husband Not-in-family Other-relative Unmarried",
        race="White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
        sex="Female Male",
        native__country="United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India "
        "Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland "
        "France Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand "
        "Yugoslavia El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands",
    ),
]

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
JOBS = (
    "admin. blue-collar entrepreneur housemaid management retired self-employed services student technician "
    "unemployed unknown"
)

BANK = [
    *numbers(
        age=(18, 95),
        balance=(-2_000, 20_000),
        day=(1, 31),
        duration=(0, 3_600),
        campaign=(1, 30),
        pdays=(-1, 400),
        previous=(0, 30),
    ),
    *kinds(
        job=JOBS,
        marital="married divorced single",
        education="unknown secondary primary tertiary",
        default="yes no",
        housing="yes no",
        loan="yes no",
        contact="unknown telephone cellular",
        month=MONTHS,
        poutcome="unknown other failure success",
    ),
]

BANK_ADDITIONAL = [
    *numbers(
        age=(17, 98),
        duration=(0, 3_600),
        campaign=(1, 30),
        pdays=(0, 999),
        previous=(0, 10),
        emp_dot_var_dot_rate=(-4, 2),
        cons_dot_price_dot_idx=(92, 95),
        cons_dot_conf_dot_idx=(-55, -25),
        euribor3m=(0, 6),
        nr_dot_employed=(4_900, 5_300),
    ),
    *kinds(
        job=JOBS,
        marital="married divorced single unknown",
        education="basic.4y basic.6y basic.9y high.school illiterate professional.course university.degree unknown",
        default="yes no unknown",
        housing="yes no unknown",
        loan="yes no unknown",
        contact="telephone cellular",
        month=MONTHS,
        day_of_week="mon tue wed thu fri",
        poutcome="nonexistent failure success",
    ),
]

# Means, standard errors and worst values of ten measures of a cell.
CELLS = (
    *((5, 30), (5, 40), (40, 200), (100, 2_600), (0.05, 0.2), (0, 0.4), (0, 0.5), (0, 0.25), (0.1, 0.35), (0.04, 0.1)),
    *((0, 3), (0, 5), (0, 22), (0, 550), (0, 0.04), (0, 0.14), (0, 0.4), (0, 0.06), (0, 0.08), (0, 0.03)),
    *((5, 40), (10, 50), (50, 260), (150, 4_300), (0.05, 0.25), (0, 1.1), (0, 1.3), (0, 0.3), (0.1, 0.7), (0.05, 0.21)),
)

CALIFORNIA = numbers(
    longitude=(-125, -114),
    latitude=(32, 42),
    housing_median_age=(1, 52),
    total_rooms=(0, 10_000),
    total_bedrooms=(0, 2_000),
    population=(0, 5_000),
    households=(0, 2_000),
    median_income=(0, 15),
)


def adult(data: Path) -> Table:
    train, test = (pd.read_parquet(data / "adult" / f"adult-{part}.parquet") for part in ("train", "test"))
    return Table("Adult", ADULT, Column("income", categories=("<=50K", ">50K")), train, test)


def adult_hours(data: Path) -> Table:
    table = adult(data)
    columns = [column for column in ADULT if column.name != "hours-per-week"] + [table.label]
    return Table("Adult, hours", columns, Column("hours-per-week", bounds=(1, 99)), table.rows, table.test)


def bank(data: Path) -> Table:
    rows = pd.read_parquet(data / "bank-marketing" / "bank-full.parquet")
    return Table("Bank", BANK, Column("y", categories=("no", "yes")), rows)


def bank_age(data: Path) -> Table:
    columns = [column for column in BANK if column.name != "age"]
    return Table("Bank, age", columns, Column("age", bounds=(18, 95)), bank(data).rows)


def bank_additional(data: Path) -> Table:
    rows = pd.read_parquet(data / "bank-marketing" / "bank-additional-full.parquet")
    return Table("Bank additional", BANK_ADDITIONAL, Column("y", categories=("no", "yes")), rows)


def breast_cancer(data: Path) -> Table:
    names = [f"cell{place}" for place in range(30)]
    rows = pd.read_csv(data / "breast-cancer" / "breast_cancer.csv.gz", skiprows=1, names=[*names, "kind"])
    rows["kind"] = rows["kind"].map({0: "malignant", 1: "benign"})
    columns = [Column(name, bounds=pair) for name, pair in zip(names, CELLS, strict=True)]
    return Table("Breast cancer", columns, Column("kind", categories=("malignant", "benign")), rows)


def california(data: Path) -> Table:
    rows = pd.read_parquet(data / "california-housing" / "california-housing.parquet")
    return Table("California", CALIFORNIA, Column("median_house_value", bounds=(0, 500_001)), rows)


def digits(data: Path) -> Table:
    names = [f"pixel{place}" for place in range(64)]
    rows = pd.read_csv(data / "digits-sklearn" / "digits.csv.gz", names=[*names, "digit"])
    rows["digit"] = rows["digit"].astype(str)
    columns = [Column(name, bounds=(0, 16)) for name in names]
    return Table("Digits", columns, Column("digit", categories=tuple("0123456789")), rows)


def mnist(data: Path) -> Table:
    def read(name: str, header: int) -> np.ndarray:
        return np.frombuffer(gzip.open(data / "mnist" / f"{name}.gz").read(), np.uint8, offset=header)

    names = [f"pixel{place}" for place in range(784)]
    parts = []
    for part in ("train", "t10k"):
        rows = pd.DataFrame(read(f"{part}-images-idx3-ubyte", 16).reshape(-1, 784), columns=names)
        rows["digit"] = read(f"{part}-labels-idx1-ubyte", 8).astype(str)
        parts.append(rows)
    columns = [Column(name, bounds=(0, 255)) for name in names]
    return Table("MNIST", columns, Column("digit", categories=tuple("0123456789")), *parts)


def wide(_: Path) -> Table:
    """5,000 rows of 100 correlated columns; two classes; a tenth of the labels is wrong."""
    random = np.random.default_rng(7)
    factors = random.normal(size=(5_000, 20)) @ random.normal(size=(20, 100)) / 20**0.5
    values = 0.7 * factors + 0.7 * random.normal(size=(5_000, 100))
    truth = values @ (random.normal(size=100) * (random.random(100) < 0.3)) > 0
    return made("Wide", values, np.where(truth ^ (random.random(5_000) < 0.1), "yes", "no"))


def heavy_tails(_: Path) -> Table:
    """10,000 rows of 15 columns with heavy tails; the target is linear in them, with noise."""
    random = np.random.default_rng(8)
    values = random.standard_t(3, size=(10_000, 15)) * np.exp(random.normal(size=15))
    target = (values / np.exp(0.5 * random.normal(size=15))).clip(-3, 3) @ random.normal(size=15)
    return made("Heavy tails", values, target + 3 * random.standard_t(3, size=10_000))


def three_classes(_: Path) -> Table:
    """8,000 rows of 12 columns: three classes of very different size that overlap."""
    random = np.random.default_rng(9)
    kind = random.choice(3, size=8_000, p=(0.7, 0.25, 0.05))
    values = random.normal(size=(8_000, 12)) + 1.2 * random.normal(size=(3, 12))[kind]
    return made("Three classes", values, np.array(["a", "b", "c"])[kind])


def clusters(columns: int, informative: int, rows: int, parts: int, distance: float, seed: int) -> Table:
    """Two classes, each made of several clusters at the corners of a cube; one label in forty is wrong."""
    from sklearn.datasets import make_classification

    values, kind = make_classification(
        rows,
        columns,
        n_informative=informative,
        n_redundant=informative // 2,
        n_clusters_per_class=parts,
        class_sep=distance,
        flip_y=0.05,
        random_state=seed,
    )
    return made("Clusters", values, np.where(kind == 1, "yes", "no"))


def products(_: Path) -> Table:
    """20,000 rows of 20 columns: the class depends on products of columns, on curves and on lines."""
    random = np.random.default_rng(3)
    values = random.normal(size=(20_000, 20))
    # The seed of the tables that were measured drew these, too.
    random.normal(size=(20, 6))
    x = values.T
    score = x[0] * x[1] + 0.8 * x[2] * x[3] + np.sin(2 * x[4]) + 0.7 * abs(x[5]) + x[6] + 0.8 * x[7]
    is_yes = score - np.median(score) + 0.6 * random.logistic(size=20_000) > 0
    return made("Products", values, np.where(is_yes, "yes", "no"))


def made(name: str, values: np.ndarray, target: np.ndarray) -> Table:
    names = [f"x{place}" for place in range(values.shape[1])]
    rows = pd.DataFrame(values.round(4), columns=names)
    rows["y"] = target
    columns = [Column(column, bounds=(-10, 10)) for column in names]
    is_class = target.dtype.kind == "U"
    label = Column("y", categories=tuple(sorted(set(target)))) if is_class else Column("y", bounds=(-50, 50))
    return Table(name, columns, label, rows)


TABLES: dict[str, Callable[[Path], Table]] = {
    "adult": adult,
    "bank": bank,
    "breast-cancer": breast_cancer,
    "california": california,
    "digits": digits,
}

# No setting of Quell was chosen on these.
UNTUNED: dict[str, Callable[[Path], Table]] = {
    "bank-additional": bank_additional,
    "bank-age": bank_age,
    "adult-hours": adult_hours,
    "wide": wide,
    "heavy-tails": heavy_tails,
    "three-classes": three_classes,
}

# Columns matter together: for defaults.py.
INTERACTIONS: dict[str, Callable[[Path], Table]] = {
    "clusters-100": lambda _: clusters(100, 20, 5_000, 2, 0.7, 2),
    "clusters-20": lambda _: clusters(20, 10, 20_000, 3, 1.0, 1),
    "products": products,
}
