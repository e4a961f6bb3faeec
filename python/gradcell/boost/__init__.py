"""MindSpore's boost: gradients added up over steps."""

from gradcell.boost.grad_accumulation import GradientAccumulation

__all__ = ["GradientAccumulation"]
__dir__ = sorted(__all__).copy
