"""Operands that are views of what is stored, read where they lie: broadcasts, slices and steps in
expressions of several ops, against NumPy; lines of all lengths about a vector's, one and many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as ms
from gradcell import Parameter, Tensor, ops

SHAPES = [
    (300, 1000), (37, 41), (99, 33), (3, 5, 64), (7, 32, 5, 32), (2, 50, 40), (3, 20003), (1, 70000),
    (9, 4100), (200, 48), (48, 16), (2, 16385),
]  # fmt: skip
DTYPES = [np.float32, np.float64, np.int32, np.int64]

#: Of x and three operands that broadcast to it.
EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "one": lambda o, x, a, b, c: x + a,
    "first": lambda o, x, a, b, c: a - x,
    "both": lambda o, x, a, b, c: a * b,
    "chain": lambda o, x, a, b, c: a * b + x,
    "several": lambda o, x, a, b, c: (x - a) * (b + c) - a,
    "comparison": lambda o, x, a, b, c: x > a,
    "choice": lambda o, x, a, b, c: o.where(x > a, b, c),
    "mask": lambda o, x, a, b, c: o.where(a > b, x, c),
    "cast": lambda o, x, a, b, c: (x + a).astype(ms.float64 if o is ops else np.float64) * b,
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_broadcasts(shape: tuple[int, ...], dtype: Any) -> None:
    rng = np.random.default_rng(len(shape) + shape[-1])
    x = (rng.standard_normal(shape) * 5).astype(dtype)
    for _ in range(3):
        others = [
            (rng.standard_normal([1 if rng.random() < 0.5 else n for n in shape]) * 5).astype(dtype)
            for _ in range(3)
        ]
        for name, f in EXPRESSIONS.items():
            wanted = f(np, x, *others)
            wide = f(np, *(v.astype(np.float64) for v in (x, *others)))
            compiled = ms.jit(lambda *t, f=f: f(ops, *t))
            for got in (compiled(*map(Tensor, (x, *others))), f(ops, *map(Tensor, (x, *others)))):
                assert got.asnumpy().dtype == wanted.dtype, name
                tolerance = {np.float32: 1e-5}.get(dtype, 1e-13)
                np.testing.assert_allclose(
                    got.asnumpy(), wide, rtol=tolerance, atol=100 * tolerance, err_msg=name
                )


SLICES: dict[str, Callable[[Any], Any]] = {
    "rows apart": lambda x: x[1:] - x[:-1],
    "columns apart": lambda x: x[:, 1:] - x[:, :-1],
    "both apart": lambda x: x[1:, 1:] + x[:-1, :-1] * x[1:, :-1],
    "every second row": lambda x: x[::2] * 2.0,
    "every second column": lambda x: x[:, ::2] * 2.0,
    "every third": lambda x: x[:, ::3] * 2.0 + x[:, :1],
    "every fourth": lambda x: x[::4, ::4] * 2.0 - x[:1, ::4],
    "backwards": lambda x: x[:, ::-1] * 3.0 + x,
    "upwards": lambda x: x[::-1] * 3.0 + x,
    "a column": lambda x: x[:, 2:3] * x,
    "a row": lambda x: x[2:3] * x,
    "copies": lambda x: x[1:, 2:],
    "of a transpose": lambda x: x.T[1:, :-1] * 2.0 + x.T[:-1, 1:],
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", SLICES)
@pytest.mark.parametrize("shape", [s for s in SHAPES if len(s) == 2 and min(s) > 2], ids=str)
def test_slices(shape: tuple[int, ...], name: str) -> None:
    x = np.random.default_rng(3).standard_normal(shape)
    f = SLICES[name]
    for dtype, tolerance in ((np.float64, 1e-14), (np.float32, 1e-5), (np.float16, 2e-2)):
        t = Tensor(x.astype(dtype))
        wanted = f(x.astype(dtype).astype(np.float64))
        for got in (ms.jit(f)(t), f(t)):
            np.testing.assert_allclose(got.asnumpy(), wanted, rtol=tolerance, atol=tolerance)


def test_a_view_that_is_used_again_after_a_write() -> None:
    x = np.random.default_rng(4).standard_normal((300, 400))
    t = Tensor(x)
    view, wide = t[:, :200], ops.expand_dims(t[0], 0)
    for k in range(3):
        np.testing.assert_array_equal((view * 2.0).asnumpy(), x[:, :200] * 2)
        np.testing.assert_array_equal((t + wide).asnumpy(), x + x[:1])
        t[:, k] = float(k)
        x[:, k] = k


def test_updates_in_place() -> None:
    p = Parameter(Tensor(np.ones((999, 33))))
    row = np.arange(33.0)
    step = ms.jit(lambda r: ops.assign(p, p * r + r))
    for _ in range(3):
        step(Tensor(row))
    wanted = np.ones((999, 33))
    for _ in range(3):
        wanted = wanted * row + row
    np.testing.assert_array_equal(p.asnumpy(), wanted)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 64, 65, 100])
def test_vander(n: int) -> None:
    x = np.random.default_rng(5).uniform(-1, 1, 20)
    np.testing.assert_allclose(ops.vander(Tensor(x), n).asnumpy(), np.vander(x, n), rtol=1e-13)
    whole = np.arange(-3, 4)
    np.testing.assert_array_equal(
        ops.vander(Tensor(whole), n % 20).asnumpy(), np.vander(whole, n % 20)
    )
    if n > 2:
        slope = ms.grad(lambda t: ops.vander(t, n).sum())(Tensor(np.array([0.0, 0.5]))).asnumpy()
        half = sum(k * 0.5 ** (k - 1) for k in range(1, n))
        np.testing.assert_allclose(slope, [1.0, half], rtol=1e-13)
