"""Ledgers: budgets, errors, copies and processes."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import quell
from conftest import points


def test_a_ledger_has_the_terms_it_was_created_with():
    ledger = quell.Ledger.create("people", epsilon=3, delta=1e-6, unit="user", neighbors="replace")
    assert (ledger.dataset, ledger.epsilon, ledger.delta) == ("people", 3.0, 1e-6)
    assert (ledger.unit, ledger.neighbors, ledger.spent, ledger.charges) == ("user", "replace", 0.0, [])
    assert ledger.location == ".quell/ledger.db"
    assert repr(quell.Ledger.open("people")) == repr(ledger)
    assert "people" in ledger._repr_html_()


def test_the_variable_names_the_place(monkeypatch, tmp_path):
    monkeypatch.setenv("QUELL_LEDGER", str(tmp_path / "elsewhere"))
    quell.Ledger.create("people", epsilon=3, delta=1e-6)
    assert (tmp_path / "elsewhere" / "ledger.db").exists()


def test_an_unknown_ledger_is_an_error_with_a_hint():
    with pytest.raises(quell.LedgerError) as found:
        quell.Ledger.open("people")
    assert found.value.message.startswith("there is no ledger at") and found.value.hint
    quell.Ledger.create("people", epsilon=3, delta=1e-6)
    with pytest.raises(quell.LedgerError, match="there is no dataset"):
        quell.Ledger.open("peple")


def test_a_ledger_with_other_terms_is_refused():
    quell.Ledger.open_or_create("people", epsilon=3, delta=1e-6)
    assert quell.Ledger.open_or_create("people", epsilon=9, delta=1e-6).epsilon == 3.0
    with pytest.raises(quell.LedgerError, match="protects one example"):
        quell.Ledger.open_or_create("people", epsilon=3, delta=1e-6, unit="user")


def test_copies_share_their_charges():
    ledger = quell.Ledger.in_memory(epsilon=1, delta=1e-6)
    X, y = points()
    quell.train(X, y, epsilon=0.5, bounds=(-1, 1), classes=[0, 1], records=4000, ledger=copy.deepcopy(ledger))
    assert len(ledger.charges) == 1 and 0.45 < ledger.spent <= 0.5
    with pytest.raises(quell.LedgerError, match="cannot be pickled"):
        pickle.dumps(ledger)


def test_a_stored_ledger_is_pickled_by_its_place(tmp_path):
    ledger = quell.Ledger.create("people", epsilon=1, delta=1e-6, at=tmp_path)
    assert repr(pickle.loads(pickle.dumps(ledger))) == repr(ledger)


def test_a_budget_cannot_lose_what_was_spent():
    ledger = quell.Ledger.in_memory(epsilon=1, delta=1e-6)
    X, y = points()
    quell.train(X, y, epsilon=0.5, bounds=(-1, 1), classes=[0, 1], records=4000, ledger=ledger)
    spent = ledger.spent
    ledger.set_budget(epsilon=2, reason="more questions")
    # A larger budget is divided among more theorems, so the same charges never count less.
    assert ledger.epsilon == 2.0 and ledger.spent >= spent > 0.4


def _charge(place):
    ledger = quell.Ledger.open("points", at=place)
    X, y = points(500)
    try:
        quell.train(X, y, epsilon=0.3, delta=1e-7, bounds=(-1, 1), classes=[0, 1], records=500, ledger=ledger)
    except quell.BudgetError:
        return 0
    return 1


def test_two_processes_share_a_budget(tmp_path):
    ledger = quell.Ledger.create("points", epsilon=1, delta=1e-6, composition="addition", at=tmp_path)
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        paid = sum(pool.map(_charge, [str(tmp_path)] * 6))
    # Six runs of 0.3 do not fit into 1, and at least one does.
    assert 1 <= paid <= 3
    assert len(ledger.charges) == paid and ledger.spent <= 1.0
