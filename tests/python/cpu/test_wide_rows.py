"""Elementwise work on large tensors: operands that are views of what is stored, rows that stay rows
in tiles, choices by comparisons, casts and logic of whole tensors, copies from place to place, writes
at indices. Against NumPy in float64; sizes are over tiles' edges and threads' shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, mint, ops

pytestmark = pytest.mark.one_in(4)  # kernels at many sizes

RNG = np.random.default_rng(7)
X = RNG.uniform(-3, 3, (137, 1003)).astype(np.float32)
Y = RNG.uniform(-3, 3, (137, 1003)).astype(np.float32)
ROW = RNG.uniform(-3, 3, 1003).astype(np.float32)
COLUMN = RNG.uniform(0.5, 3, (137, 1)).astype(np.float32)
CUBE = RNG.uniform(-3, 3, (20, 65, 96)).astype(np.float32)


def close(got: Any, wanted: np.ndarray, tolerance: float = 2e-6) -> None:
    values = got.asnumpy() if isinstance(got, Tensor) else got
    assert values.shape == wanted.shape
    size = max(float(np.abs(wanted).max(initial=0)), 1.0)
    np.testing.assert_allclose(values.astype(np.float64), wanted, rtol=0, atol=tolerance * size)


VIEWS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "row": (lambda x, r: x + r, (X, ROW)),
    "column": (lambda x, c: x * c, (X, COLUMN)),
    "row and column": (lambda x, r, c: (x - r) / c, (X, ROW, COLUMN)),
    "rows less their neighbours": (lambda x: x[1:] - x[:-1], (X,)),
    "columns less their neighbours": (lambda x: x[:, 1:] - x[:, :-1], (X,)),
    "every other column": (lambda x: x[:, ::2] * 2.0, (X,)),
    "a block": (lambda x: x[5:100, 100:900] * x[6:101, 101:901], (X,)),
    "backwards": (lambda x: x[:, ::-1] + x, (X,)),
    "last two axes exchanged": (lambda x, y: x + y.transpose(0, 2, 1), (CUBE, CUBE.swapaxes(1, 2).copy())),
    "middle axis repeated": (lambda x, y: x * y[:, None, :], (CUBE, CUBE[:, 3].copy())),
    "outer": (lambda r, c: r * c[:, :1], (ROW, COLUMN)),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_inputs_are_read_where_they_lie(name: str) -> None:
    function, arrays = VIEWS[name]
    if name == "backwards":
        got = ops.flip(Tensor(X), (1,)) + Tensor(X)
        close(got, X[:, ::-1].astype(np.float64) + X)
        got = ms.jit(lambda x: ops.flip(x, (1,)) + x)(Tensor(X))
        close(got, X[:, ::-1].astype(np.float64) + X)
        return
    wanted = function(*(a.astype(np.float64) for a in arrays))
    tensors = [Tensor(a) for a in arrays]
    close(ms.jit(function)(*tensors), wanted)
    close(function(*tensors), wanted)
    weights = RNG.uniform(-1, 1, wanted.shape)
    w = Tensor(weights.astype(np.float32))
    gradients = ms.grad(lambda *xs: (function(*xs) * w).sum(), tuple(range(len(tensors))))(*tensors)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    for k, g in enumerate(gradients):  # by a random direction, as differences have it
        direction = RNG.uniform(-1, 1, arrays[k].shape)
        step = 1e-6
        moved = [
            [a + s * step * direction if i == k else a.astype(float) for i, a in enumerate(arrays)]
            for s in (1, -1)
        ]
        slope = ((function(*moved[0]) - function(*moved[1])) * weights).sum() / (2 * step)
        assert float((g.asnumpy() * direction).sum()) == pytest.approx(slope, rel=1e-3, abs=0.1)


@pytest.mark.parametrize("dtype", ["float16", "bool", "int8", "float64", "int64"])
def test_views_of_other_dtypes(dtype: str) -> None:
    x, row = (np.abs(a * 20).astype(np.int64) for a in (X, ROW))
    a, b = x.astype(dtype), row.astype(dtype)
    for late, early in (
        (ops.maximum(Tensor(a), Tensor(b)), np.maximum(a, b)),
        (ops.maximum(Tensor(a)[1:], Tensor(a)[:-1]), np.maximum(a[1:], a[:-1])),
    ):
        np.testing.assert_array_equal(late.asnumpy(), early)


def test_a_view_of_what_is_written_in_place() -> None:
    """An output may take an input's memory only if no other row is read from it."""
    p = ms.Parameter(Tensor(X.copy()), name="p")

    @ms.jit
    def step() -> Tensor:
        ops.assign(p, p + ops.flip(p, (1,)))
        return p.sum()

    step()
    close(p, X.astype(np.float64) + X[:, ::-1])


