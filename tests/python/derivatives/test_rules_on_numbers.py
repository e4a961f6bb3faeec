"""Rules of derivatives that ask for numbers: each tangent gets its own, or the transform refuses."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*takes numbers out of a tensor:RuntimeWarning",
    "ignore:.*asked for a tensor's value:RuntimeWarning",
)
X = np.array([0.3, 0.7])


def on_numbers() -> gc.custom_jvp:
    """The sine, whose rule computes with NumPy."""
    sine = gc.custom_jvp(lambda x: ops.sin(x))

    @sine.defjvp
    def rule(primals: tuple[Tensor], tangents: tuple[Tensor]) -> tuple[Tensor, Tensor]:
        (x,), (t,) = primals, tangents
        return ops.sin(x), Tensor(np.cos(x.asnumpy()) * t.asnumpy())

    return sine


def pulled_on_numbers() -> gc.custom_vjp:
    sine = gc.custom_vjp(lambda x: ops.sin(x))
    sine.defvjp(
        lambda x: (ops.sin(x), x), lambda x, d: (Tensor(np.cos(x.asnumpy()) * d.asnumpy()),)
    )
    return sine


def test_linearize_runs_the_rule_for_each_tangent() -> None:
    value, along = gc.linearize(on_numbers(), Tensor(X))
    np.testing.assert_allclose(value.asnumpy(), np.sin(X), rtol=1e-15)
    for t in (X, 2 * X, np.array([-1.0, 5.0])):
        np.testing.assert_allclose(along(Tensor(t)).asnumpy(), np.cos(X) * t, rtol=1e-15)


def test_linearize_inside_a_transform() -> None:
    def twice(x: Tensor) -> Tensor:
        _, along = gc.linearize(on_numbers(), x)
        return along(x * 3)

    np.testing.assert_allclose(gc.jit(twice)(Tensor(X)).asnumpy(), 3 * X * np.cos(X), rtol=1e-15)


def test_first_orders_are_right() -> None:
    x, sine = Tensor(X), on_numbers()
    np.testing.assert_allclose(gc.jvp(sine, x, x)[1].asnumpy(), np.cos(X) * X, rtol=1e-15)
    np.testing.assert_allclose(ops.derivative(sine, x, 1)[1].asnumpy(), np.cos(X), rtol=1e-15)
    np.testing.assert_allclose(gc.jacfwd(sine)(x).asnumpy(), np.diag(np.cos(X)), rtol=1e-15)
    np.testing.assert_allclose(gc.grad(pulled_on_numbers())(x).asnumpy(), np.cos(X), rtol=1e-15)


NEEDS_ANY_TANGENT = {
    "grad": lambda f: gc.grad(f)(Tensor(X)),
    "derivative of order 2": lambda f: ops.derivative(f, Tensor(X), 2),
    "jet": lambda f: ops.jet(f, Tensor(X), Tensor(np.ones((2, 2)))),
    "laplacian": lambda f: gc.laplacian(f)(Tensor(X)),
    "partials": lambda f: gc.partials(f, [(0, 1)])(Tensor(X)),
    "jacfwd of many": lambda f: gc.jacfwd(f)(Tensor(np.linspace(0, 1, 9))),
}


@pytest.mark.parametrize("name", NEEDS_ANY_TANGENT)
def test_a_tangent_that_stands_for_any_has_no_numbers(name: str) -> None:
    with pytest.raises(ValueError, match=r"a value was asked for|asked for the value"):
        NEEDS_ANY_TANGENT[name](on_numbers())


def test_a_cotangent_that_stands_for_any_has_no_numbers() -> None:
    with pytest.raises(ValueError, match=r"tangent or cotangent that stands for any.*test_rules"):
        gc.jvp(pulled_on_numbers(), Tensor(X), Tensor(X))


def test_a_tangent_kept_by_its_rule() -> None:
    kept = []
    sine = gc.custom_jvp(lambda x: ops.sin(x))

    @sine.defjvp
    def rule(primals: tuple[Tensor], tangents: tuple[Tensor]) -> tuple[Tensor, Tensor]:
        kept.append(tangents[0])
        return ops.sin(primals[0]), ops.cos(primals[0]) * tangents[0]

    np.testing.assert_allclose(gc.grad(sine)(Tensor(X)).asnumpy(), np.cos(X), rtol=1e-15)
    with pytest.raises(ValueError, match="stands for any"):
        kept[0].asnumpy()


# Rows of points -----------------------------------------------------------------------------------

POINTS = np.array([[1.0, 2.0], [3.0, 4.0]])


def with_a_rule(bwd: object) -> gc.custom_vjp:
    square = gc.custom_vjp(lambda x: x * x)
    square.defvjp(lambda x: (x * x, x), bwd)
    return square


def test_a_rule_that_combines_rows() -> None:
    """The pullback sums over rows, so that its transpose spreads each row's tangent to all."""
    f = with_a_rule(lambda x, d: (2 * x * d.sum(0),))
    np.testing.assert_allclose(gc.laplacian(f)(Tensor(POINTS)).asnumpy(), np.full((2, 2), 4.0))
    with pytest.raises(ValueError, match="combines rows"):
        gc.partials(f, [(0,)])(Tensor(POINTS))


def test_a_rule_that_keeps_rows_apart() -> None:
    f = with_a_rule(lambda x, d: (2 * x * d,))
    np.testing.assert_allclose(gc.laplacian(f)(Tensor(POINTS)).asnumpy(), np.full((2, 2), 2.0))
    found = gc.partials(f, [(0,), (0, 0)])(Tensor(POINTS))
    np.testing.assert_allclose(found[0].asnumpy(), POINTS * 2 * [1, 0])
    np.testing.assert_allclose(found[1].asnumpy(), np.array([[2.0, 0], [2, 0]]))


def test_a_value_that_was_asked_for() -> None:
    """The value comes from outside the graph, the derivative from the rule: it combines rows."""
    f = gc.custom_vjp(lambda x: Tensor(np.square(x.asnumpy())))
    f.defvjp(lambda x: (f(x), x), lambda x, d: (2 * x * d.sum(0),))
    with pytest.raises(ValueError, match="combines rows"):
        gc.partials(f, [(0,)])(Tensor(POINTS))


def test_divergence_of_rows_moved() -> None:
    with pytest.raises(ValueError, match="moves them"):
        gc.divergence(lambda x: (x * x).T)(Tensor(POINTS))
    flat = gc.divergence(lambda x: (x * x).T, batched=False)(Tensor(POINTS))
    np.testing.assert_allclose(flat.asnumpy(), 2 * 1 + 2 * 4)
    np.testing.assert_allclose(
        gc.divergence(lambda x: (x.T * x.T).T)(Tensor(POINTS)).asnumpy(), 2 * POINTS.sum(1)
    )


def test_a_rule_that_calls_its_function() -> None:
    f = gc.custom_jvp(lambda x: ops.exp(x))
    f.defjvp(lambda p, t: (f(p[0]), f(p[0]) * t[0]))
    x = Tensor(POINTS)
    np.testing.assert_allclose(gc.laplacian(f)(x).asnumpy(), np.exp(POINTS), rtol=1e-14)
    np.testing.assert_allclose(gc.biharmonic(f)(x).asnumpy(), np.exp(POINTS), rtol=1e-14)
