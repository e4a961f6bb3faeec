"""Reductions of whole tensors on the CPU: odd sizes, every axis, special values, against NumPy in float64.

Sizes are such that each path is taken: lines and columns, cut into parts or not, with and without
a rest beside the vectors.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gradcell as gc
from gradcell import ops

pytestmark = pytest.mark.one_in(4)  # kernels at many sizes

SHAPES = [
    (70_001,), (3, 40_001), (1000, 37), (37, 1000), (129, 257), (2049, 33), (40_000, 2), (5, 64, 33),
    (7, 3, 50, 6), (65, 1, 66), (3, 1030, 2), (2, 2, 2, 2, 2, 40), (1, 4097), (4097, 1),
]  # fmt: skip
DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64"]


def axes_of(rank: int) -> list[tuple[int, ...]]:
    return [a for n in range(1, rank + 1) for a in itertools.combinations(range(rank), n)]


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> tuple[gc.Tensor, np.ndarray]:
    """A tensor, and the same numbers in NumPy (bfloat16 as float32)."""
    rng = np.random.default_rng(seed)
    if "int" in dtype:
        a = rng.integers(0, 100, shape).astype(dtype)
        return gc.Tensor(a), a
    a = rng.standard_normal(shape).astype("float64" if dtype == "float64" else "float32")
    t = gc.Tensor(a).astype(getattr(gc, dtype))
    return t, t.astype(gc.float32).asnumpy() if dtype == "bfloat16" else t.asnumpy()


def got(t: gc.Tensor) -> np.ndarray:
    return t.astype(gc.float32).asnumpy() if t.dtype == gc.bfloat16 else t.asnumpy()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_sums(shape: tuple[int, ...], dtype: str) -> None:
    t, a = numbers(shape, dtype)
    for axes in axes_of(len(shape)):
        wanted = a.astype(np.float64).sum(axes)
        error = np.abs(got(ops.reduce_sum(t, axes)).astype(np.float64) - wanted)
        bound = np.abs(a.astype(np.float64)).sum(axes) * 2.0 ** (-22 if dtype == "float32" else -48)
        assert (error <= (bound if dtype != "int32" else 0)).all(), (axes, error.max())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["amax", "amin"])
def test_extrema(shape: tuple[int, ...], name: str) -> None:
    for dtype in DTYPES:
        t, a = numbers(shape, dtype)
        for axes in axes_of(len(shape)):
            assert np.array_equal(got(getattr(ops, name)(t, axes)), getattr(np, name)(a, axes))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_every_dtype(dtype: str) -> None:
    for shape in ((129, 257), (3, 40_001)):
        t, a = numbers(shape, dtype)
        for axes in axes_of(2):
            total = a.astype(np.float64).sum(axes)
            if "int" in dtype:  # wraps
                wanted = a.astype(np.int64).sum(axes).astype(dtype)
                assert np.array_equal(ops.reduce_sum(t, axes).asnumpy(), wanted)
            else:
                unit = {"float32": 2.0**-24, "float64": 2.0**-48, "float16": 2.0**-11}.get(
                    dtype, 2.0**-8
                )
                error = np.abs(got(ops.reduce_sum(t, axes)) - total)
                spread = np.abs(a.astype(np.float64)).sum(axes)
                assert (error <= unit * np.abs(total) + 2.0**-25 * spread).all()


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_special_value_anywhere(axis: int | tuple[int, int], bad: float) -> None:
    for place in (0, 63, 64, 4095, 8191, 130 * 67 - 1):
        a = np.random.default_rng(place).standard_normal((130, 67)).astype(np.float32)
        a.flat[place] = bad
        t = gc.Tensor(a)
        for ours, theirs in ((ops.amax, np.amax), (ops.amin, np.amin), (ops.reduce_sum, np.sum)):
            assert np.allclose(ours(t, axis).asnumpy(), theirs(a, axis), 1e-5, 1e-5, equal_nan=True)
        if isinstance(axis, int):
            assert np.array_equal(ops.argmax(t, axis).asnumpy(), a.argmax(axis))
            assert np.array_equal(ops.argmin(t, axis).asnumpy(), a.argmin(axis))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_first_of_extremes_that_tie(shape: tuple[int, ...]) -> None:
    for dtype in ("float32", "int64", "uint8", "float16"):
        a = np.random.default_rng(1).integers(0, 5, shape).astype(dtype)
        for axis in range(len(shape)):
            assert np.array_equal(ops.argmax(gc.Tensor(a), axis).asnumpy(), a.argmax(axis))
            assert np.array_equal(ops.argmin(gc.Tensor(a), axis).asnumpy(), a.argmin(axis))
        assert int(ops.argmax(gc.Tensor(a))) == a.argmax()


def test_the_first_nan_and_the_first_zero_of_two_signs() -> None:
    a = np.zeros((3, 300), np.float32)
    a[0, 1::2] = -0.0
    a[1, [200, 130]] = np.nan
    a[2, 77] = np.inf
    for axis in (0, 1):
        assert np.array_equal(ops.argmax(gc.Tensor(a), axis).asnumpy(), a.argmax(axis))
        assert np.array_equal(ops.argmin(gc.Tensor(a), axis).asnumpy(), a.argmin(axis))


def test_all_infinite_lines() -> None:
    a = np.full((40, 70), -np.inf, np.float32)
    assert (ops.amax(gc.Tensor(a), 0).asnumpy() == -np.inf).all()
    assert (ops.amax(gc.Tensor(a), 1).asnumpy() == -np.inf).all()
    assert (ops.amin(gc.Tensor(-a), 1).asnumpy() == np.inf).all()


@pytest.mark.parametrize("shape", [(0, 40), (40, 0), (0,), (3, 0, 50)])
def test_empty(shape: tuple[int, ...]) -> None:
    t = gc.Tensor(np.zeros(shape, np.float32))
    for axes in axes_of(len(shape)):
        assert np.array_equal(ops.reduce_sum(t, axes).asnumpy(), np.zeros(shape).sum(axes))


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    a = gc.Tensor(np.random.default_rng(3).standard_normal((1003, 517)).astype(np.float32))
    before = gc.get_context("max_threads")
    try:
        results = []
        for threads in (1, 2, 5):
            gc.set_context(max_threads=threads)
            results.append([ops.reduce_sum(a, axes).asnumpy().tobytes() for axes in (0, 1, (0, 1))])
    finally:
        gc.set_context(max_threads=before)
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("exclusive", "reverse"), list(itertools.product((False, True), repeat=2)))
def test_scans_of_columns(dtype: str, exclusive: bool, reverse: bool) -> None:
    for shape in ((1, 8), (5, 9), (40, 300), (3, 33, 17), (2, 50, 8)):
        axis = len(shape) - 2
        t, a = numbers(shape, dtype)
        wide = a.astype(np.float64)
        turned = np.flip(wide, axis) if reverse else wide
        sums = np.cumsum(turned, axis) - (turned if exclusive else 0)
        wanted = np.flip(sums, axis) if reverse else sums
        found = got(ops.cumsum(t, axis) if not (exclusive or reverse) else
                    ops.CumSum(exclusive, reverse)(t, axis))  # fmt: skip
        if "int" in dtype:
            assert np.array_equal(found, wanted.astype(np.int64).astype(found.dtype)), shape
        else:
            digits = {"float64": 1e-13, "float32": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
            np.testing.assert_allclose(found, wanted, rtol=digits, atol=digits * 20)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_halves_of_every_length(dtype: str) -> None:
    for n in (*range(1, 40), 63, 64, 65, 127, 128, 129, 190, 255, 257, 4097):
        t, a = numbers((3, n), dtype, n)
        wanted = a.astype(np.float64).sum(1)
        error = np.abs(got(ops.sum(t, 1)).astype(np.float64) - wanted)
        step = 2.0**-10 if dtype == "float16" else 2.0**-7
        assert (error <= step * np.maximum(np.abs(wanted), 2.0**-10)).all(), n


@pytest.mark.parametrize("dtype", [*DTYPES, "bool_", "complex64", "complex128"])
def test_lines_backwards_and_apart(dtype: str) -> None:
    for n in (1, 2, 7, 15, 16, 17, 33, 64, 100, 1001):
        a = np.arange(3 * n).reshape(3, n) % 120
        t = gc.Tensor(a.astype(np.float32)).astype(getattr(gc, dtype))
        want = t.asnumpy() if dtype != "bfloat16" else a.astype(np.float32)
        for key in ((slice(None), slice(None, None, s)) for s in (-1, 2, 4, -3, 5)):
            found = t[key].copy()
            found = found.astype(gc.float32) if dtype == "bfloat16" else found
            assert np.array_equal(found.asnumpy(), want[key]), (n, key)
        assert np.array_equal(
            got(ops.flip(t, (1,))) if "complex" not in dtype else ops.flip(t, (1,)).asnumpy(),
            want[:, ::-1],
        )


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_floats_out_of_range_of_integers(dtype: str) -> None:
    info = np.iinfo(dtype)
    values = {
        np.nan: 0, np.inf: info.max, -np.inf: info.min, 1e300: info.max, -1e300: info.min,
        2147483646.9: 2147483646, -2147483647.9: -2147483647, -0.9: 0, 1.9: 1, 0.0: 0,
    }  # fmt: skip
    if dtype == "int32":
        values |= {2147483647.5: info.max, 2147483648.0: info.max, -2147483648.9: info.min}
    for at in range(19):
        a = np.full(19, 7.0)
        for value, wanted in values.items():
            a[at] = value
            found = ops.cast(gc.Tensor(a), getattr(gc, dtype)).asnumpy()
            assert found[at] == wanted and (np.delete(found, at) == 7).all(), (at, value)


def test_rolls_of_many_lines() -> None:
    a = np.arange(700 * 300, dtype=np.float32).reshape(700, 300)
    for shift, axis in ((37, 1), (-1, 1), (299, 1), (13, 0), ((5, 7), (0, 1))):
        assert np.array_equal(
            ops.roll(gc.Tensor(a), shift, axis).asnumpy(), np.roll(a, shift, axis)
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_small_products(dtype: str) -> None:
    rng = np.random.default_rng(3)
    for m, k, n in ((16, 16, 16), (17, 19, 32), (32, 32, 32), (33, 40, 63), (64, 1, 48), (5, 1, 9)):
        a, b = (
            rng.standard_normal((9, m, k)).astype(dtype),
            rng.standard_normal((9, k, n)).astype(dtype),
        )
        wanted = a.astype(np.float64) @ b.astype(np.float64)
        bound = (
            np.abs(a).astype(np.float64)
            @ np.abs(b)
            * (2.0**-23 if dtype == "float32" else 2.0**-52)
            * k
        )
        for ta, tb in itertools.product((False, True), repeat=2):
            left = gc.Tensor(a.swapaxes(1, 2).copy() if ta else a)
            right = gc.Tensor(b.swapaxes(1, 2).copy() if tb else b)
            found = ops.BatchMatMul(ta, tb)(left, right).asnumpy()
            assert (np.abs(found - wanted) <= bound).all(), (m, k, n, ta, tb)
