"""Derivatives at huge and tiny arguments, and close to special points: finite where the true number
is one of the dtype, and with its digits. Every differentiable row of the op table, and functions
that are composed of rows, to order 3 in float32 and float64, by reverse mode over itself; the true
numbers are mpmath's."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import sympy
from mpmath import mp
from op_rows import DIFFERENTIABLE

import gradcell as gc
from gradcell import Tensor, ops

Function = Callable[..., Any]

ORDER = 3
SIZES = {
    "float32": [1e-42, 1e-37, 1e-30, 1e-20, 1e-13, 1e-7, 1e-3, 0.25, 0.5, 0.999999, 1.0, 1.000001,
                1.5, 2.0, 3.0, 6.0, 12.0, 30.0, 80.0, 1e3, 1e7, 1e13, 1e18, 1e20, 1e30, 1e38],
    "float64": [1e-200, 1e-155, 1e-100, 1e-30, 1e-9, 1e-3, 0.25, 0.5,
                0.999999999999, 1.0, 1.000000000001, 1.5, 2.0, 3.0, 6.0, 12.0, 30.0, 700.0, 1e3,
                1e9, 1e30, 1e100, 1e155, 1e200],
}  # fmt: skip
#: For each operand of functions of two.
PAIRED = {
    "float32": [1e-20, 1e-7, 0.5, 3.0, 1e18, 1e20],
    "float64": [1e-160, 1e-9, 0.5, 3.0, 1e160, 1e200],
}


def _digamma(x: Any) -> Any:
    """mpmath's takes minutes for hundreds of digits of huge and tiny numbers, whose series need few terms."""
    if abs(x) < 1e-20:
        return -1 / x - mp.euler + mp.fsum(mp.zeta(k) * -((-x) ** (k - 1)) for k in range(2, 12))
    if abs(x) < 1e20:
        return mp.digamma(x)
    if x < 0:
        return _digamma(1 - x) - mp.pi * mp.cot(mp.pi * x)
    terms = (mp.bernoulli(2 * k) / (2 * k * x ** (2 * k)) for k in range(1, 40))
    return mp.log(x) - 1 / (2 * x) - mp.fsum(terms)


COMPOSED: dict[str, tuple[int, Function, Function]] = {
    "hypot": (2, ops.hypot, lambda x, y: mp.sqrt(x * x + y * y)),
    "xlogy": (2, ops.xlogy, lambda x, y: x * mp.log(y)),
    "logaddexp": (2, ops.logaddexp,
                  lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y)))),
    "digamma": (1, ops.digamma, _digamma),
    "lgamma": (1, ops.lgamma, lambda x: mp.log(abs(mp.gamma(x)))),
    "softplus": (1, ops.softplus, lambda x: mp.log1p(mp.exp(x))),
    "sinc": (1, ops.sinc, lambda x: mp.sinpi(x) / (mp.pi * x)),
    "cbrt": (1, ops.cbrt, lambda x: mp.sign(x) * mp.cbrt(abs(x))),
}  # fmt: skip

#: What has derivatives of its value y, of which 1 - y or 1 - y^2 has lost what y has rounded: the
#: error is small beside 1.
OF_THE_VALUE = {"Tanh", "Sigmoid"}
#: Whose derivative is a sigmoid: of their third ones.
OF_A_SIGMOID = {"softplus", "logaddexp"}


#: Of straight pieces: there is nothing to lose, and mpmath's differences may meet the ends.
STRAIGHT = {
    "Sign", "Floor", "Ceil", "Round", "Trunc", "HSigmoid", "HSwish", "ReLU", "FloorDiv", "Mod", "Fmod",
    "CopySign", "Maximum", "Minimum",
}  # fmt: skip


@functools.cache
def functions() -> dict[str, tuple[int, Function, Function]]:
    rows = {
        r.name: (r.arity, getattr(ops, r.function), r.exact)
        for r in DIFFERENTIABLE
        if r.name not in STRAIGHT
    }
    return {**rows, **COMPOSED}


