"""Networks and their training steps, which the tests of CUDA plans run and count."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as ms
from gradcell import Tensor, nn, ops

rng = np.random.default_rng(21)

Case = tuple[Callable[..., Any], tuple[Tensor, ...]]


def tensor(*shape: int, dtype: Any = np.float32) -> Tensor:
    return Tensor(rng.uniform(-1, 1, shape).astype(dtype))


def network(widths: list[int], dtype: Any = np.float32) -> tuple[Tensor, ...]:
    """Weights and biases."""
    pairs = itertools.pairwise(widths)
    return tuple(w for k, m in pairs for w in (tensor(k, m, dtype=dtype), tensor(m, dtype=dtype)))


def applied(x: Tensor, weights: tuple[Tensor, ...], *activations: Callable[..., Any]) -> Tensor:
    for k in range(0, len(weights), 2):
        x = ops.matmul(x, weights[k]) + weights[k + 1]
        if k + 2 < len(weights):
            x = activations[k // 2 % len(activations)](x)
    return x


def gradients(loss: Callable[..., Any], x: Tensor, weights: tuple[Tensor, ...]) -> Any:
    """A loss, its gradient for x and for all weights."""
    return ms.value_and_grad(loss, tuple(range(len(weights) + 1)))(x, *weights)


def first_order(widths: list[int], rows: int, *activations: Any, dtype: Any = np.float32) -> Case:
    def loss(x: Tensor, *weights: Tensor) -> Tensor:
        return ops.square(applied(x, weights, *activations)).mean()

    return lambda x, *w: gradients(loss, x, w), (
        tensor(rows, widths[0], dtype=dtype),
        *network(widths, dtype),
    )


def residual(order: int, widths: list[int], rows: int, activation: Any, dtype: Any) -> Case:
    """The gradient of a loss that has derivatives of the network in it."""

    def loss(x: Tensor, *weights: Tensor) -> Tensor:
        def u(x: Tensor) -> Tensor:
            return applied(x, weights, activation)

        streams, f = [u(x)], u
        for k in range(order):
            f = ms.grad(lambda x, f=f, k=k: f(x)[:, k % 2 : k % 2 + 1].sum())
            streams.append(f(x)[:, :1])
        left = streams[-1] + streams[0] * streams[1]
        return ops.square(left).mean()

    return lambda x, *w: gradients(loss, x, w), (
        tensor(rows, widths[0], dtype=dtype),
        *network(widths, dtype),
    )


def burgers_step(layers: list[int], rows: int) -> Case:
    """A training step of Burgers' equation with Adam."""
    weights = [ms.Parameter(w * 0.5, name=f"w{k}") for k, w in enumerate(network([2, *layers, 1]))]
    optimizer = nn.Adam(weights, 0.01)

    def u(x: Tensor, t: Tensor) -> Tensor:
        return applied(ops.concat((x, t), 1), tuple(weights), ops.tanh)

    slopes = ms.grad(lambda x, t: u(x, t).sum(), (0, 1))
    second = ms.grad(lambda x, t: slopes(x, t)[0].sum(), 0)

    def loss(x: Tensor, t: Tensor) -> Tensor:
        u_x, u_t = slopes(x, t)
        return ops.square(u_t + u(x, t) * u_x - 0.003 * second(x, t)).mean()

    step = ms.value_and_grad(loss, None, weights)

    def run(x: Tensor, t: Tensor) -> Any:
        value, found = step(x, t)
        optimizer(found)
        return value, found

    return run, (tensor(rows, 1), tensor(rows, 1))


def normalised(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    far = x - x.mean(-1, keep_dims=True)
    return far * ops.rsqrt(ops.square(far).mean(-1, keep_dims=True) + 1e-5) * scale + shift


def normalised_network(x: Tensor, w: tuple[Tensor, ...]) -> Tensor:
    """Two layers with a layer norm behind each, and one more."""
    for k, activation in ((0, ops.sigmoid), (4, ops.tanh)):
        x = activation(normalised(ops.matmul(x, w[k]) + w[k + 1], w[k + 2], w[k + 3]))
    return ops.matmul(x, w[8]) + w[9]


def norms(rows: int, width: int, order: int) -> Case:
    """The gradient, for x and all weights, of a loss of the network, its slopes or their slopes."""
    dense = network([width] * 4)
    w = (*dense[:2], *(tensor(width) for _ in range(2)))
    w += (*dense[2:4], *(tensor(width) for _ in range(2)), *dense[4:])

    def loss(x: Tensor, *w: Tensor) -> Tensor:
        def f(x: Tensor) -> Tensor:
            return ops.softmax(normalised_network(x, w), -1)

        for _ in range(order - 1):
            f = ms.grad(lambda x, f=f: ops.square(f(x)).sum())
        return ops.square(f(x)).mean()

    return ms.value_and_grad(loss, tuple(range(len(w) + 1))), (tensor(rows, width), *w)
