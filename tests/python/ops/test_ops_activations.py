"""Activations against NumPy in float64, derivatives against central differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy_functions import elu, erf, sigmoid, softmax, softplus
from ops_checks import T, check_derivatives, close

import gradcell as ms
from gradcell import Tensor, nn, ops

ACTIVATIONS: list[tuple[str, Callable[..., Tensor], Callable[[np.ndarray], np.ndarray]]] = [
    ("softplus", ops.softplus, softplus),
    ("softplus-beta", lambda x: ops.softplus(x, 2.0), lambda x: softplus(2 * x) / 2),
    ("logsigmoid", ops.logsigmoid, lambda x: -softplus(-x)),
    ("silu", ops.silu, lambda x: x * sigmoid(x)),
    ("swish", ops.swish, lambda x: x * sigmoid(x)),
    ("mish", ops.mish, lambda x: x * np.tanh(softplus(x))),
    ("gelu", ops.gelu, lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2)))),
    (
        "gelu-tanh",
        lambda x: ops.gelu(x, "tanh"),
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    ("elu", ops.elu, elu),
    ("celu", lambda x: ops.celu(x, 2.0), lambda x: elu(x / 2, 1.0) * 2),
    ("selu", ops.selu, lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772)),
    ("leaky_relu", ops.leaky_relu, lambda x: np.where(x > 0, x, 0.2 * x)),
    ("relu6", ops.relu6, lambda x: np.clip(x, 0, 6)),
    ("hardtanh", ops.hardtanh, lambda x: np.clip(x, -1, 1)),
    ("hardsigmoid", ops.hardsigmoid, lambda x: np.clip(x + 3, 0, 6) / 6),
    ("hardswish", ops.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    ("squareplus", ops.squareplus, lambda x: (x + np.sqrt(x * x + 4)) / 2),
    ("squareplus-b", lambda x: ops.squareplus(x, 0.5), lambda x: (x + np.sqrt(x * x + 0.5)) / 2),
    ("softsign", ops.softsign, lambda x: x / (1 + np.abs(x))),
    ("tanhshrink", ops.tanhshrink, lambda x: x - np.tanh(x)),
    ("hardshrink", ops.hardshrink, lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    (
        "softshrink",
        ops.softshrink,
        lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    ),
    ("softmax", ops.softmax, softmax),
    ("softmax-0", lambda x: ops.softmax(x, 0), lambda x: softmax(x, 0)),
    ("log_softmax", ops.log_softmax, lambda x: np.log(softmax(x))),
    ("glu", ops.glu, lambda x: x[..., :2] * sigmoid(x[..., 2:])),
]
POINTS = np.array([[-4.2, -1.3, -0.7, -0.2], [0.15, 0.8, 2.4, 7.1], [-2.6, 1.7, 0.3, -9.0]])


@pytest.mark.parametrize(("name", "fn", "reference"), ACTIVATIONS, ids=[a[0] for a in ACTIVATIONS])
def test_activation(name: str, fn: Any, reference: Any) -> None:
    close(fn(T(POINTS)), reference(POINTS), 1e-10, 1e-12)
    single = fn(T(POINTS.astype(np.float32)))
    assert single.dtype == ms.float32
    close(single, reference(POINTS), 2e-5, 2e-6)
    assert fn(T(POINTS, ms.float16)).dtype == ms.float16
    check_derivatives(fn, POINTS)


@pytest.mark.parametrize(
    "fn", [ops.softplus, ops.squareplus, ops.logsigmoid, ops.mish, ops.silu, ops.gelu]
)
def test_smooth_at_zero(fn: Any) -> None:
    """No kink at 0, where formulas made of max and abs have one."""
    check_derivatives(fn, np.zeros((3,)), order=4)


def test_softplus_derivatives_at_zero_are_exact() -> None:
    f: Any = lambda x: ops.softplus(x).sum()  # noqa: E731
    values = []
    for _ in range(4):
        f = ms.grad(f)
        values.append(float(f(T(0.0, ms.float64))))
    assert values == pytest.approx([0.5, 0.25, 0.0, -0.125], abs=1e-15)


@pytest.mark.parametrize(
    "fn",
    [ops.softplus, ops.squareplus, ops.logsigmoid, ops.silu, ops.mish, ops.gelu, ops.elu],
)
def test_extreme_arguments_stay_finite(fn: Any) -> None:
    x = T(np.array([-1e4, -500.0, -100.0, 100.0, 500.0, 1e4], np.float32))
    assert np.isfinite(fn(x).asnumpy()).all()
    first = ms.grad(lambda t: fn(t).sum())
    assert np.isfinite(first(x).asnumpy()).all()
    assert np.isfinite(ms.grad(lambda t: first(t).sum())(x).asnumpy()).all()


def test_squareplus_keeps_its_digits_far_below_zero() -> None:
    x = np.array([-1e150, -1e8, -3e3, -7.0, 0.0, 1e200])
    with mpmath.workdps(400):
        exact = [float((mpmath.mpf(v) + mpmath.sqrt(mpmath.mpf(v) ** 2 + 4)) / 2) for v in x]
    np.testing.assert_allclose(ops.squareplus(T(x)).asnumpy(), exact, rtol=1e-15)
    found = ops.squareplus(T(np.array([-np.inf, np.inf, np.nan]))).asnumpy()
    np.testing.assert_array_equal(found, [0, np.inf, np.nan])
    with pytest.raises(ValueError, match="'b' must be finite and > 0"):
        ops.squareplus(T(x), -1.0)


def test_layer_norm() -> None:
    def reference(x: np.ndarray) -> np.ndarray:
        mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
        return (x - mean) / np.sqrt(variance + 1e-5) * w + 0.5

    w = np.array([0.5, 1.0, 2.0, -1.0])
    fn = lambda x: ops.layer_norm(x, 4, T(w), T(w * 0 + 0.5))  # noqa: E731
    close(fn(T(POINTS)), reference(POINTS))
    check_derivatives(fn, POINTS)
    y, mean, _ = ops.LayerNorm(epsilon=1e-5)(T(POINTS), T(w), T(w * 0 + 0.5))
    close(y, reference(POINTS))
    assert mean.shape == (3, 1)
    with pytest.raises(ValueError, match="normalized_shape"):
        ops.layer_norm(T(POINTS), (3, 3))


def test_softmax_of_huge_scores() -> None:
    x = T(np.array([[1e4, 0.0, -1e4]], np.float32))
    close(ops.softmax(x), [[1.0, 0.0, 0.0]])
    close(ops.log_softmax(x), [[0.0, -1e4, -2e4]])
    assert np.isfinite(ms.grad(lambda t: ops.log_softmax(t)[0, 1])(x).asnumpy()).all()
    with pytest.raises(ValueError, match="Softmax"):
        ops.softmax(x, 2)


def test_prelu() -> None:
    x, w = T(POINTS), T(np.array([0.1, 0.2, 0.3, 0.4]))
    close(ops.prelu(x, w), np.where(POINTS > 0, POINTS, POINTS * w.asnumpy()))
    close(ops.prelu(x, T(0.5, ms.float64)), np.where(POINTS > 0, POINTS, POINTS * 0.5))
    with pytest.raises(ValueError, match="PReLU"):
        ops.prelu(x, T(np.ones(3)))


def test_conventions_at_kinks() -> None:
    at: Any = lambda fn, x: ms.grad(lambda t: fn(t).sum())(T(np.array(x))).asnumpy()  # noqa: E731
    np.testing.assert_array_equal(at(ops.relu6, [0.0, 6.0, 3.0]), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(at(ops.hardtanh, [-1.0, 1.0, 0.0]), [0.5, 0.5, 1.0])
    np.testing.assert_array_equal(
        at(lambda x: ops.clamp(x, 0, 1), [0.0, 1.0, 2.0]), [1.0, 1.0, 0.0]
    )
    np.testing.assert_array_equal(at(ops.elu, [0.0]), [1.0])


#: Gradients that MindSpore 2.10 prints.
KINKS: list[tuple[Any, list[float], list[float]]] = [
    (ops.hardsigmoid, [-3.0, 0.0, 3.0, 4.0], [0.0, 0.16666667, 0.0, 0.0]),
    (nn.HSigmoid(), [-3.0, 0.0, 3.0, -4.0], [0.0, 0.16666667, 0.0, 0.0]),
    (ops.hardswish, [-3.0, 0.0, 3.0, -3.1, 3.1], [-0.5, 0.5, 1.5, 0.0, 1.0]),
    (nn.HSwish(), [-3.0, 0.0, 3.0], [-0.5, 0.5, 1.5]),
    (ops.leaky_relu, [0.0, -0.0, 1.0, -1.0], [0.6, 0.6, 1.0, 0.2]),
    (nn.LeakyReLU(0.1), [0.0, 1.0, -1.0], [0.55, 1.0, 0.1]),
    (lambda x: ops.leaky_relu(x, 2.0), [0.0, 1.0, -1.0], [1.5, 1.0, 2.0]),
    (lambda x: ops.leaky_relu(x, 0), [0.0, 1.0, -np.inf], [0.5, 1.0, 0.0]),
    (lambda x: ops.leaky_relu(x, T(0.2)), [0.0, 1.0, -1.0], [0.6, 1.0, 0.2]),
    (ops.selu, [0.0, -0.0], [1.050701, 1.050701]),
    (lambda x: ops.clip_by_value(x, -1.0, 1.0), [-2.0, -1, 0, 1, 2], [0.0, 0.5, 1.0, 0.5, 0.0]),
    (lambda x: ops.clip_by_value(x, T(-1.0), T(1.0)), [-1.0, 1.0], [0.5, 0.5]),
    (lambda x: ops.clip_by_value(x, -1.0), [-2.0, -1, 0, 2], [0.0, 0.5, 1.0, 1.0]),
    (lambda x: ops.clip_by_value(x, None, 1.0), [-2.0, 0, 1, 2], [1.0, 1.0, 0.5, 0.0]),
    (lambda x: ops.clamp(x, -1.0, 1.0), [-2.0, -1, 0, 1, 2], [0.0, 1.0, 1.0, 1.0, 0.0]),
]


@pytest.mark.parametrize(("function", "points", "expected"), KINKS)
def test_gradients_at_kinks_are_mindspores(
    function: Any, points: list[float], expected: list[float]
) -> None:
    x = T(np.array(points, np.float32))
    np.testing.assert_allclose(ms.grad(function)(x).asnumpy(), expected, rtol=1e-6)


def test_gradients_of_bounds() -> None:
    x, low, high = T([-2.0, -1, 0, 1, 2]), T([-1.0] * 5), T([1.0] * 5)
    _, by_low, by_high = ms.grad(ops.clip_by_value, (0, 1, 2))(x, low, high)
    assert by_low.tolist() == [1.0, 0.5, 0.0, 0.0, 0.0]
    assert by_high.tolist() == [0.0, 0.0, 0.0, 0.5, 1.0]
    with pytest.raises(ValueError, match="clip_by_value: at least one bound"):
        ops.clip_by_value(x)


#: GELU by the error function as programs write it.
BY_HAND: list[tuple[str, Callable[[Tensor], Tensor]]] = [
    ("half first", lambda x: 0.5 * x * (1 + ops.erf(x / math.sqrt(2)))),
    ("half second", lambda x: x * 0.5 * (1.0 + ops.erf(x * math.sqrt(0.5)))),
    ("half last", lambda x: x * (1 + ops.erf(x / math.sqrt(2))) * 0.5),
    ("by two", lambda x: x * (1 + ops.erf(x / 2**0.5)) / 2),
    ("half of the sum", lambda x: x * (0.5 * (1 + ops.erf(x / math.sqrt(2))))),
    ("halves", lambda x: x * (0.5 + 0.5 * ops.erf(x / math.sqrt(2)))),
    ("erfc", lambda x: 0.5 * x * ops.erfc(-x * math.sqrt(0.5))),
    ("a cell's", lambda x: ops.mul(ops.mul(x, 0.5), ops.add(ops.erf(ops.div(x, 2**0.5)), 1))),
]
SCALES = np.concatenate([10.0 ** np.arange(-30, 38, 4.0), np.linspace(0.1, 14, 61)])


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "fn"), BY_HAND, ids=[b[0] for b in BY_HAND])
@pytest.mark.parametrize("dtype", [ms.float32, ms.float64])
def test_gelu_by_hand(name: str, fn: Callable[[Tensor], Tensor], dtype: Any) -> None:
    """As exact as the library's own, far out too, where 1 + erf has no digits left, to order 3.

    (Derivatives up to 1e10: x^3 overflows further out, before exp(-x^2 / 2) takes all of it.)
    """
    unit = np.finfo(np.float32 if dtype == ms.float32 else np.float64).eps
    x = Tensor(np.concatenate([SCALES, -SCALES]), dtype)
    with mpmath.workdps(60):
        points = [mpmath.mpf(float(p)) for p in x.asnumpy()]
        density = [mpmath.npdf(p) for p in points]
        cdf = [mpmath.erfc(-p / mpmath.sqrt(2)) / 2 for p in points]
        exact = [
            [p * c for p, c in zip(points, cdf, strict=True)],
            [c + p * d for p, c, d in zip(points, cdf, density, strict=True)],
            [(2 - p**2) * d for p, d in zip(points, density, strict=True)],
            [(p**3 - 4 * p) * d for p, d in zip(points, density, strict=True)],
        ]
    smallest = float(np.finfo(np.float32 if dtype == ms.float32 else np.float64).tiny)
    f: Any = fn
    for order in range(4):
        got = [mpmath.mpf(float(y)) for y in ms.jit(f)(x).asnumpy()]
        for p, value, right in zip(points, got, exact[order], strict=True):
            if order and abs(p) > 1e10:
                continue
            # exp(-x^2 / 2) of a rounded square; and terms of the derivative that cancel, whose
            # exponential is perhaps subnormal
            near = min(abs(p), mpmath.mpf(40))
            bound = (4 + near**2 / 2) * max(abs(right), smallest)
            terms = (near ** (order + 1) + 4) * max(mpmath.npdf(p), smallest) if order else 0
            assert abs(value - right) <= unit * (bound + 4 * terms), (name, order, float(p))
        f = ms.grad(lambda x, f=f: ops.reduce_sum(f(x)))


@pytest.mark.parametrize(("name", "fn"), BY_HAND, ids=[b[0] for b in BY_HAND])
def test_gelu_by_hand_runs_as_the_librarys(name: str, fn: Callable[[Tensor], Tensor]) -> None:
    x = T(POINTS)
    for of in (lambda f: f, lambda f: ms.grad(lambda x: ops.reduce_sum(f(x)))):
        assert ms.plan_text(of(fn), x) == ms.plan_text(of(ops.gelu), x), name
    ends = T([0.0, -0.0, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(ms.jit(fn)(ends).asnumpy(), ops.gelu(ends).asnumpy())
    assert np.signbit(ms.jit(fn)(ends).asnumpy()[:2]).tolist() == [False, True]
    assert ms.jit(fn)(T(POINTS, ms.float16)).dtype == ms.float16


def test_a_smoothed_step_by_erf() -> None:
    """The distribution function of another width: exact far out too."""
    step = ms.jit(lambda x: 0.5 * (1 + ops.erf((x - 1.0) / (0.25 * math.sqrt(2)))))
    points = np.linspace(-2, 4, 49)
    exact = [0.5 * math.erfc(-(p - 1) / (0.25 * math.sqrt(2))) for p in points]
    np.testing.assert_allclose(step(T(points, ms.float64)).asnumpy(), exact, rtol=2e-13)
    near = step(T(points)).asnumpy()
    np.testing.assert_allclose(near, exact, rtol=3e-5)
