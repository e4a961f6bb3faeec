"""Random programs: values, gradients and Hessian-vector products against NumPy and JAX.

Two references that share nothing with gradcell: forward over reverse in plain NumPy
(numpy_adjoint.py), itself checked by finite differences here, and JAX in float64 on the CPU for a
subset, where it is installed.
"""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st
from numpy_adjoint import NumpyTape, Var, value_gradient_hessian
from random_programs import HEADER, MAX_OPS, Program, decode
from tapes import TOLERANCE, GradcellTape, random_bytes

import gradcell as ms
from gradcell import Tensor

#: Of hypothesis; each is one program.
PROGRAMS = 2000


@st.composite
def program_bytes(draw: st.DrawFn) -> bytes:
    ops_wanted = draw(st.integers(3, MAX_OPS))
    size = HEADER + 4 * ops_wanted
    return draw(st.binary(min_size=size, max_size=size))


def as_tuple(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def reference(program: Program) -> tuple[float, list[np.ndarray], list[np.ndarray]]:
    return value_gradient_hessian(program, program.inputs(), program.direction())


def measure(program: Program, jit: bool = False) -> tuple[float, list[Any], list[Any]]:
    """By gradcell: the value, the gradient, and the gradient of the gradient along the
    direction."""
    tensors = [Tensor(x) for x in program.inputs()]
    towards = [Tensor(v) for v in program.direction()]
    positions = tuple(range(len(tensors)))
    tape = GradcellTape()

    def loss(*xs: Any) -> Any:
        return program(tape, *xs)

    def slope(*xs: Any) -> Any:
        gradients = as_tuple(ms.grad(loss, positions)(*xs))
        products = [(g * v).sum() for g, v in zip(gradients, towards, strict=True)]
        total = products[0]
        for product in products[1:]:
            total = total + product
        return total

    first_of, second_of = ms.value_and_grad(loss, positions), ms.grad(slope, positions)
    if jit:
        first_of, second_of = ms.jit(first_of), ms.jit(second_of)
    value, first = first_of(*tensors)
    second = second_of(*tensors)
    return (
        float(value.asnumpy()),
        [g.asnumpy() for g in as_tuple(first)],
        [g.asnumpy() for g in as_tuple(second)],
    )


def assert_agree(program: Program, got: Any, expected: Any) -> None:
    for what, g, e in zip(("value", "gradient", "Hessian"), got, expected, strict=True):
        many = what != "value"
        pairs = list(zip(g, e, strict=True)) if many else [(g, e)]
        scale = max([1.0, *(float(np.abs(y).max(initial=0.0)) for _, y in pairs)])
        for i, (x, y) in enumerate(pairs):
            assert np.shape(x) == np.shape(y), f"{what} of input {i}\n{program}"
            error = float(np.abs(np.asarray(x) - y).max(initial=0.0))
            # Written so that a NaN fails.
            assert error <= TOLERANCE * scale, f"{what} of input {i}: {x} not {y}\n{program}"


@pytest.mark.one_in(40)
@pytest.mark.parametrize("part", range(40))
def test_random_programs(part: int) -> None:
    @settings(
        max_examples=PROGRAMS // 40,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @seed(part)
    @given(data=program_bytes())
    def agree(data: bytes) -> None:
        program = decode(data)
        assert_agree(program, measure(program), reference(program))

    agree()


@pytest.mark.one_in(10)
@pytest.mark.parametrize("seed", range(100))
def test_random_programs_jit(seed: int) -> None:
    program = decode(random_bytes(seed))
    assert_agree(program, measure(program, jit=True), reference(program))


@pytest.mark.one_in(2)
def test_programs_cover_the_ops() -> None:
    """The generator reaches every op, both short and long programs, and mostly live ones."""
    programs = [decode(random_bytes(seed)) for seed in range(400)]
    lengths = {len(program.steps) for program in programs}
    assert min(lengths) == 3
    assert max(lengths) <= MAX_OPS
    assert len(lengths) > 20
    counts = collections.Counter(step.op for program in programs for step in program.steps)
    rare = {"minimum", "maximum", "floor", "relu", "abs", "reduce_max", "reduce_min"}
    wanted = {"matmul", "concat", "where", "gather", "cumsum", "index", "transpose", "div", *rare}
    assert all(counts[op] >= 10 for op in wanted), counts
    constant = sum(all((g == 0).all() for g in reference(program)[1]) for program in programs)
    assert constant < len(programs) / 10


@pytest.mark.one_in(6)
@pytest.mark.parametrize("seed", range(60))
def test_reference_by_finite_differences(seed: int) -> None:
    """The NumPy reference against itself: values give the slope, gradients the curvature."""
    program = decode(random_bytes(seed))
    x, v = program.inputs(), program.direction()
    value, first, second = value_gradient_hessian(program, x, v)
    step = 1e-5  # less than the distance to a kink, which later ops may have shortened

    def along(t: float) -> tuple[float, list[np.ndarray]]:
        moved = [a + t * b for a, b in zip(x, v, strict=True)]
        return value_gradient_hessian(program, moved, v)[:2]

    def stencil(f: Any) -> Any:
        return (8 * (f(1) - f(-1)) - (f(2) - f(-2))) / (12 * step)

    points = {n: along(n * step) for n in (-2, -1, 1, 2)}
    slope = stencil(lambda n: points[n][0])
    expected = sum(float((g * b).sum()) for g, b in zip(first, v, strict=True))
    assert abs(slope - expected) <= 1e-6 * max(1.0, abs(expected), abs(value)), str(program)
    scale = max([1.0, *(float(np.abs(h).max(initial=0.0)) for h in (*first, *second))])
    for i, h in enumerate(second):
        curvature = stencil(lambda n, i=i: points[n][1][i])
        assert np.abs(curvature - h).max(initial=0.0) <= 1e-5 * scale, str(program)


class JaxTape:
    """NumpyTape's methods, with jax.numpy's."""

    def __init__(self) -> None:
        import jax

        self.jax, self.np = jax, jax.numpy
        self.names = {"neg": "negative", "atan": "arctan", "asinh": "arcsinh"}

    def constant(self, value: Any) -> Any:
        return self.np.asarray(value, dtype=self.np.float64)

    def unary(self, name: str, x: Any) -> Any:
        if name in ("relu", "sigmoid"):
            return getattr(self.jax.nn, name)(x)
        if name in ("erf", "rsqrt"):
            return getattr(self.jax.lax, name)(x)
        return getattr(self.np, self.names.get(name, name))(x)

    def __getattr__(self, name: str) -> Any:
        """add, matmul, maximum, where, reshape, ...: as jax.numpy has them."""
        names = {"sub": "subtract", "mul": "multiply", "div": "divide"}
        return getattr(self.np, names.get(name, name))

    def index(self, x: Any, index: Any) -> Any:
        return x[index]

    def gather(self, x: Any, indices: np.ndarray, axis: int) -> Any:
        return self.np.take(x, indices, axis)

    def concat(self, xs: list[Any], axis: int) -> Any:
        return self.np.concatenate(xs, axis)

    def reduce_sum(self, x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        return self.np.sum(x, axes, keepdims=keep)

    def reduce_mean(self, x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        return self.np.mean(x, axes, keepdims=keep)

    def reduce_max(self, x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        return self.np.max(x, axes, keepdims=keep)

    def reduce_min(self, x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        return self.np.min(x, axes, keepdims=keep)


def by_jax(program: Program) -> tuple[float, list[Any], list[Any]]:
    import jax

    tape = JaxTape()
    inputs = tuple(jax.numpy.asarray(x) for x in program.inputs())
    towards = tuple(jax.numpy.asarray(v) for v in program.direction())
    gradient = jax.value_and_grad(lambda *xs: program(tape, *xs), tuple(range(len(inputs))))
    (value, first), (_, second) = jax.jvp(gradient, inputs, towards)
    return float(value), [np.asarray(g) for g in first], [np.asarray(g) for g in second]


@pytest.mark.parametrize("seed", range(1000, 1012))  # JAX takes 2 s a program to compile
def test_against_jax(seed: int) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    program = decode(random_bytes(seed))
    expected = by_jax(program)
    assert_agree(program, reference(program), expected)
    assert_agree(program, measure(program), expected)


def test_tape_counts_shared_results_once() -> None:
    """x used twice adds its two cotangents; an unused input has gradient 0."""

    def fn(tape: NumpyTape, x: Var, unused: Var) -> Var:
        y = tape.mul(x, x)
        return tape.reduce_sum(tape.mul(y, y), (0,), False)

    x, v = np.array([1.0, 2.0]), np.array([1.0, -1.0])
    value, first, second = value_gradient_hessian(fn, [x, x], [v, v])
    assert value == 17.0
    np.testing.assert_allclose(first, [4 * x**3, 0 * x])
    np.testing.assert_allclose(second, [12 * x**2 * v, 0 * x])
