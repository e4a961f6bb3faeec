"""SciPy's names for tensors: integrate, linalg, optimize, signal, special and stats."""

from gradcell.scipy import integrate, linalg, optimize, signal, special, stats

__all__ = ["integrate", "linalg", "optimize", "signal", "special", "stats"]
__dir__ = sorted(__all__).copy
