"""An unknown field and an operator for bench/solve.py, by GaussNewton and gradcell.physics.

    python bench/solve_fields.py      # how certain the conductivity is, beside the reference's own bars

`physics.solve` finds one solution of one equation, these are more than that.
"""

from __future__ import annotations

import argparse
from functools import cache
from typing import Any

import numpy as np

import gradcell as gc
import solve_references as references
from gradcell import nn, ops, physics
from solve_problems import PI, Problem, box, grid, relative, tensors

# A conductivity -----------------------------------------------------------------------------------------

NOISE, COUNT, WAVES = 0.01, 50, 4  # of the largest u; measurements; cosines along each axis


def prior() -> Any:
    """The standard deviations of the coefficients of log k, before anything is measured, [16]."""
    i, j = np.divmod(np.arange(WAVES**2), WAVES)
    return 1 / (1 + i**2 + j**2)


def cosines(x: Any, m: Any) -> Any:
    """cos(i pi x) cos(j pi y), [n, 16]."""
    a = [m.cos(i * PI * x[:, :1]) for i in range(WAVES)]
    b = [m.cos(j * PI * x[:, 1:]) for j in range(WAVES)]
    parts = [p * q for p in a for q in b]
    return ops.concat(parts, 1) if m is ops else np.hstack(parts)


def truth(x: Any) -> Any:
    """log k of the material that was measured, which is no sum of the cosines."""
    return 0.8 * np.exp(-8 * ((x[:, :1] - 0.35) ** 2 + (x[:, 1:] - 0.6) ** 2)) - 0.3 * x[:, :1]


@cache
def measured(seed: int) -> tuple[Any, Any, float]:
    """50 places in the unit square, u there with noise, and the noise's standard deviation."""
    random = np.random.default_rng([seed, 50])
    x = box(random, COUNT, [0.05, 0.05], [0.95, 0.95])
    u = references.conducted(truth)(x)
    noise = NOISE * float(np.abs(u).max())
    return x, u + noise * random.normal(size=u.shape), noise


class Conducted(nn.Cell):
    """u, 0 on the edge of the unit square, by dense layers, and the coefficients of log k."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.net = physics.network([2, 20, 20, 1], seed)
        self.field = gc.Parameter(gc.Tensor(np.zeros((WAVES**2, 1))), name="field")

    def construct(self, x: gc.Tensor) -> gc.Tensor:
        return 16 * physics.vanishing(x, [0, 0], [1, 1]) * self.net(2 * x - 1)

    def log_k(self, x: gc.Tensor) -> gc.Tensor:
        return ops.matmul(cosines(x, ops), self.field)


def conductivity(seed: int) -> Problem:
    """-div(k grad u) = 10 on the unit square, u = 0 on its edge: log k, 16 cosines with normal coefficients,
    from 50 measurements of u with a noise of one percent; the error is that of k. Reference: the most likely
    k, by polynomials for u and SciPy's least squares."""
    net, s = Conducted(seed), prior()
    parts, slopes = (
        gc.partials(net, [(0,), (1,), (0, 0), (1, 1)]),
        gc.partials(net.log_k, [(0,), (1,)]),
    )

    def equation(x: gc.Tensor) -> gc.Tensor:
        (u_x, u_y, xx, yy), (q_x, q_y) = parts(x), slopes(x)
        return xx + yy + q_x * u_x + q_y * u_y + 10 * ops.exp(-net.log_k(x))

    def misfit(x: gc.Tensor, u: gc.Tensor) -> gc.Tensor:
        return net(x) - u

    def expected(deviations: gc.Tensor) -> gc.Tensor:
        return net.field.reshape(1, -1) / deviations

    x, u, noise = measured(seed)
    test = grid([0, 0], [1, 1], 41)
    want = np.exp(cosines(test, np) @ references.likely(seed)[0][:, None])

    def error() -> float:
        return relative(np.exp(cosines(test, np) @ net.field.asnumpy()), want)

    return Problem(
        [equation, misfit, expected], net.trainable_params(),
        lambda random: [tensors(box(random, 800, [0, 0], [1, 1])), tensors(x, u), tensors(s[None])],
        error, [10, COUNT * 1e-2, len(s) * noise**2 * 1e-2], 60, target=1e-3, network=net,
    )  # fmt: skip


