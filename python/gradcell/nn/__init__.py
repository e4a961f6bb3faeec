"""Networks: cells, layers, losses, optimisers, training cells."""

from __future__ import annotations

from gradcell.nn.activations import (
    CELU,
    ELU,
    GELU,
    GLU,
    FastGelu,
    Hardtanh,
    HShrink,
    HSigmoid,
    HSwish,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    SeLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softmax2d,
    Softmin,
    Softplus,
    SoftShrink,
    Softsign,
    Tanh,
    Tanhshrink,
    Threshold,
    get_activation,
)
from gradcell.nn.basic import (
    Dense,
    Dropout,
    Dropout1d,
    Dropout2d,
    Embedding,
    Flatten,
    Identity,
)
from gradcell.nn.cell import (
    Cell,
)
from gradcell.nn.containers import (
    CellDict,
    CellList,
    SequentialCell,
)
from gradcell.nn.convolution import (
    Conv1d,
    Conv2d,
)
from gradcell.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    LossBase,
    MAELoss,
    MSELoss,
    NLLLoss,
    RMSELoss,
    SmoothL1Loss,
    SoftmaxCrossEntropyWithLogits,
)
from gradcell.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    LayerNorm,
)
from gradcell.nn.pooling import (
    AvgPool1d,
    AvgPool2d,
    MaxPool1d,
    MaxPool2d,
)

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "AvgPool1d",
    "AvgPool2d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Cell",
    "CellDict",
    "CellList",
    "Conv1d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dense",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Embedding",
    "FastGelu",
    "Flatten",
    "GroupNorm",
    "HShrink",
    "HSigmoid",
    "HSwish",
    "Hardtanh",
    "HuberLoss",
    "Identity",
    "KLDivLoss",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "LossBase",
    "MAELoss",
    "MSELoss",
    "MaxPool1d",
    "MaxPool2d",
    "Mish",
    "NLLLoss",
    "PReLU",
    "RMSELoss",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SeLU",
    "SequentialCell",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "SoftShrink",
    "Softmax",
    "Softmax2d",
    "SoftmaxCrossEntropyWithLogits",
    "Softmin",
    "Softplus",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "get_activation",
]

# What trains them: optimisers, schedules, training cells.
from gradcell.nn import training as _training
from gradcell.nn.training import *  # noqa: F403

__all__ += _training.__all__


def __dir__() -> list[str]:
    return sorted(__all__)
