# Types of torch, where it is installed. Where it is not, the package is checked without them.
# mypy: disable-error-code="import-not-found, no-untyped-call"
"""Records of a torch program: tensors, or a dataset of items."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, TensorDataset, default_collate

from ..errors import DataError

__all__ = ["Batch", "Items", "Tensors", "records_of"]

Batch = tuple[Any, ...]
"""What the module gets, and then what the loss gets: tensors whose first dimension counts records."""


class Tensors:
    """Records in tensors, whose first dimension counts them."""

    def __init__(self, fields: tuple[Any, ...]) -> None:
        self._fields = fields
        counts = {len(tensor) for tensor in _leaves(fields)}
        if len(counts) != 1:
            raise DataError(f"the tensors have {sorted(counts)} records, expected one number")
        self.count = counts.pop()

    def take(self, records: torch.Tensor) -> Batch:
        """Some records."""
        return tuple(_map(lambda tensor: tensor.index_select(0, records.to(tensor.device)), self._fields))

    def one(self) -> Batch:
        """One record, of which nothing but shapes and types is used."""
        return tuple(_map(lambda tensor: tensor[:1], self._fields))


class Items:
    """Records of a dataset, which are loaded one by one and stacked."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.count = len(dataset)

    def take(self, records: torch.Tensor) -> Batch:
        """Some records."""
        stacked = default_collate([self._dataset[record] for record in records.tolist()])
        return tuple(stacked) if isinstance(stacked, tuple | list) else (stacked,)

    def one(self) -> Batch:
        """One record, of which nothing but shapes and types is used."""
        return self.take(torch.zeros(1, dtype=torch.long))


def records_of(data: Any) -> Tensors | Items:
    """Reads `(X, y)`, a dict of tensors, arrays of numpy, or a dataset."""
    if isinstance(data, TensorDataset):
        return Tensors(tuple(data.tensors))
    if isinstance(data, torch.Tensor | np.ndarray | dict):
        data = (data,)
    if isinstance(data, tuple | list):
        if not data:
            raise DataError("there are no tensors")
        return Tensors(tuple(_map(_tensor, tuple(data))))
    if isinstance(data, Dataset) or (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
        return Items(data)
    raise DataError(
        f"the data is of type {type(data).__name__}, expected (X, y), or a dataset with a length",
        "give tensors, or a map-style torch.utils.data.Dataset; a DataLoader would draw batches of its own",
    )


def synthetic(one: Batch, count: int, seed: int) -> Batch:
    """Made-up records with the shapes and types of one record: normal numbers, and whole numbers 0 and 1."""
    generator = torch.Generator().manual_seed(seed)

    def made(tensor: torch.Tensor) -> torch.Tensor:
        shape = (count, *tensor.shape[1:])
        if tensor.is_floating_point():
            return torch.randn(shape, generator=generator).to(tensor)
        # 0 and 1 are in the range of every embedding and are classes of every classifier.
        return torch.randint(0, 2, shape, generator=generator).to(tensor)

    return tuple(_map(made, one))


def hostile(batch: Batch) -> Batch | None:
    """The same records with numbers that are not finite; `None` if there are no floating-point numbers."""
    changed = False

    def spoiled(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        if not tensor.is_floating_point():
            return tensor
        changed = True
        return torch.full_like(tensor, float("nan"))

    spoilt = tuple(_map(spoiled, batch))
    return spoilt if changed else None


def joined(*batches: Batch) -> Batch:
    """Several batches one after the other."""
    return tuple(_join(list(fields)) for fields in zip(*batches, strict=True))


def _join(fields: list[Any]) -> Any:
    if isinstance(fields[0], dict):
        return {name: _join([field[name] for field in fields]) for name in fields[0]}
    if isinstance(fields[0], tuple | list):
        return tuple(_join(list(inner)) for inner in zip(*fields, strict=True))
    return torch.cat(fields)


def _tensor(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(value))
    raise DataError(
        f"a field of the data is of type {type(value).__name__}, expected a tensor",
        "give tensors or arrays whose first dimension counts records",
    )


def _map(function: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _map(function, inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return tuple(_map(function, inner) for inner in value)
    if isinstance(value, torch.Tensor) or function is _tensor:
        return function(value)
    raise DataError(
        f"a record holds a value of type {type(value).__name__}, expected tensors",
        "let the dataset return tensors and numbers",
    )


def _leaves(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        found.append(tensor)
        return tensor

    _map(note, value)
    return found
