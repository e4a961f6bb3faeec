"""Training: Model, callbacks, metrics, loss-scale managers, checkpoints."""

from __future__ import annotations

from gradcell.amp.loss_scale import (
    DynamicLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
)
from gradcell.amp.train import build_train_network
from gradcell.nn import metrics
from gradcell.nn.metrics import *  # noqa: F403
from gradcell.train.callback import (
    Callback,
    CheckpointConfig,
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    ModelCheckpoint,
    ProgressBar,
    ReduceLROnPlateau,
    RunContext,
    TimeMonitor,
)
from gradcell.train.model import Model
from gradcell.train.serialization import (
    load_checkpoint,
    load_param_into_net,
    save_checkpoint,
)

__all__ = [
    *metrics.__all__,
    "Callback",
    "CheckpointConfig",
    "DynamicLossScaleManager",
    "EarlyStopping",
    "FixedLossScaleManager",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "LossMonitor",
    "LossScaleManager",
    "Model",
    "ModelCheckpoint",
    "ProgressBar",
    "ReduceLROnPlateau",
    "RunContext",
    "TimeMonitor",
    "build_train_network",
    "load_checkpoint",
    "load_param_into_net",
    "save_checkpoint",
]


def __dir__() -> list[str]:
    return sorted(__all__)
