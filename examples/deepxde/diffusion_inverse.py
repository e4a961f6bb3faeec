"""The coefficient of a diffusion equation from values at ten points: a dde.Variable."""

import deepxde as dde
import numpy as np
import torch

dde.config.set_random_seed(7)
coefficient = dde.Variable(2.0)


def residual(x, u):
    u_t = dde.grad.jacobian(u, x, i=0, j=1)
    u_xx = dde.grad.hessian(u, x, i=0, j=0)
    decay = torch.exp(-x[:, 1:2]) * torch.sin(np.pi * x[:, 0:1])
    return u_t - coefficient * u_xx + decay * (1 - np.pi**2)


def exact(x):
    return np.sin(np.pi * x[:, 0:1]) * np.exp(-x[:, 1:2])


domain = dde.geometry.GeometryXTime(dde.geometry.Interval(-1, 1), dde.geometry.TimeDomain(0, 1))
edges = dde.icbc.DirichletBC(domain, exact, lambda x, on_boundary: on_boundary)
start = dde.icbc.IC(domain, exact, lambda x, on_initial: on_initial)
places = np.stack([np.linspace(-1, 1, 10), np.full(10, 1.0)], axis=1)
measured = dde.icbc.PointSetBC(places, exact(places), component=0)
data = dde.data.TimePDE(
    domain,
    residual,
    [edges, start, measured],
    num_domain=40,
    num_boundary=20,
    num_initial=10,
    anchors=places,
    solution=exact,
    num_test=1000,
)
model = dde.Model(data, dde.nn.FNN([2] + [32] * 3 + [1], "tanh", "Glorot uniform"))
model.compile(
    "adam", lr=0.001, metrics=["l2 relative error"], external_trainable_variables=coefficient
)
model.train(iterations=20000, callbacks=[dde.callbacks.VariableValue(coefficient, period=2000)])
