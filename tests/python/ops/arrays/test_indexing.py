"""Indexing by tensors: random keys, what repeated indices write, indices that are traced.

Where an index names a place more than once, the last value written there stays, as in NumPy. Values
are measured against NumPy, and gradients of x and of what is written against NumPy and JAX: they
flow to the last writer alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as ms
from gradcell import Parameter, Tensor, ops

R = np.random.default_rng(5).standard_normal

#: (shape of x, index, shape of the value)
WRITES: list[tuple[tuple[int, ...], Any, tuple[int, ...]]] = [
    ((5,), np.array([0, 3, 0, 3, 3]), (5,)),
    ((5,), np.array([4, -1, 0, -5]), (4,)),
    ((4, 3), np.array([1, 1, 2]), (3, 3)),
    ((4, 3), np.array([[1, 1], [2, 1]]), (2, 2, 3)),
    ((4, 3), np.array([1, 1]), (3,)),
    ((4, 3), (np.array([1, 1, 1, 0]), np.array([2, 0, 2, 0])), (4,)),
    ((4, 3), (slice(None), np.array([2, 2, 0])), (4, 3)),
    ((4, 3, 2), (np.array([3, 3]), slice(1, None), np.array([0, 0])), (2, 2)),
    ((4, 3, 2), (1, np.array([0, 0]), None), (2, 1, 2)),
    ((4, 3), (np.array([[0], [0]]), np.array([1, 1, 2])), (2, 3)),
    ((3, 2), np.array([], dtype=np.int64), (0, 2)),
    ((0, 2), np.array([], dtype=np.int64), (0, 2)),
]
IDS = [f"{shape}-{i}" for i, (shape, _, _) in enumerate(WRITES)]


def tensors(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(tensors, index))
    return Tensor(index) if isinstance(index, np.ndarray) else index


def written(x: Tensor, index: Any, value: Any) -> Tensor:
    y = x * 1
    y[index] = value
    return y


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int8", "uint8"])
@pytest.mark.parametrize(("shape", "index", "of"), WRITES, ids=IDS)
def test_values(shape: tuple[int, ...], index: Any, of: tuple[int, ...], dtype: str) -> None:
    x, v = (R(shape) * 40 + 60).astype(dtype), (R(of) * 40 + 60).astype(dtype)
    expected = x.copy()
    expected[index] = v
    y = Tensor(x)
    y[tensors(index)] = Tensor(v)
    np.testing.assert_array_equal(y.asnumpy(), expected)
    jitted = ms.jit(lambda x, v: written(x, tensors(index), v))
    np.testing.assert_array_equal(jitted(Tensor(x), Tensor(v)).asnumpy(), expected)


def test_bools_and_specials() -> None:
    y = Tensor(np.array([True, True, False]))
    y[Tensor([0, 0, 2, 2])] = Tensor([True, False, False, True])
    np.testing.assert_array_equal(y.asnumpy(), [False, True, True])
    y = Tensor(np.ones(4, np.float32))
    y[Tensor([0, 0, 1, 1, 2])] = Tensor(np.array([np.nan, 1, 2, np.inf, -0.0], np.float32))
    np.testing.assert_array_equal(y.asnumpy(), [1, np.inf, -0.0, 1])
    assert np.signbit(y.asnumpy()[2])
    y = Tensor(np.zeros(2, np.int64))
    y[Tensor([0, 0])] = Tensor(np.array([3, 2**62 + 1]))
    np.testing.assert_array_equal(y.asnumpy(), [2**62 + 1, 0])


def random_key(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Ints, slices, new axes, arrays, masks and an Ellipsis, which may or may not fit the shape."""
    key: list[Any] = []
    axis, end = 0, int(rng.integers(0, len(shape) + 1))
    while axis < end:
        n, kind = shape[axis], rng.integers(0, 8)
        if kind == 0:
            key.append(None)
            continue
        if kind <= 2:
            key.append(int(rng.integers(-n, n)))
        elif kind <= 4:
            start, stop = (
                None if rng.random() < 0.4 else int(rng.integers(-n - 2, n + 3)) for _ in "ab"
            )
            key.append(slice(start, stop, [None, 1, 2, -1, -2][rng.integers(0, 5)]))
        elif kind <= 6:
            key.append(rng.integers(-n, n, [(3,), (2, 3), (1, 3), (2, 1)][rng.integers(0, 4)]))
        else:
            width = int(rng.integers(1, end - axis + 1))
            key.append(rng.random(shape[axis : axis + width]) < 0.5)
            axis += width - 1
        axis += 1
    if rng.random() < 0.3:
        key.insert(int(rng.integers(0, len(key) + 1)), Ellipsis)
    return key[0] if len(key) == 1 else tuple(key)


