# %% [markdown]
# # Train on a table
#
# A model of incomes from a made-up census, with ε = 1 for each person. You need nothing but the records and ε.

# %%
import pathlib

import numpy as np
import pandas as pd

import quell

people = pd.read_csv(pathlib.Path(__file__).parents[1] / "census.csv")
# These people are made up. We take the last thousand as records that are public.
census, public = people[:-1000], people[-1000:]
census.head()

# %% [markdown]
# A ledger is the budget of a dataset. Every release is charged to it before it is made.

# %%
ledger = quell.Ledger.create("census", epsilon=3, delta=1e-6)
ledger

# %% [markdown]
# What is public about the columns can be declared. What is not declared is released first, for a tenth of ε.

# %%
model = quell.train(
    census, label="income", classes=["<=50K", ">50K"], epsilon=1, ledger=ledger, test=public
)
print(model)
print(ledger)

# %%
measures = model.measures["classes"]
print(f"accuracy {measures['correct'] / measures['count']:.3f}")
assert measures["correct"] > 0.7 * measures["count"]

# %% [markdown]
# The model is public. It says what paid for it, and what it learned.

# %%
print(model.statement)
print(model.settings["data"]["schema"]["column"][0])
assert ledger.spent <= 1
model.save("income.safetensors")
assert (quell.Model.open("income.safetensors").predict(census) == model.predict(census)).all()

# %% [markdown]
# A second run costs again. A run that no longer fits is refused, and costs nothing.

# %%
quell.train(census, label="income", classes=["<=50K", ">50K"], epsilon=1, ledger=ledger)
try:
    quell.train(census, label="income", epsilon=2, ledger=ledger)
except quell.BudgetError as refused:
    print(refused)
else:
    raise AssertionError("the budget was not kept")
assert np.isfinite(ledger.spent) and ledger.spent <= 3
