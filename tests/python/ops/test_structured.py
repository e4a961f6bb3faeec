"""Every structured op, flag and axis: values against NumPy, derivatives to order 3 against finite
differences. The cases are in structured_rows.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from check_grads import check_grads, outputs
from structured_rows import CASES, REDUCTIONS, Case

import gradcell as ms
from gradcell import Parameter, Tensor, ops

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op}-{case.label}")
DIFFERENTIABLE = [case for case in CASES if case.order > 0]
MOVING = [case for case in CASES if case.moves]


def assert_same(results: Any, references: Any, rtol: float) -> None:
    got, expected = outputs(results), outputs(references)
    assert len(got) == len(expected)
    for g, e in zip(got, expected, strict=True):
        e = np.asarray(e)
        assert g.shape == e.shape
        atol = rtol * float(np.abs(e).max(initial=0.0)) if e.dtype != bool else 0.0
        np.testing.assert_allclose(g.asnumpy(), e, rtol=rtol, atol=atol)


@pytest.mark.one_in(12, by="case.op")
@every_case
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_value(case: Case, dtype: str) -> None:
    operands = [x.astype(dtype) for x in case.operands(seed=1)]
    results = case.run(*(Tensor(x) for x in operands))
    exact = case.reference(*(x.astype(np.float64) for x in operands))
    assert_same(results, exact, 1e-5 if dtype == "float32" else 1e-12)
    if case.order and "object" not in case.label:
        for result in outputs(results):
            assert result.asnumpy().dtype == dtype


@pytest.mark.one_in(50)
@pytest.mark.parametrize("case", MOVING, ids=lambda case: f"{case.op}-{case.label}")
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool", "float16"])
def test_moves_any_dtype(case: Case, dtype: str) -> None:
    if dtype == "bool" and case.label == "overlapping":
        pytest.skip("adds")
    operands = [(x * 20 + 40).astype(np.int64).astype(dtype) for x in case.operands(seed=2)]
    if dtype == "bool":
        operands = [x > 0 for x in case.operands(seed=2)]
    results = case.run(*(Tensor(x) for x in operands))
    assert_same(results, case.reference(*operands), 0.0)
    for result in outputs(results):
        assert result.asnumpy().dtype == dtype


@pytest.mark.one_in(24)
@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda case: f"{case.op}-{case.label}")
def test_gradients(case: Case) -> None:
    """In the middle of a composition, so that the higher derivatives are not zero: the operands
    come out of a cubic, which keeps their order, and the results go through a sine."""

    def composed(*xs: Any) -> Any:
        results = outputs(case.run(*(x + 0.1 * x * x * x for x in xs)))
        return tuple(ops.sin(y) + 0.3 * y * y for y in results)

    check_grads(composed, case.operands(seed=3), order=case.order)


@pytest.mark.one_in(72)
@pytest.mark.skipif(not hasattr(ms, "jvp"), reason="no forward mode yet")
@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda case: f"{case.op}-{case.label}")
@pytest.mark.parametrize("modes", [("fwd",), ("rev", "fwd"), ("fwd", "rev")], ids="-over-".join)
def test_forward_mode(case: Case, modes: tuple[str, ...]) -> None:
    def composed(*xs: Any) -> Any:
        results = outputs(case.run(*(x + 0.1 * x * x * x for x in xs)))
        return tuple(ops.sin(y) + 0.3 * y * y for y in results)

    check_grads(composed, case.operands(seed=4), order=min(case.order, 2), modes=modes)


@pytest.mark.one_in(24)
@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda case: f"{case.op}-{case.label}")
def test_gradient_shapes(case: Case) -> None:
    """Each gradient has its operand's shape and dtype, zero-size ones too."""
    operands = [Tensor(x.astype(np.float32)) for x in case.operands(seed=5)]
    if "float64" in case.label or (case.op, case.label) == ("Cast", "object"):
        pytest.skip("casts to float64")
    gradients = outputs(ms.grad(case.run, tuple(range(len(operands))))(*operands))
    assert len(gradients) == len(operands)
    for gradient, operand in zip(gradients, operands, strict=True):
        assert gradient.shape == operand.shape
        assert gradient.dtype == operand.dtype


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean"])
def test_reduction_of_many(op: str) -> None:
    """A float32 sum of 2**20 numbers keeps its digits: partial sums, not one running total."""
    x = np.random.default_rng(0).uniform(0.0, 1.0, 1 << 20).astype(np.float32)
    got = float(getattr(ops, op)()(Tensor(x)).asnumpy())
    exact = float(REDUCTIONS[op](x.astype(np.float64)))
    assert abs(got - exact) <= 1e-5 * exact


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64"])
def test_integer_reductions(dtype: str) -> None:
    """Tensor.sum and prod give int64; the primitives keep the dtype (MindSpore)."""
    x = np.array([[3, 1, 2], [2, 2, 1]]).astype(dtype)
    t = Tensor(x)
    for name in ("sum", "prod"):
        for result in (getattr(t, name)(), getattr(ops, name)(t)):
            assert result.asnumpy().dtype == np.int64
            assert int(result.asnumpy()) == getattr(x, name)(dtype=np.int64)
    if dtype == "bool":
        return
    for op in ("ReduceSum", "ReduceMax", "ReduceMin"):
        got = getattr(ops, op)()(t, 0).asnumpy()
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, REDUCTIONS[op](x, axis=0))
    for name in ("max", "min"):
        got = getattr(t, name)(axis=1).asnumpy()
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, getattr(x, name)(axis=1))


