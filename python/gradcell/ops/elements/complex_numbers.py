"""Complex numbers: their parts, absolute value and angle, and how they are made of real tensors.

Derivatives are MindSpore's: of a real L by z = x + iy, dL/dx + i dL/dy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type
from gradcell.ops.decorators import method, one_plan

__all__ = [
    "angle", "conj", "imag", "is_complex", "isreal", "polar", "real", "view_as_real",
]  # fmt: skip

P = ParamSpec("P")


@method()
def is_complex(input: Any) -> bool:
    """Return whether the dtype of a tensor is complex."""
    return arguments.tensor(input, "is_complex").dtype.is_complex


def part(z: Tensor, which: int) -> Tensor:
    """The real (0) or imaginary (1) part of a complex tensor."""
    pairs = _ops.view_as_real(z)
    n = pairs.ndim
    start, size = [0] * (n - 1) + [which], [*z.shape, 1]
    return _ops.reshape(_ops.slice(pairs, start, size, [1] * n), list(z.shape))


def made(real: Tensor, imag: Tensor) -> Tensor:
    """The complex tensor of these parts: two tensors of one shape, both float32 or both float64."""
    column = [*real.shape, 1]
    both = [_ops.reshape(real, column), _ops.reshape(imag, column)]
    return _ops.view_as_complex(_ops.concat(both, real.ndim))


@method(one_plan)
def real(input: Any) -> Tensor:
    """The real part, in the dtype of the parts; of a real tensor a copy."""
    x = arguments.tensor(input, "real")
    return part(x, 0) if x.dtype.is_complex else x


@method(one_plan)
def imag(input: Any) -> Tensor:
    """The imaginary part, in the dtype of the parts; of a real tensor zeros."""
    x = arguments.tensor(input, "imag")
    return part(x, 1) if x.dtype.is_complex else _ops.full(list(x.shape), 0, x.dtype)


@method(one_plan)
def conj(input: Any) -> Tensor:
    """The complex conjugate; of a real tensor a copy."""
    x = arguments.tensor(input, "conj")
    return made(part(x, 0), _ops.neg(part(x, 1))) if x.dtype.is_complex else x


@method(one_plan)
def angle(input: Any) -> Tensor:
    """The angle of complex numbers in radians, in (-pi, pi]; of real ones 0, or pi where negative.

    Its derivative at zero is NaN.
    """
    x = arguments.tensor(input, "angle")
    if x.dtype.is_complex:
        return _ops.atan2(part(x, 1), part(x, 0))
    x = arguments.floating(x)
    finite = _ops.where(_ops.isinf(x), 1, x)
    turned = _ops.where(_ops.less(x, 0), 3.141592653589793, _ops.mul(finite, 0))  # NaN stays
    return _ops.cast(turned, x.dtype)


@method(one_plan)
def isreal(input: Any) -> Tensor:
    """Return whether the imaginary part is zero, elementwise."""
    x = arguments.tensor(input, "isreal")
    if x.dtype.is_complex:
        return _ops.equal(part(x, 1), 0)
    return _ops.full(list(x.shape), True, _core.bool)


def real_valued(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Return the function whose result, a size, is real for complex numbers too."""

    @functools.wraps(function)
    def op(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        y = function(*args, **kwargs)
        return part(y, 0) if y.dtype.is_complex else y

    return op


def size_of(x: Tensor) -> Tensor:
    """The absolute values, real ones."""
    return part(_ops.abs(x), 0) if x.dtype.is_complex else _ops.abs(x)


def complex_abs(x: Any) -> Tensor:
    """The absolute value of complex numbers as real ones; its derivative at zero is zero."""
    z = arguments.tensor(x, "ComplexAbs", "x")
    if not z.dtype.is_complex:
        bad_type(f"ComplexAbs: needs a complex tensor, got {z.dtype}")
    return real(_ops.abs(z))


def complex_of(real: Any, imag: Any) -> Tensor:
    """real + i imag: two tensors of one dtype, float32 or float64, which broadcast.

    Raises TypeError for other dtypes and for two that differ.
    """
    x, y = arguments.tensor(real, "Complex", "real"), arguments.tensor(imag, "Complex", "imag")
    if x.dtype != y.dtype or x.dtype.name not in ("float32", "float64"):
        bad_type(
            f"Complex: needs two tensors of float32 or of float64, got {x.dtype} and {y.dtype}"
        )
    return _joined(x, y)


@one_plan
def _joined(x: Tensor, y: Tensor) -> Tensor:
    zero = _ops.mul(_ops.add(x, y), 0)  # of the common shape
    dims = list(zero.shape)
    return made(_ops.broadcast_to(x, dims), _ops.broadcast_to(y, dims))


@one_plan
def polar(abs: Any, angle: Any) -> Tensor:
    """abs (cos angle + i sin angle): two tensors of one dtype, float32 or float64, which broadcast."""
    size, turn = arguments.tensor(abs, "polar", "abs"), arguments.tensor(angle, "polar", "angle")
    return complex_of(_ops.mul(size, _ops.cos(turn)), _ops.mul(size, _ops.sin(turn)))


def view_as_real(input: Any) -> Tensor:
    """complex [...] as real [..., 2]: the parts of each number beside each other.

    Raises TypeError for a tensor that is not complex.
    """
    x = arguments.tensor(input, "view_as_real")
    if not x.dtype.is_complex:
        bad_type(f"For view_as_real, the dtype of input Tensor must be complex, got {x.dtype}")
    return _ops.view_as_real(x)
