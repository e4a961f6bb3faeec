"""Loss functions as cells."""

from __future__ import annotations

from typing import Any

from gradcell._core import Tensor
from gradcell._core import ops as _ops
from gradcell.nn.arguments import check_choice, check_tensor
from gradcell.nn.cell import Cell


class LossBase(Cell):
    """The base of losses: `get_loss` reduces elementwise losses.

    reduction: 'mean', 'sum' or 'none' (also None). Raises ValueError for anything else.
    """

    def __init__(self, reduction: str | None = "mean") -> None:
        super().__init__()
        if reduction is None:
            reduction = "none"
        check_choice(type(self).__name__, "reduction", reduction, ["mean", "sum", "none"])
        self.reduction = reduction
        self.average = reduction == "mean"
        self.reduce = reduction != "none"

    def get_axis(self, x: Tensor) -> tuple[int, ...]:
        """All axes of x."""
        return tuple(range(x.ndim))

    def get_loss(self, x: Tensor, weights: Any = 1.0) -> Tensor:
        """x times weights, reduced: a scalar, or x's shape for 'none'."""
        if isinstance(weights, Tensor) or weights != 1.0:
            x = _ops.mul(x, weights)
        if self.reduction == "mean":
            return _ops.mean(x)
        if self.reduction == "sum":
            return _ops.reduce_sum(x)
        return x

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """To be defined by each loss."""
        raise NotImplementedError

    def _pair(self, logits: Any, labels: Any) -> None:
        name = type(self).__name__
        check_tensor(name, "logits", logits)
        check_tensor(name, "labels", labels)


class MSELoss(LossBase):
    """(logits - labels)², reduced. Shapes that broadcast; dtypes are promoted."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._pair(logits, labels)
        return self.get_loss(_ops.square(_ops.sub(logits, labels)))
