"""Burgers' equation by a physics-informed network: u_t + u u_x = nu u_xx on t in [0, 1], x in [-1, 1].

u(0, x) = -sin(pi x), u(t, -1) = u(t, 1) = 0, nu = 0.01 / pi (Raissi, Perdikaris and Karniadakis,
J. Comput. Phys. 378, 2019, section 2.1.1). The ansatz u = -sin(pi x) + t (1 - x^2) net(t, x) holds
the initial and boundary values exactly, so what is left is the equation's residual. It contains u_t,
u_x and u_xx, and each Gauss-Newton step needs its derivative by every weight at every point: a plan in
float64, which GaussNewton makes of the function as it is written here.

    python -m gradcell demo burgers --steps 200 --plot burgers.png
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import gradcell as gc
from gradcell import nn, ops
from gradcell._core import DType
from gradcell.demo.progress import picture, progress

NU = 0.01 / np.pi


def exact(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The solution by the Cole-Hopf transform (Basdevant et al., Comput. Fluids 14, 1986, eq. 2.5),
    its integrals by Gauss-Hermite quadrature; t > 0 and x of any equal shapes."""
    node, weight = np.polynomial.hermite.hermgauss(100)
    shift = np.sqrt(4 * NU * t)[..., None] * node
    y = np.pi * (x[..., None] - shift)
    potential = weight * np.exp(-np.cos(y) / (2 * np.pi * NU) - 1 / (2 * np.pi * NU))
    return -(np.sin(y) * potential).sum(-1) / potential.sum(-1)  # type: ignore[no-any-return]


def network(width: int, depth: int, dtype: DType = gc.float32) -> nn.SequentialCell:
    """Points [n, 2] to values [n, 1] by `depth` layers of tanh."""

    def dense(inputs: int, outputs: int) -> nn.Dense:
        return nn.Dense(inputs, outputs, weight_init="xavier_uniform", dtype=dtype)

    layers: list[nn.Cell] = [dense(2, width), nn.Tanh()]
    for _ in range(depth - 1):
        layers += [dense(width, width), nn.Tanh()]
    return nn.SequentialCell(*layers, dense(width, 1))


def solution(net: nn.Cell) -> Callable[[gc.Tensor, gc.Tensor], gc.Tensor]:
    """u(t, x) for columns of points."""

    def u(t: gc.Tensor, x: gc.Tensor) -> gc.Tensor:
        return t * (1 - x * x) * net(ops.concat((t, x), 1)) - ops.sin(np.pi * x)  # type: ignore[no-any-return]

    return u


def make_residual(net: nn.Cell) -> Callable[[gc.Tensor, gc.Tensor], gc.Tensor]:
    """u_t + u u_x - nu u_xx at columns of points."""
    u = solution(net)
    u_t, u_x = gc.grad(u, 0), gc.grad(u, 1)
    u_xx = gc.grad(u_x, 1)

    def residual(t: gc.Tensor, x: gc.Tensor) -> gc.Tensor:
        return u_t(t, x) + u(t, x) * u_x(t, x) - NU * u_xx(t, x)

    return residual


def make_loss(net: nn.Cell) -> Callable[[gc.Tensor, gc.Tensor], gc.Tensor]:
    """The mean square of the equation's residual at columns of points."""
    residual = make_residual(net)
    return lambda t, x: ops.square(residual(t, x)).mean()


