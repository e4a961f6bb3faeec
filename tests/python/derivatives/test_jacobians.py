"""Jacobians, Hessians, products with them: against closed forms, and as the package prints them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, ParameterTuple, Tensor, mutable, nn, ops

A = np.array([[1, 2], [3, 4]], np.float32)
ONES = np.ones((2, 2), np.float32)
both = pytest.mark.parametrize("jacobian", [gc.jacfwd, gc.jacrev], ids=["jacfwd", "jacrev"])


def shown(x: Any) -> Any:
    """Structure and numbers."""
    if isinstance(x, Tensor):
        return x.asnumpy().tolist()
    if isinstance(x, dict):
        return {k: shown(v) for k, v in x.items()}
    return type(x)(shown(v) for v in x) if isinstance(x, (tuple, list)) else x


def diagonal(values: Any) -> np.ndarray:
    values = np.asarray(values)
    return np.diag(values.ravel()).reshape(*values.shape, *values.shape)


class Several(nn.Cell):
    def construct(self, x, y, z):
        return x**2 + y**2 + z**2, x * y * z


# Jacobians ------------------------------------------------------------------------------------------


@both
def test_printed_example(jacobian, mode: int) -> None:
    """MindSpore's docstring: one further output comes by itself, not in a tuple."""
    x, z = Tensor(A), Tensor(ONES)
    found, aux = jacobian(Several(), grad_position=0, has_aux=True)(x, x, z)
    np.testing.assert_array_equal(found.asnumpy(), diagonal(2 * A))
    np.testing.assert_array_equal(aux.asnumpy(), A * A)
    found, aux = jacobian(lambda x: (x**3, x * 2, x + 1), 0, True)(x)
    np.testing.assert_allclose(found.asnumpy(), diagonal(3 * A**2))
    assert shown(aux) == ((2 * A).tolist(), (A + 1).tolist())


@both
def test_positions_and_outputs(jacobian, mode: int) -> None:
    x, z = Tensor(A), Tensor(ONES)
    found = jacobian(Several(), (0, 2))(x, x, z)
    expected = [[2 * A, 2 * ONES], [A, A * A]]
    for row, wanted in zip(found, expected, strict=True):
        for block, w in zip(row, wanted, strict=True):
            np.testing.assert_array_equal(block.asnumpy(), diagonal(w))
    single = jacobian(lambda x, y: x * y, (1,))(x, x)
    np.testing.assert_array_equal(single.asnumpy(), diagonal(A))
    named = jacobian(lambda x: {"square": x * x, "rest": [x + 1]})(x)
    np.testing.assert_array_equal(named["square"].asnumpy(), diagonal(2 * A))
    np.testing.assert_array_equal(named["rest"][0].asnumpy(), diagonal(ONES))


@both
@pytest.mark.parametrize(
    ("m", "n"), [(1, 1), (2, 3), (3, 2), (7, 9), (9, 7), (1, 9), (9, 1), (0, 3)]
)
def test_linear(jacobian, m: int, n: int, mode: int) -> None:
    """Few rows are recorded one by one, many as a batch: the Jacobian of Mx is M."""
    matrix = np.random.default_rng(0).standard_normal((m, n))
    found = jacobian(lambda x: Tensor(matrix) @ x)(Tensor(np.zeros(n)))
    np.testing.assert_array_equal(found.asnumpy(), matrix)


@both
@pytest.mark.parametrize("n", [3, 20, 40])
def test_under_vmap(jacobian, n: int, mode: int) -> None:
    """Some rows are recorded one by one there, more as a batch in the batch."""
    matrix = np.random.default_rng(0).standard_normal((n, n))
    x = np.random.default_rng(1).standard_normal((5, n))
    found = gc.vmap(jacobian(lambda x: ops.tanh(Tensor(matrix) @ x)))(Tensor(x))
    slopes = 1 - np.tanh(x @ matrix.T) ** 2
    np.testing.assert_allclose(found.asnumpy(), slopes[:, :, None] * matrix, rtol=1e-12, atol=1e-14)


@both
def test_no_dependence(jacobian, mode: int) -> None:
    found = jacobian(lambda x: (ops.ones((2, 3), gc.float64), x))(Tensor(np.ones(6)))
    np.testing.assert_array_equal(found[0].asnumpy(), np.zeros((2, 3, 6)))
    np.testing.assert_array_equal(found[1].asnumpy(), np.eye(6))


@both
def test_scalar(jacobian, mode: int) -> None:
    assert float(jacobian(ops.square)(Tensor(3.0))) == 6.0


