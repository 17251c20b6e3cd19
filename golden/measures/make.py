"""Writes measures.json: measures of predictions by scikit-learn, in double precision.

Outputs are drawn with few digits, so that 32 bits hold them exactly and some of them are equal.
"""

import json
import os

import numpy as np
import sklearn
from scipy.special import expit, softmax
from sklearn.calibration import calibration_curve
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    log_loss,
    mean_absolute_error,
    precision_recall_fscore_support,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

random = np.random.default_rng(17)


def coarse(numbers):
    """Sixteenths, which binary numbers hold exactly."""
    return np.round(16 * numbers) / 16


def classes(name, count, labels, outputs):
    binary = outputs.shape[1] == 1
    if binary:
        probabilities = np.hstack([1 - expit(outputs), expit(outputs)])
        predicted = (outputs[:, 0] > 0).astype(int)
    else:
        probabilities = softmax(outputs, axis=1)
        predicted = outputs.argmax(axis=1)
    every = list(range(count))
    precision, recall, f1, support = precision_recall_fscore_support(
        labels, predicted, labels=every, zero_division=np.nan
    )
    present = sorted(set(labels) | set(predicted))
    if count == 2:
        auc = roc_auc_score(labels, probabilities[:, 1])
        share, probability = calibration_curve(labels, probabilities[:, 1], n_bins=10)
    else:
        auc = roc_auc_score(labels, probabilities, multi_class="ovr", average="macro")
        own = probabilities[np.arange(len(labels)), predicted]
        share, probability = calibration_curve(predicted == labels, own, n_bins=10)
    features = np.zeros((len(labels), 1))
    always = DummyClassifier(strategy="most_frequent").fit(features, labels)
    return {
        "name": name,
        "loss": "binary_cross_entropy" if binary else {"cross_entropy": {}},
        "classes": count,
        "labels": labels.tolist(),
        "outputs": outputs.tolist(),
        "accuracy": accuracy_score(labels, predicted),
        "baseline": always.score(features, labels),
        "f1": f1_score(labels, predicted, labels=present, average="macro", zero_division=0.0),
        "auc": auc,
        "log_loss": log_loss(labels, probabilities, labels=every),
        "precision": [None if np.isnan(x) else x for x in precision],
        "recall": [None if np.isnan(x) else x for x in recall],
        "f1_of_classes": [None if np.isnan(x) else x for x in f1],
        "examples": support.tolist(),
        "auc_of_classes": [roc_auc_score(labels == k, probabilities[:, k]) for k in every],
        "calibration": {"probability": probability.tolist(), "share": share.tolist()},
    }


def numbers(name, targets, predictions):
    features = np.zeros((len(targets), 1))
    mean = DummyRegressor(strategy="mean").fit(features, targets)
    return {
        "name": name,
        "targets": targets.tolist(),
        "predictions": predictions.tolist(),
        "error": root_mean_squared_error(targets, predictions),
        "mean_absolute_error": mean_absolute_error(targets, predictions),
        "r_squared": r2_score(targets, predictions),
        "baseline": root_mean_squared_error(targets, mean.predict(features)),
    }


labels = random.integers(0, 2, 200)
binary = coarse(random.normal(1.5 * labels - 1, 1.5))[:, None]
rare = (random.random(300) < 0.05).astype(int)
tied = random.choice([-2.0, -0.5, 0.25], (300, 1))
three = random.integers(0, 3, 150)
three_outputs = coarse(random.normal(size=(150, 3)) + 1.2 * np.eye(3)[three])
two_outputs = coarse(random.normal(size=(120, 2)))
two = random.integers(0, 2, 120)
# The last class is never predicted. Beyond 36, scikit-learn clips log losses, and Quell does not.
four = random.integers(0, 4, 90)
four_outputs = coarse(random.normal(size=(90, 4)) - [0, 0, 0, 20])
targets = coarse(random.normal(30, 8, 100))
document = {
    "made": f"scikit-learn {sklearn.__version__}, NumPy {np.__version__}",
    "classes": [
        classes("two classes, one output", 2, labels, binary),
        classes("a rare class and tied outputs", 2, rare, tied),
        classes("two classes, two outputs", 2, two, two_outputs),
        classes("three classes", 3, three, three_outputs),
        classes("a class that is never predicted", 4, four, four_outputs),
    ],
    "numbers": [
        numbers("a fair model", targets, coarse(targets + random.normal(0, 3, 100))),
        numbers("worse than the mean", targets, coarse(random.normal(0, 30, 100))),
    ],
}
with open(os.path.join(os.path.dirname(__file__), "measures.json"), "w") as file:
    json.dump(document, file)
    file.write("\n")