def real(value: Any) -> Any:
    """The value, NaN where it is complex or infinite."""
    value = mp.mpmathify(value)
    return value if isinstance(value, mp.mpf) and mp.isfinite(value) else mp.nan


def derivative(exact: Function, at: Sequence[float], orders: Sequence[int]) -> Any:
    """That of the exact function, with steps in proportion to each operand; what is below the digits that
    this takes is 0."""

    def scaled(*s: Any) -> Any:
        value = exact(*(mp.mpf(x) * (1 + t) if x else t for x, t in zip(at, s, strict=True)))
        if not isinstance(value, mp.mpf):
            raise ValueError("not real")
        return value

    far = max(abs(np.log10(abs(x))) if x else 0 for x in at)
    digits = 60 + int(4 * far)  # steps of tiny numbers are to be seen beside 1
    try:
        with mp.workdps(digits):
            zero = [mp.mpf(0)] * len(at)
            found = mp.diff(scaled, tuple(zero), tuple(orders))
            size = scaled(*zero) or scaled(*(mp.mpf(1) / 8 for _ in at))
            if abs(found) <= abs(size) * mp.mpf(10) ** (8 - digits):
                return mp.mpf(0)
            for x, n in zip(at, orders, strict=True):
                found = found / mp.mpf(x) ** n if x else found
            return real(found)
    except (ValueError, ZeroDivisionError, TypeError, OverflowError, mp.NoConvergence):
        return mp.nan


def within(name: str, at: Sequence[float], orders: Sequence[int], most: float) -> bool:
    """Whether the factors of a power's derivative are numbers, as a power of the base with a smaller
    exponent."""
    if name != "Pow" or at[0] == 0:
        return True
    sizes = mp.power(abs(at[0]), at[1] - orders[0]), mp.power(abs(at[1]) + 1, sum(orders))
    return all(size < most for size in sizes)


def nested(f: Function, orders: Sequence[int]) -> Function:
    for k, n in enumerate(orders):
        for _ in range(n):
            f = gc.grad(functools.partial(lambda g, *xs: g(*xs).sum(), f), k)
    return f


def wrong(name: str, dtype: str, points: list[tuple[float, ...]]) -> list[tuple[Any, ...]]:
    arity, f, exact = functions()[name]
    limits = np.finfo(dtype)
    columns = [np.array(c, dtype) for c in zip(*points, strict=True)]
    places = list(zip(*(c.astype(float).tolist() for c in columns), strict=True))
    found = []
    for orders in itertools.product(range(ORDER + 1), repeat=arity):
        if not 0 < sum(orders) <= ORDER:
            continue
        with np.errstate(all="ignore"):
            got = nested(f, orders)(*(Tensor(c) for c in columns)).asnumpy().astype(float)
        for at, y in zip(places, got, strict=True):
            if mp.isnan(real_value(exact, at, float(limits.max))):
                continue
            true = derivative(exact, at, orders)
            most = float(limits.max) / 8
            if mp.isnan(true) or abs(true) > most or not within(name, at, orders, most):
                continue
            condition = 64.0
            if name == "Pow":  # the exponents less by 1, 2, ... are rounded to half a unit
                condition += 0.5 * orders[0] * abs(np.log(abs(at[0])))
            for k, x in enumerate(at):
                more = [n + (i == k) for i, n in enumerate(orders)]
                if true != 0:
                    condition += 8 * min(1e12, abs(float(x * derivative(exact, at, more) / true)))
            bound = condition * float(limits.eps) * abs(float(true)) + 64 * float(limits.tiny)
            bound += 1e-30 if true == 0 else 0
            if name in OF_THE_VALUE or (name in OF_A_SIGMOID and sum(orders) == 3):
                bound += 16 * float(limits.eps)
            if not abs(y - float(true)) <= bound:
                found.append((at, orders, y, float(true)))
    return found


def real_value(exact: Function, at: Sequence[float], most: float) -> Any:
    """The function's value, NaN where the dtype has none."""
    try:
        with mp.workdps(50):
            value = real(exact(*(mp.mpf(x) for x in at)))
    except (ValueError, ZeroDivisionError, TypeError, OverflowError):
        return mp.nan
    return value if abs(value) <= most else mp.nan


