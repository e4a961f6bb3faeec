"""gradcell: graph-based automatic differentiation with MindSpore's API."""

from __future__ import annotations

import importlib.util as _util
import os as _os
import typing as _typing
from importlib import import_module as _import_module

from gradcell import _core

_core.set_package_directory(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)
_core.isa_level()  # fails here if GRADCELL_ISA asks for what this machine does not run
_blas = _util.find_spec("scipy_openblas32")
if _blas is not None and _blas.submodule_search_locations:
    _core.set_blas_path(
        _os.path.join(_blas.submodule_search_locations[0], "lib", "libscipy_openblas.so")
    )

from gradcell import context, cuda, dtype  # noqa: E402
from gradcell._core import Tensor  # noqa: E402
from gradcell._tensor import from_dlpack, from_numpy, tensor  # noqa: E402
from gradcell.compiled import jit  # noqa: E402
from gradcell.context import *  # noqa: E402, F403
from gradcell.dtype import *  # noqa: E402, F403
from gradcell.inspect import draw_graph, graph_text, plan_text  # noqa: E402
from gradcell.parameter import Parameter, ParameterTuple  # noqa: E402
from gradcell.transform import get_grad, grad, jvp, value_and_grad, vjp  # noqa: E402

from gradcell import common, ops, tensor_methods  # noqa: E402  isort: skip
from gradcell.common.seed import get_seed, set_seed  # noqa: E402

