"""gradcell: graph-based automatic differentiation with MindSpore's API."""

from __future__ import annotations

import importlib.util as _util
import os as _os
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from gradcell import _core

_core.set_package_directory(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)
_blas = _util.find_spec("scipy_openblas32")
if _blas is not None and _blas.submodule_search_locations:
    _core.set_blas_path(
        _os.path.join(_blas.submodule_search_locations[0], "lib", "libscipy_openblas.so")
    )

from gradcell import context, cuda, dtype  # noqa: E402
from gradcell._core import Tensor  # noqa: E402
from gradcell._tensor import from_dlpack, from_numpy, tensor  # noqa: E402
from gradcell.context import (  # noqa: E402
    GRAPH_MODE,
    PYNATIVE_MODE,
    get_context,
    set_context,
)
from gradcell.dtype import *  # noqa: E402, F403
from gradcell.inspect import draw_graph, graph_text, plan_text  # noqa: E402
from gradcell.parameter import Parameter, ParameterTuple  # noqa: E402
from gradcell.transform import (  # noqa: E402
    get_grad,
    grad,
    jit,
    jvp,
    value_and_grad,
    vjp,
)

from gradcell import common, ops, tensor_methods  # noqa: E402  isort: skip
from gradcell.common.seed import get_seed, set_seed  # noqa: E402
from gradcell.ops.random_state import get_rng_state, set_rng_state  # noqa: E402

if _TYPE_CHECKING:
    from gradcell import amp, dataset, mindrecord, nn, parallel, profiler, train
    from gradcell.parallel import ParallelMode
    from gradcell.profiler import Profiler
    from gradcell.train import (
        Callback,
        CheckpointConfig,
        DatasetHelper,
        DynamicLossScaleManager,
        EarlyStopping,
        FixedLossScaleManager,
        History,
        LearningRateScheduler,
        LossMonitor,
        Model,
        ModelCheckpoint,
        ReduceLROnPlateau,
        RunContext,
        SummaryCollector,
        SummaryRecord,
        TimeMonitor,
        connect_network_with_dataset,
        export,
        load_checkpoint,
        load_param_into_net,
        save_checkpoint,
    )

#: Names that are imported when they are first asked for, and the modules they come from (none: they
#: are modules themselves). Importing gradcell loads what differentiating a function needs.
_LATER: dict[str, str] = dict.fromkeys(
    ("amp", "dataset", "mindrecord", "nn", "parallel", "profiler", "train"), ""
)
_LATER["ParallelMode"] = "gradcell.parallel"
_LATER["Profiler"] = "gradcell.profiler"
_LATER |= dict.fromkeys(
    (
        "Callback", "CheckpointConfig", "DatasetHelper", "DynamicLossScaleManager", "EarlyStopping",
        "FixedLossScaleManager", "History", "LearningRateScheduler", "LossMonitor", "Model",
        "ModelCheckpoint", "ReduceLROnPlateau", "RunContext", "SummaryCollector", "SummaryRecord",
        "TimeMonitor", "connect_network_with_dataset", "export", "load_checkpoint",
        "load_param_into_net", "save_checkpoint",
    ),
    "gradcell.train",
)  # fmt: skip


def __getattr__(name: str) -> object:
    place = _LATER.get(name)
    if place is None:
        raise AttributeError(f"module 'gradcell' has no attribute {name!r}")
    module = _import_module(place or f"gradcell.{name}")
    value = getattr(module, name) if place else module
    globals()[name] = value
    return value


ms_function = jit

__version__ = "0.1.0"
__all__ = [
    *dtype.__all__,
    *_LATER,
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "Parameter",
    "ParameterTuple",
    "Tensor",
    "common",
    "context",
    "cuda",
    "draw_graph",
    "dtype",
    "from_dlpack",
    "from_numpy",
    "get_context",
    "get_grad",
    "get_seed",
    "grad",
    "graph_text",
    "jit",
    "jvp",
    "ms_function",
    "ops",
    "plan_text",
    "set_context",
    "set_seed",
    "tensor",
    "value_and_grad",
    "vjp",
]


def __dir__() -> list[str]:
    return sorted(__all__)
