"""Wave functions and force fields."""

from __future__ import annotations

from typing import Any

import numpy as np

from field import Made, program


@program("FermiNet's local energy, 6 electrons, 128 walkers", tolerance=0.05)
def wave_function(lib: Any, normal: Any) -> Made:
    """Eight determinants of 3 x 3 for each spin, of orbitals by a network of electrons and their pairs.
    Energies are large, and known to few digits in float32, near nodes."""
    n, width, many = 6, 32, 8

    def distances(r: Any) -> Any:
        apart = r[:, None] - r[None]
        return lib.sqrt((apart * apart).sum(-1) + lib.eye(n)), lib.sqrt((r * r).sum(-1))

    def log_psi(x: Any, first: Any, pairs: Any, second: Any, last: Any) -> Any:
        r = x.reshape(n, 3)
        far, near = distances(r)
        two = lib.tanh(far[:, :, None] * pairs).mean(1)
        h = lib.tanh(lib.concat([r, near[:, None], two], 1) @ first)
        both = [(h[s] + 0 * h[:3]).mean(0) for s in (slice(0, 3), slice(3, 6))]
        h = h + lib.tanh(lib.concat([h, 0 * h + both[0], 0 * h + both[1]], 1) @ second)
        orbitals = ((h @ last) * lib.exp(-near)[:, None]).reshape(n, many, 3)
        signs, logs = lib.slogdet(lib.stack([orbitals[:3], orbitals[3:]], 0).swapaxes(1, 2))
        return lib.log(lib.abs((signs[0] * signs[1] * lib.exp(logs[0] + logs[1])).sum()))

    def energy(x: Any, *net: Any) -> Any:
        def f(x: Any) -> Any:
            return log_psi(x, *net)

        slope = lib.grad(f)(x)
        far, near = distances(x.reshape(n, 3))
        potential = 0.5 * ((1 / far).sum() - n) - n * (1 / near).sum()
        return potential - 0.5 * (lib.laplacian(f)(x) + (slope * slope).sum())

    def energies(walkers: Any, *net: Any) -> Any:
        return lib.vmap(lambda x: energy(x, *net))(walkers)

    return energies, [
        normal(128, 3 * n), 0.3 * normal(12, width), normal(8), 0.1 * normal(3 * width, width),
        normal(width, 3 * many),
    ]  # fmt: skip


def molecule(normal: Any) -> list[Any]:
    """Positions of 32 atoms, wanted forces, and the 16 edges of each."""
    x = 2 * normal(32, 3)
    near = np.argsort(((x[:, None] - x) ** 2).sum(-1), axis=1)[:, 1:17]
    return [x, normal(32, 3), near.reshape(-1), np.repeat(np.arange(32), 16)]


def edges(lib: Any, x: Any, source: Any, target: Any) -> Any:
    """Unit vectors along the edges, and 16 functions of the distances."""
    apart = x[source] - x[target]
    far = lib.sqrt((apart * apart).sum(-1))[:, None]
    return apart / far, lib.exp(-((3 * far - lib.arange(16)) ** 2) / 8) / far


def force_loss(lib: Any, energy: Any, x: Any, forces: Any, *given: Any) -> Any:
    return ((lib.grad(energy)(x, *given) + forces) ** 2).mean()


@program("force field of distances (SchNet), 512 edges", (4, 5, 6, 7))
def schnet(lib: Any, normal: Any) -> Made:
    """Three interactions of 32 channels; the loss is of forces."""

    def energy(x: Any, source: Any, target: Any, h: Any, filters: Any, mix: Any, last: Any) -> Any:
        _, radial = edges(lib, x, source, target)
        for k in range(3):
            messages = h[source] * lib.tanh(radial @ filters[k])
            h = h + lib.tanh(lib.segment_sum(messages, target, 32) @ mix[k])
        return (lib.tanh(h) @ last).sum()

    return lambda *given: force_loss(lib, energy, *given), [
        *molecule(normal), normal(32, 32), normal(3, 16, 32), 0.1 * normal(3, 32, 32), normal(32, 1),
    ]  # fmt: skip


@program("equivariant force field (NequIP), 512 edges", (4, 5, 6, 7))
def nequip(lib: Any, normal: Any) -> Made:
    """Two layers of 16 scalars and 16 vectors, with all their products of degree 1; the loss is of forces."""

    def energy(x: Any, source: Any, target: Any, s: Any, filters: Any, mix: Any, last: Any) -> Any:
        unit, radial = edges(lib, x, source, target)
        v = s[:, :, None] * 0 * x[:, None]
        for k in range(2):
            w = (radial @ filters[k]).reshape(-1, 5, 16)
            sent, turned = s[source], v[source]
            along = (turned * unit[:, None]).sum(-1)
            crossed = lib.einsum("eca,eb,abk->eck", turned, unit, turn(lib, x))
            scalars = w[:, 0] * sent + w[:, 1] * along
            vectors = (w[:, 2] * sent)[:, :, None] * unit[:, None] + w[:, 3, :, None] * turned
            vectors = vectors + w[:, 4, :, None] * crossed
            s = s + lib.tanh(lib.segment_sum(scalars, target, 32) @ mix[k, 0])
            v = v + lib.einsum("nca,cd->nda", lib.segment_sum(vectors, target, 32), mix[k, 1])
            s = s + lib.tanh((v * v).sum(-1))
        return (lib.tanh(s) @ last).sum()

    return lambda *given: force_loss(lib, energy, *given), [
        *molecule(normal), normal(32, 16), 0.3 * normal(2, 16, 80), 0.1 * normal(2, 2, 16, 16),
        normal(16, 1),
    ]  # fmt: skip


def turn(lib: Any, like: Any) -> Any:
    """The numbers of a cross product, [3, 3, 3]."""
    made = np.zeros((3, 3, 3), str(like.dtype).rpartition(".")[2].lower())
    for a, b, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        made[a, b, k], made[b, a, k] = 1, -1
    return lib.tensor(made)
