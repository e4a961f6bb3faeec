"""Differential equations with exact or spectral references, for bench/solve.py: each gives a network, its
residuals with their points and weights, and the error that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import nn, ops

try:
    from scipy.stats import qmc
except ImportError:
    qmc = None

PI = float(np.pi)
Points = tuple[Any, ...]


@dataclass
class Problem:
    """What a solver is given. residuals: functions of points; points: new ones from a random state, one
    tuple a function; error: of the parameters as they are; weights: of the functions; seconds: after
    which a run ends; every: steps between new points, 0 for none; target: the error at which a run ends;
    test: points and the solution there, where peers solve it too; network, solution: the cell that is trained
    and the function that it makes of points, where bench/error_bars.py estimates its error."""

    residuals: list[Callable[..., gc.Tensor]]
    parameters: list[gc.Parameter]
    points: Callable[[np.random.Generator], list[Points]]
    error: Callable[[], float]
    weights: Sequence[float]
    seconds: float = 60.0
    every: int = 0
    target: float = 1e-6
    test: Points = ()
    network: nn.Cell | None = None
    solution: Callable[[gc.Tensor], gc.Tensor] | None = None


def network(inputs: int, width: int, depth: int, seed: int, outputs: int = 1) -> nn.SequentialCell:
    """Dense layers and tanh in float64, by Glorot and Bengio's uniform distribution."""
    gc.set_seed(seed)
    cells: list[nn.Cell] = []
    sizes = [inputs, *[width] * depth, outputs]
    for k, (a, b) in enumerate(pairwise(sizes)):
        cells.append(
            nn.Dense(a, b, weight_init="xavier_uniform", bias_init="zeros", dtype=gc.float64)
        )
        if k < depth:
            cells.append(nn.Tanh())
    return nn.SequentialCell(*cells)


def tensors(*arrays: Any) -> Points:
    return tuple(gc.Tensor(np.asarray(a, np.float64)) for a in arrays)


def box(random: np.random.Generator, n: int, low: Sequence[float], high: Sequence[float]) -> Any:
    """n points in a box, by a scrambled Halton sequence where SciPy is there."""
    if qmc is None:
        unit = random.random((n, len(low)))
    else:
        unit = qmc.Halton(len(low), seed=random).random(n)
    return np.asarray(low) + unit * (np.asarray(high) - np.asarray(low))


