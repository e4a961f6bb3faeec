"""A DeepONet that learns integration from its equation alone, u' = v, for random polynomials v."""

import deepxde as dde
import numpy as np

dde.config.set_random_seed(14)


def residual(x, u, v):
    return dde.grad.jacobian(u, x, j=0) - v


time = dde.geometry.TimeDomain(0, 1)
start = dde.icbc.IC(time, lambda x: 0, lambda x, on_initial: on_initial)
equation = dde.data.PDE(time, residual, start, num_domain=20, num_boundary=2, num_test=40)
functions = dde.data.PowerSeries(N=6)
points = np.linspace(0, 1, num=50)[:, None]
data = dde.data.PDEOperatorCartesianProd(
    equation, functions, points, num_function=100, num_test=100, batch_size=100
)
net = dde.nn.DeepONetCartesianProd([50, 64, 64], [1, 64, 64], "tanh", "Glorot normal")
model = dde.Model(data, net)
model.compile("adam", lr=0.0005)
model.train(iterations=5000)
