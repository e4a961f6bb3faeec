"""u'' = u^3 + f on (-1, 1) in float64 by Adam, then NNCG: damped Newton steps with conjugate gradients."""

import deepxde as dde
import numpy as np
import torch

dde.config.set_default_float("float64")
dde.config.set_random_seed(17)


def residual(x, u):
    wave = torch.sin(np.pi * x)
    return dde.grad.hessian(u, x) - u**3 + np.pi**2 * wave + wave**3


def exact(x):
    return np.sin(np.pi * x)


line = dde.geometry.Interval(-1, 1)
edges = dde.icbc.DirichletBC(line, exact, lambda x, on_boundary: on_boundary)
data = dde.data.PDE(line, residual, edges, 30, 2, solution=exact, num_test=100)
model = dde.Model(data, dde.nn.FNN([1] + [16] * 2 + [1], "tanh", "Glorot uniform"))
model.compile("adam", lr=1e-3, metrics=["l2 relative error"])
model.train(iterations=3000)
dde.optimizers.set_NNCG_options(mu=0.1, cgtol=1e-8)
model.compile("NNCG", metrics=["l2 relative error"])
model.train(iterations=200, display_every=50)
