"""Calls on whole tensors by ways of their own, against NumPy in float64: movements of movements in one
pass, sums of half types and of short lines, additions at indices, copies, trapezoids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import ops

pytestmark = pytest.mark.one_in(4)  # kernels at many sizes

A = np.arange(30 * 40, dtype=np.float32).reshape(30, 40)
CUBE = np.arange(6 * 20 * 50, dtype=np.float32).reshape(6, 20, 50)

#: Movements of what movements made: gradcell, NumPy, and whether one call does it.
MOVES: dict[str, tuple[Any, Callable[[Any], Any], Callable[[Any], Any], bool]] = {
    "roll": (A, lambda x: ops.roll(x, 7, 0), lambda a: np.roll(a, 7, 0), True),
    "roll columns": (A, lambda x: ops.roll(x, -3, 1), lambda a: np.roll(a, -3, 1), True),
    "pad": (A, lambda x: ops.pad(x, (1, 2, 3, 4)), lambda a: np.pad(a, ((3, 4), (1, 2))), True),
    "rot90": (A, lambda x: ops.rot90(x, 1, (0, 1)), lambda a: np.rot90(a), True),
    "rot270": (A, lambda x: ops.rot90(x, 3, (0, 1)), lambda a: np.rot90(a, 3), True),
    "flip": (CUBE, lambda x: ops.flip(x, (0, 2)), lambda a: np.flip(a, (0, 2)), True),
    "block_diag": (
        A,
        lambda x: ops.block_diag(x, x, x[:2]),
        lambda a: np.block(
            [
                [a, np.zeros((30, 80))],
                [np.zeros((30, 40)), a, np.zeros((30, 40))],
                [np.zeros((2, 80)), a[:2]],
            ]
        ),
        False,
    ),
    "slices of slices": (
        CUBE,
        lambda x: ops.flip(ops.transpose(x, (2, 0, 1))[3:40:5, ::-1], (2,)),
        lambda a: a.transpose(2, 0, 1)[3:40:5, ::-1, ::-1],
        False,
    ),
    "repeated, turned": (
        A,
        lambda x: ops.transpose(ops.tile(x, (2, 3)), (1, 0)),
        lambda a: np.tile(a, (2, 3)).T,
        False,
    ),
    "joined, cut": (
        A,
        lambda x: ops.cat((x[5:], x[:5], x[2:4]), 0)[3:31, 1::2],
        lambda a: np.concatenate([a[5:], a[:5], a[2:4]])[3:31, 1::2],
        False,
    ),
    "a diagonal apart": (
        A,
        lambda x: ops.matrix_diag(x[:, :8]),
        lambda a: a[:, :8, None] * np.eye(8, dtype=np.float32),
        False,
    ),
    "read twice": (
        A,
        lambda x: (lambda y: ops.cat((y, ops.flip(y, (0,))), 1))(ops.pad(x[::-1], (1, 1))),
        lambda a: (lambda y: np.concatenate([y, y[::-1]], 1))(np.pad(a[::-1], ((0, 0), (1, 1)))),
        False,
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_movements_of_movements(name: str) -> None:
    a, ours, theirs, one = MOVES[name]
    wanted = theirs(a)
    for dtype in (np.float32, np.float16, np.int64, np.uint8):
        x = gc.Tensor(a.astype(dtype))
        assert np.array_equal(ours(x).asnumpy(), wanted.astype(dtype))
        assert np.array_equal(gc.jit(ours)(x).asnumpy(), wanted.astype(dtype))
    if one:
        plan = gc.plan_text(ours, gc.Tensor(np.zeros((1000, 1000, 3)[: a.ndim], np.float32)))
        assert plan.count(" call ") + plan.count(" region ") == 1, plan
    weights = np.random.default_rng(0).standard_normal(wanted.shape)
    x = gc.Tensor(a.astype(np.float64))
    gradient = gc.grad(lambda x: (ours(x) * gc.Tensor(weights)).sum())(x).asnumpy()
    direction = np.random.default_rng(1).standard_normal(a.shape)  # ours is linear
    assert np.isclose((gradient * direction).sum(), (theirs(direction) * weights).sum())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2), (0, 1)], ids=str)
def test_reductions_of_half_types(dtype: str, axes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    for shape in ((3, 5, 7), (20, 40, 90), (2, 3, 5000)):
        x = gc.Tensor(rng.standard_normal(shape).astype(np.float32)).astype(getattr(gc, dtype))
        a = x.astype(gc.float64).asnumpy()
        eps = 2.0**-10 if dtype == "float16" else 2.0**-7
        total = ops.sum(x, axes)
        assert total.dtype == x.dtype
        wanted = a.sum(axes)
        bound = eps / 2 * np.abs(wanted) + 1e-6 * np.abs(a).sum(axes)
        assert (np.abs(total.astype(gc.float64).asnumpy() - wanted) <= bound).all()
        assert np.array_equal(ops.amax(x, axes).astype(gc.float64).asnumpy(), a.max(axes))


@pytest.mark.parametrize("shape", [(100, 30, 20), (8, 3, 2), (500, 1, 300), (9, 40, 511)], ids=str)
def test_short_lines_between(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    wide = a.astype(np.float64)
    bound = 1e-7 * np.abs(wide).sum((0, 2))
    assert (np.abs(ops.sum(gc.Tensor(a), (0, 2)).asnumpy() - wide.sum((0, 2))) <= bound).all()
    assert np.array_equal(ops.amin(gc.Tensor(a), (0, 2)).asnumpy(), a.min((0, 2)))
    i = (a * 100).astype(np.int32)
    assert np.array_equal(ops.sum(gc.Tensor(i), (0, 2)).asnumpy(), i.sum((0, 2)))
    one = (1 + a / 1e4).astype(np.float32)
    product = ops.prod(gc.Tensor(one), (0, 2)).asnumpy() if shape[0] < 100 else None
    if product is not None:
        assert np.allclose(product, one.astype(np.float64).prod((0, 2)), rtol=1e-6)


@pytest.mark.one_in(1)
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "int8"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_additions_at_indices(dtype: str, axis: int) -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(-3, 4, (9, 70, 11)).astype(dtype)
    places = rng.integers(0, a.shape[axis], 25)
    y = rng.integers(-3, 4, [25 if i == axis else n for i, n in enumerate(a.shape)]).astype(dtype)
    wanted = a.copy()
    np.add.at(wanted, (slice(None),) * axis + (places,), y)
    for signed in (places, places - a.shape[axis]):
        out = ops.index_add(gc.Tensor(a), gc.Tensor(signed.astype(np.int32)), gc.Tensor(y), axis)
        assert np.array_equal(out.asnumpy(), wanted)
    at = rng.integers(0, a.shape[axis], y.shape)
    wanted = a.copy()
    grid = list(np.indices(at.shape))
    grid[axis] = at
    np.add.at(wanted, tuple(grid), y)
    out = ops.tensor_scatter_elements(gc.Tensor(a), gc.Tensor(at), gc.Tensor(y), axis, "add")
    assert np.array_equal(out.asnumpy(), wanted)
    with pytest.raises(IndexError, match="out of bounds"):
        ops.index_add(gc.Tensor(a), gc.Tensor(places + 70), gc.Tensor(y), axis)


def test_a_copy_of_many_bytes_is_apart() -> None:
    a = np.arange(3_000_001, dtype=np.float32)
    x = gc.Tensor(a)
    y = x.copy()
    y[0] = -1.0
    assert np.array_equal(x.asnumpy(), a)
    a[0] = -1.0
    assert np.array_equal(y.asnumpy(), a)


def test_trapezoids() -> None:
    a = np.random.default_rng(4).standard_normal((30, 50))
    for axis in (0, 1):
        for n in (1, 2, 30):
            part = np.take(a, np.arange(n), axis)
            out = ops.trapz(gc.Tensor(part), dx=0.5, dim=axis).asnumpy()
            assert np.allclose(out, np.trapezoid(part, dx=0.5, axis=axis), rtol=1e-13, atol=1e-13)
    slope = gc.grad(lambda y: ops.trapz(y, dim=1).sum())(gc.Tensor(a)).asnumpy()
    assert np.array_equal(slope, np.tile(np.r_[0.5, np.ones(48), 0.5], (30, 1)))
    for ends, wanted in (
        ((np.inf, 1.0), np.inf),
        ((np.inf, -np.inf), np.nan),
        ((1.0, np.nan), np.nan),
    ):
        y = gc.Tensor(np.array([ends[0], 2.0, ends[1]]))
        assert np.array_equal(ops.trapz(y).asnumpy(), wanted, equal_nan=True)
    assert ops.trapz(gc.Tensor(np.array([3e38, 0, 3e38], np.float32))).asnumpy() == np.float32(3e38)


#: Products with a vector: gradcell's of a matrix [m, k] and vectors [k], [m], NumPy's.
PRODUCTS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "mv": (lambda a, x, y: ops.mv(a, x), lambda a, x, y: a @ x),
    "a column": (lambda a, x, y: ops.matmul(a, x.reshape(-1, 1))[:, 0], lambda a, x, y: a @ x),
    "from the left": (lambda a, x, y: ops.matmul(y, a), lambda a, x, y: y @ a),
    "turned": (lambda a, x, y: ops.mv(a.T, y), lambda a, x, y: y @ a),
    "turned, left": (lambda a, x, y: ops.matmul(x, a.T), lambda a, x, y: a @ x),
    "added": (lambda a, x, y: ops.addmv(y, a, x), lambda a, x, y: a @ x + y),
    "used again": (lambda a, x, y: ops.tanh(ops.mv(a, x)) * y, lambda a, x, y: np.tanh(a @ x) * y),
    "row by row": (
        lambda a, x, y: ops.einsum("ij,ij->i", a, a * 2.0),
        lambda a, x, y: (2 * a * a).sum(1),
    ),
    "two vectors": (lambda a, x, y: ops.tensor_dot(x, x, 1), lambda a, x, y: x @ x),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("m,k", [(1, 1), (3, 5), (400, 300), (1, 70_001), (2, 40_000), (70, 1)])
def test_products_with_vectors(name: str, m: int, k: int) -> None:
    ours, theirs = PRODUCTS[name]
    rng = np.random.default_rng(5)
    numbers = [rng.standard_normal(shape) for shape in ((m, k), k, m)]
    for dtype in (np.float32, np.float64):
        small = [a.astype(dtype) for a in numbers]
        wide = [a.astype(np.float64) for a in small]
        bound = 16 * np.finfo(dtype).eps * theirs(*(np.abs(a) for a in wide))
        if name == "used again":
            bound = bound + 16 * np.finfo(dtype).eps * np.abs(wide[2]) * (
                np.abs(wide[0]) @ np.abs(wide[1])
            )
        tensors = [gc.Tensor(a) for a in small]
        for run in (ours, gc.jit(ours)):
            assert (np.abs(run(*tensors).asnumpy() - theirs(*wide)) <= bound).all()


def test_products_with_vectors_do_not_depend_on_threads() -> None:
    a = np.random.default_rng(6).standard_normal((500, 900)).astype(np.float32)
    before, found = gc.get_context("max_threads"), []
    try:
        for threads in (1, 2, 3):
            gc.set_context(max_threads=threads)
            x = gc.Tensor(a)
            found.append([f(x, x[0], x[:, 0]).asnumpy().tobytes() for f, _ in PRODUCTS.values()])
    finally:
        gc.set_context(max_threads=before)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("windows", [(7, 10, 5), (14, 1, 30), (2, 15, 3), (28, 6, None)], ids=str)
def test_pools_of_windows_side_by_side(windows: tuple[int | None, ...]) -> None:
    a = np.random.default_rng(8).standard_normal((3, 2, 28, 30, 30)).astype(np.float32)
    m = [w or n for w, n in zip(windows, a.shape[2:], strict=True)]
    apart = a.reshape(3, 2, m[0], 28 // m[0], m[1], 30 // m[1], m[2], 30 // m[2])
    mean = ops.adaptive_avg_pool3d(gc.Tensor(a), windows).asnumpy()
    assert np.allclose(mean, apart.astype(np.float64).mean((3, 5, 7)), rtol=0, atol=3e-7)
    best, at = ops.adaptive_max_pool3d(gc.Tensor(a), windows, True)
    assert np.array_equal(best.asnumpy(), apart.max((3, 5, 7)))
    flat = a.reshape(3, 2, -1)
    taken = np.take_along_axis(flat, at.asnumpy().reshape(3, 2, -1), 2)
    assert np.array_equal(taken.reshape(best.shape), best.asnumpy())
    gradient = gc.grad(lambda x: ops.adaptive_max_pool3d(x, windows).sum())(gc.Tensor(a))
    counted = np.zeros_like(flat)
    for i in np.ndindex(3, 2):
        np.add.at(counted[i], at.asnumpy()[i].ravel(), 1)
    assert np.array_equal(gradient.asnumpy().reshape(flat.shape), counted)


def test_sums_over_dimensions_between() -> None:
    rng = np.random.default_rng(9)
    for shape in ((40, 10, 3, 10), (9, 4, 5, 3), (3, 90, 2, 33)):
        a = rng.standard_normal(shape).astype(np.float32)
        for axes in ((2,), (1, 3), (2, 3), (1,), (3,)):
            wanted = np.square(a.astype(np.float64)).sum(axes)
            out = ops.sum(ops.square(gc.Tensor(a)), axes).asnumpy()
            assert np.allclose(out, wanted, rtol=3e-7)
            largest = ops.amax(ops.neg(gc.Tensor(a)), axes).asnumpy()
            assert np.array_equal(largest, (-a).max(axes))


def test_parts_replaced() -> None:
    a, new = A, -np.ones((4, 40), np.float32)
    for start in (0, 3, 26):
        wanted = a.copy()
        wanted[start : start + 4] = new
        out = ops.slice_scatter(gc.Tensor(a), gc.Tensor(new), 0, start, start + 4)
        assert np.array_equal(out.asnumpy(), wanted)
    wanted = a.copy()
    wanted[:, 5:29:6] = new.T[:30]
    out = ops.slice_scatter(gc.Tensor(a), gc.Tensor(new.T[:30].copy()), 1, 5, 29, 6)
    assert np.array_equal(out.asnumpy(), wanted)
    wanted = a.copy()
    np.fill_diagonal(wanted[:, 2:], 7.0)
    x = gc.Tensor(a)
    out = ops.diagonal_scatter(x, gc.Tensor(np.full(30, 7.0, np.float32)), 2)
    assert np.array_equal(out.asnumpy(), wanted) and np.array_equal(x.asnumpy(), a)


def test_one_hot_out_of_range() -> None:
    index = np.array([[0, 4, -1], [5, 2, 2**40]])
    wanted = (index[..., None] == np.arange(5)).astype(np.int64)
    out = ops.one_hot(gc.Tensor(index), 5)
    assert out.dtype == gc.int64 and np.array_equal(out.asnumpy(), wanted)
    assert np.array_equal(ops.one_hot(gc.Tensor(index), 5, 1.0, 0.0).asnumpy(), wanted)
    assert np.array_equal(
        ops.one_hot(gc.Tensor(index), 5, axis=0).asnumpy(), wanted.transpose(2, 0, 1)
    )


@pytest.mark.one_in(1)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_many_indices_of_many_places(dtype: Any) -> None:
    """Threads share the places; indices count from the end too, and several name one place."""
    from gradcell import _core

    rng = np.random.default_rng(4)
    n, m = 100_003, 131_077
    for low, high in ((-n, n), (0, n), (500, 900), (n - 40, n)):
        at = rng.integers(low, high, m).astype(dtype)
        new = rng.standard_normal(m)
        sums = np.zeros(n)
        np.add.at(sums, at, new)
        found = _core.ops.scatter_add(gc.Tensor(at), gc.Tensor(new), 0, n).asnumpy()
        np.testing.assert_allclose(found, sums, rtol=1e-12, atol=1e-12)
        last = np.full(n, -1)
        last[at] = np.arange(m)  # of several the last stays
        assert np.array_equal(_core.ops.last_writer(gc.Tensor(at), n).asnumpy(), last)
    for place in (0, 7, 511, 512, 70_000, m - 1):
        for wrong in (n, -n - 1, 2**31 - 1, -(2**31)):
            bad = rng.integers(0, n, m).astype(dtype)
            bad[place] = wrong
            with pytest.raises(IndexError, match=str(wrong)):
                _core.ops.scatter_add(gc.Tensor(bad), gc.Tensor(new), 0, n).asnumpy()
            with pytest.raises(IndexError, match=str(wrong)):
                _core.ops.last_writer(gc.Tensor(bad), n).asnumpy()
