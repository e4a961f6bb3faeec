"""`physics.solve` against exact solutions: what it finds, what it says, what it refuses."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops, physics
from gradcell.physics import Ball, Box, dirichlet, neumann
from gradcell.physics.orthogonal import LeastSquares, Rows
from gradcell.physics.waves import Coordinates, steep_sites

sys.path.append(str(Path(__file__).parents[3] / "bench"))
from solve_hard import HARD
from solve_recipe import RECIPES

PI = float(np.pi)
#: However slow the machine is: all end by their tolerances.
solve = functools.partial(physics.solve, max_seconds=1e6)


def laplace(u: Any) -> Any:
    return gc.laplacian(u)


def relative(found: Any, want: Any) -> float:
    return float(np.linalg.norm(found - want) / np.linalg.norm(want))


def test_a_linear_equation_on_a_disk() -> None:
    def exact(x: Any, m: Any = ops) -> Any:
        return m.exp(x[:, :1]) * m.sin(x[:, 1:])

    edge = [(lambda u: dirichlet(u, exact), None)]
    found = solve(laplace, Ball([0.2, 0], 1), edge, tolerance=1e-8)
    x = Ball([0.2, 0], 1).interior(500, 3, "uniform")
    error = relative(found.values(x), exact(x, np))
    assert found.reached and error < 1e-8 and error < 10 * found.error
    assert len(found.networks) == 1 and found.history[-1].unknowns >= 150
    assert found.why[0].startswith("The residuals are linear in u")
    np.testing.assert_allclose(found(Tensor(x)).asnumpy(), found.values(x), atol=1e-10)


def test_conditions_with_normals_and_two_unknowns() -> None:
    """u' = v, v' = -u on an interval by values at one end and a slope at the other."""

    def equation(u: Any) -> Any:
        slope = gc.partials(u, [(0,)])

        def residual(x: Tensor) -> Tensor:
            (d,), f = slope(x), u(x)
            return ops.concat((d[:, :1] - f[:, 1:], d[:, 1:] + f[:, :1]), 1)

        return residual

    def left(u: Any) -> Any:
        return lambda x: u(x)[:, :1]

    def right(u: Any) -> Any:
        return neumann(lambda x: u(x)[:, :1], np.cos(2.0))

    ends = [(left, lambda p: p[:, 0] == 0), (right, lambda p: p[:, 0] == 2)]
    found = solve(equation, Box([0], [2]), ends, outputs=2, tolerance=1e-9)
    x = np.linspace(0, 2, 50)[:, None]
    np.testing.assert_allclose(found.values(x), np.hstack([np.sin(x), np.cos(x)]), atol=1e-9)


def test_a_periodic_axis_repeats_with_all_derivatives() -> None:
    def heat(u: Any) -> Any:
        parts = gc.partials(u, [(0,), (1, 1)])

        def residual(x: Tensor) -> Tensor:
            u_t, u_xx = parts(x)
            return u_t - u_xx / 10

        return residual

    def start(x: Tensor) -> Tensor:
        return ops.sin(2 * x[:, 1:] + 1)

    begin = [(lambda u: dirichlet(u, start), lambda p: p[:, 0] == 0)]
    found = solve(heat, Box([0, 0], [1, 2 * PI]), begin, time=0, periodic=[1], tolerance=1e-7)
    x = np.random.default_rng(0).uniform([0, 0], [1, 2 * PI], (300, 2))
    want = np.exp(-0.4 * x[:, :1]) * np.sin(2 * x[:, 1:] + 1)
    assert relative(found.values(x), want) < 1e-6
    slope = gc.partials(found, [(1,)])
    ends = [Tensor(np.array([[0.3, z], [0.9, z]])) for z in (0.0, 2 * PI)]
    a, b = (slope(x)[0].asnumpy() for x in ends)
    np.testing.assert_allclose(a, b, atol=1e-9)


def front(x: Any, m: Any = ops) -> Any:
    """A front that moves: Burgers' equation with a viscosity of 0.01."""
    return 0.5 - 0.5 * m.tanh((x[:, 1:] - 0.5 * x[:, :1]) / 0.04)


