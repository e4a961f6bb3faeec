"""The heat equation, whose points are drawn anew every 100 steps."""

import deepxde as dde
import numpy as np

dde.config.set_random_seed(9)


def residual(x, u):
    return dde.grad.jacobian(u, x, i=0, j=1) - 0.3 * dde.grad.hessian(u, x, i=0, j=0)


def exact(x):
    return np.exp(-0.3 * np.pi**2 * x[:, 1:2]) * np.sin(np.pi * x[:, 0:1])


domain = dde.geometry.GeometryXTime(dde.geometry.Interval(0, 1), dde.geometry.TimeDomain(0, 1))
edges = dde.icbc.DirichletBC(domain, lambda x: 0, lambda x, on_boundary: on_boundary)
start = dde.icbc.IC(domain, exact, lambda x, on_initial: on_initial)
data = dde.data.TimePDE(
    domain,
    residual,
    [edges, start],
    num_domain=500,
    num_boundary=80,
    num_initial=80,
    train_distribution="pseudo",
    solution=exact,
    num_test=1000,
)
model = dde.Model(data, dde.nn.FNN([2] + [20] * 3 + [1], "tanh", "Glorot normal"))
model.compile("adam", lr=1e-3, metrics=["l2 relative error"])
model.train(iterations=5000, callbacks=[dde.callbacks.PDEPointResampler(period=100)])
