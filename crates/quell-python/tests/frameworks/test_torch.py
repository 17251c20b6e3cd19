"""`quell.torch`: gradients of each record, what is refused, what is charged, and that noise is there."""

from __future__ import annotations

import json
import math
import random
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import quell
import quell.torch
from quell import _native
from quell.torch import Private
from quell.torch.gradients import WAYS, Ghost, Mapped, OneByOne, Target
from quell.torch.laws import choose
from quell.torch.records import Tensors, records_of

COUNT = 7


def mean_square(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A loss for any output: its distance from a target, weighted by position."""
    flat = output.flatten(1)
    weights = torch.linspace(0.5, 2.0, flat.shape[1], dtype=flat.dtype)
    return ((flat - target[:, None]) ** 2 * weights).mean(1)


class Tied(nn.Module):
    """One matrix embeds tokens and scores them."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.embed(x).mean(1) @ self.embed.weight.T


class Twice(nn.Module):
    """One layer is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(torch.tanh(self.inner(x)))


class Own(nn.Module):
    """A parameter of its own beside layers that have formulas."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.scale = nn.Linear(4, 3), nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * self.scale


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.inner = kind(4, 3, batch_first=True)  # type: ignore[call-arg]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.inner(x)[0]
        return output


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.inner(x, x, x, need_weights=False)[0]
        return output


class Adapter(nn.Module):
    """A frozen linear layer and a low-rank matrix beside it, as LoRA has it."""

    def __init__(self, inner: nn.Linear, rank: int) -> None:
        super().__init__()
        self.inner = inner.requires_grad_(False)
        self.down, self.up = nn.Linear(inner.in_features, rank, bias=False), nn.Linear(rank, inner.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.inner(x) + self.up(self.down(x))
        return output


def tokens(*shape: int, largest: int = 6) -> torch.Tensor:
    return torch.randint(0, largest, (COUNT, *shape))


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(COUNT, *shape)


# Each layer with the way that it is trained in, and records for it.
LAYERS: dict[str, tuple[Any, Any, str]] = {
    "linear": (lambda: nn.Linear(5, 3), lambda: numbers(5), "ghost"),
    "linear without bias": (lambda: nn.Linear(5, 3, bias=False), lambda: numbers(5), "ghost"),
    "linear over a sequence": (lambda: nn.Linear(5, 3), lambda: numbers(6, 5), "ghost"),
    "linear over an image": (lambda: nn.Linear(5, 3), lambda: numbers(2, 3, 5), "ghost"),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), lambda: numbers(4, 9), "ghost"),
    "conv1d dilated": (lambda: nn.Conv1d(4, 6, 3, dilation=2, padding="same"), lambda: numbers(4, 9), "ghost"),
    "conv2d": (lambda: nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0)), lambda: numbers(3, 8, 7), "ghost"),
    "conv2d in groups": (lambda: nn.Conv2d(4, 8, 3, groups=4, dilation=2, bias=False), lambda: numbers(4, 8, 8), "ghost"),
    "conv2d reflecting": (
        lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"),
        lambda: numbers(2, 6, 5),
        "ghost",
    ),
    "conv2d valid": (lambda: nn.Conv2d(2, 3, 3, padding="valid"), lambda: numbers(2, 6, 5), "ghost"),
    "conv3d": (lambda: nn.Conv3d(2, 4, (2, 3, 2), stride=(1, 2, 1), padding=1), lambda: numbers(2, 5, 6, 4), "ghost"),
    "embedding": (lambda: nn.Embedding(6, 4), lambda: tokens(5), "ghost"),
    "embedding with padding": (lambda: nn.Embedding(6, 4, padding_idx=1), lambda: tokens(5), "ghost"),
    "embedding of one token": (lambda: nn.Embedding(6, 4), lambda: tokens(), "ghost"),
    "layer norm": (lambda: nn.LayerNorm(5), lambda: numbers(3, 5), "ghost"),
    "layer norm of a matrix": (lambda: nn.LayerNorm([3, 5]), lambda: numbers(2, 3, 5), "ghost"),
    "rms norm": (lambda: nn.RMSNorm(5), lambda: numbers(3, 5), "ghost"),
    "group norm": (lambda: nn.GroupNorm(2, 4), lambda: numbers(4, 3, 3), "ghost"),
    "instance norm 1d": (lambda: nn.InstanceNorm1d(3, affine=True), lambda: numbers(3, 6), "ghost"),
    "instance norm 2d": (lambda: nn.InstanceNorm2d(3, affine=True), lambda: numbers(3, 4, 5), "ghost"),
    "instance norm 3d": (lambda: nn.InstanceNorm3d(3, affine=True), lambda: numbers(3, 2, 3, 4), "ghost"),
    "network": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(64, 3)
        ),
        lambda: numbers(1, 6, 6),
        "ghost",
    ),
    "text": (
        lambda: nn.Sequential(nn.Embedding(6, 4), nn.LayerNorm(4), nn.Linear(4, 5), nn.Tanh(), nn.Flatten()),
        lambda: tokens(3),
        "ghost",
    ),
    "dropout": (lambda: nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.5), nn.Linear(8, 2)), lambda: numbers(5), "ghost"),
    "transposed convolution": (lambda: nn.ConvTranspose2d(2, 3, 3), lambda: numbers(2, 4, 4), "vmap"),
    "tied weights": (Tied, lambda: tokens(5), "vmap"),
    "called twice": (Twice, lambda: numbers(4), "vmap"),
    "own parameter": (Own, lambda: numbers(4), "vmap"),
    "attention": (Attention, lambda: numbers(5, 4), "vmap"),
    "bilinear": (lambda: nn.Sequential(Own(), nn.PReLU()), lambda: numbers(4), "vmap"),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda: numbers(5, 4), "any"),
    "gru": (lambda: Recurrent(nn.GRU), lambda: numbers(5, 4), "any"),
    "rnn": (lambda: Recurrent(nn.RNN), lambda: numbers(5, 4), "any"),
}


