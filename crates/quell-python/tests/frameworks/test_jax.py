"""`quell.jax`: gradients of each record, what is refused, what is charged, and that noise is there."""

from __future__ import annotations

import json
import math
from typing import Any

import jax
import numpy as np
import optax
import pytest
from jax import numpy as jnp

import quell
import quell.jax
from quell import _native
from quell.jax.gradients import Mapped, Records


def start(seed: int = 0) -> dict[str, Any]:
    """A small network: a tree of arrays."""
    generator = np.random.default_rng(seed)
    return {
        "first": (generator.normal(size=(4, 6)).astype(np.float32), np.zeros(6, np.float32)),
        "last": generator.normal(size=(6, 2)).astype(np.float32),
    }


def loss(params: Any, x: Any, y: Any) -> Any:
    hidden = jnp.tanh(x @ params["first"][0] + params["first"][1])
    return -jax.nn.log_softmax(hidden @ params["last"])[y]


def data(count: int = 400) -> tuple[Any, Any]:
    X = np.random.default_rng(3).normal(size=(count, 4)).astype(np.float32)
    return X, (X[:, 0] > X[:, 1]).astype(np.int32)


def ledger(epsilon: float | None = 20.0, **settings: Any) -> quell.Ledger:
    return quell.Ledger.in_memory("patients", epsilon=epsilon, delta=1e-5, **settings)


def private(**options: Any) -> quell.jax.Private:
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "records": 400, "batch_size": 100, "steps": 10, **options}
    params = settings.pop("params", None)
    own = settings.pop("loss", loss)
    return quell.jax.Private(
        start() if params is None else params, settings.pop("optimizer", optax.sgd(0.5)), own, settings.pop("data", data()), **settings
    )


def flat(tree: Any) -> Any:
    return np.concatenate([np.asarray(leaf).reshape(-1) for leaf in jax.tree.leaves(tree)])


@pytest.mark.parametrize("count", [1, 5, 8, 70, 96])
def test_gradients_are_those_of_one_record_at_a_time(count: int) -> None:
    X, y = data(count)
    own = Mapped(loss, start(), Records((X, y)).take, 1, 96)
    squared = own.measure(np.arange(count))
    expected = np.stack([flat(jax.grad(loss)(start(), X[place], y[place])) for place in range(count)])
    assert np.abs(np.sqrt(squared[:, 0]) - np.linalg.norm(expected, axis=1)).max() <= 1e-5
    scales = np.linspace(0.0, 1.0, count, dtype=np.float32)[:, None]
    found = np.concatenate([np.array(piece) for piece in own.add(scales)])
    assert np.abs(found - (scales * expected).sum(0)).max() <= 1e-5 * count


def test_a_record_that_is_not_finite_adds_nothing() -> None:
    X, y = data(7)
    for bad in (np.nan, np.inf, -np.inf):
        spoilt = X.copy()
        spoilt[2] = bad
        own = Mapped(loss, start(), Records((spoilt, y)).take, 1, 96)
        squared = own.measure(np.arange(7))
        scales = np.ones((7, 1), np.float32)
        scales[2] = 0.0
        assert np.isnan(bad) <= (not np.isfinite(squared[2, 0]))
        found = np.concatenate([np.array(piece) for piece in own.add(scales)])
        expected = sum(flat(jax.grad(loss)(start(), X[place], y[place])) for place in range(7) if place != 2)
        assert np.abs(found - expected).max() <= 1e-5


@pytest.mark.parametrize("size", [1e-25, 1e-12, 1.0, 1e12, 1e25])
def test_lengths_of_tiny_and_huge_gradients_are_right(size: float) -> None:
    own = Mapped(lambda w, x: jnp.dot(w, x), np.zeros(700, np.float32), Records((np.full((3, 700), size, np.float32),)).take, 1, 96)
    assert np.sqrt(own.measure(np.arange(3))[:, 0]) == pytest.approx([size * math.sqrt(700)] * 3, rel=1e-5)


def test_each_leaf_is_a_part() -> None:
    X, y = data(5)
    own = Mapped(loss, start(), Records((X, y)).take, 3, 96)
    squared = own.measure(np.arange(5))
    leaves = [jax.tree.leaves(jax.grad(loss)(start(), X[place], y[place])) for place in range(5)]
    assert squared == pytest.approx(np.array([[float(jnp.sum(leaf**2)) for leaf in row] for row in leaves]), rel=1e-4)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_the_charge_is_the_price_of_the_accountant(neighbors: Any) -> None:
    paying = ledger(neighbors=neighbors)
    trainer = private(ledger=paying, epsilon=2.0)
    assert paying.charges == [] and len(list(trainer)) == 10
    (charge,) = paying.charges
    upper = _native.epsilon(json.dumps(charge.event), neighbors, 1e-5, "pld", None)[1]
    assert paying.spent == pytest.approx(upper, rel=1e-3) == pytest.approx(trainer.plan.epsilon, rel=1e-3)


