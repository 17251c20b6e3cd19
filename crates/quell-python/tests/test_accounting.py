"""Accountants, attacks, calibration and curves."""

import json
import math
import pickle
import signal
import threading
import warnings
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import quell.accounting
from quell import QuellError, SettingError, UnsupportedError
from quell.accounting import (
    ACCOUNTANTS,
    Bound,
    Composed,
    Curves,
    Event,
    Exponential,
    Gaussian,
    HiddenState,
    Laplace,
    NonPrivate,
    RandomizedResponse,
    Renyi,
    Series,
    TradeOff,
    ZeroConcentrated,
    calibrate,
    calibrate_dp_sgd,
    compare,
    delta,
    delta_over_epsilon,
    dp_sgd,
    epsilon,
    epsilon_over_steps,
    gaussian_noise,
    group_epsilon,
    noise_densities,
    renyi_curve,
    renyi_divergence,
)

RUN = dp_sgd(noise_multiplier=1.1, sampling_rate=0.01, steps=10_000)


def test_the_module_is_an_attribute_of_the_package() -> None:
    import quell

    assert quell.accounting.epsilon is epsilon
    assert all(hasattr(quell.accounting, name) for name in quell.accounting.__all__)


def test_epsilon_is_an_interval_with_its_theorem() -> None:
    # The number of prv-accountant, to its error.
    bound = epsilon(RUN, delta=1e-5)
    assert bound.lower <= 5.1925 <= bound.upper and bound.width <= 1e-3 * bound.upper
    assert (bound.accountant, bound.claimable, bound.what) == ("pld", True, "ε")
    assert bound.theorem == ACCOUNTANTS["pld"] and "[ZDW22, Theorem 10]" in bound.theorem


def test_epsilon_and_delta_are_inverse() -> None:
    spent = delta(RUN, epsilon=epsilon(RUN, delta=1e-5).upper)
    assert spent.what == "δ" and spent.lower <= 1e-5 and spent.upper == pytest.approx(1e-5, rel=0.02)


def test_tightness_narrows_the_interval() -> None:
    wide, narrow = epsilon(RUN, delta=1e-5), epsilon(RUN, delta=1e-5, tightness=1e-6)
    assert narrow.width < 0.01 * wide.width
    assert wide.lower <= narrow.lower and narrow.upper <= wide.upper
    wide, narrow = delta(RUN, epsilon=4), delta(RUN, epsilon=4, tightness=1e-5)
    assert narrow.width < 0.1 * wide.width
    with pytest.raises(SettingError, match=r"tightness is 0\.9, expected a number in \[1e-9, 0\.5\]"):
        epsilon(RUN, delta=1e-5, tightness=0.9)


def test_replacing_a_record_costs_what_half_the_noise_costs() -> None:
    assert epsilon(Gaussian(2), delta=1e-5, neighbors="replace") == epsilon(Gaussian(1), delta=1e-5)


def test_every_accountant_answers_by_its_name() -> None:
    assert list(ACCOUNTANTS) == [
        "pld",
        "rdp",
        "rdp-classic",
        "moments",
        "fourier",
        "closed",
        "basic",
        "advanced",
        "optimal",
        "clt",
    ]
    everything = compare(RUN, delta=1e-5)
    assert list(everything) == list(ACCOUNTANTS) and len(everything) == 10
    truth = everything["pld"]
    assert isinstance(truth, Bound)
    for name, answer in everything.items():
        if name == "closed":
            assert isinstance(answer, UnsupportedError) and "as a single release" in answer.message
            continue
        assert isinstance(answer, Bound) and answer.accountant == name and answer.theorem == ACCOUNTANTS[name]
        assert answer.claimable is (name not in ("fourier", "clt"))
        if answer.claimable:
            assert answer.upper >= truth.lower
            assert answer == epsilon(RUN, delta=1e-5, accountant=name)  # type: ignore[arg-type]
    assert everything.claim == truth
    assert "clt" in repr(everything) and "an estimate" in repr(everything)
    assert everything._repr_html_().count("<tr>") == 11


