"""mindspore.mint: the ops with PyTorch's names and argument orders; nn, linalg and special are modules."""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module
from typing import Any as _Any

from gradcell.base.signposts import missing as _missing
from gradcell.mint import functions as _functions
from gradcell.mint.functions import *  # noqa: F403

_MODULES = ("linalg", "nn", "special")
__all__ = [*_functions.__all__, *_MODULES]
__dir__ = sorted(__all__).copy

if _typing.TYPE_CHECKING:
    from gradcell.mint import linalg as linalg, nn as nn, special as special
else:  # a misspelt name is an error to a type checker

    def __getattr__(name: str) -> _Any:
        if name in _MODULES:
            return _import_module(f"gradcell.mint.{name}")
        raise _missing("gradcell.mint", name, __all__)
