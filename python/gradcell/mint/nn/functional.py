"""mindspore.mint.nn.functional: activations, losses and layers as functions, in mint's spelling."""

from __future__ import annotations

from typing import Any

from gradcell import _core, ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, later as _later
from gradcell.base.spelling import named, spelling
from gradcell.mint.functions import flatten, typed
from gradcell.ops.elements.elementwise import written
from gradcell.ops.networks import convolution, windows

from gradcell.ops import (  # isort: skip
    hardsigmoid, hardswish, relu, sigmoid, tanh, softshrink, softplus, prelu, mse_loss, l1_loss,
    cross_entropy, cosine_embedding_loss, soft_margin_loss, layer_norm, adaptive_max_pool1d,
    adaptive_max_pool2d, interpolate, grid_sample, pixel_shuffle,
)  # fmt: skip

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "conv1d", "conv2d", "conv3d",
    "conv_transpose2d", "cosine_embedding_loss", "cross_entropy", "dropout", "elu", "elu_", "embedding",
    "flatten", "fold", "gelu", "glu", "grid_sample", "group_norm", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hardtanh_", "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear",
    "log_softmax", "logsigmoid", "max_pool2d", "mish", "mse_loss", "nll_loss", "normalize", "one_hot",
    "pad", "pixel_shuffle", "prelu", "relu", "relu6", "relu_", "selu", "sigmoid", "sigmoid_", "silu",
    "smooth_l1_loss", "soft_margin_loss", "softmax", "softplus", "softshrink", "tanh", "threshold",
    "threshold_", "unfold", "upsample",
]  # fmt: skip
__dir__ = sorted(__all__).copy
_later(globals())


