# %% [markdown]
# # Ask for statistics
#
# Counts, means, quantiles and histograms of a table. Each answer has a price, an error and a receipt.

# %%
import pathlib

import pandas as pd

import quell
from quell import Question

census = pd.read_csv(pathlib.Path(__file__).parents[1] / "census.csv")
ledger = quell.Ledger.create("census", epsilon=4, delta=1e-6)
people = quell.Private(census, ledger=ledger)

# %% [markdown]
# The price of a question is known before it is asked. A question that does not fit is refused, and costs nothing.

# %%
price = people.quote(Question("mean", "age", bounds=(0, 100)), epsilon=0.5)
print(price)
assert ledger.spent == 0

# %%
mean = people.mean("age", bounds=(0, 100), epsilon=0.5)
print(mean, "|", mean.error, mean.receipt)
# The census is made up, so we may look.
assert abs(mean.value - census["age"].mean()) < 1

# %% [markdown]
# Groups are disjoint, so all of them cost as much as one. Keys that are public are given; others are released, too.

# %%
by_sex = people.mean("hours_per_week", bounds=(0, 100), group_by="sex", groups=["Female", "Male"], epsilon=0.5)
print(by_sex)
by_education = people.count(group_by="education", epsilon=0.5)
print(by_education)

# %% [markdown]
# Several questions in one charge share ε. The answers are a table.

# %%
answers = people.ask(
    [Question("count"), Question("median", "age", bounds=(0, 100)), Question("variance", "age", bounds=(0, 100))],
    epsilon=1,
)
for answer in answers:
    print(answer)

# %%
print(ledger.statement())
try:
    people.count(epsilon=3)
except quell.BudgetError as refused:
    print(refused)
else:
    raise AssertionError("the budget was not kept")
assert ledger.spent <= 4