@pytest.mark.parametrize("op", ["ReduceAll", "ReduceAny"])
@pytest.mark.parametrize("axis", [(), 0, -1, (0, 1)], ids=str)
@pytest.mark.parametrize("keep", [False, True])
def test_bool_reductions(op: str, axis: Any, keep: bool) -> None:
    x = np.array([[True, False, True], [True, True, True]])
    reference = np.all if op == "ReduceAll" else np.any
    expected = reference(x, axis=None if axis == () else axis, keepdims=keep)
    got = getattr(ops, op)(keep)(Tensor(x), axis).asnumpy()
    np.testing.assert_array_equal(got, expected)
    assert got.shape == expected.shape
    assert got.dtype == np.bool_
    name = "all" if op == "ReduceAll" else "any"
    assert bool(getattr(Tensor(x), name)()) == getattr(x, name)()
    assert bool(getattr(Tensor(np.zeros((0, 2), bool)), name)()) == (name == "all")


@pytest.mark.parametrize("name", ["max", "min"])
def test_reductions_propagate_nan(name: str) -> None:
    x = np.array([[1.0, np.nan, 3.0], [np.inf, -np.inf, 0.0]])
    got = getattr(Tensor(x), name)(axis=1).asnumpy()
    np.testing.assert_array_equal(got, getattr(x, name)(axis=1))
    got = getattr(Tensor(x.T.copy()), name)(axis=0).asnumpy()
    np.testing.assert_array_equal(got, getattr(x, name)(axis=1))


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_ties_share_the_gradient(op: str) -> None:
    x = Tensor(np.array([[3.0, 1.0, 3.0], [1.0, 1.0, 3.0]]))
    expected = {
        "ReduceMax": [[0.5, 0.0, 0.5], [0.0, 0.0, 1.0]],
        "ReduceMin": [[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]],
    }[op]
    got = ms.grad(lambda x: getattr(ops, op)()(x, 1))(x).asnumpy()
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("axis", [0, 1, ()], ids=str)
def test_gradient_of_an_extreme_of_many(op: str, axis: Any) -> None:
    """Where there are too many elements for finite differences: 1 at the extreme, 0 elsewhere."""
    x = np.random.default_rng(0).permutation(300 * 70).reshape(300, 70).astype(np.float64)
    extreme = REDUCTIONS[op](x, axis=None if axis == () else axis, keepdims=True)
    got = ms.grad(lambda x: getattr(ops, op)()(x, axis))(Tensor(x)).asnumpy()
    np.testing.assert_array_equal(got, 1.0 * (x == extreme))


