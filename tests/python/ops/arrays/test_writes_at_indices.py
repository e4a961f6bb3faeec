"""x[key] = value with index tensors, masks and windows, values and derivatives, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import ops

RNG = np.random.default_rng(0)
ROWS = np.array([4, 1, 1, -1])  # along 5 places or more; less 1: along 4
GRID = np.array([[0, 2], [3, 0]])
MASK = RNG.random((6, 5, 4)) < 0.4

#: (key, shapes of values)
WRITES: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "rows": (ROWS, [(), (4,), (5, 4), (1, 5, 4), (4, 5, 4), (4, 1, 1), (4, 1, 4)]),
    "one row": (np.array([3]), [(), (5, 4), (1, 5, 4)]),
    "no row": (np.zeros(0, np.int64), [(), (5, 4)]),
    "middle": ((slice(None), ROWS), [(), (4, 4), (4, 1), (6, 4, 4), (6, 1, 4), (1, 4, 1), (6, 1, 1)]),
    "last": ((slice(None), slice(None), ROWS - 1), [(), (4,), (5, 4), (6, 5, 4), (5, 1), (6, 5, 1)]),
    "grid": (GRID, [(), (4,), (2, 2, 5, 4), (2, 1, 1, 1), (1, 2, 5, 4), (5, 4)]),
    "grid in the middle": ((slice(None), GRID), [(), (2, 2, 4), (6, 2, 2, 4), (2, 1)]),
    "two tensors": ((ROWS, np.array([0, 1, 2, 3])), [(), (4,), (4, 4), (4, 1)]),
    "rows of a window": ((slice(1, 5), np.array([0, 2])), [(), (4, 2, 4), (2, 4)]),
    "row and tensor": ((2, np.array([0, 2])), [(), (2, 4)]),
    "mask": (MASK, [(), (1,)]),
    "mask of rows": (MASK[:, 0, 0], [(), (4,), (5, 4), (1, 5, 4), (5, 1)]),
    "mask of matrices": (MASK[:, :, 0], [(), (4,), (1, 4), (1,)]),
    "mask inside": ((slice(None), MASK[0, :, 0]), [(), (4,)]),
    "empty mask": (np.zeros((6, 5, 4), bool), [(), (1,)]),
    "window": (slice(1, 4), [(), (4,), (5, 4), (3, 5, 4), (1, 5, 4), (3, 1, 1)]),
    "from the start": (slice(None, 2), [(), (2, 5, 4)]),
    "to the end": (slice(4, None), [(), (2, 5, 4)]),
    "empty window": (slice(3, 3), [(), (5, 4)]),
    "one column": ((Ellipsis, 2), [(), (6, 5), (5,)]),
    "inner window": ((slice(None), slice(1, 3)), [(), (6, 2, 4), (2, 1)]),
    "two windows": ((slice(1, 3), slice(2, 4)), [(), (2, 2, 4)]),
    "steps": (slice(None, None, 2), [(), (3, 5, 4)]),
    "backwards": (slice(None, None, -1), [(6, 5, 4)]),
    "all": (slice(None), [(), (6, 5, 4), (4,)]),
}  # fmt: skip
CASES = [(k, shape) for k, (_, shapes) in WRITES.items() for shape in shapes]


def tensors(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(tensors(k) for k in key)
    return gc.Tensor(key) if isinstance(key, np.ndarray) else key


def write(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


@pytest.mark.parametrize("name, shape", CASES, ids=str)
def test_values_and_derivatives(name: str, shape: tuple[int, ...]) -> None:
    key = WRITES[name][0]
    a = RNG.standard_normal((6, 5, 4)).astype(np.float32)
    v = RNG.standard_normal(shape).astype(np.float32)
    w = RNG.standard_normal(a.shape).astype(np.float32)
    wanted = write(a.copy(), key, v)

    def f(x: Any, v: Any) -> Any:
        y = x * 1.5
        y[tensors(key)] = v * 2.0
        return (y * gc.Tensor(w)).sum()

    x = gc.Tensor(a)
    x[tensors(key)] = gc.Tensor(v)
    assert np.array_equal(x.asnumpy(), wanted)
    for grad in (gc.grad(f, (0, 1)), gc.jit(gc.grad(f, (0, 1)))):
        dx, dv = (t.asnumpy() for t in grad(gc.Tensor(a), gc.Tensor(v)))
        # Which element of the value stands where, -1: none.
        source = write(np.full(a.shape, -1), key, np.arange(v.size).reshape(shape))
        assert np.allclose(dx, np.where(source < 0, 1.5 * w, 0), 1e-6)
        total = np.zeros(v.size)
        np.add.at(total, source[source >= 0], 2.0 * w.astype(np.float64)[source >= 0])
        assert np.allclose(dv, total.reshape(shape), 1e-5, 1e-5)


def test_a_number() -> None:
    for name, (key, _) in WRITES.items():
        for dtype in ("float32", "int32", "bool", "float16"):
            a = RNG.integers(0, 2, (6, 5, 4)).astype(dtype)
            x = gc.Tensor(a)
            x[tensors(key)] = 1
            assert np.array_equal(x.asnumpy(), write(a.copy(), key, 1)), (name, dtype)


def test_nan_that_is_overwritten_leaves_no_trace() -> None:
    a = np.full((40, 30), np.nan, np.float32)
    mask = RNG.random(a.shape) < 0.5

    def f(x: Any) -> Any:
        y = x * 2.0
        y[gc.Tensor(mask)] = 0.0
        return ops.where(gc.Tensor(mask), y, 0.0).sum()

    assert float(f(gc.Tensor(a))) == 0.0
    assert (gc.grad(f)(gc.Tensor(a)).asnumpy() == 0).all()


@pytest.mark.parametrize("key", [np.array([6]), np.array([0, -7])], ids=str)
def test_rows_that_are_not_there(key: np.ndarray) -> None:
    x = gc.Tensor(np.zeros((6, 5), np.float32))
    with pytest.raises(IndexError, match="out of bounds"):
        x[gc.Tensor(key)] = 1.0
    assert (x.asnumpy() == 0).all()


@pytest.mark.parametrize("shape", [(3, 5), (2, 4), (2, 1, 1, 5)], ids=str)
def test_values_of_shapes_that_do_not_fit(shape: tuple[int, ...]) -> None:
    x = gc.Tensor(np.zeros((6, 5), np.float32))
    for key in (np.array([0, 1]), np.array([True, True, False, False, False, False]), slice(0, 2)):
        if shape[0] == 3 and not isinstance(key, slice) and key.dtype == bool:
            continue
        with pytest.raises(ValueError):
            x[tensors(key)] = gc.Tensor(np.zeros(shape, np.float32))


@pytest.mark.parametrize("size", [1, 5, 70_001])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_gather_and_scatter_of_many(size: int, dtype: str) -> None:
    rng = np.random.default_rng(size)
    at = rng.integers(-size, size, size + 100_003).astype(dtype)
    x = rng.standard_normal(size).astype(np.float32)
    assert np.array_equal(ops.gather(gc.Tensor(x), gc.Tensor(at), 0).asnumpy(), x[at])
    u = rng.integers(-8, 8, at.shape).astype(np.float32)
    wanted = np.zeros(size)
    np.add.at(wanted, at, u)
    core = gc._core.ops
    assert np.array_equal(core.scatter_add(gc.Tensor(at), gc.Tensor(u), 0, size).asnumpy(), wanted)
    last = np.full(size, -1)
    last[at] = np.arange(len(at))
    assert np.array_equal(core.last_writer(gc.Tensor(at), size).asnumpy(), last)
    for bad in (size, -size - 1):
        wrong = at.copy()
        wrong[-1] = bad
        with pytest.raises(IndexError, match=str(bad)):
            ops.gather(gc.Tensor(x), gc.Tensor(wrong), 0).asnumpy()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "float64"])
def test_gather_and_scatter_along_axes(axis: int, dtype: str) -> None:
    rng = np.random.default_rng(axis)
    for shape in ((40, 33, 50), (2, 1000, 70), (1000, 70, 1), (3, 5, 2000)):
        x = rng.integers(0, 5, shape).astype(dtype)
        at = rng.integers(0, shape[axis], 77)
        assert np.array_equal(
            ops.gather(gc.Tensor(x), gc.Tensor(at), axis).asnumpy(), x.take(at, axis)
        )
        dims = list(shape)
        dims[axis] = 77
        u = rng.integers(0, 3, dims).astype(dtype)
        there = (at == np.arange(shape[axis])[:, None]).astype(np.float64)
        wanted = np.moveaxis(np.tensordot(there, u.astype(np.float64), (1, axis)), 0, axis)
        got = gc._core.ops.scatter_add(gc.Tensor(at), gc.Tensor(u), axis, shape[axis])
        assert np.array_equal(got.asnumpy(), wanted.astype(dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "uint64", "float64", "bool"])
def test_what_is_no_index_is_not_read_as_one(dtype: str) -> None:
    """Of the functions that read indices where values are known: none takes other bytes for int64."""
    x = gc.Tensor(np.zeros((4, 3), np.float32))
    row = gc.Tensor(np.zeros(1, dtype))
    grid = gc.Tensor(np.zeros((1, 3), dtype))
    values = gc.Tensor(np.ones((1, 3), np.float32))
    for call in (
        lambda: gc._core.write_slices(x, 0, 1, row, values),
        lambda: gc._core.with_elements(x, 0, grid, values, False),
        lambda: gc._core.with_elements(x, 0, grid, values, True),
        lambda: gc._core.with_slices_added(x, 0, row, values),
    ):
        with pytest.raises(TypeError, match=f"an index is of int32 or int64, not of {dtype}"):
            call()
    assert not x.asnumpy().any()


@pytest.mark.parametrize("dtype", ["int32", "float16", "float64", "complex64"])
def test_values_of_another_dtype_are_not_written_as_they_are(dtype: str) -> None:
    x = gc.Tensor(np.zeros((4, 3), np.float32))
    row, grid = gc.Tensor(np.zeros(1, np.int64)), gc.Tensor(np.zeros((1, 3), np.int64))
    values = gc.Tensor(np.ones((1, 3), dtype))
    for call in (
        lambda: gc._core.write_slices(x, 0, 1, row, values),
        lambda: gc._core.with_elements(x, 0, grid, values, False),
        lambda: gc._core.with_slices_added(x, 0, row, values),
    ):
        with pytest.raises(TypeError, match=f"values of {dtype} are not written to .* float32"):
            call()
    assert not x.asnumpy().any()
