"""DeepXDE's Burgers example on PyTorch, with the points and weights that the others have."""

from __future__ import annotations

import os
from typing import Any

os.environ["DDE_BACKEND"] = "pytorch"

import deepxde as dde
import numpy as np
import torch

import inputs
from steps import Step

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def build(kind: str, params: dict[str, Any], variant: str) -> Step | None:
    return burgers_training() if kind == "deepxde" else None


def residual(x: Any, y: Any) -> Any:
    y_x = dde.grad.jacobian(y, x, i=0, j=0)
    y_t = dde.grad.jacobian(y, x, i=0, j=1)
    y_xx = dde.grad.hessian(y, x, i=0, j=0)
    return y_t + y * y_x - inputs.VISCOSITY * y_xx


def burgers_training() -> Step:
    """A call is one turn of the loop in `Model.train`."""
    given = inputs.deepxde()
    domain = dde.geometry.GeometryXTime(
        dde.geometry.Interval(-1, 1), dde.geometry.TimeDomain(0, 0.99)
    )
    edge = dde.icbc.DirichletBC(domain, lambda x: 0, lambda _, on_boundary: on_boundary)
    start = dde.icbc.IC(
        domain, lambda x: -np.sin(np.pi * x[:, 0:1]), lambda _, on_initial: on_initial
    )
    data = dde.data.TimePDE(domain, residual, [edge, start], anchors=given.inside)
    net = dde.nn.FNN([2, 20, 20, 20, 1], "tanh", "Glorot normal")
    with torch.no_grad():
        for linear, (weight, bias) in zip(net.linears, given.layers, strict=True):
            linear.weight.copy_(torch.from_numpy(weight))
            linear.bias.copy_(torch.from_numpy(bias))
    losses: list[Any] = []

    def mean_square(wanted: Any, got: Any) -> Any:
        losses.append(torch.nn.functional.mse_loss(got, wanted))
        return losses[-1]

    model = dde.Model(data, net)
    model.compile("adam", lr=inputs.LEARNING_RATE, loss=mean_square)
    state = model.train_state

    def call() -> Any:
        losses.clear()
        state.set_data_train(*data.train_next_batch())
        model.train_step(state.X_train, state.y_train, state.train_aux_vars)
        return sum(losses)

    return Step(call, lambda loss: [loss.detach().numpy()], trains=True)
