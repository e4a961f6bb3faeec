"""Programs written for MindSpore: `mindspore` as a name for gradcell, and what its names mean here."""

from gradcell.mindspore.alias import install

__all__ = ["install"]
__dir__ = sorted(__all__).copy
