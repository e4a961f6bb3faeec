"""The groups of the reference, and which entries belong to each.

A pattern with a dot before its name ("ops.sin", "gc.set_*") is of names, one that begins with @ of the
modules of gradcell that things are defined in. Patterns of names come before those of modules. An entry
that no pattern fits, or patterns of two groups, is an error: a new name has its place by the module it is
defined in, or gets a pattern here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from functools import cache

from api_reference.examples import EXAMPLES
from api_reference.names import Entry


@dataclass(frozen=True)
class Group:
    """One page. chapter: the heading in the navigation; page: its file and its title there."""

    chapter: str
    page: str
    title: str
    about: str
    patterns: str


GROUPS = (
    Group(
        "Derivatives and transforms", "derivatives", "Derivatives",
        "Functions that take a function and give its derivatives, in reverse and forward mode, of any order.",
        """@derivatives.transform @derivatives.jacobians @derivatives.taylor @derivatives.recorded
        @derivatives.second_order
        @derivatives.finite_differences @common.no_grad ops.stop_gradient ops.stop_gradient_
        nn.Jvp
        nn.Vjp""",
    ),
    Group(
        "Derivatives and transforms", "transforms", "Compiling, batching, custom rules",
        "Compiled functions, batches, loops, less memory for more time, and custom derivatives.",
        """@compilation.compiled @derivatives.batching @derivatives.custom_rules @common.recompute
        @common.api @base.symbol @tree @ops.control.choices @ops.control.loops
        @ops.primitives.gradient_hooks""",
    ),
    Group(
        "Tensors", "tensors", "Tensors and parameters",
        "The arrays that functions take and return, with a shape, a dtype and a device.",
        """gc.Tensor @tensors.tensor @tensors.parameter ops.is_tensor ops.typeof ops.dtype ops.shape
        ops.rank ops.size ops.cast ops.is_floating_point ops.scalar_to_tensor
        @common.sparse_tensor""",
    ),
    Group(
        "Tensors", "dtypes", "Dtypes",
        "The types of elements. `x.dtype` is one of them, and `dtype=` takes them.",
        "@dtype @_core gc.*_dtype numpy.finfo numpy.promote_types",
    ),
    Group(
        "Tensors", "settings", "Settings",
        "The device, the mode of execution, defaults.",
        "@context @mindspore.alias gc.*_MODE gc.COMPATIBLE gc.LAX gc.STRICT gc.run_check",
    ),
    Group(
        "Functions of arrays", "creation", "Creation",
        "New arrays: constants, ranges, grids.",
        """@ops.arrays.creation ops.one_hot ops.tril_indices ops.triu_indices ops.sequence_mask
        ops.identity ops.vander ops.meshgrid""",
    ),
    Group(
        "Functions of arrays", "arithmetic", "Arithmetic, powers, roots",
        "One result for each element, of one or two arrays that are broadcast against each other.",
        """ops.abs ops.add ops.sub ops.mul ops.div ops.div_no_nan ops.divide ops.neg ops.pow
        ops.sqrt ops.rsqrt
        ops.square ops.reciprocal ops.inv ops.squared_difference ops.floor* ops.ceil ops.round ops.trunc
        ops.fix ops.frac ops.mod ops.fmod ops.remainder ops.maximum ops.minimum ops.sign ops.sgn
        ops.hypot
        ops.copysign ops.ldexp ops.lerp ops.true_divide ops.truncate_* ops.float_power ops.pows ops.cbrt
        ops.positive ops.nan_to_num ops.addcdiv ops.addcmul ops.addn ops.clamp ops.clip
        ops.clip_by_value""",
    ),
    Group(
        "Functions of arrays", "elementary", "Exponentials, logarithms, trigonometry",
        "One result for each element.",
        """ops.exp ops.exp2 ops.expm1 ops.log ops.log2 ops.log10 ops.log1p ops.logaddexp ops.logaddexp2
        ops.sin ops.cos ops.tan ops.asin ops.acos ops.atan ops.atan2 ops.sinh ops.cosh ops.tanh
        ops.asinh ops.acosh ops.atanh ops.deg2rad ops.rad2deg ops.sinc ops.xlogy ops.xdivy ops.logit""",
    ),
    Group(
        "Functions of arrays", "logic", "Comparison, logic, bits",
        "Elementwise comparisons, logic and operations on bits.",
        """ops.eq ops.ne ops.ge ops.gt ops.le ops.lt ops.equal ops.not_equal ops.greater* ops.less*
        ops.logical_*
        ops.isclose ops.isfinite ops.isinf ops.isnan ops.isneginf ops.isposinf ops.isreal
        ops.bitwise_* ops.invert ops.signbit ops.approximate_equal ops.gcd ops.lcm ops.heaviside""",
    ),
    Group(
        "Functions of arrays", "special", "Special functions",
        "The error function, gamma, Bessel and zeta functions, for each element.",
        """@ops.elements.composed @ops.elements.bessels @ops.elements.gammas
        @scipy.special @scipy.stats ops.erf ops.erfc ops.erfinv ops.ndtr ops.digamma ops.lgamma""",
    ),
    Group(
        "Functions of arrays", "complex", "Complex numbers",
        "Parts, conjugates, and arrays of complex numbers.",
        "@ops.elements.complex_numbers ops.adjoint",
    ),
    Group(
        "Functions of arrays", "activations", "Activations",
        "The elementwise functions between the layers of a network.",
        """@ops.elements.activations ops.relu ops.sigmoid ops.hardsigmoid ops.hardswish""",
    ),
    Group(
        "Functions of arrays", "reductions", "Reductions and scans",
        "Sums, means, extrema, statistics, and running sums along axes.",
        """@ops.reductions.reductions @ops.reductions.statistics @ops.reductions.scans
        @ops.primitives.sequences ops.clip_by_norm ops.clip_by_global_norm ops.norm""",
    ),
    Group(
        "Functions of arrays", "shapes", "Shapes, joining, cutting",
        "The same elements in another shape or order, joined or split.",
        """@ops.arrays.shaping @ops.arrays.arrangement""",
    ),
    Group(
        "Functions of arrays", "indexing", "Indexing, gather, scatter",
        "Reading and writing elements at given positions.",
        """@ops.arrays.indexing @ops.arrays.scatters ops.scatter_add ops.scatter_update ops.where
        ops.assign ops.assign_add ops.assign_sub""",
    ),
    Group(
        "Functions of arrays", "sorting", "Sorting, searching, sets",
        "Sorting, finding the position of values, and unique elements.",
        """ops.sort ops.argsort ops.topk ops.nonzero @ops.reductions.sets""",
    ),
    Group(
        "Functions of arrays", "linear-algebra", "Products and linear algebra",
        "Products of matrices and tensors, factorisations, solutions of linear systems.",
        """@ops.matrices.products @ops.matrices.linear_algebra @ops.matrices.norms
        @ops.matrices.factorisations
        @scipy.linalg ops.trace ops.diag ops.diagonal ops.diagflat ops.multi_dot""",
    ),
    Group(
        "Functions of arrays", "fourier", "Fourier transforms",
        "Discrete Fourier transforms, of one or more dimensions.",
        "@ops.matrices.fourier",
    ),
    Group(
        "Functions of arrays", "windows", "Convolution, pooling, images",
        "Convolutions, pooling, resampling, boxes in images.",
        """@ops.networks.convolution @ops.networks.pooling @ops.networks.interpolation
        @ops.networks.boxes @ops.networks.patches
        @ops.networks.normalization @ops.networks.attention""",
    ),
    Group(
        "Functions of arrays", "random", "Random numbers",
        "Draws from distributions, and their seeds: the same seed gives the same numbers.",
        """@random @ops.random.draws @ops.random.state
        @common.generator
        @base.seed""",
    ),
    Group(
        "Functions of arrays", "distributions", "Distributions",
        "Probability distributions with densities, draws and divergences.",
        "@nn.probability.distribution* @nn.probability.bijector",
    ),
    Group(
        "Networks", "cells", "Cells and containers",
        "The base class of all networks, and networks composed of others.",
        """@nn.cell @nn.containers @derivatives.hooks nn.Identity nn.Flatten nn.Unflatten
        nn.TimeDistributed @nn.wrap*""",
    ),
    Group(
        "Networks", "layers", "Layers",
        "Fully connected layers, embeddings, dropout, normalisation.",
        "@nn.basic @nn.normalization @nn.fused @nn.op_cells",
    ),
    Group(
        "Networks", "sequence-layers", "Recurrence and attention",
        "Layers for sequences: RNN, LSTM, GRU, attention, transformers.",
        "@nn.recurrent @nn.attention",
    ),
    Group(
        "Networks", "convolutions", "Convolution, pooling, padding",
        "Layers for signals, images and volumes.",
        """@nn.convolution @nn.pooling @nn.padding @nn.images""",
    ),
    Group(
        "Networks", "activation-layers", "Activation layers",
        "The activations as cells, for containers and for `activation=`.",
        "@nn.activations",
    ),
    Group(
        "Networks", "initializers", "Initial values",
        "How parameters are initialised.",
        "@common.initializer",
    ),
    Group(
        "Networks", "losses", "Losses",
        "What training minimises, as layers.",
        "@nn.losses @nn.margins",
    ),
    Group(
        "Networks", "loss-functions", "Losses as functions",
        "What training minimises, as functions of outputs and labels.",
        "@ops.networks.losses @ops.networks.margins @ops.networks.ctc",
    ),
    Group(
        "Training", "optimisers", "Optimisers",
        "Steps by gradients.",
        "@nn.optim* @boost*",
    ),
    Group(
        "Training", "schedules", "Learning rate schedules",
        "Learning rates that change with the step: as functions of the step, and as lists.",
        "@schedules @nn.learning_rate_schedule @nn.dynamic_lr",
    ),
    Group(
        "Training", "solvers", "Solvers",
        "Minimisation to many digits: quasi-Newton methods and Gauss-Newton.",
        "@solvers.quasi_newton @solvers* @scipy.optimize",
    ),
    Group(
        "Training", "physics", "Differential equations",
        "Shapes, points, networks, conditions, weights, data, pictures, estimates of errors, courses.",
        "@physics*",
    ),
    Group(
        "Training", "training", "Model and callbacks",
        "Ready-made training loops.",
        """@train.step @train.model @train.callback* @train.dataset_helper
        @train.summary*""",
    ),
    Group(
        "Training", "metrics", "Metrics",
        "How good a trained network is.",
        "@nn.metrics*",
    ),
    Group(
        "Training", "precision", "Precision and loss scaling",
        "Half precision, loss scaling, and finding overflows.",
        "@amp* @derivatives.overflow",
    ),
    Group(
        "Training", "files", "Files and checkpoints",
        "Parameters and graphs, saved and loaded.",
        "@train.serialization @train.onnx",
    ),
    Group(
        "Data", "data", "Data sets",
        "Pipelines of rows: sources, steps, samplers.",
        """@dataset @dataset.steps @dataset.samplers @dataset.files
        @dataset.datasets @dataset.sources @dataset.records
        @mindrecord*""",
    ),
    Group(
        "Data", "data-transforms", "Transforms of rows and text",
        "What `map` does with each row.",
        "@dataset.transforms @dataset.text",
    ),
    Group(
        "Data", "vision", "Transforms of pictures",
        "What `map` does with each picture.",
        "dataset.vision.[!R]* dataset.vision.R[!a]*",
    ),
    Group(
        "Data", "random-vision", "Random transforms of pictures",
        "Changes drawn anew for each picture, so that a network sees more than the data contains.",
        "dataset.vision.Ra*",
    ),
    Group(
        "Data", "data-settings", "Settings of pipelines",
        "Workers, seeds and limits of all pipelines.",
        "@dataset.config",
    ),
    Group(
        "Machines", "processes", "Several processes",
        "Groups of processes, collective operations, and data parallel training.",
        "@communication* @parallel* @ops.primitives.collectives",
    ),
    Group(
        "Machines", "gpu", "GPU and memory",
        "NVIDIA GPUs, their plans and memory.",
        "@cuda @runtime",
    ),
    Group(
        "Machines", "inside", "Looking inside",
        "Graphs, plans, profiles, messages.",
        """@show.inspect @profiler @debug @log ops.print_ ops.*Summary""",
    ),
    Group(
        "DeepXDE", "deepxde", "DeepXDE",
        "DeepXDE's problems and networks on gradcell.",
        "@deepxde",
    ),
    Group(
        "Other spellings", "numpy", "NumPy's names",
        "Functions that only `gradcell.numpy` has. Its other names are listed under the function they call.",
        """@numpy @numpy.conversion @numpy.elementwise @numpy.functions @numpy.inspection @numpy.making
        @numpy.shaping @numpy.writing""",
    ),
    Group(
        "Other spellings", "scipy", "SciPy's names",
        "Differential equations, integrals of samples and convolutions by SciPy's names.",
        "@scipy.integrate @scipy.signal",
    ),
    Group(
        "Other spellings", "numpy-sums", "NumPy's sums and orders",
        "Functions that only `gradcell.numpy` has: sums, means, sorts, sets, polynomials, differences.",
        "@numpy.mathematics @numpy.order @numpy.polynomials @numpy.reductions",
    ),
    Group(
        "Other spellings", "mint", "PyTorch's names",
        "Functions that only `gradcell.mint` has. Its other names are listed under the function they call.",
        "@mint*",
    ),
    Group(
        "Other spellings", "primitives", "MindSpore's primitives",
        "Primitives that correspond to no function; the others are listed under theirs. "
        "`ops.X(attributes)(inputs)` is a function with its attributes given.",
        "@ops @ops.primitive",
    ),
    Group(
        "Other spellings", "graph-words", "MindSpore's graph mode helpers",
        "Numbers, tuples and functions for MindSpore's graph mode; Python's own work as well.",
        "@ops.primitives.scalars @ops.control.composition @ops.primitives.custom",
    ),
)  # fmt: skip


@cache
def matching(patterns: str, of_modules: bool) -> re.Pattern[str]:
    """What those of modules match, or those of names."""
    chosen = [p.removeprefix("@") for p in patterns.split() if p.startswith("@") is of_modules]
    return re.compile("|".join(map(translate, chosen)) or r"(?!)")


def group_of(entry: Entry) -> Group:
    """The one group of an entry. Raises LookupError for none and for two."""
    for subject, of_modules in ((entry.name, False), (entry.home.removeprefix("gradcell."), True)):
        found = [group for group in GROUPS if matching(group.patterns, of_modules).match(subject)]
        if len(found) == 1:
            return found[0]
        if found:
            raise LookupError(f"{entry.name} is in two groups: {', '.join(g.page for g in found)}")
    raise LookupError(f"{entry.name} (of {entry.home}) has no group: add a pattern to groups.py")


def grouped(entries: list[Entry]) -> dict[str, list[Entry]]:
    """The entries of each page: those with an example first, in the order of the examples, then the
    others by name. Raises LookupError with all that is wrong."""
    pages: dict[str, list[Entry]] = {group.page: [] for group in GROUPS}
    wrong = []
    for entry in entries:
        try:
            pages[group_of(entry).page].append(entry)
        except LookupError as error:
            wrong.append(str(error))
    if wrong:
        raise LookupError("\n".join(wrong))
    asked = {name: place for place, name in enumerate(EXAMPLES)}
    for held in pages.values():
        held.sort(key=lambda e: (asked.get(e.name, len(asked)), e.name.rpartition(".")[2].lower()))
    return pages
