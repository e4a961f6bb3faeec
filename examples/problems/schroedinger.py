"""The first four states of a quartic oscillator, and their energies.

    -f'' + x^4 f = E f,   f goes to 0 far away

The energy is an unknown number beside the weights. A state is even or odd, so that half the line is
enough; its value or slope at 0 is 1, because any multiple of a state is one. Which state is found depends
on the energy at which the search begins: first the weights alone are trained there, then the energy too.
Reference: the matrix of x^4 and of the second derivative in the harmonic oscillator's first 120 states,
whose eigenvalues NumPy finds.

    python examples/problems/schroedinger.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import physics

STARTS = (1.0, 4.0, 7.0, 12.0)
LINE = np.linspace(0, 4, 301)[:, None]


def solve(steps: int = 100, count: int = len(STARTS)) -> tuple[list[float], list[Any]]:
    """For the first starts the energy, and the state on LINE."""
    energies, states = [], []
    for number, start in enumerate(STARTS[:count]):
        f = physics.network([1, 12, 12, 1], seed=0)
        energy = gc.Parameter(gc.Tensor(np.array([start])), name="energy")
        second = gc.laplacian(f)

        def equation(
            x: gc.Tensor, f: Any = f, second: Any = second, energy: Any = energy
        ) -> gc.Tensor:
            return second(x) + (energy - x**4) * f(x)

        odd = number % 2
        value, slope = physics.dirichlet(f), physics.neumann(f, float(odd))
        ends, at = np.array([[0.0], [4.0]]), np.array([[1.0 - odd], [0.0]])
        weights = f.trainable_params()
        for trained in (weights, [*weights, energy]):  # first at the energy of the start
            residuals = [equation, value, slope]
            scales = [1, 1000, 1000]
            solver = gc.GaussNewton(residuals, trained, weights=scales, loss_tolerance=1e-16)
            solver.run(steps, LINE, (ends, at), (ends[:1], np.ones((1, 1))))
        energies.append(float(energy.asnumpy()[0]))
        states.append(f(gc.Tensor(LINE)).asnumpy()[:, 0])
    return energies, states


def reference(n: int, basis: int = 120) -> Any:
    """The first n energies."""
    up = np.diag(np.sqrt(np.arange(1, basis + 8)), 1)
    x, slope = (up + up.T) / np.sqrt(2), (up - up.T) / np.sqrt(2)
    matrix = (np.linalg.matrix_power(x, 4) - slope @ slope)[:basis, :basis]
    return np.linalg.eigvalsh(matrix)[:n]


def largest_error(energies: list[float], states: list[Any]) -> float:
    """The largest relative error of the energies."""
    want = reference(len(energies))
    return float(np.abs(energies / want - 1).max())


def plot(energies: list[float], states: list[Any]) -> Any:
    """The states at their energies, in the potential."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4.5), layout="constrained")
    axes = figure.subplots()
    x = np.concatenate([-LINE[::-1, 0], LINE[:, 0]])
    axes.plot(x, x**4, color="0.3")
    for number, (energy, state) in enumerate(zip(energies, states, strict=True)):
        whole = np.concatenate([(1 - 2 * (number % 2)) * state[::-1], state])
        axes.axhline(energy, color="0.85", linewidth=0.8)
        axes.plot(x, energy + whole / np.abs(whole).max())
        axes.text(2.95, energy + 0.15, f"E = {energy:.4f}", ha="right")
    axes.set(xlim=(-3, 3), ylim=(0, 15), xlabel="x", ylabel="energy")
    return figure


if __name__ == "__main__":
    begun = time.perf_counter()
    solution = solve()
    seconds = time.perf_counter() - begun
    print(f"largest error {largest_error(*solution):.1e} after {seconds:.1f} s")
    plot(*solution).savefig("schroedinger.png", dpi=120)
