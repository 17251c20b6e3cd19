"""What benches/training.py measures: networks, and one training step in each library.

A trainer is a library made ready to step on one fixed batch. A private step
clips the gradient of every example, adds them, adds Gaussian noise, divides by
the batch size and lets SGD update the weights; a plain step is SGD on the mean
loss. All in float32, each library as its own documentation tells to use it.

torch, jax and numpy are imported where they are used: the networks and the list
of peers are read by a Python that has none of them.
"""

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Convolution:
    inputs: int
    outputs: int
    kernel: int
    stride: int = 1
    padding: int = 0

    def weight_shape(self) -> tuple[int, ...]:
        return (self.outputs, self.inputs, self.kernel, self.kernel)


@dataclasses.dataclass(frozen=True)
class Linear:
    inputs: int
    outputs: int

    def weight_shape(self) -> tuple[int, ...]:
        return (self.outputs, self.inputs)


@dataclasses.dataclass(frozen=True)
class MaxPool:
    size: int
    stride: int


# An activation is its name. A flattening stands where the images end.
Layer = Convolution | Linear | MaxPool | str


@dataclasses.dataclass(frozen=True)
class Network:
    """A classifier of `shape`, channels first, and the batch it is trained on."""

    name: str
    title: str
    batch: int
    shape: tuple[int, ...]
    layers: tuple[Layer, ...]
    classes: int = 10


def convolutions(*channels: int) -> list[Layer]:
    """3×3 convolutions from each number of channels to the next, with tanh, and a pooling behind."""
    layers: list[Layer] = []
    for inputs, outputs in zip(channels, channels[1:], strict=False):
        layers += [Convolution(inputs, outputs, 3, padding=1), "tanh"]
    return [*layers, MaxPool(2, 2)]


NETWORKS: dict[str, Network] = {
    network.name: network
    for network in (
        Network(
            "mlp",
            "784-1000-10, ReLU",
            600,
            (784,),
            (Linear(784, 1000), "relu", Linear(1000, 10)),
        ),
        Network(
            "cnn",
            "Opacus's MNIST network: two convolutions, ReLU, two linear layers",
            256,
            (1, 28, 28),
            (
                Convolution(1, 16, 8, stride=2, padding=3),
                "relu",
                MaxPool(2, 1),
                Convolution(16, 32, 4, stride=2),
                "relu",
                MaxPool(2, 1),
                "flatten",
                Linear(512, 32),
                "relu",
                Linear(32, 10),
            ),
        ),
        Network(
            "cifar",
            "3×32×32, six convolutions of 32 to 128 channels, tanh, two linear layers",
            256,
            (3, 32, 32),
            (
                *convolutions(3, 32, 32),
                *convolutions(32, 64, 64),
                *convolutions(64, 128, 128),
                "flatten",
                Linear(2048, 128),
                "tanh",
                Linear(128, 10),
            ),
        ),
    )
}


@dataclasses.dataclass(frozen=True)
class Task:
    """A network with its first weights (weight, bias, weight, …, in PyTorch's layout) and its batch."""

    network: Network
    weights: list[Any]
    inputs: Any
    labels: Any
    noise_multiplier: float = 1.0
    clip_norm: float = 1.0
    learning_rate: float = 0.05

    @property
    def batch(self) -> int:
        return len(self.labels)


def draw_task(network: Network, batch: int) -> Task:
    """Random inputs, labels and weights, the same in every process."""
    import numpy as np

    generator = np.random.default_rng(0)
    weights = []
    for layer in network.layers:
        if isinstance(layer, Convolution | Linear):
            shape = layer.weight_shape()
            bound = 1 / math.sqrt(math.prod(shape[1:]))
            weights.append(generator.uniform(-bound, bound, shape).astype(np.float32))
            weights.append(generator.uniform(-bound, bound, shape[:1]).astype(np.float32))
    inputs = generator.standard_normal((batch, *network.shape), dtype=np.float32)
    return Task(network, weights, inputs, generator.integers(network.classes, size=batch))


