# Types of torch, where it is installed. Where it is not, the package is checked without them.
# mypy: disable-error-code="import-not-found, no-untyped-call"
"""Private training of a module of PyTorch."""

from __future__ import annotations

import dataclasses
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from ..descents import Clipping, Descent, DescentPlan, Options, Step
from ..errors import SettingError
from ..ledgers import Ledger, Neighbors
from ..progress import Bar, Watch
from ..receipts import Receipt
from .gradients import Target
from .laws import choose, refuse
from .layers import trainable
from .records import records_of

__all__ = ["Method", "Private", "Trained", "train"]

Method = Literal["ghost", "vmap", "one by one"]
"""How gradients are computed: by formulas of layers, by `torch.func`, or one record after the other."""


class Private:
    """Private steps of a module and an optimizer of yours.

    Iterate over it: in each turn a batch is drawn, the gradients of its records are clipped and added, noise is added,
    `.grad` of every trainable parameter is set to the sum over the expected batch size, and the optimizer takes a step.
    What you do in the loop sees public numbers only, so it may change the learning rate, test, or stop.

    The module is checked here, with made-up records of the same shapes. Nothing is charged before the first step.

    >>> import torch
    >>> X = torch.randn(400, 3)
    >>> module = torch.nn.Linear(3, 2)
    >>> optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    >>> loss = torch.nn.CrossEntropyLoss()
    >>> trainer = Private(
    ...     module, optimizer, loss, (X, (X[:, 0] > 0).long()), epsilon=2, records=400, batch_size=100, steps=20
    ... )
    >>> for step in trainer:
    ...     pass
    >>> step.number, trainer.plan.claim
    (20, 'ε ≤ 2.000 at δ = 0.0001 when one record is added or removed')
    """

    def __init__(
        self,
        module: nn.Module,
        optimizer: torch.optim.Optimizer | None,
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
        method: Method | None = None,
        at_once: int | None = None,
    ) -> None:
        """Checks the module, and plans the run.

        `loss` gets what the module returns and the further fields of the data, and returns one loss for each record;
        losses of `torch.nn` are asked to do so. `data` is `(X, y)`, a dict of tensors, or a map-style dataset. Shapes
        and types of a record are public. `optimizer` may be `None`: then `.grad` is set, and the step is yours.

        `records` is a rough public number of records, `batch_size` the expected size of a batch: each record is in a
        batch with probability `batch_size / records`. `run` names the charge: a process that is killed and started
        again with the same name goes on with the next step, and pays nothing twice. `at_once` is the most records that
        the module sees at once, at most 96.
        """
        refuse(module, optimizer)
        if clipping == "automatic":
            raise SettingError(
                "clipping is automatic, which scales small gradients up, beyond single precision if they are tiny",
                "use flat, per_layer or adaptive",
            )
        self._module, self._optimizer = module, optimizer
        target = Target(module, loss)
        found = records_of(data)
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
        sizes = [parameter.numel() for _, parameter in target.parameters]
        parts = sizes if clipping == "per_layer" else [target.dimension]
        # Settings are checked before the module.
        self._descent = Descent(options, rows=found.count, dimension=target.dimension, parts=parts)
        self._gradients = choose(target, found.one(), parts, method, at_once)
        self._gradients.take = found.take
        self._shapes: Sequence[tuple[str, nn.Parameter]] = target.parameters
        self._modes = [child.training for child in module.modules()]

    @property
    def plan(self) -> DescentPlan:
        """What the run does, and what it costs."""
        return self._descent.plan

    @property
    def method(self) -> str:
        """How gradients are computed: `ghost`, `vmap` or `one by one`."""
        return self._gradients.name

    @property
    def at_once(self) -> int:
        """The most records that the module sees at once."""
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
        """Takes one step; `None` after the last one. The first step pays for all of them.

        An exception in the module, the loss or the dataset ends the step. It is spent, and no sum is released. The
        exception is yours: its text may tell something about a record, so treat it as private.
        """
        if [id(parameter) for _, parameter in trainable(self._module)] != [id(p) for _, p in self._shapes]:
            raise SettingError(
                "other parameters are trainable than when the run was planned",
                "make a new quell.torch.Private after you freeze or release parameters",
            )
        if [child.training for child in self._module.modules()] != self._modes:
            raise SettingError(
                "the module is not in the mode in which it was checked",
                "call train() or eval() on it as it was when the run was planned, or make a new quell.torch.Private",
            )
        refuse(self._module, self._optimizer)
        names = type(self._module).__name__
        self._descent.pay(f"gradients of a torch module {names}")
        # Dropout must not tell which records are in the batch. With a seed that somebody knows, it would. And how often
        # a generator was asked would tell how many there are.
        states = random.getstate(), np.random.get_state()
        with torch.random.fork_rng(devices=[]):
            seed = secrets.randbits(63)
            # The generator of the CPU alone: that of a device would not be put back.
            torch.default_generator.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed % 2**32)
            try:
                released = self._descent.step(self._gradients)
            finally:
                random.setstate(states[0])
                np.random.set_state(states[1])
                self._gradients.forget()
        if released is None:
            return None
        mean = torch.from_numpy(released.sum).mul_(1.0 / self.plan.batch_size)
        pieces = mean.split([parameter.numel() for _, parameter in self._shapes])
        for (_, parameter), piece in zip(self._shapes, pieces, strict=True):
            parameter.grad = piece.view(parameter.shape).to(parameter.device, parameter.dtype)
        if self._optimizer is not None:
            self._optimizer.step()
        return released.step

    def __iter__(self) -> Iterator[Step]:
        while (step := self.step()) is not None:
            yield step

    def __len__(self) -> int:
        return self.plan.steps


@dataclasses.dataclass(frozen=True)
class Trained:
    """A module that was trained, and what it cost."""

    module: nn.Module
    """The module. Its parameters are public; what it keeps elsewhere, such as its last input, is not."""
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
    module: nn.Module,
    loss: Callable[..., Any],
    data: Any,
    *,
    epsilon: float | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    progress: bool | Watch | None = None,
    **options: Any,
) -> Trained:
    """Trains a module with ε-δ-differential privacy. Options are those of `Private`.

    Without an optimizer, it is Adam with a learning rate of 0.001.

    >>> import torch
    >>> X = torch.randn(400, 3)
    >>> y = (X[:, 0] > 0).long()
    >>> trained = train(
    ...     torch.nn.Linear(3, 2), torch.nn.CrossEntropyLoss(), (X, y), epsilon=2, records=400, batch_size=100, epochs=5
    ... )
    >>> trained.claim
    'ε ≤ 2.000 at δ = 0.0001 when one record is added or removed'
    """
    if optimizer is None:
        optimizer = torch.optim.Adam([parameter for _, parameter in trainable(module)] or [torch.zeros(1)], lr=1e-3)
    module.train()
    private = Private(module, optimizer, loss, data, epsilon=epsilon, **options)
    with Bar.of(progress) as bar:
        watch = bar.watch
        for step in private:
            if watch is not None and watch("step", step.number, step.of, None, None) is False:
                break
    receipt, ledger = private.receipt, private.ledger
    if receipt is None or ledger is None:
        raise SettingError("no step is left of this run", "give another name with run=")
    return Trained(module, private.plan, receipt, ledger)
