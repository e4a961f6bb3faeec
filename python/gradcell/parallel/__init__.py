"""Several devices: for now there is one, and every mode comes down to it."""

from __future__ import annotations

from gradcell.parallel._utils import ParallelMode

__all__ = ["ParallelMode"]


def __dir__() -> list[str]:
    return sorted(__all__)