def test_comparison_of_deltas_and_refusals() -> None:
    both = compare(RUN, epsilon=4, accountants=["pld", "rdp"])
    assert both["pld"] == delta(RUN, epsilon=4, accountant="pld") and both["pld"] == both.claim
    with pytest.raises(SettingError, match="give either delta or epsilon"):
        compare(RUN)
    with pytest.raises(UnsupportedError, match="all of these numbers are estimates"):
        compare(RUN, delta=1e-5, accountants=["clt", "fourier"]).claim


def test_only_the_upper_end_of_a_bound_may_be_claimed() -> None:
    bound = Bound(1.2341, 1.2342, "a theorem", True, "pld")
    assert float(bound) == 1.2342
    assert (f"{bound:.3f}", f"{bound:.1f}", f"{bound:g}", f"{bound:.2e}") == ("1.235", "1.3", "1.2342", "1.24e+0")
    assert str(bound) == f"{bound}" == "1.234 ≤ ε ≤ 1.235"
    assert repr(bound) == "<Bound 1.234 ≤ ε ≤ 1.235 by pld>"
    assert pickle.loads(pickle.dumps(bound)) == bound and len({bound, bound}) == 1
    infinite = epsilon(NonPrivate(), delta=1e-5)
    assert float(infinite) == math.inf and f"{infinite:.2f}" == "inf" and infinite.width == 0
    estimate = epsilon(RUN, delta=1e-5, accountant="clt")
    for use in (float, lambda bound: f"{bound:.2f}"):
        with pytest.raises(UnsupportedError, match="clt gives an estimate of ε, which cannot be claimed") as refused:
            use(estimate)
        assert refused.value.hint is not None and 'accountant="best"' in refused.value.hint
    assert str(estimate).endswith(", an estimate")


