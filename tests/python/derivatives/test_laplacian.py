"""Laplacians and their kin, against exact partial derivatives of every op, differences of NumPy's
values, SymPy and nested transforms; what they do with functions that mix rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import op_rows
import pytest
import sympy
from check_grads import outputs
from numpy_adjoint import value_gradient_hessian
from op_rows import DIFFERENTIABLE, Row
from random_programs import decode
from structured_rows import CASES, Case
from tapes import GradcellTape, random_bytes

import gradcell as ms
from gradcell import Tensor, ops

PROGRAMS = 60

every_row = pytest.mark.parametrize("row", DIFFERENTIABLE, ids=lambda row: row.name)
every_case = pytest.mark.parametrize(
    "case",
    [c for c in CASES if c.order > 1 and 0 < sum(math.prod(s) for s in c.shapes) <= 40],
    ids=lambda case: f"{case.op}-{case.label}",
)


@pytest.fixture(params=["PYNATIVE_MODE", "GRAPH_MODE"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    before = ms.get_context("mode")
    ms.set_context(mode=getattr(ms, request.param))
    yield request.param
    ms.set_context(mode=before)


def assert_close(got: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * scale)


def traces(fn: Callable[..., Any], xs: list[np.ndarray], h: float) -> list[np.ndarray]:
    """The trace of the Hessian of each element of fn's outputs, by differences of fourth order."""
    weights = {-2: -1 / 12, -1: 16 / 12, 1: 16 / 12, 2: -1 / 12}
    middle = [np.asarray(y, np.float64) for y in outputs(fn(*xs))]
    total = [np.zeros_like(y) for y in middle]
    for k, x in enumerate(xs):
        for i in range(x.size):
            for n, w in weights.items():
                moved = [v.copy() for v in xs]
                moved[k].flat[i] += n * h
                for t, y, m in zip(total, outputs(fn(*moved)), middle, strict=True):
                    t += w * (np.asarray(y) - m)  # the weights and that of the middle add up to 0
    return [t / h**2 for t in total]


# Every op -------------------------------------------------------------------------------------------


@pytest.mark.one_in(12)
@every_row
def test_row(row: Row, mode: str) -> None:
    """Of s + s^2 / 2, where s is the sum of the row's values over a point's three elements: exactly
    sum of (1 + s) f'' + f'^2 over elements and operands."""
    operands = [x.reshape(4, 3) for x in op_rows.sample(row, 12, seed=21)]
    function = getattr(ops, row.function)

    def field(*xs: Any) -> Any:
        s = function(*xs).sum(1, keepdims=True)
        return s + 0.5 * s * s

    got = ms.laplacian(field, tuple(range(row.arity)))(*map(Tensor, operands)).asnumpy()
    s = row.numpy(*operands).sum(1, keepdims=True)
    expected = np.zeros((4, 1))
    for i in range(row.arity):
        first, second = (
            op_rows.exact_partial(row, operands, tuple(n * (k == i) for k in range(row.arity)))
            for n in (1, 2)
        )
        expected += ((1 + s) * second + first**2).sum(1, keepdims=True)
    assert_close(got, expected, 1e-11)


def composed(case: Case, tape: Any) -> Callable[..., Any]:
    def function(*xs: Any) -> Any:
        run = case.run if tape is ops else case.reference
        results = outputs(run(*(v + 0.1 * v * v * v for v in xs)))
        return tuple(tape.sin(y) + 0.3 * y * y for y in results)

    return function