LINES: dict[str, Callable[[Any, Any], Any]] = {
    "mean square by rows": lambda o, x: o.mean(x * x, 1),
    "mean square by columns": lambda o, x: o.mean(x * x, 0),
    "largest of squares": lambda o, x: (x * x).max(1),
    "smallest of squares by columns": lambda o, x: (x * x).min(0),
    "rows less their mean": lambda o, x: x - o.mean(x, 1, True),
    "columns less their mean": lambda o, x: x - o.mean(x, 0, True),
    "half of a row by another": lambda o, x: x[:, :64] * x[:, 64:128] + x[:, 1:65],
    "one of each row": lambda o, x: (x * 2.0)[:, 5] + o.mean(x, 1),
    "sums of all": lambda o, x: o.mean(x * x) + x * 0.0,
}  # fmt: skip


class _Numpy:
    @staticmethod
    def mean(x: np.ndarray, axis: Any = None, keep: bool = False) -> Any:
        return x.mean(axis, keepdims=keep)


class _Gradcell:
    @staticmethod
    def mean(x: Tensor, axis: Any = None, keep: bool = False) -> Any:
        return ops.mean(x, axis, keep)


def _extrema(x: Tensor, name: str) -> Any:
    squares = x * x
    return ops.amax(squares, 1) if name == "largest of squares" else ops.amin(squares, 0)


@pytest.mark.parametrize("width", [64, 129, 1000, 1003, 4096])
@pytest.mark.parametrize("rows", [1, 7, 130])
def test_tiles_of_lines(rows: int, width: int) -> None:
    x = RNG.uniform(-3, 3, (rows, max(width, 130))).astype(np.float32)
    for name, function in LINES.items():
        wanted = np.asarray(function(_Numpy, x.astype(np.float64)))
        if "st of squares" in name:
            got = ms.jit(lambda t, name=name: _extrema(t, name))(Tensor(x))
        else:
            got = ms.jit(lambda t, f=function: f(_Gradcell, t))(Tensor(x))
        close(got, wanted)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int64", "bfloat16"])
