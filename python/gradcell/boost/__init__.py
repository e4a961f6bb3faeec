"""MindSpore's boost: gradients added up over steps."""

from __future__ import annotations

from gradcell.boost.grad_accumulation import GradientAccumulation

__all__ = ["GradientAccumulation"]
__dir__ = sorted(__all__).copy
