"""A potential learned from energies and forces on the atoms of small Lennard-Jones clusters.

The network gives an energy E of the positions R; the forces are -dE/dR. Matching them puts a
derivative into the loss, and training differentiates that once more, by the weights. Units: the
well's depth for energies, its width sigma for lengths.

    python -m gradcell demo forces --plot forces.png
"""

from __future__ import annotations

import time

import numpy as np

import gradcell as gc
from gradcell import nn, ops
from gradcell.demo.progress import picture, progress


def lennard_jones(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Energies [n, 1] and forces [n, atoms, 3] of positions [n, atoms, 3]: the sum over pairs of
    4 (r^-12 - r^-6)."""
    apart = positions[:, :, None] - positions[:, None]
    squared = (apart**2).sum(-1) + np.eye(positions.shape[1])
    sixth = (1 - np.eye(positions.shape[1])) / squared**3
    energy = 2 * (sixth**2 - sixth).sum((1, 2))  # each pair appears twice
    force = (24 * (2 * sixth**2 - sixth) / squared)[..., None] * apart
    return energy[:, None], force.sum(2)


def clusters(n: int, shake: float, random: np.random.Generator) -> np.ndarray:
    """Tetrahedra of least energy, each coordinate moved by a normal deviate of width `shake`."""
    corners = (
        np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * 2 ** (1 / 6) / np.sqrt(8)
    )
    return corners + random.normal(0, shake, (n, 4, 3))  # type: ignore[no-any-return]


class Potential(nn.Cell):
    """A sum over pairs of a network of the distance."""

    def __init__(self, atoms: int = 4, width: int = 32) -> None:
        super().__init__()
        pairs = [(i, j) for i in range(atoms) for j in range(i)]
        self.first: list[int]
        self.second: list[int]
        self.first, self.second = ([pair[k] for pair in pairs] for k in (0, 1))
        self.pair: nn.SequentialCell = nn.SequentialCell(
            nn.Dense(1, width), nn.Tanh(), nn.Dense(width, width), nn.Tanh(), nn.Dense(width, 1)
        )

    def construct(self, positions: gc.Tensor) -> gc.Tensor:
        apart = positions[:, self.first] - positions[:, self.second]
        distance = ops.sqrt(ops.square(apart).sum(-1, keepdims=True))
        return self.pair(10 * (distance - 1.15)).sum(1)  # type: ignore[no-any-return]


def energy_and_forces(net: nn.Cell, positions: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
    """Energies [n, 1] and their negative derivatives by the positions, [n, atoms, 3]."""
    energy, slope = gc.value_and_grad(net)(positions)
    return energy, -slope


def data(n: int, shake: float, random: np.random.Generator) -> list[gc.Tensor]:
    """Positions, energies and forces of n clusters."""
    positions = clusters(n, shake, random)
    return [gc.Tensor(a.astype(np.float32)) for a in (positions, *lennard_jones(positions))]


def train(
    steps: int, points: int = 512, seed: int = 0, verbose: bool = True
) -> tuple[nn.Cell, list[gc.Tensor], tuple[float, float]]:
    """A trained potential, new clusters, and the errors on them (energy, force): root mean squares,
    relative to those of the energies' deviations and of the forces."""
    gc.set_seed(seed)
    random = np.random.default_rng(seed)
    net = Potential()
    rate = gc.schedules.cosine(1e-2, 1e-5, steps)

    def loss(positions: gc.Tensor, energy: gc.Tensor, forces: gc.Tensor) -> gc.Tensor:
        e, f = energy_and_forces(net, positions)
        return ops.square(e - energy).mean() + 0.1 * ops.square(f - forces).mean()

    step = gc.train_step(loss, nn.Adam(net.trainable_params(), learning_rate=rate))

    batch = data(points, 0.06, random)  # wider than what is asked later: nothing is extrapolated
    losses: list[float] = []
    for _ in progress(steps, losses) if verbose else range(steps):
        losses.append(float(step(*batch)))
    unseen = data(points, 0.04, random)
    e, f = energy_and_forces(net, unseen[0])
    energy, forces = unseen[1:]
    energy_error = ops.square(e - energy).mean() / ops.square(energy - energy.mean()).mean()
    force_error = ops.square(f - forces).mean() / ops.square(forces).mean()
    return net, unseen, (float(ops.sqrt(energy_error)), float(ops.sqrt(force_error)))


def plot(net: nn.Cell, unseen: list[gc.Tensor], errors: tuple[float, float], path: str) -> None:
    """Forces of new clusters against the exact ones, their errors, and the energy of a pair;
    `errors`: of energies and forces, relative."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    true = unseen[2].asnumpy().ravel()
    found = energy_and_forces(net, unseen[0])[1].asnumpy().ravel()
    ends = [true.min(), true.max()]
    left.plot(ends, ends, color="0.7", linewidth=3, label="equal")
    left.plot(true, found, ".", markersize=3, label="components on new clusters")
    left.set(title=f"forces: error {errors[1]:.1%}", xlabel="exact", ylabel="network")
    left.legend(frameon=False)
    middle.axhline(0, color="0.7", linewidth=3)
    middle.plot(true, found - true, ".", markersize=3)
    middle.set(title="error of each force", xlabel="exact", ylabel="network - exact")
    apart = np.linspace(0.95, 1.6, 200)
    pairs = unseen[0].asnumpy()
    seen = np.linalg.norm(pairs[:, :, None] - pairs[:, None], axis=-1)
    first, second = np.triu_indices(pairs.shape[1], 1)
    seen = seen[:, first, second]
    energy = net.pair(gc.Tensor(10 * (apart[:, None] - 1.15), gc.float32)).asnumpy()[:, 0]
    right.axvspan(
        *np.quantile(seen, [0.01, 0.99]), color="C1", alpha=0.12, label="98 % of distances"
    )
    right.plot(apart, 4 * (apart**-12 - apart**-6), color="0.7", linewidth=4, label="exact")
    right.plot(apart, energy, label="network")
    right.set(title="energy of a pair", xlabel="distance", ylabel="energy", ylim=(-1.4, 3))
    right.legend(frameon=False)
    figure.savefig(path, dpi=120)


def run(steps: int, points: int, path: str) -> None:
    """Run `python -m gradcell demo forces`."""
    print(
        f"{points} clusters of four atoms; the loss contains the forces, derivatives of the network."
    )
    start = time.perf_counter()
    net, unseen, (energy, force) = train(steps, points)
    seconds = time.perf_counter() - start
    print(
        f"errors on new clusters: energies {energy:.1%}, forces {force:.1%}, after {seconds:.0f} s"
    )
    picture(lambda: plot(net, unseen, (energy, force), path), path)
