"""Someone who simulates molecules: energies and forces of many, other processes, dynamics."""

from multiprocessing import get_context

import numpy as np
from scipy.optimize import minimize

import gradcell as gc
from gradcell import nn, ops

gc.set_default_dtype(gc.float64)


def morse(x, depth=1.0, width=1.2):
    i, j = np.triu_indices(x.shape[0], 1)
    r = ops.norm(x[i] - x[j], axis=1)
    return (depth * (1 - ops.exp(-width * (r - 1.5))) ** 2).sum()


@gc.jit
def forces(x):
    return -gc.grad(morse)(x)


class Symmetric(nn.Cell):
    def __init__(self):
        super().__init__()
        self.net = nn.MLP(6, 24, 24, 1)

    def construct(self, x):
        i, j = np.triu_indices(4, 1)
        r = ops.norm(x[i] - x[j], axis=1)
        return self.net(ops.sort(ops.exp(-r), axis=0)[0])[0]


if __name__ == "__main__":
    gc.set_seed(0)
    random = np.random.default_rng(0)
    start = np.array([[0, 0, 0], [1.5, 0, 0], [0.75, 1.3, 0], [0.75, 0.4, 1.2]])
    x = start + random.normal(0, 0.15, (120, 4, 3))
    energies, wanted = gc.vmap(morse)(x), gc.vmap(forces)(x)
    net = Symmetric()
    both = gc.vmap(gc.value_and_grad(net))

    def loss(x, energies, wanted):
        energy, slope = both(x)
        return ops.square(energy - energies).mean() + ops.square(slope + wanted).mean()

    step = gc.train_step(
        loss, nn.Adam(net.trainable_params(), gc.schedules.cosine(1e-2, 1e-4, 400))
    )
    losses = [float(step(x, energies, wanted)) for _ in range(400)]
    print("learned", losses[-1] < 0.1 * losses[0])

    with get_context("spawn").Pool(2) as pool:
        found = pool.map(forces, [start, start + 0.01])
    print("other processes", np.allclose(found[0].asnumpy(), forces(start).asnumpy()))

    best = minimize(gc.value_and_grad(lambda v: morse(v.reshape(4, 3))), x[0].ravel(), jac=True)
    print("minimum", best.fun < 1e-8)
    curvature = gc.hessian(lambda v: morse(v.reshape(4, 3)))(best.x)
    print("vibrations", (np.linalg.eigvalsh(curvature.asnumpy())[6:] > 0.1).all())

    at, v, dt = gc.Tensor(x[0]), gc.Tensor(np.zeros((4, 3))), 0.01
    before = float(morse(at))

    @gc.jit
    def verlet(at, v):
        v = v + 0.5 * dt * forces(at)
        at = at + dt * v
        return at, v + 0.5 * dt * forces(at)

    for _ in range(1000):
        at, v = verlet(at, v)
    print("drift", abs(float(morse(at) + 0.5 * ops.sum(v**2)) - before) < 1e-3)
    lattice = gc.Tensor(np.eye(3))
    stress = gc.grad(lambda strain: morse(gc.Tensor(x[0]) @ (lattice + strain)))(np.zeros((3, 3)))
    print("stress", stress.shape)
