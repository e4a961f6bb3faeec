"""A DeepONet that learns integration from pairs of functions made by NumPy."""

import deepxde as dde
import numpy as np

dde.config.set_random_seed(13)
random = np.random.default_rng(13)
places = np.linspace(0, 1, 60)[:, None].astype(np.float32)
orders = np.arange(1, 6)


def pairs(n):
    amplitudes = random.normal(size=(n, 5)) / orders
    functions = amplitudes @ np.cos(np.pi * orders[:, None] * places.T)
    integrals = amplitudes @ (
        np.sin(np.pi * orders[:, None] * places.T) / (np.pi * orders[:, None])
    )
    return (functions.astype(np.float32), places), integrals.astype(np.float32)


data = dde.data.TripleCartesianProd(*pairs(150), *pairs(500))
net = dde.nn.DeepONetCartesianProd([60, 40, 40], [1, 40, 40], "relu", "Glorot normal")
model = dde.Model(data, net)
model.compile("adam", lr=1e-3, metrics=["mean l2 relative error"])
model.train(iterations=10000)
