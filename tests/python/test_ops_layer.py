"""The ops layer in Python: activations, losses, reductions' dtypes, Tensor's methods, random
numbers, primitives, HyperMap and MultitypeFuncGraph. References are NumPy in float64; derivatives
are checked against central differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradcell as ms
from gradcell import Parameter, Tensor, ops


def T(value: Any, dtype: Any = None) -> Tensor:
    return Tensor(np.asarray(value), dtype) if dtype is None else Tensor(value, dtype)


def ramp(*shape: int) -> Tensor:
    return T(np.arange(math.prod(shape), dtype=np.float32).reshape(shape))


def close(actual: Tensor, expected: Any, rtol: float = 1e-12, atol: float = 1e-12) -> None:
    assert tuple(actual.shape) == np.shape(expected)
    np.testing.assert_allclose(actual.asnumpy(), expected, rtol=rtol, atol=atol)


def check_derivatives(fn: Callable[[Tensor], Tensor], x: np.ndarray, order: int = 3) -> None:
    """Each derivative of sum(w * fn(x)) along a fixed direction against central differences."""
    rng = np.random.default_rng(1)
    v = T(rng.uniform(-1.0, 1.0, x.shape))
    w = T(rng.uniform(0.5, 1.5, fn(T(x)).shape))

    def level(n: int) -> Callable[[Tensor], Tensor]:
        if n == 0:
            return lambda t: (fn(t) * w).sum()
        below = ms.grad(level(n - 1))
        return lambda t: (below(t) * v).sum()

    h = 1e-5
    for n in range(1, order + 1):
        f = level(n - 1)
        step = h * v.asnumpy()
        numeric = (float(f(T(x + step))) - float(f(T(x - step)))) / (2 * h)
        exact = float(level(n)(T(x)))
        assert exact == pytest.approx(numeric, rel=2e-6, abs=2e-7), f"derivative {n}"


# Activations --------------------------------------------------------------------------------------

erf = np.vectorize(math.erf)


def np_sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def np_softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, 0)


def np_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def np_elu(x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


ACTIVATIONS: list[tuple[str, Callable[..., Tensor], Callable[[np.ndarray], np.ndarray]]] = [
    ("softplus", ops.softplus, np_softplus),
    ("softplus-beta", lambda x: ops.softplus(x, 2.0), lambda x: np_softplus(2 * x) / 2),
    ("logsigmoid", ops.logsigmoid, lambda x: -np_softplus(-x)),
    ("silu", ops.silu, lambda x: x * np_sigmoid(x)),
    ("swish", ops.swish, lambda x: x * np_sigmoid(x)),
    ("mish", ops.mish, lambda x: x * np.tanh(np_softplus(x))),
    ("gelu", ops.gelu, lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2)))),
    (
        "gelu-tanh",
        lambda x: ops.gelu(x, "tanh"),
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    ("elu", ops.elu, np_elu),
    ("celu", lambda x: ops.celu(x, 2.0), lambda x: np_elu(x / 2, 1.0) * 2),
    ("selu", ops.selu, lambda x: 1.0507009873554805 * np_elu(x, 1.6732632423543772)),
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
    ("softmax", ops.softmax, np_softmax),
    ("softmax-0", lambda x: ops.softmax(x, 0), lambda x: np_softmax(x, 0)),
    ("log_softmax", ops.log_softmax, lambda x: np.log(np_softmax(x))),
    ("glu", ops.glu, lambda x: x[..., :2] * np_sigmoid(x[..., 2:])),
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


# Losses -------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
LABELS = np.array([0, 2, 1, 2])
PROBABILITIES = np_softmax(RNG.normal(size=(4, 3)))
WEIGHT = np.array([0.5, 1.0, 2.0])


def reduced(values: np.ndarray, reduction: str) -> Any:
    return {"mean": np.mean, "sum": np.sum, "none": lambda v: v}[reduction](values)


def huber(d: np.ndarray, delta: float) -> np.ndarray:
    return np.where(np.abs(d) <= delta, 0.5 * d**2, delta * (np.abs(d) - 0.5 * delta))


LOSSES: list[tuple[str, Callable[..., Tensor], Callable[[np.ndarray], np.ndarray], np.ndarray]] = [
    ("mse", lambda x, r: ops.mse_loss(x, T(Y), r), lambda x: (x - Y) ** 2, X),
    ("l1", lambda x, r: ops.l1_loss(x, T(Y), r), lambda x: np.abs(x - Y), X),
    (
        "smooth_l1",
        lambda x, r: ops.smooth_l1_loss(x, T(Y), 0.5, r),
        lambda x: huber(x - Y, 0.5) / 0.5,
        X,
    ),
    ("huber", lambda x, r: ops.huber_loss(x, T(Y), r, 0.7), lambda x: huber(x - Y, 0.7), X),
    (
        "bce",
        lambda x, r: ops.binary_cross_entropy(x, T(PROBABILITIES), None, r),
        lambda x: -(PROBABILITIES * np.log(x) + (1 - PROBABILITIES) * np.log(1 - x)),
        np_sigmoid(X),
    ),
    (
        "bce-logits",
        lambda x, r: ops.binary_cross_entropy_with_logits(x, T(PROBABILITIES), reduction=r),
        lambda x: np_softplus(x) - x * PROBABILITIES,
        X,
    ),
    (
        "bce-logits-weights",
        lambda x, r: ops.binary_cross_entropy_with_logits(
            x, T(PROBABILITIES), T(WEIGHT), T(WEIGHT + 1), r
        ),
        lambda x: WEIGHT
        * ((WEIGHT + 1) * PROBABILITIES * np_softplus(-x) + (1 - PROBABILITIES) * np_softplus(x)),
        X,
    ),
    (
        "kl_div",
        lambda x, r: ops.kl_div(x, T(PROBABILITIES), r),
        lambda x: PROBABILITIES * (np.log(PROBABILITIES) - x),
        X,
    ),
    (
        "cross_entropy-soft",
        lambda x, r: ops.cross_entropy(x, T(PROBABILITIES), T(WEIGHT), reduction=r),
        lambda x: -(PROBABILITIES * np.log(np_softmax(x)) * WEIGHT).sum(1),
        X,
    ),
]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "loss", "reference", "x"), LOSSES, ids=[c[0] for c in LOSSES])
def test_loss(name: str, loss: Any, reference: Any, x: np.ndarray, reduction: str) -> None:
    close(loss(T(x), reduction), reduced(reference(x), reduction), 1e-9, 1e-10)
    check_derivatives(lambda t: loss(t, reduction), x, order=3)


def np_nll(logp: np.ndarray, labels: np.ndarray, weight: Any, ignore: int, reduction: str,
           smoothing: float = 0.0) -> Any:  # fmt: skip
    """Row by row. logp: [N, C]."""
    w = np.ones(logp.shape[1]) if weight is None else weight
    rows, total = [], 0.0
    for p, label in zip(logp, labels, strict=True):
        if label == ignore:
            rows.append(0.0)
            continue
        even = -(w * p).sum() * smoothing / len(p)
        rows.append(-w[label] * p[label] * (1 - smoothing) + even)
        total += w[label]
    if reduction == "none":
        return np.array(rows)
    return sum(rows) / total if reduction == "mean" else sum(rows)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("ignore", [-100, 2])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy_by_index(reduction: str, weight: Any, ignore: int, smoothing: float) -> None:
    w = None if weight is None else T(weight)
    labels = T(LABELS.astype(np.int32))

    def loss(x: Tensor) -> Tensor:
        return ops.cross_entropy(x, labels, w, ignore, reduction, smoothing)

    expected = np_nll(np.log(np_softmax(X)), LABELS, weight, ignore, reduction, smoothing)
    close(loss(T(X)), expected)
    close(ops.nll_loss(T(X), labels, w, ignore, reduction, smoothing),
          np_nll(X, LABELS, weight, ignore, reduction, smoothing))  # fmt: skip
    check_derivatives(loss, X)


@pytest.mark.parametrize("classes", [2, 512, 513, 600])
def test_cross_entropy_of_many_classes(classes: int) -> None:
    x = RNG.normal(size=(5, classes))
    labels = np.array([0, classes - 1, 1, classes // 2, -100])

    def loss(x: Tensor) -> Tensor:
        return ops.cross_entropy(x, T(labels))

    close(loss(T(x)), np_nll(np.log(np_softmax(x)), labels, None, -100, "mean"))
    gradient = np_softmax(x) - np.eye(classes)[labels % classes]
    gradient[4] = 0
    close(ms.grad(loss)(T(x)), gradient / 4)


def test_cross_entropy_shapes() -> None:
    x = RNG.normal(size=(2, 3, 4))
    labels = RNG.integers(0, 3, (2, 4))
    flat = np.log(np_softmax(x, 1)).transpose(0, 2, 1).reshape(8, 3)
    expected = np_nll(flat, labels.ravel(), WEIGHT, -100, "mean")
    close(ops.cross_entropy(T(x), T(labels), T(WEIGHT)), expected)
    assert ops.cross_entropy(T(x), T(labels), reduction="none").shape == (2, 4)
    close(ops.cross_entropy(T(X[0]), T(1)), -np.log(np_softmax(X[0])[1]))
    with pytest.raises(ValueError, match="target of shape"):
        ops.cross_entropy(T(X), T(LABELS[:3]))
    with pytest.raises(ValueError, match="reduction"):
        ops.cross_entropy(T(X), T(LABELS), reduction="xx")
    with pytest.raises(ValueError, match="weight"):
        ops.cross_entropy(T(X), T(LABELS), T(WEIGHT[:2]))


@pytest.mark.parametrize("bad", [3, -1, 100])
def test_label_out_of_range(bad: int) -> None:
    labels = T(np.array([0, bad, 1, 1]))
    with pytest.raises(IndexError, match="out of range for an axis of size 3"):
        ops.cross_entropy(T(X), labels)
    with pytest.raises(IndexError):
        ms.grad(lambda x: ops.cross_entropy(x, labels))(T(X))


def test_softmax_cross_entropy_with_logits() -> None:
    p = np_softmax(X)
    loss, residual = ops.SoftmaxCrossEntropyWithLogits()(T(X), T(PROBABILITIES))
    close(loss, -(PROBABILITIES * np.log(p)).sum(1))
    close(residual, p - PROBABILITIES)
    close(ops.softmax_cross_entropy_with_logits(T(X), T(PROBABILITIES)), loss.asnumpy())
    sparse = ops.SparseSoftmaxCrossEntropyWithLogits()
    close(sparse(T(X), T(LABELS)), -np.log(p[range(4), LABELS]).mean())
    gradient = ops.SparseSoftmaxCrossEntropyWithLogits(is_grad=True)(T(X), T(LABELS))
    close(gradient, ms.grad(lambda x: sparse(x, T(LABELS)))(T(X)).asnumpy())


def test_certain_and_impossible_probabilities() -> None:
    p, y = T(np.array([0.0, 1.0, 0.5])), T(np.array([1.0, 0.0, 1.0]))
    close(ops.binary_cross_entropy(p, y, reduction="none"),
          [27.631021, 27.631021, 0.6931472], 1e-6)  # fmt: skip
    logits = T(np.array([1e4, -1e4]), ms.float32)
    loss = ops.binary_cross_entropy_with_logits(logits, T(np.array([1.0, 0.0], np.float32)))
    assert float(loss) == 0.0
    labels = T(np.array([[0.0, 1.0]]))
    assert np.isfinite(ms.grad(lambda t: ops.kl_div(t, labels))(T(np.ones((1, 2)))).asnumpy()).all()


# Reductions ---------------------------------------------------------------------------------------


def test_reduction_dtypes() -> None:
    ints, flags, half = ramp(2, 3).astype(ms.int32), ramp(2, 3) > 2, ramp(2, 3).astype(ms.float16)
    assert ints.sum().dtype == ops.sum(ints).dtype == ms.int64
    assert ints.prod().dtype == ops.prod(ints).dtype == flags.sum().dtype == ms.int64
    assert ops.ReduceSum()(ints).dtype == ops.ReduceProd()(ints).dtype == ms.int32
    assert ops.ReduceMax()(ints).dtype == ints.max().dtype == ms.int32
    assert ints.mean().dtype == ops.ReduceMean()(ints).dtype == ms.int32
    assert half.sum().dtype == half.mean().dtype == half.prod().dtype == ms.float16
    assert ints.argmax().dtype == ops.argmax(ints).dtype == ms.int64
    assert ops.argmin(ints).dtype == ops.Argmax()(ints).dtype == ints.argmin().dtype == ms.int32
    assert ops.Argmax(output_type=ms.int64)(ints).dtype == ms.int64
    assert ints.var().dtype == ints.std().dtype == ints.norm().dtype == ms.float32
    assert ints.cumsum(0).dtype == flags.cumsum(0).dtype == ms.int32
    assert ints.astype(ms.int64).cumsum(0).dtype == ms.int64
    assert ops.cumsum(ints.astype(ms.int8), 0).dtype == ms.int8
    assert ints.sum(0, dtype=ms.float64).dtype == ms.float64
    assert ints.all().dtype == ints.any(0).dtype == ms.bool_


def test_truth_reductions() -> None:
    x = ramp(2, 3)
    assert not x.all() and x.any()
    np.testing.assert_array_equal(x.all(0).asnumpy(), [False, True, True])
    np.testing.assert_array_equal(ops.any(x > 3, 1, True).asnumpy(), [[False], [True]])
    empty = ops.zeros((0, 2))
    assert bool(empty.all()) and not bool(empty.any())


def test_empty_reductions() -> None:
    empty = ops.zeros((0, 3))
    assert float(empty.sum()) == 0.0 and float(empty.prod()) == 1.0
    assert empty.sum(0).shape == (3,) and empty.prod(1).shape == (0,)
    for call in (empty.max, empty.min, lambda: ops.max(empty, 0), lambda: ops.amin(empty)):
        with pytest.raises(ValueError, match="empty"):
            call()


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_prod_with_zeros(n: int, zeros: int) -> None:
    x = np.linspace(0.5, 1.5, n)
    x[:zeros] = 0.0
    close(ops.prod(T(x)), np.prod(x))
    first = ms.grad(ops.prod)(T(x)).asnumpy()
    expected = [np.prod(np.delete(x, i)) for i in range(n)]
    np.testing.assert_allclose(first, expected, rtol=1e-12)
    check_derivatives(ops.prod, x)


def test_max_shares_or_picks_ties() -> None:
    x = T(np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]]))
    values, index = ops.max(x, 1)
    close(values, [3.0, 2.0])
    np.testing.assert_array_equal(index.asnumpy(), [1, 0])
    close(ms.grad(lambda t: ops.max(t, 1)[0].sum())(x), [[0, 1, 0], [1, 0, 0]])
    close(ms.grad(lambda t: ops.amax(t, 1).sum())(x), [[0, 0.5, 0.5], [0.5, 0.5, 0]])
    close(ms.grad(lambda t: t.max())(x), [[0, 0.5, 0.5], [0, 0, 0]])
    values, index = ops.min(x, 0, keepdims=True)
    assert values.shape == index.shape == (1, 3) and index.dtype == ms.int64
    index, values = ops.ArgMinWithValue(1)(x)
    np.testing.assert_array_equal(index.asnumpy(), [0, 2])
    close(values, [1.0, 0.0])


def test_max_with_nan_and_infinity() -> None:
    x = T(np.array([[-np.inf, -np.inf], [np.inf, 1.0]]))
    close(ops.max(x, 1)[0], [-np.inf, np.inf])
    close(ops.logsumexp(x, 1), [-np.inf, np.inf])


MOMENTS: list[tuple[str, Callable[..., Tensor], Callable[..., Any]]] = [
    ("var", lambda x: ops.var(x, 1), lambda x: np.var(x, 1)),
    ("var-all", lambda x: x.var(), np.var),
    ("var-ddof", lambda x: ops.var(x, (0, 1), 1, True),
     lambda x: np.var(x, (0, 1), ddof=1, keepdims=True)),
    ("std", lambda x: ops.std(x, 0, 1), lambda x: np.std(x, 0, ddof=1)),
    ("norm", lambda x: ops.norm(x), lambda x: np.linalg.norm(x)),
    ("norm-1", lambda x: ops.norm(x, 1, 1), lambda x: np.linalg.norm(x, 1, 1)),
    ("norm-3", lambda x: ops.norm(x, 3, 0), lambda x: np.linalg.norm(x, 3, 0)),
    ("norm-inf", lambda x: ops.norm(x, math.inf, 1, True),
     lambda x: np.linalg.norm(x, math.inf, 1, True)),
    ("norm-fro", lambda x: ops.norm(x, "fro"), lambda x: np.linalg.norm(x, "fro")),
    ("norm-matrix-1", lambda x: ops.norm(x, 1), lambda x: np.linalg.norm(x, 1)),
    ("norm-matrix-inf", lambda x: ops.norm(x, math.inf), lambda x: np.linalg.norm(x, math.inf)),
    ("logsumexp", lambda x: ops.logsumexp(x, 1), lambda x: np.log(np.exp(x).sum(1))),
    ("logsumexp-all", lambda x: ops.logsumexp(x, (0, 1), True),
     lambda x: np.log(np.exp(x).sum(keepdims=True))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fn", "reference"), MOMENTS, ids=[m[0] for m in MOMENTS])
def test_moments_and_norms(name: str, fn: Any, reference: Any) -> None:
    close(fn(T(X)), reference(X))
    check_derivatives(fn, X)


# Shapes and indices -------------------------------------------------------------------------------

C = np.arange(24.0).reshape(2, 3, 4)
MATRIX = np.arange(12.0).reshape(3, 4)
SHAPING: list[tuple[str, Callable[[Tensor], Any], Any]] = [
    ("tile", lambda x: ops.tile(x, (2, 1, 3)), np.tile(C, (2, 1, 3))),
    ("tile-long", lambda x: ops.tile(x, (2, 1, 1, 2)), np.tile(C, (2, 1, 1, 2))),
    ("tile-short", lambda x: x.tile((2,)), np.tile(C, 2)),
    ("repeat_interleave", lambda x: x.repeat_interleave(2, 1), C.repeat(2, 1)),
    ("repeat_interleave-counts", lambda x: x.repeat_interleave([1, 0, 2], 1),
     C.repeat([1, 0, 2], 1)),
    ("repeat", lambda x: x.repeat(1, 2, 1), np.tile(C, (1, 2, 1))),
    ("flip", lambda x: ops.flip(x, (0, 2)), np.flip(C, (0, 2))),
    ("roll", lambda x: ops.roll(x, (1, -2), (0, 2)), np.roll(C, (1, -2), (0, 2))),
    ("roll-flat", lambda x: ops.roll(x, 5), np.roll(C, 5)),
    ("movedim", lambda x: ops.movedim(x, 0, 2), np.moveaxis(C, 0, 2)),
    ("movedim-2", lambda x: ops.movedim(x, (0, 1), (2, 0)), np.moveaxis(C, (0, 1), (2, 0))),
    ("swapaxes", lambda x: x.swapaxes(0, -1), C.swapaxes(0, -1)),
    ("transpose-two", lambda x: x.transpose(0, 1), C.swapaxes(0, 1)),
    ("transpose", lambda x: x.transpose(2, 0, 1), C.transpose(2, 0, 1)),
    ("T", lambda x: x.T, C.T),
    ("mT", lambda x: x.mT, C.swapaxes(1, 2)),
    ("flatten", lambda x: x.flatten(), C.ravel()),
    ("flatten-ops", ops.flatten, C.reshape(2, 12)),
    ("flatten-F", lambda x: ops.flatten(x, "F"), C.transpose(0, 2, 1).reshape(2, 12)),
    ("stack", lambda x: ops.stack((x, x * 2), -1), np.stack((C, C * 2), -1)),
    ("unstack", lambda x: ops.stack(ops.unstack(x, 1)), C.swapaxes(0, 1)),
    ("unbind", lambda x: x.unbind(2)[3], C[:, :, 3]),
    ("chunk", lambda x: ops.concat(x.chunk(2, 1)[::-1], 1),
     np.concatenate((C[:, 2:], C[:, :2]), 1)),
    ("split", lambda x: ops.split(x, (1, 3), -1)[1], C[..., 1:]),
    ("narrow", lambda x: x.narrow(1, 1, 2), C[:, 1:3]),
    ("tril", lambda x: ops.tril(x, 1), np.tril(C, 1)),
    ("triu", lambda x: x.triu(-1), np.triu(C, -1)),
    ("diagonal", lambda x: ops.diagonal(x, 1, 1, 2), C.diagonal(1, 1, 2)),
    ("diagonal-below", lambda x: ops.diagonal(x, -1, 1, 2), C.diagonal(-1, 1, 2)),
    ("diag-of-matrix", lambda x: ops.diag(x[0]), C[0].diagonal()),
    ("diag", lambda x: ops.diag(x[0, 0], 1), np.diag(C[0, 0], 1)),
    ("diag-below", lambda x: ops.diag(x[0, 0], -2), np.diag(C[0, 0], -2)),
    ("trace", lambda x: x[0].trace(), C[0].trace()),
    ("pad", lambda x: ops.pad(x, (1, 2, 0, 1)), np.pad(C, ((0, 0), (0, 1), (1, 2)))),
    ("pad-value", lambda x: ops.pad(x, (1, 2), value=7.0),
     np.pad(C, ((0, 0), (0, 0), (1, 2)), constant_values=7)),
    ("pad-negative", lambda x: ops.pad(x, (-1, 2)), np.pad(C[..., 1:], ((0, 0), (0, 0), (0, 2)))),
    ("pad-reflect", lambda x: ops.pad(x, (3, 2), "reflect"),
     np.pad(C, ((0, 0), (0, 0), (3, 2)), "reflect")),
    ("pad-replicate", lambda x: ops.pad(x, (1, 2), "replicate"),
     np.pad(C, ((0, 0), (0, 0), (1, 2)), "edge")),
    ("pad-circular", lambda x: ops.pad(x, (1, 2), "circular"),
     np.pad(C, ((0, 0), (0, 0), (1, 2)), "wrap")),
    ("Pad", lambda x: ops.Pad(((1, 0), (0, 0), (0, 2)))(x), np.pad(C, ((1, 0), (0, 0), (0, 2)))),
    ("strided_slice", lambda x: ops.strided_slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 2)),
     C[:, 1:3, ::2]),
    ("strided_slice-masks",
     lambda x: ops.StridedSlice(1, 4, 0, 0, 2)(x, (1, 1, 1), (2, 2, 2), (1, 1, 1)), C[:2, 1, 1:]),
    ("strided_slice-ellipsis",
     lambda x: ops.StridedSlice(ellipsis_mask=1)(x, (0, 1), (0, 3), (1, 1)), C[..., 1:3]),
    ("Slice", lambda x: ops.Slice()(x, (0, 1, 2), (1, -1, 2)), C[:1, 1:, 2:]),
    ("gather", lambda x: ops.gather(x, T([[0, 2], [-1, 1]]), 1), C[:, [[0, 2], [-1, 1]]]),
    ("gather-batch", lambda x: ops.gather(x, T([[0, 2], [1, -1]]), 1, 1),
     np.stack([C[0][[0, 2]], C[1][[1, -1]]])),
    ("gather-batch-2", lambda x: ops.Gather(batch_dims=1)(x, T([[0, 3], [1, -1]]), 2),
     np.stack([C[0][:, [0, 3]], C[1][:, [1, -1]]])),
    ("gather_elements", lambda x: x.gather(2, T(np.array([[[0, 3], [1, 1]]]))),
     np.take_along_axis(C[:1, :2], np.array([[[0, 3], [1, 1]]]), 2)),
    ("gather_d-front", lambda x: ops.gather_d(x, 0, T(np.array([[[1, 0, 1, -1]]]))),
     np.take_along_axis(C[:, :1], np.array([[[1, 0, 1, -1]]]), 0)),
    ("gather_nd", lambda x: ops.gather_nd(x, T([[0, 1], [1, -1]])), C[[0, 1], [1, -1]]),
    ("index_select", lambda x: x.index_select(1, T([2, 0])), C[:, [2, 0]]),
    ("take", lambda x: x.take(T([1, 30])), C.take([1, 23])),
    ("take-wrap", lambda x: x.take(T([1, 30, -1]), 1, "wrap"), C.take([1, 30, -1], 1, mode="wrap")),
    ("scatter", lambda x: ops.tensor_scatter_add(x, T([[0, 1], [0, 1]]), T(np.ones((2, 4)))),
     C + 2 * np.eye(6)[1].reshape(2, 3, 1)),
    ("scatter-update", lambda x: ops.tensor_scatter_update(x, T([[1, 2, 3]]), T([9.0])),
     np.where(C == 23, 9, C)),
    ("scatter_add", lambda x: x.scatter_add(1, T(np.zeros((2, 1, 4), int)), T(np.ones((2, 1, 4)))),
     C + np.eye(3)[0].reshape(3, 1)),
    ("index_add", lambda x: ops.index_add(x, T([0, 0]), T(np.ones((2, 2, 4))), 1),
     C + 2 * np.eye(3)[0].reshape(3, 1)),
    ("masked_fill", lambda x: x.masked_fill(T(C > 5), -1.0), np.where(C > 5, -1, C)),
    ("masked_select", lambda x: x.masked_select(T(C % 2 == 0)), C[C % 2 == 0]),
    ("where", lambda x: x.where(T(C > 5), 0.0), np.where(C > 5, C, 0)),
    ("clip", lambda x: x.clip(2, 5), C.clip(2, 5)),
    ("sort", lambda x: ops.sort(x, -1, True)[0], C[..., ::-1]),
    ("topk", lambda x: x.topk(2)[0], C[..., [3, 2]]),
    ("meshgrid", lambda x: ops.meshgrid(x[0, 0], x[0, 1])[1], np.meshgrid(C[0, 0], C[0, 1])[1]),
    ("meshgrid-ij", lambda x: ops.meshgrid(x[0, 0], x[0, 1], indexing="ij")[1],
     np.meshgrid(C[0, 0], C[0, 1], indexing="ij")[1]),
    ("outer", lambda x: ops.outer(x[0, 0], x[0, 1]), np.outer(C[0, 0], C[0, 1])),
    ("dot", lambda x: ops.dot(x, x[0].T), C @ C[0].T),
    ("inner", lambda x: ops.inner(x, x), np.inner(C, C)),
    ("tensor_dot", lambda x: ops.tensor_dot(x, x, ((0, 2), (0, 2))),
     np.tensordot(C, C, ((0, 2), (0, 2)))),
    ("addmm", lambda x: ops.addmm(x[0] @ x[0].T, x[0], x[1].T, beta=2, alpha=0.5),
     2 * C[0] @ C[0].T + 0.5 * C[0] @ C[1].T),
    ("vstack", lambda x: ops.vstack((x[0], x[1, 0])), np.vstack((C[0], C[1, 0]))),
    ("hstack", lambda x: ops.hstack((x[0], x[1])), np.hstack((C[0], C[1]))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fn", "expected"), SHAPING, ids=[c[0] for c in SHAPING])
def test_shaping(name: str, fn: Any, expected: np.ndarray) -> None:
    close(fn(T(C)), expected)
    if name not in ("masked_select", "sort", "topk"):  # these ask for values
        close(ms.jit(fn)(T(C)), expected)
    check_derivatives(lambda x: fn(x) * fn(x), np.asarray(C) / 10 + 0.03, order=2)


def test_one_hot() -> None:
    index = T(np.array([[0, 2], [5, -1]]))
    hot = ops.one_hot(index, 3)
    assert hot.dtype == ms.int64
    np.testing.assert_array_equal(hot.asnumpy(), [[[1, 0, 0], [0, 0, 1]], [[0] * 3, [0] * 3]])
    floats = ops.OneHot(axis=0)(index, 3, T(1.0, ms.float32), T(0.0, ms.float32))
    assert floats.dtype == ms.float32 and floats.shape == (3, 2, 2)
    with pytest.raises(TypeError, match="OneHot"):
        ops.one_hot(T(1.5), 3)


def test_index_errors() -> None:
    x = T(MATRIX)
    for call in (
        lambda: ops.gather(x, T([0, 3]), 0),
        lambda: ops.gather(x[None], T([[0, 3]]), 1, 1),
        lambda: ops.gather_elements(x, 0, T([[-4]])),
        lambda: ops.gather_nd(x, T([[0, 4]])),
        lambda: ops.take(x, T([12]), mode="raise"),
    ):
        with pytest.raises(IndexError):
            call()
    with pytest.raises(TypeError, match="integers"):
        ops.gather(x, T([0.5]), 0)


def test_creation() -> None:
    assert ops.zeros(3).dtype == ops.ones((2,)).dtype == ops.eye(2).dtype == ms.float32
    np.testing.assert_array_equal(ops.eye(2, 3, ms.int32).asnumpy(), np.eye(2, 3))
    assert ops.full((2,), 3).dtype == ms.int64 and ops.full((2,), 3.0).dtype == ms.float32
    assert ops.arange(5).dtype == ms.int64 and ops.arange(5.0).dtype == ms.float32
    for args in ((5,), (2, 9), (9, 2, -3), (0, 1, 0.25), (1, 1)):
        close(ops.arange(*args), np.arange(*args))
    close(ops.linspace(0, 1, 5), np.linspace(0, 1, 5))
    ends = T(2.0, ms.float64)
    close(ops.linspace(ends, ends * 2, 3), [2, 3, 4])
    close(ms.grad(lambda a: ops.linspace(a, a * 2, 3).sum())(ends), 4.5)
    assert ops.zeros_like(ramp(2, 3), dtype=ms.int8).dtype == ms.int8
    assert ramp(2).new_ones((3, 1)).shape == (3, 1)
    for call, kind in (
        (lambda: ops.arange(5, 0), ValueError),
        (lambda: ops.arange(0, 5, 0), ValueError),
        (lambda: ops.zeros((2, -1)), ValueError),
        (lambda: ops.zeros((2, 1.5)), TypeError),
        (lambda: ops.ones("a"), TypeError),
        (lambda: ops.ones(1 << 50), MemoryError),
    ):
        with pytest.raises(kind):
            call()


def test_bad_shapes_say_where() -> None:
    x = ramp(2, 3)
    calls = [
        lambda: ops.concat((x, ramp(2, 2))),
        lambda: ops.stack((x, ramp(2, 2))),
        lambda: ops.split(x, (1, 1), 1),
        lambda: ops.Split(1, 2)(x),
        lambda: ops.reshape(x, (4, 2)),
        lambda: ops.transpose(x, (0, 0)),
        lambda: x.sum(axis=5),
        lambda: x.sum(axis=(0, 0)),
        lambda: ops.MatMul()(x, ramp(3)),
        lambda: ops.MatMul()(x, x),
        lambda: ops.mm(x, ramp(3)),
        lambda: ops.clamp(x),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"test_ops_layer\.py:\d+"):
            call()
    for call in (lambda: ops.concat(x), lambda: ops.tile(x, 2), lambda: ops.ReduceSum(1)):
        with pytest.raises(TypeError, match=r"test_ops_layer\.py:\d+"):
            call()


# Tensor methods -----------------------------------------------------------------------------------


def test_reduction_spellings() -> None:
    x, a = ramp(2, 3), np.arange(6.0).reshape(2, 3)
    for name in ("sum", "mean", "prod", "var", "std"):
        method, reference = getattr(x, name), getattr(a, name)
        close(method(), reference(), 1e-6)
        close(method(0), reference(0), 1e-6)
        close(method(axis=1), reference(1), 1e-6)
        close(method(dim=1), reference(1), 1e-6)
        close(method(axis=1, keepdims=True), reference(1, keepdims=True), 1e-6)
        close(method(dim=-1, keepdim=True), reference(-1, keepdims=True), 1e-6)
    close(x.mean(0, True), a.mean(0, keepdims=True))
    close(x.mean(axis=0, keep_dims=True), a.mean(0, keepdims=True))
    close(x.sum((0, 1)), 15)
    close(x.sum([0]), a.sum(0))
    close(x.sum(()), 15)
    close(x.sum(axis=0, initial=10), a.sum(0) + 10)
    close(x.var(0, 1), a.var(0, ddof=1))
    close(x.norm(dim=1), np.linalg.norm(a, axis=1), 1e-6)
    np.testing.assert_array_equal(x.argmax(axis=1, keepdims=True).asnumpy(), [[2], [2]])
    np.testing.assert_array_equal(x.argmax(dim=0).asnumpy(), [1, 1, 1])
    close(x.cumsum(), a.cumsum())
    close(x.cumsum(axis=0), a.cumsum(0))
    close(x.cumsum(dim=1), a.cumsum(1))
    with pytest.raises(TypeError, match="two names"):
        x.mean(axis=0, dim=1)


def test_max_spellings() -> None:
    x = ramp(2, 3)
    assert float(x.max()) == 5.0 and float(x.min()) == 0.0
    close(x.max(axis=0), [3, 4, 5])
    close(x.max(axis=0, keepdims=True), [[3, 4, 5]])
    for values, index in (x.max(0), x.max(dim=0), x.max(axis=0, return_indices=True)):
        close(values, [3, 4, 5])
        np.testing.assert_array_equal(index.asnumpy(), [1, 1, 1])
        assert index.dtype == ms.int64
    close(x.min(1)[0], [0, 3])


def test_shape_methods() -> None:
    x = ramp(1, 3, 1)
    assert x.squeeze().shape == (3,)
    assert x.squeeze(0).shape == x.squeeze(axis=0).shape == x.squeeze(dim=0).shape == (3, 1)
    assert x.squeeze((0, 2)).shape == x.squeeze(0, 2).shape == (3,)
    assert ramp(2, 3).squeeze(0).shape == (2, 3)
    y = ramp(2, 3)
    assert y.reshape(3, -1).shape == y.reshape((3, 2)).shape == y.view([3, 2]).shape == (3, 2)
    assert y.transpose().shape == y.transpose(1, 0).shape == y.transpose((1, 0)).shape == (3, 2)
    assert y.permute(1, 0).shape == y.permute((1, 0)).shape == (3, 2)
    assert y.expand_dims(-1).shape == y.unsqueeze(dim=2).shape == (2, 3, 1)
    assert y.broadcast_to(4, -1, 3).shape == y.broadcast_to((4, 2, 3)).shape == (4, 2, 3)
    assert ramp(3).expand_as(y).shape == y.view_as(y).shape == (2, 3)
    assert [p.shape for p in y.split(2, 1)] == [(2, 2), (2, 1)]
    assert [p.shape for p in y.split((1, 2), axis=1)] == [(2, 1), (2, 2)]
    assert [p.shape for p in y.split(split_size=1)] == [(1, 3), (1, 3)]
    assert y.to(ms.int32).dtype == y.type_as(y.astype(ms.int32)).dtype == ms.int32
    assert y.numel() == y.nelement() == 6 and y.ndimension() == 2


def test_in_place_methods() -> None:
    x = ramp(3)
    assert x.add_(1) is x
    close(x, [1, 2, 3])
    close(x.mul_(x), [1, 4, 9])
    close(x.sub_(1, alpha=2), [-1, 2, 7])
    close(x.zero_(), [0, 0, 0])
    close(x.copy_(ramp(3)), [0, 1, 2])
    assert ramp(3).astype(ms.int32).add_(1.5).dtype == ms.int32
    with pytest.raises(ValueError, match="add_"):
        x.add_(ramp(2, 3))


def test_elementwise_forms() -> None:
    a, b = np.array([-3.5, 3.5, -7.0]), np.array([2.0, -2.0, 2.5])
    close(ops.fmod(T(a), T(b)), np.fmod(a, b))
    close(ops.div(T(a), T(b), rounding_mode="floor"), np.floor(a / b))
    close(ops.div(T(a), T(b), rounding_mode="trunc"), np.trunc(a / b))
    close(ops.trunc(T(a)), np.trunc(a))
    close(ops.round(T(a / 3), decimals=2), np.round(a / 3, 2))
    close(ops.hypot(T(a), T(b)), np.hypot(a, b))
    close(ops.xlogy(T([0.0, 2.0]), T([0.0, 3.0])), [0, 2 * np.log(3)], 1e-6)
    close(ops.div_no_nan(T([1.0, 2.0]), T([0.0, 4.0])), [0, 0.5])
    check_derivatives(lambda x: ops.xlogy(x, x * x + 1), np.array([0.0, 0.5, 2.0]), order=2)
    close(T(a).pow(2), a**2)
    close(ops.pow(2.0, T(a)), 2.0**a)
    with pytest.raises(ValueError, match="rounding_mode"):
        ops.div(T(a), T(b), rounding_mode="up")


# Random numbers -----------------------------------------------------------------------------------


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def mode(request: pytest.FixtureRequest) -> Iterator[int]:
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=before)


def test_moments_of_random_numbers() -> None:
    ms.set_seed(3)
    n = 200_000
    u = ops.rand(n).asnumpy()
    assert 0 <= u.min() and u.max() < 1
    assert abs(u.mean() - 0.5) < 4e-3 and abs(u.var() - 1 / 12) < 2e-3
    g = ops.randn(n + 1).asnumpy().astype(np.float64)
    assert g.shape == (n + 1,) and np.isfinite(g).all()
    assert abs(g.mean()) < 0.01 and abs(g.var() - 1) < 0.02
    assert abs((g**3).mean()) < 0.04 and abs((g**4).mean() - 3) < 0.1
    assert abs(np.corrcoef(g[:-1], g[1:])[0, 1]) < 0.01
    assert abs(np.corrcoef(g[: n // 2], g[n // 2 : n])[0, 1]) < 0.015
    k = ops.randint(-2, 5, (n,)).asnumpy()
    np.testing.assert_allclose(np.bincount(k + 2) / n, np.full(7, 1 / 7), atol=5e-3)
    wide = ops.randint(0, 1 << 40, (1000,)).asnumpy()
    assert len(np.unique(wide % 1024)) > 500 and wide.max() > 1 << 39
    b = ops.bernoulli(ops.zeros(n), 0.3).asnumpy()
    assert set(np.unique(b)) == {0.0, 1.0} and abs(b.mean() - 0.3) < 5e-3
    x = ops.uniform((n,), T(-2.0, ms.float32), T(3.0, ms.float32)).asnumpy()
    assert -2 <= x.min() and x.max() < 3 and abs(x.mean() - 0.5) < 0.02
    y = ops.normal((n,), 2.0, 3.0).asnumpy()
    assert abs(y.mean() - 2) < 0.03 and abs(y.std() - 3) < 0.03


def test_dropout() -> None:
    ms.set_seed(0)
    x = ops.ones((100, 1000))
    y = ops.dropout(x, p=0.25).asnumpy()
    np.testing.assert_allclose(np.unique(y), [0, 1 / 0.75], rtol=1e-6)
    assert abs((y == 0).mean() - 0.25) < 5e-3
    assert ops.dropout(x, 0.3, training=False) is x and ops.dropout(x, 0.0) is x
    close(ops.dropout(x, 1.0), np.zeros((100, 1000)))
    out, mask = ops.Dropout(keep_prob=0.4)(x)
    np.testing.assert_array_equal(out.asnumpy() != 0, mask.asnumpy() == 1)
    (gradient, kept) = ms.grad(lambda t: _twice(ops.dropout(t, 0.5)), has_aux=True)(x)
    np.testing.assert_array_equal(gradient.asnumpy(), 2 * (kept[0].asnumpy() != 0))
    for p, kind in ((1.5, ValueError), (-0.1, ValueError), ("a", TypeError)):
        with pytest.raises(kind):
            ops.dropout(x, p)


def _twice(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sum(), x


def test_same_seed_same_numbers_in_both_modes() -> None:
    @ms.jit
    def compiled(n: Tensor) -> Tensor:
        return ops.randn(5) * n + ops.dropout(ops.ones(5), 0.5)

    def plain(n: Tensor) -> Tensor:
        return ops.randn(5) * n + ops.dropout(ops.ones(5), 0.5)

    runs = []
    for fn in (compiled, plain):
        ms.set_seed(11)
        runs.append([fn(T(2.0, ms.float32)).asnumpy().copy() for _ in range(3)])
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0][0], runs[0][1])
    assert ms.get_seed() == 11


def test_gradients_draw_new_numbers(mode: int) -> None:
    fn = ms.value_and_grad(lambda x: (x * ops.rand(3)).sum())
    x = T(np.ones(3, np.float32))
    ms.set_seed(5)
    first = [fn(x)[1].asnumpy().copy() for _ in range(3)]
    ms.set_seed(5)
    again = [fn(x)[1].asnumpy().copy() for _ in range(3)]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1]) and not np.array_equal(first[1], first[2])


def test_own_streams() -> None:
    ms.set_seed(1)
    a, b = ops.rand(4, seed=7).asnumpy().copy(), ops.rand(4, seed=7).asnumpy().copy()
    c = ops.rand(4, seed=8).asnumpy().copy()
    assert not np.array_equal(a, b) and not np.array_equal(a, c)
    ms.set_seed(1)
    np.testing.assert_array_equal(ops.rand(4, seed=7).asnumpy(), a)
    ms.set_seed(1)
    np.testing.assert_array_equal(ops.UniformReal(7)((4,)).asnumpy(), a)
    assert ops.StandardNormal()((2, 3)).shape == (2, 3)
    assert ops.randn(0).shape == (0,) and ops.rand((2, 0)).shape == (2, 0)
    np.testing.assert_array_equal(np.sort(ops.randperm(9).asnumpy()), np.arange(9))


def test_failed_function_does_not_advance_the_stream() -> None:
    def fails(x: Tensor) -> Tensor:
        ops.rand(3)
        raise KeyError("stop")

    ms.set_seed(2)
    expected = ops.rand(3).asnumpy().copy()
    ms.set_seed(2)
    with pytest.raises(KeyError):
        ms.grad(fails)(ramp(2))
    np.testing.assert_array_equal(ops.rand(3).asnumpy(), expected)


def test_seed_errors() -> None:
    with pytest.raises(ValueError):
        ms.set_seed(-1)
    for bad in (1.5, "1", None, True):
        with pytest.raises(TypeError):
            ms.set_seed(bad)
    with pytest.raises(ValueError):
        ops.randint(3, 3, (2,))


# Parameters and trees -----------------------------------------------------------------------------


def test_assign() -> None:
    p = Parameter(ramp(2), name="p")
    source = ramp(2) + 5
    close(ops.assign(p, source), [5, 6])
    close(ops.assign_add(p, ops.ones(2)), [6, 7])
    close(source, [5, 6])
    close(ops.AssignSub()(p, T([1, 2], ms.int32)), [5, 5])
    assert p.dtype == ms.float32
    for bad in (ramp(3), ramp(1), 1.0):
        with pytest.raises(ValueError, match="Assign"):
            ops.assign(p, bad)
    with pytest.raises(TypeError, match="Assign"):
        ops.assign(np.zeros(2), ramp(2))
    close(ops.scatter_add(p, T([1, 1]), T([1.0, 2.0])), [5, 8])
    close(ops.ScatterUpdate()(p, T([0]), T([9.0])), [9, 8])
    close(p, [9, 8])


def test_assign_inside_gradient(mode: int) -> None:
    p = Parameter(ops.zeros(2), name="p")

    def fn(x: Tensor) -> Tensor:
        ops.assign_add(p, x)
        return (x * p).sum()

    x = ramp(2) + 1
    close(ms.grad(fn)(x), [2, 4])
    close(ms.grad(fn)(x), [3, 6])
    close(p, [2, 4])


def test_hyper_map_and_map() -> None:
    xs, ys = (ramp(2), [ramp(1), (ramp(3),)]), (ramp(2), [ramp(1), (ramp(3),)])
    out = ops.HyperMap(ops.add)(xs, ys)
    close(out[1][1][0], [0, 2, 4])
    assert isinstance(out, tuple) and isinstance(out[1], tuple)
    close(ops.HyperMap()(ops.partial(ops.mul, T(3.0, ms.float32)), (ramp(2),))[0], [0, 3])
    seen: list[int] = []
    assert ops.Map(lambda x: seen.append(x) or x + 1, True)([1, 2, 3]) == (2, 3, 4)
    assert seen == [3, 2, 1]
    with pytest.raises(ValueError, match="one length"):
        ops.HyperMap()(ops.add, (ramp(1),), (ramp(1), ramp(1)))
    with pytest.raises(TypeError):
        ops.HyperMap()(3, (ramp(1),))


def test_hyper_map_updates_parameters(mode: int) -> None:
    sums = ms.ParameterTuple((Parameter(ops.zeros(2), name="a"), Parameter(ops.zeros(1), name="b")))

    @ms.jit
    def add(x: Tensor, y: Tensor) -> Any:
        return ops.HyperMap()(ops.partial(ops.assign_add), sums, (x, y))

    for _ in range(3):
        add(ops.ones(2), ops.ones(1))
    close(sums[0], [3, 3])
    close(sums[1], [3])


def test_multitype_func_graph() -> None:
    f = ops.MultitypeFuncGraph("f")

    @f.register("Tensor", "Tensor")
    def _(x: Any, y: Any) -> str:
        return "tensors"

    @f.register("Tensor", "Number")
    def _(x: Any, y: Any) -> str:
        return "tensor-number"

    @f.register("Tensor", "Bool")
    def _(x: Any, y: Any) -> str:
        return "tensor-bool"

    @f.register("Tuple", "Tuple")
    def _(x: Any, y: Any) -> Any:
        return ops.HyperMap(f)(x, y)

    x = ramp(2)
    assert f(x, x) == "tensors" and f(x, 1) == f(x, 1.5) == "tensor-number"
    assert f(x, True) == "tensor-bool" and f((x,), (x,)) == ("tensors",)
    assert f(Parameter(x, name="p"), x) == "tensors"
    for bad in ((1, 2), (x,), (x, None)):
        with pytest.raises(TypeError, match="'f' operation does not support"):
            f(*bad)


def test_clip_by_global_norm() -> None:
    xs = (ramp(2) + 3, ramp(2))
    norm = np.sqrt(9 + 16 + 0 + 1)
    out = ops.clip_by_global_norm(xs)
    assert isinstance(out, tuple)
    close(out[0], np.array([3, 4]) / norm, 1e-6)
    close(out[1], np.array([0, 1]) / norm, 1e-6)
    close(ops.clip_by_global_norm(list(xs), 100.0)[0], [3, 4])
    close(ops.clip_by_global_norm(ramp(2) + 3, 0.5), [0.3, 0.4], 1e-6)
    close(ops.clip_by_global_norm((ramp(2),), 1.0, T(4.0, ms.float32))[0], [0, 0.25])
    half = ops.clip_by_global_norm((ops.full((4,), 3e4, dtype=ms.float16),))[0]
    assert half.dtype == ms.float16
    close(half, np.full(4, 0.5), 1e-3)
    for bad in (0, -1.0):
        with pytest.raises(ValueError, match="clip_norm"):
            ops.clip_by_global_norm(xs, bad)
    with pytest.raises(TypeError):
        ops.clip_by_global_norm(("a",))
    close(ops.clip_by_norm([ramp(3)], 1.0)[0], np.arange(3) / (np.sqrt(5) + 1e-6), 1e-6)
    check_derivatives(lambda x: ops.clip_by_global_norm((x, x * 2))[1], X, order=2)


# Primitives ---------------------------------------------------------------------------------------


def test_printing_primitives() -> None:
    assert str(ops.MatMul()) == "Prim[MatMul]<transpose_a=False, transpose_b=False>"
    assert str(ops.Sin()) == "Prim[Sin]" and str(ops.Cast()) == "Prim[Cast]"
    assert str(ops.ReduceSum(True)) == "Prim[ReduceSum]<keep_dims=True, skip_mode=False>"
    assert str(ops.Split(0, 2)) == "Prim[Split]<axis=0, output_num=2>"
    assert str(ops.BroadcastTo((2,))) == "Prim[BroadcastTo]<shape=(2,)>"
    assert repr(ops.Gather()) == "Prim[Gather]<batch_dims=0>"


def test_primitive_arguments() -> None:
    x = ramp(2, 3)
    close(ops.MatMul(transpose_b=True)(x, x), x.asnumpy() @ x.asnumpy().T)
    close(ops.ReduceSum(keep_dims=True)(x, 1), [[3], [12]])
    close(ops.ReduceSum(skip_mode=True)(x, ()), x.asnumpy())
    close(
        ops.L2Normalize(1)(x),
        x.asnumpy() / np.linalg.norm(x.asnumpy(), axis=1, keepdims=True),
        1e-6,
    )
    close(ops.L2Loss()(x), 27.5)
    close(ops.CumSum(exclusive=True, reverse=True)(ramp(3), 0), [3, 2, 0])
    close(ops.AddN()([x, x]), 2 * x.asnumpy())
    assert ops.Shape()(x) == (2, 3) and ops.Rank()(x) == 2 and ops.Size()(x) == 6
    assert ops.DType()(x) == ms.float32 and ops.Depend()(x, None) is x
    close(ops.Softmax(0)(x), np_softmax(x.asnumpy(), 0), 1e-6)
    close(ops.GeLU()(x), ops.gelu(x, "tanh").asnumpy())
    close(ops.Fill()(ms.float32, (2,), 1.5), [1.5, 1.5])
    for bad in ({"transpose_a": 1}, {"transpose_c": True}):
        with pytest.raises(TypeError):
            ops.MatMul(**bad)
    with pytest.raises(TypeError, match="BroadcastTo"):
        ops.BroadcastTo()


def test_print_primitive(capsys: pytest.CaptureFixture[str]) -> None:
    x = ramp(2)
    assert ops.Print()(x) is x
    assert "Tensor(shape=[2], dtype=Float32" in capsys.readouterr().out


def test_composites_run_as_one_plan() -> None:
    from gradcell import _core

    x = ramp(4, 5)
    ops.softmax(x)
    before = _core.plan_cache_info()["runs"]
    ops.softmax(x)
    assert _core.plan_cache_info()["runs"] - before == 1
