"""Meanings of arguments that several classes, or functions, share, which help() adds to a docstring that
leaves them out.

A row: the modules of gradcell (patterns), names of arguments, their meaning. The first row that fits holds. A
word belongs here only if it means the same in all of these modules.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase

Rows = tuple[tuple[str, str, str], ...]

ROWS: Rows = (
    ("dataset.samplers dataset.files dataset.records", "num_samples", "at most so many rows"),
    ("dataset.*", "num_parallel_workers", "how many workers there are"),
    ("dataset.*", "shuffle", "whether rows come in a random order"),
    ("dataset.*", "sampler", "which rows are taken, and in which order; or None"),
    ("dataset.*", "num_shards", "into how many parts rows are shared out among processes"),
    ("dataset.*", "shard_id", "which of num_shards parts is taken"),
    ("dataset.*", "cache", "has no effect"),
    ("dataset.steps", "child", "the dataset whose rows it uses"),
    ("dataset.files", "dataset_dir", "the folder of the files"),
    ("dataset.files", "usage", "'train', 'test' or 'all'"),
    ("dataset.files", "decrypt", "must be None, else NotImplementedError is raised"),
    ("dataset.transforms dataset.text dataset.vision.convert", "data_type", "the dtype of the result"),
    ("dataset.transforms dataset.vision.mixing", "transforms",
     "a list of functions of an image or a column"),
    ("dataset.text", "vocab", "a Vocab"),
    ("dataset.text", "keep_whitespace", "whether white space is a token too"),
    ("dataset.transforms dataset.vision.*", "prob", "the probability, from 0 to 1"),
    ("dataset.vision.color", "degrees", "the range of the random factor"),
    ("dataset.vision.*", "is_hwc", "whether the channels are the last dimension"),
    ("dataset.vision.geometry", "size", "the height and width, or one number"),
    ("dataset.vision.geometry", "fill_value", "the value of new pixels, or one for each channel"),
    ("dataset.vision.geometry", "padding_mode", "a Border: how new pixels are filled"),
    ("dataset.vision.geometry", "interpolation resample", "an Inter: the method of interpolation"),
    ("dataset.vision.geometry", "scale", "the range of the area, or the factor of the size"),
    ("dataset.vision.geometry", "ratio", "the range of width over height"),
    ("dataset.vision.geometry", "max_attempts", "how often a random part is tried"),
    ("dataset.vision.geometry", "top", "the first row of the rectangle, in pixels"),
    ("dataset.vision.geometry", "left", "the first column of the rectangle, in pixels"),
    ("dataset.vision.geometry", "height", "the height of the rectangle, in pixels"),
    ("dataset.vision.geometry", "width", "the width of the rectangle, in pixels"),
    ("dataset.vision.geometry", "expand", "whether the image grows so that nothing is cut off"),
    ("dataset.vision.geometry", "inplace", "whether the given array itself is changed"),
    ("nn.attention nn.basic nn.convolution nn.normalization nn.op_cells nn.recurrent mint.nn.layers", "dtype",
     "the dtype of the parameters"),
    ("nn.losses nn.margins", "reduction", "'mean', 'sum' or 'none'"),
    ("nn.basic nn.convolution nn.fused nn.recurrent", "has_bias", "whether a bias is added"),
    ("nn.convolution nn.normalization nn.pooling", "data_format",
     "'NCHW' or 'NHWC', and the like for other dimensions"),
    ("nn.normalization nn.optim.adam", "eps", "keeps a denominator from zero"),
    ("nn.normalization", "momentum", "the share of old statistics that a step keeps"),
    ("nn.optim.*", "beta1", "the share of the mean of gradients that a step keeps"),
    ("nn.optim.*", "beta2", "the share of the mean of squared gradients that a step keeps"),
    ("nn.optim.*", "use_locking", "has no effect"),
    ("nn.wrap.*", "optimizer", "an Optimizer of the network's parameters"),
    ("nn.probability.*", "name", "a name, which print shows"),
    ("nn.probability.*", "seed", "a seed for samples; by default that of set_seed"),
    ("nn.probability.*", "dtype", "the dtype of samples and densities"),
    ("common.initializer", "kwargs", "has no effect"),
    ("common.initializer", "sigma", "the standard deviation"),
    ("common.initializer", "negative_slope", "the slope of a leaky ReLU"),
    ("common.sparse_tensor", "shape", "the shape of the whole tensor"),
    ("solvers.*", "loss_tolerance", "a run ends when the loss is at most that"),
    ("solvers.*", "gradient_tolerance",
     "a run ends when the largest component of the loss's gradient is at most that"),
    ("solvers.quasi_newton", "value_tolerance",
     "a run ends when a step lowers the loss by less than this share of it"),
    ("solvers.quasi_newton", "search", "the most evaluations for one step"),
    ("train.callback.*", "verbose", "whether a message is printed"),
    ("ops.primitives.collectives", "group", "the name of a group of processes"),
    ("ops.primitives.collectives", "attributes", "stored, as Primitive does; the result is the same"),
    ("ops.primitives.custom", "op_name", "the kernel's name"),
)  # fmt: skip

#: Of arguments of functions whose docstrings do not name them.
FUNCTIONS: Rows = (
    ("ops.* numpy.*", "axis dim", "the dimension, counted from the end where negative"),
    ("ops.* numpy.*", "keepdims keep_dims keepdim",
     "whether dimensions that are reduced stay, with size 1"),
    ("ops.* numpy.*", "dtype", "the dtype of the result"),
    ("ops.* numpy.*", "ddof", "what is taken off the number of elements in the divisor"),
    ("ops.random.*", "seed",
     "a seed, or a key of gradcell.random, by which the call has numbers of its own; by default it goes on "
     "with those of set_seed"),
    ("ops.networks.*", "reduction", "'mean', 'sum' or 'none'"),
    ("ops.arrays.* numpy.shaping", "indices_or_sections", "the number of parts, or where to cut"),
    ("ops.arrays.*", "offset", "which diagonal: 0 the main one, positive numbers above it"),
    ("ops.arrays.scatters", "input_x", "a Parameter, which is changed"),
    ("ops.arrays.scatters", "updates", "the values to write or to combine"),
    ("numpy.*", "range", "the lower and upper end; by default those of the data"),
    ("numpy.*", "weights", "the weight of each element"),
    ("numpy.mathematics", "density", "whether the integral is 1"),
    ("numpy.reductions", "where", "which elements count, a tensor of bools"),
    ("numpy.reductions", "mean", "their mean, with the axes kept, if it is known"),
    ("numpy.order numpy.shaping", "assume_unique", "whether no value occurs twice"),
    ("numpy.order", "ar1 ar2", "tensors, taken as vectors"),
    ("numpy.polynomials", "a1 a2", "coefficients, the highest power first"),
    ("numpy.linalg", "UPLO", "'L' for the lower, 'U' for the upper triangle"),
    ("numpy.linalg", "hermitian", "whether the lower triangle stands for all of a"),
    ("numpy.shaping", "condlist", "a list of conditions"),
    ("dataset.text", "encoding", "the name of an encoding, such as 'utf8'"),
    ("nn.dynamic_lr", "total_step", "the number of steps: the length of the list"),
    ("nn.dynamic_lr", "step_per_epoch", "steps in an epoch"),
)  # fmt: skip


def meaning(place: str, name: str, rows: Rows = ROWS) -> str:
    """The meaning of an argument in a module; nothing if there is no row for it."""
    for modules, names, about in rows:
        if name in names.split() and any(fnmatchcase(place, m) for m in modules.split()):
            return about
    return ""


def completed(text: str, cls: type) -> str:
    """A class's docstring with the meanings of the arguments that it does not speak of."""
    text = inspect.cleandoc(text)
    place = cls.__module__.removeprefix("gradcell.")
    try:
        parameters = inspect.signature(cls).parameters
    except ValueError:  # it has none that Python knows
        return text
    told = r"\b{}(?:(?:,| and)\s\w+)*(?::\s|\sha(?:s|ve)\sno\seffect)"
    left = [n for n in parameters if not re.search(told.format(n), text)]
    return _with_meanings(text, ((n, meaning(place, n)) for n in left))


@functools.cache
def _words(place: str) -> dict[str, str]:
    """{an argument: its meaning} of the functions of a module."""
    names = (name for _, names, _ in FUNCTIONS for name in names.split())
    return {name: about for name in names if (about := meaning(place, name, FUNCTIONS))}


def complete(function: Callable[..., object]) -> None:
    """Adds to a function's docstring the meanings of the arguments that it does not name."""
    text, words = function.__doc__ or "", _words(function.__module__.removeprefix("gradcell."))
    code = inspect.unwrap(function).__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    left = [n for n in names if n in words and not re.search(rf"\b{n}\b", text)]
    if left:
        function.__doc__ = _with_meanings(inspect.cleandoc(text), ((n, words[n]) for n in left))


def _with_meanings(text: str, found: Iterable[tuple[str, str]]) -> str:
    said: dict[str, list[str]] = {}
    for name, about in found:
        if about:
            said.setdefault(about, []).append(name)
    more = [
        f"{', '.join(names)}{' ' if about == 'has no effect' else ': '}{about}."
        for about, names in said.items()
    ]
    return "\n\n".join([text, *([textwrap.fill(" ".join(more), 96)] if more else [])])
