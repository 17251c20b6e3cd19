# Types of torch, where it is installed. Where it is not, the package is checked without them.
# mypy: disable-error-code="import-not-found, no-untyped-call"
"""The gradients of single layers for each record: their lengths, and their scaled sum.

A layer whose gradient is one outer product for each record, as a linear layer without positions, never forms it: its
length is the product of two lengths, and the sum is one matrix product. The gradient of every other layer is formed
for each record of a piece, so its length is that of exactly the numbers that are added. (Lengths from Gram matrices
lose their digits where positions cancel, and would report too little.)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

__all__ = ["Entries", "LAYERS", "NotCovered", "Outer", "Rows"]


class NotCovered(Exception):
    """A layer is used in a way that its formula does not cover."""


Lengths = tuple[torch.Tensor, torch.Tensor]
"""The squared lengths of the two factors of an outer product, for each record."""


class Rows:
    """Gradients by one parameter that exist: a row for each record."""

    def __init__(self, parameter: nn.Parameter, rows: torch.Tensor) -> None:
        self.parameter = parameter
        self._rows = rows.flatten(1)

    def squared(self) -> torch.Tensor:
        """The squared length for each record, in double precision."""
        return squared_lengths(self._rows)

    def sum(self, scales: torch.Tensor, out: torch.Tensor) -> None:
        """Writes the scaled sum. Scale zero adds nothing."""
        rows = without(self._rows, scales)
        torch.mv(rows.T, scales.to(rows.dtype), out=out.view(-1))

    def kept(self) -> int:
        """How many numbers are kept for a record."""
        return int(self._rows.shape[1])


class Outer:
    """Gradients by one parameter that are outer products g·xᵀ, which are never formed."""

    def __init__(self, parameter: nn.Parameter, g: torch.Tensor, x: torch.Tensor, lengths: Lengths | None = None) -> None:
        self.parameter = parameter
        self._g, self._x = g, x
        self._lengths = (squared_lengths(g), squared_lengths(x)) if lengths is None else lengths

    def squared(self) -> torch.Tensor:
        """‖g·xᵀ‖² = ‖g‖²·‖x‖². A zero is zero, also times what is infinite in double precision."""
        g, x = self._lengths
        squared: torch.Tensor = g * x
        return squared

    def sum(self, scales: torch.Tensor, out: torch.Tensor) -> None:
        """Writes Σ s·g·xᵀ.

        Where s·g is too small for full precision, its error times a huge x could be as long as a clipped vector. So x
        is divided, and s·g is multiplied, by the same power of two, after which no number of x is above two. A power of
        two rounds nothing.
        """
        g, x = without(self._g, scales), without(self._x, scales)
        # The largest number of x is at most the length of x, which is below 2^(exponent + 1).
        length = self._lengths[1].sqrt()
        length = torch.where(torch.isfinite(length), length, 1.0)
        exponent = torch.frexp(length).exponent.clamp(1, 127).to(torch.float64) - 1.0
        power = torch.exp2(exponent)
        weighted = (g.double() * (scales.double() * power)[:, None]).to(g.dtype)
        if bool((exponent > 0).any()):
            x = x * (1.0 / power).to(x.dtype)[:, None]
        torch.mm(weighted.T, x, out=out.view(g.shape[1], x.shape[1]))

    def kept(self) -> int:
        """How many numbers are kept for a record."""
        return 0


class Entries:
    """Gradients by the rows of an embedding: for each record, the rows that it uses."""

    def __init__(
        self, parameter: nn.Parameter, count: int, owners: torch.Tensor, places: torch.Tensor, rows: torch.Tensor
    ) -> None:
        self.parameter = parameter
        self._count, self._owners, self._places, self._rows = count, owners, places, rows

    def squared(self) -> torch.Tensor:
        """The squared length for each record."""
        squared = torch.zeros(self._count, dtype=torch.float64, device=self._rows.device)
        return squared.index_add_(0, self._owners, squared_lengths(self._rows))

    def sum(self, scales: torch.Tensor, out: torch.Tensor) -> None:
        """Writes the scaled sum."""
        own = scales.to(self._rows.dtype)[self._owners]
        rows = without(self._rows, own) * own[:, None]
        out.zero_().index_add_(0, self._places, rows)

    def kept(self) -> int:
        """How many numbers are kept for a record."""
        return int(self._rows.numel()) // max(self._count, 1)


Piece = Rows | Outer | Entries


def squared_lengths(rows: torch.Tensor) -> torch.Tensor:
    """Σ x² for each row, in double precision: a square of a single number neither overflows nor vanishes there."""
    squared: torch.Tensor = torch.linalg.vector_norm(rows.flatten(1), dim=1, dtype=torch.float64).square()
    return squared


def without(rows: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Rows with zeros where the scale is zero, because zero times NaN is not zero."""
    dead = scales == 0
    if not bool(dead.any()):
        return rows
    return torch.where(dead.view(-1, *[1] * (rows.dim() - 1)), torch.zeros((), dtype=rows.dtype), rows)


