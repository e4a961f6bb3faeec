"""Every public name says what it is: modules, functions, classes, their methods and properties."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import gradcell as gc

MODULES = ["gradcell"] + [
    m.name
    for m in pkgutil.walk_packages(gc.__path__, "gradcell.")
    if not any(part.startswith("_") for part in m.name.split("."))
    and (m.name != "gradcell.deepxde" or importlib.util.find_spec("deepxde"))
]


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    for name in names:
        value = getattr(module, name)
        home = getattr(value, "__module__", None) or ""
        exported = hasattr(module, "__path__") and home.startswith("gradcell")
        if (exported or home == module.__name__) and (
            inspect.isroutine(value) or inspect.isclass(value)
        ):
            yield name, value


def text(value: Any) -> str:
    """The docstring without the signatures that pybind11 puts before it."""
    doc = inspect.getdoc(value) or ""
    return re.sub(
        r"^(\d+\. )?\w+\(.*\) -> .*$|^Overloaded function\.$", "", doc, flags=re.M
    ).strip()


def members(cls: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(cls).items():
        kinds = (property, staticmethod, classmethod)
        if not name.startswith("_") and (callable(value) or isinstance(value, kinds)):
            yield name, getattr(cls, name) if isinstance(value, kinds[1:]) else value


@pytest.mark.parametrize("name", MODULES)
def test_public_names_have_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    missing = [] if text(module) else [name]
    for label, value in public(module):
        own = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
        if not own or text(value) in ("", f"{label}."):
            missing.append(label)
        if inspect.isclass(value):
            missing += [f"{label}.{n}" for n, v in members(value) if not text(v)]
    assert not missing, f"without a docstring in {name}: {', '.join(missing)}"