def one_at_a_time(module: nn.Module, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """The gradients of each record, by plain autograd and nothing else."""
    rows = []
    for place in range(len(batch[0])):
        module.zero_grad()
        mean_square(module(batch[0][place : place + 1]), batch[1][place : place + 1]).sum().backward()
        rows.append(torch.cat([p.grad.reshape(-1) for p in module.parameters() if p.requires_grad]))  # type: ignore[union-attr]
    module.zero_grad()
    return torch.stack(rows)


def made(name: str) -> tuple[nn.Module, tuple[torch.Tensor, ...], Any]:
    torch.manual_seed(len(name))
    make, draw, _ = LAYERS[name]
    module = make()
    # Weights and offsets of norms begin at one and zero, where some mistakes do not show.
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    batch = (draw(), torch.randn(COUNT))
    data = Tensors(batch)
    target = Target(module, mean_square)
    return module, batch, (target, data)


def all_vectors(way: Any, count: int = COUNT) -> tuple[np.ndarray, np.ndarray]:
    squared = way.measure(np.arange(count))
    rows = []
    for place in range(count):
        scales = np.zeros((count, 1), np.float32)
        scales[place] = 1.0
        rows.append(np.concatenate([piece.copy() for piece in way.add(scales)]))
    return squared[:, 0], np.stack(rows)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_those_of_one_record_at_a_time(name: str) -> None:
    module, batch, (target, data) = made(name)
    chosen = choose(target, data.one(), [target.dimension], None, None)
    if LAYERS[name][2] != "any":
        assert chosen.name == LAYERS[name][2]
    chosen.take = data.take
    module.eval()
    expected = one_at_a_time(module, batch).numpy()
    squared, rows = all_vectors(chosen)
    assert np.abs(rows - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max())
    lengths = np.linalg.norm(expected.astype(np.float64), axis=1)
    assert np.abs(np.sqrt(squared) - lengths).max() <= 1e-5 * lengths.max()
    # The scaled sum is what the scales say.
    scales = np.linspace(0, 1, COUNT, dtype=np.float32)[:, None]
    chosen.measure(np.arange(COUNT))
    found = np.concatenate([piece.copy() for piece in chosen.add(scales)])
    assert np.abs(found - (scales * expected).sum(0)).max() <= 1e-5 * max(1.0, np.abs(expected).max() * COUNT)


# Opacus has no rule for one token a record, nor for this norm and padding. Its dropout draws anew, and it counts a
# gradient by the row of the padding, which torch never changes.
NOT_IN_OPACUS = {"embedding of one token", "rms norm", "conv2d reflecting", "dropout", "embedding with padding"}
OF_OPACUS = [name for name, (_, _, way) in LAYERS.items() if way == "ghost" and name not in NOT_IN_OPACUS]


@pytest.mark.parametrize("name", OF_OPACUS)
@pytest.mark.filterwarnings("ignore")
def test_gradients_are_those_of_opacus(name: str) -> None:
    opacus = pytest.importorskip("opacus")
    module, batch, (target, data) = made(name)
    module.eval()
    ghost = Ghost(target, data.take, [target.dimension], 96)
    _, rows = all_vectors(ghost)
    for child in module.modules():
        if isinstance(child, nn.ReLU):
            child.inplace = False  # Opacus's hooks cannot see through it.
    module.train()
    wrapped = opacus.GradSampleModule(module, strict=False, loss_reduction="sum")
    mean_square(wrapped(batch[0]), batch[1]).sum().backward()
    expected = torch.cat([p.grad_sample.flatten(1) for p in wrapped.parameters()], dim=1).numpy()  # type: ignore[attr-defined]
    assert np.abs(rows - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["linear", "linear over a sequence", "conv2d", "network", "layer norm"])
def test_a_record_that_is_not_finite_adds_nothing(name: str, way: str) -> None:
    module, batch, (target, data) = made(name)
    module.eval()
    expected = one_at_a_time(module, batch).numpy()
    for bad in (float("nan"), float("inf"), -1e38):
        spoilt = batch[0].clone()
        spoilt[2] = bad
        own = WAYS[way](target, Tensors((spoilt, batch[1])).take, [target.dimension], 96)
        squared = own.measure(np.arange(COUNT))
        assert not np.isfinite(squared[2, 0]) or name == "layer norm" or bad == -1e38
        scales = np.ones((COUNT, 1), np.float32)
        scales[2] = 0.0
        found = np.concatenate([piece.copy() for piece in own.add(scales)])
        assert np.abs(found - np.delete(expected, 2, axis=0).sum(0)).max() <= 1e-4 * max(1.0, np.abs(expected).max())


def test_a_huge_record_is_no_longer_than_the_clip_norm() -> None:
    """The factors of an outer product are balanced: tiny times huge loses no digits."""
    for size in (1e-30, 1e-10, 1.0, 1e15, 1e30, 1e36, 3e38):
        module = nn.Linear(3, 2, bias=False)
        x, y = torch.full((1, 3), size), torch.zeros(1)
        target = Target(module, lambda out, y: (out * torch.tensor([3e-7, 1.0]) * 1e-12).sum(1))
        own = Ghost(target, Tensors((x, y)).take, [6], 96)
        length = math.sqrt(own.measure(np.arange(1))[0, 0])
        scale = np.float32(min(1.0, 1e-9 / length) * (1 - 2**-23))
        if scale < np.finfo(np.float32).tiny:
            continue
        found = np.concatenate([piece.copy() for piece in own.add(np.array([[scale]]))]).astype(np.float64)
        expected = float(scale) * np.outer([3e-19, 1e-12], [size] * 3).ravel()
        assert np.linalg.norm(found) <= 1e-9 * (1 + 2**-13) or scale == 1.0
        assert np.abs(found - expected).max() <= 1e-6 * np.linalg.norm(expected) + 1e-43


def test_lengths_have_the_digits_that_gram_matrices_lose() -> None:
    """Positions cancel: each alone is a million times as long as all together."""
    module = nn.Linear(2, 1, bias=False)
    x = torch.tensor([[[1.0, 1.0], [1.0, 1.0]]]) * 1e6
    x[0, 1, 0] += 1.0
    target = Target(module, lambda out, y: out[:, 0, 0] - out[:, 1, 0])
    own = Ghost(target, Tensors((x, torch.zeros(1))).take, [2], 96)
    assert math.sqrt(own.measure(np.arange(1))[0, 0]) == pytest.approx(1.0, rel=1e-6)


def data(count: int = 400, width: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    X = torch.randn(count, width, generator=generator)
    return X, (X[:, 0] > X[:, 1]).long()


def sgd(module: nn.Module, rate: float = 0.5) -> torch.optim.Optimizer:
    return torch.optim.SGD(module.parameters(), lr=rate)


def private(module: nn.Module, **options: Any) -> quell.torch.Private:
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "records": 400, "batch_size": 100, "steps": 10, **options}
    records = settings.pop("data", None) or data()
    loss = settings.pop("loss", nn.CrossEntropyLoss())
    optimizer = settings.pop("optimizer", None) or sgd(module)
    return quell.torch.Private(module, optimizer, loss, records, **settings)


def ledger(epsilon: float | None = 20.0, **settings: Any) -> quell.Ledger:
    return quell.Ledger.in_memory("patients", epsilon=epsilon, delta=1e-5, **settings)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_the_charge_is_the_price_of_the_accountant(neighbors: Any) -> None:
    paying = ledger(neighbors=neighbors)
    trainer = private(nn.Linear(4, 2), ledger=paying, epsilon=2.0, steps=25)
    assert paying.charges == []
    assert len(list(trainer)) == 25
    (charge,) = paying.charges
    event = json.dumps(charge.event)
    upper = _native.epsilon(event, neighbors, 1e-5, "pld", None)[1]
    assert paying.spent == pytest.approx(upper, rel=1e-3) == pytest.approx(trainer.plan.epsilon, rel=1e-3)
    assert 1.98 <= paying.spent <= 2.0 and charge.steps == 25 and charge.leased == 25
    assert trainer.receipt is not None and trainer.receipt.entry == charge.entry
    # The event is that of the plan: rate, noise and steps.
    assert '"rate": 0.25' in event and str(trainer.plan.noise_multiplier)[:6] in event


def test_a_budget_is_kept() -> None:
    paying = ledger(1.5)
    list(private(nn.Linear(4, 2), ledger=paying))
    with pytest.raises(quell.BudgetError):
        list(private(nn.Linear(4, 2), ledger=paying))
    assert len(paying.charges) == 1 and paying.spent <= 1.0


def test_noise_alone_is_what_the_plan_says() -> None:
    """Vectors of zeros leave the noise. The interval is exceeded by chance once in a million runs."""
    module = nn.Linear(2000, 2, bias=False)
    trainer = private(
        module,
        data=(torch.zeros(400, 2000), torch.zeros(400)),
        loss=mean_square,
        clip_norm=0.7,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.0),
        steps=4,
    )
    noise = []
    for _ in trainer:
        noise.append(module.weight.grad.double().reshape(-1).clone())  # type: ignore[union-attr]
    drawn = torch.cat(noise)
    deviation = trainer.plan.noise_multiplier * 0.7 / trainer.plan.batch_size
    assert len(drawn) == 16_000
    within = 4.9 / math.sqrt(2 * len(drawn))
    ratio = float(drawn.square().mean().sqrt()) / deviation
    # At most 0.2 % more than the ideal noise; noise that is halved, or half as much again, would be seen.
    assert 1 - within <= ratio <= 1.002 + within and 0.5 < 1 - within and within < 0.1
    assert abs(float(drawn.mean())) <= 4.9 * deviation / math.sqrt(len(drawn)) * 1.01
    assert not torch.equal(noise[0], noise[1])


