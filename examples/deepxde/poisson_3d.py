"""Poisson's equation in a box minus a ball, with a Neumann condition on the ball."""

import deepxde as dde
import numpy as np

dde.config.set_random_seed(6)


def residual(x, u):
    return sum(dde.grad.hessian(u, x, i=i, j=i) for i in range(3)) - 6


def exact(x):
    return np.sum(x**2, axis=1, keepdims=True)


box = dde.geometry.Cuboid([-1, -1, -1], [1, 1, 1])
ball = dde.geometry.Sphere([0, 0, 0], 0.5)
domain = box - ball
outside = dde.icbc.DirichletBC(domain, exact, lambda x, on: on and box.on_boundary(x))
inside = dde.icbc.NeumannBC(domain, lambda x: -1.0, lambda x, on: on and ball.on_boundary(x))
data = dde.data.PDE(
    domain,
    residual,
    [outside, inside],
    num_domain=1000,
    num_boundary=300,
    solution=exact,
    num_test=500,
)
model = dde.Model(data, dde.nn.FNN([3] + [40] * 3 + [1], "tanh", "Glorot normal"))
model.compile("adam", lr=1e-3, metrics=["l2 relative error"], loss_weights=[1, 10, 1])
model.train(iterations=5000)
