"""The equations of bench/solve_problems.py, and others, as `physics.solve` is asked for them: nothing
but the equation, where it holds and its conditions. References are exact, but for those of Burgers' equation
(the Cole-Hopf integral) and the Allen-Cahn equation (4,096 Fourier modes)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import ops
from gradcell.physics import Box, dirichlet, enriched, neumann
from solve_problems import (
    PI,
    RE,
    allen_cahn_reference,
    burgers_reference,
    column,
    grid,
    kovasznay_exact,
    relative,
)  # fmt: skip


@dataclass
class Recipe:
    """Arguments of `solve`, points with the first columns of the solution there, and the error to reach.
    made: the solution of what `solve` finds, a function of points, where it is not that itself."""

    arguments: dict[str, Any]
    test: Any
    want: Any
    target: float
    made: Callable[[Any], Any] | None = None

    def solved(self, passed: Callable[[Any], Any], seconds: float, seed: int) -> Any:
        """The Solution; passed is called after each pass, which ends it by returning True."""
        return gc.physics.solve(
            **self.arguments, tolerance=0, max_seconds=seconds, seed=seed, callback=passed
        )

    def values(self, solution: Any) -> Any:
        """The solution at the points."""
        if self.made is None:
            return solution.values(self.test)[:, : self.want.shape[1]]
        return gc.jit(self.made(solution))(gc.Tensor(self.test)).asnumpy()

    def error(self, solution: Any) -> float:
        """The relative L2 error."""
        return relative(self.values(solution), self.want)


def where(k: int, *at: float) -> Callable[[Any], Any]:
    """Where a coordinate has one of these values."""
    return lambda p: np.isin(p[:, k], at)


def held(value: Any) -> Callable[[Any], Any]:
    """Values on a boundary."""
    return lambda u: dirichlet(u, value)


def helmholtz(a: int, target: float) -> Recipe:
    """u_xx + u_yy + u = q on [-1, 1]^2, u = sin(a pi x) sin(a pi y)."""

    def exact(x: Any, m: Any = ops) -> Any:
        return m.sin(a * PI * x[:, :1]) * m.sin(a * PI * x[:, 1:])

    def equation(u: Any) -> Any:
        second = gc.laplacian(u)
        return lambda x: second(x) + u(x) - (1 - 2 * (a * PI) ** 2) * exact(x)

    test = grid([-1, -1], [1, 1], 101)
    asked = {
        "equation": equation,
        "shape": Box([-1, -1], [1, 1]),
        "conditions": [(held(0.0), None)],
    }
    return Recipe(asked, test, exact(test, np), target)


def poisson(d: int, target: float) -> Recipe:
    """The Laplacian of the sum of x_k x_(k+1) over pairs plus the sine of the coordinates' sum."""

    def exact(x: Any, m: Any = ops) -> Any:
        pairs = [x[:, k : k + 1] * x[:, k + 1 : k + 2] for k in range(0, d - 1, 2)]
        return sum(pairs, m.sin(x.sum(1, keepdims=True)))

    def equation(u: Any) -> Any:
        second = gc.laplacian(u)
        return lambda x: second(x) + d * ops.sin(x.sum(1, keepdims=True))

    test = np.random.default_rng(1).random((10_000, d))
    asked = {
        "equation": equation,
        "shape": Box([0] * d, [1] * d),
        "conditions": [(held(exact), None)],
    }
    return Recipe(asked, test, exact(test, np), target)


def kovasznay() -> Recipe:
    """Steady Navier-Stokes at Reynolds number RE on [-0.5, 1] x [-0.5, 1.5]; the velocities' error."""
    decay = RE / 2 - np.sqrt(RE**2 / 4 + 4 * PI**2)

    def exact(x: gc.Tensor) -> gc.Tensor:
        growth, turn = ops.exp(decay * x[:, :1]), 2 * PI * x[:, 1:]
        v = decay / (2 * PI) * growth * ops.sin(turn)
        return ops.concat((1 - growth * ops.cos(turn), v, (1 - growth * growth) / 2), 1)

    def equation(net: Any) -> Any:
        parts = gc.partials(net, [(0,), (1,), (0, 0), (1, 1)])

        def residual(x: gc.Tensor) -> gc.Tensor:
            f, (fx, fy, fxx, fyy) = net(x), parts(x)
            u, v = column(f, 0), column(f, 1)
            moved = u * fx + v * fy - (fxx + fyy) / RE
            first = column(moved, 0) + column(fx, 2)
            second = column(moved, 1) + column(fy, 2)
            return ops.concat((first, second, column(fx, 0) + column(fy, 1)), 1)

        return residual

    low, high = [-0.5, -0.5], [1.0, 1.5]
    test = grid(low, high, 101)
    asked = {
        "equation": equation,
        "shape": Box(low, high),
        "conditions": [(held(exact), None)],
        "outputs": 3,
    }
    return Recipe(asked, test, kovasznay_exact(test)[:, :2], 1e-8)


