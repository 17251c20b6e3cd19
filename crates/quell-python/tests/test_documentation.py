"""The examples in the documentation of the package run, and everything public is documented."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import quell

# These need a framework.
FRAMEWORKS = ("quell.torch", "quell.jax")
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(quell.__path__, "quell.")
    if not module.name.startswith(FRAMEWORKS) and not module.name.endswith("_native")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.parametrize("name", ["quell", *MODULES])
def test_everything_public_has_words(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for item in getattr(module, "__all__", []):
        found = getattr(module, item)
        if inspect.isclass(found) or inspect.isfunction(found):
            assert inspect.getdoc(found), f"{name}.{item}"
