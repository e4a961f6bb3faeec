"""Burgers' equation to an error of 0.1 %: Adam finds the valley, L-BFGS its bottom.

The network, the loss and the exact solution are the demo's (python -m gradcell demo burgers). Adam
takes new random points at each step; L-BFGS, which needs one function to minimise, has points that
stay, half of them near the shock at x = 0. Value and gradient of all weights are one compiled call.

    python examples/burgers_lbfgs.py --plot burgers_lbfgs.png
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import gradcell as gc
from gradcell import nn
from gradcell.demo import burgers


def points(n: int, random: np.random.Generator) -> tuple[gc.Tensor, gc.Tensor]:
    """Columns t and x: half of the x evenly spread, half with a density that peaks at the shock."""
    t = random.uniform(0, 1, (n, 1))
    x = np.concatenate(
        [random.uniform(-1, 1, (n - n // 2, 1)), np.clip(random.normal(0, 0.1, (n // 2, 1)), -1, 1)]
    )
    return gc.Tensor(t.astype(np.float32)), gc.Tensor(x.astype(np.float32))


def solve(
    adam_steps: int, lbfgs_steps: int, n: int = 8000, seed: int = 0, verbose: bool = True
) -> tuple[nn.Cell, list[tuple[float, float]], int]:
    """A trained network, (seconds, loss) on the way, and how many of those are Adam's."""
    gc.set_seed(seed)
    random = np.random.default_rng(seed)
    net = burgers.network(20, 5)
    loss = burgers.make_loss(net)
    rate = nn.cosine_decay_lr(5e-4, 5e-3, adam_steps + 1, 1, adam_steps + 1)
    optimizer = nn.Adam(net.trainable_params(), learning_rate=rate)
    value_and_gradient = gc.value_and_grad(loss, None, optimizer.parameters)

    @gc.jit
    def step(t: gc.Tensor, x: gc.Tensor) -> gc.Tensor:
        value, gradients = value_and_gradient(t, x)
        optimizer(gradients)
        return value

    start, course = time.perf_counter(), []
    for i in range(adam_steps):
        value = float(step(*points(n // 4, random)))
        course.append((time.perf_counter() - start, value))
        if verbose and (i + 1) % 1000 == 0:
            print(f"Adam   {i + 1:6d}  loss {value:.1e}  {course[-1][0]:5.1f} s", flush=True)

    def watch(state: gc.SolverState) -> None:
        course.append((time.perf_counter() - start, state.loss))
        if verbose and state.nit % 500 == 0:
            print(
                f"L-BFGS {state.nit:6d}  loss {state.loss:.1e}  {course[-1][0]:5.1f} s", flush=True
            )

    gc.lbfgs(
        loss, net.trainable_params(), *points(n, random), max_steps=lbfgs_steps, callback=watch
    )
    return net, course, adam_steps


def plot(net: nn.Cell, course: list[tuple[float, float]], adam: int, path: str) -> None:
    """The loss over time, and the error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    seconds, losses = np.array(course).T
    left.semilogy(seconds[:adam], losses[:adam], label="Adam, new points each step")
    left.semilogy(seconds[adam:], losses[adam:], label="L-BFGS, points that stay")
    left.set(xlabel="seconds", ylabel="mean square residual")
    left.legend(frameon=False)
    t, x = np.meshgrid(np.linspace(0.005, 1, 200), np.linspace(-1, 1, 401), indexing="ij")
    error = np.log10(np.abs(burgers.evaluate(net, t, x) - burgers.exact(t, x)) + 1e-7)
    image = right.pcolormesh(t, x, error, cmap="Purples", vmin=-6, rasterized=True)
    figure.colorbar(image, ax=right, label="log10 |network - exact|")
    right.set(xlabel="t", ylabel="x", title=f"relative L2 error {burgers.relative_error(net):.3%}")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adam", type=int, default=3000, help="steps of Adam")
    parser.add_argument("--lbfgs", type=int, default=7000, help="steps of L-BFGS")
    parser.add_argument("--points", type=int, default=8000)
    parser.add_argument("--plot", default="burgers_lbfgs.png")
    given = parser.parse_args()
    start = time.perf_counter()
    net, course, adam = solve(given.adam, given.lbfgs, given.points)
    seconds = time.perf_counter() - start
    print(f"relative L2 error {burgers.relative_error(net):.3%} after {seconds:.0f} s")
    plot(net, course, adam, given.plot)
    print(f"saved {given.plot}")


if __name__ == "__main__":
    main()
