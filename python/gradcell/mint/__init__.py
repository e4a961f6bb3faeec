"""mindspore.mint: the ops with PyTorch's names and argument orders.

The functions are rows of table.py, made when they are first asked for; nn, linalg and special
are modules.
"""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module
from typing import Any as _Any

from gradcell.mint.table import FORMS as _FORMS

_MODULES = ("linalg", "nn", "special")
__all__ = [*_FORMS.rows, *_MODULES]

if _typing.TYPE_CHECKING:
    from gradcell.mint._tables import *  # noqa: F403

from gradcell.base.signposts import missing as _missing  # noqa: E402

if not _typing.TYPE_CHECKING:  # a misspelt name is an error to a type checker

    def __getattr__(name: str) -> _Any:
        if name in _MODULES:
            return _import_module(f"gradcell.mint.{name}")
        if name not in _FORMS:
            raise _missing("gradcell.mint", name, __all__)
        value = _FORMS.make(name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