def test_the_divisor_is_the_expected_batch() -> None:
    """All vectors are the same and hardly anything is random but the batch: sums vary with it, and means with them."""
    module = nn.Linear(1, 1, bias=False)
    trainer = private(
        module,
        data=(torch.ones(4000, 1), torch.zeros(4000)),
        loss=lambda out, y: out[:, 0],
        epsilon=None,
        noise_multiplier=1.0,
        ledger=ledger(None),
        records=4000,
        batch_size=1000,
        clip_norm=1.0,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.0),
        steps=60,
    )
    means = [float(module.weight.grad) for _ in trainer]  # type: ignore[arg-type]
    # A sum over its own size would always be one, up to a thousandth.
    assert np.std(means) == pytest.approx(math.sqrt(751) / 1000, rel=0.6)
    assert np.mean(means) == pytest.approx(1.0, abs=5 * math.sqrt(751 / 60) / 1000)


def test_an_empty_batch_is_a_batch() -> None:
    module = nn.Linear(4, 2)
    trainer = private(module, records=1_000_000, batch_size=1e-3, steps=3, noise_multiplier=1.0, epsilon=None)
    assert len(list(trainer)) == 3
    assert module.weight.grad is not None and bool((module.weight.grad != 0).any())


def test_a_vector_is_clipped() -> None:
    module = nn.Linear(4, 2)
    X, y = data(100)
    trainer = private(
        module, data=(1e20 * X, y), records=100, batch_size=100, clip_norm=0.01, noise_multiplier=1.0, epsilon=None,
        ledger=ledger(None), steps=1,
    )
    list(trainer)
    total = torch.cat([p.grad.reshape(-1) for p in module.parameters()]) * 100  # type: ignore[union-attr]
    assert 1e-2 < float(total.norm()) <= 100 * 0.01 * 1.01 + 0.01 * (math.sqrt(10) + 5)


