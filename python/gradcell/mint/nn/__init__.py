"""mindspore.mint.nn: layers and losses in mint's spelling, over those of gradcell.nn.

layers.py has those with parameters of other names, renamed.py the others.
"""

from gradcell.base import publish as _publish
from gradcell.mint.nn import functional as functional
from gradcell.mint.nn.layers import *  # noqa: F403
from gradcell.mint.nn.renamed import *  # noqa: F403

from gradcell.nn import (  # isort: skip
    AdaptiveMaxPool2d as AdaptiveMaxPool2d, Cell as Cell, ConstantPad1d as ConstantPad1d,
    ConstantPad2d as ConstantPad2d, ConstantPad3d as ConstantPad3d, MaxUnpool2d as MaxUnpool2d,
    CosineEmbeddingLoss as CosineEmbeddingLoss, ReflectionPad1d as ReflectionPad1d,
    ReflectionPad2d as ReflectionPad2d, ReflectionPad3d as ReflectionPad3d,
    ReplicationPad1d as ReplicationPad1d, ReplicationPad2d as ReplicationPad2d,
    ReplicationPad3d as ReplicationPad3d, SoftMarginLoss as SoftMarginLoss, Upsample as Upsample,
    ZeroPad2d as ZeroPad2d,
)  # fmt: skip

_publish(
    globals(), "AdaptiveMaxPool2d", "Cell", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "CosineEmbeddingLoss", "MaxUnpool2d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d",
    "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "SoftMarginLoss", "Upsample", "ZeroPad2d",
    "functional",
)  # fmt: skip
