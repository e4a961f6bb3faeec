"""The settings that say how several processes share the work.

parallel_mode 'data_parallel' (or 'hybrid_parallel'): each process trains on its part of the data, with
gradients summed (gradients_mean: their mean) over all; parameter_broadcast, enable_parallel_optimizer
and the sizes of what is summed together belong to it. Modes that divide a network are kept and told on
request, but divide nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gradcell.base import bad_value, notice
from gradcell.communication.engine import announced
from gradcell.communication.management import get_group_size, get_rank, is_initialized
from gradcell.communication.mode import ParallelMode

T = TypeVar("T")

_NOTHING_TO_DIVIDE = "every process computes the whole network: no network is divided"

#: The options with their defaults (MindSpore's).
_DEFAULTS: dict[str, Any] = {
    "parallel_mode": ParallelMode.STAND_ALONE, "device_num": 1, "global_rank": 0,
    "gradients_mean": False, "gradient_fp32_sync": True, "parameter_broadcast": False,
    "strategy_ckpt_load_file": "", "strategy_ckpt_save_file": "", "strategy_ckpt_config": {},
    "full_batch": False, "full_batch_is_set": False, "dataset_strategy": "data_parallel",
    "enable_parallel_optimizer": False, "force_fp32_communication": False,
    "parallel_optimizer_config": {}, "parallel_optimizer_threshold": -1,
    "optimizer_weight_shard_size": -1, "optimizer_weight_shard_aggregated_save": False,
    "all_reduce_fusion_config": [], "allreduce_fusion_config": [], "comm_fusion": {},
    "pipeline_stages": 1, "pipeline_result_broadcast": False, "pipeline_segments": 1,
    "pipeline_config": {}, "grad_accumulation_step": 1, "grad_accumulation_shard": False,
    "auto_parallel_search_mode": "recursive_programming", "search_mode": "recursive_programming",
    "sharding_propagation": False, "loss_repeated_mean": True, "enable_alltoall": False,
    "communi_parallel_mode": "all_group_parallel", "group_ckpt_save_file": "",
    "auto_pipeline": False, "init_param_in_compile": True, "enable_all_reduce_fusion": True,
    "enable_all_gather_fusion": True, "enable_reduce_scatter_fusion": True,
}  # fmt: skip
_values = dict(_DEFAULTS)
_set: set[str] = set()  #: the options that a program has set


def _check(name: str, value: Any) -> None:
    if name not in _DEFAULTS:
        bad_value(f"Set context keyword {name} is not recognized!")
    if name == "parallel_mode" and value not in ParallelMode.MODE_LIST:
        bad_value(
            "The context configuration parameter 'parallel_mode' only support "
            f"{', '.join(repr(m) for m in ParallelMode.MODE_LIST)}, but got the value : {value}."
        )
    positive = name in ("device_num", "pipeline_stages", "grad_accumulation_step")
    if (positive or name == "global_rank") and (
        isinstance(value, bool) or not isinstance(value, int) or value < positive
    ):
        bad_value(
            f"The context configuration parameter '{name}' must be a positive integer, but got the value of "
            f"{name} : {value!r}."
        )


def set_auto_parallel_context(**kwargs: Any) -> None:
    """Sets how several processes share the work; with one process all ways are the same.

    parallel_mode: 'stand_alone', 'data_parallel', ... gradients_mean: mean in place of sum.
    parameter_broadcast: parameters start as rank 0 has them. enable_parallel_optimizer: each process
    keeps and updates its part of the optimiser's state; parallel_optimizer_config:
    {'parallel_optimizer_threshold': KB}, below which parameters stay whole. comm_fusion:
    {'allreduce': {'mode': 'auto'}}, {'mode': 'size', 'config': MB} or {'mode': 'index', 'config':
    [...]}, and all_reduce_fusion_config: which gradients are summed together. gradient_fp32_sync:
    gradients of half types are summed in float32.

    kwargs: options by name, of those above. Raises ValueError for an unknown option or a value that
    it cannot have. Warns once of what would divide a network.
    """
    for name, value in kwargs.items():
        _check(name, value)
    for name, value in kwargs.items():
        several = name == "pipeline_stages" and value > 1
        if name == "device_num" and value > 1 and announced() == 1:
            notice.once(f"set_auto_parallel_context({name}={value!r})", "there is one process")
        divided = value in (ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL)
        if several or (name == "parallel_mode" and divided):
            notice.once(f"set_auto_parallel_context({name}={value!r})", _NOTHING_TO_DIVIDE)
        if name == "strategy_ckpt_save_file" and value:
            notice.once(f"set_auto_parallel_context({name}=...)", "there is no strategy to save")
        _values[name] = value
        _set.add(name)
        if name == "full_batch":
            _values["full_batch_is_set"] = True
            _values["dataset_strategy"] = "full_batch" if value else "data_parallel"


def get_auto_parallel_context(attr_key: str) -> Any:
    """The value of an option that set_auto_parallel_context sets. Raises ValueError for an unknown
    one.

    attr_key: the name of the option.
    """
    if attr_key not in _values:
        bad_value(f"Get context keyword {attr_key} is not recognized!")
    return _values[attr_key]


def reset_auto_parallel_context() -> None:
    """Resets all options to their first values."""
    _values.update(_DEFAULTS)
    _set.clear()


def is_set(name: str) -> bool:
    """Return whether a program has set the option."""
    return name in _set


class _AutoParallelContext:
    """The options as an object: get_x() and set_x(value) for each option x."""

    def __getattr__(self, name: str) -> Any:
        kind, _, option = name.partition("_")
        if kind not in ("get", "set") or option not in _DEFAULTS:
            raise AttributeError(f"auto_parallel_context() has no attribute {name!r}")
        if kind == "get":
            return lambda: get_auto_parallel_context(option)
        return lambda value, *rest: set_auto_parallel_context(**{option: value})

    def get_parameter_broadcast_is_set(self) -> bool:
        """Return whether parameter_broadcast has been set."""
        return is_set("parameter_broadcast")

    def get_device_num_is_set(self) -> bool:
        """Return whether device_num has been set."""
        return is_set("device_num")

    def set_all_reduce_fusion_split_indices(self, indices: Any, group: str = "") -> None:
        """Set the indices of the last gradient of each group that is summed together."""
        set_auto_parallel_context(all_reduce_fusion_config=list(indices))

    def get_all_reduce_fusion_split_indices(self) -> Any:
        """Return the indices that set_all_reduce_fusion_split_indices has set."""
        return _values["all_reduce_fusion_config"]

    def reset(self) -> None:
        """All options as they are at first."""
        reset_auto_parallel_context()


_the_context = _AutoParallelContext()


def auto_parallel_context() -> _AutoParallelContext:
    """The options as an object."""
    return _the_context


# What training cells ask ------------------------------------------------------------------------


def _asked(name: str, kind: Callable[[Any], T]) -> Callable[[], T]:
    """A function that gives an option."""
    return lambda: kind(get_auto_parallel_context(name))


_get_parallel_mode = _asked("parallel_mode", str)
_get_gradients_mean = _asked("gradients_mean", bool)
_get_pipeline_stages = _asked("pipeline_stages", int)
_get_full_batch = _asked("full_batch", bool)


def _get_device_num() -> int:
    """Return device_num if it was set, else the number of processes."""
    if is_set("device_num") or not is_initialized():
        return int(get_auto_parallel_context("device_num"))
    return get_group_size()


def _get_global_rank() -> int:
    if is_set("global_rank") or not is_initialized():
        return int(get_auto_parallel_context("global_rank"))
    return get_rank()


def _shares_data() -> bool:
    """Return whether several processes train on parts of the data."""
    modes = (ParallelMode.DATA_PARALLEL, ParallelMode.HYBRID_PARALLEL)
    return _get_parallel_mode() in modes and get_group_size() > 1


def _get_enable_parallel_optimizer() -> bool:
    """Return whether the processes share out an optimiser's state."""
    return bool(get_auto_parallel_context("enable_parallel_optimizer")) and _shares_data()


def _is_pynative_parallel() -> bool:
    return False
