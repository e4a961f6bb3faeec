"""Helmholtz' equation in a square; the boundary values hold by an output transform."""

import deepxde as dde
import numpy as np
import torch

dde.config.set_random_seed(5)
k = 4 * np.pi


def residual(x, u):
    u_xx = dde.grad.hessian(u, x, i=0, j=0)
    u_yy = dde.grad.hessian(u, x, i=1, j=1)
    source = k**2 * torch.sin(k * x[:, 0:1]) * torch.sin(k * x[:, 1:2])
    return -u_xx - u_yy - k**2 * u - source


def exact(x):
    return np.sin(k * x[:, 0:1]) * np.sin(k * x[:, 1:2])


def zero_at_the_edges(x, u):
    x, y = x[:, 0:1], x[:, 1:2]
    return 16 * x * (1 - x) * y * (1 - y) * u


square = dde.geometry.Rectangle([0, 0], [1, 1])
data = dde.data.PDE(square, residual, [], num_domain=1600, num_test=2500, solution=exact)
net = dde.nn.FNN([2] + [100] * 3 + [1], "sin", "Glorot uniform")
net.apply_output_transform(zero_at_the_edges)
model = dde.Model(data, net)
model.compile("adam", lr=1e-3, metrics=["l2 relative error"])
model.train(iterations=5000)