def burgers(u: Any) -> Any:
    parts = gc.partials(u, [(0,), (1,), (1, 1)])

    def residual(x: Tensor) -> Tensor:
        u_t, u_x, u_xx = parts(x)
        return u_t + u(x) * u_x - 0.01 * u_xx

    return residual


def test_a_moving_front_is_followed_through_time() -> None:
    given = [(lambda u: dirichlet(u, front), lambda p: (p[:, 0] == 0) | (np.abs(p[:, 1]) == 1))]
    passes: list[physics.Solution] = []
    found = solve(
        burgers, Box([0, -1], [1, 1]), given, time=0, tolerance=5e-3, callback=passes.append
    )
    x = np.random.default_rng(0).uniform([0, -1], [1, 1], (500, 2))
    errors = [relative(p.values(x), front(x, np)) for p in passes]
    assert found.reached and errors[-1] < 5e-3 and errors[-1] < errors[0]
    assert len(found.networks) == len(found.ends) > 1 and found.ends[-1] == 1
    text = " ".join(found.why)
    assert "Newton" in text and "Axis 1 is stretched" in text and "Time is in" in text
    np.testing.assert_allclose(found(Tensor(x)).asnumpy(), found.values(x), atol=1e-10)
    residual = burgers(found)(Tensor(x)).asnumpy()
    assert np.sqrt(np.mean(residual**2)) < 0.05


def ring(x: Any, m: Any = ops) -> Any:
    """A steep ring, which no stretched coordinate follows."""
    return m.tanh((m.sqrt(x[:, :1] ** 2 + x[:, 1:] ** 2 + 0.01) - 0.6) / 0.08)


def of_ring(nonlinear: bool) -> Any:
    """An equation that a ring solves."""

    def equation(u: Any) -> Any:
        second, want = gc.laplacian(u), gc.laplacian(ring)
        less = (lambda x: u(x) ** 3 - ring(x) ** 3) if nonlinear else (lambda x: 0.0)
        return lambda x: second(x) - want(x) - less(x)

    return equation


@pytest.mark.parametrize("nonlinear", [False, True])
def test_pieces_of_space_where_more_waves_do_not_pay(nonlinear: bool) -> None:
    """Beside a hole, whose pieces are cut by it or left out."""
    shape = Box([0, 0], [1, 1]) - Ball([0.5, 0.5], 0.3)
    edge = [
        (lambda u: dirichlet(u, ring), lambda p: p.min(1) == 0),
        (lambda u: dirichlet(u, ring), lambda p: p.min(1) > 0),
    ]
    passes: list[physics.Solution] = []
    found = solve(of_ring(nonlinear), shape, edge, tolerance=2e-3, callback=passes.append)
    x = shape.interior(500, 3, "uniform")
    errors = [relative(p.values(x), ring(x, np)) for p in passes]
    assert found.reached and errors[-1] < 2e-3 and errors[-1] < errors[0] / 10
    assert len(found.networks) > 3 and "space is in" in " ".join(found.why)
    np.testing.assert_allclose(found(Tensor(x)).asnumpy(), found.values(x), atol=1e-9)
    outside = np.array([[-0.1, 0.3], [1.1, 1.2]])  # by the pieces that end there
    np.testing.assert_allclose(found(Tensor(outside)).asnumpy(), found.values(outside), atol=1e-9)
    # Values and slopes agree where pieces meet.
    slopes = gc.partials(found, [(0,)])
    sides = [
        Tensor(np.array([[0.5 + e, y] for y in (0.03, 0.1, 0.15, 0.9)])) for e in (-1e-9, 1e-9)
    ]
    for f in (found, lambda x: slopes(x)[0]):
        before, behind = (f(x).asnumpy() for x in sides)
        assert np.abs(before - behind).max() < 0.02 * np.abs(before).max()


