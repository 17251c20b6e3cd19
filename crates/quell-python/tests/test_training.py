"""Training: inputs, payment, stops, models."""

import os
import pathlib
import pickle
import signal
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest

import quell
from conftest import points

DECLARED = {"bounds": (-1, 1), "classes": [0, 1], "records": 4000}


def test_a_model_learns_and_says_what_it_costs():
    X, y = points()
    model = quell.train(X, y, epsilon=1, delta=1e-6, **DECLARED)
    assert (model.predict(X) == y).mean() > 0.95
    proba = model.predict_proba(X)
    assert proba.shape == (4000, 2) and np.allclose(proba.sum(axis=1), 1, atol=1e-5)
    assert 0.9 < model.epsilon <= 1 and model.delta == 1e-6
    assert model.claim.startswith("ε ≤ ") and "one record is added or removed" in model.claim
    assert model.receipt.dataset == "records"
    assert "quell.Model" in repr(model) and "iframe" in model._repr_html_()


def test_frames_of_all_kinds_train_the_same_columns():
    X, y = points()
    frames = [
        {"a": X[:, 0], "b": X[:, 1], "y": y},
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}),
        pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}),
    ]
    for frame in frames:
        model = quell.train(frame, label="y", epsilon=1, delta=1e-6, model="additive", **DECLARED)
        names = [column["name"] for column in model.settings["data"]["schema"]["column"]]
        assert names == ["a", "b"]
        assert (model.predict(frame) == y).mean() > 0.9


def test_texts_and_truths_are_columns():
    X, y = points()
    frame = pd.DataFrame({"word": np.where(y == 1, "up", "down"), "flag": X[:, 0] > 0, "noise": X[:, 1]})
    model = quell.train(frame, y, epsilon=2, delta=1e-6, categories={"word": ["up", "down"]}, **DECLARED)
    assert (model.predict(frame) == y).mean() > 0.99


def test_numbers_are_predicted_in_their_units():
    X, _ = points()
    model = quell.train(X, 100 * X[:, 0], epsilon=2, bounds=(-1, 1), target_bounds=(-100, 100), records=4000)
    assert np.abs(model.predict(X) - 100 * X[:, 0]).mean() < 15
    with pytest.raises(quell.SettingError, match="no classes"):
        model.predict_proba(X)


def test_images_are_arrays_of_bytes():
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2
    images = rng.integers(0, 60, (2000, 1, 8, 8), dtype=np.uint8)
    images[y == 0, :, :, :4] += 150
    images[y == 1, :, :4, :] += 150
    model = quell.train(images, y, epsilon=8, delta=1e-5, classes=[0, 1], records=2000)
    assert model.settings["features"]
    assert (model.predict(images) == y).mean() > 0.9
    assert model.evaluate(images, y)["classes"]["count"] == 2000


def test_facts_that_nobody_declares_are_refused_or_paid_for():
    X, y = points(20_000)
    with pytest.raises(quell.SettingError, match="nothing is declared about the targets|has no bounds"):
        quell.train(X, y, epsilon=1, public="declared")
    ledger = quell.Ledger.in_memory(epsilon=1, delta=1e-6)
    model = quell.train(X, y, epsilon=1, delta=1e-6, ledger=ledger)
    facts, run = ledger.charges
    assert "round bounds of numbers" in facts.what and "count" in facts.what.lower()
    assert ledger.spent <= 1 and model.epsilon < 0.95
    assert (model.predict(X) == y).mean() > 0.9
    schema = model.settings["data"]["schema"]
    assert all(low <= -0.9 and high >= 0.9 for low, high in (column["bounds"] for column in schema["column"]))


def test_facts_of_public_records_are_read_off_for_nothing():
    X, y = points()
    ledger = quell.Ledger.in_memory(epsilon=1, delta=1e-6)
    model = quell.train(X, y, epsilon=1, delta=1e-6, public="data", ledger=ledger)
    assert len(ledger.charges) == 1
    first = model.settings["data"]["schema"]["column"][0]["bounds"]
    assert first == [X[:, 0].min(), X[:, 0].max()]


def test_a_run_beyond_the_budget_is_refused_and_charges_nothing():
    X, y = points()
    ledger = quell.Ledger.in_memory(epsilon=0.5, delta=1e-6)
    with pytest.raises(quell.BudgetError) as found:
        quell.train(X, y, epsilon=1, delta=1e-6, ledger=ledger, **DECLARED)
    assert "the budget is 0.5" in found.value.message and found.value.hint
    assert ledger.charges == []


