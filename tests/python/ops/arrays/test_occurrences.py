"""Which elements occur, where and how often, the extremes of segments, triangles' places, against NumPy: by
tables and by order, NaN, zeros of both signs, empty tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import ops

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
    "uint64",
]


def numbers(dtype: str, n: int, reach: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype.startswith("float"):
        a = np.round(rng.standard_normal(n), 1).astype(dtype)
        if n > 8:
            a[:5] = [np.nan, 0.0, -0.0, np.inf, np.nan]
        return a
    info = np.iinfo(dtype)
    return rng.integers(max(-reach, info.min), min(reach, info.max), n).astype(dtype)


def first_occurrences(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found: dict[Any, int] = {}
    index = []
    for v in a.ravel().tolist():
        key = "nan" if v != v else v
        index.append(found.setdefault(key, len(found)))
    values = np.array([np.nan if k == "nan" else k for k in found]).astype(a.dtype)
    return values, np.array(index).reshape(a.shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reach", [40, 2**31 - 1])
def test_unique(dtype: str, reach: int) -> None:
    for n in (0, 1, 5, 3000):
        a = numbers(dtype, n, reach)
        values, index = ops.unique(gc.Tensor(a))
        wanted, places = first_occurrences(a)
        assert np.array_equal(values.asnumpy(), wanted, equal_nan=dtype[0] == "f")
        assert np.array_equal(index.asnumpy(), places)
        assert index.dtype == (gc.int64 if dtype == "int64" else gc.int32)


@pytest.mark.parametrize("dtype", [*DTYPES, "bool"])
def test_runs(dtype: str) -> None:
    for n in (0, 1, 2, 100_001):
        a = numbers("int8" if dtype == "bool" else dtype, n, 2).astype(dtype)
        values, place, counts = ops.unique_consecutive(gc.Tensor(a), True, True)
        new = np.ones(n, bool)
        new[1:] = a[1:] != a[:-1]
        starts = np.flatnonzero(new)
        assert np.array_equal(values.asnumpy(), a[starts], equal_nan=dtype[0] == "f")
        assert np.array_equal(place.asnumpy(), np.cumsum(new) - 1)
        assert np.array_equal(counts.asnumpy(), np.diff(np.append(starts, n)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reach", [60, 2**31 - 1])
def test_membership(dtype: str, reach: int) -> None:
    a, tests = numbers(dtype, 5000, reach), numbers(dtype, 77, reach, 1)
    tests[:20] = a[100:120]
    for t in (tests, tests[:1], tests[:0]):
        for invert in (False, True):
            found = ops.isin(gc.Tensor(a.reshape(50, 100)), gc.Tensor(t), invert)
            assert np.array_equal(found.asnumpy(), np.isin(a, t, invert=invert).reshape(50, 100))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_counts(dtype: str) -> None:
    for n, top in ((0, 1), (7, 3), (200_000, 100), (200_000, 90_000)):
        a = np.random.default_rng(n).integers(0, min(top, np.iinfo(dtype).max), n).astype(dtype)
        counts = ops.bincount(gc.Tensor(a), minlength=5)
        assert counts.dtype == gc.float32
        assert np.array_equal(counts.asnumpy(), np.bincount(a, minlength=5))
    for wrong in (np.array([1, -1]), np.array([[1]]), np.array([1.0])):
        with pytest.raises(ValueError, match="bincount"):
            ops.bincount(gc.Tensor(wrong))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("bins", [1, 7, 100])
def test_counts_in_intervals(dtype: str, bins: int) -> None:
    a = (np.random.default_rng(3).standard_normal(100_000) * 4).astype(dtype)
    for low, high in ((-3.0, 3.0), (0.0, 0.7), (-1e-3, 1e30), (2.0, 11.0)):
        edges = np.histogram_bin_edges(a, bins, (low, high))
        near = [e[np.abs(e) < 1e9].astype(dtype) for e in (edges, np.nextafter(edges, 9))]
        on_edges = np.concatenate([a, *near])
        counts = ops.histc(gc.Tensor(on_edges), bins, low, high)
        wanted = np.histogram(on_edges, bins, (low, high))[0]
        assert np.array_equal(counts.asnumpy(), wanted.astype(dtype))
    if dtype != "int32":
        part = np.append(a, [np.nan, np.inf, -np.inf]).astype(dtype)
        wanted = np.histogram(a, bins, (-3.0, 3.0))[0]
        assert np.array_equal(ops.histc(gc.Tensor(part), bins, -3.0, 3.0).asnumpy(), wanted)


def segment_extremes(a: np.ndarray, ids: np.ndarray, count: int, largest: bool) -> np.ndarray:
    limits = np.finfo(a.dtype) if a.dtype.kind == "f" else np.iinfo(a.dtype)
    out = np.full((count, *a.shape[1:]), limits.min if largest else limits.max, a.dtype)
    for s in range(count):
        if (ids == s).any():
            out[s] = (a[ids == s].max if largest else a[ids == s].min)(0)
    return out


@pytest.mark.parametrize("dtype", DTYPES)
def test_extremes_of_segments(dtype: str) -> None:
    rng = np.random.default_rng(7)
    for shape in ((50,), (200, 3), (90, 7, 30)):
        a = (rng.standard_normal(shape) * 50 + 60).clip(0).astype(dtype)
        ids = rng.integers(-1, 12, shape[0])
        for op, largest in ((ops.unsorted_segment_max, True), (ops.unsorted_segment_min, False)):
            out = op(gc.Tensor(a), gc.Tensor(ids.astype(np.int32)), 13)
            assert np.array_equal(out.asnumpy(), segment_extremes(a, ids, 13, largest))
    with pytest.raises(IndexError, match="segment id 5"):
        ops.unsorted_segment_max(gc.Tensor(a), gc.Tensor(np.full(90, 5)), 5)


def test_gradients_of_the_extremes_of_segments() -> None:
    a = np.array([[1.0, 5.0], [3.0, 2.0], [3.0, 7.0]], np.float32)
    ids, weights = gc.Tensor([1, 1, 0]), gc.Tensor(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))

    def f(x: Any) -> Any:
        return (ops.unsorted_segment_max(x, ids, 2) * weights).sum()

    assert np.array_equal(gc.grad(f)(gc.Tensor(a)).asnumpy(), [[0, 4], [3, 0], [1, 2]])


@pytest.mark.parametrize("rows,columns", [(4, 4), (3, 7), (7, 3), (0, 4), (300, 200)])
def test_triangles(rows: int, columns: int) -> None:
    for offset in (-5, -1, 0, 2, 400):
        low = ops.tril_indices(rows, columns, offset)
        assert low.dtype == gc.int64
        assert np.array_equal(low.asnumpy(), np.stack(np.tril_indices(rows, offset, columns)))
        high = ops.triu_indices(rows, columns, offset, dtype=gc.int32)
        assert high.dtype == gc.int32
        assert np.array_equal(high.asnumpy(), np.stack(np.triu_indices(rows, offset, columns)))
