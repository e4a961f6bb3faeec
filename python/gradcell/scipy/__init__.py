"""SciPy's names for tensors: linalg, optimize, special and stats."""

from __future__ import annotations

from gradcell.scipy import linalg, optimize, special, stats

__all__ = ["linalg", "optimize", "special", "stats"]


def __dir__() -> list[str]:
    return sorted(__all__)
