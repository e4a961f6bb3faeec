"""Harder problems for bench/solve.py: singular corners, a hole, three dimensions with mixed conditions,
patterns and chaos, flows, eigenvalues, an unknown field and an operator. As in solve_recipe.py each is
nothing but the equation, where it holds and its conditions; at corners also which powers of the distance the
solution has there (`physics.enriched`). Each says what its reference is: exact, or of another method."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import gradcell as gc
import solve_references as references
from gradcell import ops
from gradcell.physics import (
    Ball,
    Box,
    Corner,
    Polygon,
    enriched,
    neumann,
    robin,
    singular,
)  # fmt: skip
from solve_problems import PI, column, etdrk4, grid
from solve_recipe import Recipe, evolving, held, where

# Corners, holes, three dimensions -----------------------------------------------------------------------


def mixed() -> Recipe:
    """The Laplacian of u on the unit cube is given, u on two faces, its slope on three, and u plus its slope
    on the sixth; exact: sin(pi x) cos(2 y) exp(-z) + x y z^2."""

    def exact(x: Any, m: Any = ops) -> Any:
        a, b, c = x[:, :1], x[:, 1:2], x[:, 2:]
        return m.sin(PI * a) * m.cos(2 * b) * m.exp(-c) + a * b * c * c

    def equation(u: Any) -> Any:
        second = gc.laplacian(u)

        def residual(x: gc.Tensor) -> gc.Tensor:
            a, b, c = column(x, 0), column(x, 1), column(x, 2)
            return (
                second(x) + (PI**2 + 3) * ops.sin(PI * a) * ops.cos(2 * b) * ops.exp(-c) - 2 * a * b
            )

        return residual

    def less(u: Any) -> Any:
        return lambda x: u(x) - exact(x)

    conditions = [
        (held(exact), where(0, 0.0, 1.0)),
        (lambda u: neumann(less(u), 0.0), lambda p: where(1, 0.0, 1.0)(p) | where(2, 0.0)(p)),
        (lambda u: robin(less(u), 1.0, 1.0, 0.0), where(2, 1.0)),
    ]
    test = np.random.default_rng(1).random((10_000, 3))
    asked = {"equation": equation, "shape": Box([0] * 3, [1] * 3), "conditions": conditions}
    return Recipe(asked, test, exact(test, np), 1e-8)


def powers(corner: Corner, most: int) -> Callable[[Any], Any]:
    """The real and imaginary parts of z^(k pi / angle), k = 1 to most, around a corner."""

    def given(x: gc.Tensor) -> gc.Tensor:
        each = [singular(x, corner, k + 1, z) for k in range(most) for z in ("value", "slope")]
        return ops.concat(each, 1)

    return given


def l_shape() -> Recipe:
    """Laplace's equation on a square without a quarter: u is given on the edges, 0 on the two at the corner,
    where it grows as r^(2/3); exact: the imaginary part of exp(z^(2/3))."""
    shape = Polygon([[0, 0], [1, 0], [1, 1], [-1, 1], [-1, -1], [0, -1]])
    (corner,) = shape.corners()
    given = powers(corner, 2)

    def exact(x: Any, m: Any = ops, atan2: Any = ops.atan2) -> Any:
        a, b = x[:, :1], x[:, 1:]
        turned = atan2(-a - b, b - a) + 3 * PI / 4  # from the edge along x
        r, t = (a * a + b * b) ** (1 / 3), 2 / 3 * turned
        return m.exp(r * m.cos(t)) * m.sin(r * m.sin(t))

    asked = {
        "equation": gc.laplacian,
        "shape": shape,
        "conditions": [(held(exact), None)],
        "ansatz": lambda v: enriched(v, given),
        "outputs": 5,
    }
    test = shape.interior(10_000, 7, "uniform")
    return Recipe(asked, test, exact(test, np, np.arctan2), 1e-6)


@cache
def motz_reference(terms: int = 40) -> Any:
    """The d_k of u = Re sum d_k z^(k + 1/2), by least squares on the three other edges."""
    s, _ = np.polynomial.legendre.leggauss(400)
    edges = [1 + 0.5j * (s + 1), s + 1j, -1 + 0.5j * (s + 1)]
    power = np.arange(terms) + 0.5
    z, scale = [e[:, None] for e in edges], np.sqrt(2) ** -power
    rows = [
        (z[0] ** power * scale).real,
        -(power * z[1] ** (power - 1) * scale).imag,
        (power * z[2] ** (power - 1) * scale).real,
    ]
    right = np.concatenate([np.full(400, 500.0), np.zeros(800)])
    return np.linalg.lstsq(np.concatenate(rows), right, rcond=None)[0] * scale


def slit() -> Recipe:
    """Motz's problem (Proc. R. Soc. A 191, 1947), half of a square with a slit: Laplace's equation, u = 0 on
    the slit, u = 500 at the right end, n . grad u = 0 elsewhere; u grows as r^(1/2) at the slit's tip.
    Reference: its series there, whose first coefficient is 401.1624537452."""
    given = powers(Corner((0.0, 0.0), (1.0, 0.0), 2 * PI), 1)

    def insulated(p: Any) -> Any:
        return ((p[:, 1] == 0) & (p[:, 0] > 0)) | (p[:, 1] == 1) | (p[:, 0] == -1)

    asked = {
        "equation": gc.laplacian,
        "shape": Box([-1, 0], [1, 1]),
        "conditions": [
            (held(0.0), lambda p: (p[:, 1] == 0) & (p[:, 0] < 0)),
            (held(500.0), where(0, 1.0)),
            (lambda u: neumann(u, 0.0), insulated),
        ],
        "ansatz": lambda v: enriched(v, given),
        "outputs": 3,
    }
    test = Box([-1, 0], [1, 1]).interior(10_000, 7, "uniform")
    d = motz_reference()
    z = test[:, :1] + 1j * test[:, 1:]
    return Recipe(asked, test, (z ** (np.arange(len(d)) + 0.5) @ d).real[:, None], 1e-6)


POISSON = 0.3


def stress(u: Any) -> Any:
    """The stresses xx, yy and xy of displacements, over Young's modulus, in a thin plate: [n, 3]."""
    slopes = gc.partials(u, [(0,), (1,)])

    def found(x: gc.Tensor) -> gc.Tensor:
        by_x, by_y = slopes(x)
        xx, yy, xy = column(by_x, 0), column(by_y, 1), column(by_y, 0) + column(by_x, 1)
        parts = xx + POISSON * yy, yy + POISSON * xx, (1 - POISSON) / 2 * xy
        return ops.concat(parts, 1) * (1 / (1 - POISSON**2))

    return found


