# Types of torch, where it is installed. Where it is not, the package is checked without them.
# mypy: disable-error-code="import-not-found, no-untyped-call"
"""The gradients of a module for each record, in three ways.

`Ghost` takes one forward and one backward pass, and forms the gradients of layers with a formula. `Mapped` lets
`torch.func` differentiate the loss of each record. `OneByOne` differentiates one record after the other.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.func import functional_call, grad, vmap

from ..errors import DataError
from .layers import LAYERS, NotCovered, Piece, Rows, pieces_of, trainable
from .records import Batch

__all__ = ["Ghost", "Gradients", "Mapped", "OneByOne", "Target"]


class Target:
    """What is differentiated: a module, and the losses of its outputs."""

    def __init__(self, module: nn.Module, loss: Callable[..., Any]) -> None:
        self.module = module
        self.parameters = trainable(module)
        self.dimension = sum(parameter.numel() for _, parameter in self.parameters)
        self._loss = per_record(loss)
        self._owners = [module, *([loss] if isinstance(loss, nn.Module) else [])]

    def state(self) -> Iterator[tuple[str, torch.Tensor]]:
        """All parameters and buffers of the module and of the loss."""
        for owner in self._owners:
            yield from owner.named_parameters()
            yield from owner.named_buffers()

    def losses(self, batch: Batch, module: Callable[..., Any] | None = None) -> torch.Tensor:
        """The loss of each record."""
        inputs, rest = batch[0], batch[1:]
        call = self.module if module is None else module
        if isinstance(inputs, dict):
            outputs = call(**inputs)
        elif isinstance(inputs, tuple):
            outputs = call(*inputs)
        else:
            outputs = call(inputs)
        losses = self._loss(outputs, *rest)
        count = _count(batch)
        if not isinstance(losses, torch.Tensor) or losses.shape != (count,):
            found = tuple(losses.shape) if isinstance(losses, torch.Tensor) else type(losses).__name__
            raise DataError(
                f"the loss of {count} records is {found}, expected one number for each record",
                'give a loss of torch.nn, or a function that returns one loss for each record (reduction="none")',
            )
        return losses


def per_record(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A loss that returns one number for each record. Losses of `torch.nn` are asked not to add records up."""
    reduction = getattr(loss, "reduction", None)
    if not isinstance(loss, nn.Module) or reduction is None:
        return loss
    single: Any = copy.copy(loss)
    single.reduction = "none"
    is_sum = reduction == "sum"

    def losses(*arguments: Any) -> torch.Tensor:
        found: torch.Tensor = single(*arguments)
        if found.dim() < 2:
            return found
        return found.flatten(1).sum(1) if is_sum else found.flatten(1).mean(1)

    return losses


def _count(batch: Batch) -> int:
    first: Any = batch[0]
    while not isinstance(first, torch.Tensor):
        first = next(iter(first.values())) if isinstance(first, dict) else first[0]
    return len(first)


