"""Training: from records and ε to a model, paid for by a ledger."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from . import _native
from .errors import BudgetError, RunError, SettingError
from .facts import Facts, Public, Task, known_facts
from .inputs import examples_of, label_texts, matrix_columns, target_numbers
from .ledgers import Ledger, Neighbors, Unit, author
from .models import Model
from .progress import Bar, Watch
from .schemas import Bounds, Schema
from .data import Table, declared_type
from .tables import columns_of, is_table, native_table

__all__ = ["Plan", "plan", "resume", "train"]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a run would do, and what it would cost. Nothing was charged."""

    epsilon: float
    """The ε of the run alone: an upper bound."""
    delta: float
    """The δ of the run."""
    claim: str
    """The guarantee, in a line."""
    settings: dict[str, Any]
    """All settings, those that follow from public facts included."""
    amount: str
    """What is paid for, in a few words."""
    remarks: list[str]
    """What is to be known before payment."""
    spent_after: float | None
    """The spent ε of the ledger after the run; `None` without a ledger."""


@dataclasses.dataclass
class Job:
    """The settings of a run and its records."""

    settings: dict[str, Any]
    records: _native.Records
    ledger: Ledger | None


def train(
    X: Any,
    y: Any = None,
    *,
    epsilon: float,
    delta: float | None = None,
    records: int | None = None,
    model: str | None = None,
    task: Literal["classes", "numbers"] | None = None,
    label: str | None = None,
    classes: Sequence[Any] | None = None,
    bounds: Bounds | Sequence[Bounds] | Mapping[str, Bounds] | None = None,
    target_bounds: Bounds | None = None,
    categories: Mapping[str, Sequence[str]] | None = None,
    schema: Schema | str | os.PathLike[str] | None = None,
    public: Public = "released",
    users: Any = None,
    test: Any = None,
    ledger: Ledger | None = None,
    neighbors: Neighbors = "add_remove",
    settings: Mapping[str, Any] | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: bool | Watch | None = None,
) -> Model:
    """Trains a model with ε-δ-differential privacy.

    `X` is a table (a DataFrame of pandas or polars, an Arrow table, a dict of columns, the path of a CSV or Parquet
    file with its schema), a matrix, or an array of images; `y` holds the targets, or `label` names their column.
    `records` is a rough public number of records. Images are numbers from 0 to 1, or bytes; their axes are records,
    height and width, with channels after the records or at the end.

    What is public about the records is declared: `bounds` of numbers, `categories` and `classes`, or all of them by a
    `schema`. What is not declared is released first, for a tenth of ε (`public="released"`), or refused
    (`public="declared"`). With `public="data"` you declare that the number of records, the least and the greatest
    number of each column, the categories and the classes *in these records* are public, and they are read off. Say so
    only if it is true.

    The charge goes to `ledger`. Without one, a ledger in memory pays for this run alone: then nothing adds up several
    runs on the same records, so use it for public data and first steps.

    Targets that are fractions are predicted as numbers, all others as classes; `task` decides otherwise.
    `model` is one of `quell.models()`; without it, model, features and settings follow from public facts.
    `settings` are those of a configuration file. `test` are public records to test on: `(X, y)`, or a table.
    `output` is a new folder for the run, which can be resumed; without it, a run that is stopped is lost.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> model = train(X, y, epsilon=1, delta=1e-6, records=2000, bounds=(-1, 1), classes=[0, 1])
    >>> bool((model.predict(X) == y.astype(str)).mean() > 0.8)
    True
    """
    job = _job(
        X=X,
        y=y,
        epsilon=epsilon,
        delta=delta,
        records=records,
        model=model,
        task=task,
        label=label,
        classes=classes,
        bounds=bounds,
        target_bounds=target_bounds,
        categories=categories,
        schema=schema,
        public=public,
        users=users,
        test=test,
        ledger=ledger,
        neighbors=neighbors,
        settings=settings,
    )
    with tempfile.TemporaryDirectory(prefix="quell-") as place:
        folder = os.path.join(place, "run") if output is None else os.fspath(output)
        with Bar.of(progress) as bar:
            told, native, _ = _native.train(
                json.dumps(job.settings),
                job.records,
                folder,
                output is not None,
                None if job.ledger is None else job.ledger._native,
                bar.watch,
                author(),
            )
    return _finished(told, native, None if output is None else folder)


