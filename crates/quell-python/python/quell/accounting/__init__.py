"""What a release costs: events, accountants, calibration, attacks and curves. No data and no ledger are needed.

>>> from quell.accounting import dp_sgd, epsilon
>>> run = dp_sgd(noise_multiplier=1.1, sampling_rate=0.01, steps=10_000)
>>> print(epsilon(run, delta=1e-5))
5.189 ≤ ε ≤ 5.194
"""

from .accountants import (
    ACCOUNTANTS,
    Accountant,
    Comparison,
    compare,
    delta,
    epsilon,
    group_epsilon,
    renyi_divergence,
)
from .attacks import TradeOff
from .bounds import Bound
from .calibration import Calibrated, calibrate, calibrate_dp_sgd, gaussian_noise
from .curves import (
    Curves,
    Series,
    delta_over_epsilon,
    epsilon_over_steps,
    noise_densities,
    renyi_curve,
)
from .dp_accounting_events import from_dp_accounting, to_dp_accounting
from .events import (
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
)
from .opacus_history import from_opacus

__all__ = [
    "ACCOUNTANTS",
    "Accountant",
    "Approximate",
    "BestOf",
    "Bound",
    "Calibrated",
    "Comparison",
    "Composed",
    "Curves",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "Gaussian",
    "HiddenState",
    "Laplace",
    "NonPrivate",
    "PerturbedObjective",
    "PoissonSampled",
    "Pure",
    "RandomizedResponse",
    "Renyi",
    "Repeated",
    "SampledWithReplacement",
    "SampledWithoutReplacement",
    "Series",
    "TradeOff",
    "ZeroConcentrated",
    "calibrate",
    "calibrate_dp_sgd",
    "compare",
    "delta",
    "delta_over_epsilon",
    "dp_sgd",
    "epsilon",
    "epsilon_over_steps",
    "from_dp_accounting",
    "from_opacus",
    "gaussian_noise",
    "group_epsilon",
    "noise_densities",
    "renyi_curve",
    "renyi_divergence",
    "to_dp_accounting",
]