def test_a_plan_costs_what_the_run_costs():
    X, y = points()
    ledger = quell.Ledger.in_memory(epsilon=2, delta=1e-6)
    planned = quell.plan(X, y, epsilon=1, delta=1e-6, ledger=ledger, **DECLARED)
    assert ledger.charges == []
    model = quell.train(X, y, epsilon=1, delta=1e-6, ledger=ledger, **DECLARED)
    assert planned.epsilon == model.epsilon and planned.spent_after == pytest.approx(ledger.spent)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"epsilon": -1}, quell.SettingError, "epsilon"),
        ({"epsilon": 1, "model": "resnett"}, quell.SettingError, "resnett"),
        ({"epsilon": 1, "settings": {"training": {"stepss": 3}}}, quell.SettingError, "stepss"),
        ({"epsilon": 1, "public": "maybe"}, quell.SettingError, "maybe"),
        ({"epsilon": 1, "bounds": [(0, 1)]}, quell.SettingError, "expected one for each of 2"),
    ],
)
def test_wrong_settings_are_said(options, error, text):
    X, y = points()
    with pytest.raises(error, match=text):
        quell.train(X, y, delta=1e-6, **{**DECLARED, **options})


def test_an_error_shows_no_value_of_a_record():
    X, _ = points(10)
    with pytest.raises(quell.DataError) as found:
        quell.train(X, np.array(["secret"] * 10, dtype=object), epsilon=1, task="numbers", target_bounds=(0, 1), bounds=(0, 1), records=10)
    assert "secret" not in str(found.value)


def test_a_run_is_stopped_where_nothing_is_lost_and_resumed():
    X, y = points()
    ledger = quell.Ledger.create("points", epsilon=1, delta=1e-6)
    options = {"model": "mlp-small", "ledger": ledger, "output": "run", **DECLARED}
    with pytest.raises(quell.RunError, match="stopped at step"):
        quell.train(X, y, epsilon=1, delta=1e-6, progress=lambda progress: progress.done < 10, **options)
    assert len(ledger.charges) == 1
    leased = ledger.charges[0].leased
    model = quell.resume("run", X, y, ledger=ledger)
    assert len(ledger.charges) == 1 and ledger.charges[0].leased > leased
    assert model.score(X, y) > 0.9
    assert repr(quell.Model.open("run")).startswith("<quell.Model: mlp-small")


def test_ctrl_c_stops_a_run_and_leaves_the_ledger_right():
    X, y = points()
    ledger = quell.Ledger.create("points", epsilon=1, delta=1e-6)

    def interrupt(progress):
        if progress.done == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        quell.train(X, y, epsilon=1, delta=1e-6, model="mlp-small", ledger=ledger, output="run", progress=interrupt, **DECLARED)
    assert len(ledger.charges) == 1 and ledger.spent <= 1
    model = quell.resume("run", X, y, ledger=ledger)
    assert len(ledger.charges) == 1 and model.epsilon <= 1


def test_an_exception_of_a_watcher_is_not_lost():
    X, y = points()

    def fail(_):
        raise LookupError("of the watcher")

    with pytest.raises(LookupError, match="of the watcher"):
        quell.train(X, y, epsilon=1, delta=1e-6, progress=fail, **DECLARED)


def test_threads_train_at_the_same_time():
    X, y = points()
    found = []

    def work():
        found.append(quell.train(X, y, epsilon=1, delta=1e-6, model="additive", **DECLARED))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    # Noise is drawn anew for every run.
    assert len({model.weights.tobytes() for model in found}) == 4


def test_models_are_saved_pickled_and_exported():
    X, y = points()
    model = quell.train(X, y, epsilon=1, delta=1e-6, **DECLARED)
    model.save("model.safetensors")
    model.to_onnx("model.onnx")
    for other in (quell.Model.open("model.safetensors"), pickle.loads(pickle.dumps(model))):
        assert other.score(X, model.predict(X)) == 1
        assert other.epsilon == model.epsilon and other.settings == model.settings
    assert pathlib.Path("model.onnx").read_bytes()[:1] == b"\x08"


def test_public_test_records_are_measured():
    X, y = points()
    model = quell.train(X, y, epsilon=1, delta=1e-6, test=(X[:100], y[:100]), **DECLARED)
    assert model.measures["classes"]["count"] == 100