@pytest.mark.parametrize("seed", range(20))
def test_random_keys(seed: int) -> None:
    """Read, written and differentiated as in NumPy, or an error in both."""
    rng = np.random.default_rng(seed)
    for _ in range(25):
        x = rng.standard_normal(rng.integers(1, 5, rng.integers(1, 5)))
        key = random_key(x.shape, rng)
        try:
            expected = x[key]
        except IndexError:
            with pytest.raises((IndexError, ValueError)):
                Tensor(x)[tensors(key)].asnumpy()
            continue
        got = Tensor(x)[tensors(key)].asnumpy()
        assert got.shape == expected.shape, key
        np.testing.assert_array_equal(got, expected)
        v = rng.standard_normal(expected.shape)
        changed = x.copy()
        changed[key] = v
        got = written(Tensor(x), tensors(key), Tensor(v)).asnumpy()
        np.testing.assert_array_equal(got, changed, err_msg=str(key))
        slope = np.zeros_like(x)
        np.add.at(slope, key, v)
        got = ms.grad(lambda x, k=key, v=v: (x[tensors(k)] * Tensor(v)).sum())(Tensor(x)).asnumpy()
        np.testing.assert_allclose(got, slope, atol=1e-14)


def plain_key(rng: np.random.Generator) -> Any:
    def part() -> int | None:
        return None if rng.random() < 0.4 else int(rng.integers(-6, 7))

    return [
        lambda: int(rng.integers(-4, 5)),
        lambda: slice(part(), part(), [None, 1, 2, -1, -3][rng.integers(0, 5)]),
        lambda: None,
        lambda: Ellipsis,
        lambda: np.int64(rng.integers(-2, 3)),
        lambda: bool(rng.random() < 0.7),
        lambda: 2**70,
        lambda: slice(np.int64(1), None),
    ][rng.choice(8, p=[0.3, 0.4, 0.08, 0.08, 0.04, 0.06, 0.01, 0.03])]()


@pytest.mark.parametrize("seed", range(5))
def test_random_keys_without_index_tensors(seed: int) -> None:
    """Read and written as in NumPy, or an error in both; empty tensors and numbers too."""
    rng = np.random.default_rng(100 + seed)
    errors = 0
    for _ in range(400):
        x = rng.standard_normal(rng.integers(0, 5, rng.integers(0, 5)))
        keys = [plain_key(rng) for _ in range(rng.integers(0, 5))]
        key = keys[0] if len(keys) == 1 else tuple(keys)
        try:
            expected = np.asarray(x[key])
        except (IndexError, OverflowError):
            errors += 1
            with pytest.raises((IndexError, TypeError, OverflowError)):
                Tensor(x)[key]
            continue
        got = Tensor(x)[key].asnumpy()
        assert got.shape == expected.shape, (x.shape, key)
        np.testing.assert_array_equal(got, expected)
        changed, y = x.copy(), Tensor(x)
        changed[key] = 7.5
        y[key] = 7.5
        np.testing.assert_array_equal(y.asnumpy(), changed, err_msg=str((x.shape, key)))
    assert 40 < errors < 360


