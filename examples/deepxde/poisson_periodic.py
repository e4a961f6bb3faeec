"""-u'' = pi^2 sin(pi x) with a Dirichlet condition on one side and periodic values and slopes."""

import deepxde as dde
import numpy as np
import torch

dde.config.set_random_seed(3)


def residual(x, u):
    return -dde.grad.hessian(u, x) - np.pi**2 * torch.sin(np.pi * x)


def exact(x):
    return np.sin(np.pi * x)


line = dde.geometry.Interval(-1, 1)
left = dde.icbc.DirichletBC(line, exact, lambda x, on: on and np.isclose(x[0], -1))
around = [
    dde.icbc.PeriodicBC(line, 0, lambda x, on: on and np.isclose(x[0], 1), derivative_order=order)
    for order in (0, 1)
]
data = dde.data.PDE(line, residual, [left, *around], 16, 2, solution=exact, num_test=100)
model = dde.Model(data, dde.nn.FNN([1] + [50] * 3 + [1], "tanh", "Glorot uniform"))
model.compile("adam", lr=0.001, metrics=["l2 relative error"])
model.train(iterations=10000)