@dataclasses.dataclass(frozen=True)
class Trainer:
    """`step` returns when the weights are updated; `weights` are in the layout of `Task.weights`."""

    step: Callable[[], None]
    weights: Callable[[], list[Any]]


# --------------------------------------------------------------------------
# PyTorch and Opacus
# --------------------------------------------------------------------------


def torch_module(task: Task) -> Any:
    import torch
    from torch import nn

    modules: list[Any] = []
    for layer in task.network.layers:
        match layer:
            case Convolution():
                modules.append(nn.Conv2d(layer.inputs, layer.outputs, layer.kernel, layer.stride, layer.padding))
            case Linear():
                modules.append(nn.Linear(layer.inputs, layer.outputs))
            case MaxPool():
                modules.append(nn.MaxPool2d(layer.size, layer.stride))
            case name:
                modules.append({"relu": nn.ReLU, "tanh": nn.Tanh, "flatten": nn.Flatten}[name]())
    module = nn.Sequential(*modules)
    with torch.no_grad():
        for parameter, weight in zip(module.parameters(), task.weights, strict=True):
            parameter.copy_(torch.from_numpy(weight))
    return module


def torch_weights(module: Any) -> list[Any]:
    return [parameter.detach().clone().numpy() for parameter in module.parameters()]


def torch_trainer(task: Task) -> Trainer:
    import torch

    module = torch_module(task)
    optimizer = torch.optim.SGD(module.parameters(), lr=task.learning_rate)
    criterion = torch.nn.CrossEntropyLoss()
    inputs, labels = torch.from_numpy(task.inputs), torch.from_numpy(task.labels)

    def step() -> None:
        optimizer.zero_grad()
        criterion(module(inputs), labels).backward()
        optimizer.step()

    return Trainer(step, lambda: torch_weights(module))


def opacus_trainer(task: Task, mode: str) -> Trainer:
    """Opacus as its `PrivacyEngine` sets it up, for a batch that is always the whole data set."""
    import opacus
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    inputs, labels = torch.from_numpy(task.inputs), torch.from_numpy(task.labels)
    module = torch_module(task)
    with warnings.catch_warnings():
        # That the noise is not from a secure generator, which is the default and the faster way.
        warnings.simplefilter("ignore")
        private = opacus.PrivacyEngine().make_private(
            module=module,
            optimizer=torch.optim.SGD(module.parameters(), lr=task.learning_rate),
            criterion=torch.nn.CrossEntropyLoss(),
            data_loader=DataLoader(TensorDataset(inputs, labels), batch_size=task.batch),
            noise_multiplier=task.noise_multiplier,
            max_grad_norm=task.clip_norm,
            poisson_sampling=False,
            grad_sample_mode=mode,
        )
    # Ghost clipping comes with a loss of its own, the other modes with none.
    wrapped, optimizer, *criterions, _ = private
    criterion = criterions[0] if criterions else torch.nn.CrossEntropyLoss()

    def step() -> None:
        optimizer.zero_grad()
        criterion(wrapped(inputs), labels).backward()
        optimizer.step()

    return Trainer(step, lambda: torch_weights(module))


# --------------------------------------------------------------------------
# JAX and jax_privacy
# --------------------------------------------------------------------------


def channels_last(task: Task, weights: list[Any]) -> list[Any]:
    """Weights as JAX likes them: HWIO for convolutions, inputs first for linear layers, channels last throughout."""
    turned = []
    for layer, weight in zip(weighted_layers(task), weights, strict=True):
        if weight.ndim == 4:
            weight = weight.transpose(2, 3, 1, 0)
        elif weight.ndim == 2:
            side = flattened_side(layer, task)
            weight = weight.reshape(layer.outputs, -1, side, side).transpose(2, 3, 1, 0).reshape(layer.inputs, layer.outputs)
        turned.append(weight.copy())
    return turned


