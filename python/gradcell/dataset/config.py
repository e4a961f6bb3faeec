"""Settings of all datasets: the seed, how many workers, how far they run ahead.

The other setters that MindSpore has here are taken and given back; they do not matter to gradcell.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

from gradcell.base import arguments, bad_type, bad_value
from gradcell.base.seed import data_seed, get_seed as _global_seed, on_set_seed, seed_others

INT32_MAX = 2**31 - 1
UINT32_MAX = 2**32 - 1

_seed: int | None = None
_workers = 8
_prefetch = 16


def set_seed(seed: int) -> None:
    """Fixes the order of shuffled datasets, what random transforms draw, and the numbers of
    numpy.random and of Python's random.

    Of this and gradcell.set_seed the later one counts. seed: an int of at least 0. Raises TypeError
    and ValueError unless it is an int of at least 0.
    """
    global _seed
    if isinstance(seed, bool) or not isinstance(seed, int):
        bad_type(f"config.set_seed: 'seed' must be an int, got {seed!r}")
    if seed < 0:
        bad_value(f"config.set_seed: 'seed' must be at least 0, got {seed}")
    _seed = seed
    seed_others(seed)


@on_set_seed
def _give_way(_: int) -> None:
    global _seed
    _seed = None


def get_seed() -> int | None:
    """The seed that datasets draw from, None if neither set_seed nor gradcell.set_seed was
    called."""
    return _global_seed() if _seed is None else _seed


def order_seed() -> int:
    """Return the seed of the order of rows: the one set, else one drawn for this process."""
    return data_seed() if _seed is None else _seed


def set_num_parallel_workers(num: int) -> None:
    """Set the number of threads of steps that set none and gain from threads (reading files).

    num: a positive int.
    """
    global _workers
    _workers = arguments.integer(num, "config.set_num_parallel_workers", "num", 1)


def get_num_parallel_workers() -> int:
    """Return the number of threads of steps that set none, at most the machine's cores."""
    return min(_workers, os.cpu_count() or 1)


def set_prefetch_size(size: int) -> None:
    """Set the number of rows that each worker may compute ahead.

    size: a positive int.
    """
    global _prefetch
    _prefetch = arguments.integer(size, "config.set_prefetch_size", "size", 1)


def get_prefetch_size() -> int:
    """Return the number of rows that each worker may compute ahead."""
    return _prefetch


_kept: dict[str, Any] = {
    "auto_num_workers": False, "auto_offload": False, "autotune_interval": 0,
    "callback_timeout": 60, "debug_mode": False, "dynamic_shape": False, "enable_autotune": False,
    "enable_shared_mem": True, "enable_watchdog": True, "fast_recovery": True,
    "iterator_mode": {"do_copy": False, "parallel_convert": False},
    "monitor_sampling_interval": 1000, "multiprocessing_start_method": "fork",
    "multiprocessing_timeout_interval": 300, "numa_enable": False,
}  # fmt: skip

#: What the setters' arguments are called, where it is not enable or the setting's last word.
_ARGUMENTS = {
    "auto_offload": "offload", "debug_mode": "debug_mode_flag", "fast_recovery": "fast_recovery",
    "multiprocessing_start_method": "start_method", "numa_enable": "numa_enable",
}  # fmt: skip


def set_iterator_mode(do_copy: bool = False, parallel_convert: bool = False) -> None:
    """Stores both options; rows become tensors without a copy in any case.

    do_copy, parallel_convert: bools.
    """
    _kept["iterator_mode"] = {"do_copy": do_copy, "parallel_convert": parallel_convert}


def __getattr__(name: str) -> Callable[..., Any]:
    verb, _, setting = name.partition("_")
    if setting not in _kept or verb not in ("get", "set"):
        raise AttributeError(f"module 'gradcell.dataset.config' has no attribute {name!r}")

    kept = _kept

    def get() -> Any:
        return kept[setting]

    def set_(*given: Any, **named: Any) -> None:
        kept[setting] = (*given, *named.values())[0]

    last = setting.rpartition("_")[2]
    argument = last if last in ("interval", "timeout") else _ARGUMENTS.get(setting, "enable")
    made: Any = get if verb == "get" else set_
    if verb == "set":
        own = inspect.signature(lambda value, *unused, **more: None).parameters
        first = own["value"].replace(name=argument)
        made.__signature__ = inspect.Signature([first, own["unused"], own["more"]])
    made.__doc__ = f"{verb.capitalize()}s the setting {setting}, which does not matter to gradcell."
    made.__doc__ += f"\n\n{argument}: what the getter gives back." if verb == "set" else ""
    return made  # type: ignore[no-any-return]


__all__ = [
    "INT32_MAX", "UINT32_MAX", "get_num_parallel_workers", "get_prefetch_size", "get_seed",
    "set_num_parallel_workers", "set_prefetch_size", "set_seed",
    *(f"{verb}_{name}" for verb in ("get", "set") for name in _kept),
]  # fmt: skip
__dir__ = sorted(__all__).copy
