"""MindSpore's boost: gradients added up over steps."""

from __future__ import annotations

from gradcell.boost.grad_accumulation import GradientAccumulation

__all__ = ["GradientAccumulation"]


def __dir__() -> list[str]:
    return sorted(__all__)
