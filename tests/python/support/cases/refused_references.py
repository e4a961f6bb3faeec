"""What the rows of tests/python/cases give that MindSpore 2.10 refuses, in NumPy and float64.

A function by the row's expression: of its inputs for an expression of x and y; of its parameters, by name,
and its inputs for a cell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import optim_reference
from image_references import halved, ssim

Array = Any


def normalised(x: Array, axes: Any, epsilon: float = 1e-5) -> Array:
    """x with mean 0 and variance 1 over these axes."""
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def channels(p: Array, rank: int) -> Array:
    """A number for each channel, beside (N, C, ...)."""
    return p.reshape(-1, *[1] * (rank - 2))


def batch_norm(p: dict[str, Array], x: Array, mean: Array, variance: Array) -> Array:
    """By given moments, with the parameters' scale and shift."""
    of = lambda name: channels(p[name], x.ndim)  # noqa: E731
    return (x - channels(mean, x.ndim)) / np.sqrt(channels(variance, x.ndim) + 1e-5) * of(
        "weight"
    ) + of("bias")


def by_running_moments(p: dict[str, Array], x: Array) -> Array:
    return batch_norm(p, x, p["running_mean"], p["running_var"])


def by_the_batch(p: dict[str, Array], x: Array) -> Array:
    axes = (0, *range(2, x.ndim))
    return batch_norm(p, x, x.mean(axes), x.var(axes))


def instance_norm(p: dict[str, Array], x: Array) -> Array:
    y = normalised(x, tuple(range(2, x.ndim)))
    if "gamma" not in p:
        return y
    return y * channels(p["gamma"], x.ndim) + channels(p["beta"], x.ndim)


def convolved(x: Array, w: Array, stride: int, padding: int, groups: int) -> Array:
    """(N, C, H, W) with (C', C / groups, h, w)."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    windows = windows[:, :, ::stride, ::stride]
    parts = zip(np.split(windows, groups, 1), np.split(w, groups, 0), strict=True)
    return np.concatenate([np.einsum("ncijhw,ochw->noij", a, b) for a, b in parts], 1)


def averages(x: Array, size: int, stride: int, padding: int) -> Array:
    """Means of windows, of what lies inside the image."""
    sides = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    padded, inside = np.pad(x, sides), np.pad(np.ones_like(x), sides)
    total, count = (
        np.lib.stride_tricks.sliding_window_view(v, (size, size), (2, 3))[
            :, :, ::stride, ::stride
        ].sum((-1, -2))
        for v in (padded, inside)
    )
    return total / count


def adaptive_averages(x: Array, number: int) -> Array:
    n = x.shape[-1]
    return np.stack(
        [x[..., i * n // number : -(-(i + 1) * n // number)].mean(-1) for i in range(number)], -1
    )


def scattered(x: Array, index: list[int]) -> Array:
    """x with its first column added at a column of each row."""
    out = x.copy()
    for row, column in enumerate(index):
        out[row, column] += x[row, 0]
    return out


def attention(q: Array, k: Array, v: Array, heads: int) -> Array:
    """(B, S, H): softmax(q kᵀ) v head by head."""
    parts = [np.split(t, heads, -1) for t in (q, k, v)]
    found = []
    for a, b, c in zip(*parts, strict=True):
        e = np.exp(a @ b.swapaxes(1, 2))
        found.append(e / e.sum(-1, keepdims=True) @ c)
    return np.concatenate(found, -1)


def exponential(x: Array) -> Array:
    """A matrix's exponential by its series."""
    total = term = np.eye(len(x))
    for k in range(1, 40):
        term = term @ x / k
        total = total + term
    return total


def soft_margin(x: Array, y: Array) -> Array:
    return np.log1p(np.exp(-x * y))


def multilabel_margin(x: Array, target: Array) -> Array:
    """Each label up to the first -1 against each class that is none."""
    losses = []
    for row, labels in zip(x, target, strict=True):
        right = list(itertools.takewhile(lambda n: n >= 0, labels))
        wrong = [i for i in range(len(row)) if i not in right]
        losses.append(sum(max(0.0, 1 - row[i] + row[j]) for i in right for j in wrong) / len(row))
    return np.mean(losses)