if _typing.TYPE_CHECKING:
    from gradcell import (
        amp as amp,
    )
    from gradcell import (
        communication as communication,
    )
    from gradcell import (
        dataset as dataset,
    )
    from gradcell import (
        log as log,
    )
    from gradcell import (
        mindrecord as mindrecord,
    )
    from gradcell import (
        mint as mint,
    )
    from gradcell import (
        nn as nn,
    )
    from gradcell import (
        numpy as numpy,
    )
    from gradcell import (
        parallel as parallel,
    )
    from gradcell import (
        profiler as profiler,
    )
    from gradcell import (
        runtime as runtime,
    )
    from gradcell import (
        scipy as scipy,
    )
    from gradcell import (
        train as train,
    )
    from gradcell.amp import build_train_network as build_train_network
    from gradcell.batching import vmap as vmap
    from gradcell.common.api import (
        JitConfig as JitConfig,
    )
    from gradcell.common.api import (
        constexpr as constexpr,
    )
    from gradcell.common.api import (
        data_sink as data_sink,
    )
    from gradcell.common.api import (
        jit_class as jit_class,
    )
    from gradcell.common.api import (
        lazy_inline as lazy_inline,
    )
    from gradcell.common.api import (
        ms_memory_recycle as ms_memory_recycle,
    )
    from gradcell.common.api import (
        mutable as mutable,
    )
    from gradcell.common.api import (
        no_inline as no_inline,
    )
    from gradcell.common.generator import (
        Generator as Generator,
    )
    from gradcell.common.generator import (
        default_generator as default_generator,
    )
    from gradcell.common.generator import (
        initial_seed as initial_seed,
    )
    from gradcell.common.generator import (
        manual_seed as manual_seed,
    )
    from gradcell.common.generator import (
        seed as seed,
    )
    from gradcell.common.no_grad import no_grad as no_grad
    from gradcell.common.recompute import recompute as recompute
    from gradcell.common.sparse_tensor import (
        COOTensor as COOTensor,
    )
    from gradcell.common.sparse_tensor import (
        CSRTensor as CSRTensor,
    )
    from gradcell.common.sparse_tensor import (
        RowTensor as RowTensor,
    )
    from gradcell.common.sparse_tensor import (
        SparseTensor as SparseTensor,
    )
    from gradcell.custom_rules import (
        custom_jvp as custom_jvp,
    )
    from gradcell.custom_rules import (
        custom_vjp as custom_vjp,
    )
    from gradcell.finite_differences import check_grads as check_grads
    from gradcell.jacobians import (
        hessian as hessian,
    )
    from gradcell.jacobians import (
        hvp as hvp,
    )
    from gradcell.jacobians import (
        jacfwd as jacfwd,
    )
    from gradcell.jacobians import (
        jacrev as jacrev,
    )
    from gradcell.jacobians import (
        linearize as linearize,
    )
    from gradcell.nn.metrics import (
        get_metric_fn as get_metric_fn,
    )
    from gradcell.nn.metrics import (
        names as names,
    )
    from gradcell.nn.metrics.classification import (
        F1 as F1,
    )
    from gradcell.nn.metrics.classification import (
        Accuracy as Accuracy,
    )
    from gradcell.nn.metrics.classification import (
        Fbeta as Fbeta,
    )
    from gradcell.nn.metrics.classification import (
        Precision as Precision,
    )
    from gradcell.nn.metrics.classification import (
        Recall as Recall,
    )
    from gradcell.nn.metrics.classification import (
        Top1CategoricalAccuracy as Top1CategoricalAccuracy,
    )
    from gradcell.nn.metrics.classification import (
        Top5CategoricalAccuracy as Top5CategoricalAccuracy,
    )
    from gradcell.nn.metrics.classification import (
        TopKCategoricalAccuracy as TopKCategoricalAccuracy,
    )
    from gradcell.nn.metrics.confusion import (
        ROC as ROC,
    )
    from gradcell.nn.metrics.confusion import (
        ConfusionMatrix as ConfusionMatrix,
    )
    from gradcell.nn.metrics.confusion import (
        ConfusionMatrixMetric as ConfusionMatrixMetric,
    )
    from gradcell.nn.metrics.confusion import (
        auc as auc,
    )
    from gradcell.nn.metrics.metric import (
        Metric as Metric,
    )
    from gradcell.nn.metrics.metric import (
        rearrange_inputs as rearrange_inputs,
    )
    from gradcell.nn.metrics.values import (
        MAE as MAE,
    )
    from gradcell.nn.metrics.values import (
        MSE as MSE,
    )
    from gradcell.nn.metrics.values import (
        BleuScore as BleuScore,
    )
    from gradcell.nn.metrics.values import (
        CosineSimilarity as CosineSimilarity,
    )
    from gradcell.nn.metrics.values import (
        Dice as Dice,
    )
    from gradcell.nn.metrics.values import (
        Loss as Loss,
    )
    from gradcell.nn.metrics.values import (
        Perplexity as Perplexity,
    )
    from gradcell.ops.random_state import (
        get_rng_state as get_rng_state,
    )
    from gradcell.ops.random_state import (
        set_rng_state as set_rng_state,
    )
    from gradcell.parallel import (
        Layout as Layout,
    )
    from gradcell.parallel import (
        get_algo_parameters as get_algo_parameters,
    )
    from gradcell.parallel import (
        reset_algo_parameters as reset_algo_parameters,
    )
    from gradcell.parallel import (
        set_algo_parameters as set_algo_parameters,
    )
    from gradcell.parallel import (
        shard as shard,
    )
    from gradcell.parallel import (
        sync_pipeline_shared_parameters as sync_pipeline_shared_parameters,
    )
    from gradcell.profiler import (
        Profiler as Profiler,
    )
    from gradcell.profiler import (
        profile as profile,
    )
    from gradcell.quasi_newton import (
        LBFGS as LBFGS,
    )
    from gradcell.quasi_newton import (
        FlatLoss as FlatLoss,
    )
    from gradcell.quasi_newton import (
        LBFGSResult as LBFGSResult,
    )
    from gradcell.quasi_newton import (
        lbfgs as lbfgs,
    )
    from gradcell.recorded import (
        gradients as gradients,
    )
    from gradcell.recorded import (
        watch as watch,
    )
    from gradcell.second_order import (
        fisher_product as fisher_product,
    )
    from gradcell.second_order import (
        gauss_newton_product as gauss_newton_product,
    )
    from gradcell.second_order import (
        per_sample_gradients as per_sample_gradients,
    )
    from gradcell.taylor import (
        biharmonic as biharmonic,
    )
    from gradcell.taylor import (
        divergence as divergence,
    )
    from gradcell.taylor import (
        laplacian as laplacian,
    )
    from gradcell.taylor import (
        partials as partials,
    )
    from gradcell.train import (
        Callback as Callback,
    )
    from gradcell.train import (
        CheckpointConfig as CheckpointConfig,
    )
    from gradcell.train import (
        DatasetHelper as DatasetHelper,
    )
    from gradcell.train import (
        DynamicLossScaleManager as DynamicLossScaleManager,
    )
    from gradcell.train import (
        EarlyStopping as EarlyStopping,
    )
    from gradcell.train import (
        FixedLossScaleManager as FixedLossScaleManager,
    )
    from gradcell.train import (
        History as History,
    )
    from gradcell.train import (
        LambdaCallback as LambdaCallback,
    )
    from gradcell.train import (
        LearningRateScheduler as LearningRateScheduler,
    )
    from gradcell.train import (
        LossMonitor as LossMonitor,
    )
    from gradcell.train import (
        LossScaleManager as LossScaleManager,
    )
    from gradcell.train import (
        Model as Model,
    )
    from gradcell.train import (
        ModelCheckpoint as ModelCheckpoint,
    )
    from gradcell.train import (
        ReduceLROnPlateau as ReduceLROnPlateau,
    )
    from gradcell.train import (
        RunContext as RunContext,
    )
    from gradcell.train import (
        SummaryCollector as SummaryCollector,
    )
    from gradcell.train import (
        SummaryRecord as SummaryRecord,
    )
    from gradcell.train import (
        TimeMonitor as TimeMonitor,
    )
    from gradcell.train import (
        connect_network_with_dataset as connect_network_with_dataset,
    )
    from gradcell.train import (
        export as export,
    )
    from gradcell.train import (
        load_checkpoint as load_checkpoint,
    )
    from gradcell.train import (
        load_param_into_net as load_param_into_net,
    )
    from gradcell.train import (
        save_checkpoint as save_checkpoint,
    )

