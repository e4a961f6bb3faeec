"""mindspore.mint.special: rows of mint's table."""

from __future__ import annotations

import typing as _typing
from typing import Any as _Any

from gradcell.mint.table import SPECIAL as _FORMS

__all__ = [*_FORMS.rows]

if _typing.TYPE_CHECKING:
    from gradcell.mint._special_tables import *  # noqa: F403

if not _typing.TYPE_CHECKING:  # a misspelt name is an error to a type checker

    def __getattr__(name: str) -> _Any:
        if name not in _FORMS:
            raise AttributeError(f"module 'gradcell.mint.special' has no attribute {name!r}")
        value = _FORMS.make(name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