def test_tiles_of_lines_in_other_dtypes(dtype: str) -> None:
    x = RNG.integers(-8, 8, (67, 200))
    t = Tensor(x).astype(getattr(ms, dtype))
    squares = ms.jit(lambda t: ((t * t).sum(1), (t * t).sum(0), t - t[:, :1], ops.amax(t * t, 1)))(
        t
    )
    for got, wanted in zip(
        squares, ((x * x).sum(1), (x * x).sum(0), x - x[:, :1], (x * x).max(1)), strict=True
    ):
        values = got.astype(ms.float64).asnumpy()
        np.testing.assert_allclose(values, wanted, rtol=0.01 if "float16" in dtype else 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_a_condition_that_is_the_same_for_all_rows(dtype: Any) -> None:
    x = (10 * RNG.uniform(-3, 3, (5, 130))).astype(dtype)
    mask = RNG.random(130) < 0.5
    f = ms.jit(lambda x, mask: (ops.where(mask, x + x, x * x), ops.where(mask, 1, x)))
    first, second = f(Tensor(x), Tensor(mask))
    close(first, np.where(mask, x + x, x * x).astype(np.float64))
    close(second, np.where(mask, 1, x).astype(np.float64))


def test_softmax_and_layer_norm_of_wide_rows() -> None:
    x = X.astype(np.float64)
    e = np.exp(x - x.max(1, keepdims=True))
    soft = e / e.sum(1, keepdims=True)
    t = Tensor(X)
    close(ops.softmax(t, 1), soft)
    gradient = ms.grad(lambda t: (ops.softmax(t, 1) * Tensor(Y)).sum())(t)
    close(gradient, soft * (Y - (Y * soft).sum(1, keepdims=True)))
    normal = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    close(ops.layer_norm(t, (1003,), Tensor(ROW), Tensor(ROW)), normal * ROW + ROW, 4e-6)


def test_an_update_in_place_of_wide_rows() -> None:
    p = ms.Parameter(Tensor(X.copy()), name="p")
    g = Tensor(Y)

    @ms.jit
    def step(g: Tensor) -> Tensor:
        norm = ops.sqrt((g * g).sum(1, True))
        new = p - g / norm
        ops.assign(p, new)
        return (new * new).sum(1)

    totals = step(g)
    y = Y.astype(np.float64)
    wanted = X - y / np.sqrt((y * y).sum(1, keepdims=True))
    close(p, wanted)
    close(totals, (wanted * wanted).sum(1))


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, -2.0])
COMPARISONS = {
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "equal": np.equal, "not_equal": np.not_equal,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", COMPARISONS)
def test_choices_by_a_comparison(name: str, dtype: Any) -> None:
    a, b = (v.ravel().astype(dtype) for v in np.meshgrid(SPECIAL, SPECIAL))
    c, d = a * 3 + 1, b - 7
    compare, compared = getattr(ops, name), COMPARISONS[name]
    ta, tb, tc, td = map(Tensor, (a, b, c, d))
    half, one = dtype(1.5), dtype(1)
    cases: list[tuple[Callable[..., Any], np.ndarray]] = [
        (lambda a, b, c, d: ops.where(compare(a, b), c * 1.5, d),
         np.where(compared(a, b), c * half, d)),
        (lambda a, b, c, d: ops.where(compare(a, 1.0), c, d * 1.5),
         np.where(compared(a, one), c, d * half)),
        (lambda a, b, c, d: ops.where(compare(1.0, a), c, 0.0), np.where(compared(one, a), c, 0)),
        (lambda a, b, c, d: ops.where(compare(a, b), 2.0, d), np.where(compared(a, b), 2, d)),
        (lambda a, b, c, d: ops.where(compare(a, 1.0), 2.0, -0.0),
         np.where(compared(a, one), 2, -0.0)),
    ]  # fmt: skip
    for function, wanted in cases:
        got = ms.jit(function)(ta, tb, tc, td).asnumpy()
        np.testing.assert_array_equal(got, wanted.astype(dtype))
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted.astype(dtype)))


DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]


@pytest.mark.parametrize("source", DTYPES)
def test_a_cast_alone_gives_what_one_among_others_gives(source: str) -> None:
    numbers = np.array([0, 1, -1, 0.5, -2.5, 127, 128, 255, 256, -129, 3e4, 7e4, 1e9, 3e9, -3e9, 1e19,
                        -1e19, 1e-8, 65504, 65520, np.inf, -np.inf, np.nan, -0.0] * 50)  # fmt: skip
    x = Tensor(numbers, ms.float64).astype(getattr(ms, source))
    for target in DTYPES:
        wanted = getattr(ms, target)
        alone = x.astype(wanted)
        plain, turned = ms.jit(lambda t, w=wanted: (t.astype(w), ops.equal(t, t)))(x)
        assert turned.dtype == ms.bool_
        a, b = (v.astype(ms.float64).asnumpy() for v in (alone, plain))
        np.testing.assert_array_equal(a, b, err_msg=f"{source} to {target}")


