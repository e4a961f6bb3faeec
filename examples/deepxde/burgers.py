"""Burgers' equation in time, u_t + u u_x = 0.01/pi u_xx: Adam, then L-BFGS."""

import deepxde as dde
import numpy as np

dde.config.set_random_seed(1)


def residual(x, u):
    u_x = dde.grad.jacobian(u, x, i=0, j=0)
    u_t = dde.grad.jacobian(u, x, i=0, j=1)
    u_xx = dde.grad.hessian(u, x, i=0, j=0)
    return u_t + u * u_x - 0.01 / np.pi * u_xx


line, time = dde.geometry.Interval(-1, 1), dde.geometry.TimeDomain(0, 0.99)
domain = dde.geometry.GeometryXTime(line, time)
edges = dde.icbc.DirichletBC(domain, lambda x: 0, lambda x, on_boundary: on_boundary)
start = dde.icbc.IC(domain, lambda x: -np.sin(np.pi * x[:, 0:1]), lambda x, on_initial: on_initial)
data = dde.data.TimePDE(
    domain, residual, [edges, start], num_domain=2540, num_boundary=80, num_initial=160
)
net = dde.nn.FNN([2] + [20] * 3 + [1], "tanh", "Glorot normal")
model = dde.Model(data, net)

model.compile("adam", lr=1e-3)
model.train(iterations=15000)
model.compile("L-BFGS")
history, state = model.train()
dde.saveplot(history, state, issave=False, isplot=False)
