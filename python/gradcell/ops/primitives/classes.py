"""Ops as objects, ops.X(attributes)(inputs), where the op has attributes or no row in the op table.

Each is one line of a table: its name, a function of its inputs by position and its attributes by
keyword, and the attributes with their defaults in the order of the constructor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell._core import Tensor, int32, op_table, ops as _ops
from gradcell.base import arguments, bad_value, place_type
from gradcell.ops.arrays import assignments, creation, indexing, shaping
from gradcell.ops.control import composition
from gradcell.ops.decorators import one_plan, wide_plan
from gradcell.ops.elements import activations, elementwise
from gradcell.ops.matrices import products
from gradcell.ops.networks import losses, normalization
from gradcell.ops.primitives import summaries
from gradcell.ops.primitives.rows import REQUIRED, Axis, primitive, row
from gradcell.ops.random import draws
from gradcell.ops.reductions import reductions

__all__: list[str] = []


def define(name: str, function: Callable[..., Any], inputs: str = "", /, **more: Any) -> None:
    """Makes the class ops.<name> and exports it; see row."""
    globals()[name] = primitive(name, row(function, inputs, **more), integers=True)
    __all__.append(name)


# Products -----------------------------------------------------------------------------------------


def _matmul(x: Any, y: Any, *, transpose_a: bool, transpose_b: bool) -> Tensor:
    """The product of two matrices, each transposed first if its flag is set. Raises ValueError."""
    a, b = arguments.tensor(x, "MatMul", "x"), arguments.tensor(y, "MatMul", "y")
    if a.ndim != 2 or b.ndim != 2:
        bad_value(
            f"MatMul inputs should have the same dimension size and equal to 2. Got shapes {list(a.shape)} "
            f"and {list(b.shape)}"
        )
    return _ops.matmul(a, b, transpose_a, transpose_b)


def _batch_matmul(x: Any, y: Any, *, transpose_a: bool, transpose_b: bool) -> Tensor:
    """The products of two batches, [..., M, K] by [..., K, N]; leading dimensions broadcast."""
    a, b = arguments.tensor(x, "BatchMatMul", "x"), arguments.tensor(y, "BatchMatMul", "y")
    if a.ndim < 2 or b.ndim < 2:
        bad_value(
            f"BatchMatMul: matrices are needed, got shapes {list(a.shape)} and {list(b.shape)}"
        )
    return _ops.matmul(a, b, transpose_a, transpose_b)


define("MatMul", _matmul, "input mat2", transpose_a=False, transpose_b=False)
define("BatchMatMul", _batch_matmul, transpose_a=False, transpose_b=False)
define("Ger", products.outer)


# Reductions ---------------------------------------------------------------------------------------


def _reduce_sum(x: Any, axis: Any = (), *, keep_dims: bool, skip_mode: bool) -> Tensor:
    """The sum, in the dtype of x. skip_mode: an axis of () reduces nothing."""
    if skip_mode and isinstance(axis, (tuple, list)) and not axis:
        return arguments.tensor(x, "ReduceSum", "x")
    return shaping.cast(
        _ops.reduce_sum(x, reductions._axes(axis), keep_dims),
        arguments.tensor(x, "ReduceSum").dtype,
    )


def _reduce_mean(x: Any, axis: Any = (), *, keep_dims: bool) -> Tensor:
    """The mean, in the dtype of x."""
    return _ops.mean(x, reductions._axes(axis), keep_dims)


@one_plan
def _reduce_prod(x: Any, axis: Any = (), *, keep_dims: bool) -> Tensor:
    """The product, in the dtype of x."""
    return reductions._prod(arguments.tensor(x, "ReduceProd", "x"), axis, keep_dims)


def _reduced(op: Any, text: str) -> Any:
    def function(x: Any, axis: Any = (), *, keep_dims: bool) -> Tensor:
        return op(x, axis, keep_dims)  # type: ignore[no-any-return]

    function.__doc__ = text
    return function


def _place(op: Any, word: str) -> Any:
    @one_plan
    def function(x: Any, *, axis: int, output_type: Any) -> Tensor:
        dtype = place_type(reductions.places_along(x, axis), output_type)
        return shaping.cast(op(x, axis), dtype)

    function.__doc__ = f"The index of the first {word} element along axis."
    return function


def _with_place(op: Any) -> Any:
    def function(x: Any, *, axis: int, keep_dims: bool) -> tuple[Tensor, Tensor]:
        """(indices, largest or smallest elements) along axis."""
        return op(x, axis, keep_dims)[::-1]  # type: ignore[no-any-return]

    return function


def _cumsum(x: Any, axis: Any, *, exclusive: bool, reverse: bool) -> Tensor:
    """The sums up to each element along axis: without it if exclusive, from the end if reverse."""
    return _ops.cumsum(x, arguments.integer(axis, "CumSum", "axis"), exclusive, reverse)


@one_plan
def _l2_loss(x: Any) -> Tensor:
    """Half the sum of squares."""
    return _ops.mul(_ops.reduce_sum(_ops.square(x)), 0.5)


@wide_plan
def _l2_normalize(x: Any, *, axis: Any, epsilon: float) -> Tensor:
    """x / sqrt(max(sum(x^2), epsilon)) along axis."""
    squares = _ops.reduce_sum(_ops.square(x), reductions._axes(axis), True)
    return _ops.mul(x, _ops.rsqrt(_ops.maximum(squares, epsilon)))


define("ReduceSum", _reduce_sum, keep_dims=False, skip_mode=False)
define("ReduceMean", _reduce_mean, keep_dims=False)
define("ReduceMax", _reduced(reductions.amax, "The largest element."), keep_dims=False)
define("ReduceMin", _reduced(reductions.amin, "The smallest element."), keep_dims=False)
define("ReduceProd", _reduce_prod, keep_dims=False)
define("ReduceAll", reductions.all, "input axis", keep_dims=False)
define("ReduceAny", _reduced(reductions.any, "Return whether any is true."), keep_dims=False)
define("Argmax", _place(reductions.argmax, "largest"), "input_x", axis=-1, output_type=int32)
define("Argmin", _place(reductions.argmin, "smallest"), axis=-1, output_type=int32)
for _of in (reductions.max, reductions.min):
    _name = f"Arg{_of.__name__.title()}WithValue"
    define(_name, _with_place(_of), "input", axis=0, keep_dims=False)
define("CumSum", _cumsum, "input axis", exclusive=False, reverse=False)
define("L2Loss", _l2_loss)
define("L2Normalize", _l2_normalize, axis=Axis(0), epsilon=1e-4)
define("AddN", composition.addn)


# Shapes -------------------------------------------------------------------------------------------


@one_plan
def _split(x: Any, *, axis: int, output_num: int) -> tuple[Tensor, ...]:
    """output_num equal pieces along axis. Raises ValueError if the size does not divide."""
    t = arguments.tensor(x, "Split", "x")
    a = arguments.axis_of(axis, t.ndim, "Split")
    if output_num < 1 or t.ndim == 0 or t.shape[a] % output_num:
        bad_value(
            f"For 'Split', x_shape[{axis}] must be divisible by output_num = {output_num}, but got shape "
            f"{list(t.shape)}"
        )
    return shaping._cut(t, a, [t.shape[a] // output_num] * output_num)


@one_plan
def _pad(x: Any, *, paddings: Any) -> Tensor:
    """Zeros around x: paddings has (before, after) for each dimension."""
    flat = [n for pair in reversed(list(paddings)) for n in pair]
    return shaping.pad(x, flat)


def _meshgrid(inputs: Any, *, indexing: str) -> tuple[Tensor, ...]:
    """The coordinate grids of a tuple of vectors."""
    return shaping.meshgrid(*inputs, indexing=indexing)


define("Reshape", shaping.reshape)
define("Squeeze", shaping.squeeze, axis=())
define("ExpandDims", shaping.expand_dims)
define("Transpose", shaping.transpose, "input dims")
define("BroadcastTo", shaping.broadcast_to, "input", shape=REQUIRED)
define("Tile", shaping.tile)
define("Flatten", shaping.flatten, "input_x")
define("Concat", shaping.concat, axis=0)
define("Stack", shaping.stack, axis=0)
define("Unstack", shaping.unstack, ignored="num", axis=0, num=None)
define("Split", _split, "input_x", axis=0, output_num=1)
define("Slice", shaping.slice, "input begin size")
define(
    "StridedSlice", shaping.strided_slice, "input_x begin end strides", begin_mask=0, end_mask=0,
    ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0,
)  # fmt: skip


define("ReverseV2", shaping.flip, "input", named={"axis": "dims"}, axis=REQUIRED)
define("Roll", shaping.roll, "input", shifts=REQUIRED, dims=None)
define("Pad", _pad, paddings=REQUIRED)
define("Tril", shaping.tril, diagonal=0)
define("Triu", shaping.triu, diagonal=0)
define("Diag", shaping.diag)
define("Meshgrid", _meshgrid, indexing="xy")
define("Shape", shaping.shape, "x")
define("Rank", shaping.rank, "x")
define("Size", shaping.size)
define("DType", shaping.dtype)
define("Cast", shaping.cast, "input_x dtype")
define("Identity", shaping.identity, "input_x")


# Creation -----------------------------------------------------------------------------------------

define("Zeros", creation.zeros)
define("Ones", creation.ones)
define("ZerosLike", creation.zeros_like, "x")
define("OnesLike", creation.ones_like, "x")
define("Eye", creation.eye)
define("Fill", creation.fill, "dtype dims x")
define("Range", creation.range, maxlen=1000000)
define("LinSpace", creation.linspace, "start stop num")


# Indices ------------------------------------------------------------------------------------------


define("Gather", indexing.gather, batch_dims=0)
define("GatherD", indexing.gather_d)
define("GatherNd", indexing.gather_nd)
define("ScatterNd", indexing.scatter_nd)
define("TensorScatterAdd", indexing.tensor_scatter_add)
define("TensorScatterUpdate", indexing.tensor_scatter_update)
define(
    "TensorScatterElements", indexing.tensor_scatter_elements, "data indices updates", axis=0,
    reduction="none",
)  # fmt: skip
define("ScatterAdd", assignments.scatter_add, ignored="use_locking", use_locking=False)
define("ScatterUpdate", assignments.scatter_update, ignored="use_locking", use_locking=True)
define("OneHot", indexing.one_hot, axis=-1)
define("Select", indexing.select)
define("MaskedFill", indexing.masked_fill)
define("MaskedSelect", indexing.masked_select)
define("NonZero", indexing.nonzero)
define("Sort", indexing.sort, axis=-1, descending=False)
define("TopK", indexing.topk, sorted=True)
define("IsClose", indexing.isclose, rtol=1e-05, atol=1e-08, equal_nan=False)


# Activations and losses ---------------------------------------------------------------------------


@one_plan
def _softmax_cross_entropy(logits: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """(the cross entropy of each row, its derivative by the scores)."""
    loss = losses.softmax_cross_entropy_with_logits(logits, labels)
    return loss, _ops.sub(activations.softmax(logits, 1), labels)


@one_plan
def _sparse_softmax_cross_entropy(logits: Any, labels: Any, *, is_grad: bool) -> Tensor:
    """The mean cross entropy of scores and class indices; or, if is_grad, its derivative."""
    if not is_grad:
        return losses.sparse_softmax_cross_entropy_with_logits(logits, labels)
    x = arguments.tensor(logits, "SparseSoftmaxCrossEntropyWithLogits", "logits")
    hit = indexing.one_hot(labels, x.shape[1], 1.0, 0.0)
    return _ops.div(_ops.sub(activations.softmax(x, 1), _ops.cast(hit, x.dtype)), float(x.shape[0]))


@one_plan
def _layer_norm(
    x: Any, gamma: Any, beta: Any, *, begin_norm_axis: int, begin_params_axis: int, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(x normalised from begin_norm_axis on, times gamma, plus beta; the mean; the variance)."""
    t = arguments.tensor(x, "LayerNorm", "x")
    first = arguments.axis_of(begin_norm_axis, t.ndim, "LayerNorm", "begin_norm_axis")
    y, mean, variance = normalization._normalized(t, list(range(first, t.ndim)), epsilon)
    params = arguments.axis_of(begin_params_axis, t.ndim, "LayerNorm", "begin_params_axis")
    y = normalization._scaled(y, list(t.shape[params:]), gamma, beta, ("gamma", "beta"))
    return y, mean, variance


