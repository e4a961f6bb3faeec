"""Elementwise functions composed of rows: values against mpmath in each floating dtype, in units in
the last place, and what infinities, NaN and the ends of the range give."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, ops

inf, nan = math.inf, math.nan
#: Significant bits, and the exponent of the smallest normal number.
TYPES = {"float16": (11, -13), "bfloat16": (8, -125), "float32": (24, -125), "float64": (53, -1021)}


def log_gamma(x: Any) -> Any:
    return mpmath.log(abs(mpmath.gamma(x)))


#: name: the function on mpmath numbers, where it is drawn, the bound in float32 and float64 in ULP.
#: Half types are computed in float32 and rounded once.
ROWS: dict[str, tuple[Callable[[Any], Any], float, float, float]] = {
    "lgamma": (log_gamma, 1e-9, 60, 12),
    "digamma": (mpmath.digamma, 2, 60, 8),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), -1e30, 1e30, 2),
    "sinc": (mpmath.sincpi, -20, 20, 4),
    "gelu": (lambda x: x * mpmath.ncdf(x), -12.5, 20, 5),
    "ndtr": (mpmath.ncdf, -30, 20, 4),
    "logit": (lambda x: mpmath.log(x / (1 - x)), 1e-12, 0.99, 3),
}


def draw(low: float, high: float) -> np.ndarray:
    """Points all over the range, and as many close to 0."""
    rng = np.random.default_rng(1)
    even = rng.uniform(low, high, 300)
    small = np.sign(even) * np.exp(rng.uniform(math.log(1e-12), math.log(max(-low, high)), 300))
    return np.concatenate([even, small]).clip(low, high)


def distance(found: float, wanted: Any, bits: int, least: int) -> float:
    """In units of the last place of the wanted number."""
    if wanted == 0:
        return 0.0 if found == 0 else inf
    unit = mpmath.mpf(2) ** (max(mpmath.frexp(wanted)[1], least) - bits)
    return float(abs(mpmath.mpf(found) - wanted) / unit)


@pytest.mark.one_in(12)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ROWS)
def test_values(name: str, dtype: str) -> None:
    function, low, high, bound = ROWS[name]
    x = Tensor(draw(low, high)).astype(getattr(ms, dtype)).astype(ms.float64).asnumpy()
    x = x[np.isfinite(x) & (x >= low) & (x <= high)]
    y = getattr(ops, name)(Tensor(x).astype(getattr(ms, dtype)))
    assert y.dtype == getattr(ms, dtype)
    y = y.astype(ms.float64).asnumpy()
    bits, least = TYPES[dtype]
    half = dtype in ("float16", "bfloat16")
    with mpmath.workdps(40):
        for a, b in zip(x.tolist(), y.tolist(), strict=True):
            wanted = function(mpmath.mpf(a))
            if half and abs(wanted) > 65000:
                continue
            # a result of float32, off by the bound in its units, rounded once more
            allowed = 0.5 + bound * 2.0 ** (bits - 24) + 1e-3 if half else bound
            error = distance(b, wanted, bits, least)
            assert error <= allowed, f"{name}({a!r}) is {b!r}: {error:.2f} ULP"


SPECIAL: dict[str, tuple[list[tuple[float, ...]], list[float]]] = {
    "lgamma": (
        [(0.0,), (-0.0,), (-3.0,), (-1e38,), (-inf,), (inf,), (nan,), (1.0,), (2.0,), (1e38,)],
        [inf, inf, inf, inf, inf, inf, nan, 0.0, 0.0, 8.649823353377373e39],
    ),
    "digamma": (
        [(0.0,), (-0.0,), (-3.0,), (-1e38,), (-inf,), (inf,), (nan,), (1e38,)],
        [-inf, inf, nan, nan, nan, inf, nan, 87.49823353377374],
    ),
    "hypot": (
        [(0.0, -0.0), (3e38, 0.0), (1e-45, 0.0), (inf, nan), (nan, -inf), (1.0, nan), (3e20, 4e20)],
        [0.0, 3e38, 1e-45, inf, inf, nan, 5e20],
    ),
    "xlogy": ([(0.0, 0.0), (0.0, nan), (-0.0, inf), (2.0, 0.0)], [0.0, nan, 0.0, -inf]),
    "xdivy": ([(0.0, 0.0), (0.0, nan), (2.0, 0.0)], [0.0, nan, inf]),
    "cbrt": ([(0.0,), (-inf,), (inf,), (nan,), (-8.0,)], [0.0, -inf, inf, nan, -2.0]),
    "sinc": ([(0.0,), (3.0,), (-1e6,), (inf,), (nan,)], [1.0, 0.0, 0.0, nan, nan]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str, dtype: str) -> None:
    points, wanted = SPECIAL[name]
    kind = np.dtype(dtype).type
    arguments = [Tensor(np.array(p).astype(kind)) for p in zip(*points, strict=True)]
    found = getattr(ops, name)(*arguments).asnumpy()
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(
            found, np.array(wanted).astype(kind), rtol=4 * np.finfo(kind).eps
        )


def test_hypot_of_numbers_whose_squares_are_none() -> None:
    for dtype, sizes in (
        (ms.float64, (1e-320, 1e-200, 1e200, 1.2e308)),
        (ms.float32, (1e-44, 1e-30, 1e30, 2e38)),
        (ms.float16, (6e-8, 300.0, 4e4)),
    ):
        for size in sizes:
            x = Tensor(size, dtype).astype(ms.float64).item()
            wanted = Tensor(math.hypot(x, x), dtype).item()
            found = ops.hypot(Tensor(x, dtype), Tensor(-x, dtype)).item()
            assert found == pytest.approx(wanted, rel=1e-3 if dtype == ms.float16 else 1e-6), size


def test_derivatives_of_hypot_do_not_depend_on_the_scale() -> None:
    for size in (1e-200, 1e-3, 1e200):
        x, y = Tensor(3 * size, ms.float64), Tensor(-4 * size, ms.float64)
        for found, wanted in zip(ms.grad(ops.hypot, (0, 1))(x, y), (0.6, -0.8), strict=True):
            assert found.item() == pytest.approx(wanted, rel=1e-15)


@pytest.mark.parametrize("shape, axis", [((4, 0), 1), ((0,), 0)])
def test_a_median_of_nothing(shape: tuple[int, ...], axis: int) -> None:
    for function in (ops.median, ops.nanmedian):
        with pytest.raises(ValueError, match=rf"axis {axis} of shape .* has no elements"):
            function(ops.zeros(shape), axis)


#: Functions of a matrix, computed in float32 and rounded once for half types.
WIDENED: dict[str, Callable[[Tensor], Tensor]] = {
    **{
        name: getattr(ops, name)
        for name in (
            "softplus logsigmoid silu mish gelu elu selu celu softsign tanhshrink softmax softmin "
            "log_softmax sinc cbrt cov corrcoef"
        ).split()
    },
    "logit": lambda x: ops.logit(x, 1e-2),
    "addcmul": lambda x: ops.addcmul(x, x, -x, 0.3),
    "addcdiv": lambda x: ops.addcdiv(x, -x, x, 0.3),
    "logaddexp": lambda x: ops.logaddexp(x, -x),
    "logsumexp": lambda x: ops.logsumexp(x, 1),
    "logcumsumexp": lambda x: ops.logcumsumexp(x, 1),
    "var": lambda x: ops.var(x, 1),
    "std": lambda x: ops.std(x, 0),
    "norm": lambda x: ops.norm(x, dim=1),
    "norm 3": lambda x: ops.norm(x, 3, 1),
    "matrix norm": lambda x: ops.norm(x, 1, (0, 1)),
    "mse_loss": lambda x: ops.mse_loss(x, -x),
    "huber_loss": lambda x: ops.huber_loss(x, -x),
    "smooth_l1_loss": lambda x: ops.smooth_l1_loss(x, -x),
    "kl_div": lambda x: ops.kl_div(x, ops.abs(x), "none"),
    "cross_entropy": lambda x: ops.cross_entropy(x, Tensor(np.arange(24) % 40), reduction="none"),
    "binary_cross_entropy": lambda x: ops.binary_cross_entropy(
        ops.where(x > 0, 0.75, 0.125).astype(x.dtype), (x > 1).astype(x.dtype), reduction="none"
    ),
    "binary_cross_entropy_with_logits": lambda x: ops.binary_cross_entropy_with_logits(
        x, (x > 1).astype(x.dtype), reduction="none"
    ),
}  # fmt: skip


@pytest.mark.one_in(24)
@pytest.mark.parametrize("name", WIDENED)
@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16], ids=str)
def test_half_types_round_once(name: str, dtype: Any) -> None:
    function = WIDENED[name]
    x = Tensor(np.random.default_rng(0).normal(size=(24, 40)) * 2).astype(dtype)
    found, wanted = function(x), function(x.astype(ms.float32)).astype(dtype)
    assert found.dtype == dtype
    assert np.array_equal(found.astype(ms.float32).asnumpy(), wanted.astype(ms.float32).asnumpy())


def test_half_types_do_not_overflow_inside() -> None:
    half = ms.float16
    assert ops.norm(Tensor([300.0, 400.0], half)).item() == 500
    assert ops.std(Tensor([-300.0, 300.0], half)).item() == 300
    assert ops.binary_cross_entropy(Tensor([0.0, 1.0], half), Tensor([0.0, 1.0], half)).item() == 0


def test_logcumsumexp_of_nothing_yet() -> None:
    x = Tensor([-inf, -inf, 0.0, 0.0, inf, inf])
    wanted = [-inf, -inf, 0.0, math.log(2), inf, inf]
    np.testing.assert_allclose(ops.logcumsumexp(x, 0).asnumpy(), wanted, rtol=1e-6)


def test_derivatives_where_two_numbers_are_equal() -> None:
    """log(e^x + e^y) is smooth there: 1/2, then 1/4."""
    x, y = Tensor([0.0, 3.0], ms.float64), Tensor([0.0, 3.0], ms.float64)
    for function, scale in ((ops.logaddexp, 1.0), (ops.logaddexp2, math.log(2))):
        first = ms.grad(function)
        second = ms.grad(lambda x, y, first=first: first(x, y))
        third = ms.grad(lambda x, y, second=second: second(x, y))
        assert first(x, y).asnumpy().tolist() == [0.5, 0.5]
        np.testing.assert_allclose(second(x, y).asnumpy(), [scale / 4] * 2, rtol=1e-15)
        np.testing.assert_allclose(third(x, y).asnumpy(), [0.0] * 2, atol=1e-16)
    z = Tensor([1.0, 1.0], ms.float64)
    hessian = ms.grad(lambda z: ms.grad(lambda z: ops.logcumsumexp(z, 0)[1])(z)[0])(z)
    np.testing.assert_allclose(hessian.asnumpy(), [0.25, -0.25], rtol=1e-15)


def test_derivatives_at_zero() -> None:
    x, y = Tensor([0.0, 0.0, 0.0, 2.0], ms.float64), Tensor([0.5, 0.0, inf, 4.0], ms.float64)
    by_x, by_y = ms.grad(ops.xlogy, (0, 1))(x, y)
    np.testing.assert_allclose(by_x.asnumpy(), [math.log(0.5), -inf, inf, math.log(4)])
    np.testing.assert_allclose(by_y.asnumpy(), [0.0, 0.0, 0.0, 0.5])
    by_x, by_y = ms.grad(ops.xdivy, (0, 1))(x, y)
    np.testing.assert_allclose(by_x.asnumpy(), [2.0, 0.0, 0.0, 0.25])
    np.testing.assert_allclose(by_y.asnumpy(), [0.0, 0.0, 0.0, -0.125])
    roots = ms.grad(ops.cbrt)(Tensor([0.0, -8.0], ms.float64)).asnumpy()
    np.testing.assert_allclose(roots, [inf, 1 / 12])
