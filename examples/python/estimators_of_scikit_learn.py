# %% [markdown]
# # Estimators of scikit-learn
#
# Every learner is an estimator: it works in pipelines, in searches and in cross-validation, and costs what it costs.

# %%
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import cross_val_score, train_test_split

import quell
from quell.estimators import AdditiveClassifier, KMeans, LinearRegression

# %% [markdown]
# These records are public, so their bounds and classes may be read off: `public="data"` says so.

# %%
X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
classifier = AdditiveClassifier(epsilon=3, public="data").fit(X_train, y_train)
score = classifier.score(X_test, y_test)
print(f"accuracy {score:.3f} with {classifier.model_.claim}")
assert score > 0.85

# %% [markdown]
# Five folds are five fits on the same records. With a ledger they add up.

# %%
ledger = quell.Ledger.in_memory("cancer", epsilon=10, delta=1e-5)
classifier = AdditiveClassifier(epsilon=1, public="data", ledger=ledger)
scores = cross_val_score(classifier, X, y, cv=5)
print(scores.round(3), ledger)
assert len(ledger.charges) == 5

# %% [markdown]
# Clusters of handwritten digits, and a number as the target.

# %%
digits, _ = load_digits(return_X_y=True)
clusters = KMeans(10, epsilon=3, bounds=(0, 16), records=1800).fit(digits)
assert clusters.model_.learned is not None

x = np.linspace(-1, 1, 5000).reshape(-1, 1)
line = LinearRegression(epsilon=1, bounds=(-1, 1), target_bounds=(-3, 3), records=5000).fit(x, 2 * x[:, 0])
assert abs(line.predict([[0.5]])[0] - 1) < 0.1
