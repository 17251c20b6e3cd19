"""Training: from records and ε to a model, paid for by a ledger."""

from __future__ import annotations

import copy
import csv
import dataclasses
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from . import _native
from .data import Table, declared_type
from .errors import BudgetError, FileError, SettingError, StoppedError
from .facts import DeclaredFacts, Facts, Public, Task
from .inputs import class_names, examples_of, matrix_columns, object_column, target_numbers, to_json, user_texts
from .ledgers import Ledger, Neighbors, author, default_delta
from .model import Model
from .progress import Bar, Watch
from .schemas import AnySchema, Bounds, Schema
from .tables import columns_of, is_table, native_table

__all__ = ["Plan", "plan", "resume", "train"]

NUMBER_MODELS = ("linear", "ridge", "poisson", "quantile")
"""Models whose targets are numbers, also if their type is that of whole numbers."""


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a run, as `train` documents them."""

    epsilon: float
    delta: float | None
    records: int | None
    model: str | None
    task: Literal["classes", "numbers"] | None
    label: str | None
    classes: Sequence[Any] | None
    bounds: Any
    target_bounds: Bounds | None
    categories: Mapping[str, Sequence[Any]] | None
    schema: AnySchema | None
    public: Public
    users: Any
    test: Any
    ledger: Ledger | None
    neighbors: Neighbors | None
    settings: Mapping[str, Any] | None


@dataclasses.dataclass
class Job:
    """The settings of a run, its records, its ledger, and the facts that they were made from."""

    settings: dict[str, Any]
    records: _native.Records
    ledger: Ledger
    facts: Facts


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
    schema: AnySchema | None = None,
    public: Public = "released",
    users: Any = None,
    test: Any = None,
    ledger: Ledger | None = None,
    neighbors: Neighbors | None = None,
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

    Targets of a type of fractions are predicted as numbers, all others as classes; `task` decides otherwise.
    `model` is one of `quell.models()`; without it, model, features and settings follow from public facts.
    `settings` are those of a configuration file. `test` are public records to test on: `(X, y)`, or a table.
    `output` is a new folder for the run, which can be resumed; without it, a run that is stopped is lost.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> model = train(X, y, epsilon=1, delta=1e-6, records=2000, bounds=(-1, 1), classes=[0, 1])
    >>> bool((model.predict(X) == y).mean() > 0.8)
    True
    """
    options = Options(
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
    if output is not None and os.path.lexists(output):
        raise FileError(f"{os.fspath(output)} exists already", "name a new folder, or continue its run with quell.resume")
    job = _job(X, y, options)
    with tempfile.TemporaryDirectory(prefix="quell-") as place:
        folder = os.path.join(place, "run") if output is None else os.fspath(output)
        try:
            with Bar.of(progress) as bar:
                told, native = _native.train(
                    to_json(job.settings), job.records, folder, output is None, job.ledger._native, bar.watch, author()
                )
        except KeyboardInterrupt as stopped:
            if output is not None and hasattr(stopped, "add_note"):
                stopped.add_note(f"continue with quell.resume({folder!r}, X, y, ledger=…)")
            raise
        return _finished(told, native, None if output is None else folder, job.facts)


def plan(
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
    schema: AnySchema | None = None,
    public: Literal["declared", "data"] = "declared",
    users: Any = None,
    test: Any = None,
    ledger: Ledger | None = None,
    neighbors: Neighbors | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Plan:
    """Plans a run like `train`. Nothing is charged, and no model is trained.

    A plan releases nothing, so all facts must be declared, or be public in the records.

    >>> import numpy as np
    >>> found = plan(np.zeros((10, 3)), np.zeros(10), epsilon=1, records=5000, bounds=(-1, 1), classes=[0, 1])
    >>> 0.9 < found.epsilon <= 1 and found.delta == 1e-5
    True
    """
    if public not in ("declared", "data"):
        raise SettingError(
            f"public is {public!r}, and a plan releases nothing, expected declared or data",
            "declare bounds, categories, classes and records, or release them with quell.find_schema",
        )
    job = _job(
        X,
        y,
        Options(
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
        ),
    )
    told = json.loads(_native.plan(to_json(job.settings), job.records, job.ledger._native))
    guarantee = told["guarantee"]
    return Plan(
        epsilon=guarantee["epsilon"],
        delta=guarantee["delta"],
        claim=guarantee["claim"],
        settings=told["settings"]["configuration"],
        amount=told["amount"],
        remarks=told["remarks"],
        spent_after=None if ledger is None else told["spent_after"],
    )


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
    """Continues a run that was stopped, with the same records. Work that was paid for is not charged again.

    Whether the records are the same is private, so nothing checks it.
    """
    settings = json.loads(_native.settings_of(os.fspath(output)))
    schema = settings["data"].get("schema")
    classes = settings["data"].get("classes")
    X, test = _opened(X), _opened(test)
    records = _records(X, y, None if schema is None else Schema(schema), classes, users, test)
    with Bar.of(progress) as bar:
        told, native = _native.resume(os.fspath(output), records, ledger._native, bar.watch, author())
    return _finished(told, native, os.fspath(output), None)


def _finished(told: str, native: _native.Model | None, folder: str | None, facts: Facts | None) -> Model:
    outcome = json.loads(told)
    if native is None:
        hint = "nothing of the run was kept; give a folder with output= next time"
        if folder is not None:
            hint = f"continue with quell.resume({folder!r}, X, y, ledger=…)"
        raise StoppedError(f"the run was stopped at {outcome['position']}", hint)
    if facts is not None:
        outcome["labels"] = facts.labels
        outcome["facts"] = facts.released
        outcome["remarks"] = facts.remarks + outcome["remarks"]
    outcome["rows"] = _rows(outcome["results"])
    return Model(native, outcome=outcome)


def _rows(results: Sequence[str]) -> dict[str, list[str]] | None:
    """The synthetic rows of a run, if it made some, by column."""
    for result in results:
        path = result.partition(": ")[2]
        if path.endswith("synthetic.csv") and os.path.exists(path):
            with open(path, newline="", encoding="utf-8") as file:
                header, *rows = csv.reader(file)
            return {name: [row[place] for row in rows] for place, name in enumerate(header)}
    return None


def _opened(X: Any) -> Any:
    """A table, if the path of a file is given."""
    return Table(X) if isinstance(X, (str, os.PathLike)) else X


def _check(X: Any, options: Options) -> None:
    """Checks options that no other code checks, before anything is paid."""
    if options.task not in (None, "classes", "numbers"):
        raise SettingError(f"task is {options.task!r}, expected 'classes' or 'numbers'")
    if options.model == "factorization":
        raise SettingError("recommendations cannot be trained from Python yet", "use quell train --model factorization")
    test = options.test
    if test is not None and options.public != "data":
        same = test is X or (isinstance(test, tuple) and len(test) > 0 and test[0] is X)
        if isinstance(test, (str, os.PathLike)) and isinstance(X, (str, os.PathLike)):
            same = same or os.path.realpath(test) == os.path.realpath(X)
        if same:
            raise SettingError(
                "the test records are the records that are trained on, expected other records, which are public",
                "leave out test=, or hold records back with [test] in a schema",
            )
    ledger = options.ledger
    if ledger is not None and options.neighbors not in (None, ledger.neighbors):
        raise SettingError(
            f"neighbors is {options.neighbors!r}, and the ledger has {ledger.neighbors!r}",
            "leave it out, or create a ledger with these neighbours",
        )


def _job(X: Any, y: Any, options: Options) -> Job:
    _check(X, options)
    X, test = _opened(X), _opened(options.test)
    schema = None if options.schema is None else Schema.from_any(options.schema)
    if isinstance(X, Table) and schema is None and X.schema is not None:
        schema = Schema(X.schema)
    has_users = options.users is not None or (schema is not None and schema.user is not None)
    ledger = options.ledger
    if ledger is None:
        # One ledger pays for the facts and for the run, and no more: Gaussian DP is the tightest theorem for these two.
        ledger = Ledger.in_memory(
            composition="gaussian",
            epsilon=options.epsilon,
            delta=options.delta or default_delta(options.records),
            unit="user" if has_users else "example",
            neighbors=options.neighbors or "add_remove",
        )
    before = ledger.spent
    declared = DeclaredFacts.of(
        X,
        y,
        label=options.label,
        classes=options.classes,
        bounds=options.bounds,
        target_bounds=options.target_bounds,
        categories=options.categories,
        schema=schema,
        records=options.records,
        public=options.public,
        task=_task(X, y, schema, options),
        counts=options.model == "poisson",
        has_users=has_users,
    )

    def job(facts: Facts, X: Any, y: Any, users: Any) -> Job:
        settings = _settings(facts, options, ledger)
        return Job(settings, _records(X, y, facts.schema, facts.classes, users, test), ledger, facts)

    if declared.is_complete:
        return job(declared.facts(), X, y, options.users)
    if options.public == "data":
        return job(declared.read(), X, y, options.users)
    # An error in the settings is found without any record, and before facts are paid for.
    trial = job(declared.made_up(), *(declared.no_rows(part) for part in (X, y, options.users)))
    _native.plan(to_json(trial.settings), trial.records, ledger._native)
    found = job(declared.released(options.epsilon, ledger), X, y, options.users)
    _leave_room(found, trial.records, before + options.epsilon)
    return found


def _settings(facts: Facts, options: Options, ledger: Ledger) -> dict[str, Any]:
    """All settings of a run, as a configuration file has them."""
    merged = copy.deepcopy(dict(options.settings or {}))
    sections = {name: merged.setdefault(name, {}) for name in ("training", "data")}
    for name, section in sections.items():
        if not isinstance(section, dict):
            raise SettingError(f"{name} of the settings is {section!r}, expected a dict")
    privacy = sections["training"].setdefault("privacy", {})
    if not isinstance(privacy, dict):
        raise SettingError(f"training.privacy of the settings is {privacy!r}, expected a dict")
    privacy["epsilon"] = options.epsilon
    privacy["delta"] = options.delta if options.delta is not None else min(default_delta(facts.records), ledger.delta)
    if facts.records is not None:
        sections["training"].setdefault("sampling", {})["records"] = facts.records
    if options.model is not None:
        merged.setdefault("model", {})["name"] = options.model
    if facts.schema is not None:
        sections["data"]["schema"] = facts.schema.settings
    elif facts.classes is not None:
        sections["data"]["classes"] = [str(name) for name in facts.classes]
    return merged


def _leave_room(job: Job, no_records: _native.Records, most: float) -> None:
    """Lowers ε of the run, so that facts and run together cost what was asked for.

    The ledger says what both cost together. Whatever is chosen, it refuses more than its budget.
    """
    privacy = job.settings["training"]["privacy"]

    def fits(epsilon: float) -> bool:
        privacy["epsilon"] = epsilon
        # A plan follows from public facts, so it needs no record.
        after = json.loads(_native.plan(to_json(job.settings), no_records, job.ledger._native))["spent_after"]
        return after is not None and float(after) <= most

    low, high = 0.0, float(privacy["epsilon"])
    if fits(high):
        return
    for _ in range(8):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    if low == 0.0:
        raise BudgetError(
            "the facts that are not declared cost more than ε leaves; they are charged, and the run is not",
            "declare bounds, categories, classes and the number of records, or give a larger ε",
        )
    privacy["epsilon"] = low


def _task(X: Any, y: Any, schema: Schema | None, options: Options) -> Task:
    """What is predicted: as declared, or by the type of the targets. A type of fractions means numbers."""
    if options.model in ("kmeans", "components", "synthesizer"):
        return "none"
    if options.task is not None:
        return options.task
    if schema is not None:
        return "classes" if schema.classes is not None else "numbers"
    if options.classes is not None or options.target_bounds is not None:
        return "numbers" if options.classes is None else "classes"
    targets = y
    if targets is None and options.label is not None and is_table(X) and not isinstance(X, Table):
        targets = columns_of(X).get(options.label)
    if targets is None:
        return "classes"
    declared = declared_type(np.asarray(targets) if options.public == "data" else targets)
    if declared == "undeclared":
        raise SettingError(
            "the targets are a list, whose type is not declared",
            "give an array, or task=\"classes\" or task=\"numbers\"",
        )
    if declared in ("integers", "naturals") and options.public == "released" and options.model in NUMBER_MODELS:
        return "numbers"
    return "numbers" if declared == "numbers" else "classes"


def _records(
    X: Any, y: Any, schema: Schema | None, classes: Sequence[Any] | None, users: Any, test: Any
) -> _native.Records:
    if schema is None:
        examples = None if test is None else examples_of(test[0], test[1], classes=classes)
        return _native.Records.of_examples(examples_of(X, y, classes=classes, users=users), examples)
    table = None
    if test is not None:
        table = _table(test, None, schema) if is_table(test) else _table(test[0], test[1], schema)
    return _native.Records.of_tables(_table(X, y, schema, users), table)


def _table(X: Any, y: Any, schema: Schema, users: Any = None) -> _native.Table:
    """The columns of the records, with the label and the users as columns."""
    if isinstance(X, Table):
        if y is not None or users is not None:
            raise SettingError("a quell.Table holds its targets and users itself, and others are given", "leave them out")
        return X._native
    columns = columns_of(X) if is_table(X) else dict(matrix_columns(X))
    y = columns.get(schema.label or "") if y is None else y
    if y is not None and schema.label is not None:
        columns[schema.label] = target_numbers(y) if schema.classes is None else class_names(y, schema.classes)
    if users is not None:
        if schema.user is None:
            raise SettingError("users are given, and the schema names no column for them", "give Schema.of(user=…)")
        columns[schema.user] = object_column(user_texts(users) or [])
    return native_table(columns)
