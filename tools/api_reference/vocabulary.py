"""What arguments of a name are wherever they stand, for docstrings that do not say it.

A row: the modules (patterns), names of arguments, their meaning. The first row that fits holds. A word
belongs here only if it means the same in all of these modules.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

ROWS = (
    ("gradcell.transform gradcell.jacobians gradcell.taylor", "fn", "a function of tensors, or a Cell"),
    ("gradcell.transform gradcell.jacobians gradcell.taylor", "grad_position",
     "the index, or a tuple of indices, of the arguments to differentiate by"),
    ("gradcell.transform gradcell.jacobians gradcell.taylor", "has_aux",
     "whether only fn's first output is differentiated, and the others come back as they are"),
    ("gradcell.second_order gradcell.inspect gradcell.compiled gradcell.batching", "fn",
     "a function of tensors, or a Cell"),
    ("gradcell.ops.scatters gradcell.ops.composition", "input_x", "a Parameter, which is changed"),
    ("gradcell.ops.composition gradcell.ops.scalars gradcell.ops.custom", "x", ""),
    ("gradcell.ops.*", "input input_x x a input_tensor", "a tensor"),
    ("gradcell.ops.products gradcell.ops.linear_algebra", "other vec2 mat2", "a tensor"),
    ("gradcell.ops.special gradcell.ops.indexing gradcell.ops.sets", "other", "a tensor or a number"),
    ("gradcell.ops.indexing gradcell.ops.scatters", "index indices", "a tensor of integers"),
    ("gradcell.ops.*", "mask condition", "a tensor of bools, which broadcasts"),
    ("gradcell.ops.*", "tensors", "a tuple or list of tensors"),
    ("gradcell.ops.* gradcell.numpy*", "dtype", "the dtype of the result"),
    ("gradcell.common.initializer", "dtype", "the dtype of the result"),
    ("gradcell.ops.* gradcell.numpy* gradcell.common.initializer", "shape", "a tuple of integers"),
    ("gradcell.numpy*", "x a arr x1 x2", "a tensor, or what becomes one"),
    ("gradcell.ops.random gradcell.ops.draws", "seed seed2",
     "a seed, by which the call has numbers of its own; by default it goes on with those of set_seed"),
    ("gradcell.ops.*", "training", "whether it is done as in training"),
    ("gradcell.nn.optim*", "beta1", "the share of the mean of gradients that a step keeps"),
    ("gradcell.nn.optim*", "beta2", "the share of the mean of squared gradients that a step keeps"),
    ("gradcell.nn.optim* gradcell.nn.normalization", "eps epsilon", "keeps a denominator from zero"),
    ("gradcell.nn.*", "has_bias", "whether a bias is added"),
    ("gradcell.nn.*", "in_channels", "channels, or features, of the input"),
    ("gradcell.nn.*", "out_channels", "channels, or features, of the output"),
    ("gradcell.nn.* gradcell.common.*", "weight_init bias_init", "anything that `initializer` takes"),
    ("gradcell.nn.basic", "p", "the probability that an element is dropped"),
    ("gradcell.ops.random", "p", "the probability that an element is dropped, or is 1"),
    ("gradcell.nn.dynamic_lr", "total_step", "the number of steps: the length of the list"),
    ("gradcell.nn.dynamic_lr", "step_per_epoch", "steps in an epoch"),
    ("gradcell.nn.learning_rate_schedule gradcell.nn.dynamic_lr", "is_stair",
     "whether the rate changes at whole multiples of the decay's length only"),
    ("gradcell.dataset*", "num_shards", "into how many parts rows are shared out among processes"),
    ("gradcell.dataset*", "shard_id", "which of num_shards parts is taken"),
    ("gradcell.dataset*", "num_samples", "at most so many rows"),
    ("gradcell.dataset*", "num_parallel_workers", "how many workers there are"),
    ("gradcell.communication* gradcell.ops.parallel", "group", "the name of a group of processes"),
    ("gradcell.nn.wrap*", "network", "a Cell"),
    ("gradcell.nn.wrap*", "optimizer", "an Optimizer of the network's parameters"),
    ("*", "axis dim", "the dimension, counted from the end where negative"),
    ("*", "keepdim keepdims keep_dims", "whether dimensions that are reduced stay, with size 1"),
    ("*", "reduction", "'mean', 'sum' or 'none'"),
    ("*", "use_locking", "has no effect"),
)  # fmt: skip


def meaning(home: str, name: str) -> str:
    """The meaning of an argument in a module; nothing if there is no row for it."""
    for modules, names, about in ROWS:
        if name in names.split() and any(fnmatchcase(home, pattern) for pattern in modules.split()):
            return about
    return ""
