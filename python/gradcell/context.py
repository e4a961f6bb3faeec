"""Execution context: mode, device, threads."""

from __future__ import annotations

from typing import Any

from gradcell import _core

__all__ = ["GRAPH_MODE", "PYNATIVE_MODE", "get_context", "set_context"]


def __dir__() -> list[str]:
    return sorted(__all__)


GRAPH_MODE = 0
PYNATIVE_MODE = 1

_values: dict[str, Any] = {
    "mode": PYNATIVE_MODE,
    "device_target": "CPU",
    "device_id": 0,
    "max_threads": None,
    "locate_overflow": False,
}
#: Accepted for MindSpore's sake; they have no effect here.
_IGNORED = frozenset(
    {
        "enable_graph_kernel",
        "graph_kernel_flags",
        "save_graphs",
        "save_graphs_path",
        "max_call_depth",
        "max_device_memory",
        "enable_sparse",
        "reserve_class_name_in_scope",
        "pynative_synchronize",
        "deterministic",
        "jit_level",
        "jit_config",
        "runtime_num_threads",
        "print_file_path",
        "env_config_path",
        "ascend_config",
        "gpu_config",
        "memory_optimize_level",
        "mempool_block_size",
        "check_bprop",
        "precompile_only",
        "enable_compile_cache",
        "compile_cache_path",
        "variable_memory_max_size",
    }
)


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
    if target not in ("CPU", "GPU", "Ascend"):
        _fail(ValueError, f"device_target must be 'CPU' or 'GPU', got {target!r}")
    if target == "Ascend":
        _fail(RuntimeError, "gradcell has no Ascend engine; use device_target='CPU' or 'GPU'")


def _choose_device(target: str, number: int) -> None:
    from gradcell import _gpu

    if target == "GPU":
        _gpu.use(number)
    else:
        _gpu.leave()


def _check_gpu_config(options: Any) -> None:
    allowed = options.get("matmul_allow_tf32") if isinstance(options, dict) else options
    if not isinstance(options, dict) or not isinstance(allowed, (bool, type(None))):
        _fail(TypeError, f"gpu_config must be a dict of options, got {options!r}")
    if allowed is not None:
        _core.allow_tf32(allowed)
        _core.bump_structure_version()


def set_context(**kwargs: Any) -> None:
    """Sets options of the process.

    mode: GRAPH_MODE (0) traces a function once for each signature and then runs it without Python;
    PYNATIVE_MODE (1, the default) traces at every call. device_target: 'CPU' or 'GPU'. device_id:
    which GPU. max_threads: threads of the CPU engine, None for one a core. locate_overflow: name the
    first op that overflowed when a loss-scaled step does. gpu_config: {'matmul_allow_tf32': True}
    lets a GPU multiply float32 matrices in TF32, with 10 bits of mantissa. MindSpore's other options
    are accepted and have no effect.

    Raises ValueError for an unknown option or value, RuntimeError for a device that is not usable.
    """
    before = _values["device_target"], _values["device_id"]
    after = kwargs.get("device_target", before[0]), kwargs.get("device_id", before[1])
    for name, value in kwargs.items():
        if name == "gpu_config":
            _check_gpu_config(value)
        if name in _IGNORED:
            continue
        if name not in _values:
            _fail(ValueError, f"set_context: unknown option {name!r}")
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
        elif name == "locate_overflow" and not isinstance(value, bool):
            _fail(TypeError, f"locate_overflow must be a bool, got {value!r}")
    if after != before:
        _choose_device(*after)
    _values.update((name, value) for name, value in kwargs.items() if name not in _IGNORED)


def get_context(name: str) -> Any:
    """The value of an option. Raises ValueError for an unknown one."""
    if name in _IGNORED:
        return None
    if name not in _values:
        _fail(ValueError, f"get_context: unknown option {name!r}")
    return _core.max_threads() if name == "max_threads" else _values[name]


def graph_mode() -> bool:
    """Whether the mode is GRAPH_MODE."""
    return bool(_values["mode"] == GRAPH_MODE)
