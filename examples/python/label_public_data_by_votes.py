# %% [markdown]
# # Label public data by votes
#
# Hospitals have labelled records, and you have public ones without labels. Teachers that learn from disjoint shards of
# the private records vote about the public ones, and noisy winners are released. A student learns from them for nothing.

# %%
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import quell

X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
private, public = slice(0, 1400), slice(1400, None)

# %% [markdown]
# Any estimator or function can be a teacher. Quell makes the shards: the shard of a record depends on that record alone.

# %%
ledger = quell.Ledger.in_memory("digits", epsilon=8, delta=1e-5)
pate = quell.Pate.train(
    LogisticRegression(max_iter=200), X[private], y[private], teachers=50, classes=range(10), ledger=ledger
)
labels = pate.answer(X[public], epsilon=8, answers=100, aggregator="gaussian")
right = np.mean([labels.answers[place] == y[public][place] for place in labels.answered])
print(f"{len(labels.answered)} answers, {right:.0%} right, ε = {labels.epsilon:.2f}")
assert right > 0.7

# %% [markdown]
# The student is computed from released labels, so it costs nothing.

# %%
student = LogisticRegression(max_iter=200).fit(X[public][labels.answered], labels.labels.astype(int))
print(f"the student is right about {student.score(X[public], y[public]):.0%} of the public records")
assert student.score(X[public], y[public]) > 0.5

# %% [markdown]
# Without teachers: the nearest private records vote, within a random sample of them.

# %%
other = quell.Ledger.in_memory("digits", epsilon=3, delta=1e-5)
nearest = quell.PrivateKnn(X[private], y[private], classes=range(10), ledger=other, neighbors=60, rate=0.3)
answers = nearest.answer(X[public], epsilon=3, answers=40)
print(answers)