def test_logic_of_whole_tensors() -> None:
    a, b = RNG.random((2, 300, 501)) < 0.5
    ta, tb = Tensor(a), Tensor(b)
    for name in ("logical_and", "logical_or", "logical_xor"):
        np.testing.assert_array_equal(getattr(ops, name)(ta, tb).asnumpy(), getattr(np, name)(a, b))
    np.testing.assert_array_equal(ops.logical_not(ta).asnumpy(), ~a)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_copies_from_place_to_place(dtype: str) -> None:
    x = RNG.integers(-99, 99, (70, 33, 130)).astype(dtype)
    t = Tensor(x)
    for order in ((0, 2, 1), (2, 1, 0), (1, 0, 2), (2, 0, 1), (1, 2, 0)):
        np.testing.assert_array_equal(ops.transpose(t, order).copy().asnumpy(), x.transpose(order))
    for axes in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
        np.testing.assert_array_equal(ops.flip(t, axes).asnumpy(), np.flip(x, axes))
    for k in (1, 2, 3):
        np.testing.assert_array_equal(ops.rot90(t, k, (1, 2)).asnumpy(), np.rot90(x, k, (1, 2)))
        np.testing.assert_array_equal(ops.rot90(t, k, (0, 2)).asnumpy(), np.rot90(x, k, (0, 2)))
    for counts in ((1, 1, 3), (2, 1, 1), (1, 3, 2)):
        np.testing.assert_array_equal(ops.tile(t, counts).asnumpy(), np.tile(x, counts))
    for axis in range(3):
        np.testing.assert_array_equal(
            ops.repeat_interleave(t, 3, axis).asnumpy(), np.repeat(x, 3, axis)
        )
        np.testing.assert_array_equal(ops.roll(t, 11, axis).asnumpy(), np.roll(x, 11, axis))
        np.testing.assert_array_equal(ops.stack((t, t), axis).asnumpy(), np.stack((x, x), axis))
    np.testing.assert_array_equal(ops.stack((t, t), 3).asnumpy(), np.stack((x, x), 3))


def test_diagonals_and_unit_matrices() -> None:
    v = RNG.uniform(-1, 1, 40)
    for k in (-3, 0, 5):
        np.testing.assert_array_equal(mint.diag(Tensor(v), k).asnumpy(), np.diag(v, k))
    for n, m in ((3, 3), (4, 7), (7, 4), (0, 3), (1, 5)):
        np.testing.assert_array_equal(ops.eye(n, m).asnumpy(), np.eye(n, m, dtype=np.float32))


