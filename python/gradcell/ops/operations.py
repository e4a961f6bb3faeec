"""The primitives of gradcell.ops, under MindSpore's older module name."""

from __future__ import annotations

from gradcell.ops import *  # noqa: F403
from gradcell.ops import __all__ as __all__


def __dir__() -> list[str]:
    return sorted({*__all__})  # forms of more arguments replace rows of the table
