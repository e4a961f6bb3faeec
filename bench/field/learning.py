"""Operators, flows, networks that learn to learn, and networks of energies."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from field import Made, program


def weights(normal: Any, *widths: int) -> list[Any]:
    """Of a dense network: a matrix and a bias by layer."""
    made = []
    for k, m in pairwise(widths):
        made += [normal(k, m) / np.sqrt(k), 0.1 * normal(m)]
    return made


def dense(lib: Any, x: Any, layers: Any) -> Any:
    for i in range(0, len(layers), 2):
        x = x @ layers[i] + layers[i + 1]
        x = lib.tanh(x) if i + 2 < len(layers) else x
    return x


@program("DeepONet, 64 functions at 256 points", tuple(range(3, 15)))
def deeponet(lib: Any, normal: Any) -> Made:
    def loss(sensors: Any, points: Any, wanted: Any, *layers: Any) -> Any:
        branch, trunk = dense(lib, sensors, layers[:6]), dense(lib, points, layers[6:])
        return ((branch @ trunk.T - wanted) ** 2).mean()

    nets = [*weights(normal, 100, 64, 64, 64), *weights(normal, 1, 64, 64, 64)]
    return loss, [normal(64, 100), normal(256, 1), normal(64, 256), *nets]


@program("Fourier neural operator, 8 functions of 128 points", (1, 2, 3, 4, 5))
def fourier_operator(lib: Any, normal: Any) -> Made:
    """Three layers of 16 channels and 12 waves."""

    def loss(
        x: Any, lift: Any, real: Any, imaginary: Any, along: Any, last: Any, wanted: Any
    ) -> Any:
        h = x @ lift
        for k in range(3):
            waves = lib.rfft(h, None, 1)[:, :12]
            waves = lib.einsum("bwi,wio->bwo", waves, real[k] + 1j * imaginary[k])
            h = lib.tanh(lib.irfft(waves, 128, 1) + h @ along[k])
        return ((h @ last - wanted) ** 2).mean()

    many = [0.1 * normal(3, 12, 16, 16) for _ in range(2)]
    return loss, [
        normal(8, 128, 2), normal(2, 16), *many, 0.2 * normal(3, 16, 16), normal(16, 1),
        normal(8, 128, 1),
    ]  # fmt: skip


@program("normalizing flow, 4 couplings, 512 points", tuple(range(1, 17)))
def flow(lib: Any, normal: Any) -> Made:
    """RealNVP: minus the log likelihood in 8 dimensions."""

    def loss(x: Any, *layers: Any) -> Any:
        a, b, volume = x[:, :4], x[:, 4:], 0
        for k in range(4):
            shift = dense(lib, a, layers[4 * k : 4 * k + 4])
            scale = lib.tanh(shift[:, 4:])
            a, b = b * lib.exp(scale) + shift[:, :4], a
            volume = volume + scale.sum(1)
        return (0.5 * ((a * a).sum(1) + (b * b).sum(1)) - volume).mean()

    nets = [w for _ in range(4) for w in weights(normal, 4, 64, 8)]
    return loss, [normal(512, 8), *nets]


@program("variational autoencoder, 128 images", tuple(range(2, 10)))
def autoencoder(lib: Any, normal: Any) -> Made:
    def loss(x: Any, noise: Any, *layers: Any) -> Any:
        code = dense(lib, x, layers[:4])
        mean, log_spread = code[:, :16], code[:, 16:]
        again = dense(lib, mean + lib.exp(log_spread) * noise, layers[4:])
        told = (lib.softplus(again) - x * again).sum(1)
        apart = (0.5 * (mean**2 + lib.exp(2 * log_spread) - 1) - log_spread).sum(1)
        return (told + apart).mean()

    nets = [*weights(normal, 256, 128, 32), *weights(normal, 16, 128, 256)]
    return loss, [0.5 + 0.5 * np.tanh(normal(128, 256)), normal(128, 16), *nets]


@program("meta-learning (MAML), 16 tasks, 3 inner steps", (4, 5, 6))
def maml(lib: Any, normal: Any) -> Made:
    def error(a: Any, b: Any, c: Any, x: Any, y: Any) -> Any:
        return ((lib.tanh(x @ a + b) @ c - y) ** 2).mean()

    def task(x: Any, y: Any, x_new: Any, y_new: Any, *net: Any) -> Any:
        for _ in range(3):
            slopes = lib.grad(error, (0, 1, 2))(*net, x, y)
            net = tuple(w - 0.05 * s for w, s in zip(net, slopes, strict=True))
        return error(*net, x_new, y_new)

    def loss(*given: Any) -> Any:
        return lib.vmap(task, (0, 0, 0, 0, None, None, None))(*given).mean()

    data = [normal(16, 20, 1) for _ in range(4)]
    return loss, [*data, normal(1, 40), normal(40), 0.2 * normal(40, 1)]


@program("ensemble of 16 networks", (0, 1))
def ensemble(lib: Any, normal: Any) -> Made:
    def loss(v: Any, w: Any, x: Any) -> Any:
        one = lib.vmap(lambda v, w, x: lib.tanh(x @ v) @ w, (0, 0, None))
        return (one(v, w, x) ** 2).mean()

    return loss, [normal(16, 1, 32), normal(16, 32, 1), normal(128, 1)]


@program("Hamiltonian network, 256 points", tuple(range(3, 8)))
def hamiltonian(lib: Any, normal: Any) -> Made:
    """A network's slopes are to be speeds; they do not depend on its last bias."""

    def loss(x: Any, speed_q: Any, speed_p: Any, *layers: Any) -> Any:
        slope = lib.grad(lambda x: dense(lib, x, layers).sum())(x)
        return ((slope[:, 2:] - speed_q) ** 2 + (slope[:, :2] + speed_p) ** 2).mean()

    return loss, [normal(256, 4), normal(256, 2), normal(256, 2), *weights(normal, 4, 64, 64, 1)]