def triplet(
    a: Array, positive: Array, negative: Array, p: float = 2, swap: bool = False, margin: float = 1
) -> Array:
    apart = lambda x, y: (np.abs(x - y + 1e-6) ** p).sum(-1) ** (1 / p)  # noqa: E731
    far = apart(a, negative)
    far = np.minimum(far, apart(positive, negative)) if swap else far
    return np.maximum(apart(a, positive) - far + margin, 0)


def patches(x: Array, stride: tuple[int, int], rate: tuple[int, int], same: bool) -> Array:
    """Windows of 2 by 2 (rows, columns, channels) one below another; 'same' puts zeros around."""
    reach = [r + 1 for r in rate]
    if same:
        room = [
            max((-(-n // s) - 1) * s + r - n, 0)
            for n, s, r in zip(x.shape[2:], stride, reach, strict=True)
        ]
        x = np.pad(x, ((0, 0), (0, 0), *((m // 2, m - m // 2) for m in room)))
    view = np.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))
    view = view[:, :, :: stride[0], :: stride[1], :: rate[0], :: rate[1]]
    n, c, h, w = view.shape[:4]
    return view.transpose(0, 4, 5, 1, 2, 3).reshape(n, 4 * c, h, w)


def dense_step(x: Array, y: Array, bias: Array, rule: Callable[..., Array]) -> list[Array]:
    """Mean square of x Wᵀ + b - y with W of ones, and W and b after a step by a rule (value, gradient)."""
    w, b = np.ones((y.shape[1], x.shape[1])), bias
    rest = x @ w.T + b - y
    slope = 2 * rest / rest.size
    return [np.mean(rest**2), rule(w, slope.T @ x), rule(b, slope.sum(0))]


def descent(value: Array, gradient: Array) -> Array:
    return value - 0.1 * gradient


def scaled_step(scale: float) -> Callable[..., list[Array]]:
    """(loss, whether it overflowed, the scale after the step, W, b)."""

    def step(x: Array, y: Array, bias: Array) -> list[Array]:
        loss, w, b = dense_step(x, y, bias, descent)
        return [loss, np.array(False), np.array(scale), w, b]

    return step


def lars(value: Array, gradient: Array) -> Array:
    """The bias is left out, as LARS leaves out parameters of that name by default."""
    if value.ndim == 1:
        return descent(value, gradient)
    slope = optim_reference.lars_gradient(value, gradient, 0.1, epsilon=0.02)
    return value - 0.1 * slope


def lamb(value: Array, gradient: Array) -> Array:
    return optim_reference.lamb(value, gradient, 1, 0.1, {})


def momentum(x: Array) -> list[Array]:
    """A parameter and its momentum after a step, with decay 0.1 and a gradient of 2 x scaled by 2."""
    moment = 0.9 * x + 2.0 * (2.0 * x) + 0.1 * x
    return [x - 0.1 * moment, moment]


def unique(x: Array, *parts: str, axis: int | None = None) -> list[Array]:
    found, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=axis)
    named = {"inverse": inverse.reshape(x.shape if axis is None else -1), "counts": counts}
    return [found, *(named[part] for part in parts)]


def similar_channels(x: Array, y: Array, size: int) -> Array:
    return np.array(
        [
            np.mean([ssim(a, b, size, 1.5)[0] for a, b in zip(p, q, strict=True)])
            for p, q in zip(x, y, strict=True)
        ]
    )


def similar_at_scales(x: Array, y: Array) -> Array:
    a, b, product = x[0, 0], y[0, 0], 1.0
    powers = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
    for k, power in enumerate(powers):
        product *= max(ssim(a, b, 3, 1.5)[int(k + 1 < len(powers))], 0) ** power
        if k + 1 < len(powers):
            a, b = halved(a), halved(b)
    return np.array([product])


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ms.mint.clone(x)": lambda x: x,
    "ms.mint.scatter_add(x, 1, Tensor([[0], [2], [1]]), x[:, :1])": (
        lambda x: scattered(x, [0, 2, 1])
    ),
    "ms.mint.sort(x, dim=0, descending=True)": lambda x: [-np.sort(-x, 0), np.argsort(-x, 0)],
    "ms.mint.linalg.qr(x.T)": lambda x: list(np.linalg.qr(x.T)),
    "ms.mint.nn.functional.kl_div(x, ops.sigmoid(x))": (
        lambda x: np.mean(sigmoid(x) * (np.log(sigmoid(x)) - x))
    ),
    "ms.mint.nn.functional.embedding(Tensor([0, 2], ms.int32), x)": lambda x: x[[0, 2]],
    "ms.mint.nn.functional.one_hot(Tensor([0, 2]))": lambda x: np.eye(3)[[0, 2]],
    "ms.mint.nn.functional.batch_norm(x, x[0, :, 0] * 1, x[1, :, 0] * x[1, :, 0] + 0.5)": (
        lambda x: (
            (x - channels(x[0, :, 0], 3)) / np.sqrt(channels(x[1, :, 0] ** 2 + 0.5, 3) + 1e-5)
        )
    ),
    "ms.mint.nn.functional.normalize(x)": lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
    "ms.mint.nn.functional.layer_norm(x, (6,))": lambda x: normalised(x, -1),
    "ms.mint.floor_divide(input=x, other=0.5)": lambda x: np.floor(x / 0.5),
    "ops.take(x, index=Tensor([0, 4]))": lambda x: x.ravel()[[0, 4]],
    "ms.numpy.float_power(x * x, 1.5)": lambda x: np.abs(x) ** 3,
    "ops.Roll(1, 0)(x)": lambda x: np.roll(x, 1, 0),
    "ops.einsum('ij->ji', x)": lambda x: x.T,
    "ops.einsum('ij,ij->', x, x)": lambda x: np.sum(x * x),
    "ops.einsum('...j->...', x)": lambda x: x.sum(-1),
    "ops.Einsum('ij,kj->ik')((x, x))": lambda x: x @ x.T,
    "ops.layer_norm(x, (3,))": lambda x: normalised(x, -1),
    "ops.layer_norm(x, (3,), x[0], x[1])": lambda x: normalised(x, -1) * x[0] + x[1],
    "ops.rms_norm(x, x[0])": lambda x: [
        x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * x[0],
        1 / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6),
    ],
    "ops.quantile(x, 0.3)": lambda x: np.quantile(x, 0.3),
    "ops.quantile(x, 0.3, 1)": lambda x: np.quantile(x, 0.3, 1),
    "ops.nanquantile(x, 0.4, 1, True)": lambda x: np.nanquantile(x, 0.4, 1, keepdims=True),
    "ops.type_as(x, Tensor([1], ms.int32))": np.trunc,
    "ops.tuple_setitem((x, x), 1, x * 2.0)": lambda x: [x, 2 * x],
    "ops.tuple_reversed((x, x * 2.0))": lambda x: [2 * x, x],
    "ops.soft_margin_loss(x, ops.sign(x))": lambda x: np.mean(soft_margin(x, np.sign(x))),
    "ops.multilabel_margin_loss(x, Tensor([[0, 2, -1], [1, -1, 0]], ms.int32))": (
        lambda x: multilabel_margin(x, [[0, 2, -1], [1, -1, 0]])
    ),
    "ops.triplet_margin_loss(x, x * 2.0, x * x)": lambda x: np.mean(triplet(x, 2 * x, x * x)),
    "ops.triplet_margin_loss(x, x * 2.0, x * x, swap=True, reduction='none')": (
        lambda x: triplet(x, 2 * x, x * x, swap=True)
    ),
    "ops.Randperm(4)(Tensor([4], ms.int32)) // 4": lambda x: np.zeros(4),
    "ops.sort(ops.cast(ops.Randperm(4)(Tensor([4], ms.int32)), ms.float32))[0]": (
        lambda x: np.arange(4.0)
    ),
    "ops.FloatStatus()(x)": lambda x: np.zeros(1),
    "ops.flash_attention_score(x, y, y, 2)": lambda x, y: attention(x, y, y, 2),
    "ops.jvp(lambda t: t * t, x, x)": lambda x: [x * x, 2 * x * x],
    "ops.vmap(lambda t: t.sum())(x)": lambda x: x.sum(1),
    "ops.jacfwd(lambda t: t * t)(x[0])": lambda x: np.diag(2 * x[0]),
    "ops.jacrev(lambda t: t * t)(x[0])": lambda x: np.diag(2 * x[0]),
    "ops.InsertGradientOf(lambda g: g * 2.0)(x)": lambda x: x,
    "ops.GatherV2()(x, Tensor([1, 0]), 0)": lambda x: x[[1, 0]],
    "ops.tuple_getitem((x, x * 2.0), 1)": lambda x: 2 * x,
    "ops.make_list(x, x)": lambda x: [x, x],
    "ops.scalar_to_array(2.5)": lambda x: np.array(2.5),
    "ops.ScalarToArray()(2.5)": lambda x: np.array(2.5),
    "(lambda w, m: (ops.FusedWeightScaleApplyMomentum()(Tensor(0.1), Tensor(2.0), w, m, 0.1, x * 2.0, 0.9), "
    "w, m)[1:])(ms.Parameter(x * 1, name='w'), ms.Parameter(x * 1, name='m'))": momentum,
    "ops.matrix_exp(x[:, :2])": lambda x, y: exponential(x[:, :2]),
    "ops.stop_gradient_(x * 1) * y": lambda x, y: x * y,
    "x[int(ops.scalar_ne(3, 3))]": lambda x, y: x[0],
    "x.clone()": lambda x: x,
    "x.angle()": lambda x: np.where(x < 0, math.pi, 0.0),
    "x.new_full((2, 2), 3.5)": lambda x: np.full((2, 2), 3.5),
    "x.new_full((2, 2), 3, dtype=ms.int32)": lambda x: np.full((2, 2), 3),
    "x.new_full((2,), 2)": lambda x: np.full(2, 2),
    "x.repeat([2, 3, 1])": lambda x: np.tile(x, (2, 3, 1)),
    "x.quantile(0.3)": lambda x: np.quantile(x, 0.3),
    "x.quantile(0.3, 1)": lambda x: np.quantile(x, 0.3, 1),
    "x.nanquantile(0.4, 1, True)": lambda x: np.nanquantile(x, 0.4, 1, keepdims=True),
    "x.quantile(Tensor([0.3, 0.7]), 0)": lambda x: np.quantile(x, [0.3, 0.7], 0),
    "x.scatter_add(1, Tensor([[0], [2]]), x[:, :1])": lambda x: scattered(x, [0, 2]),
    "(x * 1).zero_()": lambda x: 0 * x,
    "x.fmin(x[0])": lambda x: np.fmin(x, x[0]),
    "x.unique()": lambda x: unique(x),
    "x.unique(return_inverse=True)": lambda x: unique(x, "inverse"),
    "x.unique(sorted=True, return_inverse=True, return_counts=True)": (
        lambda x: unique(x, "inverse", "counts")
    ),
    "x.unique(return_counts=True, dim=0)": lambda x: unique(x, "counts", axis=0),
    "(x * 1).index_add_(0, Tensor([1, 0], ms.int32), x, alpha=2)": lambda x: x + 2 * x[::-1],
    "nn.Roll(1, 0)(x)": lambda x: np.roll(x, 1, 0),
    "nn.Unfold([1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1])(x)": (
        lambda x: patches(x, (1, 1), (1, 1), False)
    ),
    "nn.Unfold([1, 2, 2, 1], [1, 2, 1, 1], [1, 1, 2, 1], 'same')(x)": (
        lambda x: patches(x, (2, 1), (1, 2), True)
    ),
    "(lambda n: nn.DistributedGradReducer(n.trainable_params())(tuple(n.trainable_params())))"
    "(nn.Dense(3, 2, 'ones', 'zeros'))": lambda x: [np.ones((2, 3)), np.zeros(2)],
    # One process: its rank, the group's size.
    "(communication.init(), communication.get_rank(), communication.get_group_size(), "
    "communication.get_local_rank(), communication.get_local_rank_size())[1:]": lambda: [
        0,
        1,
        0,
        1,
    ],
    "(communication.init(), communication.get_process_group_ranks())[1]": lambda: [0],
    "(communication.init(), communication.get_world_rank_from_group_rank("
    "communication.GlobalComm.WORLD_COMM_GROUP, 0), communication.get_group_rank_from_world_rank(0, "
    "communication.GlobalComm.WORLD_COMM_GROUP))[1:]": lambda: [0, 0],
    "(communication.init(), communication.create_group('some', [0]), communication.get_group_size('some'), "
    "communication.destroy_group('some'))[2]": lambda: [1],
    "(communication.init(), communication.get_comm_name('mccl_world_group'))[1]": (
        lambda: np.frombuffer(b"mccl_world_group", np.uint8)
    ),
    "(communication.init(), communication.release(), 1)[2]": lambda: [1],
}

#: Steps of a Dense of ones: of (x, y, its bias before).
STEPS: dict[str, Callable[..., list[Array]]] = {
    "(lambda n: (nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(n, nn.MSELoss()), "
    f"nn.SGD(n.trainable_params(), 0.1), {scale})(x, y), n.weight, n.bias))(nn.Dense(3, 2, 'ones'{bias}))": (
        scaled_step(after)
    )
    for scale, bias, after in (
        ("Tensor(16.0)", "", 16.0), ("nn.DynamicLossScaleUpdateCell(16, 2, 1)", "", 32.0),
        ("nn.FixedLossScaleUpdateCell(16)", "", 16.0),
        ("Tensor(16.0, ms.float32)", ", 'zeros'", 16.0),
    )
} | {
    "(lambda n: (nn.TrainOneStepCell(nn.WithLossCell(n, nn.MSELoss()), "
    f"{optimizer})(x, y), n.weight, n.bias))(nn.Dense(3, 2, 'ones', 'zeros'))": (
        lambda x, y, b, rule=rule: dense_step(x, y, b, rule)
    )
    for optimizer, rule in (
        ("nn.LARS(nn.Momentum(n.trainable_params(), 0.1, 0.9), 0.02)", lars),
        ("nn.Lamb(n.trainable_params(), 0.1)", lamb),
    )
}  # fmt: skip

CELLS: dict[str, Callable[..., Any]] = {
    "ms.mint.nn.AdaptiveAvgPool1d(4)": lambda p, x: adaptive_averages(x, 4),
    "ms.mint.nn.BatchNorm1d(3)": by_running_moments,
    "ms.mint.nn.AvgPool2d(3, 2, 1, count_include_pad=False)": lambda p, x: averages(x, 3, 2, 1),
    "ms.mint.nn.BatchNorm2d(4)": by_running_moments,
    "ms.mint.nn.BatchNorm2d(4).set_train()": by_the_batch,
    "ms.mint.nn.BatchNorm3d(2)": by_running_moments,
    "ms.mint.nn.Conv2d(4, 2, 3, padding=1)": lambda p, x: (
        convolved(x, p["weight"], 1, 1, 1) + channels(p["bias"], 4)
    ),
    "ms.mint.nn.Conv2d(4, 4, (2, 3), 2, groups=2, bias=False)": (
        lambda p, x: convolved(x, p["weight"], 2, 0, 2)
    ),
    "ms.mint.nn.GELU('tanh')": lambda p, x: (
        0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "ms.mint.nn.SELU()": lambda p, x: (
        1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))
    ),
    "ms.mint.nn.LayerNorm((4,))": lambda p, x: normalised(x, -1) * p["weight"] + p["bias"],
    "nn.InstanceNorm1d(3)": instance_norm,
    "nn.InstanceNorm1d(3, affine=False)": instance_norm,
    "nn.InstanceNorm2d(3)": instance_norm,
    "nn.InstanceNorm3d(3)": instance_norm,
    "nn.SoftMarginLoss()": lambda p, x, y: np.mean(soft_margin(x, y)),
    "nn.SoftMarginLoss('none')": lambda p, x, y: soft_margin(x, y),
    "nn.MultilabelMarginLoss()": lambda p, x, y: multilabel_margin(x, y),
    "nn.TripletMarginLoss()": lambda p, x, y, z: np.mean(triplet(x, y, z)),
    "nn.TripletMarginLoss(1, swap=True, margin=0.5)": (
        lambda p, x, y, z: np.mean(triplet(x, y, z, 1, True, 0.5))
    ),
    "nn.SSIM()": lambda p, x, y: similar_channels(x, y, 11),
    "nn.SSIM(filter_size=5)": lambda p, x, y: similar_channels(x, y, 5),
    "nn.PSNR(2.0)": lambda p, x, y: 10 * np.log10(4 / ((x - y) ** 2).mean((1, 2, 3))),
    "nn.MSSSIM(filter_size=3)": lambda p, x, y: similar_at_scales(x, y),
}

#: Rows whose derivative is not that of the value: by a rule of the user's, of what is a constant there (a
#: Parameter made of x is a leaf), or of zeros.
VALUES = {
    "ops.InsertGradientOf(lambda g: g * 2.0)(x)",
    "ops.stop_gradient_(x * 1) * y",
    "(x * 1).zero_()",
    next(text for text in FUNCTIONS if "FusedWeightScaleApplyMomentum" in text),
}