def test_pieces_that_contradict_the_waves_before_begin_all_again(monkeypatch: Any) -> None:
    """As where few waves of a flow have a solution that the equation does not have: Newton's steps of the
    first pieces are led astray, and do not end. What begins again is what the next seed begins with."""
    from gradcell.physics import pieces, recipe

    newton, waves, astray = pieces.Fit.newton, [], []
    lines: list[Any] = []  # values along which something steep was looked for

    def steep(x: Any, values: Any, *rest: Any) -> Any:
        lines.append(values[0])
        return steep_sites(x, values, *rest)

    def stopped(fit: Any, linear: bool) -> bool:
        if len(fit.places) > 1 and len(astray) < 4:
            astray.append(fit)
            fit.amplitudes = [10 * a for a in fit.amplitudes]
            newton(fit, True)
            fit.amplitudes = [10 * a for a in fit.amplitudes]
            return False
        if len(fit.places) == 1:
            waves.append(fit.places[0].phases[0, 0])
        return newton(fit, linear)

    monkeypatch.setattr(pieces.Fit, "newton", stopped)
    monkeypatch.setattr(recipe, "steep_sites", steep)
    edge = [(lambda u: dirichlet(u, ring), None)]
    shape = Box([0, 0], [1, 1])
    found = solve(of_ring(True), shape, edge, tolerance=2e-3)
    counts = [p.pieces for p in found.history]
    again = counts.index(1, counts.index(4))  # one piece after the first four
    assert found.reached and counts[again:].count(1) > 1 and len(astray) == 4
    assert found.history[again - 1].misfit > 10 * found.history[again - 2].misfit
    assert waves[0] != waves[-1] and any("all began again" in w for w in found.why)
    x = shape.interior(500, 3, "uniform")
    assert relative(found.values(x), ring(x, np)) < 2e-3
    before = len(lines)
    other = solve(of_ring(True), shape, edge, tolerance=2e-3, seed=1)
    np.testing.assert_array_equal(found.values(x), other.values(x))
    again, first = lines[:before], lines[before:]
    np.testing.assert_array_equal(again[-len(first) :], first)


def test_outputs_that_are_not_needed_in_a_piece_are_left_out() -> None:
    """sqrt(r) is needed in the piece with the corner alone; order 2 along x, 1 along y."""
    from gradcell.physics.asked import Asked
    from gradcell.physics.pieces import Fitter

    def equation(u: Any) -> Any:
        parts = gc.partials(u, [(0, 0), (1,)])
        return lambda x: parts(x)[0] - parts(x)[1]

    def root(x: Tensor) -> Tensor:
        return ops.sqrt(ops.sqrt((x * x).sum(1, keepdims=True)))

    edge = [(lambda u: dirichlet(u, 0.0), None)]
    asked = Asked(
        equation, Box([0, 0], [1, 1]), edge, 2, None, (), lambda v: physics.enriched(v, root)
    )
    fitter = Fitter(asked, 0)
    boxes = [
        Coordinates(np.array(low), np.array(low) + 0.5, ((), ()))
        for low in ([0.0, 0.0], [0.0, 0.5], [0.5, 0.0], [0.5, 0.5])
    ]
    pieces = fitter.together(boxes, [np.full(2, 4.0)] * 4, 150, None, None)
    assert all(np.abs(p.amplitudes).max() < 1e-12 for p in pieces)  # u is 0
    plans = fitter._plans_for(150, 0)
    random = np.random.default_rng(0)
    needed = [
        fitter._place(plans, of, np.full(2, 4.0), None, random).unknown.reshape(150, 2).all(0)
        for of in boxes
    ]
    assert [list(n) for n in needed] == [[True, True]] + [[True, False]] * 3
    assert [fitter._order(k) for k in (0, 1)] == [2, 1]


def sum_of(*terms: tuple[Any, Sequence[int]]) -> Any:
    """An equation: the sum of derivatives times numbers or functions of points, with u u_x beside it."""

    def equation(u: Any) -> Any:
        parts = gc.partials(u, [(0,), *(tuple(axes) for _, axes in terms)])

        def residual(x: Tensor) -> Tensor:
            slope, *found = parts(x)
            factors = [a(x) if callable(a) else a for a, _ in terms]
            return u(x) * slope + sum(a * f for a, f in zip(factors, found, strict=True))

        return residual

    return equation


