"""The examples of the guide that need a framework run, page by page, and the doc examples of both packages."""

from __future__ import annotations

import doctest
import importlib
import pathlib
import re

import pytest

GUIDE = pathlib.Path(__file__).parents[4] / "docs" / "guide"
FENCE = re.compile(r"^```python frameworks\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = sorted(page.name for page in GUIDE.glob("*.md") if FENCE.search(page.read_text(encoding="utf-8")))
MODULES = ["quell.torch", "quell.torch.private", "quell.jax", "quell.jax.private", "quell.descents"]


def test_there_are_pages() -> None:
    assert PAGES == ["coming-from-opacus.md", "python-frameworks.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run(page: str) -> None:
    text = (GUIDE / page).read_text(encoding="utf-8")
    exec("\n".join(FENCE.findall(text)), {"__name__": page})


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    for item in module.__all__:
        assert getattr(getattr(module, item), "__doc__", None) or item in ("Clipping", "Method")
    assert doctest.testmod(module).failed == 0
