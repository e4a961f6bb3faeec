"""Taylor series through every op and through random programs, against mpmath, SymPy, differences of
NumPy's values and nested forward mode; ops.jet and ops.derivative as MindSpore has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import op_rows
import pytest
import sympy
from check_grads import outputs
from mpmath import mp
from numpy_adjoint import value_gradient_hessian
from op_rows import DIFFERENTIABLE, REFERENCE_DIGITS, Row
from random_programs import decode
from structured_rows import CASES, Case
from tapes import GradcellTape, random_bytes

import gradcell as ms
from gradcell import Tensor, ops

ORDER = 6
PROGRAMS = 150
#: A curve's derivatives, for each operand.
CURVES = ((0.7, -0.4, 0.9, 0.2, -0.6, 1.1), (-0.5, 0.8, 0.3, -1.2, 0.4, 0.6))

every_row = pytest.mark.parametrize("row", DIFFERENTIABLE, ids=lambda row: row.name)
every_case = pytest.mark.parametrize(
    "case", [c for c in CASES if c.order > 0], ids=lambda case: f"{case.op}-{case.label}"
)


@pytest.fixture(params=["PYNATIVE_MODE", "GRAPH_MODE"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    before = ms.get_context("mode")
    ms.set_context(mode=getattr(ms, request.param))
    yield request.param
    ms.set_context(mode=before)


def assert_close(got: np.ndarray, expected: np.ndarray, tolerance: float, what: str = "") -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def nested(fn: Callable[..., Any], direction: tuple[Tensor, ...], order: int) -> Callable[..., Any]:
    """The derivative of that order along a line, by forward mode in forward mode."""
    for _ in range(order):

        def fn(*xs: Any, fn: Callable[..., Any] = fn) -> Any:
            return ms.jvp(fn, xs, direction)[1]

    return fn


# Rows -----------------------------------------------------------------------------------------------


def exact_jet(row: Row, operands: list[np.ndarray]) -> np.ndarray:
    """Derivatives of orders 1 to ORDER of the row along CURVES."""
    found = []
    with mp.workdps(REFERENCE_DIGITS):
        for point in zip(*(x.tolist() for x in operands), strict=True):

            def along(t: Any, point: Any = point) -> Any:
                moved = [
                    mp.mpf(x)
                    + sum(c * t ** (k + 1) / math.factorial(k + 1) for k, c in enumerate(curve))
                    for x, curve in zip(point, CURVES, strict=False)
                ]
                return row.exact(*moved)

            found.append([float(d) for d in list(mp.diffs(along, 0, ORDER))[1:]])
    return np.array(found).T


@pytest.mark.one_in(12)
@every_row
def test_row_along_a_curve(row: Row, mode: str) -> None:
    operands = op_rows.sample(row, 7, seed=11)
    series = tuple(Tensor(np.repeat(np.array(c)[:, None], 7, axis=1)) for c in CURVES[: row.arity])
    function = getattr(ops, row.function)
    value, got = ops.jet(function, tuple(Tensor(x) for x in operands), series)
    np.testing.assert_array_equal(value.asnumpy(), function(*map(Tensor, operands)).asnumpy())
    assert got.dtype == ms.float64
    for k, expected in enumerate(exact_jet(row, operands)):
        assert_close(got.asnumpy()[k], expected, 1e-10, f"order {k + 1}")


@pytest.mark.one_in(6)
@every_row
def test_row_against_nested_forward_mode(row: Row) -> None:
    operands = tuple(map(Tensor, op_rows.sample(row, 5, seed=12)))
    ones = tuple(ops.ones_like(x) for x in operands)
    function = getattr(ops, row.function)
    for order in range(1, ORDER + 1):
        _, got = ops.derivative(function, operands, order)
        expected = nested(function, ones, order)(*operands)
        assert_close(got.asnumpy(), expected.asnumpy(), 1e-9, f"order {order}")


def test_kinks_are_the_adjoints() -> None:
    for name, point, by_operand in op_rows.KINKS:
        for i, slope in enumerate(by_operand):
            xs = [Tensor(np.array([v])) for v in point]

            def of_one(v: Any, name: str = name, xs: Any = xs, i: int = i) -> Any:
                return getattr(ops, name)(*xs[:i], v, *xs[i + 1 :])

            _, got = ops.jet(of_one, xs[i], Tensor(np.array([[1.0], [0.0]])))
            np.testing.assert_array_equal(got.asnumpy()[0], [slope], f"{name} {point} {i}")


x = sympy.symbols("x")
FORMULAS: list[tuple[Any, Callable[[Any], Any]]] = [
    (sympy.tanh(x) * sympy.log(1 + x**2), lambda v: ops.tanh(v) * ops.log(1 + v * v)),
    (sympy.exp(sympy.sin(x)), lambda v: ops.exp(ops.sin(v))),
    (1 / (1 + sympy.exp(-x * x)), lambda v: ops.sigmoid(v * v)),
    (sympy.erf(x) / sympy.sqrt(2 + sympy.cos(x)), lambda v: ops.erf(v) / ops.sqrt(2 + ops.cos(v))),
    ((2 + sympy.sin(x)) ** x, lambda v: ops.pow(2 + ops.sin(v), v)),
    (sympy.atan(x) ** 3 - x**5, lambda v: ops.atan(v) ** 3 - v**5),
    (sympy.asinh(x * sympy.exp(-x)), lambda v: ops.asinh(v * ops.exp(-v))),
]


@pytest.mark.one_in(7)
@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: str(f[0]))
def test_formula_against_sympy(formula: Any, mode: str) -> None:
    expression, function = formula
    points = np.array([-1.3, -0.4, 0.2, 0.9, 1.7])
    for order in range(1, ORDER + 1):
        exact = sympy.lambdify(x, sympy.diff(expression, x, order), "mpmath")
        with mp.workdps(30):
            expected = np.array([float(exact(mp.mpf(v))) for v in points])
        _, got = ops.derivative(function, Tensor(points), order)
        assert_close(got.asnumpy(), expected, 1e-11, f"order {order}")


def test_order_twelve() -> None:
    expression, function = FORMULAS[0]
    points = np.linspace(-2.0, 2.0, 8)
    exact = sympy.lambdify(x, expression, "mpmath")
    with mp.workdps(40):
        expected = np.array([float(mp.diff(exact, mp.mpf(v), 12)) for v in points])
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-4)):
        _, got = ops.derivative(function, Tensor(points.astype(dtype)), 12)
        assert_close(got.asnumpy().astype(np.float64), expected, tolerance)


# Structured ops -------------------------------------------------------------------------------------


def composed(case: Case, tape: Any) -> Callable[..., Any]:
    """The case in the middle, so that higher derivatives are not zero."""

    def function(*xs: Any) -> Any:
        run = case.run if tape is ops else case.reference
        results = outputs(run(*(v + 0.1 * v * v * v for v in xs)))
        return tuple(tape.sin(y) + 0.3 * y * y for y in results)

    return function


def small(case: Case) -> bool:
    return sum(math.prod(shape) for shape in case.shapes) <= 200


@pytest.mark.one_in(32)
@every_case
def test_structured_against_differences(case: Case) -> None:
    """Second derivatives along a line, by differences of what NumPy gives."""
    operands = case.operands(seed=6)
    rng = np.random.default_rng(7)
    direction = [rng.uniform(-1.0, 1.0, v.shape) for v in operands]
    h = 1e-3 if small(case) else 2e-5
    weights = {-2: -1 / 12, -1: 16 / 12, 0: -30 / 12, 1: 16 / 12, 2: -1 / 12}
    reference = composed(case, np)
    at = {
        n: [
            np.asarray(y)
            for y in reference(*(v + n * h * d for v, d in zip(operands, direction, strict=True)))
        ]
        for n in weights
    }
    series = tuple(Tensor(np.stack([d, np.zeros_like(d)])) for d in direction)
    _, got = ops.jet(composed(case, ops), tuple(map(Tensor, operands)), series)
    for i, second in enumerate(got if isinstance(got, list) else [got]):
        expected = sum(w * at[n][i] for n, w in weights.items()) / h**2
        assert_close(second.asnumpy()[1], expected, 2e-6 if small(case) else 2e-4)


@pytest.mark.one_in(32)
@every_case
def test_structured_against_nested_forward_mode(case: Case) -> None:
    if not small(case):
        pytest.skip("long")
    operands = tuple(map(Tensor, case.operands(seed=8)))
    rng = np.random.default_rng(9)
    direction = tuple(Tensor(rng.uniform(-1.0, 1.0, v.shape)) for v in operands)
    order = ORDER if case.op in ("MatMul", "ReduceMax", "CumProd", "CumSum", "Concat") else 3
    series = tuple(
        ops.concat([ops.reshape(d, (1, *d.shape)), ops.zeros((order - 1, *d.shape), d.dtype)], 0)
        for d in direction
    )
    _, got = ops.jet(composed(case, ops), operands, series)
    for k in range(1, order + 1):
        expected = outputs(nested(composed(case, ops), direction, k)(*operands))
        for g, e in zip(got if isinstance(got, list) else [got], expected, strict=True):
            assert_close(g.asnumpy()[k - 1], e.asnumpy(), 1e-9, f"order {k}")


# Programs -------------------------------------------------------------------------------------------


@pytest.mark.one_in(20)
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_program(seed: int) -> None:
    """The second derivative along a direction v is v'Hv, of which plain NumPy knows Hv."""
    program = decode(random_bytes(seed))
    points, direction = program.inputs(), program.direction()
    _, first, second = value_gradient_hessian(program, points, direction)
    tape = GradcellTape()
    tensors = tuple(map(Tensor, points))
    towards = tuple(map(Tensor, direction))
    series = tuple(Tensor(np.stack([v, 0 * v, 0 * v])) for v in direction)
    _, got = ops.jet(lambda *xs: program(tape, *xs), tensors, series)
    slope = sum(float((g * v).sum()) for g, v in zip(first, direction, strict=True))
    curvature = sum(float((h * v).sum()) for h, v in zip(second, direction, strict=True))
    third = nested(lambda *xs: program(tape, *xs), towards, 3)(*tensors)
    scale = max(1.0, *(float(np.abs(h).max(initial=0.0)) for h in (*first, *second)))
    expected = np.array([slope, curvature, float(third.asnumpy())])
    error = np.abs(got.asnumpy() - expected) / np.array(
        [scale, scale, max(scale, abs(expected[2]))]
    )
    assert (error <= 1e-9).all(), f"{got} not {expected}\n{program}"