@pytest.mark.parametrize("order", [2, 3])
def test_nested_to_any_order(order: int, mode: int) -> None:
    """Of sum(exp(a x)) over all ways to nest forward and reverse mode: a outer a outer ..."""
    a = np.linspace(0.5, 1.5, 5)
    x = np.linspace(-0.5, 0.5, 5)
    expected = np.exp((a * x).sum())
    for _ in range(order):
        expected = np.multiply.outer(expected, a)
    for choice in range(2**order):
        fn: Any = lambda x: ops.exp(ops.sum(Tensor(a) * x))  # noqa: E731
        for k in range(order):
            fn = (gc.jacfwd if choice >> k & 1 else gc.jacrev)(fn)
        np.testing.assert_allclose(fn(Tensor(x)).asnumpy(), expected, rtol=1e-13)


def test_hessian(mode: int) -> None:
    x, y = np.linspace(0.2, 1.0, 6), np.linspace(-1, 1, 6)
    found = gc.hessian(lambda x, y: ops.sum(ops.sin(x) * ops.square(y)), (0, 1))(
        Tensor(x), Tensor(y)
    )
    mixed = np.diag(2 * np.cos(x) * y)
    expected = [[np.diag(-np.sin(x) * y * y), mixed], [mixed, np.diag(2 * np.sin(x))]]
    for row, wanted in zip(found, expected, strict=True):
        for block, w in zip(row, wanted, strict=True):
            np.testing.assert_allclose(block.asnumpy(), w, rtol=1e-13, atol=1e-15)
    single, aux = gc.hessian(lambda x: (ops.sum(x**3), x + 1), has_aux=True)(Tensor(x))
    np.testing.assert_allclose(single.asnumpy(), np.diag(6 * x))
    np.testing.assert_array_equal(aux.asnumpy(), x + 1)


def test_of_each_example_and_through_gradients(mode: int) -> None:
    """vmap of jacrev, and the gradient of a loss that holds a Jacobian, against differences."""
    gc.set_seed(1)
    net = nn.SequentialCell(
        nn.Dense(3, 6, dtype=gc.float64), nn.Tanh(), nn.Dense(6, 5, dtype=gc.float64)
    )
    x = np.random.default_rng(2).standard_normal((4, 3))
    by_rows = gc.vmap(gc.jacrev(net))(Tensor(x)).asnumpy()
    by_columns = gc.vmap(gc.jacfwd(net))(Tensor(x)).asnumpy()
    step = 1e-6
    for j in range(3):
        moved = [net(Tensor(x + s * step * np.eye(3)[j])).asnumpy() for s in (1, -1)]
        np.testing.assert_allclose(by_rows[:, :, j], (moved[0] - moved[1]) / (2 * step), rtol=1e-7)
    np.testing.assert_allclose(by_columns, by_rows, rtol=1e-12)
    weights = ParameterTuple(net.trainable_params())

    def penalty(x: Tensor) -> Tensor:
        return ops.sum(ops.square(gc.vmap(gc.jacrev(net))(x)))

    found = gc.grad(penalty, None, weights)(Tensor(x))[0].asnumpy()
    value = weights[0].asnumpy().copy()
    changed = value.copy()
    total = []
    for sign in (1, -1):
        changed[1, 2] = value[1, 2] + sign * 1e-5
        weights[0].set_data(Tensor(changed))
        total.append(float(penalty(Tensor(x))))
    np.testing.assert_allclose(found[1, 2], (total[0] - total[1]) / 2e-5, rtol=1e-6)


@both
@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda j, x: j(ops.sin, 1)(x), ValueError, r"grad_position must belong to \[0, 1\)"),
        (lambda j, x: j(ops.sin, -1)(x), ValueError, "must be >= 0"),
        (lambda j, x: j(ops.sin, 1.0)(x), TypeError, "must be int or tuple"),
        (lambda j, x: j(ops.sin, (0, 0))(x), ValueError, "duplicate positions"),
        (lambda j, x: j(ops.sin, 0, 1)(x), TypeError, "has_aux"),
        (lambda j, x: j(ops.sin, 0, True)(x), ValueError, "requires more than one outputs"),
        (lambda j, x: j(3)(x), TypeError, "must be a function"),
        (
            lambda j, x: j(ops.sin)(Tensor([1, 2])),
            TypeError,
            "cannot differentiate with respect to argument 0 of dtype Int64",
        ),
        (lambda j, x: j(lambda x: x > 0)(x), TypeError, "cannot be differentiated"),
        (lambda j, x: j(lambda x: 3)(x), TypeError, "returned no tensor"),
    ],
)
def test_errors(jacobian, call, kind, message) -> None:
    with pytest.raises(kind, match=message) as caught:
        call(jacobian, Tensor(A))
    assert "test_jacobians.py" in str(caught.value)