def kirsch(x: Any, m: Any = ops, atan2: Any = ops.atan2) -> Any:
    """Displacements around a hole of radius 1 under a tension along x of Young's modulus (G. Kirsch,
    1898)."""
    a, b = x[:, :1], x[:, 1:]
    r, t = m.sqrt(a * a + b * b), atan2(b, a)
    k, shear = (3 - POISSON) / (1 + POISSON), 1 / (2 * (1 + POISSON))
    along = (
        r * (k + 1) * m.cos(t)
        + 2 / r * ((1 + k) * m.cos(t) + m.cos(3 * t))
        - 2 / r**3 * m.cos(3 * t)
    )
    across = (
        r * (k - 3) * m.sin(t)
        + 2 / r * ((1 - k) * m.sin(t) + m.sin(3 * t))
        - 2 / r**3 * m.sin(3 * t)
    )
    parts = along * (1 / (8 * shear)), across * (1 / (8 * shear))
    return ops.concat(parts, 1) if m is ops else np.hstack(parts)


def plate() -> Recipe:
    """Elasticity of a quarter of a plate with a hole: forces are given on the outer edges, none act at the
    hole, and on the two cuts by symmetry no displacement across and no shear; the displacements' error.
    Exact: Kirsch's solution, cut off at the outer edges."""
    shape = Box([0, 0], [3, 3]) - Ball([0, 0], 1)

    def equation(u: Any) -> Any:
        second = gc.partials(u, [(0, 0), (0, 1), (1, 1)])
        less, more = (1 - POISSON) / 2, (1 + POISSON) / 2

        def balance(x: gc.Tensor) -> gc.Tensor:
            xx, xy, yy = second(x)
            along = column(xx, 0) + less * column(yy, 0) + more * column(xy, 1)
            across = column(yy, 1) + less * column(xx, 1) + more * column(xy, 0)
            return ops.concat((along, across), 1)

        return balance

    def force(s: gc.Tensor, n: gc.Tensor) -> gc.Tensor:
        a, b = column(n, 0), column(n, 1)
        xx, yy, xy = (column(s, k) for k in range(3))
        return ops.concat((xx * a + xy * b, xy * a + yy * b), 1)

    def pulled(u: Any) -> Any:
        here, far = stress(u), stress(kirsch)
        return lambda x, n: force(here(x) - far(x), n)

    def free(u: Any) -> Any:
        here = stress(u)
        return lambda x, n: force(here(x), n)

    def cut(u: Any) -> Any:
        here = stress(u)
        return lambda x, n: ops.concat(((u(x) * n).sum(1, keepdims=True), column(here(x), 2)), 1)

    conditions = [
        (pulled, lambda p: p.max(1) == 3), (free, lambda p: (p.min(1) > 0) & (p.max(1) < 3)),
        (cut, lambda p: p.min(1) == 0),
    ]  # fmt: skip
    asked = {"equation": equation, "shape": shape, "conditions": conditions, "outputs": 2}
    test = shape.interior(10_000, 7, "uniform")
    return Recipe(asked, test, kirsch(test, np, np.arctan2), 1e-8)


