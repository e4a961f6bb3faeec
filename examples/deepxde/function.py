"""A function of one variable from values, with l2 regularisation."""

import deepxde as dde
import numpy as np

dde.config.set_random_seed(16)


def f(x):
    return x * np.sin(5 * x)


line = dde.geometry.Interval(-1, 1)
data = dde.data.Function(line, f, 16, 100)
net = dde.nn.FNN([1] + [20] * 3 + [1], "tanh", "Glorot uniform", regularization=["l2", 1e-6])
model = dde.Model(data, net)
model.compile("adam", lr=0.001, metrics=["l2 relative error"])
model.train(iterations=10000)
