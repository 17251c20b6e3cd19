# %% [markdown]
# # Compute what a run costs
#
# The accountant alone: no data, no ledger. ε is an interval, and only its upper end may be claimed.

# %%
from quell.accounting import (
    Laplace,
    TradeOff,
    calibrate,
    calibrate_dp_sgd,
    compare,
    dp_sgd,
    epsilon,
    epsilon_over_steps,
    from_opacus,
)

run = dp_sgd(noise_multiplier=1.1, sampling_rate=0.01, steps=10_000)
bound = epsilon(run, delta=1e-5)
print(bound, bound.accountant)
assert bound.lower <= 5.1926 <= bound.upper

# %% [markdown]
# All accountants side by side. Estimates are marked, and cannot be claimed.

# %%
print(compare(run, delta=1e-5))

# %% [markdown]
# The noise, the sampling rate or the number of steps that a budget allows:

# %%
found = calibrate_dp_sgd(epsilon=2, delta=1e-5, sampling_rate=0.01, steps=6000)
print(found.value, found.bound)
assert found.bound.upper <= 2

# %% [markdown]
# The same for anything that you can write as an event: here, a hundred counts and one training run.

# %%
both = calibrate(lambda scale: run + Laplace(scale).repeated(100), epsilon=8, delta=1e-5)
print(both.value, both.event)

# %% [markdown]
# What can an attacker do? At a false-positive rate of 1 %, how many members are found at most?

# %%
print(TradeOff(run).power(0.01))

# %% [markdown]
# The ε of an Opacus run, checked in one line: pass `privacy_engine.accountant`, or its history.

# %%
print(epsilon(from_opacus([(1.1, 0.01, 10_000)], poisson_sampling=True), delta=1e-5))

# %% [markdown]
# Curves are numbers first. `.plot()` draws them, if matplotlib is there.

# %%
curves = epsilon_over_steps(run, delta=1e-5, accountants=["pld", "rdp"])
print(curves)
assert curves.series[0].upper[-1] <= curves.series[1].upper[-1]