def channels_first(task: Task, weights: list[Any]) -> list[Any]:
    """The inverse of `channels_last`."""
    turned = []
    for layer, weight in zip(weighted_layers(task), weights, strict=True):
        if weight.ndim == 4:
            weight = weight.transpose(3, 2, 0, 1)
        elif weight.ndim == 2:
            side = flattened_side(layer, task)
            weight = weight.reshape(side, side, -1, layer.outputs).transpose(3, 2, 0, 1).reshape(layer.outputs, layer.inputs)
        turned.append(weight.copy())
    return turned


def weighted_layers(task: Task) -> list[Any]:
    """The layer that each of `Task.weights` belongs to."""
    return [layer for layer in task.network.layers if isinstance(layer, Convolution | Linear) for _ in range(2)]


def flattened_side(layer: Linear, task: Task) -> int:
    """Height and width of the images that a linear layer sees flattened; 1 where it sees none."""
    before = task.network.layers[: task.network.layers.index(layer)]
    if not before or before[-1] != "flatten":
        return 1
    channels = [below.outputs for below in before if isinstance(below, Convolution)][-1]
    return math.isqrt(layer.inputs // channels)


def jax_loss(task: Task) -> Callable[[Any, Any, Any], Any]:
    """The mean cross-entropy of a batch, as a function of weights, inputs and labels."""
    import jax
    from jax import lax
    from jax import numpy as jnp

    def loss(weights: Any, inputs: Any, labels: Any) -> Any:
        values, remaining = inputs, iter(weights)
        for layer in task.network.layers:
            match layer:
                case Convolution():
                    around = [(layer.padding, layer.padding)] * 2
                    axes = ("NHWC", "HWIO", "NHWC")
                    strides = (layer.stride, layer.stride)
                    values = lax.conv_general_dilated(values, next(remaining), strides, around, dimension_numbers=axes)
                    values = values + next(remaining)
                case Linear():
                    values = values @ next(remaining) + next(remaining)
                case MaxPool():
                    window, strides = (1, layer.size, layer.size, 1), (1, layer.stride, layer.stride, 1)
                    values = lax.reduce_window(values, -jnp.inf, lax.max, window, strides, "VALID")
                case "flatten":
                    values = values.reshape(len(values), -1)
                case name:
                    values = {"relu": jax.nn.relu, "tanh": jnp.tanh}[name](values)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(values), labels[:, None], axis=1)
        return -chosen.mean()

    return loss


def jax_arrays(task: Task) -> tuple[list[Any], Any, Any]:
    """Weights, inputs and labels on the device."""
    from jax import numpy as jnp

    inputs = task.inputs.transpose(0, 2, 3, 1) if task.inputs.ndim == 4 else task.inputs
    weights = [jnp.array(weight) for weight in channels_last(task, task.weights)]
    return weights, jnp.array(inputs), jnp.array(task.labels.astype("int32"))


def jax_loop(task: Task, update: Callable[..., Any], state: Any) -> Trainer:
    """Compiles `update(weights, state, inputs, labels)`, which gives new weights and state, in place of the old ones."""
    import jax
    import numpy as np

    weights, inputs, labels = jax_arrays(task)
    compiled = jax.jit(update, donate_argnums=(0, 1))
    held = [weights, state]

    def step() -> None:
        held[:] = compiled(*held, inputs, labels)
        jax.block_until_ready(held)

    return Trainer(step, lambda: channels_first(task, [np.asarray(weight) for weight in held[0]]))


def jax_trainer(task: Task) -> Trainer:
    import jax

    gradient = jax.grad(jax_loss(task))

    def update(weights: Any, state: Any, inputs: Any, labels: Any) -> Any:
        gradients = gradient(weights, inputs, labels)
        return [w - task.learning_rate * g for w, g in zip(weights, gradients, strict=True)], state

    return jax_loop(task, update, ())