#: Names that are imported when they are first asked for, by the modules they come from ("": they are
#: modules themselves). Importing gradcell loads what differentiating a function needs.
_PLACES = {
    "": """
        amp communication dataset log mindrecord mint nn numpy parallel profiler runtime scipy
        train""",
    "amp": "build_train_network",
    "common.no_grad": "no_grad",
    "common.recompute": "recompute",
    "custom_rules": "custom_jvp custom_vjp",
    "finite_differences": "check_grads",
    "quasi_newton": "FlatLoss LBFGS LBFGSResult lbfgs",
    "recorded": "gradients watch",
    "second_order": "fisher_product gauss_newton_product per_sample_gradients",
    "common.api": """
        JitConfig constexpr data_sink jit_class lazy_inline ms_memory_recycle mutable no_inline""",
    "common.generator": "Generator default_generator initial_seed manual_seed seed",
    "common.sparse_tensor": "COOTensor CSRTensor RowTensor SparseTensor",
    "batching": "vmap",
    "jacobians": "hessian hvp jacfwd jacrev linearize",
    "ops.random_state": "get_rng_state set_rng_state",
    "parallel": """
        Layout get_algo_parameters reset_algo_parameters set_algo_parameters shard
        sync_pipeline_shared_parameters""",
    "profiler": "Profiler profile",
    "taylor": "biharmonic divergence laplacian partials",
    "train": """
        Accuracy BleuScore Callback CheckpointConfig ConfusionMatrix ConfusionMatrixMetric
        CosineSimilarity DatasetHelper Dice DynamicLossScaleManager EarlyStopping F1 Fbeta
        FixedLossScaleManager History LambdaCallback LearningRateScheduler Loss LossMonitor
        LossScaleManager MAE MSE Metric Model ModelCheckpoint Perplexity Precision ROC Recall
        ReduceLROnPlateau RunContext SummaryCollector SummaryRecord TimeMonitor
        Top1CategoricalAccuracy Top5CategoricalAccuracy TopKCategoricalAccuracy auc
        connect_network_with_dataset export get_metric_fn load_checkpoint load_param_into_net
        names rearrange_inputs save_checkpoint""",
}
_LATER = {name: place for place, names in _PLACES.items() for name in names.split()}


from gradcell._signposts import missing as _missing  # noqa: E402

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
is_tensor = ops.is_tensor


def run_check() -> None:
    """Computes a sum and says that it worked, as MindSpore's does. Raises what goes wrong."""
    total = float(ops.add(Tensor(1.0), Tensor(2.0)))
    if total != 3.0:
        raise RuntimeError(f"1 + 2 gave {total}")
    print(f"gradcell version: {__version__}\nThe result of addition calculation is correct.")


__version__ = "0.1.0"
__all__ = [
    *context.__all__,
    *dtype.__all__,
    *_LATER,
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
    "get_grad",
    "get_seed",
    "grad",
    "graph_text",
    "jit",
    "is_tensor",
    "jvp",
    "ms_function",
    "ops",
    "plan_text",
    "run_check",
    "set_seed",
    "tensor",
    "value_and_grad",
    "vjp",
]


def __dir__() -> list[str]:
    return sorted(__all__)