# Chaos and patterns -------------------------------------------------------------------------------------


def _places(end: float, rows: int, x: Any) -> Any:
    """Points t, x of so many rows of times from 0 to an end."""
    t = np.repeat(np.linspace(0, end, rows), len(x))
    return np.column_stack([t, np.tile(x, rows)])


@cache
def kuramoto_reference(length: float, end: float, n: int = 256, steps: int = 4000) -> Any:
    """By so many Fourier modes and steps of an exponential Runge-Kutta scheme."""
    x = length * np.arange(n) / n
    k = np.fft.rfftfreq(n, 1 / n) * 2 * PI / length
    kept = k < k.max() * 2 / 3

    def rest(v: Any) -> Any:
        return -0.5j * k * kept * np.fft.rfft(np.fft.irfft(v, n) ** 2)

    turned = 2 * PI * x / length
    start = np.fft.rfft(np.cos(turned) * (1 + np.sin(turned)))
    rows = np.fft.irfft(etdrk4(k**2 - k**4, rest, start, end, steps)[:: steps // 100], n)
    return _places(end, 101, x[::2]), rows[:, ::2].reshape(-1, 1)


def kuramoto(length: float, end: float, target: float) -> Recipe:
    """u_t + u u_x + u_xx + u_xxxx = 0, periodic on [0, L], from cos(s) (1 + sin(s)) with s = 2 pi x / L: the
    equation of Kuramoto and Sivashinsky. Reference: 256 Fourier modes."""

    def start(x: gc.Tensor) -> gc.Tensor:
        turned = column(x, 1) * (2 * PI / length)
        return ops.cos(turned) * (1 + ops.sin(turned))

    def residual(u: Any, u_t: Any, u_x: Any, u_xx: Any) -> Any:
        bent = column(u_xx, 0)
        moved = column(u_t, 0) + column(u, 0) * column(u_x, 0) + column(u, 1)
        return ops.concat((moved + column(u_xx, 1), bent - column(u, 1)), 1)

    def begin(u: Any) -> Any:
        return held(start)(lambda x: column(u(x), 0))

    found = evolving(
        [(0,), (1,), (1, 1)], residual, Box([0, 0], [end, length]), [(begin, where(0, 0.0))],
        *kuramoto_reference(length, end), target,
    )  # fmt: skip
    found.arguments.update(periodic=[1], outputs=2)
    return found


SPREAD, FEED, KILL = (2e-4, 1e-4), 0.04, 0.06


@cache
def gray_scott_reference(end: float, n: int = 512, steps: int = 4000) -> tuple[Any, Any]:
    """By so many Fourier modes and steps of an exponential Runge-Kutta scheme."""
    x = -1 + 2 * np.arange(n) / n
    k = PI * np.fft.rfftfreq(n, 1 / n)

    def rest(v: Any) -> Any:
        a, b = np.fft.irfft(v, n)
        met = a * b * b
        return np.fft.rfft([FEED - met, met])

    linear = np.stack([-FEED - SPREAD[0] * k**2, -(FEED + KILL) - SPREAD[1] * k**2])
    start = np.fft.rfft(gray_scott_start(x, np))
    rows = np.fft.irfft(etdrk4(linear, rest, start, end, steps)[:: steps // 100], n)[:, :, ::4]
    return _places(end, 101, x[::4]), np.moveaxis(rows, 1, 2).reshape(-1, 2)


def gray_scott_start(x: Any, m: Any = ops) -> tuple[Any, Any]:
    """A bump of the one substance where the other lacks."""
    bump = m.exp(10 * (m.cos(PI * x) - 1))
    return 1 - bump / 2, bump / 4


def gray_scott(end: float, target: float) -> Recipe:
    """a_t = 2e-4 a_xx - a b^2 + 0.04 (1 - a) and b_t = 1e-4 b_xx + a b^2 - 0.1 b, periodic on [-1, 1]: the
    reaction of Gray and Scott with the numbers of J. Pearson (Science 261, 1993), in which a pulse parts in
    two. Reference: 512 Fourier modes."""

    def residual(u: Any, u_t: Any, u_xx: Any) -> Any:
        a, b = column(u, 0), column(u, 1)
        met = a * b * b
        first = column(u_t, 0) - SPREAD[0] * column(u_xx, 0) - FEED * (1 - a) + met
        second = column(u_t, 1) - SPREAD[1] * column(u_xx, 1) + (FEED + KILL) * b - met
        return ops.concat((first, second), 1)

    def start(x: gc.Tensor) -> gc.Tensor:
        return ops.concat(gray_scott_start(column(x, 1)), 1)

    found = evolving(
        [(0,), (1, 1)], residual, Box([0, -1], [end, 1]), [(held(start), where(0, 0.0))],
        *gray_scott_reference(end), target,
    )  # fmt: skip
    found.arguments.update(periodic=[1], outputs=2)
    return found


# Flows --------------------------------------------------------------------------------------------------


def corner_angles(x: gc.Tensor) -> gc.Tensor:
    """The angles around both upper corners of the unit square, [n, 2]."""
    along, down = column(x, 0), 1 - column(x, 1)
    return ops.concat((ops.atan2(down, along), ops.atan2(down, 1 - along)), 1)


def inertia(x: gc.Tensor) -> gc.Tensor:
    """What inertia multiplies smooth functions by at both corners, to second order: the angles and their
    squares, [n, 4] (C. Hancock, E. Lewis, H. Moffatt, J. Fluid Mech. 112, 1981)."""
    angles = corner_angles(x)
    return ops.concat((angles, angles * angles), 1)


def scraping(x: gc.Tensor) -> gc.Tensor:
    """The stream functions of both upper corners of the unit square, where the lid meets a wall and the
    velocity jumps, [n, 1] (G. Taylor, 1962)."""
    c = 1 / (1 - PI**2 / 4)
    turned, down = corner_angles(x), 1 - column(x, 1)
    both = ops.concat((column(x, 0), 1 - column(x, 0)), 1)
    parts = (1 - c) * down + (c * both + c * PI / 2 * down) * turned
    return -parts.sum(1, keepdims=True)


def flow(u: Any) -> Any:
    """The velocities of a stream function, [n, 2]."""
    slopes = gc.partials(u, [(0,), (1,)])

    def found(x: gc.Tensor) -> gc.Tensor:
        by_x, by_y = slopes(x)
        return ops.concat((by_y, -by_x), 1)

    return found


def navier_stokes(reynolds: float) -> Any:
    """The residual of a stream function in a steady flow."""
    orders = [
        (0,), (1,), (0, 0, 0), (0, 1, 1), (0, 0, 1), (1, 1, 1),
        (0, 0, 0, 0), (0, 0, 1, 1), (1, 1, 1, 1),
    ]  # fmt: skip

    def equation(u: Any) -> Any:
        parts = gc.partials(u, orders)

        def residual(x: gc.Tensor) -> gc.Tensor:
            s_x, s_y, xxx, xyy, xxy, yyy, xxxx, xxyy, yyyy = parts(x)
            turned = s_y * (xxx + xyy) - s_x * (xxy + yyy)
            return turned - (xxxx + 2 * xxyy + yyyy) / reynolds

        return residual

    return equation


@dataclass
class Cavity(Recipe):
    """A recipe with a table beside it: places on the middle line and the velocity along the lid there."""

    table: Any = None

    def beside(self, solution: Any) -> str:
        """The largest difference from the table."""
        at, want = np.array(self.table).T
        x = gc.Tensor(np.column_stack([np.full(at.size, 0.5), at]))
        found = gc.jit(flow(solution))(x).asnumpy()[:, 0]
        return f"Ghia's table: {np.abs(found - want).max():.1e}"


def cavity(reynolds: float, target: float) -> Recipe:
    """Steady flow in the unit square, whose lid moves at speed 1, by its stream function; the velocities'
    error. Nothing is done to the corners, where the velocity jumps: the ansatz has Taylor's flow there and
    smooth functions times the angles and their squares beside it. Reference: 56 polynomials along each axis
    beside Taylor's flow, whose extrema on the middle lines at 100 are those of O. Botella and R. Peyret
    (Computers & Fluids 27, 1998) to 2e-7."""

    def ansatz(v: Any) -> Any:
        rest = enriched(v, inertia)
        return lambda x: scraping(x) + rest(x)

    def wall(speed: float) -> Any:
        def condition(u: Any) -> Any:
            moved = flow(u)

            def residual(x: gc.Tensor) -> gc.Tensor:
                v = moved(x)
                return ops.concat((u(x), column(v, 0) - speed, column(v, 1)), 1)

            return residual

        return condition

    asked = {
        "equation": navier_stokes(reynolds),
        "shape": Box([0, 0], [1, 1]),
        "conditions": [(wall(1.0), where(1, 1.0)), (wall(0.0), lambda p: p[:, 1] < 1)],
        "ansatz": ansatz,
        "outputs": 5,
    }

    test = grid([0.01, 0.01], [0.99, 0.99], 71)
    want = references.cavity(reynolds)(test)
    return Cavity(asked, test, want, target, flow, references.GHIA[int(reynolds)])


#: Drag and lift coefficients and the difference of pressures of `cylinder` (G. Nabh, Heidelberg, 1998).
FORCES = 5.57953523384, 0.010618948146, 0.11752016697


class Forces(Recipe):
    """A recipe whose error is the larger one of the drag's and the pressures' relative errors."""

    def values(self, solution: Any) -> Any:
        """Drag and lift coefficients, and the pressure in front of the cylinder less that behind."""
        slopes = gc.partials(solution, [(0,), (1,)])

        def traction(x: gc.Tensor) -> gc.Tensor:
            out, u = (x - gc.Tensor([CENTER, CENTER])) * (1 / RADIUS), solution(x)
            along, across = (column(out, k) for k in (0, 1))
            by_x, by_y = slopes(x)
            return 1e-3 * (by_x * along + by_y * across)[:, :2] - column(u, 2) * out

        turned = np.linspace(0, 2 * PI, 400, endpoint=False)
        circle = CENTER + RADIUS * np.stack([np.cos(turned), np.sin(turned)], 1)
        force = gc.jit(traction)(gc.Tensor(circle)).asnumpy().mean(0) * 2 * PI * RADIUS
        ends = solution.values([[CENTER - RADIUS, CENTER], [CENTER + RADIUS, CENTER]])
        return np.array([*(force * 2 / (0.2**2 * 2 * RADIUS)), ends[0, 2] - ends[1, 2]])

    def error(self, solution: Any) -> float:
        """The relative error."""
        found = self.values(solution)
        return float(max(abs(found[k] / FORCES[k] - 1) for k in (0, 2)))

    def beside(self, solution: Any) -> str:
        """All three."""
        return f"drag, lift, pressures: {', '.join(f'{v:.6g}' for v in self.values(solution))}"


CENTER, RADIUS = 0.2, 0.05


def cylinder() -> Forces:
    """Steady flow past a cylinder in a channel at a Reynolds number of 20, by velocities and pressure: the
    benchmark 2D-1 of M. Schaefer and S. Turek (1996). Parabolic inflow, no force at the outflow; the errors
    of the cylinder's drag and of the pressures before and behind it, whose references are of high-order
    elements on fine meshes."""
    high, fastest, viscosity = 0.41, 0.3, 1e-3
    shape = Box([0, 0], [2.2, high]) - Ball([CENTER, CENTER], RADIUS)

    def equation(u: Any) -> Any:
        parts = gc.partials(u, [(0,), (1,), (0, 0), (1, 1)])

        def residual(x: gc.Tensor) -> gc.Tensor:
            here = u(x)
            by_x, by_y, xx, yy = parts(x)
            carried = (column(here, 0) * by_x + column(here, 1) * by_y - viscosity * (xx + yy))[
                :, :2
            ]
            pressure = ops.concat((column(by_x, 2), column(by_y, 2)), 1)
            return ops.concat((carried + pressure, column(by_x, 0) + column(by_y, 1)), 1)

        return residual

    def inflow(u: Any) -> Any:
        def residual(x: gc.Tensor) -> gc.Tensor:
            y = column(x, 1)
            along = 4 * fastest / high**2 * y * (high - y)
            return u(x)[:, :2] - ops.concat((along, 0 * y), 1)

        return residual

    def free(u: Any) -> Any:
        slopes = gc.partials(u, [(0,)])

        def residual(x: gc.Tensor) -> gc.Tensor:
            (by_x,) = slopes(x)
            pressure = column(u(x), 2)
            return viscosity * by_x[:, :2] - ops.concat((pressure, 0 * pressure), 1)

        return residual

    asked = {
        "equation": equation,
        "shape": shape,
        "conditions": [
            (inflow, where(0, 0.0)), (free, where(0, 2.2)),
            (lambda u: lambda x: u(x)[:, :2], lambda p: (p[:, 0] > 0) & (p[:, 0] < 2.2)),
        ],
        "outputs": 3,
    }  # fmt: skip
    return Forces(asked, None, np.array(FORCES), 1e-2)


# Eigenvalues --------------------------------------------------------------------------------------------


@dataclass
class Energies:
    """The energies so far. error: how far they moved with the last step, relative to them."""

    energies: Any
    networks: list[Any]
    error: float
    why: list[str]


class States(Recipe):
    """The lowest states of -f'' + V f = E f on an interval at whose ends f is 0. Each step is a call of
    `solve` for (-d^2 + V - shift) g = f and a Rayleigh quotient: first all states together and two more, from
    sines and with a shift below them, until energies move by a hundredth, then each by itself with nearly
    its own energy as the shift, while they move."""

    def __init__(
        self, potential: Callable[[Any], Any], half: float, want: Any, target: float
    ) -> None:
        super().__init__({}, None, np.asarray(want), target)
        self.potential, self.half = potential, half
        x, w = np.polynomial.legendre.leggauss(500)
        self.x, self.w = half * x[:, None], half * w[:, None]

    def moved(self, f: Callable[[Any], Any], shift: float, seed: int) -> Any:
        """The Solution g."""

        def equation(u: Any) -> Any:
            second = gc.laplacian(u)
            return lambda x: -second(x) + (self.potential(x) - shift) * u(x) - f(x)

        passes = itertools.count(1)
        return gc.physics.solve(
            equation, Box([-self.half], [self.half]), [(held(0.0), None)], seed=seed, tolerance=1e-9,
            callback=lambda s: next(passes) == 2 or s.misfit < 1e-9,
        )  # fmt: skip

    def quotients(self, functions: list[Any]) -> tuple[Any, Any]:
        """Energies of the sums of these functions that are stationary, and the sums' coefficients."""

        def both(x: gc.Tensor) -> gc.Tensor:
            values = ops.concat([f(x) for f in functions], 1)
            slopes = ops.concat([gc.partials(f, [(0,)])(x)[0] for f in functions], 1)
            return ops.concat((values, slopes), 1)

        found = gc.jit(both)(gc.Tensor(self.x)).asnumpy()
        u, slope = np.split(found, 2, 1)
        size = np.sqrt((self.w * u**2).sum(0))
        u, slope = u / size, slope / size
        energy = slope.T @ (self.w * slope) + u.T @ (self.w * self.potential(self.x) * u)
        root = np.linalg.inv(np.linalg.cholesky(u.T @ (self.w * u)))
        energies, mixed = np.linalg.eigh(root @ energy @ root.T)
        return energies, root.T @ mixed / size[:, None]

    def solved(self, passed: Callable[[Any], Any], seconds: float, seed: int) -> Any:
        count, half = len(self.want), self.half

        def sine(k: int) -> Any:
            return lambda x: ops.sin(k * PI / 2 * (x / half + 1))

        def sum_of(functions: list[Any], c: Any) -> Any:
            return lambda x: sum(
                (f(x) * float(a) for f, a in zip(functions[1:], c[1:], strict=True)),
                functions[0](x) * float(c[0]),
            )

        begun = time.perf_counter()
        states, shift, last = [sine(k + 1) for k in range(count + 2)], 0.0, np.full(count, np.inf)
        while True:
            found = [self.moved(f, shift, seed) for f in states]
            energies, mixed = self.quotients(found)
            states = [sum_of(found, c) for c in mixed.T]
            change = float(np.abs(last / energies[:count] - 1).max())
            last, shift = energies[:count], 1.5 * energies[0] - 0.5 * energies[1]
            seen = Energies(last, [s.networks[0] for s in found], change, [])
            if passed(seen) or change < 0.01 or time.perf_counter() - begun > seconds:
                break
        while time.perf_counter() - begun < seconds:
            energies, found = seen.energies.copy(), []
            for k in range(count):
                found.append(self.moved(states[k], 0.999 * energies[k], seed))
                (energies[k],), ((scale,),) = self.quotients([found[k]])
                states[k] = sum_of([found[k]], [scale])
            change = float(np.abs(energies / seen.energies - 1).max())
            seen = Energies(energies, [s.networks[0] for s in found], change, [])
            if passed(seen) or change < 1e-12:
                break
        return seen

    def error(self, solution: Any) -> float:
        return float(np.abs(solution.energies / self.want - 1).max())


def oscillator() -> Recipe:
    """The five lowest energies in x^2: 1, 3, 5, 7, 9; the largest relative error."""
    return States(lambda x: x * x, 8.0, [1, 3, 5, 7, 9], 1e-8)


def double_well() -> Recipe:
    """The five lowest energies in (x^2 - 4)^2, of which the lowest two differ by 4e-4 of them. Reference:
    matrices of 96 polynomials."""

    def potential(x: Any) -> Any:
        return (x * x - 4) ** 2

    return States(potential, 5.0, references.energies(potential, 5.0)[:5], 1e-8)


HARD: dict[str, Callable[[], Recipe]] = {
    "poisson-mixed-3d": mixed,
    "l-shape": l_shape,
    "slit": slit,
    "plate-with-hole": plate,
    "kuramoto-sivashinsky": lambda: kuramoto(22.0, 10.0, 1e-6),
    "gray-scott": lambda: gray_scott(100.0, 1e-3),
    "cavity-100": lambda: cavity(100.0, 1e-3),
    "cavity-400": lambda: cavity(400.0, 1e-3),
    "cavity-1000": lambda: cavity(1000.0, 1e-3),
    "cylinder": cylinder,
    "oscillator": oscillator,
    "double-well": double_well,
}
