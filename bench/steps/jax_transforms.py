"""JAX: Jacobians, per-sample gradients, Hessian-vector products, a Burgers step."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import inputs
from steps import Step


def build(kind: str, params: dict[str, Any]) -> Step | None:
    if kind == "burgers":
        return burgers_step(**params)
    if kind not in ("jacobian", "per_sample", "hvp"):
        return None
    given = inputs.network(params["widths"], params["rows"])
    layers = jax.tree.map(jnp.asarray, given.layers)
    x, y = jnp.asarray(given.x), jnp.asarray(given.y)

    def loss(layers: Any, x: Any, y: Any) -> Any:
        return jnp.sum((dense_stack(layers, x) - y) ** 2)

    if kind == "jacobian":
        rows = jax.jit(jax.vmap(jax.jacrev(lambda x: dense_stack(layers, x))))
        return _step(rows, x)
    if kind == "per_sample":
        return _step(jax.jit(jax.vmap(jax.grad(loss), (None, 0, 0))), layers, x, y)
    if kind == "hvp":
        v = jax.tree.map(jnp.asarray, given.direction)
        product = jax.jit(
            lambda layers, v, x, y: jax.jvp(lambda p: jax.grad(loss)(p, x, y), (layers,), (v,))[1]
        )
        return _step(product, layers, v, x, y)
    return None


def _step(fn: Any, *args: Any) -> Step:
    return Step(lambda: jax.block_until_ready(fn(*args)), _arrays)


def _arrays(result: Any) -> list[Any]:
    return [np.asarray(a) for a in jax.tree.leaves(result)]


def dense_stack(layers: Any, h: Any) -> Any:
    for weight, bias in layers[:-1]:
        h = jnp.tanh(h @ weight.T + bias)
    weight, bias = layers[-1]
    return h @ weight.T + bias


def burgers_step(way: str, points: int) -> Step:
    """Per point, under vmap, as JAX's users write it, whatever gradcell's way; Adam written out."""
    given = inputs.burgers(points)

    def net(layers: Any, x: Any) -> Any:
        h = jnp.tanh(x @ layers[0][0].T + layers[0][1])
        for weight, bias in layers[1:-1]:
            h = h + jnp.tanh(h @ weight.T + bias)
        return h @ layers[-1][0].T + layers[-1][1]

    def loss(layers: Any, inside: Any, start: Any, edge: Any) -> Any:
        def u(p: Any) -> Any:
            return net(layers, p)[0]

        def residual(p: Any) -> Any:
            g, h = jax.grad(u)(p), jax.jacfwd(jax.grad(u))(p)
            return g[1] + u(p) * g[0] - inputs.VISCOSITY * h[0, 0]

        at_start = net(layers, start) + jnp.sin(np.pi * start[:, 0:1])
        return (
            jnp.mean(jax.vmap(residual)(inside) ** 2)
            + jnp.mean(at_start**2)
            + jnp.mean(net(layers, edge) ** 2)
        )

    def train(state: Any, *points: Any) -> Any:
        layers, m, v, count = state
        value, g = jax.value_and_grad(loss)(layers, *points)
        count = count + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        rate = inputs.LEARNING_RATE * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        layers = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), layers, m, v)
        return (layers, m, v, count), value

    layers = jax.tree.map(jnp.asarray, given.layers)
    zeros = jax.tree.map(jnp.zeros_like, layers)
    state = (layers, zeros, jax.tree.map(jnp.zeros_like, layers), jnp.float32(0))
    args = [jnp.asarray(a) for a in (given.inside, given.start, given.edge)]
    values = _arrays(jax.jit(jax.value_and_grad(loss))(layers, *args))
    compiled = jax.jit(train, donate_argnums=0)

    def call() -> Any:
        nonlocal state
        state, value = compiled(state, *args)
        jax.block_until_ready(state)
        return value

    return Step(call, lambda _: values)
