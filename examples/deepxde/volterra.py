"""An integro-differential equation of Volterra's: u' + u = the integral of exp(s - x) u(s) to x."""

import deepxde as dde
import numpy as np
import torch

dde.config.set_random_seed(11)


def residual(x, u, weights):
    known = torch.matmul(torch.as_tensor(weights), u)
    n = known.shape[0]
    return dde.grad.jacobian(u, x)[:n] + u[:n] - known


def kernel(x, s):
    return np.exp(s - x)


time = dde.geometry.TimeDomain(0, 5)
start = dde.icbc.IC(time, lambda x: 1, lambda x, on_initial: on_initial)
data = dde.data.IDE(
    time,
    residual,
    start,
    quad_deg=20,
    kernel=kernel,
    num_domain=10,
    num_boundary=2,
    train_distribution="uniform",
)
model = dde.Model(data, dde.nn.FNN([1] + [20] * 3 + [1], "tanh", "Glorot uniform"))
model.compile("adam", lr=1e-3)
model.train(iterations=1000)
model.compile("L-BFGS")
model.train()
