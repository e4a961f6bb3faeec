"""Mixed precision and loss scaling."""

from __future__ import annotations

import gradcell.nn  # before amp.loss_scale: that is a Cell, and nn's training cells need it
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
from gradcell.amp.overflow import Overflow, locate_overflow
from gradcell.amp.train import build_train_network

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