@pytest.mark.parametrize("clipping", ["flat", "per_layer", "adaptive"])
@pytest.mark.parametrize("method", WAYS)
def test_a_module_learns(clipping: Any, method: Any) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    X, y = data(1000)
    trainer = private(
        module, data=(X, y), records=1000, batch_size=250, steps=40, epsilon=8.0, clipping=clipping, method=method,
        optimizer=sgd(module, 2.0),
    )
    assert trainer.method == method
    steps = list(trainer)
    assert (module(X).argmax(1) == y).float().mean() > 0.85
    assert (steps[-1].share_within is not None) == (clipping == "adaptive")
    if clipping == "adaptive":
        assert steps[-1].clip_norm != steps[0].clip_norm


def test_one_line_trains_and_says_what_it_cost() -> None:
    module = nn.Linear(4, 2)
    paying = ledger()
    shown = []
    X, y = data()
    trained = quell.torch.train(
        module, nn.CrossEntropyLoss(), (X.numpy(), y.numpy()), epsilon=1.0, records=400, batch_size=50, epochs=2, ledger=paying,
        progress=shown.append,
    )
    assert trained.module is module and trained.epsilon <= 1.0 and paying.spent == pytest.approx(trained.epsilon, rel=1e-3)
    assert trained.claim.startswith(("ε ≤ 1.000", "ε ≤ 0.99")) and len(shown) == trained.plan.steps == 16
    assert trained.receipt.dataset == "patients"


