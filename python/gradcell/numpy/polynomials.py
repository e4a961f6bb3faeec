"""Polynomials as vectors of coefficients, the highest power first: NumPy's older functions of them."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, publish
from gradcell.numpy import linalg
from gradcell.numpy.conversion import _plain, floating, floats, operands, tensor, tensors
from gradcell.numpy.making import arange
from gradcell.numpy.mathematics import convolve


def _polysum(a1: Any, a2: Any, sign: int) -> Tensor:
    """a1 + sign a2, coefficients of polynomials with the highest power first."""
    a, b = ops.atleast_1d(*tensors(a1, a2))
    n = builtins.max(a.size, b.size)
    a, b = (_ops.slice_scatter(x, [n], [n - x.size], [1]) for x in (a, b))
    return _ops.add(a, b) if sign > 0 else _ops.sub(a, b)


def polymul(a1: Any, a2: Any) -> Tensor:
    """The product of the polynomials with coefficients a1 and a2, the highest power first.

    a1: tensor [n]. a2: tensor [m]. Returns [n + m - 1].
    """
    return convolve(*ops.atleast_1d(*tensors(a1, a2)))


def polyval(p: Any, x: Any) -> Tensor:
    """The polynomial with coefficients p, the highest power first, at x (Horner)."""
    coefficients, t = operands(p, x)
    out: Any = 0
    for c in ops.unstack(tensor(coefficients), 0):
        out = _ops.add(_ops.mul(out, t), c)
    return out  # type: ignore[no-any-return]


def polyder(p: Any, m: int = 1) -> Tensor:
    """The coefficients of the m-th derivative."""
    c = tensor(p)
    for _ in builtins.range(arguments.integer(m, "polyder", "m")):
        n = c.size - 1
        if n <= 0:
            return _ops.full([0], 0, c.dtype)
        c = _ops.mul(ops.narrow(c, 0, 0, n), arange(n, 0, -1))
    return _core.copy(c) if c is p else c


def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    """The coefficients of the m-th antiderivative, with the constants k (0 by default).

    p: coefficients, the highest power first. m: how often to integrate. k: a number, or m of them.
    """
    c = floating(p)
    m = arguments.integer(m, "polyint", "m")
    given = np.asarray(0.0 if k is None else _plain(k), np.float64)
    for constant in np.broadcast_to(given, (m,)).tolist():
        c = _ops.concat([_ops.div(c, arange(c.size, 0, -1)), _ops.full([1], constant, c.dtype)], 0)
    return _core.copy(c) if c is p else c


def polyadd(a1: Any, a2: Any) -> Tensor:
    """The sum of two polynomials, coefficients with the highest power first."""
    return _polysum(a1, a2, 1)


def polysub(a1: Any, a2: Any) -> Tensor:
    """The difference of two polynomials, coefficients with the highest power first."""
    return _polysum(a1, a2, -1)


def polydiv(u: Any, v: Any) -> tuple[Tensor, Tensor]:
    """(the quotient, the remainder) of two polynomials, the highest power first.

    u: what is divided. v: what it is divided by, whose first coefficient is not zero. Coefficients of the
    remainder that are zero stay.
    """
    rest, by = ops.atleast_1d(*floats(u, v))
    count, m = rest.size - by.size + 1, by.size
    if count <= 0:
        return _ops.full([1], 0, rest.dtype), rest
    found = []
    for _ in builtins.range(count):
        share = _ops.div(ops.narrow(rest, 0, 0, 1), ops.narrow(by, 0, 0, 1))
        head = _ops.sub(ops.narrow(rest, 0, 0, m), _ops.mul(share, by))
        tail = ops.narrow(rest, 0, m, rest.size - m)
        rest = ops.narrow(_ops.concat([head, tail], 0), 0, 1, rest.size - 1)
        found.append(share)
    quotient = _ops.concat(found, 0)
    return quotient, rest if rest.size else _ops.full([1], 0, rest.dtype)


def poly(seq_of_zeros: Any) -> Tensor:
    """The coefficients of the polynomial with these zeros, the highest power first, of which it is 1.

    seq_of_zeros: a vector.
    """
    zeros = floating(seq_of_zeros)
    if zeros.ndim != 1:
        bad_value(f"poly: a vector of zeros is needed, got shape {list(zeros.shape)}")
    out = _ops.full([1], 1, zeros.dtype)
    for zero in ops.unstack(zeros, 0):
        out = convolve(out, ops.stack([ops.ones_like(zero), _ops.neg(zero)], 0))
    return out


def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, *, w: Any = None, cov: Any = False) -> Any:
    """The coefficients of the polynomial of a degree whose squared distances to y at x are least; with cov
    (they, their covariances).

    y: values [m], or [m, k] of k polynomials. deg: the degree. rcond: the share of the largest singular
    value below which another counts as zero. w: what each distance is multiplied by. cov: True, or
    'unscaled' for the inverse of what the weights say alone.
    """
    points, values, *given = floats(x, y, *(() if w is None else (w,)))
    left = ops.vander(points, deg + 1)
    for weights in given:
        left = left * ops.reshape(weights, (-1, 1))
        values = values * (ops.reshape(weights, (-1, 1)) if values.ndim > 1 else weights)
    scale = ops.sqrt(ops.sum(ops.square(left), 0))
    if rcond is None:
        wide = points.dtype == _core.float64
        rcond = points.size * float(np.finfo(np.float64 if wide else np.float32).eps)
    found = linalg.lstsq(left / scale, values, rcond)[0]
    found = found / (scale if found.ndim == 1 else ops.reshape(scale, (-1, 1)))
    if not cov:
        return found
    turned = ops.inverse(ops.swapaxes(left, 0, 1) @ left)
    rest = ops.sum(ops.square(values - left @ found), 0)
    share = 1.0 if cov == "unscaled" else rest / (points.size - deg - 1)
    if getattr(share, "ndim", 0):
        turned = ops.expand_dims(turned, -1)
    return found, turned * share


publish(globals())
