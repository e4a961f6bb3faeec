"""References that bench/solve_hard.py compares with, in NumPy alone: polynomials on Chebyshev's points."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np


def chebyshev(n: int, low: float, high: float) -> tuple[Any, Any]:
    """n + 1 points from low to high, and the matrix that differentiates values there (L. Trefethen, Spectral
    Methods in MATLAB, 2000, chapter 6)."""
    x = -np.cos(np.pi * np.arange(n + 1) / n)
    c = np.where(np.arange(n + 1) % n == 0, 2.0, 1.0) * (-1.0) ** np.arange(n + 1)
    apart = x[:, None] - x + np.eye(n + 1)
    d = np.outer(c, 1 / c) / apart
    d -= np.diag(d.sum(1))
    return low + (x + 1) / 2 * (high - low), d * 2 / (high - low)


def to_places(n: int, low: float, high: float, at: Any) -> Any:
    """The matrix that takes values at Chebyshev's points to places."""

    def each(x: Any) -> Any:
        return np.polynomial.chebyshev.chebvander(2 * (x - low) / (high - low) - 1, n)

    return np.linalg.solve(each(chebyshev(n, low, high)[0]).T, each(at).T).T


def newton(system: Callable[[Any], tuple[Any, Any]], start: Any, most: int = 20) -> Any:
    """The zero of a system that gives residuals and their Jacobian: Newton's steps until they no longer
    shrink."""
    x, last = start, np.inf
    for _ in range(most):
        residual, jacobian = system(x)
        step = np.linalg.solve(jacobian, -residual)
        x, size = x + step, np.abs(step).max()
        if size < 1e-12 or (size < 1e-6 and size > 0.5 * last):
            return x
        last = size
    raise RuntimeError(f"Newton's steps do not end: the last one is {last:.1e}")


# The cavity ---------------------------------------------------------------------------------------------


def scraping(x: Any, y: Any, a: int, b: int) -> Any:
    """The derivative, a times by x and b times by y, of the stream functions of both upper corners: -(e Y + c
    X t + d Y t) with X from the corner, Y from the lid and the angle t (G. Taylor, 1962)."""
    c = 1 / (1 - np.pi**2 / 4)
    e, d = 1 - c, c * np.pi / 2
    factorial = [1, 1, 1, 2, 6]

    def angle(z: Any, a: int, b: int) -> Any:
        n = a + b
        if min(a, b) < 0:
            return 0.0
        slope = np.log(z) if n == 0 else (-1.0) ** (n - 1) * factorial[n] * z ** (-float(n))
        return (1j**b * slope).imag

    found = np.zeros(np.shape(x))
    for across, turn in ((x, 1.0), (1 - x, -1.0)):
        down = 1 - y
        z = across + 1j * down
        part = c * (across * angle(z, a, b) + a * angle(z, a - 1, b))
        part = part + d * (down * angle(z, a, b) + b * angle(z, a, b - 1))
        if (a, b) in ((0, 0), (0, 1)):
            part = part + e * (down if b == 0 else 1.0)
        found = found - turn**a * (-1.0) ** b * part
    return found


@cache
def cavity(reynolds: float, n: int = 56) -> Callable[[Any], Any]:
    """Velocities in the unit square whose lid moves, a function of points: the stream function is Taylor's
    for both upper corners plus a polynomial of this degree along each axis."""
    x, d = chebyshev(n, 0, 1)
    one, powers = np.eye(n + 1), [np.linalg.matrix_power(d, k) for k in range(5)]
    grid_x, grid_y = (g.ravel() for g in np.meshgrid(x, x, indexing="ij"))
    inner = (np.arange(n + 1) > 1) & (np.arange(n + 1) < n - 1)
    inside = np.outer(inner, inner).ravel()

    def by(a: int, b: int) -> Any:
        return np.kron(powers[a], powers[b])[inside]

    slopes = {k: by(*k) for k in ((1, 0), (0, 1), (3, 0), (1, 2), (2, 1), (0, 3))}
    bent = by(4, 0) + 2 * by(2, 2) + by(0, 4)
    own = {k: scraping(grid_x[inside], grid_y[inside], *k) for k in slopes}

    # Values on the walls, and slopes across them in place of the equation next to them.
    rows, right = [], []
    for k, wall in ((0, 0.0), (n, 1.0)):
        for axis in (0, 1):
            along = np.arange(n + 1) if axis == 0 else np.arange(1, n)
            near = np.arange(1, n) if axis == 0 else np.arange(2, n - 1)
            for places, order in ((along, 0), (near, 1)):
                for j in places:
                    line, other = powers[order][k], one[j]
                    rows.append(np.kron(line, other) if axis == 0 else np.kron(other, line))
                    at = (wall, x[j]) if axis == 0 else (x[j], wall)
                    corner = at[1] == 1 and at[0] in (0, 1)
                    a, b = (order, 0) if axis == 0 else (0, order)
                    value = 0.0 if corner else scraping(*map(np.array, at), a, b)
                    right.append((1.0 if axis == 1 and wall == 1 and order == 1 else 0.0) - value)
    edges, edge_values = np.array(rows), np.array(right)

    def system(phi: Any) -> tuple[Any, Any]:
        s = {k: m @ phi + own[k] for k, m in slopes.items()}
        spin_x, spin_y = s[3, 0] + s[1, 2], s[2, 1] + s[0, 3]
        residual = s[0, 1] * spin_x - s[1, 0] * spin_y - bent @ phi / reynolds
        jacobian = (
            s[0, 1][:, None] * (slopes[3, 0] + slopes[1, 2]) + spin_x[:, None] * slopes[0, 1]
            - s[1, 0][:, None] * (slopes[2, 1] + slopes[0, 3]) - spin_y[:, None] * slopes[1, 0]
            - bent / reynolds
        )  # fmt: skip
        scale = 1 / np.linalg.norm(jacobian, axis=1)
        return (
            np.concatenate([residual * scale, edges @ phi - edge_values]),
            np.concatenate([jacobian * scale[:, None], edges]),
        )

    start = np.zeros((n + 1) ** 2)
    if reynolds > 100:
        start = cavity(reynolds / 2.5, n).phi  # type: ignore[attr-defined]
    phi = newton(system, start)
    by_x, by_y = (d @ phi.reshape(n + 1, n + 1), phi.reshape(n + 1, n + 1) @ d.T)

    def velocities(p: Any) -> Any:
        left, below = to_places(n, 0, 1, p[:, 0]), to_places(n, 0, 1, p[:, 1])
        u = np.einsum("pi,ij,pj->p", left, by_y, below, optimize=True) + scraping(*p.T, 0, 1)
        v = -np.einsum("pi,ij,pj->p", left, by_x, below, optimize=True) - scraping(*p.T, 1, 0)
        return np.stack([u, v], 1)

    velocities.phi = phi  # type: ignore[attr-defined]
    return velocities