class Counted(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    """A dataset that loads one item at a time."""

    def __len__(self) -> int:
        return 300

    def __getitem__(self, place: int) -> tuple[torch.Tensor, int]:
        return torch.full((4,), float(place % 7)), place % 2


def test_datasets_and_dicts_are_records() -> None:
    assert len(list(private(nn.Linear(4, 2), data=Counted(), records=300))) == 10

    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 2)

        def forward(self, *, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
            output: torch.Tensor = self.inner(left - right)
            return output

    X, y = data()
    fields = {"left": X, "right": X.flip(1)}
    for method in WAYS:
        assert len(list(private(Named(), data=(fields, y), method=method))) == 10
    with pytest.raises(quell.DataError, match="records"):
        private(nn.Linear(4, 2), data=(X, y[1:]))
    with pytest.raises(quell.DataError, match="DataLoader"):
        private(nn.Linear(4, 2), data=iter([]))


def test_adapters_alone_are_counted() -> None:
    torch.manual_seed(0)
    inner = nn.Linear(4, 2)
    before = inner.weight.clone()
    module = nn.Sequential(Adapter(inner, 2), nn.ReLU(), nn.Linear(2, 2).requires_grad_(False))
    optimizer = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=0.1)
    trainer = private(module, optimizer=optimizer)
    assert trainer.method == "ghost" and "vectors of 12 numbers" in trainer.plan.what
    list(trainer)
    assert torch.equal(inner.weight, before) and inner.weight.grad is None
    assert bool((module[0].up.weight != 0).any())  # type: ignore[index,union-attr]


