"""Kovasznay's flow: the steady Navier-Stokes equations for two velocities and a pressure."""

import deepxde as dde
import numpy as np

dde.config.set_random_seed(10)
reynolds = 20
rate = reynolds / 2 - np.sqrt(reynolds**2 / 4 + 4 * np.pi**2)


def residual(x, y):
    u, v = y[:, 0:1], y[:, 1:2]
    d = [[dde.grad.jacobian(y, x, i=i, j=j) for j in range(2)] for i in range(3)]
    laplacian = [
        sum(dde.grad.hessian(y, x, component=i, i=j, j=j) for j in range(2)) for i in range(2)
    ]
    return [
        u * d[0][0] + v * d[0][1] + d[2][0] - laplacian[0] / reynolds,
        u * d[1][0] + v * d[1][1] + d[2][1] - laplacian[1] / reynolds,
        d[0][0] + d[1][1],
    ]


def speed(x):
    return 1 - np.exp(rate * x[:, 0:1]) * np.cos(2 * np.pi * x[:, 1:2])


def cross_speed(x):
    return rate / (2 * np.pi) * np.exp(rate * x[:, 0:1]) * np.sin(2 * np.pi * x[:, 1:2])


def pressure(x):
    return (1 - np.exp(2 * rate * x[:, 0:1])) / 2


def edge(x, on_boundary):
    return on_boundary


def outlet(x, on_boundary):
    return on_boundary and np.isclose(x[0], 1)


area = dde.geometry.Rectangle([-0.5, -0.5], [1, 1.5])
conditions = [
    dde.icbc.DirichletBC(area, speed, edge, component=0),
    dde.icbc.DirichletBC(area, cross_speed, edge, component=1),
    dde.icbc.DirichletBC(area, pressure, outlet, component=2),
]
data = dde.data.PDE(area, residual, conditions, num_domain=1600, num_boundary=400, num_test=4000)
model = dde.Model(data, dde.nn.FNN([2] + [50] * 4 + [3], "tanh", "Glorot normal"))
model.compile("adam", lr=1e-3)
model.train(iterations=10000)
model.compile("L-BFGS")
model.train()