# Products -------------------------------------------------------------------------------------------


def test_hvp(mode: int) -> None:
    x, v = np.linspace(0.2, 1.0, 6), np.linspace(-1, 1, 6)
    value, product = gc.hvp(lambda x: ops.sum(x**3), Tensor(x), Tensor(v))
    np.testing.assert_allclose(float(value), (x**3).sum())
    np.testing.assert_allclose(product.asnumpy(), 6 * x * v)
    _, products = gc.hvp(
        lambda x, y: ops.sum(x * x * y), (Tensor(x), Tensor(v)), (Tensor(v), Tensor(x))
    )
    np.testing.assert_allclose(products[0].asnumpy(), 2 * v * v + 2 * x * x)
    np.testing.assert_allclose(products[1].asnumpy(), 2 * x * v)
    p = Parameter(Tensor(x), name="p")
    _, product = gc.hvp(lambda y: ops.sum(p**3 * y), Tensor(v), Tensor(v), p)
    np.testing.assert_allclose(product.asnumpy(), 6 * x * v * v)
    _, products = gc.hvp(lambda y: ops.sum(p**3 * y), Tensor(v), (Tensor(v),), [p])
    np.testing.assert_allclose(products[0].asnumpy(), 6 * x * v * v)
    with pytest.raises(ValueError, match=r"invalid length: should be 1, but got 2.*test_jacobians"):
        gc.hvp(ops.sum, Tensor(x), (Tensor(v), Tensor(v)))
    with pytest.raises(ValueError, match="same shapes and dtypes"):
        gc.hvp(ops.sum, Tensor(x), Tensor(v[:2]))


def test_linearize_printed_example(mode: int) -> None:
    class Net(nn.Cell):
        def construct(self, x, y):
            return ops.matmul(x, y)

    x = Tensor(np.array([[1, 2, 3], [3, 4, 5]], np.float32))
    y = Tensor(np.array([[1, 2], [3, 4], [5, 6]], np.float32))
    v = (
        Tensor(np.ones((2, 3), np.float32)),
        Tensor(np.array([[1, 1], [1, 1], [0, 0]], np.float32)),
    )
    output, jvp_fn = gc.linearize(Net(), (x, y))
    assert str(output) == "[[22. 28.]\n [40. 52.]]"
    assert str(jvp_fn(v)) == "[[12. 15.]\n [16. 19.]]"
    assert str(jvp_fn(list(v))) == "[[12. 15.]\n [16. 19.]]"
    assert str(ops.linearize(Net(), [x, y])[0]) == str(output)


def test_linearize(mode: int) -> None:
    """The function runs once; its point stays what it was; several outputs; inside jit and vmap."""
    calls = []
    p = Parameter(Tensor([2.0]), name="p")

    def fn(x):
        calls.append(1)
        return {"sin": ops.sin(x) * p, "rest": (x * 1, ops.ones(2))}

    x, v = Tensor([0.5, 1.0]), Tensor([1.0, -2.0])
    out, jvp_fn = gc.linearize(fn, x)
    p.set_data(Tensor([100.0]))
    for _ in range(3):
        moved = jvp_fn(v)
        np.testing.assert_allclose(
            moved["sin"].asnumpy(), 2 * np.cos([0.5, 1.0]) * [1, -2], rtol=1e-6
        )
        np.testing.assert_array_equal(moved["rest"][0].asnumpy(), v.asnumpy())
        np.testing.assert_array_equal(moved["rest"][1].asnumpy(), [0, 0])
    assert len(calls) == 1
    np.testing.assert_allclose(out["sin"].asnumpy(), 2 * np.sin([0.5, 1.0]), rtol=1e-6)

    def both_in_one(x, v):
        y, jvp_fn = gc.linearize(ops.sin, x)
        return y, jvp_fn(v), jvp_fn(2 * v)

    for call in (gc.jit(both_in_one), gc.vmap(both_in_one)):
        y, once, twice = call(x, v)
        np.testing.assert_allclose(y.asnumpy(), np.sin([0.5, 1.0]), rtol=1e-6)
        np.testing.assert_allclose(2 * once.asnumpy(), twice.asnumpy(), rtol=1e-6)
    with pytest.raises(TypeError, match=r"inputs must be tensors.*test_jacobians"):
        gc.linearize(ops.sin, 3)
    with pytest.raises(ValueError, match="invalid length"):
        jvp_fn((v, v))