def strip(x: Tensor) -> Tensor:
    """1 in a twentieth of the square, else 0."""
    return ops.where(x[:, :1] < 0.05, 1.0, 0.0)


@pytest.mark.parametrize(
    ("equation", "orders"),
    [
        (sum_of((1.0, (0, 0)), (1.0, (1, 1))), [2, 2]),
        (sum_of((1e-5, (0, 0)), (-1.0, (1,))), [2, 1]),
        (sum_of((1.0, (0, 0, 0)), (1.0, (1,))), [3, 1]),
        (sum_of((1e-3, (0, 0, 0, 0)), (2e-3, (0, 0, 1, 1)), (1e-3, (1, 1, 1, 1))), [4, 4]),
        (sum_of((strip, (0, 0)), (1.0, (1,))), [2, 1]),
        (lambda u: u, [1, 1]),
    ],
    ids=["poisson", "layer", "kdv", "flow", "strip", "values"],
)
@pytest.mark.parametrize("corner", [False, True])
def test_orders_are_those_of_the_equation(equation: Any, orders: Any, corner: bool) -> None:
    """By any seed, and where the points next to a corner count for most."""
    from gradcell.physics.asked import Asked
    from gradcell.physics.pieces import Fitter

    def root(x: Tensor) -> Tensor:
        return ops.sqrt(ops.sqrt((x * x).sum(1, keepdims=True)))

    def ansatz(v: Any) -> Any:
        return physics.enriched(v, root)

    edge = [(lambda u: dirichlet(u, 0.0), None)]
    given = (2, None, (), ansatz) if corner else (1, None, (), None)
    asked = Asked(equation, Box([0, 0], [1, 1]), edge, *given)
    found = [[f._order(k) for k in (0, 1)] for f in (Fitter(asked, seed) for seed in range(20))]
    assert found == [orders] * 20


def test_in_many_dimensions_layers_are_trained() -> None:
    def exact(x: Any, m: Any = ops) -> Any:
        return m.sin(x.sum(1, keepdims=True))

    def equation(u: Any) -> Any:
        second = gc.laplacian(u)
        return lambda x: second(x) + 10 * exact(x)

    edge = [(lambda u: dirichlet(u, exact), None)]
    shape = Box([0] * 10, [1] * 10)
    found = solve(equation, shape, edge, tolerance=5e-2)
    x = np.random.default_rng(0).random((500, 10))
    assert relative(found.values(x), exact(x, np)) < 5e-2
    assert "dense layers are trained" in found.why[1]
    stopped = solve(equation, shape, edge, tolerance=0, callback=lambda s: True)
    assert len(stopped.history) == 1 and np.isnan(stopped.error) and not stopped.reached


def test_a_corner_that_points_inwards() -> None:
    """Laplace's equation: the imaginary part of exp(z^(2/3)), whose slope is infinite at the corner."""
    shape = physics.Polygon([[0, 0], [1, 0], [1, 1], [-1, 1], [-1, -1], [0, -1]])
    (corner,) = shape.corners()

    def powers(x: Tensor) -> Tensor:
        return ops.concat([physics.singular(x, corner, 1, z) for z in ("value", "slope")], 1)

    def exact(x: Any, m: Any = ops, atan2: Any = ops.atan2) -> Any:
        r, t = (
            m.sqrt(x[:, :1] ** 2 + x[:, 1:] ** 2),
            atan2(-x[:, :1] - x[:, 1:], x[:, 1:] - x[:, :1]),
        )
        r, t = m.exp(2 / 3 * m.log(r)), 2 / 3 * (t + 3 * PI / 4)
        return m.exp(r * m.cos(t)) * m.sin(r * m.sin(t))

    found = solve(
        laplace, shape, [(lambda u: dirichlet(u, exact), None)], outputs=3, tolerance=1e-3,
        ansatz=lambda v: physics.enriched(v, powers),
    )  # fmt: skip
    x = shape.interior(500, 3, "uniform")
    error = relative(found.values(x), exact(x, np, np.arctan2))
    assert found.reached and error < 1e-3
    np.testing.assert_allclose(found(Tensor(x)).asnumpy(), found.values(x))
    assert found.networks[0](Tensor(x)).shape == (500, 3)