# Composition ----------------------------------------------------------------------------------------


def test_composes_with_the_other_transforms(mode: str) -> None:
    """d/dw of the third derivative, a series of a gradient, a series in a series."""
    points = Tensor(np.array([0.3, -0.8, 1.1]))

    def curve(v: Any, w: Any) -> Any:
        return ops.sin(w * v)

    def third(w: Any) -> Any:
        return ops.derivative(lambda v: curve(v, w), points, 3)[1].sum()

    w = np.float64(1.4)
    v = points.asnumpy()
    # third derivative: -w^3 cos(w v); by w: -3 w^2 cos(w v) + w^3 v sin(w v)
    slope = (-3 * w**2 * np.cos(w * v) + w**3 * v * np.sin(w * v)).sum()
    curvature = (
        -6 * w * np.cos(w * v) + 6 * w**2 * v * np.sin(w * v) + w**3 * v**2 * np.cos(w * v)
    ).sum()
    assert_close(ms.grad(third)(Tensor(w)).asnumpy(), slope, 1e-13)
    assert_close(ms.grad(ms.grad(third))(Tensor(w)).asnumpy(), curvature, 1e-13)
    assert_close(ops.derivative(third, Tensor(w), 2)[1].asnumpy(), curvature, 1e-13)
    assert_close(ms.jvp(third, Tensor(w), Tensor(1.0, ms.float64))[1].asnumpy(), slope, 1e-13)
    of_gradient = ops.derivative(ms.grad(lambda v: ops.sin(v).sum()), points, 3)[1]
    assert_close(of_gradient.asnumpy(), np.sin(v), 1e-13)
    assert_close(ms.jit(ms.grad(third))(Tensor(w)).asnumpy(), slope, 1e-13)