@one_plan
def _bias_add(x: Any, bias: Any, *, data_format: str) -> Tensor:
    """x plus a vector along the channels: the second dimension, or the last for 'NHWC'."""
    t, b = arguments.tensor(x, "BiasAdd", "x"), arguments.tensor(bias, "BiasAdd", "bias")
    arguments.one_of(data_format, ("NCHW", "NHWC", "NCDHW"), "BiasAdd", "data_format")
    channel = t.ndim - 1 if data_format == "NHWC" else 1
    if t.ndim < 2 or b.ndim != 1 or b.size != t.shape[channel]:
        bad_value(f"BiasAdd: a bias of shape {list(b.shape)} does not fit shape {list(t.shape)}")
    return _ops.add(t, _ops.reshape(b, [b.size] + [1] * (t.ndim - 1 - channel)))


define(
    "LayerNorm", _layer_norm, "input_x gamma beta", begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7
)  # fmt: skip
define("BiasAdd", _bias_add, "input_x bias", data_format="NCHW")
define("Softmax", activations.softmax, axis=Axis(-1))
define("LogSoftmax", activations.log_softmax, axis=Axis(-1))


def _fast_gelu(x: Any) -> Tensor:
    """x sigmoid(1.702 x) (Hendrycks and Gimpel 2016, section 2)."""
    return _ops.mul(x, _ops.sigmoid(_ops.mul(x, 1.702)))


