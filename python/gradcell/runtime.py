"""The device while a program runs: its memory, and waiting for it."""

from __future__ import annotations

from typing import Any

from gradcell import _core, context
from gradcell.base import notice

__all__ = [
    "empty_cache", "launch_blocking", "memory_allocated", "memory_reserved", "memory_stats",
    "memory_summary", "set_memory", "synchronize",
]  # fmt: skip
__dir__ = sorted(__all__).copy


def synchronize() -> None:
    """Waits until the device has computed all that has been asked for."""
    number = _core.device_in_use()
    if number >= 0:
        _core.synchronize_device(number)


def launch_blocking() -> None:
    """Would make each op wait for its result. It has no effect, and warns once: errors are raised
    where they happen anyway.
    """
    notice.once("launch_blocking", "errors name the user's line anyway")


def set_memory(
    init_size: str = "2GB", increase_size: str = "2GB", max_size: str = "1024GB",
    optimize_level: str = "O0", huge_page_reserve_size: str = "0GB",
) -> None:  # fmt: skip
    """Would set how memory is taken from the device. It has no effect, and warns once: memory is
    taken as it is needed.

    init_size, increase_size, max_size, optimize_level and huge_page_reserve_size have no effect.
    """
    notice.once("set_memory", "memory is taken as it is needed")


def threads_num(num: int) -> None:
    """Set the number of threads on the CPU, as set_context(max_threads=num)."""
    context.set_context(max_threads=num)


def empty_cache() -> None:
    """Returns memory that is kept for later use to the system: the host's, and, where a GPU is in
    use, that GPU's, for PyTorch, CuPy and other processes. Compiled functions let go of what they
    keep between their calls."""
    _core.release_cached_memory()
    number = _core.device_in_use()
    if number >= 0:
        _core.release_cached_device_memory(number)


def memory_stats() -> dict[str, Any]:
    """The bytes in use, and those kept for later use: of the GPU in use, else of the host."""
    number = _core.device_in_use()
    if number < 0:
        return dict(_core.memory_info())
    device = _core.cuda_driver_info()["devices"][number]
    return {name: device[name] for name in ("in_use", "cached")}


def memory_allocated() -> int:
    """The bytes that tensors use, on a GPU those of compiled functions too."""
    return int(memory_stats()["in_use"])


def memory_reserved() -> int:
    """The bytes taken from the system, or from the GPU's driver: in use, and kept for later use."""
    return sum(memory_stats().values())


def memory_summary() -> str:
    """The figures of memory_stats as text."""
    return "\n".join(f"{name}: {value}" for name, value in memory_stats().items())
