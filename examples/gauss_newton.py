"""A Poisson equation by a network, trained by Gauss-Newton steps against Adam.

-(u_xx + u_yy) = f on the unit square, u = 0 on its edge, with f such that u = sin(pi x) sin(2 pi y). The
loss is a sum of squares, of the equation's residual at points inside and of u on the edge. A step solves
(J' J + d I) s = -J' r for the residuals r and their Jacobian J by the weights, by conjugate gradients:
each iteration is one product with J' J (gradcell.gauss_newton_product), and J is never made. The damping
d falls when a step lowers the loss and grows when it does not (Levenberg and Marquardt).

    python examples/gauss_newton.py --plot gauss_newton.png
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import gradcell as gc
from gradcell import nn, ops

PI = float(np.pi)
Course = list[tuple[float, float]]  # (seconds, relative error)


def exact(p: np.ndarray) -> np.ndarray:
    return np.sin(PI * p[:, :1]) * np.sin(2 * PI * p[:, 1:])


def network(width: int = 24, seed: int = 0) -> nn.SequentialCell:
    """[n, 2] to [n, 1], in float64."""
    gc.set_seed(seed)
    net = nn.SequentialCell(
        nn.Dense(2, width), nn.Tanh(), nn.Dense(width, width), nn.Tanh(), nn.Dense(width, 1)
    )
    random = np.random.default_rng(seed)
    layers = [cell for cell in net if isinstance(cell, nn.Dense)]
    for cell in layers:
        out, inner = cell.weight.shape
        weight = random.normal(size=(out, inner)) * np.sqrt(2 / (out + inner))
        cell.weight = gc.Parameter(gc.Tensor(weight), name=cell.weight.name)
        cell.bias = gc.Parameter(gc.Tensor(np.zeros(out)), name=cell.bias.name)
    return net


def problem(
    net: nn.Cell, n: int, seed: int = 1
) -> tuple[Callable[..., gc.Tensor], list[gc.Tensor]]:
    """The residuals, [n + edge, 1], as a function of points inside and on the edge; and such points."""
    random = np.random.default_rng(seed)
    inside = random.uniform(0, 1, (n, 2))
    along = random.uniform(0, 1, (n // 4, 1))
    ends = random.integers(0, 2, (n // 4, 1)).astype(float)
    edge = np.concatenate([np.hstack([along, ends]), np.hstack([ends, along])])
    source = 5 * PI**2 * exact(inside)

    def u(x: gc.Tensor, y: gc.Tensor) -> gc.Tensor:
        return net(ops.concat((x, y), 1))

    u_xx, u_yy = gc.grad(gc.grad(u, 0), 0), gc.grad(gc.grad(u, 1), 1)

    def residuals(x: gc.Tensor, y: gc.Tensor, f: gc.Tensor, border: gc.Tensor) -> gc.Tensor:
        equation = (u_xx(x, y) + u_yy(x, y) + f) / float(np.sqrt(n) * 10)
        return ops.concat((equation, net(border) * float(np.sqrt(10 / len(edge)))), 0)

    return residuals, [gc.Tensor(a) for a in (inside[:, :1], inside[:, 1:], source, edge)]


def relative_error(net: nn.Cell) -> float:
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 41)] * 2), -1).reshape(-1, 2)
    u = exact(grid)
    return float(np.linalg.norm(net(gc.Tensor(grid)).asnumpy() - u) / np.linalg.norm(u))


def gauss_newton(net: nn.Cell, steps: int, n: int, iterations: int = 60) -> Course:
    """Trains the network; (seconds, error) after each step."""
    weights = net.trainable_params()
    residuals, data = problem(net, n)
    matrix = gc.gauss_newton_product(residuals, weights=weights)

    def loss(*points: gc.Tensor) -> gc.Tensor:
        return 0.5 * ops.square(residuals(*points)).sum()

    flat = gc.FlatLoss(loss, weights, *data)
    ends = np.cumsum([0, *(w.size for w in weights)])

    @gc.jit
    def product(v: gc.Tensor, *points: gc.Tensor) -> gc.Tensor:
        parts = [
            v[a:b].reshape(w.shape) for a, b, w in zip(ends[:-1], ends[1:], weights, strict=True)
        ]
        return ops.concat([t.reshape(-1) for t in matrix(*points, tuple(parts))], 0)

    def solved(gradient: np.ndarray, damping: float) -> np.ndarray:
        """s of (J' J + d I) s = -gradient, by conjugate gradients."""
        s, r = np.zeros_like(gradient), -gradient
        p, rho = r.copy(), float(r @ r)
        for _ in range(iterations):
            q = product(gc.Tensor(p), *data).asnumpy() + damping * p
            alpha = rho / float(p @ q)
            s, r = s + alpha * p, r - alpha * q
            rho, before = float(r @ r), rho
            if rho < 1e-16 * float(gradient @ gradient):
                break
            p = r + rho / before * p
        return s

    start, course, damping = time.perf_counter(), [], 1e-2
    at = flat.vector
    value, gradient = flat(at)
    for _ in range(steps):
        s = solved(gradient, damping)
        new, new_gradient = flat(at + s)
        gain = (value - new) / (0.5 * float(s @ (damping * s - gradient)))  # 1: as the model says
        if new < value:
            at, value, gradient = at + s, new, new_gradient
        else:
            flat.assign(at)
        damping *= 0.3 if gain > 0.75 else 1 if gain > 0.25 else 3
        course.append((time.perf_counter() - start, relative_error(net)))
    return course


def adam(net: nn.Cell, seconds: float, n: int, steps: int = 10**9) -> Course:
    """The same by Adam, for as long."""
    residuals, data = problem(net, n)
    optimizer = nn.Adam(net.trainable_params(), learning_rate=3e-3)
    value_and_gradient = gc.value_and_grad(
        lambda *points: 0.5 * ops.square(residuals(*points)).sum(), None, optimizer.parameters
    )

    @gc.jit
    def step(*points: gc.Tensor) -> gc.Tensor:
        value, gradients = value_and_gradient(*points)
        optimizer(gradients)
        return value

    start, course = time.perf_counter(), []
    for i in range(steps):
        step(*data)
        if i % 20 == 0:
            course.append((time.perf_counter() - start, relative_error(net)))
            if course[-1][0] > seconds:
                break
    return course


def plot(newton: Course, by_adam: Course, net: nn.Cell, path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for course, label in ((by_adam, "Adam"), (newton, "Gauss-Newton, conjugate gradients")):
        left.loglog(*np.array(course).T, label=label)
    left.set(xlabel="seconds", ylabel="relative L2 error")
    left.legend(frameon=False)
    x, y = np.meshgrid(*[np.linspace(0, 1, 101)] * 2)
    grid = np.stack([x, y], -1).reshape(-1, 2)
    error = (net(gc.Tensor(grid)).asnumpy() - exact(grid)).reshape(x.shape)
    image = right.pcolormesh(x, y, error, cmap="RdBu_r", rasterized=True)
    figure.colorbar(image, ax=right, label="network - exact")
    right.set(xlabel="x", ylabel="y", title="error after Gauss-Newton")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, help="Gauss-Newton steps")
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--plot", default="gauss_newton.png")
    given = parser.parse_args()
    net = network()
    newton = gauss_newton(net, given.steps, given.points)
    by_adam = adam(network(), newton[-1][0], given.points)
    print(
        f"relative L2 error after {newton[-1][0]:.1f} s: Gauss-Newton {newton[-1][1]:.1e} "
        f"in {len(newton)} steps, Adam {by_adam[-1][1]:.1e}"
    )
    plot(newton, by_adam, net, given.plot)
    print(f"saved {given.plot}")


if __name__ == "__main__":
    main()
