"""MindSpore's boost: gradients added up over steps, and layers that rest for some steps."""

from __future__ import annotations

from gradcell.boost.grad_accumulation import GradientAccumulation
from gradcell.boost.grad_freeze import FreezeOpt, GradientFreeze, ParameterProcess, freeze_cell

__all__ = ["FreezeOpt", "GradientAccumulation", "GradientFreeze", "ParameterProcess", "freeze_cell"]


def __dir__() -> list[str]:
    return sorted(__all__)