def plan(X: Any, y: Any = None, *, epsilon: float, **options: Any) -> Plan:
    """Plans a run like `train`, with the same options. Nothing is charged, and no model is trained.

    >>> import numpy as np
    >>> found = plan(np.zeros((10, 3)), np.zeros(10), epsilon=1, records=5000, bounds=(-1, 1), classes=[0, 1])
    >>> 0.9 < found.epsilon <= 1 and found.delta == 1e-5
    True
    """
    job = _job(X=X, y=y, epsilon=epsilon, **{**_DEFAULTS, **options})
    told = json.loads(
        _native.plan(json.dumps(job.settings), job.records, None if job.ledger is None else job.ledger._native)
    )
    guarantee = told["guarantee"]
    return Plan(
        epsilon=guarantee["epsilon"],
        delta=guarantee["delta"],
        claim=guarantee["claim"],
        settings=told["settings"]["configuration"],
        amount=told["amount"],
        remarks=told["remarks"],
        spent_after=told["spent_after"],
    )


_DEFAULTS: dict[str, Any] = {
    "delta": None,
    "records": None,
    "model": None,
    "task": None,
    "label": None,
    "classes": None,
    "bounds": None,
    "target_bounds": None,
    "categories": None,
    "schema": None,
    "public": "declared",
    "users": None,
    "test": None,
    "ledger": None,
    "neighbors": "add_remove",
    "settings": None,
}


def resume(
    output: str | os.PathLike[str],
    X: Any,
    y: Any = None,
    *,
    ledger: Ledger,
    users: Any = None,
    test: Any = None,
    progress: bool | Watch | None = None,
) -> Model:
    """Continues a run that was stopped, with the same records. Work that was paid for is not charged again."""
    settings = json.loads(_native.settings_of(os.fspath(output)))
    schema = settings["data"].get("schema")
    X = Table(X) if isinstance(X, (str, os.PathLike)) else X
    test = Table(test) if isinstance(test, (str, os.PathLike)) else test
    records = _records(X, y, None if schema is None else Schema(schema), settings["data"].get("classes"), users, test)
    with Bar.of(progress) as bar:
        told, native = _native.resume(os.fspath(output), records, ledger._native, bar.watch, author())
    return _finished(told, native, os.fspath(output))


def _finished(told: str, native: _native.Model | None, folder: str | None) -> Model:
    outcome = json.loads(told)
    if native is None:
        hint = "nothing of the run was kept; give a folder with output= next time"
        if folder is not None:
            hint = f"continue with quell.resume({folder!r}, X, y, ledger=…)"
        raise _Stopped(f"the run was stopped at {outcome['position']}", hint)
    return Model(native, outcome=outcome)


class _Stopped(RunError):
    """A watcher stopped the run."""


def _job(
    *,
    X: Any,
    y: Any,
    epsilon: float,
    delta: float | None,
    records: int | None,
    model: str | None,
    task: Literal["classes", "numbers"] | None,
    label: str | None,
    classes: Sequence[Any] | None,
    bounds: Any,
    target_bounds: Bounds | None,
    categories: Mapping[str, Sequence[str]] | None,
    schema: Schema | str | os.PathLike[str] | None,
    public: Public,
    users: Any,
    test: Any,
    ledger: Ledger | None,
    neighbors: Neighbors,
    settings: Mapping[str, Any] | None,
) -> Job:
    X = Table(X) if isinstance(X, (str, os.PathLike)) else X
    test = Table(test) if isinstance(test, (str, os.PathLike)) else test
    schema = Schema.read(schema) if isinstance(schema, (str, os.PathLike)) else schema
    unit: Unit = "example" if users is None and (schema is None or schema.user is None) else "user"
    if ledger is None and public == "released":
        # One ledger pays for the facts and for the run.
        ledger = Ledger.in_memory(epsilon=epsilon, delta=delta or _delta(records), unit=unit, neighbors=neighbors)
    before = 0.0 if ledger is None else ledger.spent
    facts: Facts = known_facts(
        X,
        y,
        label=label,
        classes=classes,
        bounds=bounds,
        target_bounds=target_bounds,
        categories=categories,
        schema=schema,
        records=records,
        public=public,
        task=_task(task, model, X, y, label, classes, target_bounds, public),
        has_users=users is not None,
        epsilon=epsilon,
        ledger=ledger,
    )
    merged: dict[str, Any] = copy.deepcopy(dict(settings or {}))
    privacy = merged.setdefault("training", {}).setdefault("privacy", {})
    privacy["epsilon"] = float(epsilon)
    if delta is not None:
        privacy["delta"] = float(delta)
    elif ledger is not None:
        privacy["delta"] = min(_delta(facts.records), ledger.delta)
    if ledger is None:
        privacy["neighbors"] = neighbors
    if facts.records is not None:
        merged["training"].setdefault("sampling", {})["records"] = int(facts.records)
    if model is not None:
        merged.setdefault("model", {})["name"] = model
    data = merged.setdefault("data", {})
    if facts.schema is not None:
        data["schema"] = facts.schema.settings
    if ledger is None:
        data["unit"] = unit
    if model == "poisson" and facts.schema is not None and "label" in facts.schema.settings:
        # Counts begin at zero, whatever was found about them.
        facts.schema.settings["label"]["bounds"][0] = 0.0
    job = Job(merged, _records(X, y, facts.schema, facts.classes, users, test), ledger)
    if ledger is not None and ledger.spent > before:
        _leave_room(job, ledger, before + epsilon)
    return job


