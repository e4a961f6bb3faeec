"""SciPy's names for tensors: integrate, linalg, optimize, signal, special and stats."""

from __future__ import annotations

from gradcell.scipy import integrate, linalg, optimize, signal, special, stats

__all__ = ["integrate", "linalg", "optimize", "signal", "special", "stats"]


def __dir__() -> list[str]:
    return sorted(__all__)