@pytest.mark.one_in(32)
@every_case
def test_structured(case: Case) -> None:
    """Rows mix in most of these: the sum is over all elements of all operands."""
    xs = case.operands(seed=22)
    positions = tuple(range(len(xs)))
    got = outputs(ms.laplacian(composed(case, ops), positions)(*map(Tensor, xs)))
    expected = traces(composed(case, np), xs, 1e-3)
    for g, e in zip(got, expected, strict=True):
        assert g.shape == e.shape
        assert_close(g.asnumpy(), e, 1e-6)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_program(seed: int) -> None:
    """The trace of the Hessian that plain NumPy has, column by column."""
    program = decode(random_bytes(seed))
    points = program.inputs()
    if sum(x.size for x in points) > 40:
        pytest.skip("many columns")
    expected, scale = 0.0, 1.0
    for k, x in enumerate(points):
        for i in range(x.size):
            unit = [np.zeros_like(v) for v in points]
            unit[k].flat[i] = 1.0
            column = value_gradient_hessian(program, points, unit)[2]
            expected += float(column[k].flat[i])
            scale = max(scale, *(float(np.abs(c).max(initial=0.0)) for c in column))
    tape = GradcellTape()
    positions = tuple(range(len(points)))
    got = ms.laplacian(lambda *xs: program(tape, *xs), positions)(*map(Tensor, points))
    assert abs(float(got.asnumpy()) - expected) <= 1e-9 * scale, str(program)


# Networks -------------------------------------------------------------------------------------------


class Network(ms.nn.Cell):
    def __init__(self, sizes: list[int], activation: Callable[..., Any] = ops.tanh) -> None:
        super().__init__()
        rng = np.random.default_rng(5)
        self.weights = ms.ParameterTuple(
            [
                ms.Parameter(Tensor(rng.normal(size=(m, n)) / math.sqrt(m)), name=f"w{i}")
                for i, (m, n) in enumerate(itertools.pairwise(sizes))
            ]
        )
        self.biases = ms.ParameterTuple(
            [
                ms.Parameter(Tensor(rng.normal(size=n)), name=f"b{i}")
                for i, n in enumerate(sizes[1:])
            ]
        )
        self.activation = activation

    def construct(self, x: Any) -> Any:
        layers = list(zip(self.weights, self.biases, strict=True))
        for w, b in layers[:-1]:
            x = self.activation(ops.matmul(x, w) + b)
        w, b = layers[-1]
        return ops.matmul(x, w) + b

    def numpy(self, x: np.ndarray, activation: Callable[..., Any]) -> np.ndarray:
        layers = [
            (w.asnumpy(), b.asnumpy()) for w, b in zip(self.weights, self.biases, strict=True)
        ]
        for w, b in layers[:-1]:
            x = activation(x @ w + b)
        w, b = layers[-1]
        return x @ w + b


ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "tanh": (ops.tanh, np.tanh),
    "sin": (ops.sin, np.sin),
    "silu": (ops.silu, lambda x: x / (1 + np.exp(-x))),
    "softplus": (lambda x: ops.log1p(ops.exp(x)), lambda x: np.log1p(np.exp(x))),
}


