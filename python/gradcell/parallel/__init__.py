"""How several processes share the work: ParallelMode, and what MindSpore divides networks with."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any as _Any

from gradcell.communication.mode import ParallelMode

_ALGORITHM = (
    "Layout", "get_algo_parameters", "reset_algo_parameters", "set_algo_parameters", "shard",
    "sync_pipeline_shared_parameters",
)  # fmt: skip
_MODULES = ("auto_parallel", "nn")

__all__ = ["ParallelMode", *_ALGORITHM, *_MODULES]


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(f"gradcell.parallel.{name}")
    if name in _ALGORITHM:
        return getattr(_import_module("gradcell.parallel.algorithm"), name)
    raise AttributeError(f"module 'gradcell.parallel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