def test_users_are_protected_with_all_their_records():
    X, y = points(3000)
    users = np.arange(3000) // 3
    schema = quell.Schema.of(bounds={"x0": (-1, 1), "x1": (-1, 1)}, label="target", classes=["0", "1"], user="who")
    for declared in ({"schema": schema, "records": 1000}, {**DECLARED, "records": 1000}):
        model = quell.train(X, y, users=users, epsilon=2, delta=1e-5, **declared)
        assert "one user is added or removed" in model.claim
    with pytest.raises(quell.SettingError, match="no column for them"):
        nobody = quell.Schema.of(bounds={"x0": (-1, 1), "x1": (-1, 1)}, label="target", classes=["0", "1"])
        quell.train(X, y, users=users, schema=nobody, epsilon=2, records=1000)


def outcome(X, y, **options):
    """Everything public about a call: the settings, the charges, and the error."""
    ledger = quell.Ledger.in_memory(epsilon=3, delta=1e-6)
    try:
        model = quell.train(X, y, epsilon=1, ledger=ledger, **options)
    except quell.QuellError as error:
        return type(error), str(error), len(ledger.charges)
    return model.settings, [charge.what for charge in ledger.charges]


# A cell of one record, as it is and as it might be: missing, a text, a number of another type.
NEIGHBOURS = {
    "nullable numbers": lambda cell: pd.DataFrame({"x": pd.array([cell, *range(1, 4000)], dtype="Int64")}),
    "objects": lambda cell: pd.DataFrame({"x": pd.Series([cell, *range(1, 4000)], dtype=object)}),
    "a list": lambda cell: {"x": [cell, *range(1, 4000)]},
    "polars": lambda cell: pl.DataFrame({"x": pl.Series([cell, *range(1, 4000)], dtype=pl.Int64)}),
}


@pytest.mark.parametrize("kind", NEIGHBOURS)
@pytest.mark.parametrize("facts", [{"bounds": (0, 4000)}, {}])
def test_no_cell_decides_about_the_type_of_a_column(kind, facts):
    y = np.arange(4000) % 2
    options = {"public": "declared", "classes": [0, 1], "records": 4000, "delta": 1e-7, "model": "naive-bayes", **facts}
    as_it_is, missing = (outcome(NEIGHBOURS[kind](cell), y, **options) for cell in (0, None))
    assert as_it_is == missing
    if kind in ("objects", "a list"):
        assert outcome(NEIGHBOURS[kind]("secret"), y, **options) == as_it_is


@pytest.mark.parametrize("make", [list, lambda cells: np.array(cells, dtype=object), lambda cells: pd.Series(cells, dtype=object)])
@pytest.mark.parametrize("task", ["classes", "numbers", None])
def test_no_label_decides_about_the_task(make, task):
    X, y = points()
    options = {"bounds": (-1, 1), "records": 4000, "delta": 1e-7, "public": "declared", "model": None}
    facts = {"classes": {"classes": [0, 1]}, "numbers": {"target_bounds": (0, 1)}, None: {}}[task]
    labels = y.tolist()
    found = [outcome(X, make([cell, *labels[1:]]), task=task, **facts, **options) for cell in (1, None, "secret", 0.5)]
    assert all(each == found[0] for each in found[1:])
    assert "secret" not in str(found)


@pytest.mark.parametrize("labels", [[0, 1], ["0", "1"], [False, True], [0.0, 1.0]])
def test_labels_of_every_type_are_found_among_the_classes(labels):
    X, y = points()
    typed = np.array(labels)[y]
    options = {"epsilon": 2, "delta": 1e-6, "bounds": (-1, 1), "records": 4000, "classes": labels}
    for given in (typed, typed.tolist(), typed.astype(object), pd.Series(typed), pl.Series(typed.tolist())):
        assert (quell.train(X, given, **options).predict(X) == typed).mean() > 0.9


def test_a_missing_number_is_no_error():
    X, y = points()
    X[5, 0] = np.nan
    X[6, 1] = np.inf
    model = quell.train(X, y, epsilon=1, delta=1e-6, **DECLARED)
    assert len(model.predict(X)) == 4000


def test_clusters_and_components_need_no_targets():
    X, _ = points()
    clusters = quell.train(X, epsilon=2, delta=1e-6, bounds=(-1, 1), records=4000, model="kmeans", settings={"unsupervised": {"clusters": 3}})
    assert set(clusters.predict(X)) <= {0, 1, 2}
    assert clusters.scores(X).shape == (4000, 3)
    components = quell.train(X, epsilon=2, delta=1e-6, bounds=(-1, 1), records=4000, model="components", settings={"unsupervised": {"components": 2}})
    assert components.scores(X).shape == (4000, 2)