def bars(seed: int) -> tuple[float, float, float]:
    """Of a fit: its error, how far the standard deviations of log k on a grid are from the reference's,
    relative to these, and in which share of places the truth is within two of them."""
    problem = conductivity(seed)
    net, noise = problem.network, measured(seed)[2]
    solver = gc.GaussNewton(
        problem.residuals, problem.parameters, weights=problem.weights, value_tolerance=1e-7
    )
    solver.run(2000, *problem.points(np.random.default_rng(seed)))
    certain = solver.covariance(net.field, data=problem.residuals[1:], noise=[noise, 1.0])
    at = grid([0, 0], [1, 1], 21)
    found, (c, matrix) = certain.of(net.log_k, at)[:, 0], references.likely(seed)
    waves = cosines(at, np)
    want = np.sqrt(np.einsum("pi,ij,pj->p", waves, matrix, waves))
    inside = np.abs(waves @ c - truth(at)[:, 0]) < 2 * found
    return problem.error(), relative(found, want), float(np.mean(inside))


# An operator --------------------------------------------------------------------------------------------

SINES, SENSORS = 5, 12


def sources(random: np.random.Generator, n: int) -> Any:
    """Coefficients of n random sources, sums of sines, [n, 5]."""
    return random.uniform(-1, 1, (n, SINES)) * 20 / (1 + np.arange(SINES))


def source(c: Any, x: Any) -> Any:
    """Sources at places, [n, 1] of [n, 5] and [n, 1]."""
    return (c * np.sin(PI * x * (1 + np.arange(SINES)))).sum(1, keepdims=True)


class DeepONet(nn.Cell):
    """u at x for a source that is known at sensors, 0 at both ends (L. Lu and others, Nature Machine
    Intelligence 3, 2021)."""

    def __init__(self, seed: int, width: int = 24, terms: int = 16) -> None:
        super().__init__()
        self.branch = physics.network([SENSORS, width, width, terms], seed)
        self.trunk = physics.network([1, width, terms], seed + 1)

    def construct(self, sensors: gc.Tensor, x: gc.Tensor) -> gc.Tensor:
        product = self.branch(sensors * 0.1) * self.trunk(x)
        return x * (1 - x) * product.sum(1, keepdims=True)


def operator(seed: int) -> Problem:
    """The operator from f to the solution u of -u'' + 3 u^3 = f, u = 0 at both ends of [0, 1], learned from
    the equation alone for random sources; the error over 200 new ones. Reference: polynomials, Newton's
    steps."""
    net = DeepONet(seed)

    def at(x: gc.Tensor, sensors: gc.Tensor, f: gc.Tensor) -> gc.Tensor:
        def u(x: gc.Tensor) -> gc.Tensor:
            return net(sensors, x)

        (second,) = gc.partials(u, [(0, 0)])(x)
        return -second + 3 * u(x) ** 3 - f

    places = np.linspace(0, 1, SENSORS + 2)[1:-1]

    def seen(c: Any) -> Any:
        return np.hstack([source(c, np.full((len(c), 1), p)) for p in places])

    def points(random: np.random.Generator) -> list[Any]:
        c, x = sources(random, 3000), random.random((3000, 1))
        return [tensors(x, seen(c), source(c, x))]

    c = sources(np.random.default_rng(1), 200)
    x = np.linspace(0, 1, 41)[:, None]
    want = np.concatenate([references.cubed(lambda x, a=a: source(a[None], x))(x) for a in c])
    test = tensors(np.repeat(seen(c), len(x), 0), np.tile(x, (len(c), 1)))
    return Problem(
        [at], net.trainable_params(), points, lambda: relative(net(*test).asnumpy(), want), [1], 300,
        every=5, target=1e-3, network=net,
    )  # fmt: skip


FIELDS = {"conductivity": conductivity, "operator": operator}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    for seed in parser.parse_args().seeds:
        error, bar, inside = bars(seed)
        print(
            f"seed {seed}: error of k {error:.1e}, of its bars {bar:.1e}, truth within two {inside:.0%}"
        )


if __name__ == "__main__":
    main()
