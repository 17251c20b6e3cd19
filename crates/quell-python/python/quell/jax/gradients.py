# Types of jax, where it is installed. Where it is not, the package is checked without them.
# mypy: disable-error-code="import-not-found, no-untyped-call, untyped-decorator"
"""The gradients of a JAX function for each record: `jax.vmap` of `jax.grad`, compiled once.

Every piece is filled up to the same size, with copies of its first record. So a record's gradient has the same program
whatever other records there are, and copies get scale zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from jax import numpy as jnp

__all__ = ["Mapped", "Records"]

Take = Callable[[npt.NDArray[np.int64]], tuple[Any, ...]]
"""Some records: the fields of the data, with one row for each of them."""

class Records:
    """Records in arrays, or in trees of arrays, whose first dimension counts them."""

    def __init__(self, fields: tuple[Any, ...]) -> None:
        self._fields = jax.tree.map(np.asarray, fields)

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(jax.tree.leaves(self._fields)[0])

    @property
    def counts(self) -> set[int]:
        """The numbers of rows of all arrays."""
        return {len(leaf) if np.ndim(leaf) else -1 for leaf in jax.tree.leaves(self._fields)}

    def take(self, records: npt.NDArray[np.int64]) -> tuple[Any, ...]:
        """Some records."""
        taken: tuple[Any, ...] = jax.tree.map(lambda leaf: leaf[records], self._fields)
        return taken


class Mapped:
    """Gradients for each record, as the mechanism asks for them: lengths first, then the scaled sum."""

    def __init__(self, loss: Callable[..., Any], params: Any, take: Take, parts: int, most: int) -> None:
        self.params = params
        self.take = take
        self.most = most
        leaves = jax.tree.leaves(params)
        self.dimension = sum(int(np.size(leaf)) for leaf in leaves)
        self._parts = parts
        # The part that each leaf belongs to.
        place = self._place = list(range(len(leaves))) if parts > 1 else [0] * len(leaves)

        def measured(params: Any, fields: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
            gradients = jax.vmap(lambda one: jax.grad(loss)(params, *one))(fields)
            rows = [leaf.reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(gradients)]
            return rows, [_squares(row) for row in rows]

        def added(rows: list[Any], scales: Any) -> list[Any]:
            sums = []
            for row, part in zip(rows, place, strict=True):
                own = scales[:, part].astype(row.dtype)
                # Zero times NaN is not zero.
                finite = jnp.where((own == 0)[:, None], 0, row)
                sums.append(jnp.matmul(own, finite, precision=jax.lax.Precision.HIGHEST).astype(jnp.float32))
            return sums

        self._measured, self._added = jax.jit(measured), jax.jit(added)
        self._rows: list[Any] = []
        self._taken = 0

    def measure(self, records: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The squared lengths of the gradients of some records."""
        # What the last piece kept is given back before the next one needs as much.
        self._rows = []
        self._taken = len(records)
        size = max(self.most, len(records))
        filled = np.concatenate([records, np.full(size - len(records), records[0])])
        self._rows, told = self._measured(self.params, self.take(filled))
        squared = np.zeros((self._taken, self._parts))
        for part, (sums, powers) in zip(self._place, told, strict=True):
            own = np.asarray(sums)[: self._taken].astype(np.float64).sum(axis=1)
            squared[:, part] += own * np.asarray(powers)[: self._taken].astype(np.float64) ** 2
        return squared

    def add(self, scales: npt.NDArray[np.float32]) -> Sequence[npt.NDArray[np.float32]]:
        """The scaled sum of the gradients that were measured last."""
        filled = np.zeros((len(self._rows[0]), scales.shape[1]), np.float32)
        filled[: self._taken] = scales
        return [np.asarray(piece) for piece in self._added(self._rows, filled)]

    def forget(self) -> None:
        """Gives back what the last piece kept."""
        self._rows = []


PIECE = 256
"""How many squares are added in single precision: their sum errs by a part in 2¹⁶ at most."""


def _squares(rows: Any) -> tuple[Any, Any]:
    """Sums of a few squares of the numbers over a power of two, and the power, for each row.

    The power is near the largest number, so that squares neither overflow nor vanish. What remains is added in double
    precision by the caller: JAX has none unless a program asks for it.
    """
    largest = jnp.max(jnp.abs(rows), axis=1, initial=0)
    exponents = jnp.clip(jnp.frexp(largest)[1], -126, 126)
    # A number that is not finite stays so, whatever its exponent is.
    powers = jnp.ldexp(jnp.ones_like(largest), exponents)
    small = jnp.square(rows / powers[:, None])
    width = -(-small.shape[1] // PIECE) * PIECE
    small = jnp.pad(small, ((0, 0), (0, width - small.shape[1])))
    return small.reshape(len(small), -1, PIECE).sum(axis=2), powers
