"""mindspore.mint.nn.functional: activations, losses and layers as functions, in mint's spelling."""

from __future__ import annotations

import typing as _typing
from typing import Any

from gradcell import _core, ops
from gradcell.base import arguments
from gradcell.base.forms import Forms
from gradcell.base.location import where
from gradcell.mint.functions import typed
from gradcell.ops.networks import convolution, windows

_ops = _core.ops

_POOL = "input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True"
_LOSS = "input, target, reduction='mean'"


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """input weight', plus bias; weight (out, in)."""
    out = ops.matmul(input, ops.swapaxes(weight, -1, -2))
    return out if bias is None else _ops.add(out, bias)


def padded(x: Any, pad: Any, mode: str, value: Any) -> Any:
    """Longer at both ends of the last dimensions."""
    return ops.pad(x, pad, mode, value)


def embedding(input: Any, weight: Any, padding_idx: Any = None) -> Any:
    """The rows of weight at input; that of padding_idx is a constant."""
    rows = ops.gather(weight, input, 0)
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
        raise ValueError(f"group_norm: {c} channels do not fall into {num_groups} groups{where()}")
    grouped = _ops.reshape(x, [n, num_groups, x.size // max(n * num_groups, 1)])
    y = _ops.reshape(ops.layer_norm(grouped, [grouped.shape[-1]], eps=eps), list(x.shape))
    row = [1, c] + [1] * (x.ndim - 2)
    y = y if weight is None else _ops.mul(y, _ops.reshape(weight, row))
    return y if bias is None else _ops.add(y, _ops.reshape(bias, row))


def conv(
    rank: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Any:
    """A convolution over the last dimensions; padding: numbers, 'valid' or 'same'."""
    function: Any = (ops.conv1d, ops.conv2d, ops.conv3d)[rank - 1]
    mode, around = (padding, 0) if isinstance(padding, str) else ("pad", padding)
    if isinstance(around, (tuple, list)):
        around = tuple(n for n in around for _ in (0, 1))
    return function(input, weight, bias, stride, mode, around, dilation, groups)


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
        raise ValueError(
            f"{owner}: output_padding {list(more)} must be less than stride or dilation{where()}"
        )
    each = zip(x.shape[2:], kernel, steps, around, more, reach, strict=True)
    found = [(n - 1) * s - 2 * p + (k - 1) * d + m + 1 for n, k, s, p, m, d in each]
    if min(found) < 1:
        raise ValueError(f"{owner}: an input of shape {list(x.shape)} has no output{where()}")
    return found


def conv_transpose2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """The adjoint of conv2d in its input; weight (channels, output channels / groups, rows, columns)."""
    owner = "conv_transpose2d"
    x, w = arguments.of_rank(input, [4], owner), arguments.of_rank(weight, [4], owner)
    if x.shape[1] != w.shape[0] or w.shape[0] % arguments.integer(groups, owner, "groups", 1):
        raise ValueError(
            f"{owner}: a weight of shape {list(w.shape)} does not fit an input of shape "
            f"{list(x.shape)} in {groups} groups{where()}"
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


def avg_pool(rank: int, input: Any, kernel_size: Any, stride: Any, *rest: Any) -> Any:
    """Means of windows over the last dimensions."""
    function = getattr(ops, f"avg_pool{rank}d")
    return function(input, kernel_size, kernel_size if stride is None else stride, *rest)


ROWS = (
    ("input", "ops.{}(input)", "hardsigmoid hardswish logsigmoid mish selu sigmoid tanh"),
    ("input, inplace=False", "ops.{}(input)", "relu relu6 silu"),
    ("input, *, approximate='none'", "ops.gelu(input, approximate)", "gelu"),
    ("input, alpha=1.0, inplace=False", "ops.elu(input, alpha)", "elu"),
    ("input, negative_slope=0.01", "ops.leaky_relu(input, negative_slope)", "leaky_relu"),
    ("input, lambd=0.5", "ops.{}(input, lambd)", "hardshrink softshrink"),
    ("input, min_val=-1.0, max_val=1.0, inplace=False",
     "ops.hardtanh(input, min_val, max_val)",
     "hardtanh"),
    ("input, threshold, value, inplace=False",
     "ops.threshold(input, threshold, value)",
     "threshold"),
    ("input, beta=1, threshold=20", "ops.softplus(input, beta, threshold)", "softplus"),
    ("input, weight", "ops.prelu(input, weight)", "prelu"),
    ("input, dim=-1", "ops.glu(input, dim)", "glu"),
    ("input, dim=None, dtype=None", "ops.softmax(typed(input, dtype), dim)", "softmax"),
    ("input, dim=None, *, dtype=None", "ops.log_softmax(typed(input, dtype), dim)", "log_softmax"),
    (_LOSS, "ops.{}(input, target, reduction)", "mse_loss l1_loss"),
    ("input, target, reduction='mean', beta=1.0",
     "ops.smooth_l1_loss(input, target, beta, reduction)",
     "smooth_l1_loss"),
    ("input, target, reduction='mean', log_target=False",
     "ops.kl_div(input, ops.exp(target) if log_target else target, reduction)", "kl_div"),
    ("input, target, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0",
     "ops.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)",
     "cross_entropy"),
    ("input, target, weight=None, ignore_index=-100, reduction='mean'",
     "ops.nll_loss(input, target, weight, ignore_index, reduction)", "nll_loss"),
    ("input, target, weight=None, reduction='mean'",
     "ops.binary_cross_entropy(input, target, weight, reduction)", "binary_cross_entropy"),
    ("input, target, weight=None, reduction='mean', pos_weight=None",
     "ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)",
     "binary_cross_entropy_with_logits"),
    ("input, normalized_shape, weight=None, bias=None, eps=1e-05",
     "ops.layer_norm(input, normalized_shape, weight, bias, eps)", "layer_norm"),
    ("input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, "
     "eps=1e-05",
     "ops.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)",
     "batch_norm"),
    ("input, p=0.5, training=True, inplace=False", "ops.dropout(input, p, training)", "dropout"),
    ("input, pad, mode='constant', value=None", "padded(input, pad, mode, value)", "pad"),
    ("input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1",
     "conv({}, input, weight, bias, stride, padding, dilation, groups)",
     "conv1d=1 conv2d=2 conv3d=3"),
    (_POOL,
     "avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)",
     "avg_pool1d"),
    (_POOL + ", divisor_override=None",
     "avg_pool({}, input, kernel_size, stride, padding, ceil_mode, count_include_pad, "
     "divisor_override or 0)",
     "avg_pool2d=2 avg_pool3d=3"),
    ("input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, "
     "return_indices=False",
     "ops.max_pool2d(input, kernel_size, stride, padding, dilation, return_indices, ceil_mode)",
     "max_pool2d"),
    ("input, output_size", "ops.{}(input, output_size)",
     "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d"),
    ("input, output_size, return_indices=False", "ops.{}(input, output_size, return_indices)",
     "adaptive_max_pool1d adaptive_max_pool2d"),
    ("input, size=None, scale_factor=None, mode='nearest', align_corners=None, "
     "recompute_scale_factor=None",
     "ops.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)",
     "interpolate"),
    ("input, grid, mode='bilinear', padding_mode='zeros', align_corners=None",
     "ops.grid_sample(input, grid, mode, padding_mode, align_corners)", "grid_sample"),
    ("input, upscale_factor", "ops.pixel_shuffle(input, upscale_factor)", "pixel_shuffle"),
)  # fmt: skip

FORMS = Forms("gradcell.mint.nn.functional", ROWS, {**globals(), "typed": typed})

__all__ = [
    *FORMS.rows,
    "conv_transpose2d",
    "embedding",
    "group_norm",
    "linear",
    "normalize",
    "one_hot",
]

if _typing.TYPE_CHECKING:
    from gradcell.mint.nn._functional_tables import *  # noqa: F403

from gradcell.base.signposts import missing as _missing  # noqa: E402

if not _typing.TYPE_CHECKING:  # a misspelt name is an error to a type checker

    def __getattr__(name: str) -> Any:
        if name not in FORMS:
            raise _missing("gradcell.mint.nn.functional", name, __all__)
        value = FORMS.make(name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
