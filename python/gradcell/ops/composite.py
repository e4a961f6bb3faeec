"""Functions of functions and of trees, under MindSpore's older module name."""

from gradcell.derivatives.transform import GradOperation
from gradcell.ops.arrays.creation import ones_like, zeros_like
from gradcell.ops.arrays.indexing import clip_by_value
from gradcell.ops.arrays.shaping import repeat_elements, repeat_interleave
from gradcell.ops.control.composition import HyperMap, Map, MultitypeFuncGraph, partial
from gradcell.ops.matrices.products import dot, matmul, mm, tensor_dot
from gradcell.ops.networks.clipping import clip_by_global_norm, clip_by_norm
from gradcell.ops.random.draws import normal, uniform
from gradcell.ops.reductions.reductions import count_nonzero

__all__ = [
    "GradOperation", "HyperMap", "Map", "MultitypeFuncGraph", "clip_by_global_norm",
    "clip_by_norm", "clip_by_value", "count_nonzero", "dot", "matmul", "mm", "normal",
    "ones_like", "partial", "repeat_elements", "repeat_interleave", "tensor_dot", "uniform",
    "zeros_like",
]  # fmt: skip
__dir__ = sorted(__all__).copy
