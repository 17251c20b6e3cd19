"""Schemas: what is public about the columns of a table."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from . import _native
from .errors import SettingError

__all__ = ["AnySchema", "Bounds", "Schema"]

Bounds = tuple[float, float]
AnySchema: TypeAlias = "Schema | Mapping[str, Any] | str | os.PathLike[str]"
"""A schema, its settings, or the path of its file."""


@dataclasses.dataclass(frozen=True)
class Schema:
    """The public facts about a table: kinds, bounds and categories of its columns, and the label.

    Bounds and categories must be known without the records, or be released by `quell.find_schema`.

    >>> schema = Schema.of(label="income", classes=["low", "high"], bounds={"age": (17, 90)}, categories={"sex": ["f", "m"]})
    >>> schema
    <quell.Schema: 2 columns, predicts "income" (low, high)>
    """

    settings: dict[str, Any]
    """The schema as the command reads it from a TOML file."""

    @classmethod
    def of(
        cls,
        *,
        bounds: Mapping[str, Bounds] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        booleans: Sequence[str] = (),
        label: str | None = None,
        classes: Sequence[str] | None = None,
        target_bounds: Bounds | None = None,
        ignore: Sequence[str] = (),
        user: str | None = None,
    ) -> Schema:
        """Describes columns: numbers with bounds, then categories, then truths.

        A label has `classes`, or `target_bounds` if it is a number. A category beyond the list counts as unknown.
        """
        columns: list[dict[str, Any]] = []
        columns += [{"name": name, "bounds": [float(low), float(high)]} for name, (low, high) in (bounds or {}).items()]
        columns += [
            {"name": name, "categories": list(map(str, names)), "unknown": True}
            for name, names in (categories or {}).items()
        ]
        columns += [{"name": name, "boolean": True} for name in booleans]
        settings: dict[str, Any] = {"column": columns}
        if ignore:
            settings["ignore"] = list(ignore)
        if user is not None:
            settings["user"] = user
        if label is not None:
            settings["label"] = {"column": label}
            if classes is not None:
                settings["label"]["classes"] = list(map(str, classes))
            if target_bounds is not None:
                settings["label"]["bounds"] = [float(target_bounds[0]), float(target_bounds[1])]
        elif classes is not None or target_bounds is not None:
            raise SettingError("classes or bounds of a label are given without the label", "name the column with label=")
        return cls(settings)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Schema:
        """Reads a schema from a TOML file, as the command writes it."""
        return cls(json.loads(_native.read_schema(os.fspath(path))))

    @classmethod
    def from_any(cls, schema: AnySchema) -> Schema:
        """A schema from a schema, from settings as the command reads them, or from the path of a TOML file."""
        if isinstance(schema, Schema):
            return schema
        return cls(dict(schema)) if isinstance(schema, Mapping) else cls.read(schema)

    @property
    def label(self) -> str | None:
        """The column to predict."""
        found = self.settings.get("label", {}).get("column")
        return None if found is None else str(found)

    @property
    def user(self) -> str | None:
        """The column that says whose record it is."""
        found = self.settings.get("user")
        return None if found is None else str(found)

    @property
    def classes(self) -> list[str] | None:
        """The classes of the label; `None` if the target is a number."""
        found = self.settings.get("label", {}).get("classes")
        return None if found is None else list(found)

    @property
    def columns(self) -> list[str]:
        """The names of the columns to learn from."""
        return [column["name"] for column in self.settings.get("column", [])]

    def __repr__(self) -> str:
        count = len(self.columns)
        of = f"{count} column" + ("" if count == 1 else "s")
        if self.label is None:
            return f"<quell.Schema: {of}>"
        shown = "" if self.classes is None else f" ({', '.join(self.classes[:6])}{', …' if len(self.classes) > 6 else ''})"
        return f"<quell.Schema: {of}, predicts {json.dumps(self.label, ensure_ascii=False)}{shown}>"
