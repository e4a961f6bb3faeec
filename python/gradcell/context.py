"""Execution context: mode, device, threads."""

from __future__ import annotations

import typing as _typing
from collections.abc import Callable
from typing import Any, NamedTuple

from gradcell import _core
from gradcell.base import bad_type, later, notice, to_dtype, tracebacks
from gradcell.base.signposts import nearest

__all__ = [
    "COMPATIBLE", "GRAPH_MODE", "LAX", "PYNATIVE_MODE", "STRICT", "ParallelMode",
    "get_auto_parallel_context", "get_context", "get_current_device", "get_default_dtype",
    "get_ps_context", "reset_auto_parallel_context", "reset_ps_context",
    "set_auto_parallel_context", "set_context", "set_default_dtype", "set_deterministic",
    "set_device", "set_ps_context", "set_recursion_limit",
]  # fmt: skip
__dir__ = sorted(__all__).copy


#: MindSpore's names here for how processes share work, imported when they are first asked for.
_SHARING = {
    "ParallelMode": "mode",
    "get_auto_parallel_context": "sharing",
    "reset_auto_parallel_context": "sharing",
    "set_auto_parallel_context": "sharing",
}
if _typing.TYPE_CHECKING:
    from gradcell.communication.mode import ParallelMode as ParallelMode
    from gradcell.communication.sharing import (
        get_auto_parallel_context as get_auto_parallel_context,
        reset_auto_parallel_context as reset_auto_parallel_context,
        set_auto_parallel_context as set_auto_parallel_context,
    )
later(globals(), places={name: f"gradcell.communication.{at}" for name, at in _SHARING.items()})

GRAPH_MODE = 0
PYNATIVE_MODE = 1
#: How much of Python a graph may hold (jit_syntax_level): here always all of it.
STRICT, COMPATIBLE, LAX = 0, 1, 2

_values: dict[str, Any] = {
    "mode": PYNATIVE_MODE,
    "device_target": "CPU",
    "device_id": 0,
    "max_threads": None,
    "locate_overflow": False,
    "locate_constants": False,
    "full_tracebacks": tracebacks.full,
}
_SWITCHES = ("locate_overflow", "locate_constants", "full_tracebacks")
_ASCEND = "there is no Ascend engine"
_HERE = ""  #: what the option asks for is so anyway
#: Why setting another of MindSpore's options changes nothing: {the reason: {the option: its value at first}}.
_WHY: dict[str, dict[str, Any]] = {
    _ASCEND: {
        "aclnn_cache_config": {}, "aoe_config": {}, "aoe_tune_mode": "", "ascend_config": {},
        "auto_tune_mode": "NO_TUNE", "graph_memory_max_size": "0", "op_debug_option": "",
        "op_timeout": 900, "variable_memory_max_size": "0",
    },
    "threads are not bound to cores": {"affinity_cpu_list": None},
    "derivatives are checked when they are made": {"check_bprop": False},
    "functions are compiled anew in each process": {
        "compile_cache_path": "", "enable_compile_cache": False, "load_compile_cache": False,
    },
    _HERE: {
        "conv_allreduce_fusion": False, "debug_level": 0, "deterministic": "OFF",
        "enable_debug_runtime": False, "enable_dynamic_mem_pool": True,
        "enable_graph_kernel": False, "enable_loop_sink": True, "enable_mem_reuse": True,
        "enable_reduce_precision": True, "enable_sparse": False, "enable_task_sink": True,
        "exec_order": "bfs", "gpu_config": {}, "host_scheduling_max_threshold": 0,
        "infer_boost": "off", "jit_config": {}, "jit_enable_inplace_ops": False, "jit_level": "",
        "jit_syntax_level": LAX, "max_call_depth": 1000, "memory_optimize_level": "O0",
        "pynative_synchronize": False, "reserve_class_name_in_scope": True,
        "support_binary": False,
    },
    "nothing is dumped": {"dump_path": "", "enable_dump": False, "save_dump_path": "."},
    "gradcell.amp sets precision": {"enable_auto_mixed_precision": False},
    "tensors stay in the device's memory": {"enable_mem_offload": False, "memory_offload": "OFF"},
    "mindspore.profiler.Profiler profiles": {"enable_profiling": False, "profiling_options": ""},
    "there is one process": {"enable_recovery": False},
    "no such file is read": {"env_config_path": ""},
    "elementwise ops are always fused": {"graph_kernel_flags": ""},
    "memory is taken as it is needed": {"max_device_memory": "1024GB", "mempool_block_size": "1GB"},
    "functions are compiled when they are called": {"precompile_only": False},
    "ops.Print writes to the terminal": {"print_file_path": ""},
    "max_threads=... sets the number of threads": {"runtime_num_threads": 0},
    "draw_graph and graph_text show graphs": {"save_graphs": False, "save_graphs_path": "."},
}  # fmt: skip
_OTHERS: dict[str, tuple[Any, str]] = {
    name: (first, why) for why, options in _WHY.items() for name, first in options.items()
}


