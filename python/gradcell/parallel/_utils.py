"""What training cells ask about the parallel setting."""

from __future__ import annotations

from gradcell.communication.management import get_group_size, get_rank, is_initialized
from gradcell.parallel._auto_parallel_context import get_auto_parallel_context, is_set
from gradcell.parallel._mode import ParallelMode


def _get_parallel_mode() -> str:
    return str(get_auto_parallel_context("parallel_mode"))


def _get_device_num() -> int:
    """What device_num has been set to, else the number of processes."""
    if is_set("device_num") or not is_initialized():
        return int(get_auto_parallel_context("device_num"))
    return get_group_size()


def _get_gradients_mean() -> bool:
    return bool(get_auto_parallel_context("gradients_mean"))


def _get_global_rank() -> int:
    if is_set("global_rank") or not is_initialized():
        return int(get_auto_parallel_context("global_rank"))
    return get_rank()


def _get_pipeline_stages() -> int:
    return int(get_auto_parallel_context("pipeline_stages"))


def _get_full_batch() -> bool:
    return bool(get_auto_parallel_context("full_batch"))


def _shares_data() -> bool:
    """Whether several processes train on parts of the data."""
    modes = (ParallelMode.DATA_PARALLEL, ParallelMode.HYBRID_PARALLEL)
    return _get_parallel_mode() in modes and get_group_size() > 1


def _get_enable_parallel_optimizer() -> bool:
    """Whether the processes share out an optimiser's state."""
    return bool(get_auto_parallel_context("enable_parallel_optimizer")) and _shares_data()


def _is_pynative_parallel() -> bool:
    return False