def test_noise_alone_is_what_the_plan_says() -> None:
    """Vectors of zeros leave the noise. The interval is exceeded by chance once in a million runs."""
    params = np.ones(4000, np.float32)
    trainer = private(
        params=params, optimizer=None, loss=lambda w, x: jnp.dot(w, x), data=(np.zeros((400, 4000), np.float32),), clip_norm=0.7, steps=4
    )
    drawn = np.concatenate([np.asarray(trainer.gradient, np.float64) for _ in trainer])
    deviation = trainer.plan.noise_multiplier * 0.7 / trainer.plan.batch_size
    within = 4.9 / math.sqrt(2 * len(drawn))
    ratio = math.sqrt(float(np.mean(drawn**2))) / deviation
    # Noise that is halved, or half as much again, would be seen.
    assert 1 - within <= ratio <= 1.002 + within and within < 0.1


@pytest.mark.parametrize("clipping", ["flat", "automatic", "per_layer", "adaptive"])
def test_a_function_learns(clipping: Any) -> None:
    X, y = data(1000)
    trainer = private(data=(X, y), records=1000, batch_size=250, steps=40, epsilon=8.0, clipping=clipping, optimizer=optax.adam(0.05))
    steps = list(trainer)
    scores = np.tanh(X @ np.asarray(trainer.params["first"][0]) + np.asarray(trainer.params["first"][1])) @ np.asarray(trainer.params["last"])
    assert (scores.argmax(1) == y).mean() > 0.85
    assert (steps[-1].share_within is not None) == (clipping == "adaptive")


def test_one_line_trains_and_says_what_it_cost() -> None:
    paying = ledger()
    trained = quell.jax.train(start(), loss, data(), epsilon=1.0, records=400, batch_size=50, epochs=2, ledger=paying)
    assert trained.epsilon <= 1.0 and paying.spent == pytest.approx(trained.epsilon, rel=1e-3)
    assert trained.plan.steps == 16 and trained.receipt.dataset == "patients"


def refused(words: str, **options: Any) -> None:
    paying = ledger()
    with pytest.raises(quell.QuellError, match=words) as error:
        list(private(ledger=paying, **options))
    assert error.value.hint and paying.charges == []


def test_what_cannot_be_private_is_refused() -> None:
    refused("expected one number", loss=lambda params, x, y: x)
    refused(r"does not depend on the parameter \['unused'\]", params={**start(), "unused": np.ones(2, np.float32)})
    refused("expected float32", params={**start(), "count": np.ones(2, np.int32)})
    refused("number of records is not declared", records=None)
    calls = []

    def impure(params: Any, x: Any, y: Any) -> Any:
        # What is compiled differs from what is called again.
        calls.append(1)
        return loss(params, x, y) * len(calls)

    refused("break the contract", loss=impure)


def test_a_factor_that_begins_at_zero_is_no_unused_parameter() -> None:
    params = {"down": np.ones((4, 2), np.float32), "up": np.zeros((2, 2), np.float32)}
    frozen = np.ones((4, 2), np.float32)
    trainer = private(params=params, loss=lambda p, x, y: -jax.nn.log_softmax(x @ frozen + x @ p["down"] @ p["up"])[y])
    assert "vectors of 12 numbers" in trainer.plan.what
    assert len(list(trainer)) == 10


def test_an_exception_leaves_the_charge() -> None:
    paying = ledger()
    trainer = private(ledger=paying)
    take = trainer._gradients.take
    calls = []

    def failing(records: Any) -> Any:
        calls.append(records)
        if len(calls) == 3:
            raise ValueError("the data is gone")
        return take(records)

    trainer._gradients.take = failing
    with pytest.raises(ValueError, match="gone"):
        list(trainer)
    assert paying.spent == pytest.approx(trainer.plan.epsilon, rel=1e-3)
    # The others are still there.
    left = 10 - trainer.position
    assert left > 0 and len(list(trainer)) == left


def test_an_empty_batch_is_a_batch() -> None:
    trainer = private(records=1_000_000, batch_size=1e-3, steps=3, noise_multiplier=1.0, epsilon=None)
    assert len(list(trainer)) == 3


def test_every_piece_has_the_same_number_of_rows() -> None:
    trainer = private(data=data(500), records=500, batch_size=150, steps=4)
    rows: set[int] = set()
    take = trainer._gradients.take

    def counted(records: Any) -> Any:
        rows.add(len(records))
        return take(records)

    trainer._gradients.take = counted
    assert len(list(trainer)) == 4
    assert rows == {trainer._gradients.most}