def points(n: int, d: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_network(activation: str, d: int, mode: str) -> None:
    theirs, numpy = ACTIVATIONS[activation]
    net, x = Network([d, 9, 7, 2], theirs), points(6, d)
    expected = traces(lambda v: net.numpy(v, numpy), [x], 1e-3)[0]
    got = ms.laplacian(net)(Tensor(x))
    assert got.shape == (6, 2)
    assert_close(got.asnumpy(), expected, 1e-6)
    one = ms.laplacian(net)(Tensor(x[0])).asnumpy()  # a function of one point
    assert_close(one, expected[0], 1e-6)
    of_row = ms.laplacian(net)(Tensor(x[:1])).asnumpy()
    assert_close(of_row, expected[:1], 1e-6)


def test_inputs_in_several_arguments() -> None:
    net, x = Network([3, 8, 8, 1]), points(5, 3)

    def field(a: Any, b: Any) -> Any:
        return net(ops.concat((a, b), 1))

    whole = ms.laplacian(net)(Tensor(x)).asnumpy()
    a, b = Tensor(x[:, :1]), Tensor(x[:, 1:])
    by_both = ms.laplacian(field, (0, 1))(a, b).asnumpy()
    by_each = ms.laplacian(field, 0)(a, b).asnumpy() + ms.laplacian(field, 1)(a, b).asnumpy()
    assert_close(by_both, whole, 1e-13)
    assert_close(by_each, whole, 1e-13)


def test_gradient_by_parameters_and_points(mode: str) -> None:
    net, x = Network([2, 6, 6, 1]), points(7, 2)

    def loss(v: Any) -> Any:
        return (ms.laplacian(net)(v) ** 2).mean()

    def value() -> float:
        return float((traces(lambda v: net.numpy(v, np.tanh), [x], 2e-3)[0] ** 2).mean())

    parameters = [*net.weights, *net.biases]
    grads = ms.grad(loss, None, parameters)(Tensor(x))
    rng = np.random.default_rng(3)
    for parameter, g in zip(parameters, grads, strict=True):
        direction, kept = rng.normal(size=parameter.shape), parameter.asnumpy().copy()
        at = {}
        for n in (-2, -1, 1, 2):
            parameter.set_data(Tensor(kept + n * 2e-3 * direction))
            at[n] = value()
        parameter.set_data(Tensor(kept))
        expected = (at[-2] - 8 * at[-1] + 8 * at[1] - at[2]) / (12 * 2e-3)
        assert_close(np.array((g.asnumpy() * direction).sum()), np.array(expected), 1e-5)
    by_points = ms.grad(lambda v: ms.laplacian(net)(v).sum())(Tensor(x)).asnumpy()
    h = 1e-4
    for i in range(2):
        step = np.zeros((7, 2))
        step[:, i] = h
        ahead, back = (ms.laplacian(net)(Tensor(x + s * step)).asnumpy() for s in (1, -1))
        assert_close(by_points[:, i : i + 1], (ahead - back) / (2 * h), 1e-6)


def test_composes_with_the_other_transforms(mode: str) -> None:
    net, x = Network([3, 6, 6, 1]), points(5, 3)

    def u(v: Any) -> Any:  # of one point
        return net(v)[0]

    of_rows = ms.laplacian(net)(Tensor(x)).asnumpy()[:, 0]
    assert_close(ms.vmap(ms.laplacian(u))(Tensor(x)).asnumpy(), of_rows, 1e-12)
    assert_close(ms.laplacian(ms.vmap(u))(Tensor(x)).asnumpy(), of_rows, 1e-12)
    assert_close(ms.jit(ms.vmap(ms.laplacian(u)))(Tensor(x)).asnumpy(), of_rows, 1e-12)
    trace = ms.vmap(lambda v: ms.hessian(u)(v).diagonal().sum())(Tensor(x)).asnumpy()
    assert_close(of_rows, trace, 1e-12)
    twice = ms.biharmonic(u)(Tensor(x[0])).asnumpy()
    assert_close(ms.laplacian(ms.laplacian(u))(Tensor(x[0])).asnumpy(), twice, 1e-11)
    slope = ms.grad(ms.laplacian(u))(Tensor(x[0])).asnumpy()
    by_columns = ms.jacfwd(ms.laplacian(u))(Tensor(x[0])).asnumpy()
    assert_close(by_columns, slope, 1e-12)
    # The Laplacian's second gradient, and the Laplacian of a squared gradient.
    again = ms.hessian(ms.laplacian(u))(Tensor(x[0])).asnumpy()
    assert_close(np.trace(again), twice, 1e-11)
    squared = ms.laplacian(lambda v: (ms.grad(u)(v) ** 2).sum())(Tensor(x[0])).asnumpy()
    h = ms.hessian(u)(Tensor(x[0])).asnumpy()
    first = ms.grad(u)(Tensor(x[0])).asnumpy()
    assert_close(squared, 2 * (h * h).sum() + 2 * first @ slope, 1e-11)  # Bochner's identity


def test_aux_and_keywords() -> None:
    def field(v: Any, factor: Any = 1.0) -> Any:
        return (v**3).sum(1) * factor, v.sum()

    x = points(4, 2)
    got, aux = ms.laplacian(field, has_aux=True)(Tensor(x), factor=2.0)
    assert_close(got.asnumpy(), 12 * x.sum(1), 1e-13)
    assert_close(aux.asnumpy(), np.array(x.sum()), 1e-13)


# Formulas -------------------------------------------------------------------------------------------

X = sympy.symbols("x0:3")
FIELDS: list[tuple[Any, Callable[[Any], Any]]] = [
    (
        sympy.exp(X[0]) * sympy.sin(X[1]) + X[2] ** 4 * X[0] ** 2,
        lambda v: ops.exp(v[:, 0]) * ops.sin(v[:, 1]) + v[:, 2] ** 4 * v[:, 0] ** 2,
    ),
    (
        1 / sympy.sqrt(2 + X[0] ** 2 + X[1] ** 2 + X[2] ** 2),
        lambda v: ops.rsqrt(2 + (v * v).sum(1)),
    ),
    (
        sympy.atan(X[0] * X[1]) / (1 + X[2] ** 2),
        lambda v: ops.atan(v[:, 0] * v[:, 1]) / (1 + v[:, 2] ** 2),
    ),
    (
        (X[0] + 2 * X[1]) ** 3 * sympy.cos(X[2]),
        lambda v: (v[:, 0] + 2 * v[:, 1]) ** 3 * ops.cos(v[:, 2]),
    ),
]


def exactly(expression: Any, x: np.ndarray) -> np.ndarray:
    value = sympy.lambdify(X, expression, "mpmath")
    return np.array([float(value(*row)) for row in x.tolist()])


@pytest.mark.one_in(8)
@pytest.mark.parametrize("field", FIELDS, ids=lambda f: str(f[0]))
def test_formula(field: Any, mode: str) -> None:
    expression, function = field
    x = points(4, 3)

    def delta(e: Any) -> Any:
        return sum(sympy.diff(e, v, 2) for v in X)

    assert_close(ms.laplacian(function)(Tensor(x)).asnumpy(), exactly(delta(expression), x), 1e-12)
    twice = exactly(delta(delta(expression)), x)
    assert_close(ms.biharmonic(function)(Tensor(x)).asnumpy(), twice, 1e-11)
    nested = ms.laplacian(ms.laplacian(function))(Tensor(x))
    assert_close(nested.asnumpy(), twice, 1e-11)
    indices = [(0,), (2,), (0, 1), (1, 1), (2, 0, 0), (0, 0, 1, 1), (2, 2, 2, 2, 2), (0, 1, 2), ()]
    found = ms.partials(function, indices)(Tensor(x))
    assert isinstance(found, tuple)
    for index, got in zip(indices, found, strict=True):
        by = [X[i] for i in index]
        exact = exactly(sympy.diff(expression, *by) if by else expression, x)
        assert_close(got.asnumpy(), exact, 1e-11)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_biharmonic_of_a_network(d: int) -> None:
    net, x = Network([d, 6, 5, 1]), Tensor(points(3, d))
    got = ms.biharmonic(net)(x).asnumpy()
    assert_close(got, ms.laplacian(ms.laplacian(net))(x).asnumpy(), 1e-11)
    second = [tuple(sorted((i, i, j, j))) for i in range(d) for j in range(d)]
    assert_close(got, sum(p.asnumpy() for p in ms.partials(net, second)(x)), 1e-11)


def test_divergence(mode: str) -> None:
    x = points(5, 3)

    def field(v: Any) -> Any:
        a, b, c = v[:, 0:1], v[:, 1:2], v[:, 2:3]
        return ops.concat((a * a * b, ops.sin(b * c), a + ops.exp(c)), 1)

    expected = 2 * x[:, 0] * x[:, 1] + x[:, 2] * np.cos(x[:, 1] * x[:, 2]) + np.exp(x[:, 2])
    assert_close(ms.divergence(field)(Tensor(x)).asnumpy(), expected, 1e-13)
    one = ms.divergence(lambda v: field(v.reshape(1, 3)).reshape(3))(Tensor(x[0]))
    assert one.shape == ()
    assert_close(one.asnumpy(), expected[0], 1e-13)
    # The divergence of the gradient is the Laplacian.
    net = Network([3, 5, 1])
    of_gradient = ms.divergence(ms.grad(lambda v: net(v).sum()))(Tensor(x))
    assert_close(of_gradient.asnumpy(), ms.laplacian(net)(Tensor(x)).asnumpy()[:, 0], 1e-12)


def test_partials_of_several_arguments_and_outputs() -> None:
    t, x = points(4, 1, 2), points(4, 1, 3)

    def field(x: Any, t: Any) -> Any:
        return {"u": ops.sin(x) * ops.exp(t), "v": x * t * t}, ops.sqrt(ops.exp(t))

    got, aux = ms.partials(field, [(0, 1), (1, 1), 0], (0, 1), has_aux=True)(Tensor(x), Tensor(t))
    assert len(got) == 3
    assert_close(got[0]["u"].asnumpy(), np.cos(x) * np.exp(t), 1e-13)
    assert_close(got[0]["v"].asnumpy(), 2 * t, 1e-13)
    assert_close(got[1]["u"].asnumpy(), np.sin(x) * np.exp(t), 1e-13)
    assert_close(got[2]["v"].asnumpy(), t * t, 1e-13)
    assert_close(aux.asnumpy(), np.exp(t / 2), 1e-13)
    by_vectors = ms.partials(lambda a, b: ops.sin(a) * b, [(0, 1)], (0, 1), batched=True)
    assert_close(by_vectors(Tensor(x[:, 0]), Tensor(t[:, 0]))[0].asnumpy(), np.cos(x[:, 0]), 1e-13)


# Rows -----------------------------------------------------------------------------------------------


def normalised(v: Any) -> Any:
    return (v - v.mean(0)) / ops.sqrt(((v - v.mean(0)) ** 2).mean(0) + 1e-3)


MIXING: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "batch norm": (
        lambda v: ops.sin(normalised(v)),
        lambda v: np.sin((v - v.mean(0)) / np.sqrt(v.var(0) + 1e-3)),
    ),
    "sum": (lambda v: ops.sin(v).sum() ** 2, lambda v: np.sin(v).sum() ** 2),
    "flip": (lambda v: v[::-1] * v * v, lambda v: v[::-1] * v * v),
    "shift": (
        lambda v: ops.concat((v[1:], v[:1]), 0) ** 2 * v,
        lambda v: np.concatenate((v[1:], v[:1])) ** 2 * v,
    ),
    "gather": (lambda v: v[Tensor([3, 0, 0, 1])] * v**3, lambda v: v[[3, 0, 0, 1]] * v**3),
    "transposed product": (lambda v: ops.matmul(v.T, ops.sin(v)), lambda v: v.T @ np.sin(v)),
    "all pairs": (lambda v: ops.matmul(v, v.T) ** 2, lambda v: (v @ v.T) ** 2),
    "running sum": (lambda v: ops.cumsum(v * v, 0) * v, lambda v: np.cumsum(v * v, 0) * v),
    "square as rows": (
        lambda v: ops.sin(v) * v.reshape(2, 2, 2).transpose((1, 0, 2)).reshape(4, 2),
        lambda v: np.sin(v) * v.reshape(2, 2, 2).transpose((1, 0, 2)).reshape(4, 2),
    ),
    "first row": (lambda v: v**3 * v[:1], lambda v: v**3 * v[:1]),
    "softmax over rows": (
        lambda v: ops.softmax(v, 0) * v,
        lambda v: np.exp(v) / np.exp(v).sum(0) * v,
    ),
}


