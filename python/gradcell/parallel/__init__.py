"""Work shared by several processes: ParallelMode, and MindSpore's names for dividing networks."""

import typing as _typing

from gradcell.base import later as _later
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

__all__ = ["ParallelMode", *_ALGORITHM, "auto_parallel", "nn"]
__dir__ = sorted(__all__).copy
_later(globals(), "auto_parallel nn", dict.fromkeys(_ALGORITHM, "gradcell.parallel.algorithm"))
