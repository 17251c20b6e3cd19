"""Events: values that are read and written exactly as a ledger stores them."""

import copy
import json
import pickle
import re

import numpy as np
import pytest

import quell
from quell import SettingError
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
    PoissonSampled,
    Pure,
    RandomizedResponse,
    Renyi,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
    ZeroConcentrated,
    dp_sgd,
    epsilon,
)

# Every kind of event, as the library writes it.
WRITTEN = {
    Gaussian(2): '{"gaussian":{"noise_multiplier":2.0}}',
    Laplace(0.1): '{"laplace":{"noise_multiplier":0.1}}',
    DiscreteGaussian(3.5, 2): '{"discrete_gaussian":{"deviation":3.5,"sensitivity":2}}',
    DiscreteLaplace(1e6): '{"discrete_laplace":{"scale":1000000.0,"sensitivity":1}}',
    RandomizedResponse(4, 0.5): '{"randomized_response":{"choices":4,"randomized":0.5}}',
    Exponential(0.3): '{"exponential":{"epsilon":0.3}}',
    Pure(1.5): '{"pure":{"epsilon":1.5}}',
    Approximate(0.5, 1e-7): '{"approximate":{"epsilon":0.5,"delta":1e-7}}',
    ZeroConcentrated(0.125): '{"zero_concentrated":{"rho":0.125}}',
    Renyi([(2, 0.5), (3.5, 1)]): '{"renyi":{"curve":[[2.0,0.5],[3.5,1.0]]}}',
    PoissonSampled(Laplace(1), 1e-5): '{"poisson_sampled":{"rate":0.00001,"event":{"laplace":{"noise_multiplier":1.0}}}}',
    SampledWithoutReplacement(Gaussian(1), 64, 5000): '{"sampled_without_replacement":{"batch":64,"records":5000,'
    '"event":{"gaussian":{"noise_multiplier":1.0}}}}',
    SampledWithReplacement(Gaussian(1), 64, 5000): '{"sampled_with_replacement":{"batch":64,"records":5000,'
    '"event":{"gaussian":{"noise_multiplier":1.0}}}}',
    Composed([Pure(1), NonPrivate()]): '{"composed":[{"pure":{"epsilon":1.0}},"non_private"]}',
    Composed(): '{"composed":[]}',
    Repeated(Pure(1), 2**60): '{"repeated":{"count":1152921504606846976,"event":{"pure":{"epsilon":1.0}}}}',
    NonPrivate(): '"non_private"',
    PerturbedObjective(2, 0.25): '{"perturbed_objective":{"noise_multiplier":2.0,"curvature_ratio":0.25}}',
    HiddenState(20, 0.99, 1000): '{"hidden_state":{"noise_multiplier":20.0,"contraction":0.99,"steps":1000}}',
    HiddenState(20, 1, 10, 3): '{"hidden_state":{"noise_multiplier":20.0,"contraction":1.0,"steps":10,"diameter":3.0}}',
    BestOf(10, [Gaussian(1), Gaussian(2)]): '{"best_of":{"expected":10,"trials":[{"gaussian":'
    '{"noise_multiplier":1.0}},{"gaussian":{"noise_multiplier":2.0}}]}}',
}


@pytest.mark.parametrize("event", WRITTEN, ids=repr)
def test_an_event_is_written_and_read_as_the_ledger_does(event: Event) -> None:
    written = WRITTEN[event]
    assert event.to_json() == written
    assert event.to_json(versioned=True) == f'{{"version":1,"event":{written}}}'
    for form in [written, event.to_json(versioned=True), written.encode()]:
        assert Event.from_json(form) == event
    if isinstance(json.loads(written), dict):
        assert Event.from_json(json.loads(written)) == event


@pytest.mark.parametrize("event", WRITTEN, ids=repr)
def test_an_event_is_a_value(event: Event) -> None:
    for other in [eval(repr(event)), pickle.loads(pickle.dumps(event)), copy.deepcopy(event)]:
        assert other == event and hash(other) == hash(event) and type(other) is type(event)
    assert len({event, *WRITTEN}) == len(WRITTEN)


def test_every_kind_of_the_library_has_a_class() -> None:
    with pytest.raises(SettingError) as refused:
        Event.from_json('{"unheard":{}}')
    kinds = set(re.findall("`([a-z_]+)`", refused.value.message)) - {"unheard"}
    assert {kind._kind for kind in Event.__subclasses__()} == kinds
    assert {type(event) for event in WRITTEN} == set(Event.__subclasses__())


