"""Resizing: each of the last dimensions in turn, by gathered elements and fixed weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value
from gradcell.ops.decorators import one_plan
from gradcell.ops.networks import pooling

__all__ = ["interpolate"]


#: Where the centre of new element i of m lies among the n old ones; `step` is old ones per new one.
COORDINATES: dict[str, Callable[[np.ndarray, int, int, float], np.ndarray]] = {
    "half_pixel": lambda i, n, m, step: (i + 0.5) * step - 0.5,
    "align_corners": lambda i, n, m, step: i * ((n - 1) / (m - 1) if m > 1 else 0.0),
    "asymmetric": lambda i, n, m, step: i * step,
}


def _linear(at: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(two neighbours of each position [2, m], their weights)."""
    at = np.clip(at, 0, n - 1)
    low = np.floor(at).astype(np.int64)
    part = at - low
    return np.stack([low, np.minimum(low + 1, n - 1)]), np.stack([1 - part, part])


def _cubic(at: np.ndarray, n: int, a: float) -> tuple[np.ndarray, np.ndarray]:
    """(four neighbours of each position [4, m], Keys' weights with parameter a).

    With a = -1/2 neighbours outside do not count and the others' weights are scaled to the sum 1;
    otherwise the outermost element stands for them, as in MindSpore.
    """
    low = np.floor(at).astype(np.int64)
    index = low + np.arange(-1, 3)[:, None]
    d = np.abs(at - index)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    weights = np.where(d <= 1, near, np.where(d < 2, far, 0.0))
    if a == -0.5:
        weights = np.where((index >= 0) & (index < n), weights, 0.0)
        weights = weights / weights.sum(axis=0)
    return np.clip(index, 0, n - 1), weights


def _nearest(n: int, m: int, coordinates: str, step: float) -> np.ndarray:
    i = np.arange(m)
    if coordinates == "align_corners":
        at = np.floor(i * ((n - 1) / (m - 1) if m > 1 else 0.0) + 0.5)
    elif step == n / m:  # exact, in integers
        at = (2 * i + 1) * n // (2 * m) if coordinates == "half_pixel" else i * n // m
    else:
        at = np.floor((i + 0.5) * step if coordinates == "half_pixel" else i * step)
    return np.minimum(at, n - 1).astype(np.int64)  # type: ignore[no-any-return]


def _along(x: Tensor, axis: int, m: int, kind: str, coordinates: str, step: float) -> Tensor:
    n = x.shape[axis]
    if kind == "nearest":
        index = _nearest(n, m, coordinates, step)
        return x if (m == n and (index == np.arange(n)).all()) else _gather(x, index, axis)
    at = COORDINATES[coordinates](np.arange(m), n, m, step)
    if kind == "linear":
        indices, weights = _linear(at, n)
    else:
        indices, weights = _cubic(at, n, -0.5 if coordinates == "half_pixel" else -0.75)
    shape = [-1 if k == axis else 1 for k in range(x.ndim)]
    total: Any = None
    for index, weight in zip(indices, weights, strict=True):
        if not weight.any():
            continue
        part = _ops.mul(_gather(x, index, axis), Tensor(weight.reshape(shape), x.dtype))
        total = part if total is None else _ops.add(total, part)
    return total  # type: ignore[no-any-return]


def _gather(x: Tensor, index: np.ndarray, axis: int) -> Tensor:
    return _ops.gather(x, Tensor(index), axis)


def _sampled(x: Tensor, axes: Sequence[tuple[np.ndarray, np.ndarray]]) -> Tensor:
    """The last dimensions, each linear between two neighbours with two weights, [2, m] each; all of
    them at once."""
    outer, old = x.shape[: x.ndim - len(axes)], x.shape[x.ndim - len(axes) :]
    corners: list[tuple[Any, Any]] = [(None, None)]
    for k, (index, weight) in enumerate(axes):
        step = math.prod(old[k + 1 :])
        line = [
            (Tensor((i * step).astype(np.int32)), Tensor(w, x.dtype))
            for i, w in zip(index, weight, strict=True)
        ]
        corners = [
            (_spread(_ops.add, a, b), _spread(_ops.mul, v, w)) for a, v in corners for b, w in line
        ]
    places, weights = (
        _ops.reshape(_ops.concat(list(parts), 0), [1, len(corners), -1])
        for parts in zip(*corners, strict=True)
    )
    out = _ops.sample(_ops.reshape(x, [1, math.prod(outer), math.prod(old)]), places, weights)
    return _ops.reshape(out, [*outer, *(index.shape[1] for index, _ in axes)])


def _spread(op: Callable[[Tensor, Tensor], Tensor], a: Tensor | None, b: Tensor) -> Tensor:
    """op of each element of a with each of b, in a line; b itself where there is no a."""
    return b if a is None else _ops.reshape(op(_ops.reshape(a, [-1, 1]), b), [-1])


