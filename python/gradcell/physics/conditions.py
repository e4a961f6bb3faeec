"""Conditions on boundaries as residual functions, for GaussNewton or a loss of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gradcell import ops
from gradcell._core import Tensor
from gradcell.base import Made, bad_value, transform
from gradcell.derivatives.transform import jvp

__all__ = ["dirichlet", "interface", "neumann", "periodicity", "robin"]

Solution = Callable[[Tensor], Tensor]
#: A number, or a function of points.
Coefficient = float | Callable[[Tensor], Tensor]


@transform()
def dirichlet(u: Solution, value: Coefficient | None = None) -> Callable[..., Tensor]:
    """A residual that is 0 where u has a value: u(x) - value, [n, k].

    u: a function of points [n, d]. value: a number or a function of points; without it the residual takes the
    values [n, k] behind the points: residual(x, values).
    """

    def residual(x: Tensor, *values: Tensor) -> Tensor:
        return u(x) - _value("dirichlet", value, x, values)

    return Made(residual)


@transform()
def neumann(
    u: Solution, value: Coefficient | None = None, flux: Coefficient = 1.0
) -> Callable[..., Tensor]:
    """A residual that is 0 where the flux of u through the boundary has a value: flux n . grad u(x) - value,
    [n, k], of points and normals: residual(x, normals).

    u: a function of points [n, d]. value: a number or a function of points; without it the residual takes the
    values [n, k] behind the normals. flux: a conductivity, a number or a function of points.
    """

    def residual(x: Tensor, normals: Tensor, *values: Tensor) -> Tensor:
        slope = jvp(u, x, normals)[1]
        return _at(flux, x) * slope - _value("neumann", value, x, values)

    return Made(residual)


@transform()
def robin(
    u: Solution, a: Coefficient, b: Coefficient, value: Coefficient | None = None
) -> Callable[..., Tensor]:
    """A residual that is 0 where a u(x) + b n . grad u(x) = value, [n, k], of points and normals:
    residual(x, normals).

    u: a function of points [n, d]. a, b: numbers or functions of points. For heat that leaves to surroundings
    of temperature v: a the heat transfer coefficient h, b the conductivity, value = h v. value: a number or a
    function of points; without it the residual takes the values [n, k] behind the normals.
    """

    def residual(x: Tensor, normals: Tensor, *values: Tensor) -> Tensor:
        found, slope = jvp(u, x, normals)
        return _at(a, x) * found + _at(b, x) * slope - _value("robin", value, x, values)

    return Made(residual)


@transform()
def periodicity(u: Solution, shift: Sequence[float], slopes: bool = True) -> Callable[..., Tensor]:
    """A residual that is 0 where u is the same at a point and at the point shifted: u(x) - u(x + shift), and
    the difference of the slopes along the shift beside it, [n, 2 k].

    u: a function of points [n, d]. shift: d numbers. slopes: whether the slopes are to be the same too; if
    not, the result is [n, k]. (A network of `periodic` inputs needs no condition.)
    Raises ValueError for a shift of no length, or of other dimensions than the points.
    """
    length = math.hypot(*shift)
    if not 0 < length < math.inf:
        bad_value(f"periodicity: the shift must have a length, got {list(shift)}")

    def residual(x: Tensor) -> Tensor:
        if x.ndim != 2 or x.shape[1] != len(shift):
            bad_value(
                f"periodicity: expected points [n, {len(shift)}], as long as the shift, got {list(x.shape)}"
            )
        moved = Tensor(list(map(float, shift)), x.dtype)
        if not slopes:
            return u(x) - u(x + moved)
        along = 0 * x + moved / length
        (here, slope), (there, other) = jvp(u, x, along), jvp(u, x + moved, along)
        return ops.concat((here - there, slope - other), 1)

    return Made(residual)


@transform()
def interface(
    u: Solution,
    v: Solution,
    flux: tuple[Coefficient, Coefficient] = (1.0, 1.0),
    jump: Coefficient = 0.0,
    source: Coefficient = 0.0,
) -> Callable[..., Tensor]:
    """A residual that is 0 where two solutions meet: u - v - jump, and a n . grad u - b n . grad v - source
    beside it, [n, 2 k], of points and normals: residual(x, normals).

    u, v: functions of points [n, d], on the side that the normals leave and on the other one. flux: the
    two conductivities a and b, numbers or functions of points. jump: the difference of the values.
    source: that of the fluxes.
    """

    def residual(x: Tensor, normals: Tensor) -> Tensor:
        (here, slope), (there, other) = jvp(u, x, normals), jvp(v, x, normals)
        a, b = flux
        fluxes = _at(a, x) * slope - _at(b, x) * other
        return ops.concat((here - there - _at(jump, x), fluxes - _at(source, x)), 1)

    return Made(residual)


def _at(coefficient: Coefficient, x: Tensor) -> float | Tensor:
    return coefficient(x) if callable(coefficient) else coefficient


def _value(
    name: str, value: Coefficient | None, x: Tensor, given: tuple[Tensor, ...]
) -> float | Tensor:
    if (value is None) != (len(given) == 1) or len(given) > 1:
        bad_value(
            f"{name}: the residual takes values behind the points exactly if the condition was made without "
            f"a value; it got {len(given)}, and the condition has {'none' if value is None else 'one'}"
        )
    return given[0] if value is None else _at(value, x)