def test_further_outputs_of_products(mode: int) -> None:
    """One comes by itself, several in a tuple."""
    x, z = Tensor(A), Tensor(ONES)

    def one(x, y):
        return x**3 + y, y

    def two(x, y):
        return x**3 + y, y, x

    assert shown(gc.jvp(one, (x, x), (z, z), has_aux=True)[2]) == A.tolist()
    assert shown(gc.jvp(two, (x, x), (z, z), True)[2]) == (A.tolist(), A.tolist())
    assert shown(gc.vjp(one, x, x, has_aux=True)[2]) == A.tolist()
    assert shown(gc.vjp(two, x, x, has_aux=True)[2]) == (A.tolist(), A.tolist())
    assert shown(gc.vjp(one, x, x, has_aux=True)[1](z)) == ((3 * A * A).tolist(), ONES.tolist())
    for call in (lambda: gc.jvp(ops.add, (x, x), (z, z), True),
                 lambda: gc.vjp(ops.add, x, x, has_aux=True)):  # fmt: skip
        with pytest.raises(ValueError, match="requires more than one outputs"):
            call()
    with pytest.raises(ValueError, match="invalid length: should be 2, but got 1"):
        gc.jvp(ops.add, (x, x), (z,))


def test_cells_of_products(mode: int) -> None:
    x, z = Tensor(A), Tensor(ONES)
    assert shown(nn.Jvp(ops.square)(x, z)) == ((A * A).tolist(), (2 * A).tolist())
    assert shown(nn.Jvp(ops.mul)(x, z, (z, z))) == (A.tolist(), (A + 1).tolist())
    assert shown(nn.Vjp(ops.square)(x, z)) == ((A * A).tolist(), (2 * A).tolist())
    assert shown(nn.Vjp(ops.mul)(x, z, x)) == (A.tolist(), (A.tolist(), (A * A).tolist()))


# Gradients by trees ---------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [mutable, lambda x: x], ids=["mutable", "plain"])
def test_by_trees(wrap, mode: int) -> None:
    """MindSpore's structures for mutable arguments; without it the same."""
    x, z = Tensor(A), Tensor(ONES)
    product = [ONES.tolist(), A.tolist()]
    assert shown(gc.grad(lambda t: t[0] * t[1])(wrap((x, z)))) == tuple(product)
    assert shown(gc.grad(lambda t: t[0] * t[1])(wrap([x, z]))) == product
    assert shown(gc.grad(lambda d: d["a"] * d["b"])(wrap({"a": x, "b": z}))) == {
        "a": ONES.tolist(), "b": A.tolist()}  # fmt: skip
    nested = gc.grad(lambda t: t[0] * t[1][0])(wrap((x, (z, x))))
    assert shown(nested) == (ONES.tolist(), (A.tolist(), (0 * A).tolist()))
    value, found = gc.value_and_grad(lambda x, d: x * d["a"], (0, 1))(x, wrap({"a": x}))
    assert shown(value) == (A * A).tolist()
    assert shown(found) == (A.tolist(), {"a": A.tolist()})
    named = gc.grad(lambda t: t[0] * t[1], return_ids=True)(wrap((x, z)))
    assert named[0] == 0
    assert shown(gc.get_grad(named, 0)) == tuple(product)


@pytest.mark.filterwarnings("ignore:.*is rounded towards zero:RuntimeWarning")
def test_by_mutable_numbers(mode: int) -> None:
    """A number is a scalar: its derivative is the true one, where MindSpore gives 0."""
    x = Tensor(A)
    assert float(gc.grad(lambda x: x * x)(mutable(3.0))) == 6.0
    assert int(gc.grad(lambda x: x * x * 1.0)(mutable(3))) == 6
    found = gc.grad(lambda x, t: ops.sum(x * t[0] * t[1]), (0, 1))(x, mutable((x, 3.0)))
    assert shown(found) == ((3 * A).tolist(), ((3 * A).tolist(), float((A * A).sum())))
    everything = ops.GradOperation(get_all=True)(lambda x, t: x * t[0])(x, mutable((x, 1.0)))
    assert shown(everything) == (A.tolist(), (A.tolist(), 0.0))
    for bad in ((), {}, "x", None):
        with pytest.raises(TypeError, match=r"argument 0: it is not a Tensor but .*test_jacobians"):
            gc.grad(lambda x: x)(bad)
