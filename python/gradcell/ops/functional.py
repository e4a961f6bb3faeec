"""The names of gradcell.ops, under MindSpore's older module name."""

from __future__ import annotations

from typing import Any

from gradcell import ops as _ops


def __getattr__(name: str) -> Any:
    return getattr(_ops, name)


def __dir__() -> list[str]:
    return dir(_ops)


__all__: list[str] = _ops.__all__
