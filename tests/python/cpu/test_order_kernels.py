"""Sorting, selection, running extrema and distinct elements, against NumPy: all dtypes, ties, NaN, zeros of
both signs, every axis, rows short and long enough for each way of sorting."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as gc
from gradcell import ops

pytestmark = pytest.mark.one_in(4)  # kernels at many sizes

DTYPES = [
    "float32",
    "float64",
    "float16",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "bool",
]


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith("float"):
        a = np.round(rng.standard_normal(shape), 1).astype(dtype)  # ties
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(dtype).tiny, -np.finfo(dtype).max]
        a.flat[rng.integers(0, a.size, 7 * 3)] = special * 3
        return a
    info = np.iinfo(dtype)
    a = rng.integers(-50 if info.min else 0, 50, shape).astype(dtype)
    a.flat[:2] = info.min, info.max
    return a


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (257,), (9001,), (7, 63), (63, 7), (3, 50, 4)], ids=str)
def test_order(dtype: str, shape: tuple[int, ...]) -> None:
    a = numbers(dtype, shape if np.prod(shape) > 1 else (2,))
    for axis in range(a.ndim):
        wanted = np.argsort(a, axis, kind="stable")
        values, order = ops.sort(gc.Tensor(a), axis)
        assert order.dtype == gc.int32 and values.dtype == gc.Tensor(a).dtype
        assert np.array_equal(order.asnumpy(), wanted)
        assert same(values.asnumpy(), np.take_along_axis(a, wanted, axis))
        assert np.array_equal(ops.argsort(gc.Tensor(a), axis).asnumpy(), wanted)
        # Downwards, equal elements keep their order too; NaN comes first.
        flipped = np.flip(a, axis)
        down = np.flip(a.shape[axis] - 1 - np.argsort(flipped, axis, kind="stable"), axis)
        assert np.array_equal(ops.argsort(gc.Tensor(a), axis, True).asnumpy(), down)


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "int64"])
def test_order_of_many_elements(dtype: str) -> None:
    a = numbers(dtype, (300_001,), 3)
    if dtype == "float64":
        a = np.random.default_rng(1).standard_normal(300_001) * 10.0 ** np.arange(300_001).clip(
            0, 300
        )
    wanted = np.argsort(a, kind="stable")
    before = gc.get_context("max_threads")
    try:
        for threads in (1, 2, 3):
            gc.set_context(max_threads=threads)
            assert np.array_equal(ops.argsort(gc.Tensor(a)).asnumpy(), wanted)
    finally:
        gc.set_context(max_threads=before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("largest", [True, False])
def test_the_first_k(dtype: str, largest: bool) -> None:
    for shape in ((500,), (33, 200), (200, 5)):
        a = numbers(dtype, shape, 5)
        for axis in range(a.ndim):
            order = ops.argsort(gc.Tensor(a), axis, largest).asnumpy()
            for k in {0, 1, 3, a.shape[axis] // 2, a.shape[axis]}:
                values, at = ops.topk(gc.Tensor(a), k, axis, largest)
                wanted = np.take(order, np.arange(k), axis)
                assert np.array_equal(at.asnumpy(), wanted)
                assert same(values.asnumpy(), np.take_along_axis(a, wanted, axis))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extrema(dtype: str, name: str) -> None:
    for shape in ((400,), (40, 33), (5, 6, 7), (3, 600, 1), (4, 3, 700)):
        a = numbers(dtype, shape, 7)
        for axis in range(a.ndim):
            values, index = getattr(ops, name)(gc.Tensor(a), axis)
            lines = np.moveaxis(a, axis, -1).reshape(-1, a.shape[axis])
            wanted = np.zeros(lines.shape, np.int64)
            for line, at in zip(lines, wanted, strict=True):
                best = 0
                for i, v in enumerate(line):
                    if v != v or (v >= line[best] if name == "cummax" else v <= line[best]):
                        best = i
                    at[i] = best
            moved = (*np.delete(a.shape, axis), a.shape[axis])
            wanted = np.moveaxis(wanted.reshape(moved), -1, axis)
            assert np.array_equal(index.asnumpy(), wanted)
            assert same(values.asnumpy(), np.take_along_axis(a, wanted, axis))


def test_gradients_go_to_the_chosen_elements() -> None:
    a = np.random.default_rng(2).permutation(120).reshape(10, 12).astype(np.float32)
    w = np.random.default_rng(3).standard_normal((10, 12)).astype(np.float32)
    x = gc.Tensor(a)
    for axis in (0, 1):
        order = np.argsort(a, axis)
        wanted = np.zeros_like(a)
        np.put_along_axis(wanted, order, w, axis)
        got = gc.grad(lambda x, k=axis: (ops.sort(x, k)[0] * gc.Tensor(w)).sum())(x)
        assert np.array_equal(got.asnumpy(), wanted)
        top = np.take(np.flip(order, axis), np.arange(3), axis)
        wanted = np.zeros_like(a)
        np.put_along_axis(wanted, top, np.take(w, np.arange(3), axis), axis)
        part = np.ascontiguousarray(np.take(w, np.arange(3), axis))
        got = gc.grad(lambda x, k=axis, p=part: (ops.topk(x, 3, k)[0] * gc.Tensor(p)).sum())(x)
        assert np.array_equal(got.asnumpy(), wanted)
        for f, choose in ((ops.max, np.argmax), (ops.min, np.argmin)):
            at = np.expand_dims(choose(a, axis), axis)
            wanted = np.zeros_like(a)
            np.put_along_axis(wanted, at, 1.0, axis)
            got = gc.grad(lambda x, k=axis, f=f: f(x, k)[0].sum())(x)
            assert np.array_equal(got.asnumpy(), wanted)


@pytest.mark.parametrize("dtype", [*DTYPES, "uint64"])
def test_unique(dtype: str) -> None:
    a = numbers(dtype, (23, 17), 9)
    found, index = (t.asnumpy() for t in ops.unique(gc.Tensor(a)))
    values, first = np.unique(a, return_index=True)
    order = np.argsort(first)
    assert same(found, values[order])
    assert same(found[index], a)


def test_randperm_is_a_permutation() -> None:
    for n in (0, 1, 1000, 200_003):
        p = ops.randperm(n).asnumpy()
        assert p.dtype == np.int64 and np.array_equal(np.sort(p), np.arange(n))
    assert not np.array_equal(ops.randperm(1000).asnumpy(), ops.randperm(1000).asnumpy())


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8", "int64"])
@pytest.mark.parametrize("right", [False, True])
def test_places_in_a_line(dtype: str, right: bool) -> None:
    line = np.sort(numbers(dtype, (40,), 11))
    values = numbers(dtype, (30, 7), 12)
    side = "right" if right else "left"
    for n in range(41):
        got = ops.searchsorted(gc.Tensor(line[:n]), gc.Tensor(values), right=right)
        assert got.dtype == gc.int64
        assert np.array_equal(got.asnumpy(), np.searchsorted(line[:n], values, side))
    edges = [-1.0, 0.1, 0.1, 2.5]  # 0.1 is none of float32's numbers
    got = ops.bucketize(gc.Tensor(values), edges, right=right).asnumpy()
    assert np.array_equal(got, np.searchsorted(edges, values, "left" if right else "right"))
