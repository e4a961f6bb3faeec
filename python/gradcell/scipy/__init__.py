"""SciPy's names for tensors: integrate, linalg, optimize, signal, special and stats."""

from __future__ import annotations

from gradcell.scipy import integrate, linalg, optimize, signal, special, stats

__all__ = ["integrate", "linalg", "optimize", "signal", "special", "stats"]
__dir__ = sorted(__all__).copy
