"""scipy.signal's convolutions and correlations of tensors of any number of dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell import ops
from gradcell._core import Tensor
from gradcell.base import arguments, bad_value, publish

#: Up to so many elements of the smaller one the products are added up one after the other.
_FEW = 32


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Tensor:
    """The convolution of two tensors of equally many dimensions.

    in1, in2: tensors, or what becomes one. mode: 'full', every overlap; 'same', in1's shape; 'valid', whole
    overlaps only. method: 'direct', 'fft' for transforms, or 'auto' for what is quicker.
    """
    x, k = (
        arguments.floating(v if isinstance(v, Tensor) else Tensor(np.asarray(v)))
        for v in (in1, in2)
    )
    arguments.one_of(mode, ("full", "same", "valid"), "convolve", "mode")
    arguments.one_of(method, ("auto", "direct", "fft"), "convolve", "method")
    if x.ndim != k.ndim or not x.size or not k.size:
        bad_value(
            f"convolve: tensors of equally many dimensions with elements are needed, got shapes "
            f"{list(x.shape)} and {list(k.shape)}"
        )
    if not x.ndim:
        return x * k
    sizes = [m + n - 1 for m, n in zip(x.shape, k.shape, strict=True)]
    direct = method == "direct" or (method == "auto" and min(x.size, k.size) <= _FEW)
    full = (_added if direct else _transformed)(x, k, sizes)
    if mode == "full":
        return full
    want = list(x.shape) if mode == "same" else _whole(x, k)
    for axis, (n, m) in enumerate(zip(sizes, want, strict=True)):
        full = ops.narrow(full, axis, (n - m) // 2, m)
    return full


def _whole(x: Tensor, k: Tensor) -> list[int]:
    """The shape of whole overlaps: one of the two has to be the larger one everywhere."""
    apart = [m - n for m, n in zip(x.shape, k.shape, strict=True)]
    if min(apart) < 0 < max(apart):
        bad_value(
            f"convolve: mode 'valid' needs one tensor that is the larger one in all dimensions, got shapes "
            f"{list(x.shape)} and {list(k.shape)}"
        )
    return [abs(n) + 1 for n in apart]


def _added(x: Tensor, k: Tensor, sizes: list[int]) -> Tensor:
    x, k = (x, k) if x.size >= k.size else (k, x)
    total: Any = 0
    for at in np.ndindex(tuple(k.shape)):
        ends = [(i, n - m - i) for i, n, m in zip(at, sizes, x.shape, strict=True)]
        flat = [end for pair in reversed(ends) for end in pair]
        total = total + ops.pad(x, flat) * k[at]
    return total  # type: ignore[no-any-return]


def _transformed(x: Tensor, k: Tensor, sizes: list[int]) -> Tensor:
    axes = tuple(range(x.ndim))
    if x.dtype.is_complex or k.dtype.is_complex:
        return ops.ifftn(ops.fftn(x, sizes, axes) * ops.fftn(k, sizes, axes), sizes, axes)
    return ops.irfftn(ops.rfftn(x, sizes, axes) * ops.rfftn(k, sizes, axes), sizes, axes)


def fftconvolve(in1: Any, in2: Any, mode: str = "full") -> Tensor:
    """The convolution of two tensors by Fourier transforms.

    in1, in2: tensors, or what becomes one. mode: 'full', 'same' or 'valid', as in convolve.
    """
    return convolve(in1, in2, mode, "fft")


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Tensor:
    """The correlation of two tensors: the sums of products of in1, moved on, and the conjugate of in2.

    in1, in2: tensors, or what becomes one. mode: 'full', 'same' or 'valid', as in convolve. method:
    'direct', 'fft' or 'auto'.
    """
    k = in2 if isinstance(in2, Tensor) else Tensor(np.asarray(in2))
    k = ops.conj(k) if k.dtype.is_complex else k
    return convolve(in1, ops.flip(k, tuple(range(k.ndim))) if k.ndim else k, mode, method)


publish(globals())