@spelling(ops.dense)
def linear(input: Any, weight: Any, bias: Any = None) -> Tensor: ...
@spelling(ops.unfold)
def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor: ...
@spelling(ops.fold)
def fold(
    input: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor: ...  # fmt: skip


def counts(input: Any, n: int) -> Tensor:
    """Count each of the integers below n in the input."""
    at = _ops.reshape(input, [input.size])
    return _ops.scatter_add(at, _ops.full([input.size], 1.0, _core.float32), 0, n)


def embedding(
    input: Any, weight: Any, padding_idx: Any = None, max_norm: Any = None, norm_type: Any = 2.0,
    scale_grad_by_freq: bool = False,
) -> Any:  # fmt: skip
    """The rows of weight at input; that of padding_idx is a constant.

    padding_idx: the row that gets no gradient, or None. max_norm: first those rows of weight whose norm is
    larger are scaled to it, in place. norm_type: the order of the norm. scale_grad_by_freq: the gradient of
    a row is divided by how often input has it.
    """
    if max_norm is not None:
        size = ops.vector_norm(weight, norm_type, -1, True)
        used = _ops.reshape(_ops.greater(counts(input, weight.shape[0]), 0), size.shape)
        large = _ops.logical_and(used, _ops.greater(size, max_norm))
        share = _ops.where(large, _ops.div(max_norm, _ops.add(size, 1e-7)), 1)
        weight.copy_(_ops.stop_gradient(_ops.mul(weight, share)))
    rows = ops.gather(weight, input, 0)
    if scale_grad_by_freq:
        often = ops.gather(counts(input, weight.shape[0]), input, 0)
        scaled = _ops.div(rows, _ops.cast(ops.expand_dims(often, -1), rows.dtype))
        rows = _ops.add(scaled, _ops.stop_gradient(_ops.sub(rows, scaled)))
    if padding_idx is None:
        return rows
    still = ops.expand_dims(_ops.equal(input, padding_idx % weight.shape[0]), -1)
    return _ops.where(still, _ops.stop_gradient(rows), rows)


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """1 at each index along a new last dimension, int64; num_classes -1: the largest index and 1."""
    count = int(tensor.asnumpy().max()) + 1 if num_classes == -1 else num_classes
    return _ops.cast(ops.one_hot(tensor, count, 1.0, 0.0), _core.int64)


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Any:
    """input over its p-norm along dim, which counts as at least eps."""
    return _ops.div(input, _ops.maximum(ops.vector_norm(input, p, dim, True), eps))


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-05
) -> Any:
    """Mean 0 and variance 1 over groups of channels of each sample, times weight, plus bias."""
    x = arguments.of_rank(input, range(2, 9), "group_norm")
    n, c = x.shape[:2]
    if c % arguments.integer(num_groups, "group_norm", "num_groups", 1):
        bad_value(f"group_norm: {c} channels do not fall into {num_groups} groups")
    grouped = _ops.reshape(x, [n, num_groups, x.size // max(n * num_groups, 1)])
    y = _ops.reshape(ops.layer_norm(grouped, [grouped.shape[-1]], eps=eps), list(x.shape))
    row = [1, c] + [1] * (x.ndim - 2)
    y = y if weight is None else _ops.mul(y, _ops.reshape(weight, row))
    return y if bias is None else _ops.add(y, _ops.reshape(bias, row))


def transposed_sizes(
    x: Any, kernel: Any, stride: Any, padding: Any, output_padding: Any, dilation: Any
) -> list[int]:
    """The sizes of a convolution's input whose output is like x, as far as they are known, plus
    output_padding."""
    owner = "conv_transpose2d"
    steps = windows.sizes(stride, 2, owner, "stride")
    reach = windows.sizes(dilation, 2, owner, "dilation")
    around = windows.sizes(padding, 2, owner, "padding", 0)
    more = windows.sizes(output_padding, 2, owner, "output_padding", 0)
    if any(n >= max(s, d) for n, s, d in zip(more, steps, reach, strict=True)):
        bad_value(f"{owner}: output_padding {list(more)} must be less than stride or dilation")
    each = zip(x.shape[-2:], kernel, steps, around, more, reach, strict=True)
    found = [(n - 1) * s - 2 * p + (k - 1) * d + m + 1 for n, k, s, p, m, d in each]
    if min(found) < 1:
        bad_value(f"{owner}: an input of shape {list(x.shape)} has no output")
    return found


def conv_transpose2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """The adjoint of conv2d in its input; weight (channels, output channels / groups, rows, columns).

    padding: how much is cut off at both ends of the result, a number or a pair. output_padding: how
    much is added at its end. bias: a number for each channel or feature, or None. stride: the step
    of the window: a number, or one for each dimension. dilation: the distance of neighbours within
    a window.
    """
    owner = "conv_transpose2d"
    x, w = arguments.of_rank(input, [3, 4], owner), arguments.of_rank(weight, [4], owner)
    if x.ndim == 3:
        rest = (weight, bias, stride, padding, output_padding, groups, dilation)
        return ops.squeeze(conv_transpose2d(ops.expand_dims(x, 0), *rest), 0)
    if x.shape[1] != w.shape[0] or w.shape[0] % arguments.integer(groups, owner, "groups", 1):
        bad_value(
            f"{owner}: a weight of shape {list(w.shape)} does not fit an input of shape {list(x.shape)} in "
            f"{groups} groups"
        )
    kernel = w.shape[2:]
    sizes = transposed_sizes(x, kernel, stride, padding, output_padding, dilation)
    steps = zip(
        sizes, kernel, windows.sizes(stride, 2, owner, "stride"),
        windows.sizes(dilation, 2, owner, "dilation"), windows.sizes(padding, 2, owner, "padding", 0),
        x.shape[2:], strict=True,
    )  # fmt: skip
    axes = [
        windows.axis(owner, n, k, s, d, "pad", (p, p))._replace(number=m)
        for n, k, s, d, p, m in steps
    ]
    return convolution.convolve_back(x, w, bias, axes, groups)


@spelling(ops.logsigmoid)
def logsigmoid(input: Any) -> Tensor: ...
@spelling(ops.mish)
def mish(input: Any) -> Tensor: ...
@spelling(ops.selu)
def selu(input: Any) -> Tensor: ...


def relu6(input: Any, inplace: bool = False) -> Tensor:
    """x between 0 and 6."""
    return written(input, ops.relu6(input), inplace, "relu6")


def silu(input: Any, inplace: bool = False) -> Tensor:
    """input * sigmoid(input)."""
    return written(input, ops.silu(input), inplace, "silu")


@spelling(ops.gelu)
def gelu(input: Any, *, approximate: Any = "none") -> Tensor: ...


def elu(input: Any, alpha: Any = 1.0, inplace: bool = False) -> Tensor:
    """input where positive, else alpha (exp(input) - 1)."""
    return written(input, ops.elu(input, alpha), inplace, "elu")


@spelling(ops.leaky_relu)
def leaky_relu(input: Any, negative_slope: Any = 0.01) -> Tensor: ...
@spelling(ops.hardshrink)
def hardshrink(input: Any, lambd: Any = 0.5) -> Tensor: ...


def hardtanh(input: Any, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False) -> Tensor:
    """x between min_val and max_val."""
    return written(input, ops.hardtanh(input, min_val, max_val), inplace, "hardtanh")


def threshold(input: Any, threshold: Any, value: Any, inplace: bool = False) -> Tensor:
    """input where it is above threshold, else value."""
    return written(input, ops.threshold(input, threshold, value), inplace, "threshold")


@spelling(ops.glu)
def glu(input: Any, dim: Any = -1) -> Tensor: ...


def _implicit(dim: Any, input: Any) -> Any:
    """PyTorch's dim for None: the first of none, one or three dimensions, else the second."""
    return (0 if input.ndim in (0, 1, 3) else 1) if dim is None else dim


def softmax(input: Any, dim: Any = None, dtype: Any = None) -> Tensor:
    """exp(input) / sum(exp(input)) along dim; None: the first of one or three dimensions, else the
    second."""
    return ops.softmax(input, _implicit(dim, input), dtype=dtype)


def log_softmax(input: Any, dim: Any = None, *, dtype: Any = None) -> Tensor:
    """log(softmax(input)) along dim, without overflow or the logarithm of 0; dim: as in softmax."""
    return ops.log_softmax(typed(input, dtype), _implicit(dim, input))


@spelling(ops.smooth_l1_loss)
def smooth_l1_loss(input: Any, target: Any, reduction: Any = "mean", beta: Any = 1.0) -> Tensor: ...


def kl_div(input: Any, target: Any, reduction: Any = "mean", log_target: bool = False) -> Any:
    """target (log(target) - input), 0 where target is 0, reduced; log_target: target is a logarithm
    itself."""
    return ops.kl_div(input, ops.exp(target) if log_target else target, reduction)


@spelling(ops.nll_loss)
def nll_loss(
    input: Any, target: Any, weight: Any = None, ignore_index: Any = -100, reduction: Any = "mean"
) -> Tensor: ...
@spelling(ops.binary_cross_entropy)
def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, reduction: Any = "mean"
) -> Tensor: ...
@spelling(ops.binary_cross_entropy_with_logits)
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, reduction: Any = "mean", pos_weight: Any = None
) -> Tensor: ...
@spelling(ops.batch_norm)
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: Any = 0.1,
    eps: Any = 1e-05,
) -> Tensor: ...  # fmt: skip