def get_default_dtype() -> _core.DType:
    """The dtype that set_default_dtype has set, at first float32."""
    return _core.default_dtype()


def set_default_dtype(dtype: _core.DType | str | type) -> None:
    """Sets the dtype of what is made without one: tensors of Python floats, the parameters of layers,
    ops.zeros, ops.ones, ops.linspace, ops.rand and their kin. Integers are also converted to it in
    functions that give floats, such as ops.sin.

    dtype: float16, bfloat16, float32 (the default, MindSpore's) or float64, also by name or as NumPy's.
    With float64, a network
    and its training compute in double precision from one line at a program's top. NumPy arrays
    keep their own dtype, and gradcell.numpy makes float32, as MindSpore's does. What was made
    before stays as it is. Raises TypeError for anything that is not a floating dtype.
    """
    if dtype is not None and not isinstance(dtype, _core.DType):
        dtype = to_dtype(dtype)
    if not isinstance(dtype, _core.DType):
        bad_type(
            f"set_default_dtype: a floating dtype is needed, such as gradcell.float64, got {dtype!r}"
        )
    _core.set_default_dtype(dtype)


_DEVICES = ("CPU", "GPU", "Ascend")

#: The core's own limit.
_MOST_THREADS = 1024


def _fail(kind: type[Exception], message: str) -> None:
    raise kind(f"{message} ({_core.user_location()})")


def _check_mode(mode: Any) -> None:
    if mode not in (GRAPH_MODE, PYNATIVE_MODE) or isinstance(mode, bool):
        _fail(
            ValueError,
            "For 'context.set_context', the argument 'mode' should be context.GRAPH_MODE (0) or "
            f"context.PYNATIVE_MODE (1), but got {mode}.",
        )


def _check_device(target: Any) -> None:
    if target not in _DEVICES:
        _fail(ValueError, f"device_target must be 'CPU' or 'GPU', got {target!r}")
    if target == "Ascend":
        _fail(
            RuntimeError,
            "gradcell has no Ascend engine; use device_target='CPU' or 'GPU', or `python -m gradcell "
            "run`, which uses whatever is available",
        )


#: Which device a program gets that asks for one with this number; set by `python -m gradcell run`.
device_for: Callable[[str, int], str] | None = None


