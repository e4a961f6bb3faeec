"""A force field for molecules of any size, trained on forces; a new size is not compiled.

Clusters of 3 to 8 Lennard-Jones atoms. The energy is a sum over atoms of a network of what an atom sees:
how many neighbours there are at which distances (G. Behler and M. Parrinello, Phys. Rev. Lett. 98, 2007,
146401, eq. 3). Forces are -dE/dR, and training on them differentiates that by the weights. Clusters are
filled up to one number of atoms with places that a mask leaves out, so that one plan serves all sizes:
the counter of plans shows it. Units: the well's depth, its width.

    python examples/force_field.py --plot force_field.png
"""

from __future__ import annotations

import argparse

import numpy as np

import gradcell as gc
from gradcell import nn, ops

MOST = 10  # atoms
CENTRES = np.linspace(0.8, 2.4, 16, dtype=np.float32)
REACH = 2.6  # beyond it an atom sees nothing


def lennard_jones(positions: np.ndarray, real: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Energies [n, 1] and forces [n, atoms, 3] of the atoms that `real` [n, atoms] names."""
    pairs = real[:, :, None] * real[:, None] * (1 - np.eye(MOST))
    apart = positions[:, :, None] - positions[:, None]
    squared = np.where(pairs > 0, (apart**2).sum(-1), 1.0)
    sixth = pairs / squared**3
    energy = 2 * (sixth**2 - sixth).sum((1, 2))
    force = (24 * (2 * sixth**2 - sixth) / squared)[..., None] * apart
    return energy[:, None], force.sum(2)


def clusters(n: int, sizes: range, random: np.random.Generator) -> list[gc.Tensor]:
    """Positions, masks, energies and forces of n clusters: atoms added one by one at distances near the
    well's, then moved a little."""
    positions = np.zeros((n, MOST, 3))
    real = np.zeros((n, MOST))
    for k in range(n):
        atoms: list[np.ndarray] = [np.zeros(3)]
        while len(atoms) < sizes[k % len(sizes)]:
            way = random.normal(size=3)
            place = atoms[random.integers(len(atoms))] + way / np.linalg.norm(way) * random.normal(
                1.13, 0.04
            )
            if min(np.linalg.norm(place - a) for a in atoms) > 1.0:
                atoms.append(place)
        positions[k, : len(atoms)] = atoms
        positions[k, len(atoms) :] = 50 + 10 * np.arange(MOST - len(atoms))[:, None]  # far away
        real[k, : len(atoms)] = 1
    energy, force = lennard_jones(positions, real)
    return [gc.Tensor(a.astype(np.float32)) for a in (positions, real[..., None], energy, force)]


class ForceField(nn.Cell):
    """Energies [n, 1] of positions [n, MOST, 3] and a mask [n, MOST, 1]."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.atom = nn.SequentialCell(
            nn.Dense(len(CENTRES), width),
            nn.Tanh(),
            nn.Dense(width, width),
            nn.Tanh(),
            nn.Dense(width, 1),
        )
        self.centres = gc.Tensor(CENTRES)
        self.others = gc.Tensor(1 - np.eye(MOST, dtype=np.float32))

    def construct(self, positions, real):
        apart = positions.expand_dims(2) - positions.expand_dims(1)
        pairs = real * real.reshape(-1, 1, MOST) * self.others
        distance = ops.sqrt(ops.where(pairs > 0, ops.square(apart).sum(-1), REACH**2))
        seen = pairs * ops.square(ops.cos(ops.minimum(distance / REACH, 1.0) * (np.pi / 2)))
        shells = ops.exp(-ops.square((distance.expand_dims(-1) - self.centres) * 9.0))
        features = (shells * seen.expand_dims(-1)).sum(2)
        return (self.atom(features) * real).sum(1)


def energy_and_forces(net, positions, real):
    energy, slope = gc.value_and_grad(net)(positions, real)
    return energy, -slope


def train(steps: int, n: int = 600, seed: int = 0, verbose: bool = True):
    """A trained force field; the relative error of forces on new clusters by size, sizes 9 and 10, which
    training has not seen, included; and how many plans those needed."""
    gc.set_seed(seed)
    random = np.random.default_rng(seed)
    net = ForceField()
    rate = nn.cosine_decay_lr(1e-5, 1e-2, steps + 1, 1, steps + 1)
    optimizer = nn.Adam(net.trainable_params(), learning_rate=rate)

    def loss(positions, real, energy, forces):
        e, f = energy_and_forces(net, positions, real)
        return 0.1 * ops.square(e - energy).mean() + ops.square(f - forces).mean()

    value_and_gradient = gc.value_and_grad(loss, None, optimizer.parameters)

    @gc.jit
    def step(*batch):
        value, gradients = value_and_gradient(*batch)
        optimizer(gradients)
        return value

    @gc.jit
    def predicted(positions, real):
        return energy_and_forces(net, positions, real)

    batches = [clusters(100, range(3, 9), random) for _ in range(max(1, n // 100))]
    for i in range(steps):
        value = step(*batches[i % len(batches)])
        if verbose and (i + 1) % 500 == 0:
            print(f"step {i + 1:5d}  loss {float(value):.2e}", flush=True)
    errors, forces = {}, {}
    predicted(*batches[0][:2])
    before = gc._core.plan_cache_info()["misses"]
    for size in range(3, MOST + 1):
        positions, real, _, force = clusters(100, range(size, size + 1), random)
        _, got = predicted(positions, real)
        true, found = force.asnumpy(), got.asnumpy()
        errors[size] = float(np.sqrt(((found - true) ** 2).sum() / (true**2).sum()))
        forces[size] = (true, found)
    return net, errors, gc._core.plan_cache_info()["misses"] - before, forces


def plot(errors, forces, path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    true, found = (np.concatenate([f[k].ravel() for f in forces.values()]) for k in (0, 1))
    ends = [true.min(), true.max()]
    left.plot(ends, ends, color="0.7", linewidth=3)
    left.plot(true, found, ".", markersize=2)
    left.set(xlabel="force, exact", ylabel="force, network")
    right.bar(list(errors), [100 * e for e in errors.values()], color=["C0"] * 6 + ["C1"] * 2)
    right.set(xlabel="atoms (9 and 10: not trained on)", ylabel="relative error of forces, %")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--plot", default="force_field.png")
    given = parser.parse_args()
    _, errors, plans, forces = train(given.steps)
    text = ", ".join(f"{size}: {error:.1%}" for size, error in errors.items())
    print(f"relative error of forces by size: {text}; {plans} plans for new sizes")
    plot(errors, forces, given.plot)
    print(f"saved {given.plot}")


if __name__ == "__main__":
    main()