def test_combinators_make_the_events_that_their_names_say() -> None:
    step = Gaussian(1.1).poisson_sampled(0.01)
    assert step == PoissonSampled(Gaussian(1.1), 0.01)
    assert dp_sgd(noise_multiplier=1.1, sampling_rate=0.01, steps=5) == step.repeated(5) == Repeated(step, 5)
    fixed = Gaussian(2).sampled_without_replacement(batch=3, records=7)
    assert fixed == SampledWithoutReplacement(Gaussian(2), batch=3, records=7)
    drawn = Gaussian(2).sampled_with_replacement(batch=3, records=7)
    assert drawn == SampledWithReplacement(Gaussian(2), batch=3, records=7)
    assert Gaussian(2).best_of(4) == BestOf(4, [Gaussian(2)])
    a, b, c = Gaussian(1), Laplace(2), Pure(3)
    assert a + b + c == Composed([a, b, c]) == a + (b + c) == sum([a, b, c])
    with pytest.raises(TypeError):
        a + 1  # type: ignore[operator]


def test_numbers_of_numpy_are_numbers() -> None:
    assert Gaussian(np.float64(2)) == Gaussian(2)
    assert Laplace(np.float32(0.5)).repeated(np.int64(3)) == Laplace(0.5).repeated(3)
    assert type(Gaussian(np.float64(2)).noise_multiplier) is float


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Gaussian(0), "noise_multiplier is 0, expected a number in [1e-6, 1e12]"),
        (lambda: Gaussian(-1), "noise_multiplier is -1, expected a number in [1e-6, 1e12]"),
        (lambda: Gaussian(float("nan")), "gaussian.noise_multiplier is nan, expected a finite number"),
        (lambda: Gaussian("1"), "gaussian.noise_multiplier is of type str, expected a number"),
        (lambda: Gaussian(True), "gaussian.noise_multiplier is of type bool, expected a number"),
        (lambda: Gaussian(1).poisson_sampled(1.5), "sampling_rate is 1.5, expected a number in [1e-15, 1]"),
        (lambda: Gaussian(1).repeated(1.0), "repeated.count is of type float, expected a whole number"),
        (lambda: Gaussian(1).repeated(-1), "repeated.count is -1, expected a whole number from 0 on"),
        (lambda: Approximate(1, 0), "delta is 0, expected a number in (0, 1)"),
        (lambda: Renyi([(1, 1)]), "order is 1, expected a number in (1, inf)"),
        (lambda: Renyi([2, 3]), "renyi.curve is not a list of pairs, expected pairs of an order and a bound"),
        (lambda: Composed([Gaussian(1), 2]), "a member of composed.events is of type int, expected an event"),
        (lambda: Composed(Gaussian(1)), "composed.events is of type Gaussian, expected a list of events"),
        (lambda: PoissonSampled("x", 0.1), "poisson_sampled.event is of type str, expected an event"),
        (lambda: Event(), "an event has a kind"),
        (lambda: Event.from_json("{"), "EOF while parsing"),
        (lambda: Event.from_json(3), "the event is of type int, expected JSON text"),
        (lambda: Event.from_json('{"gaussian":{"noise_multiplier":1,"more":2}}'), "unknown field `more`"),
        (lambda: Event.from_json('{"gaussian":{"noise_multiplier":1,"noise_multiplier":2}}'), "duplicate field"),
        (lambda: Event.from_json('{"version":2,"event":"non_private"}'), "event version is 2, expected 1"),
        (lambda: epsilon("gaussian", delta=1e-5), "the event is of type str, expected an event"),
    ],
)
def test_what_is_not_an_event_is_refused(make, said: str) -> None:
    with pytest.raises(SettingError) as refused:
        make()
    assert said in refused.value.message


def test_deep_nesting_is_refused_and_not_a_crash() -> None:
    for depth in [200, 20_000]:
        event: Event = Gaussian(1)
        for _ in range(depth):
            event = event.repeated(1)
        with pytest.raises(SettingError):
            epsilon(event, delta=1e-5)


def test_events_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Gaussian(1).noise_multiplier = 2  # type: ignore[misc]


def test_events_of_a_ledger_are_read() -> None:
    ledger = quell.Ledger.in_memory("survey", epsilon=1, delta=1e-6)
    quell.Private({"x": [1.0, 2.0]}, ledger=ledger).count(epsilon=0.5)
    (charge,) = ledger.charges
    assert epsilon(Event.from_json(charge.event), delta=1e-6).upper == pytest.approx(0.5, rel=1e-3)