#: The velocity along the lid at places above the middle of the floor, by Reynolds number (U. Ghia, K. Ghia,
#: C. Shin, J. Comput. Phys. 48, 1982, table I): by finite differences, right to a few thousandths.
_HEIGHTS = (
    0.0547, 0.0625, 0.0703, 0.1016, 0.1719, 0.2813, 0.4531, 0.5, 0.6172, 0.7344, 0.8516, 0.9531, 0.9609,
    0.9688, 0.9766,
)  # fmt: skip
GHIA = {
    reynolds: [*zip(_HEIGHTS, along, strict=True)]
    for reynolds, along in (
        (100, (-0.03717, -0.04192, -0.04775, -0.06434, -0.10150, -0.15662, -0.21090, -0.20581, -0.13641,
               0.00332, 0.23151, 0.68717, 0.73722, 0.78871, 0.84123)),
        (400, (-0.08186, -0.09266, -0.10338, -0.14612, -0.24299, -0.32726, -0.17119, -0.11477, 0.02135,
               0.16256, 0.29093, 0.55892, 0.61756, 0.68439, 0.75837)),
        (1000, (-0.18109, -0.20196, -0.22220, -0.29730, -0.38289, -0.27805, -0.10648, -0.06080, 0.05702,
                0.18719, 0.33304, 0.46604, 0.51117, 0.57492, 0.65928)),
    )
}  # fmt: skip


# Energies -----------------------------------------------------------------------------------------------


def energies(potential: Callable[[Any], Any], half: float, n: int = 96) -> Any:
    """The energies of -f'' + V f = E f on an interval at whose ends f is 0."""
    x, d = chebyshev(n, -half, half)
    matrix = np.diag(potential(x)) - d @ d
    return np.sort(np.linalg.eigvals(matrix[1:-1, 1:-1]).real)


# Fields and operators -----------------------------------------------------------------------------------


def conducted(log_k: Callable[[Any], Any], n: int = 24) -> Callable[[Any], Any]:
    """u of -div(k grad u) = 10 on the unit square, 0 on its edge: a function of points."""
    x, d = chebyshev(n, 0, 1)
    at = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2)
    k, one = np.exp(log_k(at)), np.eye(n + 1)
    inner = np.flatnonzero((at.min(1) > 0) & (at.max(1) < 1))
    by_x, by_y = np.kron(d, one), np.kron(one, d)
    matrix = -(by_x @ (k * by_x) + by_y @ (k * by_y))[np.ix_(inner, inner)]
    u = np.linalg.solve(matrix, np.full((len(inner), 1), 10.0))

    u = np.pad(u.reshape(n - 1, n - 1), 1)

    def found(p: Any) -> Any:
        left, right = to_places(n, 0, 1, p[:, 0]), to_places(n, 0, 1, p[:, 1])
        return np.einsum("pi,ij,pj->p", left, u, right, optimize=True)[:, None]

    return found


@cache
def likely(seed: int) -> tuple[Any, Any]:
    """The most likely coefficients of `solve_fields.conductivity`, [16], and their covariance."""
    from scipy.optimize import least_squares

    import solve_fields as fields

    x, u, noise = fields.measured(seed)
    deviations = fields.prior()

    def residuals(c: Any) -> Any:
        model = conducted(lambda p: fields.cosines(p, np) @ c[:, None])(x)
        return np.concatenate([(model - u)[:, 0] / noise, c / deviations])

    found = least_squares(
        residuals, np.zeros(16), jac="3-point", xtol=1e-14, ftol=1e-14, gtol=1e-14
    )
    return found.x, np.linalg.inv(found.jac.T @ found.jac)


def cubed(f: Callable[[Any], Any], n: int = 40) -> Callable[[Any], Any]:
    """u of -u'' + 3 u^3 = f, 0 at both ends of [0, 1], a function of places [n, 1]."""
    x, d = chebyshev(n, 0, 1)
    second, right = (d @ d)[1:-1, 1:-1], f(x[1:-1, None])[:, 0]

    def system(u: Any) -> tuple[Any, Any]:
        return -second @ u + 3 * u**3 - right, -second + np.diag(9 * u**2)

    u = np.concatenate([[0.0], newton(system, np.zeros(n - 1)), [0.0]])
    return lambda at: to_places(n, 0, 1, at[:, 0]) @ u[:, None]