@pytest.mark.parametrize("name", MIXING)
def test_rows_that_mix_are_exact(name: str) -> None:
    theirs, numpy = MIXING[name]
    x = points(4, 2, 8)
    got = ms.laplacian(theirs)(Tensor(x)).asnumpy()
    assert_close(got, traces(numpy, [x], 1e-3)[0], 1e-6)
    with pytest.raises(ValueError, match=r"combines rows.*test_laplacian") as caught:
        ms.partials(theirs, [(0, 0)])(Tensor(x))
    assert str(caught.value).count("test_laplacian.py") == 2  # the op's line and the call's


APART: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "features": (
        lambda v: ops.softmax(v, 1) * v.sum(1, keepdims=True),
        lambda v: np.exp(v) / np.exp(v).sum(1, keepdims=True) * v.sum(1, keepdims=True),
    ),
    "transposed": (lambda v: ops.sin(v.T).T ** 2, lambda v: np.sin(v) ** 2),
    "columns first": (lambda v: ops.sin(v.T).sum(0), lambda v: np.sin(v).sum(1)),
    "cut up": (
        lambda v: (v.reshape(4, 3, 2) ** 3).sum(2)[:, ::-1],
        lambda v: (v.reshape(4, 3, 2) ** 3).sum(2)[:, ::-1],
    ),
    "as more rows": (
        lambda v: ops.matmul(ops.tanh(v.reshape(12, 2)), Tensor(W)).reshape(4, 9),
        lambda v: (np.tanh(v.reshape(12, 2)) @ W).reshape(4, 9),
    ),
    "pairs of features": (
        lambda v: ops.matmul(v.reshape(4, 3, 2), v.reshape(4, 2, 3)) ** 2,
        lambda v: (v.reshape(4, 3, 2) @ v.reshape(4, 2, 3)) ** 2,
    ),
    "picked": (lambda v: v[:, Tensor([0, 5, 5])] ** 3, lambda v: v[:, [0, 5, 5]] ** 3),
    "joined": (
        lambda v: ops.ReduceMax()(ops.concat((v**2, ops.sin(v)), 1), 1),
        lambda v: np.concatenate((v**2, np.sin(v)), 1).max(1),
    ),
    "running": (lambda v: ops.cumsum(v, 1) ** 2, lambda v: np.cumsum(v, 1) ** 2),
    "with a table": (lambda v: ops.sin(v) * Tensor(TABLE), lambda v: np.sin(v) * TABLE),
    "left product": (
        lambda v: ops.matmul(Tensor(W.T), ops.sin(v[:, :2]).T).T,
        lambda v: (W.T @ np.sin(v[:, :2]).T).T,
    ),
    "flat": (lambda v: (v.reshape(-1) ** 3).reshape(4, 6), lambda v: v**3),
}
W = np.random.default_rng(0).normal(size=(2, 3))
TABLE = np.random.default_rng(0).normal(size=(4, 6))


