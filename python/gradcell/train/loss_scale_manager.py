"""Managers of the loss scale, under MindSpore's path."""

from gradcell.amp.loss_scale import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager

__all__ = ["DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager"]
__dir__ = sorted(__all__).copy