def _linear(module: Any, x: torch.Tensor, g: torch.Tensor) -> list[Piece]:
    count = len(g)
    pieces: list[Piece] = []
    if x.dim() == 2 or x.shape[1:-1].numel() == 1:
        x, g = x.reshape(count, -1), g.reshape(count, -1)
        lengths = squared_lengths(g), squared_lengths(x)
        if module.weight.requires_grad:
            pieces.append(Outer(module.weight, g, x, lengths))
        if module.bias is not None and module.bias.requires_grad:
            pieces.append(Rows(module.bias, g))
        return pieces
    x, g = x.reshape(count, -1, x.shape[-1]), g.reshape(count, -1, g.shape[-1])
    if module.weight.requires_grad:
        pieces.append(Rows(module.weight, torch.bmm(g.transpose(1, 2), x)))
    if module.bias is not None and module.bias.requires_grad:
        pieces.append(Rows(module.bias, g.sum(1)))
    return pieces


def _convolution(module: Any, x: torch.Tensor, g: torch.Tensor) -> list[Piece]:
    pieces: list[Piece] = []
    count, groups, outputs = len(g), module.groups, module.out_channels
    if module.weight.requires_grad:
        patches = _patches(module, x)
        # Records and groups are the batch of the product; positions are what it adds over.
        left = g.reshape(count * groups, outputs // groups, -1)
        right = patches.reshape(count * groups, left.shape[2], -1)
        pieces.append(Rows(module.weight, torch.bmm(left, right).view(count, -1)))
    if module.bias is not None and module.bias.requires_grad:
        pieces.append(Rows(module.bias, g.flatten(2).sum(2)))
    return pieces


def _patches(module: Any, x: torch.Tensor) -> torch.Tensor:
    """The numbers under each position of the kernel: (records, groups, positions, channels of a group × kernel)."""
    dimensions = len(module.kernel_size)
    if module.padding == "valid":
        around = (0,) * (2 * dimensions)
    else:
        # For each dimension from the last one, the numbers before and after.
        around = tuple(module._reversed_padding_repeated_twice)
    if any(around):
        x = F.pad(x, around, mode="constant" if module.padding_mode == "zeros" else module.padding_mode)
    for axis in range(dimensions):
        reach = module.dilation[axis] * (module.kernel_size[axis] - 1) + 1
        x = x.unfold(2 + axis, reach, module.stride[axis])
        if module.dilation[axis] > 1:
            x = x[..., :: module.dilation[axis]]
    # Now (records, channels, positions…, kernel…).
    count, channels = x.shape[:2]
    x = x.unflatten(1, (module.groups, channels // module.groups))
    positions = list(range(3, 3 + dimensions))
    kernel = list(range(3 + dimensions, 3 + 2 * dimensions))
    x = x.permute(0, 1, *positions, 2, *kernel)
    return x.reshape(count, module.groups, x.shape[2 : 2 + dimensions].numel(), -1)


def _embedding(module: Any, x: torch.Tensor, g: torch.Tensor) -> list[Piece]:
    if module.max_norm is not None or module.scale_grad_by_freq:
        raise NotCovered("max_norm and scale_grad_by_freq of an embedding couple records")
    if not module.weight.requires_grad:
        return []
    count = len(x)
    tokens, g = x.reshape(count, -1).long(), g.reshape(count, -1, g.shape[-1])
    # A number for each pair of a record and a token of it.
    owner = torch.arange(count, device=x.device)[:, None].expand_as(tokens)
    pairs, inverse = torch.unique(owner * module.num_embeddings + tokens, return_inverse=True)
    rows = torch.zeros((len(pairs), g.shape[-1]), dtype=g.dtype, device=g.device)
    rows.index_add_(0, inverse.reshape(-1), g.reshape(-1, g.shape[-1]))
    owners, places = pairs // module.num_embeddings, pairs % module.num_embeddings
    if module.padding_idx is not None:
        rows = torch.where((places == module.padding_idx)[:, None], torch.zeros((), dtype=rows.dtype), rows)
    return [Entries(module.weight, count, owners, places, rows)]


def _affine(module: Any, normal: torch.Tensor, g: torch.Tensor, kept: Sequence[int]) -> list[Piece]:
    """Gradients by the weights and offsets after a normalisation; `kept` are the dimensions that weights have."""
    others = [axis for axis in range(1, g.dim()) if axis not in kept]
    summed: Callable[[torch.Tensor], torch.Tensor] = lambda t: t.sum(others) if others else t  # noqa: E731
    pieces: list[Piece] = []
    if module.weight is not None and module.weight.requires_grad:
        pieces.append(Rows(module.weight, summed(g * normal)))
    bias = getattr(module, "bias", None)
    if bias is not None and bias.requires_grad:
        pieces.append(Rows(bias, summed(g)))
    return pieces


def _layer_norm(module: Any, x: torch.Tensor, g: torch.Tensor) -> list[Piece]:
    normal = F.layer_norm(x, module.normalized_shape, None, None, module.eps)
    last = range(x.dim() - len(module.normalized_shape), x.dim())
    return _affine(module, normal, g, last)


def _rms_norm(module: Any, x: torch.Tensor, g: torch.Tensor) -> list[Piece]:
    normal = F.rms_norm(x, module.normalized_shape, None, module.eps)
    return _affine(module, normal, g, range(x.dim() - len(module.normalized_shape), x.dim()))


def _group_norm(module: Any, x: torch.Tensor, g: torch.Tensor) -> list[Piece]:
    return _affine(module, F.group_norm(x, module.num_groups, None, None, module.eps), g, [1])


def _instance_norm(module: Any, x: torch.Tensor, g: torch.Tensor) -> list[Piece]:
    if module.track_running_stats:
        raise NotCovered("an instance norm with running statistics keeps numbers of the records")
    return _affine(module, F.instance_norm(x, eps=module.eps), g, [1])


LAYERS: dict[type[nn.Module], Callable[[Any, torch.Tensor, torch.Tensor], list[Piece]]] = {
    nn.Linear: _linear,
    nn.Conv1d: _convolution,
    nn.Conv2d: _convolution,
    nn.Conv3d: _convolution,
    nn.Embedding: _embedding,
    nn.LayerNorm: _layer_norm,
    nn.RMSNorm: _rms_norm,
    nn.GroupNorm: _group_norm,
    nn.InstanceNorm1d: _instance_norm,
    nn.InstanceNorm2d: _instance_norm,
    nn.InstanceNorm3d: _instance_norm,
}
"""Layers with a formula. A subclass may compute something else, so it is not covered."""

RANKS: dict[type[nn.Module], int] = {
    nn.Conv1d: 3,
    nn.Conv2d: 4,
    nn.Conv3d: 5,
    nn.InstanceNorm1d: 3,
    nn.InstanceNorm2d: 4,
    nn.InstanceNorm3d: 5,
}
"""Dimensions of the input of some layers: with one less, the first one does not count records."""


def trainable(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The parameters that count, each once."""
    return [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]


def pieces_of(module: nn.Module, x: torch.Tensor, g: torch.Tensor, count: int) -> list[Piece]:
    """The gradients of a layer, from its input and the gradient by its output."""
    rank = RANKS.get(type(module))
    if x.shape[:1] != (count,) or g.shape[:1] != (count,) or x.dim() < 1 or (rank is not None and x.dim() != rank):
        raise NotCovered("the first dimension of the input does not count records")
    own = LAYERS[type(module)]
    return own(module, x, g)


def covered(module: nn.Module) -> bool:
    """Whether each trainable parameter belongs to one layer with a formula."""
    owners: dict[int, int] = {}
    for child in module.modules():
        for parameter in itertools.chain(child.parameters(recurse=False)):
            owners[id(parameter)] = owners.get(id(parameter), 0) + 1
            if parameter.requires_grad and type(child) not in LAYERS:
                return False
    return all(owners.get(id(parameter)) == 1 for _, parameter in trainable(module))
