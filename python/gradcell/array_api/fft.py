"""The standard's extension fft: the transforms of gradcell.numpy.fft."""

from __future__ import annotations

from typing import Any

from gradcell import ops
from gradcell._core import Tensor
from gradcell.array_api.data_types import on_device
from gradcell.base.spelling import spelling
from gradcell.numpy.fft import fft, fftn, hfft, ifft, ifftn, ihfft, irfft, irfftn, rfft, rfftn

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn",
    "rfft", "rfftfreq", "rfftn",
]  # fmt: skip
__dir__ = sorted(__all__).copy


@spelling(ops.fftfreq, then=on_device)
def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor: ...
@spelling(ops.rfftfreq, then=on_device)
def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor: ...
@spelling(ops.fftshift)
def fftshift(x: Any, /, *, axes: Any = None) -> Tensor: ...
@spelling(ops.ifftshift)
def ifftshift(x: Any, /, *, axes: Any = None) -> Tensor: ...
