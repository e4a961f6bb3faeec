"""Poisson's equation on a disk in float64 by L-BFGS, to an error of about 1e-6."""

import deepxde as dde
import numpy as np

dde.config.set_default_float("float64")
dde.config.set_random_seed(15)


def residual(x, u):
    return dde.grad.hessian(u, x, i=0, j=0) + dde.grad.hessian(u, x, i=1, j=1) + 1


def exact(x):
    return (1 - np.sum(x**2, axis=1, keepdims=True)) / 4


disk = dde.geometry.Disk([0, 0], 1)
edge = dde.icbc.DirichletBC(disk, lambda x: 0, lambda x, on_boundary: on_boundary)
data = dde.data.PDE(
    disk, residual, edge, num_domain=300, num_boundary=60, solution=exact, num_test=500
)
model = dde.Model(data, dde.nn.FNN([2] + [20] * 3 + [1], "tanh", "Glorot normal"))
model.compile("adam", lr=1e-3, metrics=["l2 relative error"])
model.train(iterations=2000)
dde.optimizers.set_LBFGS_options(maxiter=3000)
model.compile("L-BFGS", metrics=["l2 relative error"])
model.train()
