"""The names of gradcell.ops, under MindSpore's older module name."""

from __future__ import annotations

import typing as _typing

from gradcell import ops as _ops

if _typing.TYPE_CHECKING:
    from gradcell.ops import *  # noqa: F403
else:  # a misspelt name is an error to a type checker

    def __getattr__(name: str) -> object:
        return getattr(_ops, name)


def __dir__() -> list[str]:
    return dir(_ops)


__all__: list[str] = _ops.__all__
