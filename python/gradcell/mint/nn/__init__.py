"""mindspore.mint.nn: layers and losses in mint's spelling, over those of gradcell.nn.

layers.py has those with parameters of other names, renamed.py the others.
"""

from __future__ import annotations

import typing as _typing

from gradcell.base.signposts import missing as _missing
from gradcell.mint.nn import functional, layers as _layers, renamed as _renamed
from gradcell.mint.nn.layers import *  # noqa: F403
from gradcell.mint.nn.renamed import *  # noqa: F403

from gradcell.nn import (  # isort: skip
    AdaptiveMaxPool2d, Cell, ConstantPad1d, ConstantPad2d, ConstantPad3d, CosineEmbeddingLoss, MaxUnpool2d,
    ReflectionPad1d, ReflectionPad2d, ReflectionPad3d, ReplicationPad1d, ReplicationPad2d,
    ReplicationPad3d, SoftMarginLoss, Upsample, ZeroPad2d,
)  # fmt: skip

__all__ = [
    *_layers.__all__, *_renamed.__all__, "AdaptiveMaxPool2d", "Cell", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "CosineEmbeddingLoss", "MaxUnpool2d", "ReflectionPad1d", "ReflectionPad2d",
    "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "SoftMarginLoss",
    "Upsample", "ZeroPad2d", "functional",
]  # fmt: skip

if not _typing.TYPE_CHECKING:  # a misspelt name is an error to a type checker

    def __getattr__(name: str) -> object:
        raise _missing("gradcell.mint.nn", name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
