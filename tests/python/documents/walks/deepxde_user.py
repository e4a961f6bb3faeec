"""Someone with a DeepXDE script: a polygon, three kinds of conditions, resampling, callbacks, two solvers."""

import deepxde as dde
import numpy as np
from deepxde.backend import torch

dde.config.set_random_seed(0)
dde.config.set_default_float("float64")


def equation(x, u):
    u_xx = dde.grad.hessian(u, x, i=0, j=0)
    u_yy = dde.grad.hessian(u, x, i=1, j=1)
    return u_xx + u_yy + 2 * np.pi**2 * torch.sin(np.pi * x[:, :1]) * torch.sin(np.pi * x[:, 1:])


shape = dde.geometry.Polygon([[0, 0], [1, 0], [1, 0.5], [0.5, 1], [0, 1]])
exact = lambda x: np.sin(np.pi * x[:, :1]) * np.sin(np.pi * x[:, 1:])
sides = dde.icbc.DirichletBC(shape, exact, lambda x, on: on and not np.isclose(x[0], 0))
left = dde.icbc.OperatorBC(shape, lambda x, u, _: u, lambda x, on: on and np.isclose(x[0], 0))
data = dde.data.PDE(shape, equation, [sides, left], 200, 80, solution=exact, num_test=500)
net = dde.nn.FNN([2] + [12] * 2 + [1], "tanh", "Glorot uniform")
model = dde.Model(data, net)

model.compile("adam", lr=5e-3, loss_weights=[1, 100, 100], metrics=["l2 relative error"])
resampler = dde.callbacks.PDEPointResampler(period=100)
saver = dde.callbacks.ModelCheckpoint("model", save_better_only=True, period=100)
model.train(iterations=300, callbacks=[resampler, saver], display_every=300)
model.compile("L-BFGS", loss_weights=[1, 100, 100], metrics=["l2 relative error"])
dde.optimizers.set_LBFGS_options(maxiter=200)
model.train(display_every=1000)
print("L-BFGS", model.train_state.metrics_test[0] < 0.05)
model.compile("Gauss-Newton", loss_weights=[1, 100, 100], metrics=["l2 relative error"])
losses, state = model.train(iterations=40, display_every=40)
print("Gauss-Newton", state.metrics_test[0] < 1e-3)
x = 0.5 * np.random.default_rng(0).random((5, 2))
print("predict", np.abs(model.predict(x) - exact(x)).max() < 1e-3)
print("residual", np.abs(model.predict(x, operator=equation)).max() < 0.5)