def edge(random: np.random.Generator, n: int, low: Sequence[float], high: Sequence[float]) -> Any:
    """n points on the box's faces, equally many on each."""
    faces = []
    for face in range(2 * len(low)):
        points = box(random, n // (2 * len(low)), low, high)
        points[:, face // 2] = (high if face % 2 else low)[face // 2]
        faces.append(points)
    return np.concatenate(faces)


def relative(found: Any, want: Any) -> float:
    return float(np.linalg.norm(found - want) / np.linalg.norm(want))


def column(x: gc.Tensor, k: int) -> gc.Tensor:
    return x[:, k : k + 1]


def grid(low: Sequence[float], high: Sequence[float], n: int) -> Any:
    axes = [np.linspace(a, b, n) for a, b in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(low))


def of_network(
    net: Callable[[gc.Tensor], gc.Tensor], points: Any, want: Any
) -> Callable[[], float]:
    at = gc.Tensor(points)
    return lambda: relative(net(at).asnumpy(), want)


# Equations in boxes whose solution is known -------------------------------------------------------------


def poisson(seed: int) -> Problem:
    """-(u_xx + u_yy) = 2 pi^2 u on the unit square."""
    net = network(2, 16, 2, seed)
    laplacian = gc.laplacian(net)

    def exact(x: Any) -> Any:
        return np.sin(PI * x[:, :1]) * np.sin(PI * x[:, 1:])

    def points(random: np.random.Generator) -> list[Points]:
        inside = box(random, 512, [0, 0], [1, 1])
        return [
            tensors(inside, 2 * PI**2 * exact(inside)),
            tensors(edge(random, 160, [0, 0], [1, 1])),
        ]

    test = grid([0, 0], [1, 1], 101)
    return Problem(
        [lambda x, f: laplacian(x) + f, net], net.trainable_params(), points,
        of_network(net, test, exact(test)), [1, 100], 10, test=(test, exact(test)), network=net,
    )  # fmt: skip


def helmholtz(seed: int, a: int = 4) -> Problem:
    """u_xx + u_yy + u = q on [-1, 1]^2, u = sin(a pi x) sin(a pi y) (a = 1, 4: both directions)."""
    net = network(2, 32, 2, seed)
    laplacian = gc.laplacian(net)

    def exact(x: Any) -> Any:
        return np.sin(a * PI * x[:, :1]) * np.sin(a * PI * x[:, 1:])

    def points(random: np.random.Generator) -> list[Points]:
        inside = box(random, 2048, [-1, -1], [1, 1])
        q = (1 - 2 * (a * PI) ** 2) * exact(inside)
        return [tensors(inside, q), tensors(edge(random, 400, [-1, -1], [1, 1]))]

    test = grid([-1, -1], [1, 1], 101)
    return Problem(
        [lambda x, q: laplacian(x) + net(x) - q, net], net.trainable_params(), points,
        of_network(net, test, exact(test)), [1, 1e4], 120, target=1e-4 if a > 1 else 1e-6,
        test=(test, exact(test)), network=net,
    )  # fmt: skip


def poisson10(seed: int, d: int = 10) -> Problem:
    """The Laplacian of u = sum of x_k x_(k+1) over pairs, plus the sine of the coordinates' sum, in d
    dimensions."""
    net = network(d, 32, 2, seed)
    laplacian = gc.laplacian(net)

    def exact(x: Any) -> Any:
        return (x[:, : d - 1 : 2] * x[:, 1::2]).sum(1, keepdims=True) + np.sin(
            x.sum(1, keepdims=True)
        )

    def points(random: np.random.Generator) -> list[Points]:
        inside = random.random((1500, d))
        on = edge(random, 1000, [0] * d, [1] * d)
        source = -d * np.sin(inside.sum(1, keepdims=True))
        return [tensors(inside, source), tensors(on, exact(on))]

    test = np.random.default_rng(1).random((10_000, d))
    return Problem(
        [lambda x, f: laplacian(x) - f, lambda x, u: net(x) - u], net.trainable_params(), points,
        of_network(net, test, exact(test)), [1, 100], 120, every=1, target=1e-3,
        test=(test, exact(test)), network=net,
    )  # fmt: skip


def heat(seed: int) -> Problem:
    """u_t = u_xx / pi^2 on [0, 1] x [0, 1], from sin(pi x) + sin(2 pi x) / 2."""
    net = network(2, 16, 2, seed)

    def exact(x: Any) -> Any:
        t, y = x[:, :1], x[:, 1:]
        return np.exp(-t) * np.sin(PI * y) + np.exp(-4 * t) * np.sin(2 * PI * y) / 2

    parts = gc.partials(net, [(0,), (1, 1)])

    def equation(x: gc.Tensor) -> gc.Tensor:
        u_t, u_xx = parts(x)
        return u_t - u_xx / PI**2

    def points(random: np.random.Generator) -> list[Points]:
        border = edge(random, 192, [0, 0], [1, 1])
        border = border[border[:, 0] < 1]
        return [tensors(box(random, 512, [0, 0], [1, 1])), tensors(border, exact(border))]

    test = grid([0, 0], [1, 1], 101)
    return Problem(
        [equation, lambda x, u: net(x) - u], net.trainable_params(), points,
        of_network(net, test, exact(test)), [1, 100], 30, test=(test, exact(test)), network=net,
    )  # fmt: skip


def inverse_heat(seed: int) -> Problem:
    """u_t = k u_xx, where k = 0.3 is unknown and u known at 200 points; the error is k's."""
    net = network(2, 16, 2, seed)
    k = gc.Parameter(gc.Tensor(np.array([1.0])), name="k")

    def exact(x: Any) -> Any:
        t, y = x[:, :1], x[:, 1:]
        rate = 0.3 * PI**2
        return np.exp(-rate * t) * np.sin(PI * y) + np.exp(-4 * rate * t) * np.sin(2 * PI * y) / 2

    parts = gc.partials(net, [(0,), (1, 1)])

    def equation(x: gc.Tensor) -> gc.Tensor:
        u_t, u_xx = parts(x)
        return u_t - k * u_xx

    def points(random: np.random.Generator) -> list[Points]:
        seen = box(random, 256, [0, 0], [1, 1])
        return [tensors(box(random, 512, [0, 0], [1, 1])), tensors(seen, exact(seen))]

    return Problem(
        [equation, lambda x, u: net(x) - u], [*net.trainable_params(), k], points,
        lambda: abs(float(k.asnumpy()[0]) - 0.3) / 0.3, [1, 100], 30, target=1e-5,
    )  # fmt: skip


# Flows and fronts -----------------------------------------------------------------------------------------


RE = 40.0  # Kovasznay flow's Reynolds number


def kovasznay_exact(x: Any) -> Any:
    """Velocities and pressure at Reynolds number RE."""
    decay = RE / 2 - np.sqrt(RE**2 / 4 + 4 * PI**2)
    growth, turn = np.exp(decay * x[:, :1]), 2 * PI * x[:, 1:]
    return np.hstack(
        [1 - growth * np.cos(turn), decay / (2 * PI) * growth * np.sin(turn), (1 - growth**2) / 2]
    )


def kovasznay(seed: int) -> Problem:
    """Steady Navier-Stokes at Reynolds number RE on [-0.5, 1] x [-0.5, 1.5] (L. Kovasznay, 1948); the error
    of the velocities."""
    net = network(2, 24, 2, seed, outputs=3)
    exact = kovasznay_exact
    low, high = [-0.5, -0.5], [1.0, 1.5]

    parts = gc.partials(net, [(0,), (1,), (0, 0), (1, 1)])

    def equation(x: gc.Tensor) -> gc.Tensor:
        f, (fx, fy, fxx, fyy) = net(x), parts(x)
        u, v = column(f, 0), column(f, 1)

        def momentum(k: int, pressure: gc.Tensor) -> gc.Tensor:
            moved = u * column(fx, k) + v * column(fy, k)
            return moved + pressure - (column(fxx, k) + column(fyy, k)) / RE

        first = momentum(0, column(fx, 2))
        second = momentum(1, column(fy, 2))
        return ops.concat((first, second, column(fx, 0) + column(fy, 1)), 1)

    def border(x: gc.Tensor, want: gc.Tensor) -> gc.Tensor:
        return net(x) - want

    def points(random: np.random.Generator) -> list[Points]:
        on = edge(random, 256, low, high)
        return [tensors(box(random, 512, low, high)), tensors(on, exact(on))]

    test = grid(low, high, 101)
    return Problem(
        [equation, border], net.trainable_params(), points,
        lambda: relative(net(gc.Tensor(test)).asnumpy()[:, :2], exact(test)[:, :2]), [1, 10], 60,
        test=(test, exact(test)[:, :2]), network=net,
    )  # fmt: skip


@cache
def burgers_reference() -> tuple[Any, Any]:
    """Points of a grid and the solution there, by the Cole-Hopf integral (Basdevant et al. 1986)."""
    from gradcell.demo import burgers as demo

    t, x = np.meshgrid(np.linspace(0.01, 1, 100), np.linspace(-1, 1, 257), indexing="ij")
    u = demo.exact(t, x)
    return np.stack([t.ravel(), x.ravel()], 1), u.reshape(-1, 1)


def burgers(seed: int) -> Problem:
    """u_t + u u_x = 0.01 / pi u_xx from -sin(pi x), with u(t, +-1) = 0: by an ansatz
    u = -sin(pi x) + t (1 - x^2) N."""
    net = network(2, 20, 3, seed)
    nu = 0.01 / PI

    def solution(x: gc.Tensor) -> gc.Tensor:
        t, y = column(x, 0), column(x, 1)
        return -ops.sin(y * PI) + t * (1 - y * y) * net(x)

    parts = gc.partials(solution, [(0,), (1,), (1, 1)])

    def equation(x: gc.Tensor) -> gc.Tensor:
        u_t, u_x, u_xx = parts(x)
        return u_t + solution(x) * u_x - nu * u_xx

    def points(random: np.random.Generator) -> list[Points]:
        even = box(random, 1024, [0, -1], [1, 1])
        near = box(random, 1024, [0, -1], [1, 1])
        near[:, 1] = np.clip(0.08 * np.tan(near[:, 1] * 1.48) / np.tan(1.48) * 12, -1, 1)
        return [tensors(np.concatenate([even, near]))]

    test, want = burgers_reference()
    at = gc.Tensor(test)
    return Problem(
        [equation], net.trainable_params(), points,
        lambda: relative(solution(at).asnumpy(), want), [1], 300, every=20, target=1e-5, test=(test, want),
        network=net, solution=solution,
    )  # fmt: skip


def etdrk4(linear: Any, rest: Callable[[Any], Any], start: Any, end: float, steps: int) -> Any:
    """Courses of coefficients v' = linear v + rest(v), each by itself in the linear part, [steps + 1, ...]:
    an exponential Runge-Kutta scheme of order 4 (A. Kassam, L. Trefethen, SIAM J. Sci. Comput. 26, 2005)."""
    h = end / steps
    roots = np.exp(1j * PI * (np.arange(1, 33) - 0.5) / 32)
    lr = h * linear[..., None] + roots
    full, half = np.exp(h * linear), np.exp(h * linear / 2)
    q = h * np.real(np.mean((np.exp(lr / 2) - 1) / lr, -1))
    f1 = h * np.real(np.mean((-4 - lr + np.exp(lr) * (4 - 3 * lr + lr**2)) / lr**3, -1))
    f2 = h * np.real(np.mean((2 + lr + np.exp(lr) * (-2 + lr)) / lr**3, -1))
    f3 = h * np.real(np.mean((-4 - 3 * lr - lr**2 + np.exp(lr) * (4 - lr)) / lr**3, -1))
    course = [start]
    for _ in range(steps):
        v = course[-1]
        nv = rest(v)
        a = half * v + q * nv
        na = rest(a)
        b = half * v + q * na
        nb = rest(b)
        c = half * a + q * (2 * nb - nv)
        course.append(full * v + nv * f1 + 2 * (na + nb) * f2 + rest(c) * f3)
    return np.array(course)


@cache
def allen_cahn_reference() -> tuple[Any, Any]:
    """u_t = 0.0001 u_xx + 5 (u - u^3), periodic on [-1, 1], from x^2 cos(pi x): by 4096 Fourier modes and
    1,000 steps."""
    n, steps = 4096, 1000
    x = -1 + 2 * np.arange(n) / n
    wave = PI * np.fft.rfftfreq(n, 1 / n)

    def rest(v: Any) -> Any:
        return np.fft.rfft(-5 * np.fft.irfft(v, n) ** 3)

    start = np.fft.rfft(x**2 * np.cos(PI * x))
    course = etdrk4(5 - 1e-4 * wave**2, rest, start, 1.0, steps)
    rows = np.fft.irfft(course[:: steps // 100], n)
    t = np.repeat(np.linspace(0, 1, 101), n // 16)
    return np.stack([t, np.tile(x[::16], 101)], 1), rows[:, ::16].reshape(-1, 1)


def allen_cahn(seed: int) -> Problem:
    """u_t = d u_xx + 5 (u - u^3) with d = 0.0001, periodic, from x^2 cos(pi x), which has a kink at |x| = 1:
    with s = 1 - |x| it is -(1 + s^2) cos(pi s) + 2 s cos(pi s). A kink |s| diffuses as the heat equation
    says, to s erf(s / r) + r / sqrt(pi) exp(-(s / r)^2) with r^2 = 4 d t; a network of x alone stalls at
    1e-4, for want of it. So the solution is written with the diffused kink in place of s in the last term,
    plus t times a network whose inputs are t, cos(pi x), cos(2 pi x) and such a kink of 2 / pi cos(pi x / 2).
    All is even in x, as the solution is. Half of the points are where the residual is large."""
    d, net = 1e-4, network(4, 24, 3, seed)

    def kink(s: gc.Tensor, t: gc.Tensor) -> gc.Tensor:
        r = ops.sqrt(t * (4 * d)) + 1e-9
        z = s / r
        return s * ops.erf(z) + r * ops.exp(-z * z) / np.sqrt(PI)

    def solution(x: gc.Tensor) -> gc.Tensor:
        t, y = column(x, 0), column(x, 1)
        s, turned = 1 - ops.abs(y), ops.cos(y * PI)
        start = y * y * turned - 2 * turned * (kink(s, t) - s)
        bent = kink(ops.cos(y * (PI / 2)) * (2 / PI), t) * 2 - 0.5
        return start + t * net(ops.concat((t * 2 - 1, turned, ops.cos(y * (2 * PI)), bent), 1))

    parts = gc.partials(solution, [(0,), (1, 1)])

    def equation(x: gc.Tensor) -> gc.Tensor:
        u, (u_t, u_xx) = solution(x), parts(x)
        return u_t - d * u_xx - 5 * (u - u * u * u)

    residual = gc.jit(equation)

    def points(random: np.random.Generator) -> list[Points]:
        even, pool = (box(random, n, [0, 0], [1, 1]) for n in (1024, 8192))
        near = gc.physics.by_size(pool, residual(gc.Tensor(pool)).asnumpy(), 1024, random, floor=0)
        return [tensors(np.concatenate([even, near]))]

    test, want = allen_cahn_reference()
    at = gc.Tensor(test)
    return Problem(
        [equation], net.trainable_params(), points,
        lambda: relative(solution(at).asnumpy(), want), [1], 120, every=20, target=1e-5, test=(test, want),
    )  # fmt: skip


def wave(seed: int) -> Problem:
    """u_tt = 4 u_xx on [0, 1] x [0, 1] from sin(pi x) + sin(3 pi x) / 2 at rest, with u = 0 at the ends:
    start, rest and ends hold by construction."""
    net = network(2, 32, 2, seed)

    def exact(x: Any) -> Any:
        t, y = x[:, :1], x[:, 1:]
        first = np.sin(PI * y) * np.cos(2 * PI * t)
        return first + np.sin(3 * PI * y) * np.cos(6 * PI * t) / 2

    def solution(x: gc.Tensor) -> gc.Tensor:
        t, y = column(x, 0), column(x, 1)
        start = ops.sin(y * PI) + ops.sin(y * (3 * PI)) / 2
        return start + t * t * y * (1 - y) * net(x)

    parts = gc.partials(solution, [(0, 0), (1, 1)])

    def equation(x: gc.Tensor) -> gc.Tensor:
        u_tt, u_xx = parts(x)
        return u_tt - 4 * u_xx

    test = grid([0, 0], [1, 1], 101)
    return Problem(
        [equation], net.trainable_params(), lambda random: [tensors(box(random, 2048, [0, 0], [1, 1]))],
        of_network(solution, test, exact(test)), [1], 120, every=20, target=1e-5,
        test=(test, exact(test)), network=net, solution=solution,
    )  # fmt: skip


def kdv(seed: int) -> Problem:
    """u_t + 6 u u_x + u_xxx = 0 on [0, 1] x [-6, 10]: two solitons, of wave numbers 1.2 and 0.8 (R. Hirota,
    Phys. Rev. Lett. 27, 1971), values at the ends and the slope at the right one are given."""
    net = network(2, 24, 3, seed)
    low, high = [0.0, -6.0], [1.0, 10.0]
    waves, shifts = (1.2, 0.8), (0.0, -2.4)

    def tau(x: Any, e: Any) -> Any:
        """2 (log tau)_xx is the solution, tau = 1 + e1 + e2 + a e1 e2."""
        (k, m), ratio = waves, ((waves[0] - waves[1]) / (waves[0] + waves[1])) ** 2
        a, b = (
            e(w * column(x, 1) - w**3 * column(x, 0) + s)
            for w, s in zip(waves, shifts, strict=True)
        )
        both = ratio * a * b
        f = 1 + a + b + both
        f_x = k * a + m * b + (k + m) * both
        f_xx = k * k * a + m * m * b + (k + m) ** 2 * both
        return 2 * (f_xx * f - f_x * f_x) / (f * f)

    def exact(x: Any) -> Any:
        return tau(x, np.exp)

    def scaled(x: gc.Tensor) -> gc.Tensor:
        return net(ops.concat((column(x, 0) * 2 - 1, (column(x, 1) - 2) / 4), 1))

    def solution(x: gc.Tensor) -> gc.Tensor:
        start = ops.concat((column(x, 0) * 0, column(x, 1)), 1)
        return tau(start, ops.exp) + column(x, 0) * scaled(x)

    parts = gc.partials(solution, [(0,), (1,), (1, 1, 1)])
    slope, slope_of_exact = (
        gc.partials(solution, [(1,)]),
        gc.partials(lambda x: tau(x, ops.exp), [(1,)]),
    )

    def equation(x: gc.Tensor) -> gc.Tensor:
        u_t, u_x, u_xxx = parts(x)
        return u_t + 6 * solution(x) * u_x + u_xxx

    def points(random: np.random.Generator) -> list[Points]:
        ends = gc.physics.faces(256, low, high, random, sides=[(1, 0), (1, 1)])
        right = gc.physics.faces(128, low, high, random, sides=[(1, 1)])
        slopes = slope_of_exact(gc.Tensor(right))[0].asnumpy()
        inside = box(random, 2048, low, high)
        return [tensors(inside), tensors(ends, exact(ends)), tensors(right, slopes)]

    test = grid(low, high, 101)
    return Problem(
        [equation, lambda x, u: solution(x) - u, lambda x, s: slope(x)[0] - s],
        net.trainable_params(), points,
        of_network(solution, test, exact(test)), [1, 100, 10], 120, every=20, target=1e-5,
    )  # fmt: skip


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "poisson": poisson,
    "heat": heat,
    "inverse-heat": inverse_heat,
    "kovasznay": kovasznay,
    "helmholtz-1": lambda seed: helmholtz(seed, 1),
    "helmholtz-4": helmholtz,
    "poisson-5": lambda seed: poisson10(seed, 5),
    "poisson-10": poisson10,
    "burgers": burgers,
    "allen-cahn": allen_cahn,
    "wave": wave,
    "kdv": kdv,
}