def _granted(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The options with the device that the program gets."""
    target = kwargs.get("device_target")
    if device_for is None or target not in _DEVICES:
        return kwargs
    number = kwargs.get("device_id", _values["device_id"])
    return {**kwargs, "device_target": device_for(target, number)}


def _choose_device(target: str, number: int) -> None:
    from gradcell.base import gpu

    if target == "GPU":
        gpu.use(number)
    else:
        gpu.leave()


def _check_gpu_config(options: Any) -> None:
    allowed = options.get("matmul_allow_tf32") if isinstance(options, dict) else options
    if not isinstance(options, dict) or not isinstance(allowed, (bool, type(None))):
        _fail(TypeError, f"gpu_config must be a dict of options, got {options!r}")
    if allowed is not None:
        _core.allow_tf32(allowed)


def _check_effect(name: str, value: Any) -> None:
    """Warns once where a setting asks for what is not done."""
    first, why = _OTHERS[name]
    if why and value and value != first:
        notice.once(f"set_context({name}={value!r})", why)


def set_context(**kwargs: Any) -> None:
    """Sets options of the process.

    mode: GRAPH_MODE (0) traces a function once for each signature and then runs it without Python;
    PYNATIVE_MODE (1, the default) traces at every call. device_target: 'CPU' or 'GPU'. device_id:
    which GPU. max_threads: threads of the CPU engine, None for one a core. locate_overflow: name the
    first op that overflowed when a loss-scaled step does. locate_constants: warn of every place where
    numbers are taken from tensors that are being differentiated, but to print or to decide; without it
    only of those where they are seen to be computed with. full_tracebacks: show gradcell's own frames in
    tracebacks too, as GRADCELL_FULL_TRACEBACKS=1 in the environment does. gpu_config:
    {'matmul_allow_tf32': True} lets a GPU multiply float32 matrices in TF32, with 10 bits of mantissa.
    MindSpore's other options are kept; an option that asks for something gradcell does not do warns
    once.

    kwargs: options by name, of those above. Raises ValueError for an unknown option or value,
    RuntimeError for a device that is not usable.
    """
    kwargs = _granted(kwargs)
    before = _values["device_target"], _values["device_id"]
    after = kwargs.get("device_target", before[0]), kwargs.get("device_id", before[1])
    for name, value in kwargs.items():
        if name == "gpu_config":
            _check_gpu_config(value)
        if name in _OTHERS:
            _check_effect(name, value)
            continue
        if name not in _values:
            known = nearest(name, [*_values, *_OTHERS])
            _fail(ValueError, f"set_context: unknown option {name!r}{known}")
        if name == "mode":
            _check_mode(value)
        elif name == "device_target":
            _check_device(value)
        elif name == "max_threads":
            wrong = isinstance(value, bool) or not isinstance(value, int)
            if value is not None and (wrong or not 1 <= value <= _MOST_THREADS):
                _fail(
                    ValueError,
                    f"max_threads must be an integer from 1 to {_MOST_THREADS} or None, "
                    f"got {value!r}",
                )
            _core.set_max_threads(value or 0)
        elif name == "device_id" and (not isinstance(value, int) or value < 0):
            _fail(ValueError, f"device_id must be a non-negative integer, got {value!r}")
        elif name in _SWITCHES and not isinstance(value, bool):
            _fail(TypeError, f"{name} must be a bool, got {value!r}")
    if after != before:
        _choose_device(*after)
    _values.update(kwargs)
    tracebacks.full = _values["full_tracebacks"]
    _core.set_graph_mode(graph_mode())


def get_context(attr_key: str) -> Any:
    """The value of an option that set_context sets. Raises ValueError for an unknown one.

    attr_key: the name of the option.
    """
    if attr_key == "max_threads":
        return _core.max_threads()
    if attr_key in _values:
        return _values[attr_key]
    if attr_key not in _OTHERS:
        _fail(ValueError, f"get_context: unknown option {attr_key!r}")
    return _OTHERS[attr_key][0]


def graph_mode() -> bool:
    """Return whether the mode is GRAPH_MODE."""
    return bool(_values["mode"] == GRAPH_MODE)


def set_device(device_target: str, device_id: int | None = None) -> None:
    """Set the device: set_context(device_target=..., device_id=...).

    device_target: 'CPU' or 'GPU'. device_id: which GPU, 0 for None.
    """
    set_context(device_target=device_target, device_id=0 if device_id is None else device_id)


class DeviceInfo(NamedTuple):
    """A device: its kind and its number."""

    device_target: str
    device_id: int


def get_current_device() -> DeviceInfo:
    """The device that is in use."""
    return DeviceInfo(str(_values["device_target"]), int(_values["device_id"]))


def set_deterministic(deterministic: bool) -> None:
    """Results are always the same in every run, with this setting or without.

    deterministic: stored, with no other effect. Raises TypeError unless it is a bool.
    """
    if not isinstance(deterministic, bool):
        _fail(TypeError, f"set_deterministic: expected a bool, got {deterministic!r}")
    _values["deterministic"] = "ON" if deterministic else "OFF"


def set_recursion_limit(recursion_limit: int = 1000) -> None:
    """Stores the number. It has no effect: graphs may be of any depth.

    recursion_limit: a positive int.
    """
    if (
        isinstance(recursion_limit, bool)
        or not isinstance(recursion_limit, int)
        or recursion_limit < 1
    ):
        _fail(ValueError, f"recursion_limit must be a positive integer, got {recursion_limit!r}")
    _values["max_call_depth"] = recursion_limit


_ps_values: dict[str, Any] = {"enable_ps": False}


def set_ps_context(**kwargs: Any) -> None:
    """Stores the options of a parameter server, which gradcell does not have. Warns once if one is
    to be used.

    kwargs: options by name.
    """
    if kwargs.get("enable_ps"):
        notice.once(
            "set_ps_context(enable_ps=True)", "there is one process, which has all parameters"
        )
    _ps_values.update(kwargs)


def get_ps_context(attr_key: str) -> Any:
    """The value that set_ps_context has set for an option. Raises ValueError for an unknown option.

    attr_key: the name of the option.
    """
    if attr_key not in _ps_values:
        _fail(ValueError, f"get_ps_context: unknown option {attr_key!r}")
    return _ps_values[attr_key]


def reset_ps_context() -> None:
    """Resets the options of a parameter server to their first values."""
    _ps_values.clear()
    _ps_values["enable_ps"] = False