@pytest.mark.parametrize("name", APART)
def test_rows_that_stay_apart(name: str) -> None:
    """Six directions do for four rows: partials take the function for one of rows."""
    theirs, numpy = APART[name]
    x = points(4, 6, 9)
    expected = traces(numpy, [x], 1e-3)[0]
    assert_close(ms.laplacian(theirs)(Tensor(x)).asnumpy(), expected, 1e-6)
    parts = ms.partials(theirs, [(i, i) for i in range(6)])(Tensor(x))
    assert_close(sum(p.asnumpy() for p in parts), expected, 1e-6)


def test_elements_as_rows() -> None:
    x = points(7, 1)[:, 0]
    got = ms.laplacian(lambda v: ops.sin(v) * v)(Tensor(x)).asnumpy()
    assert_close(got, 2 * np.cos(x) - x * np.sin(x), 1e-13)
    scalar = ms.laplacian(lambda v: v**3)(Tensor(np.float64(2.0)))
    assert_close(scalar.asnumpy(), np.array(12.0), 1e-13)


def test_half_types_and_float32() -> None:
    net, x = Network([3, 16, 16, 1]), points(5, 3)
    exact = ms.laplacian(net)(Tensor(x)).asnumpy()
    weights = [Tensor(w.asnumpy()) for w in net.weights]
    biases = [Tensor(b.asnumpy()) for b in net.biases]
    for dtype, tolerance in ((ms.float32, 1e-5), (ms.float16, 2e-2), (ms.bfloat16, 2e-1)):

        def narrow(v: Any, dtype: Any = dtype) -> Any:
            for w, b in zip(weights[:-1], biases[:-1], strict=True):
                v = ops.tanh(ops.matmul(v, w.astype(dtype)) + b.astype(dtype))
            return ops.matmul(v, weights[-1].astype(dtype)) + biases[-1].astype(dtype)

        got = ms.laplacian(narrow)(Tensor(x).astype(dtype))
        assert got.dtype == dtype
        assert_close(got.astype(ms.float32).asnumpy(), exact, tolerance)


