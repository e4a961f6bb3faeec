"""The inputs of every case, from fixed seeds, and reference values in float64 by NumPy.

Every framework makes its own copy of these, so that all compute the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

VISCOSITY = 0.01 / math.pi


def points_on_line(count: int) -> Array:
    """float32 [count], uniform in [-3, 3)."""
    return np.random.default_rng(0).uniform(-3, 3, count).astype(np.float32)


def elementwise_derivative(x: Array, order: int) -> Array:
    """First or second derivative of sin(x) exp(-x^2) + x tanh(x), float64."""
    x = x.astype(np.float64)
    s, c, e, t = np.sin(x), np.cos(x), np.exp(-x * x), np.tanh(x)
    if order == 1:
        return (c - 2 * x * s) * e + t + x * (1 - t * t)
    return ((4 * x * x - 3) * s - 4 * x * c) * e + 2 * (1 - t * t) * (1 - x * t)


def _tanh_times(x: Array, order: int, derivative: Callable[[Array, int], Array]) -> Array:
    """Derivative of tanh(x) f(x), float64, by Leibniz's rule, given those of f; derivatives of tanh
    are polynomials in t = tanh(x), since t' = 1 - t^2."""
    x = x.astype(np.float64)
    polynomial = np.polynomial.Polynomial([0, 1])
    total = np.zeros_like(x)
    for k in range(order + 1):
        total += math.comb(order, k) * polynomial(np.tanh(x)) * derivative(x, order - k)
        polynomial = polynomial.deriv() * np.polynomial.Polynomial([1, 0, -1])
    return total


def tanh_sin_derivative(x: Array, order: int) -> Array:
    """Derivative of tanh(x) sin(x), float64."""
    return _tanh_times(x, order, lambda x, n: np.sin(x + n * math.pi / 2))


def tanh_log_derivative(x: Array, order: int) -> Array:
    """Derivative of tanh(x) log(1 + x^2), float64; the logarithm is 2 Re log(x - i)."""

    def logarithm(x: Array, n: int) -> Array:
        if n == 0:
            return np.log1p(x * x)
        return -2 * (-1) ** n * math.factorial(n - 1) * np.real((x - 1j) ** -n)

    return _tanh_times(x, order, logarithm)


@dataclass(frozen=True)
class PinnInputs:
    """A net's (weight [out, in], bias [out]) by layer; the points' x and t, [n, 1]."""

    layers: list[tuple[Array, Array]]
    x: Array
    t: Array


@dataclass(frozen=True)
class FieldInputs:
    """A net's (weight [in, out], bias [out]) by layer, and the points, [n, d]."""

    layers: list[tuple[Array, Array]]
    points: Array


def field(depth: int, width: int, dimensions: int, points: int, dtype: str) -> FieldInputs:
    rng = np.random.default_rng(0)
    sizes = [dimensions, *[width] * depth, 1]
    layers = [
        (
            (rng.standard_normal((k, m)) / math.sqrt(k)).astype(dtype),
            (0.1 * rng.standard_normal(m)).astype(dtype),
        )
        for k, m in pairwise(sizes)
    ]
    return FieldInputs(layers, rng.standard_normal((points, dimensions)).astype(dtype))


def pinn(depth: int, width: int, points: int, dtype: str) -> PinnInputs:
    rng = np.random.default_rng(0)
    sizes = [2, *[width] * depth, 1]
    layers = [
        (
            (rng.standard_normal((m, k)) / math.sqrt(k)).astype(dtype),
            (0.1 * rng.standard_normal(m)).astype(dtype),
        )
        for k, m in pairwise(sizes)
    ]
    x = rng.uniform(-1, 1, (points, 1)).astype(dtype)
    t = rng.uniform(0, 1, (points, 1)).astype(dtype)
    return PinnInputs(layers, x, t)


@dataclass(frozen=True)
class MlpInputs:
    """(weight [out, in], bias [out]) by layer; images [batch, 784] float32, labels [batch] int32."""

    layers: list[tuple[Array, Array]]
    images: Array
    labels: Array


MLP_SIZES = (784, 512, 512, 10)
LEARNING_RATE = 1e-3
#: Adam's of the networks. (MindSpore adds it before the correction of the bias, PyTorch after it: at
#: the usual 1e-8 the fifth losses of a dense network differ by 0.4 %.)
EPSILON = 1e-12


def mlp(batch: int) -> MlpInputs:
    rng = np.random.default_rng(0)
    layers = [
        (
            (rng.standard_normal((m, k)) * math.sqrt(2 / k)).astype(np.float32),
            np.zeros(m, np.float32),
        )
        for k, m in pairwise(MLP_SIZES)
    ]
    images = rng.random((batch, MLP_SIZES[0])).astype(np.float32)
    labels = rng.integers(0, MLP_SIZES[-1], batch).astype(np.int32)
    return MlpInputs(layers, images, labels)


