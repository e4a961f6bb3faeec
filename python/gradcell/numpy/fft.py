"""The discrete Fourier transforms of ops, with NumPy's names of arguments: mindspore.numpy.fft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell import ops
from gradcell._core import Tensor
from gradcell.base.spelling import spelling

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn",
    "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq",
    "rfftn",
]  # fmt: skip


def _named(function: Any, op: Callable[..., Any]) -> Any:
    function.__name__ = function.__qualname__ = op.__name__
    return spelling(op)(function)


def _along_one(op: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor: ...

    return _named(function, op)  # type: ignore[no-any-return]


def _along_two(op: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Tensor: ...

    return _named(function, op)  # type: ignore[no-any-return]


def _along_many(op: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Tensor: ...

    return _named(function, op)  # type: ignore[no-any-return]


fft, ifft, rfft = map(_along_one, (ops.fft, ops.ifft, ops.rfft))
irfft, hfft, ihfft = map(_along_one, (ops.irfft, ops.hfft, ops.ihfft))
fft2, ifft2, rfft2 = map(_along_two, (ops.fft2, ops.ifft2, ops.rfft2))
irfft2, hfft2, ihfft2 = map(_along_two, (ops.irfft2, ops.hfft2, ops.ihfft2))
fftn, ifftn, rfftn = map(_along_many, (ops.fftn, ops.ifftn, ops.rfftn))
irfftn, hfftn, ihfftn = map(_along_many, (ops.irfftn, ops.hfftn, ops.ihfftn))


@spelling(ops.fftshift)
def fftshift(x: Any, axes: Any = None) -> Tensor: ...
@spelling(ops.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Tensor: ...
@spelling(ops.fftfreq)
def fftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Tensor: ...
@spelling(ops.rfftfreq)
def rfftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Tensor: ...