def test_empty() -> None:
    net = Network([3, 4, 1])
    assert ms.laplacian(net)(Tensor(np.zeros((0, 3)))).shape == (0, 1)
    assert ms.divergence(lambda v: v * v)(Tensor(np.zeros((0, 3)))).shape == (0,)
    nothing = ms.laplacian(lambda v: v.sum(1))(Tensor(np.zeros((3, 0))))
    np.testing.assert_array_equal(nothing.asnumpy(), np.zeros(3))


# Bad input ------------------------------------------------------------------------------------------


def bad() -> list[tuple[type[Exception], str, Callable[[], Any]]]:
    x = Tensor(points(4, 2))
    many = Tensor(points(1000, 2))
    return [
        (TypeError, "must be a function", lambda: ms.laplacian(3)),
        (TypeError, "has_aux", lambda: ms.laplacian(ops.sin, 0, 1)),
        (TypeError, "not a Tensor", lambda: ms.laplacian(ops.sin)(1.0)),
        (TypeError, "cast it to a floating", lambda: ms.laplacian(ops.sin)(Tensor([1, 2]))),
        (IndexError, "grad_position 1 is out of range", lambda: ms.laplacian(ops.sin, 1)(x)),
        (
            ValueError,
            "combines rows of arguments",
            lambda: ms.laplacian(lambda v: v.sum() ** 2)(many),
        ),
        (TypeError, "no tensor", lambda: ms.laplacian(lambda v: 3.0)(x)),
        (TypeError, "cannot be differentiated", lambda: ms.laplacian(lambda v: v > 0)(x)),
        (ValueError, "more than one", lambda: ms.laplacian(ops.sin, has_aux=True)(x)),
        (IndexError, "no coordinate 2", lambda: ms.partials(ops.sin, [(0, 2)])(x)),
        (IndexError, "no coordinate -1", lambda: ms.partials(ops.sin, [-1])(x)),
        (TypeError, "tuple of ints", lambda: ms.partials(ops.sin, [0.5])),
        (TypeError, "tuple of ints", lambda: ms.partials(ops.sin, [(True,)])),
        (
            ValueError,
            "the same number of points",
            lambda: ms.partials(ops.add, [0], (0, 1))(x, x[:1]),
        ),
        (ValueError, "shape of its argument", lambda: ms.divergence(lambda v: v.sum(1))(x)),
        (TypeError, "must be an int", lambda: ms.divergence(ops.sin, (0, 1))),
        (ValueError, "combines rows", lambda: ms.divergence(normalised)(x)),
    ]


