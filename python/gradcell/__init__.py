"""gradcell: graph-based automatic differentiation with MindSpore's API."""

from __future__ import annotations

import importlib.util as _util
import os as _os
import sys as _sys
import typing as _typing
from importlib import import_module as _import_module

from gradcell import _core
from gradcell.base import tracebacks as _tracebacks

_tracebacks.install()
_core.isa_level()  # fails here if GRADCELL_ISA asks for what this machine does not run
_blas = _util.find_spec("scipy_openblas32")
if _blas is not None and _blas.submodule_search_locations:
    _suffix = {"darwin": "dylib", "win32": "dll"}.get(_sys.platform, "so")
    _file = f"libscipy_openblas.{_suffix}"
    _core.set_blas_path(_os.path.join(_blas.submodule_search_locations[0], "lib", _file))

from gradcell import context, dtype  # noqa: E402
from gradcell._core import Tensor  # noqa: E402
from gradcell.compilation.compiled import jit  # noqa: E402

from gradcell.context import (  # noqa: E402  isort: skip
    COMPATIBLE as COMPATIBLE, GRAPH_MODE as GRAPH_MODE, LAX as LAX, PYNATIVE_MODE as PYNATIVE_MODE,
    STRICT as STRICT, get_context as get_context, get_current_device as get_current_device,
    get_default_dtype as get_default_dtype, get_ps_context as get_ps_context,
    reset_ps_context as reset_ps_context, set_context as set_context,
    set_default_dtype as set_default_dtype, set_deterministic as set_deterministic,
    set_device as set_device, set_ps_context as set_ps_context,
    set_recursion_limit as set_recursion_limit,
)  # fmt: skip
from gradcell.derivatives.transform import get_grad, grad, jvp, value_and_grad, vjp  # noqa: E402
from gradcell.dtype import *  # noqa: E402, F403
from gradcell.tensors.parameter import Parameter, ParameterTuple  # noqa: E402
from gradcell.tensors.tensor import from_dlpack, from_numpy, tensor  # noqa: E402

from gradcell import common, ops  # noqa: E402  isort: skip
from gradcell.ops import tensor_methods  # noqa: E402  isort: skip
from gradcell.base.seed import get_seed, set_seed  # noqa: E402

