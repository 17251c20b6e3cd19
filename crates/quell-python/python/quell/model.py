"""Trained models: predictions, measures, and what paid for them."""

from __future__ import annotations

import json
import math
import os
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native
from .errors import DataError, SettingError
from .inputs import as_numbers, codes_of, examples_of, native_records
from .receipts import Receipt

__all__ = ["Model"]


class Model:
    """A trained model. It is public: everything in it was paid for.

    Predictions cost nothing of the training data. Nothing protects the records that are predicted.
    """

    def __init__(self, native: _native.Model, *, outcome: dict[str, Any] | None = None) -> None:
        """Wraps a native model. Use `quell.train` or `Model.open` instead."""
        self._native = native
        self._outcome = outcome

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Model:
        """Opens the model of a run folder, or a model file. The command and Rust programs write the same files."""
        return cls(_native.Model.open(os.fspath(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file, with settings, payment and promise."""
        with open(path, "wb") as file:
            file.write(self._native.save())

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Writes an ONNX file for other programs. Columns of a table become named inputs."""
        data = self._native.onnx()
        with open(path, "wb") as file:
            file.write(data)

    @cached_property
    def about(self) -> dict[str, Any]:
        """Settings, payment, promise, and what the model learned."""
        about: dict[str, Any] = json.loads(self._native.about())
        return about

    @property
    def classes(self) -> list[Any] | None:
        """The classes, of the type of the labels; `None` for a model that predicts no classes.

        A model that was opened from a file has the texts of its classes.
        """
        labels = (self._outcome or {}).get("labels")
        return self._native.classes if labels is None or self._native.classes is None else list(labels)

    @property
    def epsilon(self) -> float:
        """The ε of the run alone: an upper bound. Facts that were released before it cost more: see `claim`."""
        return float(self.about["epsilon"])

    @property
    def delta(self) -> float:
        """The δ of the run."""
        return float(self.about["delta"])

    @property
    def claim(self) -> str:
        """The guarantee of the run, in a line; and what facts cost that were released before it."""
        found = (self._outcome or {}).get("guarantee", self.about)
        facts = (self._outcome or {}).get("facts")
        if facts is None:
            return str(found["claim"])
        return f"{found['claim']}; facts about the columns cost ε ≤ {facts.epsilon:.4g} before, in line {facts.entry}"

    @property
    def receipt(self) -> Receipt:
        """The line of the ledger that paid for the model."""
        return Receipt.of(self.about["receipt"])

    @property
    def statement(self) -> str:
        """The promise of the ledger when the model was made, in sentences."""
        return str(self.about["statement"])

    @property
    def learned(self) -> Any:
        """Centres, directions, popular items or rules; `None` for other models."""
        return self.about["learned"]

    @property
    def curves(self) -> Any:
        """What each column adds to the scores; `None` if the model is no sum over columns."""
        return self.about["curves"]

    @property
    def weights(self) -> npt.NDArray[np.float32]:
        """All weights, in the order of the layers."""
        return self._native.weights

    @property
    def settings(self) -> dict[str, Any]:
        """All settings of the run, those that followed from public facts included."""
        return dict(self.about["configuration"])

    @property
    def remarks(self) -> list[str]:
        """What the run said about its settings and its results."""
        return list((self._outcome or {}).get("remarks", []))

    @property
    def measures(self) -> dict[str, Any] | None:
        """Measures on public test records, if the run had any."""
        found = (self._outcome or {}).get("json", {}).get("evaluation")
        return None if found is None else dict(found)

    @property
    def rows(self) -> dict[str, list[str]] | None:
        """The synthetic rows that the run made, by column; `None` if it made none."""
        found: dict[str, list[str]] | None = (self._outcome or {}).get("rows")
        return found

    @property
    def report(self) -> str | None:
        """The report of the run as an HTML page; `None` for a model that was opened from a file."""
        return (self._outcome or {}).get("report")

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class, the number or the cluster of each record."""
        records = self._records(X)
        if self.classes is not None:
            return self._named(self._native.predict_places(records), self.classes)
        if "cluster" in self.about["columns"]:
            return self._native.predict_places(records)
        if len(self.about["columns"]) > 1:
            return self._native.scores(records)
        return self._native.predict_numbers(records)

    @staticmethod
    def _named(places: npt.NDArray[np.int64], classes: list[Any]) -> npt.NDArray[Any]:
        """The class at each place. A record without a prediction has outputs that are no numbers, and gets `None`."""
        names = np.asarray(classes)
        if names.dtype.kind in "biuf" and (places >= 0).all():
            return names[places]
        found: npt.NDArray[Any] = names.astype(object)[places]
        found[places < 0] = None
        return found

    def score(self, X: Any, y: Any) -> float:
        """The accuracy on records that may be seen, or R² of numbers. It is exact, not private."""
        predicted = self.predict(X)
        if self.classes is not None:
            codes = codes_of(y, self.classes)
            return float(np.mean(codes_of(predicted, self.classes) == codes)) if len(codes) else math.nan
        truth = as_numbers(y).reshape(predicted.shape)
        return float(1 - np.sum((truth - predicted) ** 2) / np.sum((truth - truth.mean()) ** 2))

    def predict_proba(self, X: Any) -> npt.NDArray[np.float32]:
        """The probability of each class, in the order of `classes`."""
        if self.classes is None:
            raise SettingError("the model predicts no classes, so there are no probabilities", "use predict")
        scores = self._native.scores(self._records(X))
        return scores.reshape(len(scores), len(self.classes)) if scores.size else np.empty((0, len(self.classes)), np.float32)

    def scores(self, X: Any) -> npt.NDArray[np.float32]:
        """The numbers from which a prediction follows: probabilities, coordinates or squared distances."""
        return self._native.scores(self._records(X))

    def evaluate(self, X: Any, y: Any) -> dict[str, Any]:
        """Measures on records that may be seen, such as public test records. They are exact, not private."""
        if self.settings["data"].get("schema") is not None:
            raise DataError(
                "the model was trained on a table, and evaluate takes arrays",
                "score(X, y) is the accuracy or R²; sklearn.metrics has more, from predict and the targets",
            )
        found: dict[str, Any] = json.loads(self._native.evaluate(examples_of(X, y, classes=self.classes)))
        return found

    def _records(self, X: Any) -> Any:
        return native_records(X, self.settings["data"].get("schema"), self._native.shape)

    def __repr__(self) -> str:
        title = self.about["title"]
        return f"<quell.Model: {title}; {self.claim}>"

    def _repr_html_(self) -> str:
        if self.report is None:
            return f"<pre>{self!r}</pre>".replace("<quell", "&lt;quell")
        # A frame of its own keeps the style of the report from that of the notebook.
        escaped = self.report.replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{escaped}" style="width: 100%; height: 40em; border: 0"></iframe>'

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (self._native.save(), self._outcome))


def _restore(data: bytes, outcome: dict[str, Any] | None) -> Model:
    return Model(_native.Model.restore(data), outcome=outcome)
