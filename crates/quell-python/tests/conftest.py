"""What all tests share: records with a known rule, and ledgers that do not outlive a test."""

from __future__ import annotations

import signal

import numpy as np
import numpy.typing as npt
import pytest


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Runs every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("QUELL_LEDGER", raising=False)
    monkeypatch.setenv("QUELL_USER", "tester")
    # A program that a shell starts in the background ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def points(count: int = 4000, seed: int = 0) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Points in a square, and whether the first coordinate is larger than the second."""
    X = np.random.default_rng(seed).uniform(-1, 1, (count, 2))
    return X, (X[:, 0] > X[:, 1]).astype(np.int64)
