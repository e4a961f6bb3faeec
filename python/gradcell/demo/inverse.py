"""The viscosity of Burgers' equation, from noisy observations of a travelling front.

u_t + u u_x = nu u_xx with an unknown nu: the network's weights and log(nu) are trained together, on the
observations and on the equation (Raissi, Perdikaris and Karniadakis, J. Comput. Phys. 378, 2019,
section 3). The data is u = c - a tanh(a (x - c t) / (2 nu)), an exact solution, with noise.

    python -m gradcell demo inverse --plot inverse.png
"""

from __future__ import annotations

import time

import numpy as np

import gradcell as gc
from gradcell import nn, ops
from gradcell.demo.burgers import network
from gradcell.demo.progress import picture, progress

NU, HEIGHT, SPEED, NOISE = 0.08, 0.6, 0.4, 0.02


def exact(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The front at t and x of any equal shapes."""
    return SPEED - HEIGHT * np.tanh(HEIGHT * (x - SPEED * t) / (2 * NU))


class Inverse(nn.Cell):
    """The loss: the mean square of the residual, plus ten times that of the misfit."""

    def __init__(self) -> None:
        super().__init__()
        self.net: nn.SequentialCell = network(32, 3)
        self.log_nu: gc.Parameter = gc.Parameter(
            gc.Tensor([np.log(0.5)], gc.float32), name="log_nu"
        )

    def u(self, t: gc.Tensor, x: gc.Tensor) -> gc.Tensor:
        """The network's solution at columns of points."""
        return self.net(ops.concat((t, x), 1))  # type: ignore[no-any-return]

    def construct(
        self, t: gc.Tensor, x: gc.Tensor, data_t: gc.Tensor, data_x: gc.Tensor, data_u: gc.Tensor
    ) -> gc.Tensor:
        slope = gc.grad(self.u, 1)
        u_t, u_x = gc.grad(self.u, (0, 1))(t, x)
        u_xx = gc.grad(slope, 1)(t, x)
        residual = u_t + self.u(t, x) * u_x - ops.exp(self.log_nu) * u_xx
        misfit = self.u(data_t, data_x) - data_u
        return ops.square(residual).mean() + 10 * ops.square(misfit).mean()


def train(
    steps: int, points: int, seed: int = 1, verbose: bool = True
) -> tuple[Inverse, list[float], tuple[np.ndarray, ...]]:
    """The trained model, the viscosity after each step, and the observations."""
    gc.set_seed(seed)
    random = np.random.default_rng(seed)

    def columns(n: int) -> tuple[np.ndarray, np.ndarray]:
        t, x = random.uniform(0, 1, (n, 1)), random.uniform(-1, 1, (n, 1))
        return t.astype(np.float32), x.astype(np.float32)

    inside, (t, x) = columns(points), columns(300)
    u = (exact(t, x) + random.normal(0, NOISE, t.shape)).astype(np.float32)
    batch = [gc.Tensor(a) for a in (*inside, t, x, u)]
    model = Inverse()
    rate = gc.schedules.cosine(5e-3, 1e-5, steps)
    step = gc.train_step(model, nn.Adam(model.trainable_params(), learning_rate=rate))

    losses: list[float] = []
    found: list[float] = []
    for _ in progress(steps, losses) if verbose else range(steps):
        losses.append(float(step(*batch)))
        found.append(float(np.exp(model.log_nu.asnumpy()[0])))
    return model, found, (t, x, u)


def plot(model: Inverse, found: list[float], data: tuple[np.ndarray, ...], path: str) -> None:
    """The viscosity by step, and the front at three times."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(found, label="found")
    left.axhline(NU, color="0.6", linestyle="--", label=f"true: {NU}")
    left.set(title=f"viscosity: {found[-1]:.4f} after {len(found)} steps")
    left.set(xlabel="step", ylabel="viscosity", ylim=(0, None))
    left.legend(frameon=False)
    line = np.linspace(-1, 1, 201, dtype=np.float32)[:, None]
    for at in (0.0, 0.5, 1.0):
        time_of = np.full_like(line, at)
        label = "exact" if at == 0 else None
        right.plot(line, exact(time_of, line), color="0.7", linewidth=4, label=label)
        u = model.u(gc.Tensor(time_of), gc.Tensor(line)).asnumpy()
        right.plot(line, u, label=f"network, t = {at}")
    right.plot(data[1], data[2], ".", color="0.4", markersize=2, label="observations, at all times")
    right.set(title="the front at three times", xlabel="x", ylabel="u", ylim=(-0.95, 1.1))
    right.legend(frameon=False, loc="lower left")
    figure.savefig(path, dpi=120)


def run(steps: int, points: int, path: str) -> None:
    """Run `python -m gradcell demo inverse`."""
    print("u_t + u u_x = nu u_xx with nu unknown, from 300 observations with noise of 0.02.")
    start = time.perf_counter()
    model, found, data = train(steps, points)
    seconds = time.perf_counter() - start
    away = abs(found[-1] / NU - 1)
    print(f"nu = {found[-1]:.4f}, {away:.1%} from the true {NU}, after {seconds:.0f} s")
    picture(lambda: plot(model, found, data, path), path)