def test_max_with_index_gives_the_gradient_to_the_first() -> None:
    x = Tensor(np.array([[3.0, 1.0, 3.0], [1.0, 1.0, 3.0]]))
    got = ms.grad(lambda x: ops.max(x, 1)[0])(x).asnumpy()
    np.testing.assert_array_equal(got, [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_product_with_zeros(zeros: int) -> None:
    """The gradient of a product is not y / x: it holds where elements are zero."""
    x = np.array([2.0, -3.0, 0.5, 4.0])
    x[:zeros] = 0.0
    expected = [np.prod(np.delete(x, i)) for i in range(4)]
    got = ms.grad(lambda x: ops.prod(x))(Tensor(x)).asnumpy()
    np.testing.assert_allclose(got, expected, rtol=1e-14)
    check_grads(lambda x: ops.ReduceProd()(x, 0), [x], order=3)


def test_empty_sum_of_broadcast_infinity() -> None:
    """No terms sum to 0, also where each would have been infinite."""
    x = Tensor(np.array([[np.inf, np.nan, 1.0]]))
    got = ops.ReduceSum()(ops.broadcast_to(x, (0, 3)), 0).asnumpy()
    np.testing.assert_array_equal(got, [0.0, 0.0, 0.0])


def test_arg_dtypes() -> None:
    x = Tensor(np.array([[3.0, 1.0], [2.0, 2.0]]))
    assert str(ops.Argmax()(x).dtype) == "Int32"
    assert str(ops.Argmin()(x).dtype) == "Int32"
    assert str(ops.argmax(x).dtype) == "Int64"
    assert str(x.argmax().dtype) == "Int64"
    assert str(ops.argmin(x).dtype) == "Int32"
    np.testing.assert_array_equal(ops.argmax(x, 1).asnumpy(), [0, 0])  # the first of equals


def test_matmul_propagates_nan() -> None:
    """0 * nan and 0 * inf count."""
    x = np.array([[0.0, 1.0], [2.0, 3.0]])
    y = np.array([[np.nan, np.inf], [1.0, 1.0]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(ops.matmul(Tensor(x), Tensor(y)).asnumpy(), x @ y)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float16"])
def test_matmul_dtypes(dtype: str) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    y = np.arange(12).reshape(3, 4).astype(dtype)
    got = ops.matmul(Tensor(x), Tensor(y)).asnumpy()
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, x @ y)


def test_boolean_mask_of_the_values() -> None:
    """The result's shape depends on the values."""
    x = np.array([[0.5, -1.0, 2.0], [-0.3, 0.1, -2.0]])
    t = Tensor(x)
    np.testing.assert_array_equal(t[t > 0].asnumpy(), x[x > 0])
    got = ms.grad(lambda t: (t[t > 0] ** 2).sum())(t).asnumpy()
    np.testing.assert_allclose(got, np.where(x > 0, 2 * x, 0.0))


def test_cast_rounds_and_its_gradient_casts_back() -> None:
    x = np.linspace(-2.0, 2.0, 7)
    single = ops.cast(Tensor(x), ms.float32)
    np.testing.assert_array_equal(single.asnumpy(), x.astype(np.float32))
    got = ms.grad(lambda x: (ops.cast(x, ms.float32) ** 2).sum())(Tensor(x))
    assert got.asnumpy().dtype == np.float64
    np.testing.assert_allclose(got.asnumpy(), 2 * x, rtol=1e-6)


@pytest.mark.one_in(9, by="source")
@pytest.mark.parametrize("to", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16",
                                "float32", "float64"])  # fmt: skip
@pytest.mark.parametrize("source", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16",
                                    "float32", "float64"])  # fmt: skip
def test_cast_between(source: str, to: str) -> None:
    values = [0, 1, 2, 100] if source.startswith(("bool", "u")) else [0, 1, -3, 100]
    if not to.startswith(("bool", "i", "f")):
        values = [abs(v) for v in values]  # a negative float to unsigned is the machine's affair
    x = np.array(values).astype(source)
    got = ops.cast(Tensor(x), getattr(ms, f"{to}_" if to == "bool" else to)).asnumpy()
    assert got.dtype == to
    np.testing.assert_array_equal(got, x.astype(to))


def test_integer_cast_wraps() -> None:
    x = Tensor(np.array([300, -1, 128], dtype=np.int32))
    np.testing.assert_array_equal(ops.cast(x, ms.int8).asnumpy(), [44, -1, -128])
    np.testing.assert_array_equal(ops.cast(x, ms.uint8).asnumpy(), [44, 255, 128])


def test_cast_to_bfloat16_rounds_to_even() -> None:
    x = np.array([1.0, 1.00390625, 1.01171875, 3.4e38, -0.0, 1e-40, np.inf], dtype=np.float32)
    got = ops.cast(ops.cast(Tensor(x), ms.bfloat16), ms.float32).asnumpy()
    bits = x.view(np.uint32).astype(np.uint64)
    nearest = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32)
    np.testing.assert_array_equal(got, nearest.view(np.float32))
    nan = Tensor(np.array([np.nan], dtype=np.float32))
    assert np.isnan(ops.cast(ops.cast(nan, ms.bfloat16), ms.float32).asnumpy()[0])


def test_assign() -> None:
    parameter = Parameter(Tensor(np.array([1.0, 2.0], np.float32)), name="w")
    ops.assign(parameter, Tensor(np.array([3.0, 4.0], np.float32)))
    np.testing.assert_array_equal(parameter.asnumpy(), [3.0, 4.0])
    ops.Assign()(parameter, Tensor(np.array([5.0, 6.0], np.float32)))
    np.testing.assert_array_equal(parameter.asnumpy(), [5.0, 6.0])
    ops.assign_add(parameter, Tensor(np.array([1.0, 1.0], np.float32)))
    np.testing.assert_array_equal(parameter.asnumpy(), [6.0, 7.0])
    ops.assign_sub(parameter, Tensor(np.array([2.0, 2.0], np.float32)))
    np.testing.assert_array_equal(parameter.asnumpy(), [4.0, 5.0])


