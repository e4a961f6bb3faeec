"""Cells around a network: its loss, its gradients, one training step."""

from gradcell.nn.wrap.grad_reducer import DistributedGradReducer
from gradcell.nn.wrap.loss_scale import (
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    TrainOneStepWithLossScaleCell,
)

from gradcell.nn.wrap.cell_wrapper import (  # isort: skip
    ForwardValueAndGrad, ParameterUpdate, TrainOneStepCell, WithEvalCell, WithGradCell, WithLossCell,
)  # fmt: skip

__all__ = [
    "DistributedGradReducer", "DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell",
    "ForwardValueAndGrad", "ParameterUpdate", "TrainOneStepCell", "TrainOneStepWithLossScaleCell",
    "WithEvalCell", "WithGradCell", "WithLossCell",
]  # fmt: skip
__dir__ = sorted(__all__).copy
