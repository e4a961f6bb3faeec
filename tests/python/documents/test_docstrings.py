"""Every public name says what it is: modules, functions, classes, their methods and properties."""

from __future__ import annotations

import ast
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
from gradcell import ops
from gradcell.ops.primitives import table

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


def calls(node: ast.AST) -> int:
    return sum(isinstance(each, ast.Call) for each in ast.walk(node))


def test_a_primitive_of_several_functions_has_a_text_of_its_own() -> None:
    """One function's text is the primitive's, but for a copy or a cast of an input."""
    source = ast.parse(inspect.getsource(table))
    rows = next(
        n.value
        for n in source.body
        if isinstance(n, ast.AnnAssign) and "ROWS" in ast.unparse(n.target)
    )
    assert isinstance(rows, ast.Dict)
    several = set()
    for name, row in zip(rows.keys, rows.values, strict=True):
        function = row.args[1] if isinstance(row, ast.Call) and len(row.args) == 2 else row
        if isinstance(name, ast.Constant) and isinstance(function, ast.Lambda):
            if calls(function.body) > 1 or not isinstance(function.body, ast.Call):
                several.add(name.value)
    assert several - {"DiagPart", "TraceV2"} == set(table.TEXTS)
    assert "equal" in (ops.EqualCount.__doc__ or "")


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