def test_offsets_alone_can_be_trained() -> None:
    module = nn.Sequential(nn.Conv1d(1, 3, 2), nn.Flatten(), nn.LayerNorm(9), nn.Linear(9, 2))
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(name.endswith("bias"))
    X, y = data()
    trainer = private(module, data=(X[:, None], y), optimizer=torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=1.0))
    assert trainer.method == "ghost" and f"vectors of {3 + 9 + 2} numbers" in trainer.plan.what


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.forgotten = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.used(x)
        return output


class Mixing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.centre, self.last = nn.Linear(4, 4), Centred(), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.last(self.centre(self.first(x)))
        return output


class Centred(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0)


class Remembering(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 2)
        self.register_buffer("average", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.average.mul_(0.9).add_(0.1 * x.detach().mean(0))  # type: ignore[operator,union-attr]
        output: torch.Tensor = self.inner(x)
        return output


def refused(module: nn.Module, words: str, **options: Any) -> None:
    """The module is refused with these words and a hint, and nothing is charged."""
    paying = ledger()
    with pytest.raises(quell.QuellError, match=words) as error:
        list(private(module, ledger=paying, **options))
    assert error.value.hint
    assert paying.charges == []


def test_what_would_not_be_private_is_refused() -> None:
    refused(nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)), "'1' is a BatchNorm1d")
    refused(Mixing(), "'centre' mixes records")
    refused(Remembering(), "'average' changes")
    refused(nn.Sequential(nn.InstanceNorm1d(1, affine=True, track_running_stats=True)), "changes when the module is called", data=(torch.randn(400, 1, 3), torch.randn(400)), loss=mean_square)
    refused(nn.Linear(4, 2).to(torch.bfloat16), "bfloat16")
    refused(nn.Linear(4, 2), "one number for each record", loss=F.cross_entropy)
    refused(nn.Linear(4, 2), "mixes records", loss=lambda out, y: out[:, 0] / out[:, 0].abs().sum().detach())
    refused(nn.Linear(4, 2).requires_grad_(False), "no trainable", optimizer=sgd(nn.Linear(1, 1)))
    torch.set_float32_matmul_precision("medium")
    try:
        refused(nn.Linear(4, 2), "less precise")
    finally:
        torch.set_float32_matmul_precision("highest")


def test_a_batch_norm_that_predicts_is_a_fixed_function() -> None:
    module = nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2).eval())
    trainer = private(module)
    assert trainer.method == "vmap"
    list(trainer)


def test_a_parameter_that_would_be_skipped_is_named() -> None:
    refused(Unused(), "'forgotten.weight'.*does not depend on it")
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    refused(module, "'1.weight' is trainable, and the optimizer does not", optimizer=sgd(module[0]))
    both = torch.optim.SGD([*module.parameters(), *nn.Linear(1, 1).parameters()], lr=0.1)
    refused(module, "that the module does not have", optimizer=both)


def test_a_parameter_released_later_stops_the_run() -> None:
    module = nn.Sequential(nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 2))
    trainer = private(module)
    assert trainer.step() is not None
    module.requires_grad_(True)
    with pytest.raises(quell.SettingError, match="other parameters"):
        trainer.step()


def test_settings_are_refused_before_a_record_is_read() -> None:
    refused(nn.Linear(4, 2), "number of records is not declared", records=None)
    refused(nn.Linear(4, 2), "neither epsilon nor noise_multiplier", epsilon=None)
    with pytest.raises(quell.SettingError, match="steps and epochs"):
        private(nn.Linear(4, 2), epochs=3)
    with pytest.raises(quell.SettingError, match="clipping"):
        private(nn.Linear(4, 2), clipping="none")
    with pytest.raises(quell.SettingError, match="less than the"):
        private(nn.Linear(4, 2), noise_multiplier=0.5)
    paying = ledger(unit="user")
    with pytest.raises(quell.UnsupportedError, match="one user"):
        private(nn.Linear(4, 2), ledger=paying)
    assert paying.charges == []
    list(private(nn.Linear(4, 2), ledger=paying, one_record_per_user=True))
    assert len(paying.charges) == 1


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_of_the_loss_leaves_the_charge(error: type[BaseException]) -> None:
    paying = ledger()
    calls = 0
    armed = False

    def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += armed
        if calls == 3:
            raise error("the loss fails")
        return F.cross_entropy(out, y, reduction="none")

    module = nn.Linear(4, 2)
    trainer = private(module, loss=loss, ledger=paying)
    armed = True
    before = None
    with pytest.raises(error, match="the loss fails"):
        for _ in trainer:
            before = module.weight.clone()
    spent = paying.spent
    assert spent == pytest.approx(trainer.plan.epsilon, rel=1e-3) and len(paying.charges) == 1
    # Nothing of the failed step was released, and it is spent. The others are still there.
    assert before is None or torch.equal(module.weight, before)
    failed_at = trainer.position
    assert len(list(trainer)) == 10 - failed_at and paying.spent == spent


