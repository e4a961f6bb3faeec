"""Burgers' equation by a physics-informed network: u_t + u u_x = nu u_xx on t in [0, 1], x in [-1, 1].

u(0, x) = -sin(pi x), u(t, -1) = u(t, 1) = 0, nu = 0.01 / pi (Raissi, Perdikaris and Karniadakis,
J. Comput. Phys. 378, 2019, section 2.1.1). The ansatz u = -sin(pi x) + t (1 - x^2) net(t, x) holds
the initial and boundary values exactly, so the loss is the equation's residual alone. It contains
u_t, u_x and u_xx: each training step differentiates twice, and once more by the weights.

    python burgers_pinn.py --steps 4000 --plot burgers.png
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import gradcell as gc
from gradcell import nn, ops

NU = 0.01 / np.pi


def exact(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The solution by the Cole-Hopf transform (Basdevant et al., Comput. Fluids 14, 1986, eq. 2.5),
    its integrals by Gauss-Hermite quadrature; t > 0 and x of any equal shapes."""
    node, weight = np.polynomial.hermite.hermgauss(100)
    shift = np.sqrt(4 * NU * t)[..., None] * node
    y = np.pi * (x[..., None] - shift)
    potential = weight * np.exp(-np.cos(y) / (2 * np.pi * NU) - 1 / (2 * np.pi * NU))
    return -(np.sin(y) * potential).sum(-1) / potential.sum(-1)


def network(width: int, depth: int) -> nn.SequentialCell:
    layers: list[nn.Cell] = [nn.Dense(2, width, weight_init="xavier_uniform"), nn.Tanh()]
    for _ in range(depth - 1):
        layers += [nn.Dense(width, width, weight_init="xavier_uniform"), nn.Tanh()]
    return nn.SequentialCell(*layers, nn.Dense(width, 1, weight_init="xavier_uniform"))


def solution(net: nn.Cell):
    def u(t, x):
        return t * (1 - x * x) * net(ops.concat((t, x), 1)) - ops.sin(np.pi * x)

    return u


def make_loss(net: nn.Cell):
    u = solution(net)
    u_t, u_x = gc.grad(u, 0), gc.grad(u, 1)
    u_xx = gc.grad(u_x, 1)

    def loss(t, x):
        residual = u_t(t, x) + u(t, x) * u_x(t, x) - NU * u_xx(t, x)
        return ops.square(residual).mean()

    return loss


def train(
    steps: int, points: int, width: int = 20, depth: int = 5, seed: int = 0, verbose: bool = True
):
    """Trains a network and returns it with the losses on the way."""
    gc.set_seed(seed)
    random = np.random.default_rng(seed)
    net = network(width, depth)
    rate = nn.cosine_decay_lr(1e-4, 4e-3, max(steps, 2), 1, max(steps, 2))
    optimizer = nn.Adam(net.trainable_params(), learning_rate=rate)
    value_and_gradient = gc.value_and_grad(make_loss(net), None, optimizer.parameters)

    @gc.jit
    def step(t, x):
        value, gradients = value_and_gradient(t, x)
        optimizer(gradients)
        return value

    def column(low: float, high: float) -> gc.Tensor:
        return gc.Tensor(random.uniform(low, high, (points, 1)).astype(np.float32))

    losses, start = [], time.perf_counter()
    for i in range(steps):
        losses.append(float(step(column(0, 1), column(-1, 1))))
        if verbose and (i + 1) % 500 == 0:
            print(f"step {i + 1:5d}  loss {losses[-1]:.2e}  {time.perf_counter() - start:.1f} s")
    return net, losses


def evaluate(net: nn.Cell, t: np.ndarray, x: np.ndarray) -> np.ndarray:
    columns = [gc.Tensor(a.reshape(-1, 1).astype(np.float32)) for a in (t, x)]
    return solution(net)(*columns).asnumpy().reshape(t.shape)


def relative_error(net: nn.Cell) -> float:
    """In the L2 norm over a grid of t > 0."""
    t, x = np.meshgrid(np.linspace(0.01, 1, 50), np.linspace(-1, 1, 201), indexing="ij")
    u = exact(t, x)
    return float(np.linalg.norm(evaluate(net, t, x) - u) / np.linalg.norm(u))


def plot(net: nn.Cell, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    x = np.linspace(-1, 1, 401)
    figure, (field, *slices) = plt.subplots(
        1, 4, figsize=(14, 3.4), width_ratios=[1.7, 1, 1, 1], layout="constrained"
    )
    t, xs = np.meshgrid(np.linspace(0, 1, 201), x, indexing="ij")
    image = field.pcolormesh(
        t, xs, evaluate(net, t, xs), cmap="RdBu_r", vmin=-1, vmax=1, rasterized=True
    )
    figure.colorbar(image, ax=field, label="u(t, x)")
    field.set(xlabel="t", ylabel="x", title="network")
    for axes, at in zip(slices, (0.25, 0.5, 0.75), strict=True):
        field.axvline(at, color="black", linewidth=0.8, linestyle=":")
        time_of = np.full_like(x, at)
        axes.plot(x, exact(time_of, x), color="0.6", linewidth=4, label="exact")
        axes.plot(x, evaluate(net, time_of, x), color="C3", linewidth=1.5, label="network")
        axes.set(xlabel="x", title=f"t = {at}", ylim=(-1.15, 1.15))
        axes.grid(alpha=0.3)
    slices[0].legend(frameon=False, loc="lower left")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument(
        "--points", type=int, default=2000, help="where the equation is asked to hold"
    )
    parser.add_argument("--plot", metavar="PNG", help="save a picture here (needs matplotlib)")
    options = parser.parse_args()
    net, _ = train(options.steps, options.points)
    print(f"relative L2 error against the exact solution: {relative_error(net):.1%}")
    if options.plot:
        plot(net, options.plot)
        print(f"saved {options.plot}")


if __name__ == "__main__":
    main()
