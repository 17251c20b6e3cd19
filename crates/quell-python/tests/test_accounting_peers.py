"""Events of dp_accounting, and histories of Opacus."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import dp_accounting
import pytest
from dp_accounting import dp_event as theirs
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from quell import SettingError, UnsupportedError
from quell.accounting import (
    Approximate,
    BestOf,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    HiddenState,
    Laplace,
    NonPrivate,
    PerturbedObjective,
    Pure,
    RandomizedResponse,
    Renyi,
    ZeroConcentrated,
    dp_sgd,
    epsilon,
    from_dp_accounting,
    from_opacus,
    to_dp_accounting,
)

Relation = dp_accounting.NeighboringRelation
GAUSSIAN = theirs.GaussianDpEvent(2.0)

PAIRS: list[tuple[Any, Event]] = [
    (GAUSSIAN, Gaussian(2)),
    (theirs.LaplaceDpEvent(3.0), Laplace(3)),
    (theirs.DiscreteLaplaceDpEvent(0.5, 3), DiscreteLaplace(2, 3)),
    (theirs.RandomizedResponseDpEvent(0.25, 4), RandomizedResponse(4, 0.25)),
    (theirs.ZCDpEvent(0.1), ZeroConcentrated(0.1)),
    (theirs.NonPrivateDpEvent(), NonPrivate()),
    (theirs.PoissonSampledDpEvent(0.1, GAUSSIAN), Gaussian(2).poisson_sampled(0.1)),
    (
        theirs.SampledWithoutReplacementDpEvent(100, 10, GAUSSIAN),
        Gaussian(2).sampled_without_replacement(batch=10, records=100),
    ),
    (
        theirs.SampledWithReplacementDpEvent(100, 10, GAUSSIAN),
        Gaussian(2).sampled_with_replacement(batch=10, records=100),
    ),
    (theirs.SelfComposedDpEvent(theirs.PoissonSampledDpEvent(0.1, GAUSSIAN), 7), Gaussian(2).poisson_sampled(0.1).repeated(7)),
    (theirs.ComposedDpEvent([GAUSSIAN, theirs.LaplaceDpEvent(3.0)]), Gaussian(2) + Laplace(3)),
    (theirs.RepeatAndSelectDpEvent(GAUSSIAN, 5, 1), Gaussian(2).best_of(5)),
]


@pytest.mark.parametrize(("event", "ours"), PAIRS, ids=lambda value: type(value).__name__)
def test_events_are_converted_both_ways(event: Any, ours: Event) -> None:
    assert from_dp_accounting(event) == ours
    assert to_dp_accounting(ours) == event
    for noise_over in ("contribution", "replacement"):
        there = to_dp_accounting(ours, noise_over=noise_over)  # type: ignore[arg-type]
        assert from_dp_accounting(there, noise_over=noise_over) == ours  # type: ignore[arg-type]


def test_every_event_of_dp_accounting_is_converted_or_refused() -> None:
    refused = {
        "UnsupportedDpEvent": theirs.UnsupportedDpEvent(),
        "SingleEpochTreeAggregationDpEvent": theirs.SingleEpochTreeAggregationDpEvent(1.0, 8),
        "MixtureOfGaussiansDpEvent": theirs.MixtureOfGaussiansDpEvent(1.0, [1.0], [1.0]),
        "TruncatedSubsampledGaussianDpEvent": theirs.TruncatedSubsampledGaussianDpEvent(10, 0.5, 5, 1.0),
    }
    kinds = {kind.__name__ for kind in theirs.DpEvent.__subclasses__()}
    assert kinds == {type(event).__name__ for event, _ in PAIRS} | set(refused) | {"NoOpDpEvent"}
    assert from_dp_accounting(theirs.NoOpDpEvent()) == Composed()
    for event in refused.values():
        for outer in [event, theirs.SelfComposedDpEvent(event, 2), theirs.ComposedDpEvent([event])]:
            with pytest.raises(UnsupportedError, match="has no equivalent in Quell"):
                from_dp_accounting(outer)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (theirs.ZCDpEvent(0.1, 0.2), "xi = 0.2 has no equivalent"),
        (theirs.RepeatAndSelectDpEvent(GAUSSIAN, 5, float("inf")), "shape inf and mean 5"),
        (theirs.RepeatAndSelectDpEvent(GAUSSIAN, 5.5, 1), "mean 5.5"),
        (theirs.DiscreteLaplaceDpEvent(0.0, 1), "there is no noise"),
    ],
)
def test_settings_without_an_equivalent_are_refused(event: Any, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        from_dp_accounting(event)


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(SettingError, match="noise_multiplier is 0"):
        from_dp_accounting(theirs.GaussianDpEvent(0.0))
    with pytest.raises(SettingError, match="sampling_rate is 0"):
        from_dp_accounting(theirs.PoissonSampledDpEvent(0.0, GAUSSIAN))
    with pytest.raises(SettingError, match="noise_over is 'record'"):
        from_dp_accounting(GAUSSIAN, noise_over="record")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "event",
    [
        DiscreteGaussian(3),
        Exponential(1),
        Pure(1),
        Approximate(1, 1e-6),
        Renyi([(2, 1)]),
        PerturbedObjective(1, 1),
        HiddenState(1, 1, 1),
        BestOf(3, [Gaussian(1), Gaussian(2)]),
        Pure(1).repeated(3) + Gaussian(2),
    ],
    ids=repr,
)
def test_what_dp_accounting_does_not_have_is_refused(event: Event) -> None:
    with pytest.raises(UnsupportedError, match="has no equivalent in dp_accounting"):
        to_dp_accounting(event)


def test_other_objects_are_refused() -> None:
    class GaussianDpEvent:
        noise_multiplier = 1.0

    with pytest.raises(SettingError, match="of type GaussianDpEvent, expected an event of dp_accounting"):
        from_dp_accounting(GaussianDpEvent())
    with pytest.raises(SettingError, match="expected an event of quell.accounting"):
        to_dp_accounting(GAUSSIAN)


def test_reciprocals_never_understate_the_loss() -> None:
    for value in [0.1, 0.3, 0.7, 3.3]:
        scale = from_dp_accounting(theirs.DiscreteLaplaceDpEvent(value, 1)).scale  # type: ignore[attr-defined]
        parameter = to_dp_accounting(DiscreteLaplace(value)).noise_parameter
        from fractions import Fraction

        assert Fraction(scale) * Fraction(value) <= 1 <= Fraction(parameter) * Fraction(value)


@pytest.mark.parametrize(
    "event",
    [GAUSSIAN, theirs.SelfComposedDpEvent(theirs.PoissonSampledDpEvent(0.02, GAUSSIAN), 100), theirs.LaplaceDpEvent(3.0)],
    ids=lambda event: type(event).__name__,
)
def test_both_libraries_agree_when_a_record_is_added_or_removed(event: Any) -> None:
    bound = epsilon(from_dp_accounting(event), delta=1e-5, tightness=1e-6)
    pld = PLDAccountant().compose(event).get_epsilon(1e-5)
    rdp = RdpAccountant().compose(event).get_epsilon(1e-5)
    # Theirs is an upper bound on a grid of 1e-4, whose tail may be cut.
    assert bound.lower - 1e-6 <= pld <= bound.upper + 2e-3
    assert bound.lower <= rdp


def test_replacement_doubles_what_a_record_moves() -> None:
    """The two accountants of dp_accounting disagree here; Quell agrees with the first."""
    pld = PLDAccountant(Relation.REPLACE_ONE).compose(GAUSSIAN).get_epsilon(1e-5)
    rdp = RdpAccountant(neighboring_relation=Relation.REPLACE_ONE).compose(GAUSSIAN).get_epsilon(1e-5)
    ours = epsilon(from_dp_accounting(GAUSSIAN), delta=1e-5, neighbors="replace")
    assert ours.lower <= pld + 1e-6 and pld <= ours.upper + 2e-3 and rdp < 0.6 * ours.lower
    # The Rényi number is right for noise over what a replacement moves.
    moved = from_dp_accounting(GAUSSIAN, noise_over="replacement")
    assert moved == Gaussian(4)
    assert epsilon(moved, delta=1e-5, neighbors="replace").lower <= rdp
    fixed = theirs.SampledWithoutReplacementDpEvent(100, 10, GAUSSIAN)
    rdp = RdpAccountant(neighboring_relation=Relation.REPLACE_ONE).compose(fixed).get_epsilon(1e-5)
    contribution, replacement = (
        epsilon(from_dp_accounting(fixed, noise_over=each), delta=1e-5, neighbors="replace").upper  # type: ignore[arg-type]
        for each in ("contribution", "replacement")
    )
    assert replacement <= rdp < contribution
    # An integer that a replacement moves by three has no contribution of one record.
    assert from_dp_accounting(theirs.DiscreteLaplaceDpEvent(0.5, 4), noise_over="replacement") == DiscreteLaplace(2, 2)
    with pytest.raises(UnsupportedError, match="expected an even number"):
        from_dp_accounting(theirs.DiscreteLaplaceDpEvent(0.5, 3), noise_over="replacement")


def test_randomized_response_and_the_best_of_trials_cost_at_most_what_they_say() -> None:
    response = theirs.RandomizedResponseDpEvent(0.5, 2)
    accountant = PLDAccountant(Relation.REPLACE_ONE).compose(response)
    ours = epsilon(from_dp_accounting(response), delta=1e-5, neighbors="replace")
    assert ours.lower <= accountant.get_epsilon(1e-5) <= ours.upper + 2e-3
    best = theirs.RepeatAndSelectDpEvent(GAUSSIAN, 5, 1)
    rdp = RdpAccountant().compose(best).get_epsilon(1e-5)
    assert epsilon(from_dp_accounting(best), delta=1e-5).upper <= rdp * (1 + 1e-6)


def test_dp_accounting_is_imported_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys, quell.accounting as a; a.epsilon(a.Gaussian(2), delta=1e-5); assert 'dp_accounting' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    monkeypatch.setitem(sys.modules, "dp_accounting.dp_event", None)
    with pytest.raises(UnsupportedError, match="dp_accounting is not installed") as refused:
        to_dp_accounting(Gaussian(2))
    assert refused.value.hint == "pip install dp-accounting"


HISTORY = [(1.1, 0.01, 5000), (1.3, 0.01, 1000)]


@pytest.mark.parametrize(
    "history",
    [
        HISTORY,
        tuple(list(entry) for entry in HISTORY),
        SimpleNamespace(history=HISTORY),
        SimpleNamespace(accountant=SimpleNamespace(history=HISTORY)),
        {"history": HISTORY, "mechanism": "prv"},
    ],
    ids=["list", "tuple", "accountant", "engine", "state"],
)
def test_a_history_of_opacus_is_a_composition(history: Any) -> None:
    run = from_opacus(history, poisson_sampling=True)
    first, second = (
        dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=steps) for noise, rate, steps in HISTORY
    )
    assert run == first + second
    # Opacus 1.6.0 says 3.768219737 by its PRV accountant, with an error of 0.01, and 4.093295611 by Rényi divergences.
    bound = epsilon(run, delta=1e-5)
    assert bound.lower - 0.01 <= 3.768219737 <= bound.upper + 0.01
    assert bound.upper < 4.093295611
    renyi = epsilon(run, delta=1e-5, accountant="rdp").upper
    assert renyi == pytest.approx(4.093295611, rel=1e-3)


def test_a_history_of_one_entry_is_one_run() -> None:
    run = dp_sgd(noise_multiplier=1.1, sampling_rate=0.01, steps=5000)
    assert from_opacus(HISTORY[:1], poisson_sampling=True) == run
    assert from_opacus([], poisson_sampling=True) == Composed()


def test_opacus_without_poisson_sampling_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="its ε is not proven") as refused:
        from_opacus(HISTORY, poisson_sampling=False)
    assert refused.value.hint is not None and "poisson_sampling=True" in refused.value.hint
    with pytest.raises(TypeError, match="poisson_sampling"):
        from_opacus(HISTORY)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("history", "said"),
    [
        (3, "the history is of type int, expected a list"),
        ("history", "the history is of type str"),
        ({"mechanism": "rdp"}, "the history is of type dict"),
        ([(1.1, 0.01)], "an entry of the history has 2 members, expected three"),
        ([1.1, 0.01, 5], "an entry of the history has 0 members"),
        ([(1.1, 2.0, 5)], "sampling_rate is 2, expected a number in"),
        ([(0.0, 0.01, 5)], "noise_multiplier is 0, expected a number in"),
    ],
)
def test_what_is_no_history_is_refused(history: Any, said: str) -> None:
    with pytest.raises(SettingError, match="^" + said.replace("(", r"\(")):
        from_opacus(history, poisson_sampling=True)