def test_faces_with_values_slopes_and_both() -> None:
    """Poisson's equation in a cube: exp(x) sin(y / 2) cos(z)."""

    def exact(x: Any, m: Any = ops) -> Any:
        return m.exp(x[:, :1]) * m.sin(x[:, 1:2] / 2) * m.cos(x[:, 2:])

    def equation(u: Any) -> Any:
        second = gc.laplacian(u)
        return lambda x: second(x) + exact(x) / 4

    def less(u: Any) -> Any:
        return lambda x: u(x) - exact(x)

    conditions = [
        (lambda u: dirichlet(u, exact), lambda p: (p[:, 0] == 0) | (p[:, 0] == 1)),
        (lambda u: neumann(less(u), 0.0), lambda p: (p[:, 1] == 0) | (p[:, 1] == 1)),
        (
            lambda u: physics.robin(less(u), 1.0, 2.0, 0.0),
            lambda p: (p[:, 2] == 0) | (p[:, 2] == 1),
        ),
    ]
    found = solve(equation, Box([0] * 3, [1] * 3), conditions, tolerance=1e-3)
    x = np.random.default_rng(0).random((300, 3))
    assert relative(found.values(x), exact(x, np)) < 1e-3


def test_a_solution_begins_with_another() -> None:
    """u'' = c u^3 for c = 2, 1 / (2 - x), from the solution for c = 1."""
    shape = Box([0], [1])

    def equation(c: float) -> Any:
        def of(u: Any) -> Any:
            second = gc.laplacian(u)
            return lambda x: second(x) - c * u(x) ** 3

        return of

    def edge(u: Any) -> Any:
        return dirichlet(u, lambda x: 1 / (2 - x))

    first = solve(equation(1.0), shape, [(edge, None)], tolerance=1e-4)

    def both(v: Any) -> Any:
        return lambda x: first(x) + v(x)

    found = solve(equation(2.0), shape, [(edge, None)], ansatz=both, tolerance=1e-6)
    x = np.linspace(0, 1, 30)[:, None]
    np.testing.assert_allclose(found.values(x), 1 / (2 - x), rtol=1e-6)


def test_parts_that_cancel_are_measured_by_their_sum() -> None:
    """u = 1e6 v - 1e6 w: the misfit is the same as that of a single part."""

    def exact(x: Any) -> Any:
        return ops.exp(x[:, :1]) * ops.sin(x[:, 1:])

    def difference(v: Any) -> Any:
        return lambda x: 1e6 * v(x)[:, :1] - 1e6 * v(x)[:, 1:]

    edge, shape = [(lambda u: dirichlet(u, exact), None)], Box([0, 0], [1, 1])
    one = solve(laplace, shape, edge, callback=lambda s: True)
    two = solve(laplace, shape, edge, ansatz=difference, outputs=2, callback=lambda s: True)
    assert 0.01 < two.misfit / one.misfit < 100


