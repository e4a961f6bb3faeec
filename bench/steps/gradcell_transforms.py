"""gradcell: Jacobians, per-sample gradients, Hessian-vector products, one Burgers step in four ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as gc
import inputs
from gradcell import Parameter, Tensor, nn, ops
from steps import Step

KINDS = ("jacobian", "per_sample", "hvp", "burgers")


def build(kind: str, params: dict[str, Any]) -> Step | None:
    if kind == "burgers":
        return burgers_step(**params)
    given = inputs.network(params["widths"], params["rows"])
    layers = [(Parameter(Tensor(w)), Parameter(Tensor(b))) for w, b in given.layers]
    weights = [p for layer in layers for p in layer]
    for k, p in enumerate(weights):
        p.name = f"p{k}"
    x, y = Tensor(given.x), Tensor(given.y)

    def net(x: Any) -> Any:
        return dense_stack(layers, x)

    def loss(x: Any, y: Any) -> Any:
        return ops.sum(ops.square(net(x) - y))

    if kind == "jacobian":
        return _step(gc.jit(gc.vmap(gc.jacrev(net))), x)
    if kind == "per_sample":
        return _step(gc.jit(gc.vmap(gc.grad(loss, None, weights))), x, y)
    if kind == "hvp":
        v = tuple(Tensor(a) for layer in given.direction for a in layer)
        return _step(gc.jit(lambda x, y, *v: gc.hvp(loss, (x, y), v, weights)[1]), x, y, *v)
    return None


def _step(fn: Callable[..., Any], *args: Any) -> Step:
    return Step(lambda: fn(*args), _arrays)


def _arrays(result: Any) -> list[Any]:
    results = result if isinstance(result, tuple) else (result,)
    return [r.asnumpy() for r in results]


def dense_stack(layers: Any, h: Any) -> Any:
    for weight, bias in layers[:-1]:
        h = ops.tanh(ops.matmul(h, weight.T) + bias)
    weight, bias = layers[-1]
    return ops.matmul(h, weight.T) + bias


# Burgers' equation, in the ways that it is written --------------------------------------------------


class Network(nn.Cell):
    """2-128x5-1, tanh with skips over pairs of layers."""

    def __init__(self, layers: Any) -> None:
        super().__init__()
        self.weight = [Parameter(Tensor(w), name=f"w{k}") for k, (w, _) in enumerate(layers)]
        self.bias = [Parameter(Tensor(b), name=f"b{k}") for k, (_, b) in enumerate(layers)]
        for k, (w, b) in enumerate(zip(self.weight, self.bias, strict=True)):
            self.insert_param_to_cell(f"w{k}", w)
            self.insert_param_to_cell(f"b{k}", b)

    def construct(self, x: Any) -> Any:
        h = ops.tanh(ops.matmul(x, self.weight[0].T) + self.bias[0])
        for k in range(1, len(self.weight) - 1):
            h = h + ops.tanh(ops.matmul(h, self.weight[k].T) + self.bias[k])
        return ops.matmul(h, self.weight[-1].T) + self.bias[-1]


def nested_gradients(net: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """u, u_x, u_t, u_xx by grad of grad."""
    slope = gc.grad(lambda x: ops.sum(net(x)))
    g = slope(x)
    u_xx = gc.grad(lambda x: ops.sum(slope(x)[:, 0:1]))(x)[:, 0:1]
    return net(x), g[:, 0:1], g[:, 1:2], u_xx


def batched_jacobians(net: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """By Jacobians of sums over the batch, columns picked by number, as physics libraries do."""
    jacobian = gc.jacrev(lambda x: ops.sum(net(x), 0))
    hessian = gc.jacrev(lambda x: ops.sum(jacobian(x), 1))
    j, h = jacobian(x), hessian(x)
    return net(x), j[0, :, 0:1], j[0, :, 1:2], h[0, 0, :, 0:1]


def of_each_point(net: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """By vmap of jacfwd of grad at one point."""

    def u(p: Any) -> Any:
        return net(p)[0]

    g = gc.vmap(gc.grad(u))(x)
    h = gc.vmap(gc.jacfwd(gc.grad(u)))(x)
    return net(x), g[:, 0:1], g[:, 1:2], h[:, 0, 0:1]


def along_directions(net: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """By jvp, and jvp of jvp."""
    rows = np.ones((x.shape[0], 1), np.float32)
    e_x, e_t = Tensor(rows * [1, 0], gc.float32), Tensor(rows * [0, 1], gc.float32)

    def along(x: Any) -> Any:
        return gc.jvp(net, x, e_x)[1]

    u_x, u_xx = gc.jvp(along, x, e_x)
    u, u_t = gc.jvp(net, x, e_t)
    return u, u_x, u_t, u_xx


WAYS = {
    "nested grad": nested_gradients,
    "batched Jacobians": batched_jacobians,
    "vmap(jacfwd(grad))": of_each_point,
    "jvp": along_directions,
}


def burgers_step(way: str, points: int) -> Step:
    """One step of Adam on the equation, the start and the edge."""
    given = inputs.burgers(points)
    net = Network(given.layers)
    derivatives = WAYS[way]
    weights = net.trainable_params()
    optimizer = nn.Adam(weights, learning_rate=inputs.LEARNING_RATE)

    def loss(inside: Any, start: Any, edge: Any) -> Any:
        u, u_x, u_t, u_xx = derivatives(net, inside)
        residual = u_t + u * u_x - inputs.VISCOSITY * u_xx
        at_start = net(start) + ops.sin(np.pi * start[:, 0:1])
        mean = ops.ReduceMean()
        return mean(ops.square(residual)) + mean(ops.square(at_start)) + mean(ops.square(net(edge)))

    value_and_gradients = gc.value_and_grad(loss, None, weights)

    @gc.jit
    def train(inside: Any, start: Any, edge: Any) -> Any:
        value, gradients = value_and_gradients(inside, start, edge)
        optimizer(gradients)
        return value

    @gc.jit
    def first(inside: Any, start: Any, edge: Any) -> Any:
        value, gradients = value_and_gradients(inside, start, edge)
        return (value, *gradients)

    args = [Tensor(a) for a in (given.inside, given.start, given.edge)]
    values = _arrays(first(*args))
    return Step(lambda: train(*args), lambda _: values)