def test_a_schema_is_released_as_one_charge():
    rng = np.random.default_rng(0)
    frame = {"age": rng.normal(40, 10, 20_000), "sick": np.where(rng.uniform(size=20_000) < 0.5, "yes", "no")}
    ledger = quell.Ledger.in_memory(epsilon=1, delta=1e-6)
    schema = quell.find_schema(frame, label="sick", epsilon=0.5, ledger=ledger, within={"age": (0, 1000)})
    assert sorted(schema.classes) == ["no", "yes"] and len(ledger.charges) == 1 and 0.4 < ledger.spent <= 0.5
    (column,) = schema.settings["column"]
    low, high = column["bounds"]
    assert 0 <= low <= 20 and 60 <= high <= 200


def test_a_matrix_has_its_columns_in_their_order():
    X, y = points()
    frame = pd.DataFrame({"flag": X[:, 1] > 0, "x": X[:, 0]})
    model = quell.train(frame, X[:, 0] > 0, epsilon=2, delta=1e-6, **{**DECLARED, "classes": [False, True]})
    names = [column["name"] for column in model.settings["data"]["schema"]["column"]]
    assert names == ["flag", "x"]
    with pytest.raises(quell.DataError, match="columns with names, such as 'flag'"):
        model.predict(frame.to_numpy(dtype=float))


def test_a_run_on_images_is_resumed():
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2
    images = rng.integers(0, 60, (2000, 8, 8), dtype=np.uint8)
    images[y == 0, :, :4] += 150
    images[y == 1, :4, :] += 150
    ledger = quell.Ledger.create("images", epsilon=8, delta=1e-5)
    with pytest.raises(quell.StoppedError):
        quell.train(
            images, y, epsilon=8, classes=[0, 1], records=2000, ledger=ledger, output="run",
            progress=lambda progress: progress.stage != "step" or progress.done < 10,
        )
    model = quell.resume("run", images, y, ledger=ledger)
    assert len(ledger.charges) == 1 and model.score(images, y) > 0.9


def test_users_are_refused_by_a_ledger_of_records():
    X, y = points()
    ledger = quell.Ledger.in_memory(epsilon=3, delta=1e-6)
    with pytest.raises(quell.SettingError, match="the ledger protects one record"):
        quell.train(X, y, epsilon=1, users=np.arange(4000), ledger=ledger, **DECLARED)
    images = np.zeros((4000, 8, 8), dtype=np.uint8)
    with pytest.raises(quell.SettingError, match="the ledger protects one record"):
        quell.train(images, y, epsilon=1, users=np.arange(4000), ledger=ledger, classes=[0, 1], records=4000)
    assert ledger.charges == []


def test_users_are_names_or_whole_numbers():
    X, y = points(3000)
    for users in (np.arange(3000), [f"u{place}" for place in range(3000)], pd.array([None, *range(2999)], dtype="Int64")):
        model = quell.train(X, y, users=users, epsilon=2, delta=1e-5, **{**DECLARED, "records": 3000})
        assert model.score(X, y) > 0.9
    with pytest.raises(quell.DataError, match="numbers with fractions"):
        quell.train(X, y, users=np.arange(3000) / 2, epsilon=2, delta=1e-5, **DECLARED)


def test_a_plan_charges_nothing():
    X, y = points()
    ledger = quell.Ledger.in_memory(epsilon=3, delta=1e-6)
    with pytest.raises(quell.SettingError, match="a plan releases nothing"):
        quell.plan(X, y, epsilon=1, ledger=ledger, public="released")
    with pytest.raises(quell.SettingError, match="has no bounds"):
        quell.plan(X, y, epsilon=1, ledger=ledger)
    assert ledger.charges == []


@pytest.mark.parametrize(
    "options",
    [
        {"model": "nonsense"},
        {"settings": {"training": {"stepss": 3}}},
        {"settings": {"data": "x"}},
        {"settings": {"training": {"privacy": False}}},
        {"task": "regression"},
        {"bounds": {"x00": (0, 1)}},
        {"bounds": {"target": (0, 1)}},
        {"bounds": {"x0": (1,)}},
        {"categories": {"ocean": ["a"]}},
        {"records": "15000"},
        {"output": "exists"},
        {"neighbors": "replace"},
        {"model": "factorization"},
        {"test": {"x0": np.zeros(2)}},
        {"delta": 2.0},
    ],
)
def test_mistakes_are_found_before_facts_are_paid_for(options):
    X, y = points()
    pathlib.Path("exists").mkdir()
    ledger = quell.Ledger.in_memory(epsilon=3, delta=1e-6)
    with pytest.raises(quell.QuellError):
        quell.train(X, y, epsilon=1, ledger=ledger, **options)
    assert ledger.charges == []


