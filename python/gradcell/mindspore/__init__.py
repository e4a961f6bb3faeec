"""Programs written for MindSpore: `mindspore` as a name for gradcell, and what its names mean here."""

from __future__ import annotations

from gradcell.mindspore.alias import install

__all__ = ["install"]


def __dir__() -> list[str]:
    return __all__.copy()
