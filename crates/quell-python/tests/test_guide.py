"""The Python of the README and of the guide runs as it stands there.

The blocks of a page are one program. Blocks marked `python other` are of other libraries, and those marked
`python frameworks` need PyTorch or JAX: the tests of the frameworks run them.
"""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[3]
BLOCK = re.compile(r"^```(python[^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KINDS = {"python", "python other", "python frameworks"}


def pages() -> list[pathlib.Path]:
    return [ROOT / "README.md", ROOT / "crates/quell-python/README.md", *sorted((ROOT / "docs/guide").glob("*.md"))]


def blocks(page: pathlib.Path, kind: str) -> list[tuple[int, str]]:
    """The line at which each block of one kind begins, and its text."""
    text = page.read_text()
    return [
        (text.count("\n", 0, block.start(2)), block.group(2)) for block in BLOCK.finditer(text) if block.group(1) == kind
    ]


def run(page: pathlib.Path, kind: str) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for line, text in blocks(page, kind):
        # Errors name the line of the page.
        exec(compile("\n" * line + text, str(page), "exec"), names)


WITH_PYTHON = [page for page in pages() if blocks(page, "python")]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
def test_the_python_of_a_page_runs(page: pathlib.Path, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    run(page, "python")


def test_there_are_pages_with_python() -> None:
    assert {"README", "python", "statistics", "pate-and-knn"} <= {page.stem for page in WITH_PYTHON}


def test_every_block_is_of_a_known_kind() -> None:
    kinds = {(page.name, block.group(1)) for page in pages() for block in BLOCK.finditer(page.read_text())}
    assert {kind for _, kind in kinds} <= KINDS, kinds