def _logit(input: Any, *, eps: float) -> Tensor:
    """log(x / (1 - x)), x first brought within eps and 1 - eps unless eps is negative."""
    return elementwise.logit(input, None if eps < 0 else eps)


define("GeLU", activations.gelu, "input", fixed={"approximate": "tanh"})
define("FastGeLU", _fast_gelu)
define("Elu", activations.elu, alpha=1.0)
define("SeLU", activations.selu)
define("Mish", activations.mish)
define("HSwish", activations.hardswish)
define("HSigmoid", activations.hardsigmoid)
define("Logit", _logit, eps=-1.0)
define("Softplus", activations.softplus)
define("Softsign", activations.softsign)
define("ReLU6", activations.relu6)
define("PReLU", activations.prelu)
define("SmoothL1Loss", losses.smooth_l1_loss, "prediction target", beta=1.0, reduction="none")
define("BinaryCrossEntropy", losses.binary_cross_entropy, "input target weight", reduction="mean")
define(
    "BCEWithLogitsLoss", losses.binary_cross_entropy_with_logits, "input target weight posWeight",
    reduction="mean",
)  # fmt: skip
define("KLDivLoss", losses.kl_div, reduction="mean")
define("SoftmaxCrossEntropyWithLogits", _softmax_cross_entropy)
define("SparseSoftmaxCrossEntropyWithLogits", _sparse_softmax_cross_entropy, is_grad=False)
define(
    "SigmoidCrossEntropyWithLogits", losses.binary_cross_entropy_with_logits, "logits label",
    fixed={"reduction": "none"},
)  # fmt: skip


