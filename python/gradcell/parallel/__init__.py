"""Work shared by several processes: ParallelMode, and MindSpore's names for dividing networks."""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module

from gradcell.base.signposts import missing as _missing
from gradcell.communication.mode import ParallelMode

if _typing.TYPE_CHECKING:
    from gradcell.parallel import auto_parallel as auto_parallel, nn as nn
    from gradcell.parallel.algorithm import (
        Layout as Layout,
        get_algo_parameters as get_algo_parameters,
        reset_algo_parameters as reset_algo_parameters,
        set_algo_parameters as set_algo_parameters,
        shard as shard,
        sync_pipeline_shared_parameters as sync_pipeline_shared_parameters,
    )

_ALGORITHM = (
    "Layout", "get_algo_parameters", "reset_algo_parameters", "set_algo_parameters", "shard",
    "sync_pipeline_shared_parameters",
)  # fmt: skip
_MODULES = ("auto_parallel", "nn")

__all__ = ["ParallelMode", *_ALGORITHM, *_MODULES]
__dir__ = sorted(__all__).copy


if not _typing.TYPE_CHECKING:  # a misspelt name is an error to a type checker

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return _import_module(f"gradcell.parallel.{name}")
        if name in _ALGORITHM:
            return getattr(_import_module("gradcell.parallel.algorithm"), name)
        raise _missing("gradcell.parallel", name, __all__)
