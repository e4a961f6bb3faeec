"""What training cells ask about the parallel setting."""

from __future__ import annotations

from gradcell.parallel._auto_parallel_context import get_auto_parallel_context


def _get_parallel_mode() -> str:
    return str(get_auto_parallel_context("parallel_mode"))


def _get_device_num() -> int:
    return int(get_auto_parallel_context("device_num"))


def _get_gradients_mean() -> bool:
    return bool(get_auto_parallel_context("gradients_mean"))


def _get_global_rank() -> int:
    return int(get_auto_parallel_context("global_rank"))


def _get_pipeline_stages() -> int:
    return int(get_auto_parallel_context("pipeline_stages"))


def _get_full_batch() -> bool:
    return bool(get_auto_parallel_context("full_batch"))


def _get_enable_parallel_optimizer() -> bool:
    """False: with one process an optimiser's state is whole."""
    return False


def _is_pynative_parallel() -> bool:
    return False
