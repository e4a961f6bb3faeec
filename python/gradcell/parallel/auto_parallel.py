"""AutoParallel, under MindSpore's module name."""

from gradcell.parallel.algorithm import AutoParallel

__all__ = ["AutoParallel"]
__dir__ = sorted(__all__).copy