def test_pieces_of_time_become_longer_again() -> None:
    """The equation of Kuramoto and Sivashinsky, from two waves that soon decay or saturate, beside 32 Fourier
    modes and small steps of Runge and Kutta."""
    n, length, end, steps = 32, 16.0, 2.0, 2000
    x = length * np.arange(n) / n
    k = 2 * PI / length * np.fft.rfftfreq(n, 1 / n)

    def rate(v: Any) -> Any:
        u = np.fft.irfft(v, n)
        return (k**2 - k**4) * v - 0.5j * k * np.where(k < k[n // 3], np.fft.rfft(u * u), 0)

    v, h = np.fft.rfft(np.cos(2 * PI / length * x)), end / steps
    for _ in range(steps):
        a = rate(v)
        b = rate(v + h / 2 * a)
        c = rate(v + h / 2 * b)
        v = v + h / 6 * (a + 2 * b + 2 * c + rate(v + h * c))

    def equation(u: Any) -> Any:
        parts = gc.partials(u, [(0,), (1,), (1, 1), (1, 1, 1, 1)])

        def residual(x: Tensor) -> Tensor:
            u_t, u_x, u_xx, u_xxxx = parts(x)
            return u_t + u(x) * u_x + u_xx + u_xxxx

        return residual

    def begin(u: Any) -> Any:
        return dirichlet(u, lambda x: ops.cos(2 * PI / length * x[:, 1:]))

    found = solve(
        equation, Box([0, 0], [end, length]), [(begin, lambda p: p[:, 0] == 0)], time=0, periodic=[1],
        tolerance=1e-4,
    )  # fmt: skip
    u = found.values(np.column_stack([np.full(n, end), x]))[:, 0]
    assert relative(u, np.fft.irfft(v, n)) < 1e-4 and len(found.networks) < 10


@pytest.mark.parametrize("periodic", [False, True])
def test_of_what_residuals_leave_free_the_smallest_is_found(periodic: bool) -> None:
    """Poisson's equation by slopes at the boundary, or on a torus: up to a constant."""
    turn = 2 * PI if periodic else PI

    def exact(x: Any, m: Any = ops) -> Any:
        return m.cos(turn * x[:, :1]) * m.cos(turn * x[:, 1:])

    def equation(u: Any) -> Any:
        second = gc.laplacian(u)
        return lambda x: second(x) + 2 * turn**2 * exact(x)

    edge = [] if periodic else [(lambda u: neumann(u, 0.0), None)]
    axes = [0, 1] if periodic else []
    with pytest.warns(RuntimeWarning, match="do not determine u.*test_solve.py"):
        found = solve(equation, Box([0, 0], [1, 1]), edge, periodic=axes, tolerance=1e-4)
    x = Box([0, 0], [1, 1]).interior(500, 3, "uniform")
    assert found.reached and relative(found.values(x), exact(x, np)) < 1e-6
    assert "do not determine u" in found.why[0]


def test_growth_hides_no_early_errors() -> None:
    """Prey and predators (Lotka, Volterra): were these to die out at the beginning, prey would grow by ten
    orders, beside which the residuals of their death are small."""

    def rates(a: Any, b: Any) -> tuple[Any, Any]:
        return 1.5 * a - a * b, a * b - 3 * b

    def equation(u: Any) -> Any:
        slope = gc.partials(u, [(0,)])

        def residual(x: Tensor) -> Tensor:
            (moved,), v = slope(x), u(x)
            return moved - ops.concat(rates(v[:, :1], v[:, 1:]), 1)

        return residual

    begin = [(lambda u: lambda x: u(x) - 1, lambda p: p[:, 0] == 0)]
    found = solve(equation, Box([0], [10]), begin, outputs=2, time=0, tolerance=1e-2)
    want, h = np.ones((3001, 2)), 10 / 3000  # Runge and Kutta's steps of fourth order
    for k, y in enumerate(want[:-1]):
        one = np.array(rates(*y))
        two = np.array(rates(*(y + h / 2 * one)))
        three = np.array(rates(*(y + h / 2 * two)))
        four = np.array(rates(*(y + h * three)))
        want[k + 1] = y + h / 6 * (one + 2 * two + 2 * three + four)
    error = relative(found.values(np.linspace(0, 10, 3001)[:, None]), want)
    assert found.reached and error < 1e-2 and len(found.networks) > 3


@pytest.mark.parametrize(("name", "least"), [("helmholtz-4", 1e-6), ("double-well", 1e-8)])
def test_waves_that_are_too_few_get_more(name: str, least: float) -> None:
    """Four periods along each axis, of which few waves show nothing; and states beside eigenvalues, where
    what is wrong has the smaller residuals, but not relative to u."""
    asked = (RECIPES | HARD)[name]()
    found: list[Any] = []
    asked.solved(lambda s: found.append(s) or asked.error(s) < least, 1e6, 1)
    assert asked.error(found[-1]) < least and len(found) < 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seed"), [("allen-cahn", 1), ("allen-cahn", 2), ("kuramoto-sivashinsky", 4)]
)
def test_pieces_are_not_cut_for_nothing(name: str, seed: int) -> None:
    """Equations of bench/solve.py with fronts that few waves cannot follow: pieces became shorter and
    shorter, with larger misfits, or hardly smaller ones."""
    asked = (RECIPES | HARD)[name]()
    found = asked.solved(lambda s: s.misfit < 1e-3, 1e6, seed)
    assert asked.error(found) < 1e-3 and len(found.networks) < 40


def test_units_change_nothing() -> None:
    """A disk of a micrometre with values of a million has the relative errors of a disk of 1."""
    found = []
    for length, level in ((1.0, 1.0), (1e-6, 1e6)):

        def exact(x: Any, m: Any = ops, length: float = length, level: float = level) -> Any:
            return level * m.exp(x[:, :1] / length) * m.sin(x[:, 1:] / length)

        disk = Ball([0, 0], length)
        solution = solve(laplace, disk, [(lambda u, f=exact: dirichlet(u, f), None)])
        x = disk.interior(300, 1, "uniform")
        found.append((solution.history[-1].unknowns, relative(solution.values(x), exact(x, np))))
    assert found[0][0] == found[1][0] and max(error for _, error in found) < 1e-6


def test_in_many_dimensions_time_is_a_coordinate() -> None:
    """Heat in three dimensions, of one wave that decays."""

    def exact(x: Any, m: Any = ops) -> Any:
        return m.exp(-0.3 * x[:, :1]) * m.sin(x[:, 1:].sum(1, keepdims=True))

    def equation(u: Any) -> Any:
        parts = gc.partials(u, [(0,), (1, 1), (2, 2), (3, 3)])

        def residual(x: Tensor) -> Tensor:
            u_t, *second = parts(x)
            return u_t - sum(second[1:], second[0]) / 10

        return residual

    given = [(lambda u: dirichlet(u, exact), lambda p: p[:, 0] < 1)]
    found = solve(equation, Box([0] * 4, [1] * 4), given, time=0, tolerance=1e-3)
    x = np.random.default_rng(0).random((300, 4))
    assert relative(found.values(x), exact(x, np)) < 1e-3 and len(found.networks) == 1


def test_the_same_seed_gives_the_same_solution() -> None:
    edge = [(lambda u: dirichlet(u, lambda x: x[:, :1]), None)]
    x = np.random.default_rng(0).random((20, 2))
    a, b = (solve(laplace, Box([0, 0], [1, 1]), edge).values(x) for _ in range(2))
    np.testing.assert_array_equal(a, b)


def test_it_ends_where_the_first_pass_had_all_digits() -> None:
    """More waves have the larger misfit then, and only the second pass says how far u may be wrong."""
    found = solve(laplace, Box([0], [1]), [(lambda u: dirichlet(u, lambda x: x), None)])
    assert found.reached and len(found.history) == 2 and len(found.networks) == 1
    x = np.linspace(0, 1, 101)[:, None]
    assert np.abs(found.values(x) - x).max() < 1e-12


def test_a_solution_may_be_zero() -> None:
    found = solve(laplace, Box([0], [1]), [(lambda u: dirichlet(u, 0.0), None)])
    assert found.reached and np.abs(found.values([[0.3], [0.9]])).max() == 0


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"shape": [0, 1]}, TypeError, "must be a Shape"),
        ({"conditions": [dirichlet]}, TypeError, "pairs"),
        ({"outputs": 0}, ValueError, "outputs"),
        ({"ansatz": 1.0}, TypeError, "ansatz"),
        ({"time": 0, "periodic": [0]}, ValueError, "different axes"),
        ({"time": 2}, ValueError, "from 0 to 1"),
        ({"shape": Ball([0, 0], 1), "time": 0}, ValueError, "axes of a Box"),
        ({"tolerance": -1.0}, ValueError, "tolerance"),
        ({"max_seconds": 0.0}, ValueError, "max_seconds"),
        ({"time": 0, "max_seconds": 1e-9}, ValueError, "no pass ended"),
    ],
)
def test_what_it_refuses(change: Any, error: Any, words: str) -> None:
    given: Any = {"shape": Box([0, 0], [1, 1]), "conditions": [(lambda u: dirichlet(u, 0.0), None)]}
    with pytest.raises((TypeError, ValueError), match=words) as raised:
        solve(laplace, **{**given, **change})
    assert isinstance(raised.value, error)