@pytest.mark.parametrize("index", range(17))
def test_operators_refuse_bad_arguments(index: int) -> None:
    error, text, call = bad()[index]
    with pytest.raises(error, match=text) as caught:
        call()
    if "has_aux" not in text:
        assert "test_laplacian.py" in str(caught.value)


# Plans ----------------------------------------------------------------------------------------------


def test_everything_runs_in_one_pass_over_the_points() -> None:
    """Laplacian and gradient by the weights: no activations in memory between two passes."""
    net, x = Network([3, 32, 32, 1]), Tensor(points(512, 3))
    parameters = [*net.weights, *net.biases]

    def loss(v: Any) -> Any:
        return (ms.laplacian(net)(v) ** 2).mean()

    text = ms.plan_text(ms.value_and_grad(loss, None, parameters), x)
    assert text.count("region rows=512") == 1


def test_directions_share_what_they_can() -> None:
    """d + 2 products a layer, but none in the first: a unit direction picks a row of the weights."""
    net, x = Network([5, 8, 8, 8, 1]), Tensor(points(4, 5))
    text = ms.graph_text(ms.laplacian(net), x)
    # By layer: the value; value, directions and sum; the same; the sum (the value is not asked for).
    assert text.count("MatMul") == 1 + 7 + 7 + 1
