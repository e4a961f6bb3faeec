"""Training: Model, callbacks, metrics, loss-scale managers, checkpoints."""

from gradcell.amp.train import build_train_network
from gradcell.nn import metrics
from gradcell.nn.metrics import *  # noqa: F403
from gradcell.train import loss_scale_manager

from gradcell.train.callback import (  # isort: skip
    BackupAndRestore, Callback, CheckpointConfig, EarlyStopping, History, LambdaCallback,
    LearningRateScheduler, LossMonitor, ModelCheckpoint, OnRequestExit, ProgressBar,
    ReduceLROnPlateau, RunContext, SummaryCollector, TimeMonitor,
)  # fmt: skip
from gradcell.train.dataset_helper import DatasetHelper, connect_network_with_dataset
from gradcell.train.loss_scale_manager import *  # noqa: F403
from gradcell.train.model import Model
from gradcell.train.onnx import export
from gradcell.train.serialization import (
    ckpt_to_safetensors,
    load_checkpoint,
    load_param_into_net,
    safetensors_to_ckpt,
    save_checkpoint,
)  # fmt: skip
from gradcell.train.step import train_step
from gradcell.train.summary import SummaryRecord

__all__ = [
    *loss_scale_manager.__all__, *metrics.__all__,
    "BackupAndRestore", "Callback", "CheckpointConfig", "DatasetHelper", "EarlyStopping", "History",
    "LambdaCallback", "LearningRateScheduler", "LossMonitor", "Model", "ModelCheckpoint",
    "OnRequestExit", "ProgressBar", "ReduceLROnPlateau", "RunContext", "SummaryCollector",
    "SummaryRecord", "TimeMonitor", "build_train_network",
    "ckpt_to_safetensors", "connect_network_with_dataset", "export",
    "load_checkpoint", "load_param_into_net", "safetensors_to_ckpt", "save_checkpoint",
    "train_step",
]  # fmt: skip
__dir__ = sorted(__all__).copy