def test_it_refuses_residuals_of_some_points() -> None:
    with pytest.raises(ValueError, match="own point"):
        solve(lambda u: lambda x: u(x)[:3], Box([0, 0], [1, 1]))


def test_it_refuses_residuals_that_combine_points() -> None:
    def mean(u: Any) -> Any:
        return lambda x: u(x) - u(x).mean()

    with (
        pytest.warns(RuntimeWarning, match="combine"),
        pytest.raises(ValueError, match="own point"),
    ):
        solve(mean, Box([0], [1]))


# What it is made of ---------------------------------------------------------------------------------------


def test_stretched_coordinates_have_an_inverse() -> None:
    low, high = np.array([0.0, -2.0]), np.array([1.0, 3.0])
    of = Coordinates(low, high, (((0.2, 1e-3),), ((0.0, 0.1), (2.5, 1e-2))))
    x = np.random.default_rng(0).uniform(low, high, (200, 2))
    z = of.of(x)
    assert np.all(np.abs(z) <= 1)
    np.testing.assert_allclose(of.back(z), x, atol=1e-4)
    near = of.of(np.array([[0.2, 0.0], [0.201, 0.1]]))
    assert np.all(np.diff(near, axis=0) > 0.05)
    ends = np.stack([low, high])
    np.testing.assert_allclose(of.of(ends), [[-1, -1], [1, 1]], atol=1e-14)