def points_of(name: str, dtype: str) -> list[tuple[float, ...]]:
    if functions()[name][0] == 1:
        return [(s * x,) for x in SIZES[dtype] for s in (1, -1)]
    sizes = PAIRED[dtype]
    return list(itertools.product(sizes, [s * x for x in sizes for s in (1, -1)]))


CASES = [pytest.param(name, dtype, id=f"{name} {dtype}") for name in functions() for dtype in SIZES]


@pytest.mark.one_in(24)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_derivatives_at_all_scales(name: str, dtype: str) -> None:
    assert not wrong(name, dtype, points_of(name, dtype))


# What was wrong -----------------------------------------------------------------------------------


def test_slopes_of_lengths() -> None:
    x, y = Tensor(np.float32([3e18, 3e25, 3e37])), Tensor(np.float32([4e18, 4e25, 4e37]))
    first = gc.grad(lambda x, y: ops.hypot(x, y).sum())
    np.testing.assert_allclose(first(x, y).asnumpy(), np.full(3, 0.6), rtol=1e-6)
    second = gc.grad(lambda x, y: first(x, y).sum())(x, y).asnumpy()
    np.testing.assert_allclose(second, 0.64 / np.array([5e18, 5e25, 5e37]), rtol=1e-6)


#: Where quotients by a length, or by its square, could over- or underflow on the way.
ENDS = [
    0.0, float(np.finfo("float32").tiny) / 8, float(np.finfo("float32").tiny), 2.0**-63, 0.75, -1.0, 2.0**64,
    float(np.finfo("float32").max) / 2, -float(np.finfo("float32").max),
]  # fmt: skip


@pytest.mark.parametrize("name", ["hypot", "atan2"])
def test_slopes_of_lengths_at_the_ends_of_the_range(name: str) -> None:
    """Beside float64, which has room for all that is on the way; a slope that is infinite is so."""
    pairs = np.float32([p for p in itertools.product(ENDS, ENDS) if any(p)])
    x, y = pairs.T
    got = gc.grad(lambda x, y: getattr(ops, name)(x, y).sum(), (0, 1))(Tensor(x), Tensor(y))
    a, b = x.astype(float), y.astype(float)
    length = np.hypot(a, b)
    want = (a / length, b / length) if name == "hypot" else (b / length**2, -a / length**2)
    for g, w in zip(got, want, strict=True):
        with np.errstate(all="ignore"):
            w = np.where(abs(w) > np.finfo("float32").max, np.sign(w) * np.inf, w)
        np.testing.assert_allclose(g.asnumpy(), w, rtol=2e-6, atol=5e-38)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["hypot", "atan2"])
@pytest.mark.parametrize("order", [2, 3, 4])
def test_higher_slopes_of_sides_of_different_sizes(name: str, order: int) -> None:
    """Each mixed derivative is a form of degree 1 - order, or -order, over a power of the length."""
    a, b = sympy.symbols("a b", real=True)
    value = sympy.sqrt(a**2 + b**2) if name == "hypot" else sympy.atan2(a, b)
    sizes = [1.0, 0.75, 1e-3, 1e-6, 1e-11]
    x, y = np.float32(list(itertools.product(sizes, sizes))).T
    for first in range(order + 1):
        form = sympy.factor(sympy.diff(value, *[a] * first, *[b] * (order - first)))
        f = getattr(ops, name)
        for turn in [0] * first + [1] * (order - first):
            f = (lambda f, turn: gc.grad(lambda x, y: f(x, y).sum(), turn))(f, turn)
        want = [
            float(form.subs({a: sympy.Rational(p), b: sympy.Rational(q)}).evalf(30))
            for p, q in zip(x.tolist(), y.tolist(), strict=True)
        ]
        size = np.hypot(x.astype(float), y) ** -(order - (name == "hypot"))
        with np.errstate(all="ignore"):
            got = f(Tensor(x), Tensor(y)).asnumpy()
        fits = (size < 1e38) & (np.abs(want) > 1e-30)
        np.testing.assert_allclose(got[fits], np.array(want)[fits], rtol=1e-4, err_msg=f"{first}")


