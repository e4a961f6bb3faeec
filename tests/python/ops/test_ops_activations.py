"""Activations against NumPy in float64, derivatives against central differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

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


@pytest.mark.parametrize("fn", [ops.softplus, ops.logsigmoid, ops.mish, ops.silu, ops.gelu])
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
    "fn", [ops.softplus, ops.logsigmoid, ops.silu, ops.mish, ops.gelu, ops.elu]
)
def test_extreme_arguments_stay_finite(fn: Any) -> None:
    x = T(np.array([-1e4, -500.0, -100.0, 100.0, 500.0, 1e4], np.float32))
    assert np.isfinite(fn(x).asnumpy()).all()
    first = ms.grad(lambda t: fn(t).sum())
    assert np.isfinite(first(x).asnumpy()).all()
    assert np.isfinite(ms.grad(lambda t: first(t).sum())(x).asnumpy()).all()


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
