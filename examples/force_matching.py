"""A potential learned from energies and forces of small Lennard-Jones clusters.

The network gives an energy E of the positions R; the forces are -dE/dR. Matching them puts a
derivative into the loss, and training differentiates that once more, by the weights. Units: the
well's depth for energies, its width sigma for lengths.

    python force_matching.py --steps 1500
"""

from __future__ import annotations

import argparse

import numpy as np

import gradcell as gc
from gradcell import nn, ops


def lennard_jones(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Energies [n, 1] and forces [n, atoms, 3] of positions [n, atoms, 3]: the sum over pairs of
    4 (r^-12 - r^-6)."""
    apart = positions[:, :, None] - positions[:, None]
    squared = (apart**2).sum(-1) + np.eye(positions.shape[1])
    sixth = (1 - np.eye(positions.shape[1])) / squared**3
    energy = 2 * (sixth**2 - sixth).sum((1, 2))  # each pair is there twice
    force = (24 * (2 * sixth**2 - sixth) / squared)[..., None] * apart
    return energy[:, None], force.sum(2)


def clusters(n: int, shake: float, random: np.random.Generator) -> np.ndarray:
    """Tetrahedra of least energy, each coordinate moved by a normal deviate of width `shake`."""
    corners = (
        np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * 2 ** (1 / 6) / np.sqrt(8)
    )
    return corners + random.normal(0, shake, (n, 4, 3))


class Potential(nn.Cell):
    """A sum over pairs of a network of the distance."""

    def __init__(self, atoms: int = 4, width: int = 32) -> None:
        super().__init__()
        self.first, self.second = zip(
            *[(i, j) for i in range(atoms) for j in range(i)], strict=True
        )
        self.pair = nn.SequentialCell(
            nn.Dense(1, width), nn.Tanh(), nn.Dense(width, width), nn.Tanh(), nn.Dense(width, 1)
        )

    def construct(self, positions):
        apart = positions[:, list(self.first)] - positions[:, list(self.second)]
        distance = ops.sqrt(ops.square(apart).sum(-1, keepdims=True))
        return self.pair(10 * (distance - 1.15)).sum(1)


def train(steps: int, n: int = 512, seed: int = 0, verbose: bool = True):
    """Trains a potential; returns it and its errors (energy, force) on new clusters: root mean
    squares, relative to those of the energies' deviations and of the forces."""
    gc.set_seed(seed)
    random = np.random.default_rng(seed)

    def data(shake: float):
        positions = clusters(n, shake, random)
        return [gc.Tensor(a.astype(np.float32)) for a in (positions, *lennard_jones(positions))]

    net = Potential()
    rate = nn.cosine_decay_lr(1e-5, 1e-2, steps + 1, 1, steps + 1)
    optimizer = nn.Adam(net.trainable_params(), learning_rate=rate)

    def energy_and_forces(positions):
        energy, slope = gc.value_and_grad(net)(positions)
        return energy, -slope

    def loss(positions, energy, forces):
        e, f = energy_and_forces(positions)
        return ops.square(e - energy).mean() + 0.1 * ops.square(f - forces).mean()

    value_and_gradient = gc.value_and_grad(loss, None, optimizer.parameters)

    @gc.jit
    def step(*batch):
        value, gradients = value_and_gradient(*batch)
        optimizer(gradients)
        return value

    batch = data(0.06)  # wider than what is asked later: nothing is extrapolated
    for i in range(steps):
        value = step(*batch)
        if verbose and (i + 1) % 500 == 0:
            print(f"step {i + 1:5d}  loss {float(value):.2e}", flush=True)
    positions, energy, forces = data(0.04)
    e, f = energy_and_forces(positions)
    energy_error = ops.square(e - energy).mean() / ops.square(energy - energy.mean()).mean()
    force_error = ops.square(f - forces).mean() / ops.square(forces).mean()
    return net, (float(ops.sqrt(energy_error)), float(ops.sqrt(force_error)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    _, (energy, force) = train(parser.parse_args().steps)
    print(f"relative error on new clusters: energies {energy:.1%}, forces {force:.1%}")


if __name__ == "__main__":
    main()
