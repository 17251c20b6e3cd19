"""Opacus's MNIST example with `quell.torch`.

The network is that of Opacus's `examples/mnist.py`. Its settings there are batches of 64, a learning rate of 0.1, a noise
multiplier of 1 and a clip norm of 1. Here batches are larger, as private training likes them: 1,024, a learning rate of
0.5, 8 epochs, and the noise that gives ε = 3 at δ = 1e-5.

    python examples/torch_mnist.py FOLDER                 # with quell.torch
    python examples/torch_mnist.py FOLDER --peer opacus   # the same settings with Opacus, to compare

FOLDER holds the four files of MNIST, compressed or not.
"""

import argparse
import gzip
import pathlib
import time
from typing import Any

import numpy as np
import torch
from torch import nn

import quell.torch


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def read(folder: pathlib.Path, name: str) -> Any:
    """One file of MNIST: images or labels."""
    path = next(path for path in sorted(folder.iterdir()) if path.name.replace(".", "-").startswith(name))
    content = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    shape = [int.from_bytes(content[4 * i : 4 * i + 4], "big") for i in range(1, content[3] + 1)]
    return np.frombuffer(content, np.uint8, offset=4 * (content[3] + 1)).reshape(shape)


def examples(folder: pathlib.Path, part: str) -> tuple[torch.Tensor, torch.Tensor]:
    # Mean and deviation of the pixels are well known, and so public.
    images = torch.from_numpy(read(folder, f"{part}-images").astype(np.float32) / 255)[:, None]
    return (images - 0.1307) / 0.3081, torch.from_numpy(read(folder, f"{part}-labels").astype(np.int64))


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains Opacus's network on MNIST privately.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--peer", choices=["opacus"], help="train with another library")
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--epochs", type=float, default=8)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--learning-rate", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0, help="of the first weights")
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    module, (X, y) = network(), examples(arguments.folder, "train")
    optimizer = torch.optim.SGD(module.parameters(), lr=arguments.learning_rate)
    start = time.perf_counter()
    train = train_with_opacus if arguments.peer else train_with_quell
    claim = train(module, optimizer, (X, y), arguments)
    seconds = time.perf_counter() - start
    images, labels = examples(arguments.folder, "t10k")
    with torch.no_grad():
        accuracy = (module(images).argmax(1) == labels).double().mean().item()
    print(f"accuracy {100 * accuracy:.2f} % on the test images, {claim}, {seconds:.0f} s")


def train_with_quell(module: nn.Module, optimizer: torch.optim.Optimizer, data: Any, arguments: argparse.Namespace) -> str:
    trained = quell.torch.train(
        module,
        nn.CrossEntropyLoss(),
        data,
        optimizer=optimizer,
        epsilon=arguments.epsilon,
        delta=1e-5,
        records=60_000,
        batch_size=arguments.batch_size,
        epochs=arguments.epochs,
        clip_norm=1.0,
    )
    return f"{trained.claim}, noise multiplier {trained.plan.noise_multiplier:.3f}"


def train_with_opacus(module: nn.Module, optimizer: torch.optim.Optimizer, data: Any, arguments: argparse.Namespace) -> str:
    import opacus
    from torch.utils.data import DataLoader, TensorDataset

    wrapped, private, loader = opacus.PrivacyEngine().make_private_with_epsilon(
        module=module,
        optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(*data), batch_size=arguments.batch_size),
        target_epsilon=arguments.epsilon,
        target_delta=1e-5,
        epochs=arguments.epochs,
        max_grad_norm=1.0,
    )
    for _ in range(int(arguments.epochs)):
        for images, labels in loader:
            private.zero_grad()
            nn.functional.cross_entropy(wrapped(images), labels).backward()
            private.step()
    return f"ε {arguments.epsilon} by Opacus, noise multiplier {private.noise_multiplier:.3f}"


if __name__ == "__main__":
    main()