KEYS: list[Any] = [
    (np.array([3, 1, 3, -1]),),
    (slice(None), np.array([5, 0, 5])),
    (np.array([2, 2, -7]), np.array([1, 1, 3])),
    (slice(None), np.array([[1, 2], [3, 1]])),
    (np.array([4, 9]), slice(None), np.array([1, 0])),
    ([0, 0, 0],),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_writes_at_indices(key: Any) -> None:
    for shape in ((11, 9, 6), (11, 300, 40)):
        x = RNG.uniform(-1, 1, shape)
        part = x[key]
        values: list[Any] = [
            2.5,
            RNG.uniform(-1, 1, part.shape),
            RNG.uniform(-1, 1, part.shape[-1]),
        ]
        for value in values:
            wanted, t = x.copy(), Tensor(x)
            other, view = t.copy(), t[1]
            wanted[key] = value
            index = tuple(Tensor(k) if isinstance(k, np.ndarray) else k for k in key)
            t[index] = Tensor(value) if isinstance(value, np.ndarray) else value
            np.testing.assert_array_equal(t.asnumpy(), wanted)
            np.testing.assert_array_equal(view.asnumpy(), wanted[1])
            np.testing.assert_array_equal(other.asnumpy(), x)


@pytest.mark.one_in(1)
def test_a_write_at_a_wrong_index_writes_nothing() -> None:
    x = RNG.uniform(-1, 1, (5, 4))
    t = Tensor(x)
    with pytest.raises(IndexError, match="7"):
        t[Tensor([0, 7])] = 1.0
    np.testing.assert_array_equal(t.asnumpy(), x)
    shares = t.asnumpy().copy()
    t.T[Tensor([1, 0])] = 3.0
    shares[:, [1, 0]] = 3.0
    np.testing.assert_array_equal(t.asnumpy(), shares)


@pytest.mark.one_in(1)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_along_an_axis(axis: int) -> None:
    x = RNG.uniform(-1, 1, (6, 7, 8))
    shape = [4, 5, 6]
    shape[axis] = 9
    at = RNG.integers(-x.shape[axis], x.shape[axis], shape)
    covered = x[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(shape))]
    got = ops.gather_elements(Tensor(x), axis, Tensor(at))
    np.testing.assert_array_equal(got.asnumpy(), np.take_along_axis(covered, at, axis))
    new = RNG.uniform(-1, 1, shape)
    wanted = x.copy()
    for place in np.ndindex(*shape):
        to = list(place)
        to[axis] = at[place]
        wanted[tuple(to)] += new[place]

    def added(x: Tensor, new: Tensor) -> Tensor:
        return ops.tensor_scatter_elements(x, Tensor(at), new, axis, "add")

    np.testing.assert_allclose(added(Tensor(x), Tensor(new)).asnumpy(), wanted, atol=1e-14)
    by_x, by_new = ms.grad(lambda x, n: (added(x, n) ** 2).sum(), (0, 1))(Tensor(x), Tensor(new))
    np.testing.assert_allclose(by_x.asnumpy(), 2 * wanted, atol=1e-13)
    full = np.take_along_axis(
        wanted[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(shape))], at, axis
    )
    np.testing.assert_allclose(by_new.asnumpy(), 2 * full, atol=1e-13)
    for wrong in (x.shape[axis], -x.shape[axis] - 1):
        bad = at.copy()
        bad[0, 0, 0] = wrong
        with pytest.raises(IndexError):
            ops.gather_elements(Tensor(x), axis, Tensor(bad))
        with pytest.raises(IndexError):  # known when it runs
            ms.jit(lambda t, i: ops.gather_elements(t, axis, i))(Tensor(x), Tensor(bad))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "bool"])
def test_elements_written_along_an_axis(axis: int, dtype: str) -> None:
    x = RNG.integers(0, 2, (6, 7, 80)).astype(dtype)
    shape = list(x.shape)
    shape[axis] = 11
    at = RNG.integers(-x.shape[axis], x.shape[axis], shape)
    new = RNG.integers(0, 2, shape).astype(dtype)
    wanted = x.copy()
    for place in np.ndindex(*shape):  # of several the last stays
        to = list(place)
        to[axis] = at[place]
        wanted[tuple(to)] = new[place]
    for index in (at, at.astype(np.int32)):
        t = Tensor(x)
        got = ops.tensor_scatter_elements(t, Tensor(index), Tensor(new), axis)
        np.testing.assert_array_equal(got.asnumpy(), wanted)
        np.testing.assert_array_equal(t.asnumpy(), x)
        traced = ms.jit(lambda t, n, i=index: ops.tensor_scatter_elements(t, Tensor(i), n, axis))
        np.testing.assert_array_equal(traced(t, Tensor(new)).asnumpy(), wanted)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_functions_of_integers(dtype: str) -> None:
    info = np.iinfo(dtype)
    a = RNG.integers(info.min, info.max, (300, 70), dtype=dtype, endpoint=True)
    b = RNG.integers(0, 9, (300, 70), dtype=dtype)
    for name, function in {
        "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
        "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift,
    }.items():  # fmt: skip
        for p, q in ((a, b), (a, b[0]), (a[:, :1], b), (a, b[0, 0])):
            got = getattr(ops, name)(Tensor(p), Tensor(np.asarray(q)))
            np.testing.assert_array_equal(got.asnumpy(), function(p, q))
            assert str(got.dtype).lower().endswith(dtype)
    small = (a // 4).astype(dtype)
    for name, function in {"gcd": np.gcd, "lcm": np.lcm}.items():
        p = small if name == "gcd" else (small % 11).astype(dtype)
        np.testing.assert_array_equal(
            getattr(ops, name)(Tensor(p), Tensor(b)).asnumpy(), function(p, b)
        )
    assert ops.bitwise_and(Tensor(a), 3).asnumpy().tolist() == (a & np.array(3, dtype)).tolist()


@pytest.mark.parametrize("shape", [(0,), (5,), (300, 211), (70, 3, 401), (2, 0, 3), (1, 1)])
@pytest.mark.parametrize("dtype", ["bool", "float32", "float16", "int64"])
def test_places_of_what_is_not_zero(shape: tuple[int, ...], dtype: str) -> None:
    x = (RNG.random(shape) < 0.4).astype(dtype)
    if dtype.startswith("float"):
        x = np.where(x == 0, -x, np.where(RNG.random(shape) < 0.1, np.nan, x)).astype(dtype)
    wanted = np.argwhere(x)
    got = ops.nonzero(Tensor(x)).asnumpy()
    assert got.dtype == np.int64 and got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)
    for part, place in zip(ops.nonzero(Tensor(x), as_tuple=True), np.nonzero(x), strict=True):
        np.testing.assert_array_equal(part.asnumpy(), place)