@dataclass(frozen=True)
class NetworkInputs:
    """(weight [out, in], bias [out]) by layer, a direction in their space, rows x and targets y."""

    layers: list[tuple[Array, Array]]
    direction: list[tuple[Array, Array]]
    x: Array
    y: Array


def network(widths: Sequence[int], rows: int) -> NetworkInputs:
    """float32."""
    rng = np.random.default_rng(0)

    def drawn() -> list[tuple[Array, Array]]:
        return [
            (
                (rng.standard_normal((m, k)) / math.sqrt(k)).astype(np.float32),
                (0.1 * rng.standard_normal(m)).astype(np.float32),
            )
            for k, m in pairwise(widths)
        ]

    x = rng.standard_normal((rows, widths[0])).astype(np.float32)
    y = rng.standard_normal((rows, widths[-1])).astype(np.float32)
    return NetworkInputs(drawn(), drawn(), x, y)


@dataclass(frozen=True)
class BurgersInputs:
    """(weight, bias) by layer; points (x, t), [n, 2], inside, at the start and at the edge."""

    layers: list[tuple[Array, Array]]
    inside: Array
    start: Array
    edge: Array


def burgers(points: int) -> BurgersInputs:
    """A network of 5 hidden layers of 128; float32."""
    rng = np.random.default_rng(1)
    layers = network((2, *[128] * 5, 1), 1).layers
    x, t = rng.uniform(-1, 1, (3, points)), rng.uniform(0, 1, (3, points))
    sides = np.sign(x[2])
    inside, start, edge = (
        np.stack(columns, 1).astype(np.float32)
        for columns in ((x[0], t[0]), (x[1], 0 * t[1]), (sides, t[2]))
    )
    return BurgersInputs(layers, inside, start, edge)


def deepxde() -> BurgersInputs:
    """As many points as DeepXDE's example has, drawn uniformly: 2,540 inside, 160 at the start, 80 at
    the edges; three hidden layers of 20. The residual is asked for at all 2,780."""
    rng = np.random.default_rng(2)
    x, t = rng.uniform(-1, 1, 2780), rng.uniform(0, 0.99, 2780)
    t[2540:2700] = 0
    x[2700:] = np.sign(x[2700:])
    points = np.stack((x, t), 1).astype(np.float32)
    return BurgersInputs(
        network((2, 20, 20, 20, 1), 1).layers, points, points[2540:2700], points[2700:]
    )


@dataclass(frozen=True)
class ImageInputs:
    """images [batch, channels, rows, columns] float32; targets: labels [batch] int32, or images."""

    images: Array
    targets: Array


#: By network: an image's channels and size, and how many classes there are (0: the target is an
#: image of one channel).
IMAGES = {"lenet": (1, 32, 10), "resnet": (3, 32, 10), "convolutions": (1, 64, 0)}

#: A language model's: words, tokens of a text, width, heads, layers.
VOCABULARY, TOKENS, WIDTH, HEADS, LAYERS = 256, 128, 128, 4, 4
#: A recurrent network's: steps, width of input and state, classes.
STEPS, STATE, CLASSES = 32, 128, 10


def images(kind: str, batch: int) -> ImageInputs:
    """What a network takes: images, words [batch, TOKENS], sequences [STEPS, batch, STATE]."""
    rng = np.random.default_rng(0)
    if kind == "gpt":
        words = rng.integers(0, VOCABULARY, (2, batch, TOKENS)).astype(np.int32)
        return ImageInputs(words[0], words[1].reshape(-1))
    if kind in ("gru", "lstm"):
        steps = rng.standard_normal((STEPS, batch, STATE)).astype(np.float32)
        return ImageInputs(steps, rng.integers(0, CLASSES, batch).astype(np.int32))
    if kind == "dense":
        data = mlp(batch)
        return ImageInputs(data.images, data.labels)
    channels, size, classes = IMAGES[kind]
    images = rng.standard_normal((batch, channels, size, size)).astype(np.float32)
    if classes:
        return ImageInputs(images, rng.integers(0, classes, batch).astype(np.int32))
    return ImageInputs(images, rng.standard_normal((batch, 1, size, size)).astype(np.float32))


def initial_weights(shapes: Sequence[Sequence[int]]) -> list[Array]:
    """What a network begins with, parameter by parameter in the order of its layers: matrices and
    kernels at random, vectors near 0, or near 1 if they scale (the first of two in a row)."""
    rng = np.random.default_rng(1)
    made = []
    for i, shape in enumerate(shapes):
        scales = len(shape) == 1 and i + 1 < len(shapes) and len(shapes[i + 1]) == 1
        spread = math.sqrt(2 / math.prod(shape[1:])) if len(shape) > 1 else 0.1
        made.append((scales + spread * rng.standard_normal(shape)).astype(np.float32))
    return made