@pytest.mark.parametrize(
    ("ask", "error", "said", "hint"),
    [
        (lambda: epsilon(RUN, delta=0), SettingError, "delta is 0, expected a number in (0, 1)", None),
        (lambda: epsilon(RUN, delta="x"), SettingError, "delta is of type str, expected a number", None),
        (lambda: delta(RUN, epsilon=-1), SettingError, "epsilon is -1, expected a number in [0, inf)", None),
        (lambda: delta(RUN, epsilon=math.nan), SettingError, "epsilon is NaN, expected", None),
        (
            lambda: epsilon(RUN, delta=1e-5, accountant="prv"),
            SettingError,
            'accountant is "prv", expected "best" or one of "pld"',
            None,
        ),
        (
            lambda: epsilon(RUN, delta=1e-5, neighbors="add"),
            SettingError,
            'neighbors is "add", expected "add_remove" or "replace"',
            None,
        ),
        (
            lambda: epsilon(Gaussian(2).sampled_without_replacement(batch=64, records=5000), delta=1e-6),
            UnsupportedError,
            "no theorem for sampled_without_replacement(gaussian)",
            'pass neighbors="replace"',
        ),
        (lambda: epsilon(RandomizedResponse(2, 0.5), delta=1e-6), UnsupportedError, "use replace", "replace"),
        (
            lambda: epsilon(ZeroConcentrated(1), delta=1e-6, accountant="pld"),
            UnsupportedError,
            "no dominating pair",
            'leave out accountant, or pass accountant="rdp"',
        ),
        (
            lambda: epsilon(HiddenState(1, 0.9, 10).poisson_sampled(0.1), delta=1e-5),
            UnsupportedError,
            "no theorem for hidden_state",
            "describe the release as Pure, Approximate, ZeroConcentrated or Renyi",
        ),
        (
            lambda: epsilon(Gaussian(2).sampled_without_replacement(batch=9, records=5), delta=1e-6, neighbors="replace"),
            SettingError,
            "is malformed",
            "which number of the event does not fit",
        ),
        (lambda: renyi_divergence(RUN, order=1), SettingError, "order is 1, expected a number in (1, inf)", None),
        (lambda: group_epsilon(RUN, delta=1e-5, size=0), SettingError, "size is 0", None),
        (lambda: gaussian_noise(epsilon=1, delta=1e-5, textbook=True), SettingError, "epsilon is 1, expected", None),
        (lambda: TradeOff(RUN).power(1.5), SettingError, "probability is 1.5, expected", None),
        (lambda: TradeOff(RUN).curve(points=1), SettingError, "points is 1", None),
        (lambda: calibrate(Laplace), SettingError, "no single target is given", "give epsilon and delta"),
        (lambda: calibrate(Laplace, epsilon=1), SettingError, "no single target is given", "epsilon and delta"),
        (lambda: calibrate(Laplace, epsilon=1, delta=1e-5, mu=1), SettingError, "no single target", "or mu"),
        (lambda: calibrate(Laplace, mu=-1), SettingError, "mu is -1, expected a number in (0, inf)", None),
        (lambda: calibrate(Laplace, epsilon=1, delta=1e-5, find="noise"), SettingError, 'find is "noise"', None),
        (
            lambda: calibrate(Laplace, epsilon=1, delta=1e-5, least=2, largest=1),
            SettingError,
            "noise_multiplier is searched from 2 to 1",
            None,
        ),
        (
            lambda: calibrate(Gaussian, true_positive_rate=0.01, false_positive_rate=0.05),
            SettingError,
            "true_positive_rate is 0.01, expected more than",
            "random guessing",
        ),
        (
            lambda: calibrate(lambda _: NonPrivate(), epsilon=1, delta=1e-5),
            SettingError,
            "no noise_multiplier in [1e-6, 1e12] reaches the target",
            "raise the target",
        ),
        (lambda: calibrate(lambda _: 3, epsilon=1, delta=1e-5), SettingError, "the event is of type int", "events"),
        (lambda: calibrate_dp_sgd(epsilon=1, delta=1e-5), SettingError, "3 of noise_multiplier", "give two of them"),
        (lambda: epsilon_over_steps(Gaussian(1), delta=1e-5), SettingError, "the number of steps is not", "steps=1000"),
        (lambda: epsilon_over_steps(Gaussian(1), delta=1e-5, steps=0), SettingError, "below one", None),
        (lambda: epsilon_over_steps(RUN, delta=1e-5, accountants=[]), SettingError, "no accountant is named", "pld"),
        (
            lambda: epsilon_over_steps(Renyi([(2, 1)]), steps=3, delta=1e-5, accountants=["pld"]),
            UnsupportedError,
            "no theorem",
            "rdp",
        ),
        (lambda: delta_over_epsilon(NonPrivate()), SettingError, "no finite ε is known", "raise smallest_delta"),
        (lambda: noise_densities(epsilon=0, delta=1e-5), SettingError, "epsilon is 0, expected", None),
    ],
)
def test_refusals_say_what_is_expected(ask: Any, error: type[QuellError], said: str, hint: str | None) -> None:
    with pytest.raises(error) as refused:
        ask()
    assert said in refused.value.message
    assert (refused.value.hint is None) if hint is None else (hint in (refused.value.hint or ""))
    assert "--" not in str(refused.value)


def test_an_attack_has_an_interval() -> None:
    attack = TradeOff(RUN)
    power = attack.power(0.01)
    assert 0.01 < power.lower <= power.upper < 0.5 and power.what == "true-positive rate"
    lower, upper = attack.powers([0.0, 0.01, 1.0])
    assert (lower[1], upper[1]) == (power.lower, power.upper) and upper[2] == 1.0
    assert attack.powers([])[0].shape == (0,)
    exact = TradeOff(Gaussian(2)).power(0.05)
    truth = NormalDist().cdf(NormalDist().inv_cdf(0.05) + 0.5)
    assert exact.lower <= truth <= exact.upper and exact.width < 1e-9
    assert TradeOff(Gaussian(2), neighbors="replace").power(0.05).lower > exact.upper
    assert TradeOff(Gaussian(2)).gaussian().upper == pytest.approx(0.5, rel=1e-12)
    mu = attack.gaussian(slack=1e-6)
    assert 0 < mu.lower <= mu.upper < 2 and mu.what == "μ"
    again = pickle.loads(pickle.dumps(attack))
    assert again.power(0.01) == power and (again.event, again.neighbors) == (RUN, "add_remove")
    assert eval(repr(attack)).event == RUN


