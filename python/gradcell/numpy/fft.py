"""The discrete Fourier transforms of ops, with NumPy's names of arguments: mindspore.numpy.fft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell import ops
from gradcell._core import Tensor
from gradcell.base import publish
from gradcell.base.spelling import spelling


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


fft: Callable[..., Tensor] = _along_one(ops.fft)
ifft: Callable[..., Tensor] = _along_one(ops.ifft)
rfft: Callable[..., Tensor] = _along_one(ops.rfft)
irfft: Callable[..., Tensor] = _along_one(ops.irfft)
hfft: Callable[..., Tensor] = _along_one(ops.hfft)
ihfft: Callable[..., Tensor] = _along_one(ops.ihfft)
fft2: Callable[..., Tensor] = _along_two(ops.fft2)
ifft2: Callable[..., Tensor] = _along_two(ops.ifft2)
rfft2: Callable[..., Tensor] = _along_two(ops.rfft2)
irfft2: Callable[..., Tensor] = _along_two(ops.irfft2)
hfft2: Callable[..., Tensor] = _along_two(ops.hfft2)
ihfft2: Callable[..., Tensor] = _along_two(ops.ihfft2)
fftn: Callable[..., Tensor] = _along_many(ops.fftn)
ifftn: Callable[..., Tensor] = _along_many(ops.ifftn)
rfftn: Callable[..., Tensor] = _along_many(ops.rfftn)
irfftn: Callable[..., Tensor] = _along_many(ops.irfftn)
hfftn: Callable[..., Tensor] = _along_many(ops.hfftn)
ihfftn: Callable[..., Tensor] = _along_many(ops.ihfftn)


@spelling(ops.fftshift)
def fftshift(x: Any, axes: Any = None) -> Tensor: ...
@spelling(ops.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Tensor: ...
@spelling(ops.fftfreq)
def fftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Tensor: ...
@spelling(ops.rfftfreq)
def rfftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Tensor: ...


publish(globals())
