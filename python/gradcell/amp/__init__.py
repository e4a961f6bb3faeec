"""Mixed precision and loss scaling."""

from __future__ import annotations

from gradcell.amp.loss_scale import (
    DynamicLossScaleManager,
    DynamicLossScaler,
    FixedLossScaleManager,
    LossScaleManager,
    LossScaler,
    StaticLossScaler,
    all_finite,
    init_status,
)
from gradcell.amp.mixed_precision import (
    auto_mixed_precision,
    custom_mixed_precision,
    get_black_list,
    get_white_list,
)
from gradcell.amp.train import build_train_network
from gradcell.derivatives.overflow import Overflow, locate_overflow

__all__ = [
    "DynamicLossScaleManager",
    "DynamicLossScaler",
    "FixedLossScaleManager",
    "LossScaleManager",
    "LossScaler",
    "Overflow",
    "StaticLossScaler",
    "all_finite",
    "auto_mixed_precision",
    "build_train_network",
    "custom_mixed_precision",
    "get_black_list",
    "get_white_list",
    "init_status",
    "locate_overflow",
]


def __dir__() -> list[str]:
    return sorted(__all__)
