"""build_train_network: a network, its loss and its optimiser as one training cell."""

from __future__ import annotations

from typing import Any

from gradcell import _core, nn
from gradcell._core import Tensor
from gradcell.amp.loss_scale import DynamicLossScaleManager, LossScaleManager
from gradcell.amp.mixed_precision import auto_mixed_precision
from gradcell.base import arguments, bad_type, tree
from gradcell.nn.cell import Cell

_LEVELS = ("O0", "O1", "O2", "O3", "auto")


class _Float32Outputs(Cell):
    """A network whose half-precision outputs are handed to the loss in float32."""

    def __init__(self, network: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = network

    def construct(self, *inputs: Any) -> Any:
        return tree.map_leaves(_float32, self._backbone(*inputs))


def _float32(t: Tensor) -> Tensor:
    return _core.ops.cast(t, _core.float32) if t.dtype.is_floating and t.dtype.itemsize < 4 else t


def build_train_network(
    network: Cell, optimizer: Any, loss_fn: Any = None, level: str = "O0", boost_level: str = "O0",
    **kwargs: Any,
) -> Cell:  # fmt: skip
    """A TrainOneStepCell, or a TrainOneStepWithLossScaleCell where the loss is scaled.

    network: a Cell; without loss_fn it returns the loss. level: O0 float32; O1 the cells of one
    matrix product in float16; O2 all but normalisation in float16, and a dynamic loss scale; O3 all
    in float16; auto: as auto_mixed_precision. The loss is computed in float32. keep_batchnorm_fp32
    (O2 and O3): whether normalisation stays in float32. loss_scale_manager: how to scale the loss,
    None for not at all; by default a DynamicLossScaleManager for O2, FixedLossScaleManager of scale
    1 otherwise. cast_model_type: float16 or bfloat16.

    optimizer: an Optimizer of the network's parameters. loss_fn: a function or Cell of (output,
    label). boost_level has no effect. kwargs: keep_batchnorm_fp32, loss_scale_manager and
    cast_model_type. Raises ValueError for an unknown level, TypeError for wrong types or an unknown
    keyword.
    """
    if not isinstance(network, Cell):
        bad_type(f"build_train_network: the network must be a Cell, got {type(network).__name__}")
    arguments.one_of(level, _LEVELS, "build_train_network", "level")
    unknown = set(kwargs) - {"keep_batchnorm_fp32", "loss_scale_manager", "cast_model_type"}
    if unknown:
        bad_type(f"build_train_network: unknown argument {min(unknown)!r}")
    manager = kwargs.get("loss_scale_manager", DynamicLossScaleManager() if level == "O2" else None)
    if manager is not None and not isinstance(manager, LossScaleManager):
        bad_type(
            "build_train_network: the loss_scale_manager must be a LossScaleManager, got "
            f"{type(manager).__name__}"
        )
    dtype = kwargs.get("cast_model_type", _core.float16)
    effective = level
    if level in ("O2", "O3") and "keep_batchnorm_fp32" in kwargs:
        effective = "O2" if kwargs["keep_batchnorm_fp32"] else "O3"
    if level != "O0":
        network = auto_mixed_precision(network, effective, dtype)
    if loss_fn is not None:
        body = network if level == "O0" else _Float32Outputs(network)
        network = nn.WithLossCell(body, loss_fn)
    network.set_train()
    if manager is None:
        return nn.TrainOneStepCell(network, optimizer)
    update = manager.get_update_cell()
    if update is None:
        return nn.TrainOneStepCell(network, optimizer, sens=float(manager.get_loss_scale()))
    return nn.TrainOneStepWithLossScaleCell(network, optimizer, update)
