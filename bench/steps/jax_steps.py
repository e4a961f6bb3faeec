"""JAX under jit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import inputs
from steps import Step, jax_transforms


def build(kind: str, params: dict[str, Any], variant: str) -> Step | None:
    jax.config.update("jax_enable_x64", params.get("dtype") == "float64")
    if kind in ("elementwise", "tanh_sin"):
        f = sine_and_tanh if kind == "elementwise" else tanh_sine
        for _ in range(params["order"]):
            f = jax.grad(f)
        x = jnp.asarray(inputs.points_on_line(params["elements"]))
        compiled = jax.jit(jax.vmap(f))
        return Step(lambda: compiled(x).block_until_ready(), _arrays)
    if kind == "scalar":
        gradient = jax.jit(jax.grad(lambda x, y: x**2 + y))
        x, y = jnp.float32(3.0), jnp.float32(4.0)
        return Step(lambda: gradient(x, y).block_until_ready(), _arrays)
    if kind == "pinn":
        return pinn_step(params)
    if kind == "deepxde":
        return burgers_training()
    if kind == "mlp":
        return mlp_step(params)
    if kind == "laplacian":
        return laplacian_step(params, variant)
    if kind == "tanh_log":
        return tanh_log_step(params)
    return jax_transforms.build(kind, params)


def sine_and_tanh(x: Any) -> Any:
    return jnp.sin(x) * jnp.exp(-x * x) + x * jnp.tanh(x)


def tanh_sine(x: Any) -> Any:
    return jnp.tanh(x) * jnp.sin(x)


def dense_stack(layers: Any, h: Any, activation: Any) -> Any:
    for weight, bias in layers[:-1]:
        h = activation(h @ weight.T + bias)
    weight, bias = layers[-1]
    return h @ weight.T + bias


def burgers_loss(layers: Any, x: Any, t: Any) -> Any:
    def u(x: Any, t: Any) -> Any:
        return dense_stack(layers, jnp.concatenate((x, t), 1), jnp.tanh)

    def slopes(x: Any, t: Any) -> Any:
        return jax.grad(lambda x, t: u(x, t).sum(), (0, 1))(x, t)

    u_x, u_t = slopes(x, t)
    u_xx = jax.grad(lambda x: slopes(x, t)[0].sum())(x)
    return jnp.mean((u_t + u(x, t) * u_x - inputs.VISCOSITY * u_xx) ** 2)


def laplacian(u: Any, variant: str) -> Any:
    """Of a function of one point."""
    if variant == "folx":
        import folx

        return lambda x: folx.forward_laplacian(u, 0)(x).laplacian

    def second(x: Any, e: Any) -> Any:
        if variant == "jet":
            from jax.experimental import jet

            return jet.jet(u, (x,), ((e, jnp.zeros_like(e)),))[1][1]
        return jax.jvp(lambda y: jax.jvp(u, (y,), (e,))[1], (x,), (e,))[1]

    return lambda x: jax.vmap(lambda e: second(x, e))(jnp.eye(len(x), dtype=x.dtype)).sum()


def laplacian_step(params: dict[str, Any], variant: str) -> Step:
    given = inputs.field(**params)
    layers = jax.tree.map(jnp.asarray, given.layers)
    points = jnp.asarray(given.points)

    def loss(layers: Any, points: Any) -> Any:
        def u(x: Any) -> Any:
            for w, b in layers[:-1]:
                x = jnp.tanh(x @ w + b)
            w, b = layers[-1]
            return (x @ w + b)[0]

        return jnp.mean(jax.vmap(laplacian(u, variant))(points) ** 2)

    compiled = jax.jit(jax.value_and_grad(loss))
    return Step(lambda: jax.block_until_ready(compiled(layers, points)), _arrays)


def tanh_log_step(params: dict[str, Any]) -> Step:
    from jax.experimental import jet

    def f(x: Any) -> Any:
        return jnp.tanh(x) * jnp.log(1 + x * x)

    def derivative(x: Any) -> Any:
        line = [jnp.ones_like(x), *[jnp.zeros_like(x)] * (params["order"] - 1)]
        return jet.jet(f, (x,), (line,))[1][-1]

    compiled = jax.jit(derivative)
    x = jnp.asarray(inputs.points_on_line(params["elements"]))
    return Step(lambda: compiled(x).block_until_ready(), _arrays)


def pinn_step(params: dict[str, Any]) -> Step:
    given = inputs.pinn(**params)
    layers = jax.tree.map(jnp.asarray, given.layers)
    x, t = jnp.asarray(given.x), jnp.asarray(given.t)
    compiled = jax.jit(jax.value_and_grad(burgers_loss))
    return Step(lambda: jax.block_until_ready(compiled(layers, x, t)), _arrays)


def mlp_step(params: dict[str, Any]) -> Step:
    data = inputs.mlp(**params)
    images, labels = jnp.asarray(data.images), jnp.asarray(data.labels)

    def loss(layers: Any, images: Any, labels: Any) -> Any:
        logits = dense_stack(layers, images, jax.nn.relu)
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
        return -picked.mean()

    return training(loss, data.layers, images, labels)


def burgers_training() -> Step:
    given = inputs.deepxde()
    x, t = jnp.split(jnp.asarray(given.inside), 2, 1)
    start, edge = jnp.asarray(given.start), jnp.asarray(given.edge)

    def loss(layers: Any, x: Any, t: Any, start: Any, edge: Any) -> Any:
        u_start = dense_stack(layers, start, jnp.tanh) + jnp.sin(jnp.pi * start[:, :1])
        u_edge = dense_stack(layers, edge, jnp.tanh)
        return burgers_loss(layers, x, t) + jnp.mean(u_edge**2) + jnp.mean(u_start**2)

    return training(loss, given.layers, x, t, start, edge)


def training(loss: Any, layers: Any, *arguments: Any) -> Step:
    """Adam (Kingma and Ba 2015, algorithm 1), written out; the state is donated."""

    def train(state: Any, *arguments: Any) -> Any:
        layers, m, v, count = state
        value, g = jax.value_and_grad(loss)(layers, *arguments)
        count = count + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        rate = inputs.LEARNING_RATE * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        eps = inputs.EPSILON
        layers = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + eps), layers, m, v)
        return (layers, m, v, count), value

    layers = jax.tree.map(jnp.asarray, layers)
    zeros = jax.tree.map(jnp.zeros_like, layers)
    state = (layers, zeros, jax.tree.map(jnp.zeros_like, layers), jnp.float32(0))
    compiled = jax.jit(train, donate_argnums=0)

    def call() -> Any:
        nonlocal state
        state, value = compiled(state, *arguments)
        jax.block_until_ready(state)
        return value

    return Step(call, _arrays, trains=True)


def _arrays(result: Any) -> list[Any]:
    return [np.asarray(a) for a in jax.tree.leaves(result)]