@pytest.mark.one_in(1)
def test_draws_by_weights() -> None:
    ms.set_seed(3)
    weights = np.array([[0.0, 1.0, 3.0, 0.0], [5.0, 0.0, 0.0, 5.0]], np.float32)
    drawn = ops.multinomial(Tensor(weights), 40_000).asnumpy()
    assert drawn.dtype == np.int32
    for row, p in zip(drawn, weights / weights.sum(1, keepdims=True), strict=True):
        found = np.bincount(row, minlength=4) / row.size
        assert (found[p == 0] == 0).all()
        np.testing.assert_allclose(found, p, atol=0.015)
    for wrong in ([-1.0, 2.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]):
        with pytest.raises(ValueError, match="weights"):
            ops.multinomial(Tensor(np.array(wrong, np.float32)), 2)


@pytest.mark.one_in(12)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 2, 3, 16, 33, 137])
@pytest.mark.parametrize("width", [64, 65, 100, 127, 128, 1000, 1001, 3000])
def test_rows_and_columns_of_every_width_to_the_bit(width: int, rows: int, dtype: Any) -> None:
    """Rows that fill no whole vectors, in the first tile, in the last one, and in place of an operand."""
    rng = np.random.default_rng(width + rows)
    x, y = rng.uniform(-3, 3, (2, rows, width)).astype(dtype)
    row, column = (
        rng.uniform(-3, 3, width).astype(dtype),
        rng.uniform(-3, 3, (rows, 1)).astype(dtype),
    )

    def computed(m: Any, x: Any, y: Any, row: Any, column: Any) -> tuple[Any, ...]:
        down = (x + row) * column
        return (
            down,
            column - down,
            m.where(x > column, row, y),
            m.where(x < row, column, column * 2),
            m.maximum(row * column, y),
            x >= column,
        )

    tensors = [Tensor(a) for a in (x, y, row, column)]
    got = ms.jit(lambda *a: computed(ops, *a))(*tensors)
    for g, w in zip(got, computed(np, x, y, row, column), strict=True):
        assert np.array_equal(g.asnumpy(), w)
    half = ms.jit(lambda a, b, c: (a + b) * c)(
        *(Tensor(a.astype(np.float16)) for a in (x, row, column))
    )
    halves = [a.astype(np.float16) for a in (x, row, column)]
    assert np.array_equal(half.asnumpy(), (halves[0] + halves[1]) * halves[2])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16"])