def test_slopes_of_infinite_arguments() -> None:
    x, y = Tensor(np.float32([np.inf, 2, np.inf, -np.inf])), Tensor(np.float32([1, np.inf, 0, 3]))
    by_x, by_y = gc.grad(lambda x, y: ops.atan2(x, y).sum(), (0, 1))(x, y)
    assert by_x.asnumpy()[[0, 2, 3]].tolist() == [0, 0, 0] and by_y.asnumpy()[1] == 0
    by_x, by_y = gc.grad(lambda x, y: ops.hypot(x, y).sum(), (0, 1))(x, y)
    assert by_x.asnumpy().tolist() == [1, 0, 1, -1] and by_y.asnumpy().tolist() == [0, 1, 0, 0]
    for f in (ops.asinh, ops.acosh):
        assert gc.grad(lambda x, f=f: f(x).sum())(x).asnumpy()[0] == 0


@pytest.mark.parametrize(
    ("name", "most"), [("asinh", 1), ("acosh", 1), ("atan2", 5), ("hypot", 15)]
)
def test_slopes_at_all_scales_are_few_instructions(name: str, most: int) -> None:
    """An instruction is a pass over a tile: they, not the arithmetic in them, are what takes time."""
    f, count = getattr(ops, name), 2 if name in ("atan2", "hypot") else 1
    xs = [Tensor(np.full(8, 2.0 + k, np.float32)) for k in range(count)]
    gradient = gc.grad(lambda *xs: f(*xs).sum(), tuple(range(count)))
    lines = gc.plan_text(gradient, *xs).splitlines()
    assert 0 < sum("  : f32" in x or "  : i32" in x for x in lines) <= most, "\n".join(lines)


def test_third_derivatives_of_digamma() -> None:
    at = np.array([-0.5, -1.5, 0.5, 3.0])
    third = nested(ops.digamma, (3,))(Tensor(at))
    want = [float(mp.psi(3, x)) for x in at.tolist()]
    np.testing.assert_allclose(third.asnumpy(), want, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-170, 1e160])
def test_singular_vectors_of_scaled_matrices(scale: float) -> None:
    a = np.random.default_rng(0).standard_normal((4, 3))
    weights = Tensor(np.arange(12.0).reshape(4, 3))
    slope = gc.grad(lambda a: (ops.svd(a)[1] * weights).sum())
    np.testing.assert_allclose(
        slope(Tensor(a * scale)).asnumpy() * scale, slope(Tensor(a)).asnumpy(), rtol=1e-10
    )


@pytest.mark.parametrize("shape", [(5, 5), (3, 5), (5, 3)])
def test_second_derivatives_of_a_pseudo_inverse(shape: tuple[int, int]) -> None:
    """Of full rank: as those of a' (a a')^-1, or (a' a)^-1 a', which are right for such matrices."""
    a = Tensor(np.random.default_rng(0).standard_normal(shape))

    def plain(a: Tensor) -> Tensor:
        if shape[0] <= shape[1]:
            return a.T @ ops.inverse(a @ a.T)
        return ops.inverse(a.T @ a) @ a.T

    want = gc.hessian(lambda a: ops.square(plain(a)).sum())(a).asnumpy()
    got = gc.hessian(lambda a: ops.square(ops.pinv(a)).sum())(a).asnumpy()
    np.testing.assert_allclose(got, want, atol=1e-10 * np.abs(want).max())


@pytest.mark.parametrize("clip", [ops.clip_by_global_norm, ops.clip_by_norm])
def test_clipping_of_a_length_that_no_number_has(clip: Function) -> None:
    huge = Tensor(np.float32([3e38, 3e38]))
    np.testing.assert_allclose(clip(huge, 1.0).asnumpy(), [0.5**0.5] * 2, rtol=1e-6)
    np.testing.assert_allclose(clip((huge, huge), 2.0)[1].asnumpy(), [1.0] * 2, rtol=1e-6)
    assert np.isnan(clip(Tensor(np.float32([1.0, np.inf])), 1.0).asnumpy()[1])