if _typing.TYPE_CHECKING:
    from gradcell import (  # isort: skip
        amp as amp, array_api as array_api, boost as boost, communication as communication,
        cuda as cuda, dataset as dataset, debug as debug, log as log, mindrecord as mindrecord,
        mindspore as mindspore, mint as mint, nn as nn, numpy as numpy, parallel as parallel,
        physics as physics, profiler as profiler, random as random, runtime as runtime,
        schedules as schedules, scipy as scipy, train as train, tree as tree,
    )  # fmt: skip
    from gradcell.amp import build_train_network as build_train_network
    from gradcell.common.api import (  # isort: skip
        JitConfig as JitConfig, Symbol as Symbol, constexpr as constexpr, data_sink as data_sink,
        enable_dynamic as enable_dynamic, jit_class as jit_class, lazy_inline as lazy_inline,
        ms_memory_recycle as ms_memory_recycle, mutable as mutable, no_inline as no_inline,
    )  # fmt: skip
    from gradcell.common.generator import (  # isort: skip
        Generator as Generator, default_generator as default_generator,
        initial_seed as initial_seed, manual_seed as manual_seed, seed as seed,
    )  # fmt: skip
    from gradcell.common.no_grad import no_grad as no_grad
    from gradcell.common.recompute import recompute as recompute
    from gradcell.common.sparse_tensor import *  # noqa: F403
    from gradcell.communication.mode import ParallelMode as ParallelMode
    from gradcell.communication.sharing import (  # isort: skip
        get_auto_parallel_context as get_auto_parallel_context,
        reset_auto_parallel_context as reset_auto_parallel_context,
        set_auto_parallel_context as set_auto_parallel_context,
    )  # fmt: skip
    from gradcell.derivatives.batching import vmap as vmap
    from gradcell.derivatives.custom_rules import custom_jvp as custom_jvp, custom_vjp as custom_vjp
    from gradcell.derivatives.finite_differences import check_grads as check_grads
    from gradcell.derivatives.jacobians import *  # noqa: F403
    from gradcell.derivatives.recorded import gradients as gradients, watch as watch
    from gradcell.derivatives.second_order import *  # noqa: F403
    from gradcell.derivatives.taylor import (  # isort: skip
        biharmonic as biharmonic, divergence as divergence, laplacian as laplacian,
        partials as partials,
    )  # fmt: skip
    from gradcell.nn.metrics import get_metric_fn as get_metric_fn, names as names
    from gradcell.nn.metrics.classification import *  # noqa: F403
    from gradcell.nn.metrics.confusion import *  # noqa: F403
    from gradcell.nn.metrics.metric import Metric as Metric, rearrange_inputs as rearrange_inputs
    from gradcell.nn.metrics.values import (  # isort: skip
        MAE as MAE, MSE as MSE, BleuScore as BleuScore, CosineSimilarity as CosineSimilarity,
        Dice as Dice, Loss as Loss, Perplexity as Perplexity,
    )  # fmt: skip
    from gradcell.ops.random.state import (
        get_rng_state as get_rng_state,
        set_rng_state as set_rng_state,
    )
    from gradcell.parallel import (  # isort: skip
        Layout as Layout, get_algo_parameters as get_algo_parameters,
        reset_algo_parameters as reset_algo_parameters, set_algo_parameters as set_algo_parameters,
        shard as shard, sync_pipeline_shared_parameters as sync_pipeline_shared_parameters,
    )  # fmt: skip
    from gradcell.profiler import Profiler as Profiler, profile as profile
    from gradcell.show.inspect import (  # isort: skip
        draw_graph as draw_graph, graph_text as graph_text, plan_text as plan_text,
    )  # fmt: skip
    from gradcell.solvers import (  # isort: skip
        Covariance as Covariance, Descent as Descent, GaussNewton as GaussNewton,
        GaussNewtonState as GaussNewtonState, SolverState as SolverState,
    )  # fmt: skip
    from gradcell.solvers.quasi_newton import *  # noqa: F403
    from gradcell.train import (  # isort: skip
        Callback as Callback, CheckpointConfig as CheckpointConfig, DatasetHelper as DatasetHelper,
        DynamicLossScaleManager as DynamicLossScaleManager, EarlyStopping as EarlyStopping,
        FixedLossScaleManager as FixedLossScaleManager, History as History,
        LambdaCallback as LambdaCallback, LearningRateScheduler as LearningRateScheduler,
        LossMonitor as LossMonitor, LossScaleManager as LossScaleManager, Model as Model,
        ModelCheckpoint as ModelCheckpoint, ReduceLROnPlateau as ReduceLROnPlateau,
        RunContext as RunContext, SummaryCollector as SummaryCollector,
        SummaryRecord as SummaryRecord, TimeMonitor as TimeMonitor,
        ckpt_to_safetensors as ckpt_to_safetensors,
        connect_network_with_dataset as connect_network_with_dataset, export as export,
        load_checkpoint as load_checkpoint, load_param_into_net as load_param_into_net,
        safetensors_to_ckpt as safetensors_to_ckpt, save_checkpoint as save_checkpoint,
        train_step as train_step,
    )  # fmt: skip