def test_the_trade_off_curve_claims_its_lower_end() -> None:
    curve, guessing = TradeOff(Gaussian(1)).curve(points=11)
    assert curve.claim == "lower" and len(curve.x) == 11
    assert (curve.x[0], curve.x[-1], curve.upper[0], curve.lower[-1]) == (0, 1, 1, 0)
    assert np.all(curve.lower <= curve.upper) and np.all(np.diff(curve.upper) <= 0)
    assert np.all(curve.lower <= 1 - curve.x + 1e-12) and np.all(guessing.lower == 1 - guessing.x)


@pytest.mark.parametrize("given", ["noise_multiplier", "sampling_rate", "steps"])
def test_calibration_finds_the_number_that_is_missing(given: str) -> None:
    parts: dict[str, Any] = {"noise_multiplier": 1.5, "sampling_rate": 0.01, "steps": 1000}
    del parts[given]
    found = calibrate_dp_sgd(epsilon=1, delta=1e-5, **parts)
    assert found.find == given and float(found.bound) <= 1
    assert found.event == dp_sgd(**parts, **{given: found.value})
    assert isinstance(found.value, int) is (given == "steps")
    assert epsilon(found.event, delta=1e-5, tightness=1e-5).lower <= 1
    factor = 0.99 if given == "noise_multiplier" else 1.02
    worse = dp_sgd(**parts, **{given: type(found.value)(found.value * factor)})
    assert epsilon(worse, delta=1e-5).upper > 1


def test_calibration_reaches_other_targets() -> None:
    found = calibrate(lambda noise: Gaussian(noise).repeated(100), mu=0.5)
    assert 20 <= found.value <= 20.01 and found.bound.what == "μ" and float(found.bound) <= 0.5
    found = calibrate_dp_sgd(true_positive_rate=0.05, false_positive_rate=0.01, sampling_rate=0.01, steps=1000)
    assert found.value == pytest.approx(0.7778, rel=1e-3)
    assert TradeOff(found.event).power(0.01).lower <= 0.05
    half, one = (
        calibrate(lambda noise: Gaussian(noise), epsilon=1, delta=1e-5, neighbors=relation).value
        for relation in ("add_remove", "replace")
    )
    assert one == pytest.approx(2 * half, rel=1e-3)
    assert half == pytest.approx(gaussian_noise(epsilon=1, delta=1e-5), rel=1e-3)


def test_calibration_finds_any_number_of_an_event() -> None:
    found = calibrate(lambda each: Exponential(each).repeated(10), find="epsilon", epsilon=1, delta=1e-6)
    assert found.value >= 0.1 and float(found.bound) <= 1
    found = calibrate(lambda count: Laplace(10).repeated(count), find="count", epsilon=1, delta=1e-6)
    assert isinstance(found.value, int) and found.value >= 10 and found.event == Laplace(10).repeated(found.value)
    found = calibrate(
        lambda batch: Gaussian(2).sampled_without_replacement(batch=batch, records=1000).repeated(100),
        find="batch",
        epsilon=2,
        delta=1e-6,
        neighbors="replace",
        largest=1000,
    )
    assert 1 < found.value < 1000 and epsilon(found.event, delta=1e-6, neighbors="replace").lower <= 2


def test_an_error_of_the_function_ends_a_calibration() -> None:
    class Mine(Exception):
        pass

    def make(noise: float) -> Event:
        raise Mine("mine")

    with pytest.raises(Mine, match="mine"):
        calibrate(make, epsilon=1, delta=1e-5)


def test_an_interrupt_ends_a_calibration() -> None:
    def make(noise: float) -> Event:
        signal.raise_signal(signal.SIGINT)
        return Gaussian(noise)

    with pytest.raises(KeyboardInterrupt):
        calibrate(make, epsilon=1, delta=1e-5)


