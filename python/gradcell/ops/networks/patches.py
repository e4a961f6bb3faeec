"""Patches of images, as columns and back, and the largest elements of windows at places drawn at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell._core import Tensor, int64, ops as _ops
from gradcell.base import arguments, bad_type, bad_value
from gradcell.ops.arrays import indexing, shaping
from gradcell.ops.decorators import one_plan
from gradcell.ops.networks import convolution, windows
from gradcell.ops.random import draws
from gradcell.ops.reductions import reductions

__all__ = ["fold", "fractional_max_pool2d", "fractional_max_pool3d", "unfold"]


@one_plan
def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The patches of images (N, C, H, W), each as a column: (N, C * rows * columns, patches).

    kernel_size, dilation, padding, stride: of the windows, an int or (rows, columns). Raises TypeError,
    ValueError.
    """
    x = arguments.of_rank(input, (4,), "unfold")
    axes = windows.axes_of(x, "unfold", kernel_size, stride, "pad", padding, dilation)
    taps = [shaping.expand_dims(t, 2) for t in windows.taps(windows.pad(x, axes, 0), axes)]
    n, c = x.shape[:2]
    return _ops.reshape(_ops.concat(taps, 2), [n, c * len(taps), math.prod(a.number for a in axes)])


@one_plan
def fold(
    input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
    stride: Any = 1,
) -> Tensor:  # fmt: skip
    """Images (N, C, H, W) of which columns (N, C * rows * columns, patches), as unfold gives them, are the
    patches; where patches overlap they are added up.

    output_size: (H, W), numbers or a tensor of them. kernel_size, dilation, padding, stride: as unfold's.
    Raises TypeError, ValueError for columns that do not fit.
    """
    x = arguments.of_rank(input, (3, 4), "fold")
    given = output_size.asnumpy().tolist() if isinstance(output_size, Tensor) else output_size
    sizes = windows.sizes(given, 2, "fold", "output_size")
    image = _ops.full([1, 1, *sizes], 0.0, x.dtype)
    axes = windows.axes_of(image, "fold", kernel_size, stride, "pad", padding, dilation)
    k, numbers = math.prod(a.kernel for a in axes), [a.number for a in axes]
    n, channels, patches = x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1]
    if channels % k or patches != math.prod(numbers):
        bad_value(
            f"fold: columns of shape {list(x.shape)} do not fit images of {list(sizes)}, which have "
            f"{math.prod(numbers)} windows of {k} elements in each channel"
        )
    c = channels // k
    at = np.tile(np.eye(k).reshape(k, 1, *(a.kernel for a in axes)), (c, 1, 1, 1))
    weight = _ops.cast(Tensor(at), x.dtype)
    columns = _ops.reshape(x, [n, channels, *numbers])
    return convolution.convolve_back(columns, weight, None, axes, c)


def _starts(samples: Tensor, n: int, kernel: int, m: int) -> Tensor:
    """Places where m windows begin in n elements, by a number in [0, 1): (..., m); the last at the end
    (Graham, Fractional max-pooling (2014), section 3)."""
    last = _ops.full([*samples.shape, 1], n - kernel, int64)
    if m == 1:
        return last
    step = np.float32((n - kernel) / (m - 1))
    u = shaping.expand_dims(samples, -1)
    at = _ops.add(Tensor(np.arange(m - 1, dtype=np.float32)), u)
    places = _ops.sub(_ops.floor(_ops.mul(at, step)), _ops.floor(_ops.mul(u, step)))
    return _ops.concat([_ops.cast(places, int64), last], -1)


def _windows(x: Tensor, kernel: Sequence[int], sizes: Sequence[int], samples: Tensor) -> Tensor:
    """The places of each window's elements in the flattened last dimensions: (N, C, windows, elements)."""
    rank, outer = len(kernel), list(x.shape[:2])
    found: Tensor | None = None
    for i, (k, m) in enumerate(zip(kernel, sizes, strict=True)):
        u = _ops.slice(samples, [0, 0, i], [*outer, 1], [1, 1, 1])
        start = _starts(_ops.reshape(u, outer), x.shape[2 + i], k, m)
        at = _ops.add(shaping.expand_dims(start, -1), Tensor(np.arange(k)))
        dims = [*outer, *[1] * (2 * rank)]
        dims[2 + i], dims[2 + rank + i] = m, k
        at = _ops.mul(_ops.reshape(at, dims), math.prod(x.shape[3 + i :]))
        found = at if found is None else _ops.add(found, at)
    assert found is not None
    return _ops.reshape(found, [*outer, math.prod(sizes), math.prod(kernel)])


def _fractional(rank: int) -> Callable[..., Any]:
    owner = f"fractional_max_pool{rank}d"

    def function(
        input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Any = None,
    ) -> Any:  # fmt: skip
        x = arguments.of_rank(input, (rank + 1, rank + 2), owner)
        kernel = windows.sizes(kernel_size, rank, owner, "kernel_size")
        if (output_size is None) == (output_ratio is None):
            bad_value(f"For '{owner}', one of 'output_size' and 'output_ratio' must be given.")
        dims = x.shape[-rank:]
        if output_ratio is not None:
            ratios = output_ratio if isinstance(output_ratio, tuple) else (output_ratio,) * rank
            output_size = tuple(int(n * r) for n, r in zip(dims, ratios, strict=True))
        sizes = windows.sizes(output_size, rank, owner, "output_size")
        if any(k + m - 1 > n for n, k, m in zip(dims, kernel, sizes, strict=True)):
            bad_value(
                f"For '{owner}', {list(sizes)} windows of {list(kernel)} do not fit into an input of shape "
                f"{list(x.shape)}."
            )
        images = x if x.ndim == rank + 2 else shaping.expand_dims(x, 0)
        shape = [*images.shape[:2], rank]
        if _random_samples is None:
            _random_samples = draws._draw(shape, None)
        elif not isinstance(_random_samples, Tensor) or list(_random_samples.shape) != shape:
            bad_type(f"For '{owner}', '_random_samples' must be a Tensor of shape {shape}.")
        places = _windows(images, kernel, sizes, _random_samples)
        flat = _ops.reshape(images, [*images.shape[:2], 1, -1])
        wide = shaping.broadcast_to(flat, [*places.shape[:3], flat.shape[-1]])
        picked = indexing.gather_elements(wide, -1, places)
        best = reductions.argmax(picked, -1, True)
        kept = [*x.shape[:-rank], *sizes]
        out = _ops.reshape(indexing.gather_elements(picked, -1, best), kept)
        if not return_indices:
            return out
        return out, _ops.reshape(indexing.gather_elements(places, -1, best), kept)

    function.__name__ = function.__qualname__ = owner
    function.__doc__ = (
        f"The largest elements of windows at places drawn at random over the last {windows.DIMENSIONS[rank]} "
        "of (N, C, ...) or (C, ...) (Graham 2014).\n\n    return_indices: also their places in those "
        "dimensions flattened. kernel_size: of the windows. output_size: how many there are. "
        "output_ratio: how many for each element, in its place. _random_samples: numbers in [0, 1) to "
        "place them by, one for each channel and dimension. Raises TypeError, ValueError."
    )
    return one_plan(function)


fractional_max_pool2d: Callable[..., Any] = _fractional(2)
fractional_max_pool3d: Callable[..., Any] = _fractional(3)
