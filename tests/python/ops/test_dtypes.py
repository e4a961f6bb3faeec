"""Every dtype through everything that moves, chooses, orders, adds up or compares elements, from
contiguous arrays, transposed and strided views and broadcasts, eagerly and compiled: NumPy's result,
element by element. Numbers are small integers, so that all results but long sums of half types are
exact. NumPy works on halves in float32 (it has no bfloat16, and orders float16 wrongly on some
processors).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, ops

HALVES = ("float16", "bfloat16")
NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "complex64 complex128"
).split()
SIZES = ((4, 7), (61, 130), (130, 517))

Array = Any  # a NumPy array or a Tensor


@dataclass
class Operands:
    """What a case is computed from: x and y of r rows, c columns."""

    x: Array
    y: Array
    mask: Array
    rows: Array  #: with repetitions
    columns: Array
    some_rows: Array  #: without
    some_columns: Array
    at_columns: Array  #: of x's shape, columns
    at_rows: Array  #: of x's shape, rows


Function = Callable[[Operands], Array]


@dataclass(frozen=True)
class Case:
    """Written once where Tensors and arrays have the same methods."""

    name: str
    of_tensors: Function
    of_arrays: Function
    kinds: str = "biufc"  #: NumPy's letters of the dtypes that it is defined for
    orders: bool = False  #: orders or divides: uint64 has to be cast first


CASES: list[Case] = []


def case(
    name: str,
    of_tensors: Function,
    of_arrays: Function | None = None,
    kinds: str = "biufc",
    orders: bool = False,
) -> None:
    CASES.append(Case(name, of_tensors, of_arrays or of_tensors, kinds, orders))


def written(at: Callable[[Operands], Any], what: Callable[[Operands], Any]) -> Function:
    """A copy of x with `what` written `at` places."""

    def function(e: Operands) -> Array:
        z = e.x.copy()
        z[at(e)] = what(e)
        return z

    return function


def added(at: Callable[[Operands], Any], what: Callable[[Operands], Any]) -> Function:
    def function(e: Operands) -> Array:
        z = e.x.copy()
        np.add.at(z, at(e), what(e))
        return z

    return function


def kept(function: Callable[..., Array]) -> Function:
    """A sum as MindSpore gives it: small integers in int64, but uint16 and uint32 in their own."""

    def total(e: Operands) -> Array:
        small = e.x.dtype in (np.int8, np.int16, np.int32, np.uint8)
        return function(e, np.int64 if small else e.x.dtype)

    return total


# Movements
case("transpose", lambda e: e.x.T.copy())
case("transpose, reshape", lambda e: e.x.T.reshape(-1))
case("flip", lambda e: ops.flip(e.x, (1,)), lambda e: e.x[:, ::-1])
case("roll 1", lambda e: ops.roll(e.x, 3, 1), lambda e: np.roll(e.x, 3, 1))
case("roll 0", lambda e: ops.roll(e.x, 1, 0), lambda e: np.roll(e.x, 1, 0))
case("rot90", lambda e: ops.rot90(e.x, 1, (0, 1)), lambda e: np.rot90(e.x))
case("cat 1", lambda e: ops.cat((e.x, e.y), 1), lambda e: np.concatenate((e.x, e.y), 1))
case("cat 0", lambda e: ops.cat((e.x, e.y), 0), lambda e: np.concatenate((e.x, e.y), 0))
case("stack", lambda e: ops.stack((e.x, e.y), 2), lambda e: np.stack((e.x, e.y), 2))
case("split", lambda e: ops.split(e.x, 1, 0)[1], lambda e: e.x[1:2])
case("unbind", lambda e: ops.unbind(e.x, 1)[2], lambda e: e.x[:, 2])
case("tile", lambda e: ops.tile(e.x, (2, 3)), lambda e: np.tile(e.x, (2, 3)))
case("repeat 1", lambda e: ops.repeat_interleave(e.x, 3, 1), lambda e: np.repeat(e.x, 3, 1))
case("repeat 0", lambda e: ops.repeat_interleave(e.x, 2, 0), lambda e: np.repeat(e.x, 2, 0))
case("pad", lambda e: ops.pad(e.x, (1, 2, 3, 0)), lambda e: np.pad(e.x, ((3, 0), (1, 2))), "iufc")
case("tril", lambda e: ops.tril(e.x, 1), lambda e: np.tril(e.x, 1))
case("triu", lambda e: ops.triu(e.x, -1), lambda e: np.triu(e.x, -1))
case("diagonal", lambda e: ops.diagonal(e.x), lambda e: np.diagonal(e.x))
case("zeros_like", lambda e: ops.zeros_like(e.x), lambda e: np.zeros_like(e.x))
case("ones_like", lambda e: ops.ones_like(e.x), lambda e: np.ones_like(e.x))
case("full_like", lambda e: ops.full_like(e.x, 1), lambda e: np.full_like(e.x, 1))
case(
    "meshgrid",
    lambda e: ops.meshgrid(e.x[0], e.y[:, 0])[1],
    lambda e: np.meshgrid(e.x[0], e.y[:, 0])[1],
)
case(
    "broadcast_to",
    lambda e: ops.broadcast_to(e.x[:, None], (e.x.shape[0], 3, e.x.shape[1])),
    lambda e: np.broadcast_to(e.x[:, None], (e.x.shape[0], 3, e.x.shape[1])),
)
# Indices and masks
case("x[1]", lambda e: e.x[1])
case("x[-1, 2:5]", lambda e: e.x[-1, 2:5])
case("x[::2, 1::3]", lambda e: e.x[::2, 1::3])
case("x[None]", lambda e: e.x[None, ..., None])
case("x[mask]", lambda e: e.x[e.mask])
case("x[rows]", lambda e: e.x[e.rows])
case("x[:, columns]", lambda e: e.x[:, e.columns])
case("x[rows, columns]", lambda e: e.x[e.rows, e.columns])
case("masked_select", lambda e: ops.masked_select(e.x, e.mask), lambda e: e.x[e.mask])
case("gather", lambda e: ops.gather(e.x, e.rows, 0), lambda e: e.x[e.rows])
case("index_select", lambda e: ops.index_select(e.x, 1, e.columns), lambda e: e.x[:, e.columns])
case(
    "gather_elements 1",
    lambda e: ops.gather_elements(e.x, 1, e.at_columns),
    lambda e: np.take_along_axis(e.x, e.at_columns, 1),
)
case(
    "gather_elements 0",
    lambda e: ops.gather_elements(e.x, 0, e.at_rows),
    lambda e: np.take_along_axis(e.x, e.at_rows, 0),
)
case("where", lambda e: ops.where(e.mask, e.x, e.y), lambda e: np.where(e.mask, e.x, e.y))
case(
    "masked_fill",
    lambda e: ops.masked_fill(e.x, e.mask, True if e.x.dtype == ms.bool_ else 1),
    lambda e: np.where(e.mask, 1, e.x).astype(e.x.dtype),
)
case("x[rows] = y", written(lambda e: e.some_rows, lambda e: e.y[e.some_rows]))
case(
    "x[:, columns] = y",
    written(lambda e: (slice(None), e.some_columns), lambda e: e.y[:, e.some_columns]),
)
case("x[mask] = 1", written(lambda e: e.mask, lambda e: 1))
case("x[::2, 1:] = y", written(lambda e: np.s_[::2, 1:], lambda e: e.y[::2, 1:]))
case("x[1, 2] = 1", written(lambda e: (1, 2), lambda e: 1))
case("x[1] = row", written(lambda e: 1, lambda e: e.y[0]))
case("x[rows, 1] = 0", written(lambda e: (e.some_rows, 1), lambda e: 0))
case(
    "index_add",
    lambda e: ops.index_add(e.x, e.rows, e.y[e.rows], 0),
    added(lambda e: e.rows, lambda e: e.y[e.rows]),
    "iufc",
)
case(
    "tensor_scatter_add",
    lambda e: ops.tensor_scatter_add(e.x, ops.stack((e.rows, e.columns), 1), e.y[e.rows, 0]),
    added(lambda e: (e.rows, e.columns), lambda e: e.y[e.rows, 0]),
    "iufc",
)
case("nonzero", lambda e: ops.nonzero(e.x), lambda e: np.argwhere(e.x))
# Elementwise
case("==", lambda e: e.x == e.y)
case("!=", lambda e: e.x != e.y)
case("<", lambda e: e.x < e.y, None, "biuf")
case(">=", lambda e: e.x >= e.y, None, "biuf")
case("+", lambda e: e.x + e.y, None, "iufc")
case("a chain", lambda e: e.x * e.y + e.x - e.y, None, "iufc")
case("-x", lambda e: -e.x, None, "iufc")
case("square", lambda e: ops.square(e.x), lambda e: np.square(e.x), "iufc")
case("abs", lambda e: ops.abs(e.x), lambda e: np.abs(e.x), "iuf", True)
case("// 3", lambda e: e.x // 3, None, "iuf", True)
case("% 3", lambda e: e.x % 3, None, "iuf", True)
case("clamp", lambda e: ops.clamp(e.x, 2, 50), lambda e: np.clip(e.x, 2, 50), "iuf", True)
case("maximum", lambda e: ops.maximum(e.x, e.y), lambda e: np.maximum(e.x, e.y), "biuf", True)
case("minimum", lambda e: ops.minimum(e.x, e.y), lambda e: np.minimum(e.x, e.y), "biuf", True)
case("and", lambda e: ops.logical_and(e.x, e.y), lambda e: np.logical_and(e.x, e.y))
case("not", lambda e: ops.logical_not(e.x), lambda e: np.logical_not(e.x))
case("isin", lambda e: ops.isin(e.x, e.y[0]), lambda e: np.isin(e.x, e.y[0]))
case("diff", lambda e: ops.diff(e.x), lambda e: np.diff(e.x), "iufc")
case("real", lambda e: ops.real(e.x), lambda e: e.x.real, "c")
case("imag", lambda e: ops.imag(e.x), lambda e: e.x.imag, "c")
case("conj", lambda e: ops.conj(e.x), lambda e: e.x.conj(), "c")
# Sums, products, order
case("sum", lambda e: e.x.sum(), kept(lambda e, dtype: e.x.sum(dtype=dtype)), "iufc")
case("sum 0", lambda e: e.x.sum(0), kept(lambda e, dtype: e.x.sum(0, dtype=dtype)), "iufc")
case("sum 1", lambda e: e.x.sum(1), kept(lambda e, dtype: e.x.sum(1, dtype=dtype)), "iufc")
case(
    "prod",
    lambda e: ops.prod(e.x[:, :3], 1),
    kept(lambda e, dtype: e.x[:, :3].prod(1, dtype=dtype)),
    "iufc",
)
for axis in (0, 1):
    case(
        f"cumsum {axis}",
        lambda e, axis=axis: ops.cumsum(e.x, axis),  # type: ignore[misc]
        lambda e, axis=axis: np.cumsum(e.x, axis, e.x.dtype),  # type: ignore[misc]
        "iufc",
    )
case(
    "cumprod",
    lambda e: ops.cumprod(e.x[:, :3], 1),
    lambda e: np.cumprod(e.x[:, :3], 1, e.x.dtype),
    "iufc",
)
case("any", lambda e: (e.x != 0).any(1))
case("all", lambda e: (e.x != 0).all(0))
case("amax", lambda e: ops.amax(e.x, 0), lambda e: e.x.max(0), "biuf", True)
case("amin", lambda e: ops.amin(e.x, 1), lambda e: e.x.min(1), "biuf", True)
case("argmax", lambda e: ops.argmax(e.x, 1), lambda e: e.x.argmax(1), "biuf", True)
case("argmin", lambda e: ops.argmin(e.x, 0), lambda e: e.x.argmin(0), "biuf", True)
case("sort 1", lambda e: ops.sort(e.x, 1)[0], lambda e: np.sort(e.x, 1), "iuf", True)
case("sort 0", lambda e: ops.sort(e.x, 0)[0], lambda e: np.sort(e.x, 0), "iuf", True)
case("argsort", lambda e: ops.argsort(e.x, 1), lambda e: np.argsort(e.x, 1, "stable"), "iuf", True)
case("topk", lambda e: ops.topk(e.x, 3)[0], lambda e: np.sort(e.x)[:, :-4:-1], "iuf", True)
case("unique", lambda e: ops.sort(ops.unique(e.x)[0])[0], lambda e: np.unique(e.x), "iuf", True)
case(
    "searchsorted",
    lambda e: ops.searchsorted(ops.sort(e.x.reshape(-1))[0], e.y),
    lambda e: np.searchsorted(np.sort(e.x.reshape(-1)), e.y),
    "iuf",
    True,
)
case("matmul", lambda e: ops.matmul(e.x, e.y.T), lambda e: e.x @ e.y.T, "iufc")
case("matmul, transposed", lambda e: ops.matmul(e.x.T, e.y), lambda e: e.x.T @ e.y, "iufc")
case("matrix and vector", lambda e: ops.matmul(e.x, e.y[0]), lambda e: e.x @ e.y[0], "iufc")
case("outer", lambda e: ops.outer(e.x[0], e.y[1]), lambda e: np.outer(e.x[0], e.y[1]), "iufc")
case("rows' products", lambda e: (e.x[:, :3] * e.y[:, :3]).sum(1), None, "fc")
case(
    "bmm",
    lambda e: ops.bmm(ops.stack((e.x, e.y)), ops.stack((e.y.T, e.x.T))),
    lambda e: np.stack((e.x @ e.y.T, e.y @ e.x.T)),
    "iufc",
)

#: Results that are places or counts: their dtype is the op's.
PLACES = {"nonzero", "argmax", "argmin", "argsort", "searchsorted"}


def gradcell_dtype(name: str) -> Any:
    return getattr(ms, "bool_" if name == "bool" else name)


def numbers(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if name.startswith("complex"):
        return (rng.integers(-9, 9, shape) + 1j * rng.integers(-9, 9, shape)).astype(name)
    if name.startswith("u"):
        return rng.integers(0, 100, shape).astype(name)
    small = name in HALVES
    return rng.integers(-9 if small else -100, 9 if small else 100, shape).astype(
        "float32" if small else name
    )


def layouts(
    rng: np.random.Generator, name: str, r: int, c: int
) -> Iterator[tuple[str, Callable[[Array], Array], np.ndarray]]:
    """How x is made of an array, for Tensors and arrays alike."""
    yield "plain", lambda t: t, numbers(rng, name, (r, c))
    yield "transposed", lambda t: t.T, numbers(rng, name, (c, r))
    yield "strided", lambda t: t[1::2, ::2], numbers(rng, name, (2 * r, 2 * c))
    spread = (r, c)
    yield (
        "broadcast",
        lambda t: (ops if isinstance(t, Tensor) else np).broadcast_to(t, spread),  # type: ignore[attr-defined]
        numbers(rng, name, (r, 1)),
    )


def differs(got: Tensor, want: np.ndarray, one: Case, name: str) -> str:
    if tuple(got.shape) != want.shape:
        return f"shape {got.shape} for {want.shape}"
    dtype = str(got.dtype).lower()
    if one.name not in PLACES:
        wanted = name if name in HALVES and want.dtype == np.float32 else str(want.dtype)
        if dtype != wanted:
            return f"{dtype} for {wanted}"
    found = (got.astype(ms.float32) if dtype in HALVES else got).asnumpy()
    if np.array_equal(found, want):
        return ""
    wide = np.complex128 if want.dtype.kind == "c" else np.float64 if dtype in HALVES else None
    if wide is None:
        return "value"
    # Half types round once; a chain of them or their sums a few times.
    bound = {"float16": 4e-3, "bfloat16": 3e-2}.get(name, 1e-5 if name == "complex64" else 1e-12)
    return "" if np.allclose(found.astype(wide), want.astype(wide), bound, bound) else "value"


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
@pytest.mark.one_in(4 * len(SIZES), by="name")
@pytest.mark.parametrize("layout", ["plain", "transposed", "strided", "broadcast"])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_against_numpy(name: str, size: tuple[int, int], layout: str) -> None:
    rng = np.random.default_rng(NAMES.index(name))
    kind = "f" if name in HALVES else np.dtype(name).kind
    wrong: list[str] = []
    for r, c in SIZES:
        for arrangement, arranged, plain in layouts(rng, name, r, c):
            y = numbers(rng, name, (r, c))
            places = (
                rng.integers(0, 2, (r, c)).astype(bool),
                rng.integers(0, r, 6),
                rng.integers(0, c, 6),
                rng.permutation(r)[:3],
                rng.permutation(c)[:4],
                rng.integers(0, c, (r, c)),
                rng.integers(0, r, (r, c)),
            )
            if (r, c, arrangement) != (*size, layout):
                continue  # with numbers of its own
            arrays = Operands(arranged(plain), y, *places)
            first, second = (Tensor(a).astype(gradcell_dtype(name)) for a in (plain, y))
            tensors = [Tensor(p) for p in places]
            for one in CASES:
                if kind not in one.kinds:
                    continue

                def function(*t: Tensor, one: Case = one, arranged: Any = arranged) -> Tensor:
                    return one.of_tensors(Operands(arranged(t[0]), *t[1:]))

                want = np.asarray(one.of_arrays(arrays))
                for mode, call in (("eager", function), ("compiled", ms.jit(function))):
                    if name == "uint64" and one.orders:
                        with pytest.raises(TypeError, match="cast"):
                            call(first, second, *tensors)
                        continue
                    found = differs(call(first, second, *tensors), want, one, name)
                    if found:
                        wrong.append(f"{one.name} of {layout} {(r, c)}, {mode}: {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("source", NAMES)
def test_casts_against_numpy(source: str) -> None:
    """Between all dtypes; uint64 and floats by way of int64."""
    rng = np.random.default_rng(3)
    wrong: list[str] = []
    for r, c in SIZES:
        for layout, arranged, plain in layouts(rng, source, r, c):
            x, array = Tensor(plain).astype(gradcell_dtype(source)), arranged(plain)
            for target in NAMES:
                floating = {n for n in NAMES if n.startswith(("f", "c", "bf"))}
                if "uint64" in (source, target) and {source, target} & floating:
                    with pytest.raises(TypeError, match="cast to int64 first"):
                        arranged(x).astype(gradcell_dtype(target))
                    continue
                if target.startswith("u") and source in floating:
                    continue  # what a negative number becomes, C leaves open
                as_numpy = "float32" if target in HALVES else target
                complex_to_real = array.dtype.kind == "c" and target[0] != "c"
                real = array.real if complex_to_real and target != "bool" else array
                want = real.astype(as_numpy)
                got = arranged(x).astype(gradcell_dtype(target))
                if str(got.dtype).lower() != target:
                    wrong.append(f"{layout} {(r, c)} to {target}: {got.dtype}")
                elif not np.array_equal(
                    (got.astype(ms.float32) if target in HALVES else got).asnumpy(), want
                ):
                    wrong.append(f"{layout} {(r, c)} to {target}")
    assert not wrong, "\n".join(wrong)