def loss(put: Callable[..., Any], sin: Callable[[Any], Any], w: Any) -> Callable[..., Any]:
    return lambda x, v: (sin(put(x, v * v * v)) * w).sum()


def squares(gradient: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, v: sum((g * g).sum() for g in gradient(x, v))


@pytest.mark.parametrize(("shape", "index", "of"), WRITES, ids=IDS)
def test_gradients(shape: tuple[int, ...], index: Any, of: tuple[int, ...]) -> None:
    x, v, w = R(shape), R(of), R(shape)
    writer = np.full(shape, -1)
    shown = np.broadcast_to(np.arange(v.size).reshape(of), writer[index].shape)
    writer[index] = shown
    y = x.copy()
    y[index] = v**3
    dy = w * np.cos(y)
    dv = np.zeros(v.size)
    np.add.at(dv, writer[writer >= 0], dy[writer >= 0])
    expected = np.where(writer < 0, dy, 0), dv.reshape(of) * 3 * v**2
    got = ms.grad(loss(lambda x, v: written(x, tensors(index), v), ops.sin, Tensor(w)), (0, 1))
    for e, g in zip(expected, got(Tensor(x), Tensor(v)), strict=True):
        np.testing.assert_allclose(g.asnumpy(), e, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("shape", "index", "of"), WRITES, ids=IDS)
def test_gradients_of_gradients(shape: tuple[int, ...], index: Any, of: tuple[int, ...]) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    x, v, w = R(shape), R(of), R(shape)
    by_jax = jax.grad(loss(lambda x, v: x.at[index].set(v), jax.numpy.sin, w), (0, 1))
    ours = ms.grad(loss(lambda x, v: written(x, tensors(index), v), ops.sin, Tensor(w)), (0, 1))
    expected = [*by_jax(x, v), *jax.grad(squares(by_jax), (0, 1))(x, v)]
    t = Tensor(x), Tensor(v)
    for e, g in zip(expected, [*ours(*t), *ms.grad(squares(ours), (0, 1))(*t)], strict=True):
        np.testing.assert_allclose(g.asnumpy(), np.asarray(e), rtol=1e-12, atol=1e-13)


@pytest.mark.filterwarnings("error")
def test_an_index_that_is_traced() -> None:
    """The last writer is found where the plan runs: nothing asks for the index's value."""
    x, v = R(6), R(4)
    write = ms.jit(lambda x, at, v: written(x, at, v))
    slope = ms.jit(ms.grad(lambda v, x, at: (written(x, at, v) * x).sum()))
    for at in ([0, 0, 5, 0], [1, 2, 3, 4], [-1, 5, 5, -1]):
        expected = x.copy()
        expected[at] = v
        t = Tensor(x), Tensor(np.array(at)), Tensor(v)
        np.testing.assert_array_equal(write(*t).asnumpy(), expected)
        last = [x[a] if a % 6 not in [b % 6 for b in at[i + 1 :]] else 0 for i, a in enumerate(at)]
        np.testing.assert_allclose(slope(t[2], t[0], t[1]).asnumpy(), last, rtol=1e-12)
    with pytest.raises(IndexError, match="index 6 is out of"):
        write(Tensor(x), Tensor(np.array([0, 6, 1, 2])), Tensor(v)).asnumpy()


@pytest.mark.filterwarnings("error")
def test_reading_at_a_traced_index() -> None:
    x = R((3, 4, 2))
    read = ms.jit(lambda x, i, j: (x[i], x[:, i], x[i, :, j], x[i, j], x[1, :, j]))
    for i, j in ((0, 1), (2, -2), (-1, 0), ([0, 2, 2], [1, 0, -1])):
        expected = x[i], x[:, i], x[i, :, j], x[i, j], x[1, :, j]
        got = read(Tensor(x), Tensor(i), Tensor(j))
        for e, g in zip(expected, got, strict=True):
            np.testing.assert_array_equal(g.asnumpy(), e)


@pytest.mark.parametrize("wrong", [(3, 0), (0, 4), (-4, 0), (0, -5), (2, 9)])
def test_a_computed_index_out_of_range(wrong: tuple[int, int]) -> None:
    """No index wraps around into another row."""
    x = Tensor(R((3, 4)))
    i, j = Tensor([0, wrong[0]]), Tensor([1, wrong[1]])
    with pytest.raises(IndexError, match="out of"):
        ms.jit(lambda x, i, j: x[i, j])(x, i, j).asnumpy()
    with pytest.raises(IndexError, match="out of"):
        ms.jit(lambda x, i, j: written(x, (i, j), 0.0))(x, i, j).asnumpy()


def test_many_writers() -> None:
    """The same with any number of threads."""
    n, places = 200_000, 1000
    at, v = np.random.default_rng(1).integers(0, places, n), R(n).astype(np.float32)
    expected = np.zeros(places, np.float32)
    expected[at] = v
    for threads in (1, 2, 7):
        before = ms.get_context("max_threads")
        ms.set_context(max_threads=threads)
        try:
            y = Tensor(np.zeros(places, np.float32))
            y[Tensor(at)] = Tensor(v)
            np.testing.assert_array_equal(y.asnumpy(), expected)
        finally:
            ms.set_context(max_threads=before)


def test_ops_that_replace() -> None:
    x, rows = R((4, 3)).astype(np.float32), R((3, 3)).astype(np.float32)
    expected = x.copy()
    expected[[1, 1, 2]] = rows
    at = Tensor(np.array([[1], [1], [2]]))
    got = ops.tensor_scatter_update(Tensor(x), at, Tensor(rows))
    np.testing.assert_array_equal(got.asnumpy(), expected)
    p = Parameter(Tensor(x), name="p")
    ops.scatter_update(p, Tensor([1, 1, 2]), Tensor(rows))
    np.testing.assert_array_equal(p.asnumpy(), expected)
    p = Parameter(Tensor(x), name="p")
    p[Tensor([1, 1, 2])] = Tensor(rows)
    np.testing.assert_array_equal(p.asnumpy(), expected)
    columns = np.array([[0, 0, 2], [1, 1, 1]])
    new = R((2, 3)).astype(np.float32)
    expected = x.copy()
    for i in range(2):
        for j in range(3):
            expected[i, columns[i, j]] = new[i, j]
    got = ops.tensor_scatter_elements(Tensor(x), Tensor(columns), Tensor(new), 1)
    np.testing.assert_array_equal(got.asnumpy(), expected)
    empty = ops.tensor_scatter_update(
        Tensor(x), Tensor(np.zeros((0, 1), np.int32)), Tensor(np.zeros((0, 3), np.float32))
    )
    np.testing.assert_array_equal(empty.asnumpy(), x)


def test_writing_into_the_argument() -> None:
    """Derivatives are by what the caller passed; the caller's tensor stays as it is."""

    def fn(x: Tensor) -> Tensor:
        x[0] = 3.0
        x += x[1]
        return (x * x).sum()

    values = np.array([1.0, 2.0, 4.0])
    x = Tensor(values)  # the new x is [3 + b, 2 b, c + b]
    np.testing.assert_allclose(ms.grad(fn)(x).asnumpy(), [0, 2 * 5 + 4 * 4 + 2 * 6, 2 * 6])
    np.testing.assert_array_equal(x.asnumpy(), values)
    out, tangent = ms.jvp(fn, x, Tensor([1.0, 0.5, 0.0], ms.float64))
    np.testing.assert_allclose([float(out), float(tangent)], [25 + 16 + 36, 19])
    out, pull = ms.vjp(fn, x)
    np.testing.assert_allclose(pull(Tensor(1.0, ms.float64))[0].asnumpy(), [0, 38, 12])
    second = ms.grad(lambda x: ms.grad(fn)(x)[1])(x).asnumpy()
    np.testing.assert_allclose(second, [0, 2 + 8 + 2, 2])
    np.testing.assert_array_equal(x.asnumpy(), values)