# Random -------------------------------------------------------------------------------------------


@one_plan
def _uniform_real(shape: Any, *, seed: int, seed2: int) -> Tensor:
    """Uniform random numbers in [0, 1), float32."""
    return draws._draw(arguments.shape(shape, "UniformReal"), seed, seed2)


@one_plan
def _standard_normal(shape: Any, *, seed: int, seed2: int) -> Tensor:
    """Standard normal numbers, float32."""
    return draws._draw_normal(arguments.shape(shape, "StandardNormal"), seed, seed2)


@one_plan
def _dropout(x: Any, *, keep_prob: float, Seed0: int, Seed1: int) -> tuple[Tensor, Tensor]:
    """(x with each element kept with probability keep_prob and divided by it, the mask)."""
    keep = arguments.number(keep_prob, "Dropout", "keep_prob", above=0, most=1)
    return draws._dropout(arguments.tensor(x, "Dropout", "x"), keep, Seed0, Seed1)


define("UniformReal", _uniform_real, seed=0, seed2=0)
define("StandardNormal", _standard_normal, seed=0, seed2=0)
define("Dropout", _dropout, keep_prob=0.5, Seed0=0, Seed1=0)


# Parameters and control ---------------------------------------------------------------------------

define("Assign", assignments.assign)
define("AssignAdd", assignments.assign_add)
define("AssignSub", assignments.assign_sub)
define("Depend", composition.depend)
define("Print", composition.print_)
define("Partial", composition.partial)
define("ScalarSummary", summaries.scalar_summary)
define("ImageSummary", summaries.image_summary)
define("TensorSummary", summaries.tensor_summary)
define("HistogramSummary", summaries.histogram_summary)

# Elementwise --------------------------------------------------------------------------------------

#: Primitives under other names than the row's, or of a function that does more than the row.
_FUNCTIONS = {
    "Sqrt": "sqrt", "Pow": "pow", "RealDiv": "tensor_div", "FloorMod": "floor_mod", "Mod": "fmod",
    "Inv": "inv", "Invert": "invert", "ACos": "acos", "TensorAdd": "add", "Rint": "round",
    "Round": "round", "Trunc": "trunc", "Hypot": "hypot", "Xlogy": "xlogy", "Lerp": "lerp",
    "SquaredDifference": "squared_difference", "DivNoNan": "div_no_nan",
}  # fmt: skip
for _name, _function in _FUNCTIONS.items():
    define(_name, getattr(elementwise, _function))
for _name in ("And", "Or"):
    define(f"Logical{_name}", elementwise.ROWS[f"logical_{_name.lower()}"], "x y")
for _row in op_table():
    if _row["kind"] != "structured" and _row["name"] not in __all__:
        define(_row["name"], elementwise.ROWS[_row["function"]])