def evolving(
    orders: list[tuple[int, ...]], residual: Any, box: Any, conditions: Any, test: Any, want: Any,
    target: float,
) -> Recipe:  # fmt: skip
    """An equation in time, the first axis, of u and its derivatives of some orders."""

    def equation(u: Any) -> Any:
        parts = gc.partials(u, orders)
        return lambda x: residual(u(x), *parts(x))

    asked = {"equation": equation, "shape": box, "conditions": conditions, "time": 0}
    return Recipe(asked, test, want, target)


def burgers() -> Recipe:
    """u_t + u u_x = 0.01 / pi u_xx from -sin(pi x), u(t, +-1) = 0."""
    start = [(held(lambda x: -ops.sin(PI * column(x, 1))), where(0, 0.0))]
    return evolving(
        [(0,), (1,), (1, 1)], lambda u, u_t, u_x, u_xx: u_t + u * u_x - 0.01 / PI * u_xx,
        Box([0, -1], [1, 1]), [*start, (held(0.0), where(1, -1.0, 1.0))], *burgers_reference(), 1e-7,
    )  # fmt: skip


def allen_cahn() -> Recipe:
    """u_t = 0.0001 u_xx + 5 (u - u^3), periodic on [-1, 1], from x^2 cos(pi x), which is even and has a kink
    at the ends: on [0, 1] without slopes there, by smooth functions and others times the kink as the heat
    equation smooths it."""

    def kink(x: gc.Tensor) -> gc.Tensor:
        s, r = 1 - column(x, 1), ops.sqrt(column(x, 0) * 4e-4) + 1e-9
        z = s / r
        return s * ops.erf(z) + r * ops.exp(-z * z) / np.sqrt(PI)

    def start(x: gc.Tensor) -> gc.Tensor:
        return column(x, 1) ** 2 * ops.cos(PI * column(x, 1))

    conditions = [
        (held(start), where(0, 0.0)), (lambda u: neumann(u, 0.0), where(1, 0.0, 1.0)),
    ]  # fmt: skip
    test, want = allen_cahn_reference()
    half = test[:, 1] >= 0
    found = evolving(
        [(0,), (1, 1)], lambda u, u_t, u_xx: u_t - 1e-4 * u_xx - 5 * (u - u * u * u),
        Box([0, 0], [1, 1]), conditions, test[half], want[half], 1e-6,
    )  # fmt: skip
    found.arguments.update(ansatz=lambda v: enriched(v, kink), outputs=2)
    return found


def wave() -> Recipe:
    """u_tt = 4 u_xx on [0, 1] x [0, 1] from sin(pi x) + sin(3 pi x) / 2 at rest, u = 0 at the ends."""

    def start(x: Any) -> Any:
        return ops.sin(PI * column(x, 1)) + ops.sin(3 * PI * column(x, 1)) / 2

    test = grid([0, 0], [1, 1], 101)
    t, y = test[:, :1], test[:, 1:]
    exact = np.sin(PI * y) * np.cos(2 * PI * t) + np.sin(3 * PI * y) * np.cos(6 * PI * t) / 2
    conditions = [
        (held(start), where(0, 0.0)), (lambda u: neumann(u, 0.0), where(0, 0.0)),
        (held(0.0), where(1, 0.0, 1.0)),
    ]  # fmt: skip
    return evolving(
        [(0, 0), (1, 1)], lambda u, u_tt, u_xx: u_tt - 4 * u_xx, Box([0, 0], [1, 1]), conditions, test, exact,
        1e-6,
    )  # fmt: skip


def kdv() -> Recipe:
    """u_t + 6 u u_x + u_xxx = 0 on [0, 1] x [-6, 10]: two solitons (R. Hirota, Phys. Rev. Lett. 27, 1971)."""
    (k, w), (a, b) = (1.2, 0.8), (0.0, -2.4)

    def exact(x: Any, m: Any = ops) -> Any:
        t, y = x[:, :1], x[:, 1:]
        p, q = m.exp(k * y - k**3 * t + a), m.exp(w * y - w**3 * t + b)
        both = ((k - w) / (k + w)) ** 2 * p * q
        f, f_x = 1 + p + q + both, k * p + w * q + (k + w) * both
        return 2 * ((k * k * p + w * w * q + (k + w) ** 2 * both) * f - f_x * f_x) / (f * f)

    slope = gc.partials(exact, [(1,)])

    def right(u: Any) -> Any:
        of = gc.partials(u, [(1,)])
        return lambda x: of(x)[0] - slope(x)[0]

    test = grid([0, -6], [1, 10], 101)
    conditions = [
        (held(exact), where(0, 0.0)), (held(exact), where(1, -6.0, 10.0)), (right, where(1, 10.0)),
    ]  # fmt: skip
    return evolving(
        [(0,), (1,), (1, 1, 1)], lambda u, u_t, u_x, u_xxx: u_t + 6 * u * u_x + u_xxx,
        Box([0, -6], [1, 10]), conditions, test, exact(test, np), 1e-6,
    )  # fmt: skip


RECIPES: dict[str, Callable[[], Recipe]] = {
    "burgers": burgers,
    "kovasznay": kovasznay,
    "wave": wave,
    "helmholtz-4": lambda: helmholtz(4, 1e-6),
    "helmholtz-10": lambda: helmholtz(10, 1e-3),
    "kdv": kdv,
    "poisson-10": lambda: poisson(10, 1e-4),
    "allen-cahn": allen_cahn,
}
