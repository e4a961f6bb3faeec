"""mindspore.mint: the ops with PyTorch's names and argument orders.

The functions are rows of table.py, made when they are first asked for; nn, linalg and special
are modules.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any as _Any

_MODULES = ("linalg", "nn", "special")


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(f"gradcell.mint.{name}")
    forms = _import_module("gradcell.mint.table").FORMS
    if name not in forms:
        raise AttributeError(f"module 'gradcell.mint' has no attribute {name!r}")
    value = forms.make(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_import_module("gradcell.mint.table").FORMS.rows, *_MODULES})
