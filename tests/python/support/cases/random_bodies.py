"""Random bodies of loops: states and slices of a few shapes, from step to step through elementwise ops,
moves, sums along rows and products with matrices that stay the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcell import Tensor, ops

Body = Callable[..., tuple[list[Tensor], list[Tensor]]]


class Loop(NamedTuple):
    body: Body  # (states, slices, *same)
    states: int
    slices: int
    arrays: list[np.ndarray]
    steps: int
    reverse: bool


def ends(t: Tensor, u: Tensor, width: int) -> Tensor:
    return ops.concat(
        [t[..., :1], t[..., 1 : width - 1] * u[..., : width - 2], u[..., width - 1 :]], -1
    )


def differences(t: Tensor) -> Tensor:
    before = (0, 0) * (t.ndim - 1)
    return ops.pad(t[..., 1:] - t[..., :-1], (1, 0, *before))


def halves(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    half = ops.reshape(t, (*shape[:-1], 2, shape[-1] // 2)).sum(-2)
    return ops.concat([half, half], -1)


def random_loop(seed: int) -> Loop:
    rng = np.random.default_rng(seed)
    rows, width = int(rng.choice([1, 1, 2, 5, 7, 33])), int(rng.choice([1, 3, 4, 5, 8, 12, 70]))
    shape = (width,) if rng.random() < 0.35 else (rows, width)
    whole = len(shape) == 1
    states = [shape] * int(rng.integers(1, 3)) + [()] * int(rng.random() < 0.2)
    slices = [(shape, shape, (width,), ())[rng.integers(4)] for _ in range(rng.integers(3))]
    steps, reverse = int(rng.integers(2, 5)), bool(rng.random() < 0.3)
    draws = rng.integers(0, 1 << 30, int(rng.integers(3, 10)))

    def instruction(draw: int, pool: Sequence[Tensor], same: Sequence[Tensor]) -> Tensor:
        w, v, a, b, c = same
        r = np.random.default_rng(int(draw))
        t, u = (pool[int(r.integers(len(pool)))] for _ in range(2))
        ways: list[Callable[[], Tensor]] = [
            lambda: ops.tanh(t) + u,
            lambda: ops.sin(t * a),
            lambda: t * b - c,
            lambda: ops.sigmoid(t) * u,
            lambda: t - t.mean(-1, keep_dims=True),
            lambda: ops.softmax(t, -1) + 0.1 * u,
            lambda: ops.roll(t, int(r.integers(1, 4)), -1),
            lambda: ops.flip(t, (t.ndim - 1,)),
            lambda: ops.where(t > u, t * 0.5, u),
            lambda: ops.maximum(t, c) * ops.reduce_max(ops.abs(u), -1, keepdims=True),
        ]
        if width > 2:
            ways += [lambda: ends(t, u, width), lambda: differences(t)]
        if width % 2 == 0:
            ways.append(lambda: halves(t, shape))
        if not whole:
            ways += [lambda: ops.matmul(ops.tanh(t), w), lambda: ops.matmul(t, v.T) * 0.3 + u] * 2
        return ops.tanh(ways[int(r.integers(len(ways)))]())

    def body(s: Sequence[Tensor], x: Sequence[Tensor], *same: Tensor) -> Any:
        pool = [t if t.shape == shape else t + ops.zeros(shape, t.dtype) for t in (*s, *x)]
        for draw in draws:
            pool.append(instruction(draw, pool, same))
        made = [pool[-1 - k % min(3, len(pool))] for k in range(len(states))]
        following = [y if of == shape else y.mean() for y, of in zip(made, states, strict=True)]
        kept = [pool[-1], s[0], pool[-2].sum(-1)]
        return following, kept[: int(draws[0] % 4)]

    arrays = [rng.standard_normal(of) for of in states]
    arrays += [rng.standard_normal((steps, *of)) for of in slices]
    arrays += [0.5 * rng.standard_normal((width, width)) for _ in range(2)]
    arrays += [rng.standard_normal(of) for of in (shape, (width,), ())]
    return Loop(body, len(states), len(slices), arrays, steps, reverse)
