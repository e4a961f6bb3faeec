"""What arguments of a name are wherever they stand, for docstrings that do not say it.

A row: the modules of gradcell (patterns), names of arguments, their meaning. The first row that fits
holds. A word belongs here only if it means the same in all of these modules.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

ROWS = (
    ("derivatives.transform derivatives.jacobians derivatives.taylor", "fn",
     "a function of tensors, or a Cell"),
    ("derivatives.transform derivatives.jacobians derivatives.taylor", "grad_position",
     "the index, or a tuple of indices, of the arguments to differentiate by"),
    ("derivatives.transform derivatives.jacobians derivatives.taylor", "has_aux",
     "whether only fn's first output is differentiated, and the others come back as they are"),
    ("derivatives.second_order show.inspect compilation.compiled derivatives.batching", "fn",
     "a function of tensors, or a Cell"),
    ("ops.arrays.scatters ops.control.composition", "input_x", "a Parameter, which is changed"),
    ("ops.control.composition ops.arrays.scalars ops.control.custom", "x", ""),
    ("ops.*", "input input_x x a input_tensor", "a tensor"),
    ("ops.matrices.products ops.matrices.linear_algebra", "other vec2 mat2", "a tensor"),
    ("ops.elements.special ops.arrays.indexing ops.reductions.sets", "other", "a tensor or a number"),
    ("ops.arrays.indexing ops.arrays.scatters", "index indices", "a tensor of integers"),
    ("ops.*", "mask condition", "a tensor of bools, which broadcasts"),
    ("ops.*", "tensors", "a tuple or list of tensors"),
    ("ops.* numpy*", "dtype", "the dtype of the result"),
    ("common.initializer", "dtype", "the dtype of the result"),
    ("ops.* numpy* common.initializer", "shape", "a tuple of integers"),
    ("numpy*", "x a arr x1 x2", "a tensor, or what becomes one"),
    ("ops.random.functions ops.random.draws", "seed seed2",
     "a seed, by which the call has numbers of its own; by default it goes on with those of set_seed"),
    ("ops.*", "training", "whether it is done as in training"),
    ("nn.optim*", "beta1", "the share of the mean of gradients that a step keeps"),
    ("nn.optim*", "beta2", "the share of the mean of squared gradients that a step keeps"),
    ("nn.optim* nn.normalization", "eps epsilon", "keeps a denominator from zero"),
    ("nn.*", "has_bias", "whether a bias is added"),
    ("nn.*", "in_channels", "channels, or features, of the input"),
    ("nn.*", "out_channels", "channels, or features, of the output"),
    ("nn.* common.*", "weight_init bias_init", "anything that `initializer` takes"),
    ("nn.basic", "p", "the probability that an element is dropped"),
    ("ops.random.functions", "p", "the probability that an element is dropped, or is 1"),
    ("nn.dynamic_lr", "total_step", "the number of steps: the length of the list"),
    ("nn.dynamic_lr", "step_per_epoch", "steps in an epoch"),
    ("nn.learning_rate_schedule nn.dynamic_lr", "is_stair",
     "whether the rate changes at whole multiples of the decay's length only"),
    ("dataset*", "num_shards", "into how many parts rows are shared out among processes"),
    ("dataset*", "shard_id", "which of num_shards parts is taken"),
    ("dataset*", "num_samples", "at most so many rows"),
    ("dataset*", "num_parallel_workers", "how many workers there are"),
    ("communication* ops.control.collectives", "group", "the name of a group of processes"),
    ("nn.wrap*", "network", "a Cell"),
    ("nn.wrap*", "optimizer", "an Optimizer of the network's parameters"),
    ("*", "axis dim", "the dimension, counted from the end where negative"),
    ("*", "keepdim keepdims keep_dims", "whether dimensions that are reduced stay, with size 1"),
    ("*", "reduction", "'mean', 'sum' or 'none'"),
    ("*", "use_locking", "has no effect"),
)  # fmt: skip


def meaning(home: str, name: str) -> str:
    """The meaning of an argument in a module; nothing if there is no row for it."""
    place = home.removeprefix("gradcell.")
    for modules, names, about in ROWS:
        if name in names.split() and any(
            fnmatchcase(place, pattern) for pattern in modules.split()
        ):
            return about
    return ""
