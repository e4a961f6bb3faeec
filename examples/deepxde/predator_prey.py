"""A system of ordinary differential equations: Lotka and Volterra's."""

import deepxde as dde
import torch

dde.config.set_random_seed(8)


def residual(t, y):
    r, p = y[:, 0:1], y[:, 1:2]
    r_t = dde.grad.jacobian(y, t, i=0)
    p_t = dde.grad.jacobian(y, t, i=1)
    return [r_t - (2 * r - 0.8 * r * p), p_t - (0.5 * r * p - p)]


def features(t):
    return torch.cat((t, torch.sin(t), torch.sin(2 * t), torch.sin(3 * t)), dim=1)


def starts_at_the_values(t, y):
    return torch.cat((1.5 + y[:, 0:1] * torch.tanh(t), 1.0 + y[:, 1:2] * torch.tanh(t)), dim=1)


time = dde.geometry.TimeDomain(0, 5)
data = dde.data.PDE(time, residual, [], num_domain=500, num_boundary=2, num_test=500)
net = dde.nn.FNN([4] + [64] * 4 + [2], "tanh", "Glorot normal")
net.apply_feature_transform(features)
net.apply_output_transform(starts_at_the_values)
model = dde.Model(data, net)
model.compile("adam", lr=1e-3, decay=("step", 5000, 0.5))
model.train(iterations=20000)