class Gradients:
    """The gradients of records, as the mechanism asks for them: lengths first, then the scaled sum.

    Sums are written to memory that is used again: the caller adds them before it asks for the next ones.
    """

    name = ""

    def __init__(self, target: Target, take: Callable[[torch.Tensor], Batch], parts: Sequence[int], most: int) -> None:
        self.target = target
        self.take = take
        self.most = most
        self._parts = len(parts)
        self._places = {
            id(parameter): min(place, len(parts) - 1) if len(parts) > 1 else 0
            for place, (_, parameter) in enumerate(target.parameters)
        }
        self._sums = [torch.zeros_like(parameter, requires_grad=False) for _, parameter in target.parameters]
        self._held: list[Piece] = []

    @property
    def dimension(self) -> int:
        """How many numbers a gradient has."""
        return int(self.target.dimension)

    def pieces(self, batch: Batch) -> list[Piece]:
        """The gradients of a piece: for each parameter one entry."""
        raise NotImplementedError

    def measure(self, records: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The squared lengths of the gradients of some records."""
        # What the last piece kept is given back before the next one needs as much.
        self._held = []
        count = len(records)
        # Every piece has the same number of rows: the first record fills it up, with scale zero. Libraries choose their
        # loops by the number of rows. With fewer rows, an added record would change the last digits of all others, and
        # a layer such as ReLU can turn a last digit into another gradient.
        filled = np.concatenate([records, np.full(self.rows_of(count) - count, records[0], dtype=np.int64)])
        batch = self.take(torch.from_numpy(filled))
        self._held = self.pieces(batch)
        with torch.no_grad():
            squared = torch.zeros((self._parts, len(filled)), dtype=torch.float64)
            for piece in self._held:
                squared[self._places[id(piece.parameter)]] += piece.squared().cpu()
        measured: npt.NDArray[np.float64] = squared.T[:count].contiguous().numpy()
        return measured

    def rows_of(self, count: int) -> int:
        """With how many rows a piece of so many records is computed."""
        return max(self.most, count)

    def add(self, scales: npt.NDArray[np.float32]) -> list[npt.NDArray[np.float32]]:
        """The scaled sum of the gradients that were measured last."""
        rows = self.rows_of(len(scales))
        given = torch.from_numpy(np.concatenate([scales, np.zeros((rows - len(scales), scales.shape[1]), np.float32)]))
        owners = {id(piece.parameter): piece for piece in self._held}
        with torch.no_grad():
            for (_, parameter), out in zip(self.target.parameters, self._sums, strict=True):
                piece = owners[id(parameter)]
                own = given[:, self._places[id(parameter)]].to(out.device)
                piece.sum(own, out)
        return [out.view(-1).float().cpu().numpy() for out in self._sums]

    def forget(self) -> None:
        """Gives back what the last piece kept, and its sums, to which no noise was added."""
        self._held = []
        for out in self._sums:
            out.zero_()

    def kept(self, batch: Batch) -> int:
        """How many numbers are kept for each record of a piece."""
        return sum(piece.kept() for piece in self.pieces(batch))


class Ghost(Gradients):
    """One forward pass, one backward pass, and a formula for each layer."""

    name = "ghost"

    def pieces(self, batch: Batch) -> list[Piece]:
        """The gradients of a piece."""
        count = _count(batch)
        with _watched(self.target.module) as calls, torch.enable_grad():
            total = self.target.losses(batch).sum()
        modules = [module for module, _, _, _ in calls]
        if len(set(map(id, modules))) != len(modules):
            raise NotCovered("a layer is called more than once")
        # Gradients stop at the outputs of layers: none is formed by a parameter.
        found = torch.autograd.grad(total, [edge for _, _, _, edge in calls], allow_unused=True)
        pieces: list[Piece] = []
        with torch.no_grad():
            for (module, x, version, _), g in zip(calls, found, strict=True):
                if g is None or x._version != version:
                    raise NotCovered("the output of a layer is not used, or its input is overwritten")
                pieces += pieces_of(module, x, g, count)
        if len(pieces) != len(self.target.parameters):
            raise NotCovered("a layer is not called")
        return pieces


Call = tuple[nn.Module, torch.Tensor, int, GradientEdge]


@contextmanager
def _watched(module: nn.Module) -> Iterator[list[Call]]:
    """Collects the input of each layer with a trainable parameter, and where the gradient by its output arises."""
    calls: list[Call] = []

    def note(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if len(inputs) != 1 or not isinstance(output, torch.Tensor) or not isinstance(inputs[0], torch.Tensor):
            raise NotCovered("a layer is called in an unusual way")
        # The edge stays that of this output, also where a later layer overwrites the output.
        calls.append((layer, inputs[0].detach(), inputs[0]._version, get_gradient_edge(output)))

    layers = [
        layer
        for layer in module.modules()
        if type(layer) in LAYERS and any(p.requires_grad for p in layer.parameters(recurse=False))
    ]
    handles = [layer.register_forward_hook(note) for layer in layers]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


class Mapped(Gradients):
    """`torch.func`: the gradient of the loss of one record, mapped over records."""

    name = "vmap"

    def pieces(self, batch: Batch) -> list[Piece]:
        """The gradients of a piece."""
        module = self.target.module
        own = {name: parameter.detach() for name, parameter in self.target.parameters}
        other = {
            name: tensor.detach()
            for name, tensor in [*module.named_parameters(), *module.named_buffers()]
            if name not in own
        }

        def loss(own: dict[str, torch.Tensor], one: Any) -> torch.Tensor:
            def call(*arguments: Any, **named: Any) -> Any:
                return functional_call(module, (own, other), arguments, named)

            return self.target.losses(_lifted(one), call).sum()

        with warnings.catch_warnings():
            # Where torch has no rule for many records at once, it says that a loop is slower.
            warnings.simplefilter("ignore", UserWarning)
            rows = vmap(grad(loss), in_dims=(None, 0), randomness="different")(own, batch)
        return [Rows(parameter, rows[name]) for name, parameter in self.target.parameters]


def _lifted(value: Any) -> Any:
    """One record as a batch of one."""
    if isinstance(value, dict):
        return {name: _lifted(inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return tuple(_lifted(inner) for inner in value)
    return value.unsqueeze(0)


class OneByOne(Gradients):
    """The gradient of one record after the other: slow, and works for every module."""

    name = "one by one"

    def rows_of(self, count: int) -> int:
        """Each record is a batch of its own."""
        return count

    def pieces(self, batch: Batch) -> list[Piece]:
        """The gradients of a piece."""
        found = [self.gradient(_picked(batch, place)) for place in range(_count(batch))]
        parameters = [parameter for _, parameter in self.target.parameters]
        return [Rows(own, torch.stack(rows)) for own, rows in zip(parameters, zip(*found, strict=True), strict=True)]

    def gradient(self, one: Batch) -> list[torch.Tensor]:
        """The gradient of one record; zeros where a parameter is not used."""
        parameters = [parameter for _, parameter in self.target.parameters]
        with torch.enable_grad():
            total = self.target.losses(one).sum()
            found = torch.autograd.grad(total, parameters, allow_unused=True)
        return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]


def _picked(value: Any, place: int) -> Any:
    """One record of a batch, as a batch of one."""
    if isinstance(value, dict):
        return {name: _picked(inner, place) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return tuple(_picked(inner, place) for inner in value)
    return value[place : place + 1]


WAYS: dict[str, type[Gradients]] = {"ghost": Ghost, "vmap": Mapped, "one by one": OneByOne}
"""From the fastest to the most general one."""
