"""Statistics: what is charged, what is refused before it is charged, and how far answers are from the truth."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quell
from quell import _native, mechanisms
from quell.statistics import Private, Question, Released

SEX = ["Female", "Male"]


def ledger(epsilon: float | None = 30.0, **settings: Any) -> quell.Ledger:
    return quell.Ledger.in_memory("people", epsilon=epsilon, delta=1e-6, **settings)


def people(records: int = 2000) -> dict[str, Any]:
    generator = np.random.default_rng(7)
    return {
        "age": generator.integers(18, 90, records),
        "hours": generator.uniform(0, 60, records),
        "sex": np.array(SEX)[generator.integers(0, 2, records)],
        "city": np.array(["Bern", "Basel", "Chur"])[generator.integers(0, 3, records)],
        "person": generator.integers(0, records // 4, records),
    }


AGE = {"bounds": (0, 100)}
QUESTIONS: dict[str, Callable[[Private, float], quell.Answer]] = {
    "count": lambda p, e: p.count(epsilon=e),
    "where": lambda p, e: p.count(epsilon=e, where="age >= 65 and sex = 'Female'"),
    "reaches": lambda p, e: p.reaches(100, epsilon=e),
    "sum": lambda p, e: p.sum("age", epsilon=e, **AGE),
    "mean": lambda p, e: p.mean("age", epsilon=e, **AGE),
    "mean gaussian": lambda p, e: p.mean("age", epsilon=e, noise="gaussian", **AGE),
    "variance": lambda p, e: p.variance("age", epsilon=e, **AGE),
    "histogram": lambda p, e: p.histogram("sex", keys=SEX, epsilon=e),
    "unknown keys": lambda p, e: p.histogram("sex", epsilon=e),
    "bins": lambda p, e: p.histogram("age", bins=5, epsilon=e, **AGE),
    "edges": lambda p, e: p.histogram("age", edges=[0, 18, 65, 120], epsilon=e),
    "two columns": lambda p, e: p.histogram("age", bins=2, group_by="sex", groups=SEX, epsilon=e, **AGE),
    "unknown pairs": lambda p, e: p.histogram("city", group_by="sex", epsilon=e),
    "groups": lambda p, e: p.mean("age", group_by="sex", groups=SEX, epsilon=e, **AGE),
    "two groups": lambda p, e: p.sum(
        "age", group_by=["sex", "city"], groups=[SEX, ["Bern", "Basel"]], epsilon=e, **AGE
    ),
    "group bins": lambda p, e: p.count(group_by="age", group_bins=(0, 100, 4), epsilon=e),
    "group edges": lambda p, e: p.median("hours", bounds=(0, 60), group_by="age", group_edges=[0, 40, 99], epsilon=e),
    "unknown groups": lambda p, e: p.count(group_by="city", epsilon=e),
    "parts": lambda p, e: p.count(parts=["age < 30", "age >= 30 and age < 60"], epsilon=e),
    "parts and groups": lambda p, e: p.count(parts=["age < 30", "age >= 30"], group_by="sex", groups=SEX, epsilon=e),
    "quantile": lambda p, e: p.quantile("age", 0.9, epsilon=e, **AGE),
    "quantiles": lambda p, e: p.quantile("age", [0.25, 0.5, 0.75], epsilon=e, **AGE),
    "median": lambda p, e: p.median("age", epsilon=e, **AGE),
    "smooth median": lambda p, e: p.smooth_median("age", epsilon=e, **AGE),
    "range": lambda p, e: p.range("age", inside=0.9, epsilon=e, **AGE),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_the_ledger_is_charged_what_the_event_costs(question: str, neighbors: Any) -> None:
    paying = ledger(neighbors=neighbors)
    answer = QUESTIONS[question](Private(people(), ledger=paying), 0.5)
    (charge,) = paying.charges
    accountant = "rdp" if "zero_concentrated" in str(charge.event) else "pld"
    upper = _native.epsilon(json.dumps(charge.event), neighbors, paying.delta, accountant, None)[2]
    # A ledger keeps a part of δ for charges with a δ of their own, so it evaluates an event at a little less δ.
    assert upper * (1 - 1e-6) <= paying.spent <= 1.5 * upper
    # Gaussian noise under replacement has a Rényi bound only, which is looser than the price that was asked for.
    assert paying.spent <= 0.5 * (1 + 1e-9) or (neighbors, question) == ("replace", "mean gaussian")
    assert (answer.epsilon, answer.receipt.dataset, answer.receipt.entry) == (0.5, "people", charge.entry)
    assert answer.receipt.head


def test_a_price_is_the_one_that_the_command_states() -> None:
    """The words and noise of the guide, which the tests of the command compare with the command."""
    paying = ledger(8)
    mean = Question("mean", "age", bounds=(0, 100))
    price = Private(people(), ledger=paying).quote(mean, epsilon=0.4, noise="gaussian")
    assert price.what == (
        "mean of numbers clamped to [0, 100]: sum with Gaussian noise multiplier 18.9888, "
        "count with discrete Gaussian noise of scale 18.9888"
    )
    price = Private(people(), ledger=paying).quote(mean, epsilon=0.4)
    assert price.what.endswith("sum with Laplace noise multiplier 5, count with discrete Laplace noise of scale 5")
    assert (price.before, round(price.after, 4)) == (0.0, 0.4) and paying.charges == []
    Private(people(), ledger=paying).ask([mean], epsilon=0.4)
    assert paying.spent == price.after


EXACT: dict[str, Callable[[dict[str, Any]], Any]] = {
    "count": lambda d: len(d["age"]),
    "where": lambda d: ((d["age"] >= 65) & (d["sex"] == "Female")).sum(),
    "sum": lambda d: d["age"].sum(),
    "mean": lambda d: d["age"].mean(),
    "mean gaussian": lambda d: d["age"].mean(),
    "variance": lambda d: d["age"].var(),
    "histogram": lambda d: {sex: (d["sex"] == sex).sum() for sex in SEX},
    "unknown keys": lambda d: {sex: (d["sex"] == sex).sum() for sex in SEX},
    "edges": lambda d: {
        "[0, 18)": (d["age"] < 18).sum(),
        "[18, 65)": ((d["age"] >= 18) & (d["age"] < 65)).sum(),
        "[65, 120]": (d["age"] >= 65).sum(),
    },
    "two columns": lambda d: {
        (name, sex): ((d["sex"] == sex) & ((d["age"] >= 50) == above)).sum()
        for name, above in [("[0, 50)", False), ("[50, 100]", True)]
        for sex in SEX
    },
    "unknown pairs": lambda d: {
        (city, sex): ((d["sex"] == sex) & (d["city"] == city)).sum()
        for city in ["Basel", "Bern", "Chur"]
        for sex in SEX
    },
    "groups": lambda d: {sex: d["age"][d["sex"] == sex].mean() for sex in SEX},
    "two groups": lambda d: {
        (sex, city): d["age"][(d["sex"] == sex) & (d["city"] == city)].sum()
        for sex in SEX
        for city in ["Bern", "Basel"]
    },
    "parts": lambda d: {
        "age < 30": (d["age"] < 30).sum(),
        "age >= 30 and age < 60": ((d["age"] >= 30) & (d["age"] < 60)).sum(),
    },
}


def most_failures(runs: int, probability: float) -> int:
    """The number of failures that is exceeded with a probability of less than one in a million."""
    tail = 1.0
    for failures in range(runs + 1):
        tail -= math.comb(runs, failures) * probability**failures * (1 - probability) ** (runs - failures)
        if tail < 1e-6:
            return failures
    return runs


RUNS = 150


@pytest.mark.parametrize("question", EXACT)
def test_answers_are_within_their_error_in_nineteen_of_twenty_runs(question: str) -> None:
    records = people()
    truth = EXACT[question](records)
    truth = truth if isinstance(truth, dict) else {None: truth}
    beyond, beyond_half, table = 0, 0, quell.Table(records)
    for _ in range(RUNS):
        answer = QUESTIONS[question](Private(table, ledger=ledger(None)), 0.5)
        assert set(answer.releases) == set(truth)
        # One number of each run: the numbers of a run may be dependent.
        key = next(iter(truth))
        release = answer.releases[key]
        assert release.error is not None and release.unit == "value"
        distance = abs(release.value - truth[key])
        beyond += distance > release.error
        beyond_half += distance > 0.4 * release.error
    assert beyond <= most_failures(RUNS, 0.05)
    # Without noise, or with errors far too large, this would fail.
    assert beyond_half > 0.05 * RUNS


def test_quantiles_are_within_so_many_ranks() -> None:
    ages = np.arange(1000) / 10.0
    asked, beyond = Private({"age": ages}, ledger=ledger(None)), 0
    for _ in range(RUNS):
        answer = asked.quantile("age", 0.25, bounds=(0, 100), epsilon=0.5)
        assert answer.unit == "records" and answer.within is None
        rank = (ages < answer.value).sum()
        beyond += abs(rank - 250) > answer.error + 1
    assert beyond <= most_failures(RUNS, 0.05)


def test_answers_have_forms_that_data_frames_take() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    asked = Private(people(), ledger=ledger(None))
    forms = {
        "count": ["value", "error"],
        "groups": ["key", "value", "error"],
        "two columns": ["key", "group", "value", "error"],
        "quantiles": ["quantile", "value", "error"],
        "range": ["end", "value", "error"],
        "reaches": ["value"],
    }
    for question, columns in forms.items():
        answer = QUESTIONS[question](asked, 100.0)
        for frame in (pandas.DataFrame(answer.to_dict()), polars.DataFrame(answer.to_dict())):
            assert list(frame.columns) == columns
            assert len(frame) == max(len(answer.releases), 1)
    groups = QUESTIONS["groups"](asked, 100.0)
    assert groups.value["Male"] == groups.releases["Male"].value and groups.error["Male"] > 0
    lower, upper = groups.within["Male"]
    assert lower < groups.value["Male"] < upper
    low, high = QUESTIONS["range"](asked, 100.0).value
    assert low < high
    assert QUESTIONS["reaches"](asked, 100.0).value is True and bool(QUESTIONS["reaches"](asked, 100.0))
    assert float(QUESTIONS["count"](asked, 100.0)) == 2000
    with pytest.raises(TypeError):
        float(groups)
    with pytest.raises(TypeError):
        bool(groups)


def test_answers_are_printed_with_their_error() -> None:
    asked = Private(people(), ledger=ledger(None))
    assert repr(QUESTIONS["count"](asked, 100.0)) == "count: 2000 ± 1"
    assert repr(QUESTIONS["reaches"](asked, 100.0)) == "reaches: yes"
    table = QUESTIONS["histogram"](asked, 100.0)
    assert repr(table).startswith("histogram of sex:\n  Female  ") and "<td>Female</td>" in table._repr_html_()
    assert "private" in repr(QUESTIONS["smooth median"](asked, 1.0))
    assert repr(Released(38.6049, 0.1301, "value")) == "38.60 ± 0.14"
    assert repr(Released(40.0, 26.0, "records")) == "40.0 ± 26 records"
    for value, error in [(38.6049, 0.1301), (0.000012345, 0.000002), (123456.7, 30.2), (99.95, 1.0), (5.0, 0.05)]:
        printed, stated = map(float, repr(Released(value, error, "value")).split(" ± "))
        assert printed - stated <= value - error * (1 - 1e-9) and printed + stated >= value + error * (1 - 1e-9)
    # A key comes from the records. It must act neither on a terminal nor in a page.
    hostile = Private({"x": ["<b>\x1b[2J"] * 500}, ledger=ledger(None)).histogram("x", epsilon=10)
    assert "\x1b" not in repr(hostile) and "<b>" not in hostile._repr_html_()


def test_keys_that_few_records_have_are_not_shown() -> None:
    answer = Private({"x": ["rare"]}, ledger=ledger()).histogram("x", epsilon=0.5)
    assert answer.value == {} and answer.least is not None and answer.least > 10
    assert str(answer.least) in repr(answer) and answer.to_dict() == {"key": [], "value": [], "error": []}


def test_several_questions_are_one_charge() -> None:
    paying = ledger(8)
    asked = Private(people(), ledger=paying)
    plan = [
        {"statistic": "count", "where": "age >= 65"},
        {"statistic": "mean", "column": "hours", "bounds": [0, 60], "group_by": "sex", "groups": SEX},
        Question("quantile", "age", bounds=(0, 100), quantile=[0.25, 0.75], group_by="sex", groups=SEX),
        {"statistic": "smooth-median", "column": "age", "bounds": (0, 100)},
    ]
    price = asked.quote(plan, epsilon=0.6)
    answers = asked.ask(plan, epsilon=0.6)
    assert [answer.question for answer in answers] == [
        "count where age >= 65",
        "mean of hours by sex",
        "quantile 0.25 of age by sex",
        "quantile 0.75 of age by sex",
        "smooth median of age",
    ]
    assert answers["mean of hours by sex"] is answers[1] and len(answers) == 5
    (charge,) = paying.charges
    assert paying.spent == price.after <= 0.6 and answers.receipt.entry == charge.entry
    assert charge.event and "count" in repr(answers)
    # Gaussian noise of one plan composes to less than the sum of its parts.
    few, many = [Question("count")], [Question("count")] * 9
    errors = [asked.ask(plan, epsilon=0.5, noise="gaussian", delta=1e-7)[0].error for plan in (few, many)]
    assert errors[1] < 4 * errors[0]


def test_the_ledger_keeps_words_about_a_question(tmp_path: Path) -> None:
    (tmp_path / "census.csv").write_text("age\n36\n41\n", encoding="utf-8")
    place = tmp_path / "ledgers"
    paying = quell.Ledger.create("census", epsilon=2, delta=1e-6, at=place)
    Private(tmp_path / "census.csv", ledger=paying).mean("age", bounds=(0, 100), where="age >= 18", epsilon=0.5)
    stored = (place / "ledger.db").read_bytes()
    for word in (b"mean of age", b"census.csv", b"age >= 18"):
        assert word in stored


REFUSED: dict[str, tuple[Callable[[Private], Any], type[quell.QuellError], str]] = {
    "text": (lambda p: p.mean("city", bounds=(0, 1), epsilon=1), quell.DataError, "contains text"),
    "column": (lambda p: p.mean("agee", bounds=(0, 1), epsilon=1), quell.DataError, "no column"),
    "condition": (lambda p: p.count(where="age >", epsilon=1), quell.DataError, "expression"),
    "order of texts": (lambda p: p.count(where="agee > 1", epsilon=1), quell.DataError, "no column"),
    "bounds": (lambda p: p.mean("age", epsilon=1), quell.SettingError, "no bounds"),
    "bounds reversed": (lambda p: p.mean("age", bounds=(1, 0), epsilon=1), quell.SettingError, "bound"),
    "epsilon": (lambda p: p.count(epsilon=0), quell.SettingError, "epsilon is 0"),
    "negative": (lambda p: p.count(epsilon=-1), quell.SettingError, "epsilon"),
    "noise": (lambda p: p.count(epsilon=1, noise="uniform"), quell.SettingError, "noise"),
    "std": (lambda p: p.ask([{"statistic": "std", "column": "age"}], epsilon=1), quell.SettingError, "variance"),
    "name": (lambda p: p.ask([{"statistic": "count", "wher": ""}], epsilon=1), quell.SettingError, "'wher'"),
    "statistic": (lambda p: p.ask([{"statistic": "mode"}], epsilon=1), quell.SettingError, "'mode'"),
    "nothing": (lambda p: p.ask([], epsilon=1), quell.SettingError, "no question"),
    "groups": (lambda p: p.mean("age", group_by="sex", epsilon=1, **AGE), quell.SettingError, "no groups"),
    "groups alone": (lambda p: p.count(groups=SEX, epsilon=1), quell.SettingError, "without group_by"),
    "twice": (lambda p: p.count(group_by="sex", groups=["Male", "Male"], epsilon=1), quell.SettingError, "twice"),
    "three": (lambda p: p.count(group_by=["a", "b", "c"], groups=[], epsilon=1), quell.SettingError, "3 columns"),
    "two": (lambda p: p.count(group_by=["sex", "city"], groups=SEX, epsilon=1), quell.SettingError, "two lists"),
    "overlap": (lambda p: p.count(parts=["age < 30", "age < 60"], epsilon=1), quell.SettingError, "both"),
    "bins": (lambda p: p.histogram("age", bounds=(0, 9), epsilon=1), quell.SettingError, "no bins"),
    "quantile": (lambda p: p.quantile("age", 1.5, epsilon=1, **AGE), quell.SettingError, "1.5"),
    "user": (lambda p: Private(p.table, ledger=p.ledger, max_per_user=2), quell.SettingError, "column of users"),
    "limit": (
        lambda p: Private(p.table, ledger=p.ledger, max_per_user=2, user="person").count(epsilon=1),
        quell.SettingError,
        "unit",
    ),
    "watch": (lambda p: p.watch(threshold=5, positives=0, epsilon=1), quell.SettingError, "positives"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_errors_in_a_question_come_before_its_charge(case: str) -> None:
    ask, kind, words = REFUSED[case]
    paying = ledger()
    with pytest.raises(kind, match=words) as refused:
        ask(Private(people(50), ledger=paying))
    assert paying.charges == [] and "--" not in str(refused.value)


@pytest.mark.parametrize("question", QUESTIONS)
def test_neighbouring_tables_have_the_same_outcome(question: str) -> None:
    """A record more, a hostile one, changes neither an error nor a charge."""
    smaller, hostile = people(40), people(40)
    for name, cell in {"age": -(2**60), "hours": np.inf, "sex": "", "city": "\x00", "person": 2**62}.items():
        hostile[name] = np.append(hostile[name], np.array([cell], dtype=hostile[name].dtype))
    outcomes = []
    for records in (smaller, hostile, {name: cells[:0] for name, cells in smaller.items()}):
        paying = ledger(1)
        asked = Private(records, ledger=paying)
        answer = QUESTIONS[question](asked, 0.9)
        with pytest.raises(quell.BudgetError) as refused:
            QUESTIONS[question](asked, 3.0)
        keys = None if "unknown" in question else list(answer.releases)
        outcomes.append((keys, answer.question, paying.spent, str(refused.value)))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_a_refusal_says_what_would_fit() -> None:
    asked = Private(people(), ledger=ledger(1))
    with pytest.raises(quell.BudgetError) as refused:
        asked.count(epsilon=1.5)
    assert refused.value.hint is not None and refused.value.hint.startswith("the same question with epsilon=0.99")
    assert asked.ledger.charges == []
    with pytest.raises(quell.BudgetError, match="grant no later charge"):
        asked.histogram("city", epsilon=0.5, delta=9e-7)


def test_users_are_protected_with_all_their_records() -> None:
    paying = ledger(unit="user")
    records = people()
    with pytest.raises(quell.SettingError, match="unit"):
        Private(records, ledger=paying).count(epsilon=1)
    limited = Private(records, ledger=paying, user="person", max_per_user=2)
    one = Private(records, ledger=paying, one_record_per_user=True)
    most = int(np.minimum(np.bincount(records["person"]), 2).sum())
    answer = limited.count(epsilon=2)
    assert abs(answer.value - most) <= 20 and answer.error >= 2 * one.count(epsilon=2).error - 1
    assert paying.spent == pytest.approx(4, rel=1e-4)
    for question in ("mean", "histogram", "quantiles", "unknown keys"):
        QUESTIONS[question](limited, 0.5)
    watch = limited.watch(threshold=10, epsilon=0.5)
    assert watch.ask() is True and watch.ask() is None
    schema = {"user": "person", "column": [{"name": "age", "bounds": [0, 100]}]}
    assert Private(records, ledger=paying, schema=schema, max_per_user=1).mean("age", epsilon=1).value > 0


def test_a_schema_gives_bounds_and_keys(tmp_path: Path) -> None:
    schema = {
        "column": [
            {"name": "age", "bounds": [0, 100]},
            {"name": "sex", "categories": SEX, "aliases": {"f": "Female"}},
        ]
    }
    paying = ledger(None)
    asked = Private(people(), ledger=paying, schema=schema)
    assert asked.mean("age", epsilon=50).value == pytest.approx(people()["age"].mean(), abs=1)
    assert list(asked.histogram("sex", epsilon=50).value) == SEX
    assert list(asked.mean("age", group_by="sex", epsilon=50).value) == SEX
    assert list(asked.histogram("sex", keys=["f"], epsilon=50).value) == ["Female"]
    before = len(paying.charges)
    for wrong, words in [
        (lambda: asked.mean("sex", epsilon=1), "declared as categories"),
        (lambda: asked.histogram("age", epsilon=1), "expected bins"),
        (lambda: asked.count(group_by="age", epsilon=1), "expected bins"),
        (lambda: asked.histogram("sex", keys=["Femal"], epsilon=1), "no value"),
        (lambda: asked.count(where="sex = 'x'", epsilon=1), "no value"),
    ]:
        with pytest.raises(quell.QuellError, match=words):
            wrong()
    assert len(paying.charges) == before


def test_a_watch_answers_until_its_positives_are_used_up() -> None:
    paying = ledger(1)
    watch = Private(people(20000), ledger=paying).watch(threshold=5000, positives=2, epsilon=0.8)
    assert paying.spent == pytest.approx(0.8, rel=1e-5) and watch.receipt.entry == 1
    assert [watch.ask(where="age < 20") for _ in range(50)] == [False] * 50
    assert [watch.ask(), watch.ask(where="age < 20"), watch.ask(where="age >= 18")] == [True, False, True]
    assert watch.ask() is None and paying.spent == pytest.approx(0.8, rel=1e-5)
    with pytest.raises(quell.DataError):
        watch.ask(where="nobody = 1")


def test_mechanisms_take_values_and_no_sensitivity() -> None:
    paying = ledger(None)
    values = np.random.default_rng(3).uniform(0, 10, 5000)
    clamped = {"bounds": (0, 10), "epsilon": 50.0, "ledger": paying}
    assert mechanisms.sum(values, **clamped).value == pytest.approx(values.sum(), abs=5)
    assert mechanisms.mean(values, **clamped).value == pytest.approx(values.mean(), abs=0.1)
    assert mechanisms.quantile(values, 0.5, **clamped).value == pytest.approx(np.median(values), abs=0.2)
    assert mechanisms.count(values > 5, epsilon=50, ledger=paying).value == (values > 5).sum()
    with pytest.raises(quell.DataError, match="truth"):
        mechanisms.count(values, epsilon=1, ledger=paying)
    assert len(paying.charges) == 4


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_choices_cost_their_epsilon(neighbors: Any) -> None:
    paying = ledger(2, neighbors=neighbors)
    ballots = ["a"] * 400 + ["b"] * 100 + [None, "x", "c"]
    assert mechanisms.noisy_max(ballots, ["a", "b", "c"], epsilon=0.5, ledger=paying).value == "a"
    assert paying.spent == pytest.approx(0.5, rel=1e-5)
    scores = np.tile([0.2, 0.4, 0.9], (2000, 1))
    scores[0] = [np.inf, np.nan, -np.inf]
    for flip in (False, True):
        choice = mechanisms.choose(
            scores, ["a", "b", "c"], bounds=(-1, 1), epsilon=0.5, ledger=paying, permute_and_flip=flip
        )
        assert choice.value == "c" and choice.epsilon == 0.5
    assert [charge.event for charge in paying.charges] == [
        {"pure": {"epsilon": 0.5}},
        {"exponential": {"epsilon": 0.5}},
        {"pure": {"epsilon": 0.5}},
    ]
    assert paying.spent <= 1.5 * (1 + 1e-9)
    for wrong in (lambda: mechanisms.noisy_max(ballots, ["a"], epsilon=1, ledger=paying), lambda: mechanisms.choose(
        scores, ["a", "b"], bounds=(0, 1), epsilon=1, ledger=paying
    )):
        with pytest.raises(quell.QuellError):
            wrong()
    with pytest.raises(quell.BudgetError):
        mechanisms.noisy_max(ballots, ["a", "b"], epsilon=1.5, ledger=paying)


def test_one_record_moves_the_total_of_a_choice_by_its_bounds_at_most() -> None:
    """With two candidates of equal totals, one hostile record changes the odds by e^ε at most."""
    runs, epsilon = 3000, 1.0
    shares = []
    for first in (0.0, 1e300):
        paying = ledger(None)
        scores = np.array([[first, -first]] + [[0.5, 0.5]] * 3)
        wins = sum(
            mechanisms.choose(scores, [0, 1], bounds=(-1, 1), epsilon=epsilon, ledger=paying).value == 0
            for _ in range(runs // 10)
        )
        shares.append(wins / (runs // 10))
    # e^ε / (1 + e^ε) = 0.731, and 300 runs are off by less than 0.13 with a probability of 1 - 1e-6.
    assert shares[0] == pytest.approx(0.5, abs=0.14) and shares[1] <= 0.731 + 0.13
    assert shares[1] >= 0.731 - 0.13


def test_randomized_responses_are_private_for_replaced_records() -> None:
    with pytest.raises(quell.UnsupportedError, match="replace"):
        mechanisms.randomized_response(["yes"], ["yes", "no"], epsilon=1, ledger=ledger(3))
    paying = ledger(3, neighbors="replace")
    answers = ["yes", "no", "perhaps", None] * 5000
    responses = mechanisms.randomized_response(answers, ["yes", "no", "maybe"], epsilon=1.0, ledger=paying)
    assert paying.spent == pytest.approx(1.0, rel=1e-5) and len(responses.answers) == 20000
    kept = np.mean([answer == "yes" for answer in responses.answers[::4]])
    # e / (e + 2) = 0.576, and the standard deviation of the mean is 0.007.
    assert kept == pytest.approx(math.e / (math.e + 2), abs=0.036)
    # An answer that is no choice is uniform.
    assert np.mean([answer == "yes" for answer in responses.answers[2::4]]) == pytest.approx(1 / 3, abs=0.034)


def test_a_ledger_of_users_wants_to_know_that_each_has_one_value() -> None:
    paying = ledger(unit="user")
    with pytest.raises(quell.SettingError, match="unit"):
        mechanisms.noisy_max(["a", "b"], ["a", "b"], epsilon=1, ledger=paying)
    with pytest.raises(quell.SettingError, match="unit"):
        mechanisms.sum(np.ones(2), bounds=(0, 1), epsilon=1, ledger=paying)
    assert paying.charges == []
    mechanisms.noisy_max(["a", "b"], ["a", "b"], epsilon=1, ledger=paying, one_record_per_user=True)
    assert len(paying.charges) == 1
