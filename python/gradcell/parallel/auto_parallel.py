"""AutoParallel, under MindSpore's module name."""

from __future__ import annotations

from gradcell.parallel.algorithm import AutoParallel

__all__ = ["AutoParallel"]
__dir__ = sorted(__all__).copy