def test_a_run_that_was_killed_goes_on_and_pays_once(tmp_path: Any) -> None:
    paying = quell.Ledger.create("kept", epsilon=2, delta=1e-5, at=tmp_path)
    first = private(nn.Linear(4, 2), ledger=paying, run="night", steps=200)
    for _ in range(70):
        first.step()
    # Another process opens the ledger, and asks for the same run. Steps that were leased to the first one are spent.
    again = private(nn.Linear(4, 2), ledger=quell.Ledger.open("kept", at=tmp_path), run="night", steps=200)
    taken = len(list(again))
    assert 120 <= taken <= 130 and again.position == 200
    assert len(paying.charges) == 1 and paying.spent <= 1.0
    with pytest.raises(quell.LedgerError):
        private(nn.Linear(4, 2), ledger=paying, run="night", steps=100).step()


def test_dropout_does_not_follow_the_seed_of_the_program() -> None:
    """With a known seed, the masks of other records would tell whether a record is in the batch."""
    seeds: list[int] = []

    def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        seeds.append(torch.initial_seed())
        return F.cross_entropy(out, y, reduction="none")

    steps = []
    for _ in range(2):
        trainer = private(nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 2)), loss=loss)
        torch.manual_seed(5)
        state = torch.get_rng_state()
        seeds.clear()
        trainer.step()
        assert torch.equal(torch.get_rng_state(), state)
        steps.append(set(seeds))
    assert 5 not in steps[0] | steps[1] and steps[0].isdisjoint(steps[1])


def test_the_batch_is_not_what_the_program_seeds() -> None:
    seen: list[Any] = []

    class Watching(Counted):
        def __getitem__(self, place: int) -> tuple[torch.Tensor, int]:
            seen[-1].append(place)
            return super().__getitem__(place)

    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)
        seen.append([])
        private(nn.Linear(4, 2), data=Watching(), records=300, batch_size=150).step()
    assert seen[0] != seen[1]


def test_a_step_within_a_step_is_refused() -> None:
    holder: list[Any] = []

    def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if holder:
            holder[0]._descent.step(holder[0]._gradients)
        return F.cross_entropy(out, y, reduction="none")

    trainer = private(nn.Linear(4, 2), loss=loss)
    holder.append(trainer)
    with pytest.raises(quell.RunError, match="already"):
        trainer.step()


def test_a_learner_that_returns_other_shapes_releases_nothing() -> None:
    trainer = private(nn.Linear(4, 2))
    trainer._gradients.add = lambda scales: [np.zeros(3, np.float32)]  # type: ignore[method-assign]
    with pytest.raises(quell.RunError, match="shape of the sums"):
        trainer.step()
    trainer._gradients.measure = lambda records: np.zeros((1, 1))  # type: ignore[method-assign]
    with pytest.raises(quell.RunError, match="shape of the lengths"):
        trainer.step()


def test_quell_imports_no_framework() -> None:
    import subprocess

    code = "import sys, quell; assert not {'torch', 'jax', 'optax'} & set(sys.modules), sorted(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_ways_that_are_wrong_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check on made-up records finds a length that is too small, and a record that depends on others."""
    target, tensors = Target(nn.Linear(4, 2), mean_square), Tensors((data()[0], torch.zeros(400)))
    measure, take = Ghost.measure, Ghost.add

    def short(self: Ghost, records: Any) -> Any:
        return measure(self, records) * 0.9

    def leaking(self: Ghost, scales: Any) -> Any:
        # Scale zero adds something.
        return take(self, np.maximum(scales, 1e-3).astype(np.float32))

    for name, wrong in (("measure", short), ("add", leaking)):
        with monkeypatch.context() as patch:
            patch.setattr(Ghost, name, wrong)
            with pytest.raises(quell.SettingError, match="break the contract"):
                choose(target, tensors.one(), [10], "ghost", None)
    assert choose(target, tensors.one(), [10], None, None).name == "ghost"


