"""SciPy's names for tensors: linalg and optimize."""

from __future__ import annotations

from gradcell.scipy import linalg, optimize

__all__ = ["linalg", "optimize"]


def __dir__() -> list[str]:
    return sorted(__all__)