def test_under_vmap() -> None:
    points = np.linspace(-1.0, 1.0, 6)
    got = ms.vmap(lambda v: ops.derivative(lambda t: ops.sin(2 * t), v, 5)[1])(Tensor(points))
    assert_close(got.asnumpy(), 32 * np.cos(2 * points), 1e-13)
    whole = ops.derivative(ms.vmap(lambda t: ops.exp(t * t)), Tensor(points), 2)[1].asnumpy()
    assert_close(whole, (2 + 4 * points**2) * np.exp(points**2), 1e-13)


def test_a_cells_parameters() -> None:
    class Net(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(Tensor(np.array([0.5, 1.5])), name="w")

        def construct(self, v: Any) -> Any:
            return ops.exp(self.w * v)

    net, points = Net(), Tensor(np.array([0.2, -0.7]))

    def loss() -> Any:
        return ops.derivative(net, points, 2)[1].sum()

    w, v = np.array([0.5, 1.5]), points.asnumpy()
    got = ms.grad(loss, None, net.w)()
    assert_close(got.asnumpy(), (2 * w + w**2 * v) * np.exp(w * v), 1e-13)


# As MindSpore has them: what it printed for the same text -------------------------------------------


def test_shapes_and_structures(mode: str) -> None:
    points = Tensor(np.array([[1, 2], [3, 4.0]], np.float32))
    series = Tensor(np.array([np.ones((2, 2)), np.zeros((2, 2)), np.zeros((2, 2))], np.float32))

    def wave(v: Any) -> Any:
        return ops.exp(ops.sin(v))

    value, third = ops.derivative(wave, points, 3)
    np.testing.assert_allclose(
        value.asnumpy(), [[2.319777, 2.4825778], [1.1515628, 0.4691642]], 2e-6
    )
    np.testing.assert_allclose(
        third.asnumpy(), [[-4.0515366, 3.6724353], [0.5053504, -0.52061415]], 2e-5
    )
    value, all_three = ops.jet(wave, points, series)
    assert all_three.shape == (3, 2, 2)
    np.testing.assert_allclose(
        all_three.asnumpy()[:2],
        [[[1.2533808, -1.0331168], [-1.1400385, -0.3066662]],
         [[-1.2748207, -1.8274734], [0.966121, 0.55551505]]], 2e-5)  # fmt: skip
    _, one = ops.jet(wave, points, points)  # series of the primal's shape: of order 1
    np.testing.assert_allclose(
        one.asnumpy(), [[[1.2533807, -2.0662339], [-3.4201155, -1.2266644]]], 1e-5
    )

    def two(v: Any) -> Any:
        return ops.sin(v), ops.cos(v)

    values, stacks = ops.jet(two, points, series)
    assert isinstance(values, list)
    assert [v.shape for v in values] == [(2, 2)] * 2
    assert [s.shape for s in stacks] == [(3, 2, 2)] * 2
    values, stacks = ops.derivative(two, points, 2)
    assert isinstance(stacks, list)
    assert [s.shape for s in stacks] == [(2, 2)] * 2

    def product(a: Any, b: Any) -> Any:
        return ops.sin(a) * b

    value, second = ops.derivative(product, (points, points), 2)
    np.testing.assert_allclose(
        second.asnumpy(), [[0.2391336, -2.6508884], [-2.4033451, 1.7199228]], 1e-5
    )
    value, second = ops.derivative(wave, Tensor([1, 2]), 2)
    assert value.dtype == second.dtype == ms.float32
    np.testing.assert_allclose(second.asnumpy(), [-1.2748205, -1.8274732], 1e-5)
    _, none = ops.jet(wave, points, Tensor(np.zeros((0, 2, 2), np.float32)))
    assert none.shape == (0, 2, 2)
    _, scalar = ops.jet(wave, Tensor(1.0), Tensor([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(scalar.asnumpy(), [1.2533808, -1.2748205, -4.0515366], 1e-5)


def test_what_does_not_depend_is_zero() -> None:
    points = Tensor(np.array([0.5, 1.5]))
    _, got = ops.derivative(lambda v: ops.ones_like(v) * 3.0, points, 2)
    np.testing.assert_array_equal(got.asnumpy(), [0.0, 0.0])
    _, got = ops.derivative(lambda v: ops.stop_gradient(ops.sin(v)) + v, points, 1)
    np.testing.assert_array_equal(got.asnumpy(), [1.0, 1.0])


def bad(name: str) -> list[tuple[type[Exception], str, Callable[[], Any]]]:
    a = Tensor(np.ones((2, 2), np.float32))
    s = Tensor(np.ones((3, 2, 2), np.float32))
    two = lambda p, q: p * q  # noqa: E731
    half = Tensor(np.ones((2, 2), np.float16))
    cases: dict[str, list[tuple[type[Exception], str, Callable[[], Any]]]] = {
        "jet": [
            (ValueError, "shape of each element", lambda: ops.jet(ops.sin, a, s[:, :1])),
            (ValueError, "shape of each element", lambda: ops.jet(ops.sin, a, Tensor(1.0))),
            (ValueError, "lengths of primals and series", lambda: ops.jet(two, (a, a), (s,))),
            (ValueError, "equally many orders", lambda: ops.jet(two, (a, a), (s, s[:2]))),
            (ValueError, "shape of each element", lambda: ops.jet(two, (a, a), (s, s[:, :1]))),
            (TypeError, "must be both Tensor or tuple", lambda: ops.jet(two, [a, a], [s, s])),
            (TypeError, "must be both Tensor or tuple", lambda: ops.jet(ops.sin, 1.0, 1.0)),
            (
                TypeError,
                "must be the same and belong",
                lambda: ops.jet(ops.sin, a, s.astype(ms.float64)),
            ),
            (TypeError, "must be the same and belong", lambda: ops.jet(ops.sin, half, half)),
            (TypeError, "must be a function", lambda: ops.jet(3, a, s)),
            (TypeError, "cannot be differentiated", lambda: ops.jet(lambda v: v > 0, a, s)),
        ],
        "derivative": [
            (
                ValueError,
                "should not be less than 1, but got 0",
                lambda: ops.derivative(ops.sin, a, 0),
            ),
            (TypeError, "type of order must be int", lambda: ops.derivative(ops.sin, a, 1.5)),
            (TypeError, "type of order must be int", lambda: ops.derivative(ops.sin, a, True)),
            (TypeError, "must belong to", lambda: ops.derivative(ops.sin, half, 1)),
            (TypeError, "must be Tensor", lambda: ops.derivative(ops.sin, 1.0, 1)),
            (ValueError, "must not be empty", lambda: ops.derivative(ops.sin, (), 1)),
            (TypeError, "must be a function", lambda: ops.derivative(3, a, 1)),
        ],
    }
    return cases[name]


@pytest.mark.parametrize(
    ("name", "index"), [("jet", i) for i in range(11)] + [("derivative", i) for i in range(7)]
)
def test_series_refuse_bad_arguments(name: str, index: int) -> None:
    error, text, call = bad(name)[index]
    with pytest.raises(error, match=text) as caught:
        call()
    assert "test_taylor.py" in str(caught.value)


def test_a_failing_function_leaves_no_trace() -> None:
    def fails(v: Any) -> Any:
        raise KeyError("here")

    with pytest.raises(KeyError):
        ops.derivative(fails, Tensor([1.0]), 2)
    np.testing.assert_allclose(
        ops.derivative(ops.sin, Tensor([1.0]), 2)[1].asnumpy(), [-math.sin(1.0)], 1e-6
    )
