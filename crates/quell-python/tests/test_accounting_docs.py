"""The examples in the docstrings of `quell.accounting`."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import quell.accounting

MODULES = [
    quell.accounting.__name__,
    *(f"{quell.accounting.__name__}.{module.name}" for module in pkgutil.iter_modules(quell.accounting.__path__)),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_run(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


def test_every_public_thing_has_a_docstring_with_a_short_first_line() -> None:
    for name in quell.accounting.__all__:
        thing = getattr(quell.accounting, name)
        if not callable(thing) or name == "Accountant":
            continue
        things = [thing]
        if inspect.isclass(thing):
            members = (member for key, member in vars(thing).items() if not key.startswith("_"))
            things += [
                member.fget if isinstance(member, property) else member
                for member in members
                if inspect.isfunction(member) or isinstance(member, property)
            ]
        for each in things:
            first = (each.__doc__ or "").strip().split("\n")[0]
            assert first, f"{name}: {each}"
            sentence = first.split(". ")[0].split(": ")[0]
            assert len(sentence.split()) <= 15, f"{name}: {first}"