def jax_vmap_trainer(task: Task) -> Trainer:
    """DP-SGD written by hand, as it usually is in JAX: vmap of grad, compiled as one program."""
    import jax
    from jax import numpy as jnp

    gradient = jax.grad(jax_loss(task))
    deviation = task.noise_multiplier * task.clip_norm

    def measured(weights: Any, inputs: Any, label: Any) -> Any:
        gradients = gradient(weights, inputs[None], label[None])
        norm = jnp.sqrt(sum(jnp.sum(jnp.square(g)) for g in gradients))
        return gradients, jnp.minimum(1.0, task.clip_norm / norm)

    def update(weights: Any, key: Any, inputs: Any, labels: Any) -> Any:
        key, *keys = jax.random.split(key, 1 + len(weights))
        every, scales = jax.vmap(measured, in_axes=(None, 0, 0))(weights, inputs, labels)
        updated = []
        for weight, gradients, own in zip(weights, every, keys, strict=True):
            # One product: scaling inside the vmap and adding up afterwards took several times as long on the mlp.
            clipped = jnp.tensordot(scales, gradients, 1)
            noisy = clipped + deviation * jax.random.normal(own, weight.shape)
            updated.append(weight - task.learning_rate / task.batch * noisy)
        return updated, key

    return jax_loop(task, update, jax.random.key(1))


def jax_privacy_trainer(task: Task, microbatch: int | None = None) -> Trainer:
    """jax_privacy's clipped gradient and its Gaussian privatizer in front of optax's SGD."""
    import jax
    import jax_privacy
    import optax

    gradient = jax_privacy.clipped_grad(
        jax_loss(task),
        l2_clip_norm=task.clip_norm,
        batch_argnums=(1, 2),
        normalize_by=task.batch,
        microbatch_size=microbatch,
    )
    deviation = task.noise_multiplier * gradient.sensitivity()
    privatizer = jax_privacy.noise_addition.gaussian_privatizer(stddev=deviation, prng_key=jax.random.key(1))
    optimizer = optax.chain(privatizer, optax.sgd(task.learning_rate))

    def update(weights: Any, state: Any, inputs: Any, labels: Any) -> Any:
        updates, state = optimizer.update(gradient(weights, inputs, labels), state, weights)
        return optax.apply_updates(weights, updates), state

    return jax_loop(task, update, optimizer.init(jax_arrays(task)[0]))


# --------------------------------------------------------------------------
# The list
# --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Peer:
    """One way to train in one library; `plain` is the peer that takes the same step without privacy."""

    name: str
    library: str
    label: str
    imports: tuple[str, ...]
    build: Callable[[Task], Trainer]
    plain: str | None = None

    @property
    def private(self) -> bool:
        return self.plain is not None


TORCH, OPACUS = ("torch",), ("torch", "opacus")
JAX, JAX_PRIVACY = ("jax",), ("jax", "optax", "jax_privacy")


# Divides both batch sizes.
MICROBATCH = 8


def opacus_peer(mode: str) -> Peer:
    return Peer(f"opacus-{mode}", "Opacus", mode, OPACUS, functools.partial(opacus_trainer, mode=mode), "torch")


def jax_privacy_peer(name: str, label: str, microbatch: int | None) -> Peer:
    return Peer(name, "jax_privacy", label, JAX_PRIVACY, functools.partial(jax_privacy_trainer, microbatch=microbatch), "jax")


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("torch", "PyTorch", "no privacy", TORCH, torch_trainer),
        opacus_peer("hooks"),
        opacus_peer("functorch"),
        opacus_peer("ew"),
        opacus_peer("ghost"),
        Peer("jax", "JAX", "no privacy", JAX, jax_trainer),
        Peer("jax-vmap", "JAX", "vmap", JAX, jax_vmap_trainer, "jax"),
        jax_privacy_peer("jax-privacy", "clipped_grad", None),
        jax_privacy_peer("jax-privacy-micro", f"clipped_grad, {MICROBATCH} at a time", MICROBATCH),
    )
}
