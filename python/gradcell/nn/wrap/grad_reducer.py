"""DistributedGradReducer: gradients over several devices."""

from __future__ import annotations

from typing import Any

from gradcell import arguments
from gradcell.nn.cell import Cell
from gradcell.parallel._utils import _get_device_num, _get_gradients_mean


class DistributedGradReducer(Cell):
    """Adds gradients up over all devices; mean: their mean. There is one device: the gradients."""

    def __init__(
        self,
        parameters: Any,
        mean: bool | None = None,
        degree: int | None = None,
        fusion_type: int = 1,
        group: Any = None,
    ) -> None:
        super().__init__(auto_prefix=False)
        if degree is not None:
            arguments.integer(degree, "DistributedGradReducer", "degree", 1)
        self.mean = _get_gradients_mean() if mean is None else mean
        self.degree = _get_device_num() if degree is None else degree

    def construct(self, grads: Any) -> Any:
        """The gradients."""
        return grads