def test_private_records_are_no_public_test_records():
    X, y = points()
    pd.DataFrame({"x": X[:, 0], "y": np.where(y, "up", "down")}).to_csv("points.csv", index=False)
    schema = quell.Schema.of(bounds={"x": (-1, 1)}, label="y", classes=["up", "down"])
    options = {"schema": schema, "records": 4000, "epsilon": 1, "delta": 1e-6}
    with pytest.raises(quell.SettingError, match="the records that are trained on"):
        quell.train("points.csv", test="./points.csv", **options)
    with pytest.raises(quell.SettingError, match="the records that are trained on"):
        quell.train(X, y, test=(X, y), epsilon=1, delta=1e-6, **DECLARED)
    model = quell.train("points.csv", **options)
    assert set(model.predict("points.csv")) == {"up", "down"}


def test_the_class_of_each_label_is_found_by_itself():
    X, y = points(6000)
    options = {"epsilon": 1, "delta": 1e-6, **DECLARED, "records": 6000}
    lists = [[odd, *y.tolist()[1:]] for odd in (float("nan"), 1.0, 0.5, "x", 10**400, 1 + 2j)]
    series = [pl.Series([None, *y.tolist()[1:]], dtype=pl.Int64), pd.array([None, *y.tolist()[1:]], dtype="Int64")]
    for labels in (*lists, *series, np.array([np.nan, *y[1:]])):
        assert quell.train(X, labels, **options).score(X, y) > 0.9


def test_a_rare_class_is_an_error_that_says_what_was_charged():
    X, _ = points(3000)
    ledger = quell.Ledger.in_memory(epsilon=1, delta=1e-6)
    with pytest.raises(quell.RunError, match="was charged"):
        quell.train(X, np.zeros(3000, dtype=int), epsilon=1, ledger=ledger)
    assert len(ledger.charges) == 1


def test_facts_are_named_in_the_claim():
    X, y = points(20_000)
    ledger = quell.Ledger.in_memory(epsilon=1, delta=1e-6)
    model = quell.train(X, y, epsilon=1, ledger=ledger)
    assert "in line 1" in model.claim and "ε ≤ 0.1 before" in model.claim
    assert model.classes == [0, 1] and model.predict(X).dtype.kind == "i"


def test_synthetic_rows_are_kept():
    X, _ = points(4000)
    model = quell.train(X, model="synthesizer", epsilon=3, delta=1e-6, bounds=(-1, 1), records=4000)
    assert set(model.rows) == {"x0", "x1"} and len(model.rows["x0"]) > 100


def test_counts_begin_at_zero_and_a_schema_stays_as_it_is():
    X, _ = points(8000)
    counts = np.clip(np.round(5 + 4 * X[:, 0]), 0, 9).astype(int)
    schema = quell.Schema.of(bounds={"x0": (-1, 1), "x1": (-1, 1)}, label="target", target_bounds=(0, 9))
    before = str(schema.settings)
    model = quell.train(X, counts, schema=schema, model="poisson", records=8000, epsilon=2, delta=1e-6)
    assert model.score(X, counts) > 0.5 and str(schema.settings) == before
    model = quell.train(X, counts, bounds=(-1, 1), model="poisson", records=8000, epsilon=2, delta=1e-6)
    assert model.settings["data"]["schema"]["label"]["bounds"][0] == 0


def test_a_copy_of_the_process_cannot_spend_again():
    ledger = quell.Ledger.in_memory(epsilon=1, delta=1e-6)
    people = quell.Private({"x": np.arange(1000.0)}, ledger=ledger)
    watch = people.watch(threshold=500, positives=1, epsilon=0.5)
    for use in (lambda: people.count(epsilon=0.1), lambda: watch.ask(where="x >= 0"), lambda: ledger.spent):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                use()
                os.write(writer, b"worked")
            except quell.QuellError as error:
                os.write(writer, type(error).__name__.encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reader, 100) == b"RunError"
    assert watch.ask(where="x >= 0") is True


def test_a_ledger_stays_where_it_was_made():
    ledger = quell.Ledger.create("points", epsilon=1, delta=1e-6)
    quell.Private({"x": np.arange(1000.0)}, ledger=ledger).count(epsilon=0.5)
    pathlib.Path("elsewhere").mkdir()
    os.chdir("elsewhere")
    quell.Ledger.create("points", epsilon=1, delta=1e-6)
    assert ledger.spent == pytest.approx(0.5, rel=1e-3)


def test_models_are_listed():
    assert "additive" in dict(quell.models())