def _delta(records: int | None) -> float:
    """A power of ten below a tenth of a record; a millionth if the number of records is unknown."""
    return 1e-6 if records is None else 10.0 ** math.floor(math.log10(0.1 / max(records, 1)) - 1e-9)


def _leave_room(job: Job, ledger: Ledger, most: float) -> None:
    """Lowers ε of the run, so that facts and run together cost what was asked for.

    The ledger says what both cost together. Whatever is chosen, it refuses more than its budget.
    """
    privacy = job.settings["training"]["privacy"]
    low, high = 0.0, float(privacy["epsilon"])
    for tried in (high, *[None] * 8):
        middle = tried if tried is not None else 0.5 * (low + high)
        settings = copy.deepcopy(job.settings)
        settings["training"]["privacy"]["epsilon"] = middle
        told = json.loads(_native.plan(json.dumps(settings), job.records, ledger._native))
        after = told["spent_after"]
        if after is not None and after <= most:
            low = middle
        else:
            high = middle
        if low == high:
            break
    if low == 0.0:
        raise BudgetError(
            "the facts that are not declared cost more than ε leaves",
            "declare bounds, categories, classes and the number of records, or give a larger ε",
        )
    privacy["epsilon"] = low


def _task(
    task: Literal["classes", "numbers"] | None,
    model: str | None,
    X: Any,
    y: Any,
    label: str | None,
    classes: Sequence[Any] | None,
    target_bounds: Bounds | None,
    public: Public,
) -> Task:
    """What is predicted: as declared, or by the type of the targets. Fractions are numbers, all others are labels."""
    if model in ("kmeans", "components", "synthesizer"):
        return "none"
    if task is not None:
        return task
    if classes is not None or target_bounds is not None:
        return "numbers" if classes is None else "classes"
    targets = y if y is not None or label is None or not is_table(X) else columns_of(X).get(label)
    if targets is None:
        return "classes"
    declared = declared_type(np.asarray(targets) if public == "data" else targets)
    if declared == "undeclared":
        raise SettingError(
            "the targets are a list, whose type is not declared",
            "give an array, or task=\"classes\" or task=\"numbers\"",
        )
    return "numbers" if declared == "numbers" else "classes"


def _records(
    X: Any, y: Any, schema: Schema | None, classes: Sequence[Any] | None, users: Any, test: Any
) -> _native.Records:
    if schema is None:
        examples = None if test is None else examples_of(test[0], test[1], classes=classes)
        return _native.Records.of_examples(examples_of(X, y, classes=classes, users=users), examples)
    table = None
    if test is not None:
        table = table_of(test, None, schema) if is_table(test) else table_of(test[0], test[1], schema)
    return _native.Records.of_tables(table_of(X, y, schema, users), table)


def table_of(X: Any, y: Any, schema: Schema, users: Any = None) -> _native.Table:
    """The columns of the records, with the label and the users as columns."""
    if isinstance(X, Table):
        if y is not None or users is not None:
            raise SettingError("a quell.Table holds its targets and users itself, and others are given", "leave them out")
        return X._native
    if is_table(X):
        columns = columns_of(X)
        y = columns.get(schema.label or "") if y is None else y
    else:
        columns = dict(matrix_columns(X, [name for name in schema.columns if name != schema.label]))
    if y is not None and schema.label is not None:
        # Classes are named by their texts, as Python writes them.
        columns[schema.label] = label_texts(y) if schema.classes is not None else target_numbers(y)
    if users is not None:
        if "user" not in schema.settings:
            raise SettingError("users are given, and the schema names no column for them", "give Schema.of(user=…)")
        columns[schema.settings["user"]] = np.asarray(users, dtype=object)
    return native_table(columns)

