"""Four transforms, a picture of each.

- `vmap(jacfwd(f))`: what a map of the plane does to small circles;
- `hessian`: a valley's directions of most and least curvature;
- `jet`: Taylor polynomials of one function to order 24, all from one pass;
- `vmap` of a list of networks: an ensemble trained at once, whose members disagree where there are no data.

    python examples/transforms.py --plot transforms.png
"""

from __future__ import annotations

import argparse
from math import factorial
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import nn, ops

#: The orders of the polynomials that are drawn.
ORDERS = (1, 3, 6, 12, 24)


def swirl(p: gc.Tensor) -> gc.Tensor:
    """A map of the plane: [2] to [2]. It turns points near the origin most."""
    angle = 2.5 * ops.exp(-ops.square(p).sum())
    c, s = ops.cos(angle), ops.sin(angle)
    return ops.stack([c * p[0] - s * p[1], s * p[0] + c * p[1]])


def circles(n: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """Images of n by n points, [n * n, 2], and of small circles around them to first order,
    [n * n, 40, 2]."""
    points = np.stack(np.meshgrid(*[np.linspace(-1.6, 1.6, n)] * 2), -1).reshape(-1, 2)
    images = gc.vmap(swirl)(gc.Tensor(points)).asnumpy()
    jacobians = gc.vmap(gc.jacfwd(swirl))(gc.Tensor(points)).asnumpy()
    turn = np.linspace(0, 2 * np.pi, 40)
    circle = 0.13 * np.stack([np.cos(turn), np.sin(turn)], -1)
    return images, images[:, None] + circle @ jacobians.transpose(0, 2, 1)


def valley(p: gc.Tensor) -> gc.Tensor:
    """Rosenbrock's function of [2]."""
    return ops.square(1 - p[0]) + 10 * ops.square(p[1] - ops.square(p[0]))


def curvatures(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, [n, 2], and eigenvectors, [n, 2, 2], of the valley's Hessians at points [n, 2]."""
    return np.linalg.eigh(gc.vmap(gc.hessian(valley))(gc.Tensor(points)).asnumpy())


def wave(x: gc.Tensor) -> gc.Tensor:
    return ops.exp(ops.sin(2 * x)) * ops.cos(x)


def polynomials(x: np.ndarray) -> dict[int, np.ndarray]:
    """Taylor polynomials of the wave at 0, by order."""
    curve = np.zeros(max(ORDERS))
    curve[0] = 1  # x moves at speed 1
    value, derivatives = ops.jet(wave, gc.Tensor(np.float64(0)), gc.Tensor(curve))
    terms = [value.asnumpy(), *derivatives.asnumpy()]
    return {
        n: np.sum([d * x**k / factorial(k) for k, d in enumerate(terms[: n + 1])], 0)
        for n in ORDERS
    }


def observations(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Noisy values of a sine in two stretches with a gap between, both [n, 1]."""
    random = np.random.default_rng(3)
    side = np.where(random.random((n, 1)) < 0.5, -1, 1)
    x = side * random.uniform(0.5, 1.2, (n, 1))
    return x.astype(np.float32), (np.sin(4 * x) + random.normal(0, 0.1, x.shape)).astype("f4")


def ensemble(members: int = 24, steps: int = 400) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Where they were asked, [200]; what each member says, [members, 200]; the mean loss by step."""
    gc.set_seed(0)
    cells = nn.CellList(
        [
            nn.SequentialCell(
                nn.Dense(1, 24), nn.Tanh(), nn.Dense(24, 24), nn.Tanh(), nn.Dense(24, 1)
            )
            for _ in range(members)
        ]
    )
    random = np.random.default_rng(0)
    for cell in cells:
        first = cell[0]
        first.weight.set_data(gc.Tensor(random.normal(0, 3, (24, 1)).astype(np.float32)))
        first.bias.set_data(gc.Tensor(random.uniform(-3, 3, 24).astype(np.float32)))
    together = gc.vmap(cells, in_axes=None)
    x, y = map(gc.Tensor, observations())
    optimizer = nn.Adam(cells.trainable_params(), learning_rate=5e-3)

    def loss() -> gc.Tensor:
        return members * ops.square(together(x) - y).mean()  # each member's own, added up

    value_and_gradient = gc.value_and_grad(loss, None, optimizer.parameters)

    @gc.jit
    def step() -> gc.Tensor:
        value, gradients = value_and_gradient()
        optimizer(gradients)
        return value / members

    losses = [float(step()) for _ in range(steps)]
    asked = np.linspace(-1.5, 1.5, 200).astype(np.float32)
    return asked, together(gc.Tensor(asked[:, None])).asnumpy()[..., 0], losses


def plot(path: str, members: int = 24, steps: int = 400) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 8.5), layout="constrained")
    axes: Any = figure.subplots(2, 2)

    images, ellipses = circles()
    axes[0, 0].plot(*ellipses.transpose(2, 1, 0), color="#1f77b4", linewidth=0.8)
    axes[0, 0].plot(*images.T, ".", color="#444444", markersize=2)
    axes[0, 0].set(title="vmap(jacfwd(swirl)): circles after a map", aspect="equal")

    x, y = np.meshgrid(np.linspace(-1.6, 1.6, 161), np.linspace(-0.8, 2.2, 151))
    heights = gc.vmap(valley)(gc.Tensor(np.stack([x, y], -1).reshape(-1, 2))).asnumpy()
    axes[0, 1].contour(x, y, heights.reshape(x.shape), np.geomspace(0.1, 100, 12), cmap="viridis",
                       linewidths=0.7)  # fmt: skip
    along = np.linspace(-1.3, 1.3, 9)
    points = np.stack([along, along**2], -1)
    values, vectors = curvatures(points)
    for k, color in ((0, "#2ca02c"), (1, "#d62728")):
        step = vectors[:, :, k] * 0.35 / (1 + np.abs(values[:, k : k + 1])) ** 0.25
        axes[0, 1].plot(*np.stack([points - step, points + step]).transpose(2, 0, 1), color=color)
    axes[0, 1].set(title="hessian(valley): least and most curved", aspect="equal")

    line = np.linspace(-1.8, 1.8, 400)
    axes[1, 0].plot(line, wave(gc.Tensor(line)).asnumpy(), color="black", linewidth=2, label="wave")
    for order, values in polynomials(line).items():
        axes[1, 0].plot(line, values, linewidth=1, label=f"order {order}")
    axes[1, 0].set(ylim=(-2.5, 3.5), title="jet(wave): Taylor polynomials from one pass")
    axes[1, 0].legend(frameon=False, ncols=2, fontsize="small")

    asked, said, losses = ensemble(members, steps)
    axes[1, 1].plot(asked, said.T, color="#1f77b4", alpha=0.35, linewidth=0.8)
    axes[1, 1].plot(asked, np.sin(4 * asked), color="black", linewidth=1.5)
    axes[1, 1].plot(*observations(), ".", color="#d62728")
    axes[1, 1].set(
        ylim=(-2.5, 2.5),
        title=f"vmap of {members} networks, trained at once (loss {losses[-1]:.3f})",
    )
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", default="transforms.png")
    given = parser.parse_args()
    plot(given.plot)
    print(f"saved {given.plot}")


if __name__ == "__main__":
    main()