def test_threads_share_events() -> None:
    expected, answers = epsilon(RUN, delta=1e-5), []
    threads = [threading.Thread(target=lambda: answers.append(epsilon(RUN, delta=1e-5))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 8


def test_groups_cost_more_than_one_record() -> None:
    assert group_epsilon(Laplace(2), delta=1e-6, size=3).upper == pytest.approx(1.5, rel=1e-3)
    assert group_epsilon(RUN, delta=1e-5, size=1).upper >= epsilon(RUN, delta=1e-5).lower


def test_curves_hold_the_answers_of_the_accountants() -> None:
    steps = [1, 10, 100]
    curves = epsilon_over_steps(RUN.event, steps=steps, delta=1e-5, accountants=["pld", "rdp", "clt"])
    assert [series.name for series in curves] == ["pld", "rdp", "clt, an estimate"] and len(curves) == 3
    for index, count in enumerate(steps):
        bound = epsilon(RUN.event.repeated(count), delta=1e-5, accountant="pld")
        series = curves["pld"]
        assert (series.x[index], series.lower[index], series.upper[index]) == (count, bound.lower, bound.upper)
    with pytest.raises(KeyError):
        curves["moments"]
    # Without a list, points reach from the first step to the last.
    run = dp_sgd(noise_multiplier=2, sampling_rate=0.1, steps=50)
    counts = epsilon_over_steps(run, delta=1e-5)["pld"].x
    assert (counts[0], counts[-1]) == (1, 50) and np.all(np.diff(counts) > 0)
    # An accountant without a theorem is left out, if another one has one.
    assert [series.name for series in epsilon_over_steps(run, steps=[2], delta=1e-5, accountants=["closed", "pld"])] == ["pld"]
    last = epsilon_over_steps(lambda count: HiddenState(20, 0.99, count), steps=[1000, 9000], delta=1e-6, accountants=["best"])
    assert last["best"].upper[1] < 1.01 * last["best"].upper[0]

    profile = delta_over_epsilon(Gaussian(2), smallest_delta=1e-6)
    (series,) = profile
    assert profile.log_y and series.x[0] == 0 and len(series.x) == 41
    assert series.upper[-1] == pytest.approx(1e-6, rel=1e-3) and np.all(np.diff(series.upper) < 0)
    assert series.upper[0] == delta(Gaussian(2), epsilon=0).upper

    (series,) = renyi_curve(Gaussian(2), orders=[2, 8])
    assert np.allclose(series.upper, [0.25, 1.0], rtol=1e-9) and np.all(series.upper >= [0.25, 1.0])
    assert len(renyi_curve(Gaussian(2))["rdp"].x) == 101

    densities = noise_densities(epsilon=0.5, delta=1e-5)
    assert [series.name.split(",")[0] for series in densities] == ["Laplace", "exact Gaussian", "textbook Gaussian"]
    for series in densities:
        mass = float(np.sum(series.upper) * (series.x[1] - series.x[0]))
        assert mass == pytest.approx(1, abs=0.02)
    assert len(noise_densities(epsilon=2, delta=1e-5)) == 2


def test_curves_are_plotted_with_matplotlib() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    for curves in [
        epsilon_over_steps(RUN.event, steps=[1, 2], delta=1e-5, accountants=["pld", "rdp"]),
        delta_over_epsilon(Gaussian(2), epsilons=[0, 1]),
        renyi_curve(Gaussian(1)),
        noise_densities(epsilon=0.5, delta=1e-5),
        TradeOff(Gaussian(2)),
    ]:
        axes = curves.plot()
        assert axes.get_xlabel() and axes.get_ylabel() and axes.get_title() and axes.lines
        axes.figure.canvas.draw()
        pyplot.close(axes.figure)
    figure, axes = pyplot.subplots()
    infinite = Series("some", np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.0]), np.array([1.0, 2.0, np.inf]))
    assert Curves("t", "x", "y", (infinite,)).plot(axes) is axes
    assert list(axes.lines[0].get_ydata()) == [1.0, 2.0]
    pyplot.close(figure)


def test_a_plot_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(UnsupportedError, match="matplotlib is not installed") as refused:
        renyi_curve(Gaussian(1), orders=[2]).plot()
    assert refused.value.hint == "install matplotlib; the numbers are in the attribute series"


def test_a_composition_of_nothing_costs_nothing() -> None:
    assert epsilon(Composed(), delta=1e-5).upper == 0
    assert json.loads(Composed().to_json()) == {"composed": []}


def test_no_warning_is_raised_by_a_curve_with_infinite_ends() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        series = epsilon_over_steps(NonPrivate(), steps=[1, 2], delta=1e-5, accountants=["best"])["best"]
    assert np.all(np.isinf(series.upper))
