"""-u'' = 2 on (-1, 1) with a Dirichlet condition on the left and a Robin one, u' = u, on the right."""

import deepxde as dde
import numpy as np

dde.config.set_random_seed(2)


def residual(x, u):
    return dde.grad.hessian(u, x) - 2


line = dde.geometry.Interval(-1, 1)
left = dde.icbc.DirichletBC(line, lambda x: (x + 1) ** 2, lambda x, on: on and np.isclose(x[0], -1))
right = dde.icbc.RobinBC(line, lambda x, u: u, lambda x, on: on and np.isclose(x[0], 1))
data = dde.data.PDE(
    line, residual, [left, right], 16, 2, solution=lambda x: (x + 1) ** 2, num_test=100
)
model = dde.Model(data, dde.nn.FNN([1] + [50] * 3 + [1], "tanh", "Glorot uniform"))
model.compile("adam", lr=0.001, metrics=["l2 relative error"])
model.train(iterations=10000)
