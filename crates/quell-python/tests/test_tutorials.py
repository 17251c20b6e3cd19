"""The tutorials of examples/python run as they are."""

import pathlib
import runpy

import pytest

FOLDER = pathlib.Path(__file__).parents[3] / "examples" / "python"
FRAMEWORKS = {"own_module_of_pytorch.py"}
"""Tutorials that need a framework: `make test-frameworks` runs them."""
TUTORIALS = sorted(path.name for path in FOLDER.glob("*.py") if path.name not in FRAMEWORKS)


def test_there_are_tutorials():
    assert len(TUTORIALS) >= 5


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_runs(name):
    runpy.run_path(str(FOLDER / name), run_name="__main__")