def draw(points: int, random: np.random.Generator) -> tuple[gc.Tensor, gc.Tensor]:
    """Columns of points: half of them evenly spread, half close to x = 0, where u becomes steep."""
    t, x = random.random((points, 1)), random.uniform(-1, 1, (points, 1))
    x[: points // 2] = np.tan(1.48 * x[: points // 2]) / np.tan(1.48)
    return gc.Tensor(t), gc.Tensor(x)


def train(
    steps: int, points: int, width: int = 20, depth: int = 3, seed: int = 0, verbose: bool = True
) -> tuple[nn.Cell, list[float]]:
    """Trains a network and returns it with the mean square residual of each step."""
    gc.set_seed(seed)
    random = np.random.default_rng(seed)
    net = network(width, depth, gc.float64)
    solver = gc.GaussNewton(make_residual(net), net.trainable_params())
    losses: list[float] = []
    for i in progress(steps, losses, every=20) if verbose else range(steps):
        if i % 20 == 0:
            t, x = draw(points, random)
        losses.append(solver.step(t, x).loss)
    return net, losses


def evaluate(net: nn.Cell, t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """u(t, x) for arrays of any equal shapes."""
    dtype = net.trainable_params()[0].dtype
    columns = [gc.Tensor(a.reshape(-1, 1)).astype(dtype) for a in (t, x)]
    return solution(net)(*columns).asnumpy().reshape(t.shape)


def relative_error(net: nn.Cell) -> float:
    """In the L2 norm over a grid of t > 0."""
    t, x = np.meshgrid(np.linspace(0.01, 1, 50), np.linspace(-1, 1, 201), indexing="ij")
    u = exact(t, x)
    return float(np.linalg.norm(evaluate(net, t, x) - u) / np.linalg.norm(u))


def plot(net: nn.Cell, path: str, title: str = "") -> None:
    """Draws the network's solution, its error, and both solutions at three times."""
    from matplotlib.figure import Figure

    x = np.linspace(-1, 1, 401)
    t, xs = np.meshgrid(np.linspace(0.005, 1, 200), x, indexing="ij")
    u = evaluate(net, t, xs)
    figure = Figure(figsize=(11, 6.6), layout="constrained")
    above, below = figure.subfigures(2, 1)
    fields, slices = above.subplots(1, 2, sharey=True), below.subplots(1, 3, sharey=True)
    error = np.log10(np.abs(u - exact(t, xs)) + 1e-12)
    for axes, field, label, style in (
        (fields[0], u, "network: u(t, x)", {"cmap": "RdBu_r", "vmin": -1, "vmax": 1}),
        (fields[1], error, "error: log10 |network - exact|", {"cmap": "Purples", "vmin": -8}),
    ):
        image = axes.pcolormesh(t, xs, field, rasterized=True, **style)
        above.colorbar(image, ax=axes)
        axes.set(xlabel="t", ylabel="x" if axes is fields[0] else "", title=label)
    for axes, at in zip(slices, (0.25, 0.5, 0.75), strict=True):
        fields[0].axvline(at, color="black", linewidth=0.8, linestyle=":")
        time_of = np.full_like(x, at)
        axes.plot(x, exact(time_of, x), color="0.65", linewidth=4, label="exact")
        axes.plot(x, evaluate(net, time_of, x), color="C3", linewidth=1.5, label="network")
        axes.set(xlabel="x", title=f"t = {at}", ylim=(-1.15, 1.15))
        axes.grid(alpha=0.3)
    slices[0].set_ylabel("u")
    slices[0].legend(frameon=False, loc="lower left")
    figure.suptitle(title)
    figure.savefig(path, dpi=120)


def run(steps: int, points: int, path: str) -> None:
    """Run `python -m gradcell demo burgers`."""
    print("Burgers' equation, u_t + u u_x = nu u_xx, by a physics-informed network of 3 x 20 tanh.")
    print(
        f"{steps} Gauss-Newton steps in float64; each needs the residual's derivatives by all weights."
    )
    start = time.perf_counter()
    net, _ = train(steps, points)
    seconds = time.perf_counter() - start
    error = relative_error(net)
    print(f"relative L2 error against the exact solution: {error:.1e}, after {seconds:.0f} s")
    title = f"Burgers' equation: relative L2 error {error:.1e} after {steps} steps, {seconds:.0f} s"
    picture(lambda: plot(net, path, title), path)
