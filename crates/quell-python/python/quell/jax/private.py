# Types of jax, where it is installed. Where it is not, the package is checked without them.
# mypy: disable-error-code="import-not-found, no-untyped-call"
"""Private training of a JAX function."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from jax import numpy as jnp

from ..descents import BLOCK, Clipping, Descent, DescentPlan, Options, Step, Violation, check_vectors
from ..errors import DataError, SettingError
from ..ledgers import Ledger, Neighbors
from ..progress import Bar, Watch
from ..receipts import Receipt
from .gradients import Mapped, Records

__all__ = ["Private", "Trained", "train"]

KEPT = 1 << 26
"""The most numbers of gradients that are kept at once: 256 MB."""

RECORDS = 5
"""How many made-up records are checked."""


class Private:
    """Private steps of a JAX function of yours.

    Iterate over it: in each turn a batch is drawn, the gradients of its records are clipped and added, and noise is
    added. `gradient` is then the sum over the expected batch size, and `params` is what the optimizer makes of it. All
    of it is public.

    `loss(params, *record)` is the loss of one record: `jax.vmap` maps it, so no record can reach another.

    >>> import jax, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    >>> loss = lambda w, x, y: jax.numpy.square(x @ w - y)
    >>> trainer = Private(
    ...     np.zeros(3, np.float32), None, loss, (X, X[:, 0]), epsilon=2, records=400, batch_size=100, steps=20
    ... )
    >>> for step in trainer:
    ...     trainer.params = trainer.params - 0.1 * trainer.gradient
    >>> trainer.plan.claim
    'ε ≤ 2.000 at δ = 0.0001 when one record is added or removed'
    """

    def __init__(
        self,
        params: Any,
        optimizer: Any,
        loss: Callable[..., Any],
        data: Any,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        noise_multiplier: float | None = None,
        records: int | None = None,
        batch_size: float = 256,
        steps: int | None = None,
        epochs: float | None = None,
        clip_norm: float = 1.0,
        clipping: Clipping = "flat",
        ledger: Ledger | None = None,
        neighbors: Neighbors = "add_remove",
        one_record_per_user: bool = False,
        run: str | None = None,
        at_once: int | None = None,
    ) -> None:
        """Checks the function with made-up records, and plans the run. Nothing is charged.

        `params` is a tree of arrays. `optimizer` is one of optax, or `None`: then you set `params` in the loop. `data`
        is a tuple of arrays or of trees of arrays, whose first dimension counts records. Shapes and types of a record
        are public. The other options are those of `quell.torch.Private`.
        """
        found = Records(tuple(data) if isinstance(data, tuple | list) else (data,))
        if len(found.counts) != 1 or found.counts == {-1}:
            raise DataError(f"the arrays have {sorted(found.counts)} records, expected one number")
        leaves = jax.tree.leaves(params)
        for leaf in leaves:
            if jnp.asarray(leaf).dtype not in (jnp.float32, jnp.float64):
                raise SettingError(
                    f"a parameter is an array of {jnp.asarray(leaf).dtype}, expected float32",
                    "give only what is trained, and close over the rest",
                )
        sizes = [int(np.size(leaf)) for leaf in leaves]
        dimension = sum(sizes)
        parts = sizes if clipping == "per_layer" else [dimension]
        options = Options(
            epsilon=epsilon,
            delta=delta,
            noise_multiplier=noise_multiplier,
            records=records,
            batch_size=batch_size,
            steps=steps,
            epochs=epochs,
            clip_norm=clip_norm,
            clipping=clipping,
            ledger=ledger,
            neighbors=neighbors,
            one_record_per_user=one_record_per_user,
            run=run,
        )
        self._descent = Descent(options, rows=found.count, dimension=dimension, parts=parts)
        self.params = jax.tree.map(jnp.asarray, params)
        self.gradient: Any = None
        self._optimizer = optimizer
        self._state = None if optimizer is None else optimizer.init(self.params)
        self._structure: Any = jax.tree.structure(self.params)
        self._shapes: Sequence[tuple[tuple[int, ...], Any]] = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(self.params)]
        most = max(1, min(BLOCK if at_once is None else at_once, BLOCK, KEPT // max(dimension, 1)))
        self._gradients = Mapped(loss, self.params, found.take, len(parts), most)
        _check(loss, self.params, found, self._gradients)
        self._gradients.take = found.take

    @property
    def plan(self) -> DescentPlan:
        """What the run does, and what it costs."""
        return self._descent.plan

    @property
    def at_once(self) -> int:
        """The most records that are differentiated at once."""
        return self._gradients.most

    @property
    def ledger(self) -> Ledger | None:
        """The ledger that pays; `None` before the first step if none was given."""
        return self._descent.ledger

    @property
    def receipt(self) -> Receipt | None:
        """What paid for the steps; `None` before the first one."""
        return self._descent.receipt

    @property
    def position(self) -> int:
        """How many steps are spent."""
        return self._descent.position

    def step(self) -> Step | None:
        """Takes one step; `None` after the last one. The first step pays for all of them."""
        shapes = [(jnp.shape(leaf), jnp.asarray(leaf).dtype) for leaf in jax.tree.leaves(self.params)]
        if jax.tree.structure(self.params) != self._structure or shapes != self._shapes:
            raise SettingError(
                "the parameters have other shapes than when the run was planned", "keep their tree, shapes and types"
            )
        self._gradients.params = self.params
        self._descent.pay("gradients of a JAX function")
        try:
            released = self._descent.step(self._gradients)
        finally:
            self._gradients.forget()
        if released is None:
            return None
        mean = released.sum * np.float32(1.0 / self.plan.batch_size)
        sizes = [int(np.prod(shape)) for shape, _ in self._shapes]
        pieces = np.split(mean, np.cumsum(sizes)[:-1])
        leaves = [
            jnp.asarray(piece.reshape(shape), dtype) for piece, (shape, dtype) in zip(pieces, self._shapes, strict=True)
        ]
        self.gradient = jax.tree.unflatten(self._structure, leaves)
        if self._optimizer is not None:
            updates, self._state = self._optimizer.update(self.gradient, self._state, self.params)
            self.params = jax.tree.map(lambda param, update: param + update, self.params, updates)
        return released.step

    def __iter__(self) -> Iterator[Step]:
        while (step := self.step()) is not None:
            yield step

    def __len__(self) -> int:
        return self.plan.steps


def _check(loss: Callable[..., Any], params: Any, data: Records, gradients: Mapped) -> None:
    """Checks the contract on made-up records. No number of a record decides here."""
    generator = np.random.default_rng(1)
    one = data.take(np.zeros(1, np.int64))

    def made(leaf: npt.NDArray[Any]) -> npt.NDArray[Any]:
        shape = (RECORDS, *leaf.shape[1:])
        if leaf.dtype.kind == "f":
            return generator.normal(size=shape).astype(leaf.dtype)
        # 0 and 1 are in the range of every embedding and are classes of every classifier.
        return generator.integers(0, 2, shape).astype(leaf.dtype)

    good = jax.tree.map(made, one)
    spoilt = jax.tree.map(lambda leaf: np.full_like(leaf[:2], np.nan) if leaf.dtype.kind == "f" else leaf[:2], good)
    has_floats = any(leaf.dtype.kind == "f" for leaf in jax.tree.leaves(good))
    everything = Records(jax.tree.map(lambda a, b: np.concatenate([a, b]), good, spoilt))

    def picked(record: int) -> tuple[Any, ...]:
        row: tuple[Any, ...] = jax.tree.map(lambda leaf: leaf[0], everything.take(np.array([record])))
        return row

    def truth(record: int) -> npt.NDArray[np.float64]:
        leaves = jax.tree.leaves(jax.grad(loss)(params, *picked(record)))
        return np.concatenate([np.asarray(leaf, np.float64).reshape(-1) for leaf in leaves])

    if jnp.shape(loss(params, *picked(0))) != ():
        raise DataError(
            f"the loss of one record has the shape {jnp.shape(loss(params, *picked(0)))}, expected one number",
            "give a function of params and one record; JAX maps it over records",
        )
    gradients.take = everything.take
    try:
        hostile = range(RECORDS, RECORDS + 2) if has_floats else range(0)
        check_vectors(gradients, truth, range(RECORDS), hostile)
    except Violation as reason:
        raise SettingError(
            f"the gradients of the function break the contract on made-up records: {reason}",
            "let the loss be a pure, differentiable function of one record",
        ) from None
    _check_use(loss, params, [picked(record) for record in range(RECORDS)])


def _check_use(loss: Callable[..., Any], params: Any, records: Sequence[tuple[Any, ...]]) -> None:
    """Every parameter takes part in the loss, at these parameters or near them (a factor may begin at zero)."""
    generator = np.random.default_rng(2)
    near = jax.tree.map(lambda leaf: leaf + generator.normal(size=leaf.shape).astype(leaf.dtype), params)
    used: Any = None
    for point in (params, near):
        for record in records:
            found = jax.tree.map(lambda leaf: bool(jnp.any(leaf != 0)), jax.grad(loss)(point, *record))
            used = found if used is None else jax.tree.map(lambda a, b: a or b, used, found)
    for path, is_used in jax.tree_util.tree_leaves_with_path(used):
        if not is_used:
            name = jax.tree_util.keystr(path) or "params"
            raise SettingError(
                f"the loss does not depend on the parameter {name}",
                "leave it out of params: it would be trained on noise alone",
            )


@dataclasses.dataclass(frozen=True)
class Trained:
    """Parameters that were trained, and what they cost."""

    params: Any
    """The parameters. They are public."""
    plan: DescentPlan
    """What was done."""
    receipt: Receipt
    """What paid for it."""
    ledger: Ledger
    """The ledger that paid."""

    @property
    def epsilon(self) -> float:
        """ε of the run alone."""
        return self.plan.epsilon

    @property
    def delta(self) -> float:
        """δ of the run."""
        return self.plan.delta

    @property
    def claim(self) -> str:
        """The guarantee, in a line."""
        return self.plan.claim


def train(
    params: Any,
    loss: Callable[..., Any],
    data: Any,
    *,
    epsilon: float | None = None,
    optimizer: Any = None,
    learning_rate: float = 0.1,
    progress: bool | Watch | None = None,
    **options: Any,
) -> Trained:
    """Trains parameters with ε-δ-differential privacy. Options are those of `Private`.

    Without an optimizer of optax, each step subtracts `learning_rate` times the gradient.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    >>> loss = lambda w, x, y: (x @ w - y) ** 2
    >>> trained = train(np.zeros(3, np.float32), loss, (X, X[:, 0]), epsilon=2, records=400, batch_size=100, epochs=5)
    >>> trained.claim
    'ε ≤ 2.000 at δ = 0.0001 when one record is added or removed'
    """
    private = Private(params, optimizer, loss, data, epsilon=epsilon, **options)
    with Bar.of(progress) as bar:
        watch = bar.watch
        for step in private:
            if optimizer is None:
                private.params = jax.tree.map(lambda p, g: p - learning_rate * g, private.params, private.gradient)
            if watch is not None and watch("step", step.number, step.of, None, None) is False:
                break
    receipt, ledger = private.receipt, private.ledger
    if receipt is None or ledger is None:
        raise SettingError("no step is left of this run", "give another name with run=")
    return Trained(private.params, private.plan, receipt, ledger)
