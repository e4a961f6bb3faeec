"""A beam's bending u'''' + 1 = 0: clamped on the left, free on the right (an OperatorBC each)."""

import deepxde as dde
import numpy as np

dde.config.set_random_seed(4)


def second(x, u):
    return dde.grad.hessian(u, x)


def residual(x, u):
    return dde.grad.hessian(second(x, u), x) + 1


def left(x, on_boundary):
    return on_boundary and np.isclose(x[0], 0)


def right(x, on_boundary):
    return on_boundary and np.isclose(x[0], 1)


line = dde.geometry.Interval(0, 1)
conditions = [
    dde.icbc.DirichletBC(line, lambda x: 0, left),
    dde.icbc.NeumannBC(line, lambda x: 0, left),
    dde.icbc.OperatorBC(line, lambda x, u, _: second(x, u), right),
    dde.icbc.OperatorBC(line, lambda x, u, _: dde.grad.jacobian(second(x, u), x), right),
]
data = dde.data.PDE(
    line,
    residual,
    conditions,
    num_domain=10,
    num_boundary=2,
    solution=lambda x: -(x**4) / 24 + x**3 / 6 - x**2 / 4,
    num_test=100,
)
model = dde.Model(data, dde.nn.FNN([1] + [20] * 3 + [1], "tanh", "Glorot uniform"))
model.compile("adam", lr=0.001, metrics=["l2 relative error"])
model.train(iterations=10000)