def relu_(input: Any) -> Tensor:
    """max(input, 0), written to input, which is returned."""
    return relu(input, True)


def sigmoid_(input: Any) -> Tensor:
    """The logistic function, written to input, which is returned."""
    return written(input, ops.sigmoid(input), True, "sigmoid_")


def elu_(input: Any, alpha: Any = 1.0) -> Tensor:
    """x where it is positive, and alpha (exp(x) - 1) elsewhere, written to input, which is returned.

    alpha: what negative numbers tend to, with the sign changed.
    """
    return elu(input, alpha, True)


def hardtanh_(input: Any, min_val: Any = -1, max_val: Any = 1) -> Tensor:
    """x between min_val and max_val, written to input, which is returned.

    min_val, max_val: the ends of the interval.
    """
    return hardtanh(input, min_val, max_val, True)


def threshold_(input: Any, threshold: Any, value: Any) -> Tensor:
    """input where it is above threshold, else value, written to input, which is returned."""
    return written(input, ops.threshold(input, threshold, value), True, "threshold_")


def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    """A signal, image or volume of another size. Arguments are those of interpolate."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def dropout(input: Any, p: Any = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element set to 0 with probability p, the others divided by 1 - p; input itself unless training."""
    return written(input, ops.dropout(input, p, training), inplace, "dropout")


@spelling(ops.pad)
def pad(input: Any, pad: Any, mode: Any = "constant", value: Any = None) -> Any: ...


def _convolution(op: Any) -> Any:
    def function(
        input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: Any = 1,
    ) -> Any:  # fmt: skip
        """A convolution over the last dimensions; padding: numbers, 'valid' or 'same'."""
        mode, around = (padding, 0) if isinstance(padding, str) else ("pad", padding)
        if isinstance(around, (tuple, list)):
            around = tuple(n for n in around for _ in (0, 1))
        return op(input, weight, bias, stride, mode, around, dilation, groups)

    return named(function, op.__name__)


def _average(op: Any) -> Any:
    def function(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: Any = None,
    ) -> Any:  # fmt: skip
        """Means of windows over the last dimensions."""
        steps = kernel_size if stride is None else stride
        whole = divisor_override or 0
        return op(input, kernel_size, steps, padding, ceil_mode, count_include_pad, whole)

    return named(function, op.__name__)


conv1d: Any = _convolution(ops.conv1d)
conv2d: Any = _convolution(ops.conv2d)
conv3d: Any = _convolution(ops.conv3d)
avg_pool2d: Any = _average(ops.avg_pool2d)
avg_pool3d: Any = _average(ops.avg_pool3d)


def avg_pool1d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """Means of windows over the last dimensions."""
    steps = kernel_size if stride is None else stride
    return ops.avg_pool1d(input, kernel_size, steps, padding, ceil_mode, count_include_pad)


@spelling(ops.max_pool2d)
def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any: ...  # fmt: skip
@spelling(ops.adaptive_avg_pool1d)
def adaptive_avg_pool1d(input: Any, output_size: Any) -> Any: ...
@spelling(ops.adaptive_avg_pool2d)
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any: ...
@spelling(ops.adaptive_avg_pool3d)
def adaptive_avg_pool3d(input: Any, output_size: Any) -> Any: ...