def test_sites_are_where_values_change_fast() -> None:
    x = np.tile(np.linspace(-1, 1, 400), (2, 1))
    for waves in (1, 40):
        assert steep_sites(x, np.sin(waves * x)[:, :, None], 2.0, 3) == ()
    steep = np.tanh((x - 0.3) / 0.02)[:, :, None]
    ((place, width),) = steep_sites(x, steep, 2.0, 3)
    assert abs(place - 0.3) < 0.01 and 0.01 < width < 0.05


def test_least_squares_keep_the_digits_that_normal_equations_lose() -> None:
    matrix = np.vander(np.linspace(0, 1, 60), 12)
    want = np.ones(12)
    solved = LeastSquares([Rows((0,), matrix, matrix @ want)], [12])
    assert np.abs(solved.parts[0] - want).max() < 1e-6
    normal = np.linalg.solve(matrix.T @ matrix, matrix.T @ (matrix @ want))
    assert np.abs(normal - want).max() > 1e-5
    spread = solved.spread([np.eye(12)[:1]])
    assert abs(spread / np.linalg.norm(np.linalg.pinv(matrix)[0]) - 1) < 1e-6


@pytest.mark.parametrize("columns", [(), (2,)])
def test_least_squares_in_parts_are_those_of_all(columns: tuple[int, ...]) -> None:
    """In a ring of parts, of which one has no equations of its own."""
    random, sizes = np.random.default_rng(0), [5, 7, 4, 6, 3]
    ends = np.cumsum([0, *sizes])
    pairs = [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]
    rows = [
        Rows(
            p, random.normal(size=(9, sum(sizes[k] for k in p))), random.normal(size=(9, *columns))
        )
        for p in pairs
    ]
    whole = np.zeros((9 * len(rows), ends[-1]))
    for k, r in enumerate(rows):
        places = np.concatenate([np.arange(ends[p], ends[p + 1]) for p in r.parts])
        whole[9 * k : 9 * k + 9, places] = r.matrix
    seen = [random.normal(size=(3, n)) for n in sizes]
    solved = LeastSquares(rows, sizes)
    inverse = np.linalg.pinv(whole)
    want = inverse @ np.concatenate([r.right for r in rows])
    np.testing.assert_allclose(np.concatenate(solved.parts), want, rtol=1e-10, atol=1e-12)
    changes = [s @ inverse[a:b] for s, a, b in zip(seen, ends, ends[1:], strict=False)]
    assert abs(solved.spread(seen) ** 2 / (np.sum(np.square(changes)) / 15) - 1) < 1e-10
