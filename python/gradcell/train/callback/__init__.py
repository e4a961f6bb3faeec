"""Callbacks: what Model calls at the beginnings and ends of training, epochs and steps."""

from gradcell.base import explain
from gradcell.train.callback.adapt import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau
from gradcell.train.callback.backup import BackupAndRestore, OnRequestExit
from gradcell.train.callback.checkpoint import CheckpointConfig, ModelCheckpoint
from gradcell.train.callback.monitor import History, LambdaCallback, LossMonitor, TimeMonitor
from gradcell.train.callback.progress import ProgressBar
from gradcell.train.callback.summary import SummaryCollector

from gradcell.train.callback.base import (  # isort: skip
    Callback, CallbackManager, CallbackParameters, RunContext, loss_of,
)  # fmt: skip

#: MindSpore's name of it, which programs with a loop of their own use.
_InternalCallbackParam = InternalCallbackParam = CallbackParameters
_CallbackManager = CallbackManager
_handle_loss = loss_of

__all__ = [
    "BackupAndRestore", "Callback", "CallbackParameters", "CheckpointConfig", "EarlyStopping",
    "History", "LambdaCallback", "LearningRateScheduler", "LossMonitor", "ModelCheckpoint",
    "OnRequestExit", "ProgressBar", "ReduceLROnPlateau", "RunContext", "SummaryCollector",
    "TimeMonitor",
]  # fmt: skip
__dir__ = sorted(__all__).copy
explain(globals())
