# Types of torch, where it is installed. Where it is not, the package is checked without them.
# mypy: disable-error-code="import-not-found, no-untyped-call"
"""Checks of a module with made-up records, before anything is paid for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..descents import BLOCK, LENGTH_ERROR, Violation, check_vectors
from ..errors import SettingError
from .gradients import WAYS, Gradients, OneByOne, Target, _picked
from .layers import NotCovered, covered, trainable
from .records import Batch, hostile, joined, synthetic

__all__ = ["choose"]

KEPT = 1 << 26
"""The most numbers of gradients that are kept at once: 256 MB."""

RECORDS = 5
"""How many made-up records are checked: no size of an image, so that dimensions are not mistaken for each other."""


def refuse(module: nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
    """Refuses what is known not to be private, or not to be trained as it seems."""
    for name, child in module.named_modules():
        if isinstance(child, _BatchNorm) and (child.training or child.running_mean is None):
            raise SettingError(
                f"the layer {name!r} is a {type(child).__name__}, which mixes the records of a batch",
                "replace it by torch.nn.GroupNorm, or call eval() on it and freeze it",
            )
        if any(torch.nn.parameter.is_lazy(parameter) for parameter in child.parameters(recurse=False)):
            raise SettingError(f"the layer {name!r} has no shapes yet", "call the module once with made-up records")
    parameters = trainable(module)
    if not parameters:
        raise SettingError("the model has no trainable parameter", "call requires_grad_(True) on what is to be trained")
    for name, parameter in parameters:
        if parameter.dtype not in (torch.float32, torch.float64):
            raise SettingError(
                f"the parameter {name!r} is {parameter.dtype}, expected torch.float32",
                "call module.float(): what one record adds is bounded for single precision only",
            )
        if parameter.device.type != "cpu" and not torch.are_deterministic_algorithms_enabled():
            raise SettingError(
                f"the parameter {name!r} is on {parameter.device}, where sums may differ from call to call",
                "call torch.use_deterministic_algorithms(True)",
            )
    device_types = {parameter.device.type for _, parameter in parameters}
    if torch.get_float32_matmul_precision() != "highest" or ("cuda" in device_types and torch.backends.cudnn.allow_tf32):
        raise SettingError(
            "products of matrices are less precise than float32",
            'call torch.set_float32_matmul_precision("highest"), and set torch.backends.cudnn.allow_tf32 to False',
        )
    if any(torch.is_autocast_enabled(kind) for kind in device_types):
        raise SettingError("autocast is on, which rounds to half precision", "train outside of torch.autocast")
    if optimizer is not None:
        _check_optimizer(parameters, optimizer)


def _check_optimizer(parameters: Sequence[tuple[str, nn.Parameter]], optimizer: torch.optim.Optimizer) -> None:
    inside = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    own = {id(parameter) for _, parameter in parameters}
    for name, parameter in parameters:
        if id(parameter) not in inside:
            raise SettingError(
                f"the parameter {name!r} is trainable, and the optimizer does not have it",
                "give it to the optimizer, or call requires_grad_(False) on it",
            )
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if id(parameter) not in own and parameter.requires_grad:
                raise SettingError(
                    "the optimizer has a parameter that the module does not have",
                    "give it module.parameters(): every parameter that is trained must be private",
                )


def choose(target: Target, one: Batch, parts: Sequence[int], method: str | None, at_once: int | None) -> Gradients:
    """The fastest way to compute gradients that keeps the contract, checked on made-up records.

    No number of a record decides here: of the records, shapes and types are used.
    """
    good = synthetic(one, RECORDS, 1)
    bad = hostile(synthetic(one, 2, 2))
    everything = good if bad is None else joined(good, bad)
    with torch.random.fork_rng(devices=[]), _quiet(target, good):
        _check_independence(target, good)
        _check_use(target, good)
        reference = OneByOne(target, lambda records: _indexed(everything, records), parts, BLOCK)

        def truth(record: int) -> npt.NDArray[np.float64]:
            rows = reference.gradient(_picked(everything, record))
            return np.concatenate([row.detach().double().cpu().numpy().reshape(-1) for row in rows])

        names = [method] if method is not None else list(WAYS)
        reasons: list[str] = []
        unmapped = _why_unmapped(target, good, parts)
        for name in names:
            if name not in WAYS:
                raise SettingError(f"method is {name!r}, expected one of {', '.join(WAYS)}")
            if name == "ghost" and not covered(target.module):
                reasons.append("ghost: a trainable parameter is outside of the layers that have a formula")
                continue
            if name == "ghost" and unmapped is not None:
                # A choice that depends on the numbers of a batch mixes its records. `torch.func` refuses such choices.
                reasons.append(f"ghost: torch.func cannot map the module: {unmapped}")
                continue
            way = WAYS[name](target, lambda records: _indexed(everything, records), parts, BLOCK)
            try:
                check_vectors(way, truth, range(RECORDS), range(RECORDS, RECORDS + 2) if bad is not None else ())
                kept = way.kept(_picked(good, 0))
            except (NotCovered, Violation) as reason:
                reasons.append(f"{name}: {reason}")
                continue
            except RuntimeError as reason:
                if name != "vmap":
                    raise
                # `torch.func` cannot map every operation.
                reasons.append(f"{name}: {str(reason).splitlines()[0]}")
                continue
            way.most = max(1, min(BLOCK if at_once is None else at_once, BLOCK, KEPT // max(kept, 1)))
            return way
    raise SettingError(
        f"the gradients of the module break the contract on made-up records ({'; '.join(reasons)})",
        "a record's loss must be a differentiable function of that record alone",
    )


def _why_unmapped(target: Target, batch: Batch, parts: Sequence[int]) -> str | None:
    """Why `torch.func` cannot map the module over records; `None` if it can."""
    try:
        WAYS["vmap"](target, lambda records: _indexed(batch, records), parts, BLOCK).pieces(batch)
    except RuntimeError as reason:
        return str(reason).splitlines()[0]
    return None


def _indexed(batch: Batch, records: torch.Tensor) -> Batch:
    def picked(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: picked(inner) for name, inner in value.items()}
        if isinstance(value, tuple | list):
            return tuple(picked(inner) for inner in value)
        return value.index_select(0, records.to(value.device))

    return tuple(picked(value) for value in batch)


class _quiet:
    """Checks that calls change nothing, and turns dropout off where a loss is random."""

    def __init__(self, target: Target, batch: Batch) -> None:
        self._target, self._batch = target, batch

    def __enter__(self) -> None:
        module = self._target.module
        self._modes = [(child, child.training) for child in module.modules()]
        before = {name: tensor.detach().clone() for name, tensor in self._target.state()}
        first, second = self._losses(1), self._losses(2)
        changed = [name for name, tensor in self._target.state() if not _same(tensor.detach(), before.get(name))]
        with torch.no_grad():
            for name, tensor in self._target.state():
                if name in changed and name in before:
                    tensor.copy_(before[name])
        if changed:
            raise SettingError(
                f"{changed[0]!r} changes when the module is called, so it would keep numbers of the records",
                "use layers without running statistics and embeddings without max_norm, or call eval() on them",
            )
        if not _same(first, second):
            self._check_training(first)
            # Gradients of random layers, such as dropout, are compared as they predict.
            module.eval()
            if not _same(self._losses(1), self._losses(2)):
                self.__exit__()
                raise SettingError(
                    "the loss is random also in evaluation, so it cannot be checked",
                    "let layers such as torch.nn.Dropout be the only random part of the module",
                )

    def _losses(self, seed: int, batch: Batch | None = None) -> torch.Tensor:
        torch.manual_seed(seed)
        with torch.no_grad():
            return self._target.losses(self._batch if batch is None else batch)

    def _check_training(self, losses: torch.Tensor) -> None:
        """With the same random numbers, the loss of a record stays if another record changes."""
        others = synthetic(self._batch, len(losses), 3)
        for place in range(len(losses)):
            rows = torch.arange(len(losses))
            rows[place] += len(losses)
            changed = self._losses(1, _indexed(joined(self._batch, others), rows))
            stays = torch.arange(len(losses)) != place
            if bool(torch.isfinite(losses).all()) and not _close(changed[stays], losses[stays]):
                raise SettingError(
                    "the module mixes records while it trains: the loss of a record depends on the other records",
                    "let every layer and the loss treat the records of a batch one by one",
                )

    def __exit__(self, *_: object) -> None:
        for child, mode in self._modes:
            child.training = mode


def _same(a: torch.Tensor, b: torch.Tensor | None) -> bool:
    return b is not None and a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


def _close(a: torch.Tensor, b: torch.Tensor) -> bool:
    size = max(float(a.double().abs().max()), float(b.double().abs().max()), 1e-30) if a.numel() else 1.0
    return a.shape == b.shape and bool(((a.double() - b.double()).abs() <= LENGTH_ERROR * size).all())


def _check_independence(target: Target, batch: Batch) -> None:
    """The loss of each record is that of the record alone; the layer where it stops to be so is named."""
    with torch.no_grad():
        together = target.losses(batch)
        alone = [target.losses(_picked(batch, place)) for place in range(len(together))]
    if not bool(torch.isfinite(together).all()):
        return
    if _close(together, torch.cat(alone)):
        return
    name = _first_mixing(target, batch, len(together))
    where = "the loss" if name is None else f"the layer {name!r}"
    raise SettingError(
        f"{where} mixes records: what it computes for a record depends on the other records of the batch",
        "let every layer and the loss treat the records of a batch one by one",
    )


def _first_mixing(target: Target, batch: Batch, count: int) -> str | None:
    """The first layer whose output for a record depends on other records."""

    def outputs(batch: Batch) -> list[tuple[str, torch.Tensor]]:
        found: list[tuple[str, torch.Tensor]] = []
        handles = [
            child.register_forward_hook(
                lambda _, __, out, name=name: found.append((name, out)) if isinstance(out, torch.Tensor) else None
            )
            for name, child in target.module.named_modules()
            if name
        ]
        try:
            with torch.no_grad():
                target.losses(batch)
        finally:
            for handle in handles:
                handle.remove()
        return found

    together, first = outputs(batch), outputs(_picked(batch, 0))
    for (name, all_rows), (_, row) in zip(together, first, strict=False):
        if all_rows.shape[:1] == (count,) and row.shape[:1] == (1,) and not _close(all_rows[:1], row):
            return name
    return None


def _check_use(target: Target, batch: Batch) -> None:
    """Every trainable parameter takes part in the loss. One that does not would be trained on noise alone."""
    with torch.enable_grad():
        total = target.losses(batch).sum()
    if not total.requires_grad:
        raise SettingError("the loss does not depend on the trainable parameters", "do not detach the output")
    found = torch.autograd.grad(total, [parameter for _, parameter in target.parameters], allow_unused=True)
    for (name, _), gradient in zip(target.parameters, found, strict=True):
        if gradient is None:
            raise SettingError(
                f"the parameter {name!r} is trainable, and the loss does not depend on it",
                "call requires_grad_(False) on it: it would be trained on noise alone",
            )
