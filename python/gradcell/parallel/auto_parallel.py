"""AutoParallel, under MindSpore's module name."""

from __future__ import annotations

from gradcell.parallel.algorithm import AutoParallel

__all__ = ["AutoParallel"]


def __dir__() -> list[str]:
    return sorted(__all__)