#: Names that are imported when they are first asked for, by the modules they come from ("": they are
#: modules themselves). Importing gradcell loads what differentiating a function needs.
_PLACES = {
    "": """
        amp array_api boost communication cuda dataset debug log mindrecord mindspore mint nn numpy
        parallel physics profiler random runtime schedules scipy train tree""",
    "amp": "build_train_network",
    "common.no_grad": "no_grad",
    "common.recompute": "recompute",
    "derivatives.custom_rules": "custom_jvp custom_vjp",
    "derivatives.finite_differences": "check_grads",
    "solvers.quasi_newton": "BFGS FlatLoss LBFGS QuasiNewtonState SSBFGS SSBroyden lbfgs",
    "derivatives.recorded": "gradients watch",
    "solvers": "Covariance Descent GaussNewton GaussNewtonState SolverState",
    "derivatives.second_order": "fisher_product gauss_newton_product per_sample_gradients",
    "common.api": """
        JitConfig Symbol constexpr data_sink enable_dynamic jit_class lazy_inline ms_memory_recycle
        mutable no_inline""",
    "common.generator": "Generator default_generator initial_seed manual_seed seed",
    "common.sparse_tensor": "COOTensor CSRTensor RowTensor SparseTensor",
    "communication.mode": "ParallelMode",
    "communication.sharing": """
        get_auto_parallel_context reset_auto_parallel_context set_auto_parallel_context""",
    "derivatives.batching": "vmap",
    "derivatives.jacobians": "hessian hvp jacfwd jacrev linearize",
    "ops.random.state": "get_rng_state set_rng_state",
    "show.inspect": "draw_graph graph_text plan_text",
    "parallel": """
        Layout get_algo_parameters reset_algo_parameters set_algo_parameters shard
        sync_pipeline_shared_parameters""",
    "profiler": "Profiler profile",
    "derivatives.taylor": "biharmonic divergence laplacian partials",
    "train": """
        Accuracy BleuScore Callback CheckpointConfig ConfusionMatrix ConfusionMatrixMetric
        CosineSimilarity DatasetHelper Dice DynamicLossScaleManager EarlyStopping F1 Fbeta
        FixedLossScaleManager History LambdaCallback LearningRateScheduler Loss LossMonitor
        LossScaleManager MAE MSE Metric Model ModelCheckpoint Perplexity Precision ROC Recall
        ReduceLROnPlateau RunContext SummaryCollector SummaryRecord TimeMonitor
        Top1CategoricalAccuracy Top5CategoricalAccuracy TopKCategoricalAccuracy auc
        ckpt_to_safetensors connect_network_with_dataset export get_metric_fn load_checkpoint
        load_param_into_net names rearrange_inputs safetensors_to_ckpt save_checkpoint train_step""",
}
_LATER = {name: place for place, names in _PLACES.items() for name in names.split()}


def _array_namespace(self: Tensor, *, api_version: str | None = None) -> _typing.Any:
    """The functions of the Array API standard: gradcell.array_api. Raises ValueError for another version
    than 2021.12, 2022.12, 2023.12 and 2024.12."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(
            f"the Array API standard is here in its version 2024.12, not {api_version!r}"
        )
    return _import_module("gradcell.array_api")


Tensor.__array_namespace__ = _array_namespace  # type: ignore[method-assign]

from gradcell.base.signposts import missing as _missing  # noqa: E402

if not _typing.TYPE_CHECKING:  # a misspelt name is an error to a type checker

    def __getattr__(name: str) -> object:
        if name in dtype._PYTHON_NAMES:
            return dtype._PYTHON_NAMES[name]
        place = "common.no_grad" if name == "_no_grad" else _LATER.get(name)
        if place is None:
            raise _missing("gradcell", name, __all__)
        module = _import_module(f"gradcell.{place or name}")
        value = getattr(module, name) if place else module
        globals()[name] = value
        return value


ms_function = jit
is_tensor: _typing.Callable[[_typing.Any], bool] = ops.is_tensor


def run_check() -> None:
    """Computes a sum and prints that it worked, as MindSpore's does. Raises any error that occurs."""
    total = float(ops.add(Tensor(1.0), Tensor(2.0)))
    if total != 3.0:
        raise RuntimeError(f"1 + 2 gave {total}")
    print(f"gradcell version: {__version__}\nThe result of addition calculation is correct.")


__version__ = "0.1.0"
__all__ = [
    *dict.fromkeys((*context.__all__, *_LATER)), *dtype.__all__, "Parameter", "ParameterTuple",
    "Tensor", "common", "context", "dtype", "from_dlpack", "from_numpy", "get_grad",
    "get_seed", "grad", "jit", "is_tensor", "jvp", "ms_function", "ops", "run_check", "set_seed",
    "tensor", "value_and_grad", "vjp",
]  # fmt: skip
__dir__ = sorted(__all__).copy