@pytest.mark.parametrize("shift", [1, 7, 16, 2500])
def test_one_run_of_another_tensor(dtype: str, shift: int) -> None:
    x = np.random.default_rng(shift).integers(-100, 100, 12345).astype(dtype)
    t = Tensor(x)
    shifted = ms.jit(lambda a: (a[shift:] - a[:-shift], a[shift:] * a[:-shift] + a[shift:]))(t)
    assert np.array_equal(shifted[0].asnumpy(), x[shift:] - x[:-shift])
    assert np.array_equal(shifted[1].asnumpy(), x[shift:] * x[:-shift] + x[shift:])
    updated = ms.jit(lambda a: a[:-shift] * 2 - a[shift:])(t)
    assert np.array_equal(updated.asnumpy(), x[:-shift] * 2 - x[shift:])
    assert np.array_equal(t.asnumpy(), x)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int16", "float16", "int32", "float64", "int64"]
)
@pytest.mark.parametrize("size", [1, 511, 512, 513, 1024, 4097, 100_003])
def test_one_number_everywhere(dtype: str, size: int) -> None:
    for value in (0, 1, 3):
        filled = ops.full((size,), value, dtype=getattr(ms, "bool_" if dtype == "bool" else dtype))
        assert np.array_equal(filled.asnumpy(), np.full(size, value, dtype))


@pytest.mark.parametrize("n", [16_383, 16_384, 16_391, 100_001])
@pytest.mark.parametrize("shape", ["line", "few columns", "few rows"])
def test_running_sums_and_products_of_long_lines(n: int, shape: str) -> None:
    axis = 1 if shape == "few rows" else 0
    dims = {"line": (n,), "few columns": (n, 3), "few rows": (5, n)}[shape]
    rng = np.random.default_rng(n)
    x, near1 = rng.uniform(-3, 3, dims), rng.uniform(0.999, 1.001, dims)
    for dtype, tolerance in ((np.float32, 2e-7), (np.float64, 1e-13)):
        a, b = x.astype(dtype), near1.astype(dtype)
        for reverse in (False, True):
            flip = (lambda v: np.flip(v, axis)) if reverse else (lambda v: v)
            for exclusive in (False, True):
                for function, scan, v, first in (
                    (ms._core.ops.cumsum, np.cumsum, a, 0),
                    (ms._core.ops.cumprod, np.cumprod, b, 1),
                ):
                    wanted = scan(flip(v.astype(np.longdouble)), axis=axis)
                    if exclusive:
                        wanted = np.roll(wanted, 1, axis)
                        wanted[(0,) if axis == 0 else (slice(None), 0)] = first
                    got = function(Tensor(v), axis, exclusive, reverse).asnumpy()
                    size = float(np.abs(wanted).max())
                    difference = np.abs(got - flip(wanted).astype(np.float64))
                    assert difference.max() <= tolerance * size
    whole = rng.integers(-5, 6, dims)
    got = ops.cumsum(Tensor(whole), axis).asnumpy()
    assert np.array_equal(got, np.cumsum(whole, axis))


def test_long_products_out_of_range_of_their_parts() -> None:
    """Small elements, then large ones: the parts' products overflow, those from the start do not."""
    x = np.concatenate([np.full(20_000, 0.9), np.full(20_000, 1 / 0.9), [0.0], np.ones(99)])
    got = ops.cumprod(Tensor(x.astype(np.float32)), 0).asnumpy()
    wanted = np.cumprod(x.astype(np.float32).astype(np.float64))
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-45)
    x[:40_000] = np.tile([1e-38, 1e38], 20_000)
    got = ops.cumprod(Tensor(x.astype(np.float32)), 0).asnumpy()
    wanted = np.cumprod(x.astype(np.float32).astype(np.float64))
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-45)