class OfTheLargest(nn.Module):
    """Divides by 255 if the largest number of the batch is above 1: a common idiom, which mixes records."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.float()
        return self.last(x / 255 if x.max() > 1 else x)


class Mixed(nn.Module):
    """Mixes each record with another one while it trains."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.dropout = nn.Linear(4, 2), nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            x = 0.7 * x + 0.3 * x[torch.randperm(len(x))]
        return self.last(self.dropout(x))


class Codebook(nn.Module):
    """Keeps an average of the records in a parameter that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.code, self.last = nn.Parameter(torch.zeros(4), requires_grad=False), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.code.mul_(0.9).add_(0.1 * x.mean(0))
        return self.last(x)


def planned(module: nn.Module, X: torch.Tensor, y: torch.Tensor, **options: Any) -> Private:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    given = {"epsilon": 2, "records": len(X), "batch_size": 20, "steps": 5, **options}
    return Private(module, optimizer, nn.CrossEntropyLoss(), (X, y), **given)


def test_what_keeps_or_mixes_records_is_refused() -> None:
    X, y, words = torch.randn(40, 4), torch.arange(40) % 2, torch.randint(0, 9, (40, 3))
    bounded = nn.Sequential(nn.Embedding(9, 4, max_norm=1.0), nn.Flatten(), nn.Linear(12, 2))
    bounded[0].weight.requires_grad_(False)
    before = bounded[0].weight.clone()
    with pytest.raises(quell.SettingError, match="changes when the module is called"):
        planned(bounded, words, y)
    assert torch.equal(bounded[0].weight, before)
    book = Codebook()
    with pytest.raises(quell.SettingError, match="'code' changes"):
        planned(book, X, y)
    assert torch.equal(book.code, torch.zeros(4))
    with pytest.raises(quell.SettingError, match="mixes records while it trains"):
        planned(Mixed(), X, y)
    with pytest.raises(quell.SettingError, match="clipping is automatic"):
        planned(nn.Linear(4, 2), X, y, clipping="automatic")


def test_a_choice_that_depends_on_a_batch_is_made_for_each_record() -> None:
    pictures = torch.randint(0, 256, (40, 4), dtype=torch.uint8)
    assert planned(OfTheLargest(), pictures, torch.arange(40) % 2).method == "one by one"


def test_a_run_goes_on_in_the_mode_that_was_checked() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    trainer = planned(module, torch.randn(40, 4), torch.arange(40) % 2)
    trainer.step()
    module.eval()
    with pytest.raises(quell.SettingError, match="not in the mode"):
        trainer.step()
    module.train()
    assert trainer.step() is not None


def test_every_piece_has_the_same_number_of_rows() -> None:
    rows: set[int] = set()
    module = nn.Linear(4, 2)
    trainer = planned(module, torch.randn(500, 4), torch.arange(500) % 2, batch_size=150)
    module.register_forward_hook(lambda layer, inputs, output: rows.add(len(output)))
    for _ in range(4):
        trainer.step()
    assert rows == {trainer.at_once}


def test_nothing_of_a_step_is_left_behind() -> None:
    class Drawn(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 40

        def __getitem__(self, place: int) -> tuple[torch.Tensor, int]:
            return torch.full((4,), random.random() + np.random.rand()), place % 2

    module = nn.Linear(4, 2)
    trainer = Private(
        module, torch.optim.SGD(module.parameters(), lr=0.1), nn.CrossEntropyLoss(), Drawn(),
        epsilon=2, records=40, batch_size=20, steps=5,
    )
    states = random.getstate(), np.random.get_state()[2], torch.get_rng_state()
    trainer.step()
    assert random.getstate() == states[0] and np.random.get_state()[2] == states[1]
    assert torch.equal(torch.get_rng_state(), states[2])
    assert all(not out.any() for out in trainer._gradients._sums) and trainer._gradients._held == []