def resize(
    x: Tensor,
    sizes: Sequence[int],
    kind: str,
    coordinates: str,
    steps: Sequence[float | None] | None = None,
) -> Tensor:
    """x with the last dimensions of other sizes.

    kind: 'nearest', 'linear' or 'cubic' along each dimension. coordinates: one of COORDINATES.
    steps: old elements per new one; by default the quotient of the sizes.
    """
    first = x.ndim - len(sizes)
    if kind == "linear" and math.prod(x.shape[first:]) < 2**31:
        ways = []
        for k, m in enumerate(sizes):
            n, step = x.shape[first + k], None if steps is None else steps[k]
            at = COORDINATES[coordinates](np.arange(m), n, m, n / m if step is None else step)
            ways.append(_linear(at, n))
        return _sampled(x, ways)
    # What grows least comes first; of axes alike that with which the last one, whose elements are
    # picked one by one, makes fewest.
    growth = [m / n for m, n in zip(sizes, x.shape[first:], strict=True)]
    for k in sorted(range(len(sizes)), key=lambda k: (growth[k], -k if growth[k] >= 1 else k)):
        axis, m = first + k, sizes[k]
        step = None if steps is None else steps[k]
        step = x.shape[axis] / m if step is None else step
        x = _along(x, axis, m, kind, coordinates, step)
    return x


#: mode: (kind, numbers of dimensions it is for)
_MODES: dict[str, tuple[str, tuple[int, ...]]] = {
    "nearest": ("nearest", (3, 4, 5)),
    "nearest-exact": ("nearest", (3, 4, 5)),
    "linear": ("linear", (3,)),
    "bilinear": ("linear", (4,)),
    "trilinear": ("linear", (5,)),
    "bicubic": ("cubic", (4,)),
    "area": ("area", (3, 4, 5)),
}


def _each(value: Any, rank: int, name: str) -> list[Any]:
    values = list(value) if isinstance(value, (tuple, list)) else [value] * rank
    if len(values) != rank:
        bad_value(
            f"For 'interpolate', the '{name}' must be a number or {rank} of them, but got {value}."
        )
    for v in values:
        if isinstance(v, bool) or not isinstance(v, (int, float, np.number)) or not v > 0:
            bad_value(f"For 'interpolate', the '{name}' must be positive, but got {value}.")
    return values


@one_plan
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:
    """input (N, C, ...) with the dimensions behind the channels of another size.

    size: an int, or one for each dimension. scale_factor: in place of size, a factor, or one for each
    dimension: the new size is floor(old size * factor).
    mode: 'nearest', 'nearest-exact' (nearest centre), 'linear' (3 dimensions), 'bilinear' (4),
    'trilinear' (5), 'bicubic' (4; Keys 1981) or 'area' (adaptive means). align_corners: for the
    linear and cubic modes, whether the outermost centres coincide, or else the outermost edges.
    recompute_scale_factor: coordinates by the quotient of the sizes, not by scale_factor.

    Raises TypeError for anything that is not a tensor, ValueError for a mode that does not fit the number of
    dimensions, sizes that are not positive, or unless exactly one of size and scale_factor is there.
    """
    x = arguments.floating(arguments.tensor(input, "interpolate"))
    arguments.one_of(mode, list(_MODES), "interpolate", "mode")
    kind, ranks = _MODES[mode]
    if x.ndim not in ranks:
        bad_value(
            f"For 'interpolate', mode {mode!r} takes inputs of {' or '.join(map(str, ranks))} dimensions, "
            f"but got shape {list(x.shape)}."
        )
    if (size is None) == (scale_factor is None):
        bad_value("For 'interpolate', exactly one of 'size' and 'scale_factor' is needed.")
    if align_corners is not None and kind not in ("linear", "cubic"):
        bad_value(f"For 'interpolate', 'align_corners' is not for mode {mode!r}: it must be None.")
    if 0 in x.shape[2:]:
        bad_value(f"For 'interpolate', the input has no element: its shape is {list(x.shape)}.")
    steps = None
    if size is not None:
        if recompute_scale_factor is not None:
            bad_value(
                "For 'interpolate', 'recompute_scale_factor' is for a 'scale_factor', not for a 'size'."
            )
        sizes = [int(n) for n in _each(size, x.ndim - 2, "size")]
    else:
        factors = _each(scale_factor, x.ndim - 2, "scale_factor")
        sizes = [math.floor(n * f) for n, f in zip(x.shape[2:], factors, strict=True)]
        if min(sizes) < 1:
            bad_value(
                f"For 'interpolate', an input of shape {list(x.shape)} times {scale_factor} has no element."
            )
        if not recompute_scale_factor:
            steps = [1 / f for f in factors]
    if kind == "area":
        return pooling.adaptive_avg_pool(x, sizes)
    coordinates = "align_corners" if align_corners else "half_pixel"
    if mode == "nearest":
        coordinates = "asymmetric"
    return resize(x, sizes, kind, coordinates, steps)