@pytest.mark.parametrize("rows", [1, 3, 4, 7, 8, 9, 31, 200])
@pytest.mark.parametrize("width", [1, 15, 16, 17, 33, 1000])
def test_sums_of_columns(rows: int, width: int) -> None:
    x = np.random.default_rng(rows).uniform(-3, 3, (rows, width)).astype(np.float32)
    wanted = x.astype(np.float64).sum(0)
    error = np.abs(ops.sum(Tensor(x), 0).asnumpy() - wanted)
    assert (error <= 1.5e-7 * np.abs(x).astype(np.float64).sum(0) + 1e-12).all()
    assert np.array_equal(ops.amax(Tensor(x), 0).asnumpy(), x.max(0))


@pytest.mark.parametrize("n", [*range(1, 40), 63, 64, 65, 127, 129, 200, 1000])
def test_lines_of_every_length(n: int) -> None:
    x = np.random.default_rng(n).uniform(-3, 3, (70, n)).astype(np.float32)
    for dtype in (np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8):
        v = np.abs(x).astype(dtype) if dtype == np.uint8 else x.astype(dtype)
        wide = v.astype(np.float64 if v.dtype.kind == "f" else np.int64)
        assert np.array_equal(ops.amax(Tensor(v), 1).asnumpy(), v.max(1))
        assert np.array_equal(ops.amin(Tensor(v), 1).asnumpy(), v.min(1))
        got = ops.sum(Tensor(v), 1).asnumpy().astype(np.float64)
        slack = np.abs(wide).sum(1) * {2: 1e-3, 4: 1.5e-7, 8: 1e-14}.get(v.itemsize, 0)
        assert (np.abs(got - wide.sum(1)) <= slack).all() or v.dtype == np.uint8


@pytest.mark.parametrize(
    "width", [1, 2, 3, 7, 10, 16, 64, 100, 128, 1000, 1024, 1500, 2048, 3000, 4097]
)
def test_rows_that_come_again_are_loaded_once(width: int) -> None:
    """Over all tiles of several lengths, twice, so that nothing of the first call is left."""
    rows = -(-40_000 // width) + 3
    rng = np.random.default_rng(width)
    function = ms.jit(lambda x, r, s: (x + r, ops.where(x > r, s, x * r), ops.tanh(r) * x + s))
    for _ in range(2):
        x = rng.uniform(-3, 3, (rows, width)).astype(np.float32)
        r, s = rng.uniform(-3, 3, (2, width)).astype(np.float32)
        added, chosen, mixed = function(Tensor(x), Tensor(r), Tensor(s))
        assert np.array_equal(added.asnumpy(), x + r)
        assert np.array_equal(chosen.asnumpy(), np.where(x > r, s, x * r))
        close(mixed, np.tanh(r.astype(np.float64)) * x + s)


@pytest.mark.parametrize("steps", [1, 7])
def test_rows_that_come_again_differ_from_step_to_step(steps: int) -> None:
    rng = np.random.default_rng(steps)
    x = rng.uniform(-1, 1, (300, 100)).astype(np.float32)
    r = rng.uniform(-1, 1, (steps, 100)).astype(np.float32)
    rows = [Tensor(row) for row in r]
    end, products = ops.Scan()(lambda h, row: (h + row, h * row), Tensor(x), rows, steps, False)
    h, wanted = x, []
    for row in r:
        wanted.append(h * row)
        h = h + row
    assert np.array_equal(end.asnumpy(), h)
    assert all(np.array_equal(p.asnumpy(), w) for p, w in zip(products, wanted, strict=True))


def test_long_sums_whose_parts_alone_leave_the_range() -> None:
    """From -1.5e308 to 1e308: one after the other they stay inside."""
    x = np.zeros(1 << 15)
    x[:512], x[512:1024] = -1.5e308 / 512, 4.9e305
    for a, reverse in ((x, False), (x[::-1].copy(), True)):
        wanted = np.cumsum(x)[::-1] if reverse else np.cumsum(x)
        assert np.isfinite(wanted).all()
        found = ops.CumSum(reverse=reverse)(Tensor(a), 0).asnumpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e295)
