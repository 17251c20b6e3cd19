"""Opacus: the event of an accountant's history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import SettingError, UnsupportedError
from .events import Composed, Event, Gaussian, Repeated

__all__ = ["from_opacus"]


def from_opacus(history: Any, *, poisson_sampling: bool) -> Event:
    """The event of the history of an Opacus accountant: a list of noise multiplier, sampling rate and steps.

    `history` is the list, an accountant, a `PrivacyEngine`, or what `accountant.state_dict()` returns. Opacus does not
    write down how batches were drawn, so `poisson_sampling` says it: what `make_private` got, where the default is
    `True`. Without Poisson sampling the ε that Opacus prints is not proven, and no event is returned.

    >>> from quell.accounting import epsilon
    >>> run = from_opacus([(1.1, 0.01, 9_000), (1.3, 0.01, 1_000)], poisson_sampling=True)
    >>> run
    Composed([Gaussian(1.1).poisson_sampled(0.01).repeated(9000), Gaussian(1.3).poisson_sampled(0.01).repeated(1000)])
    >>> print(epsilon(run, delta=1e-5))
    5.075 ≤ ε ≤ 5.080
    """
    if poisson_sampling is not True:
        raise UnsupportedError(
            "Opacus accounts for Poisson sampling, and these batches were not drawn so: its ε is not proven",
            "train with poisson_sampling=True; if each batch was a fresh random set of fixed size, use "
            'Gaussian(z).sampled_without_replacement(batch=B, records=N) with neighbors="replace"',
        )
    parts: list[Event] = []
    for entry in _entries(history):
        noise_multiplier, sampling_rate, steps = entry
        parts.append(Repeated(Gaussian(noise_multiplier).poisson_sampled(sampling_rate), steps))
    return parts[0] if len(parts) == 1 else Composed(tuple(parts))


def _entries(history: Any) -> list[tuple[Any, Any, Any]]:
    """Finds the list, and checks that it has entries of three numbers."""
    found = getattr(history, "accountant", history)
    if isinstance(found, Mapping):
        found = found.get("history")
    found = getattr(found, "history", found)
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise SettingError(
            f"the history is of type {type(history).__name__}, expected a list of (noise_multiplier, sample_rate, "
            "num_steps)",
            "pass privacy_engine.accountant, or its history",
        )
    entries = []
    for entry in found:
        members = tuple(entry) if isinstance(entry, Iterable) else ()
        if len(members) != 3:
            raise SettingError(
                f"an entry of the history has {len(members)} members, expected three: noise multiplier, sampling rate "
                "and steps",
                "pass the history of an accountant of Opacus",
            )
        entries.append((members[0], members[1], members[2]))
    return entries