def test_assign_inside_a_differentiated_function() -> None:
    """What was read before the assignment keeps its value; later reads see the new one."""
    parameter = Parameter(Tensor(np.array([2.0, 3.0])), name="w")

    def fn(x: Any) -> Any:
        before = x * parameter
        ops.assign(parameter, Tensor(np.array([10.0, 20.0])))
        return (before * x).sum()

    got = ms.grad(fn)(Tensor(np.array([1.0, 2.0]))).asnumpy()
    np.testing.assert_array_equal(got, [4.0, 12.0])
    np.testing.assert_array_equal(parameter.asnumpy(), [10.0, 20.0])


def test_scatter_add_into_a_parameter() -> None:
    parameter = Parameter(Tensor(np.zeros((3, 2), np.float32)), name="w")
    ops.scatter_add(parameter, Tensor(np.array([0, 2, 0], np.int32)),
                    Tensor(np.ones((3, 2), np.float32)))  # fmt: skip
    np.testing.assert_array_equal(parameter.asnumpy(), [[2, 2], [0, 0], [1, 1]])


def test_stop_gradient() -> None:
    x = Tensor(np.array([1.0, 2.0]))
    got = ms.grad(lambda x: x * ops.stop_gradient(x))(x).asnumpy()
    np.testing.assert_array_equal(got, [1.0, 2.0])
    first = ms.grad(lambda x: ops.stop_gradient(x) * x * x)
    np.testing.assert_array_equal(ms.grad(first)(x).asnumpy(), [2.0, 4.0])
    np.testing.assert_array_equal(ms.grad(lambda x: ops.stop_gradient(x * x))(x).asnumpy(), [0, 0])


def draw_uniform(count: int) -> np.ndarray:
    return ops.UniformReal()((count,)).asnumpy()


def draw_normal(count: int) -> np.ndarray:
    return ops.StandardNormal()((count,)).asnumpy()


@pytest.mark.parametrize("draw", [draw_uniform, draw_normal])
def test_random_streams(draw: Any) -> None:
    """A seed fixes the sequence; draws differ; the first moments are right to 5 sigma."""
    ms.set_seed(7)
    first, second = draw(20000), draw(20000)
    ms.set_seed(7)
    np.testing.assert_array_equal(draw(20000), first)
    np.testing.assert_array_equal(draw(20000), second)
    ms.set_seed(8)
    assert not np.array_equal(draw(20000), first)
    assert not np.array_equal(first, second)
    assert first.dtype == np.float32
    mean, variance, kurtosis = (0.5, 1 / 12, 1.8) if draw is draw_uniform else (0.0, 1.0, 3.0)
    both = np.concatenate([first, second]).astype(np.float64)
    n = len(both)
    assert abs(both.mean() - mean) < 5 * np.sqrt(variance / n)
    assert abs(both.var() - variance) < 5 * variance * np.sqrt((kurtosis - 1) / n)
    assert abs(np.corrcoef(both[:-1], both[1:])[0, 1]) < 5 / np.sqrt(n)
    if draw is draw_uniform:
        assert both.min() >= 0.0
        assert both.max() < 1.0


def test_random_shapes_and_ranges() -> None:
    assert ops.UniformReal()((2, 3)).shape == (2, 3)
    assert ops.StandardNormal()((0, 3)).shape == (0, 3)
    x = ops.uniform((1000,), Tensor(2.0, ms.float32), Tensor(5.0, ms.float32)).asnumpy()
    assert x.min() >= 2.0
    assert x.max() <= 5.0
    assert x.max() - x.min() > 2.5


def test_dropout() -> None:
    """Kept elements are scaled by 1 / (1 - p); the gradient goes where the values went."""
    ms.set_seed(3)
    x = Tensor(np.ones(20000, np.float32))
    y = ops.dropout(x, 0.25).asnumpy()
    assert set(np.unique(y)) == {np.float32(0.0), np.float32(1 / 0.75)}
    assert abs((y != 0).mean() - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 20000)
    np.testing.assert_array_equal(ops.dropout(x, 0.25, training=False).asnumpy(), x.asnumpy())

    def both(x: Any) -> Any:
        y = ops.dropout(x, 0.25)
        return y.sum(), y

    gradient, (kept,) = ms.grad(both, has_aux=True)(x)
    np.testing.assert_array_equal(gradient.asnumpy(), kept.asnumpy())
