"""Every dtype through everything that moves, chooses, orders, adds up or compares elements, from
contiguous arrays, transposed and strided views and broadcasts, eagerly and compiled: NumPy's result,
element by element. Numbers are small integers, so that all results but long sums of half types are
exact. NumPy works on halves in float32 (it has no bfloat16, and orders float16 wrongly on some
processors).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import agreement
import edges
import numpy as np
import pytest
from function_cases import CASES as CASES_OF_TABLES, RANDOM

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


CASES: list[Case] = []


def case(
    name: str,
    of_tensors: Function,
    of_arrays: Function | None = None,
    kinds: str = "biufc",
) -> None:
    CASES.append(Case(name, of_tensors, of_arrays or of_tensors, kinds))


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
    """A sum in the dtype of sums: int64 of small integers, as MindSpore has it; uint64 from uint16 on,
    where MindSpore's wrap."""

    def total(e: Operands) -> Array:
        small = e.x.dtype in (np.int8, np.int16, np.int32, np.uint8)
        wide = e.x.dtype in (np.uint16, np.uint32)
        return function(e, np.int64 if small else np.uint64 if wide else e.x.dtype)

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
case("abs", lambda e: ops.abs(e.x), lambda e: np.abs(e.x), "iuf")
case("// 3", lambda e: e.x // 3, None, "iuf")
case("% 3", lambda e: e.x % 3, None, "iuf")
case("clamp", lambda e: ops.clamp(e.x, 2, 50), lambda e: np.clip(e.x, 2, 50), "iuf")
case("maximum", lambda e: ops.maximum(e.x, e.y), lambda e: np.maximum(e.x, e.y), "biuf")
case("minimum", lambda e: ops.minimum(e.x, e.y), lambda e: np.minimum(e.x, e.y), "biuf")
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
case("amax", lambda e: ops.amax(e.x, 0), lambda e: e.x.max(0), "biuf")
case("amin", lambda e: ops.amin(e.x, 1), lambda e: e.x.min(1), "biuf")
case("argmax", lambda e: ops.argmax(e.x, 1), lambda e: e.x.argmax(1), "biuf")
case("argmin", lambda e: ops.argmin(e.x, 0), lambda e: e.x.argmin(0), "biuf")
case("sort 1", lambda e: ops.sort(e.x, 1)[0], lambda e: np.sort(e.x, 1), "iuf")
case("sort 0", lambda e: ops.sort(e.x, 0)[0], lambda e: np.sort(e.x, 0), "iuf")
case("argsort", lambda e: ops.argsort(e.x, 1), lambda e: np.argsort(e.x, 1, "stable"), "iuf")
case("topk", lambda e: ops.topk(e.x, 3)[0], lambda e: np.sort(e.x)[:, :-4:-1], "iuf")
case("unique", lambda e: ops.sort(ops.unique(e.x)[0])[0], lambda e: np.unique(e.x), "iuf")
case(
    "searchsorted",
    lambda e: ops.searchsorted(ops.sort(e.x.reshape(-1))[0], e.y),
    lambda e: np.searchsorted(np.sort(e.x.reshape(-1)), e.y),
    "iuf",
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
    if name == "uint64":  # half of them beyond int64
        return rng.integers(0, 100, shape).astype(name) + np.uint64(2**63) * rng.integers(
            0, 2, shape
        ).astype(name)
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
@pytest.mark.one_in(8 * len(SIZES), by="name")
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
                    found = differs(call(first, second, *tensors), want, one, name)
                    if found:
                        wrong.append(f"{one.name} of {layout} {(r, c)}, {mode}: {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("source", NAMES)
def test_casts_against_numpy(source: str) -> None:
    """Between all dtypes."""
    rng = np.random.default_rng(3)
    wrong: list[str] = []
    for r, c in SIZES:
        for layout, arranged, plain in layouts(rng, source, r, c):
            x, array = Tensor(plain).astype(gradcell_dtype(source)), arranged(plain)
            for target in NAMES:
                floating = {n for n in NAMES if n.startswith(("f", "c", "bf"))}
                if target.startswith("u") and source in floating:
                    continue  # what a negative number becomes, C leaves open
                as_numpy = "float32" if target in HALVES else target
                complex_to_real = array.dtype.kind == "c" and target[0] != "c"
                real = array.real if complex_to_real and target != "bool" else array
                with np.errstate(over="ignore"):
                    want = real.astype("float16" if target == "float16" else as_numpy)
                got = arranged(x).astype(gradcell_dtype(target))
                if str(got.dtype).lower() != target:
                    wrong.append(f"{layout} {(r, c)} to {target}: {got.dtype}")
                elif not np.array_equal(
                    (got.astype(ms.float32) if target in HALVES else got).asnumpy(), want
                ):
                    wrong.append(f"{layout} {(r, c)} to {target}")
    assert not wrong, "\n".join(wrong)


# Two dtypes ---------------------------------------------------------------------------------------

WIDE_UNSIGNED = ("uint16", "uint32", "uint64")
OF_NUMPY = [n for n in NAMES if n != "bfloat16"]


def in_dtype(array: Any, name: str) -> Tensor:
    return Tensor(np.asarray(array)).astype(gradcell_dtype(name))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("first", OF_NUMPY)
def test_operators_of_two_dtypes(first: str) -> None:
    """Every operator of two operands, of any two dtypes: dtype and numbers as NumPy's in that dtype."""
    rng = np.random.default_rng(OF_NUMPY.index(first))
    wrong = []
    for second in OF_NUMPY:
        common = ms._core.promote(gradcell_dtype(first), gradcell_dtype(second)).name
        if {first, second} & set(WIDE_UNSIGNED) and "bool" not in (first, second):
            assert common == str(np.promote_types(first, second)), (first, second)
        a, b = (numbers(rng, n, (3, 5)).astype(n) for n in (first, second))
        b = np.where(b == 0, np.ones_like(b), b)  # a divisor
        x, y = Tensor(a), Tensor(b)
        p, q = a.astype(common), b.astype(common)
        texts = ["x == y", "x != y"]
        if common != "bool":
            texts += ["x + y", "x - y", "x * y"]
        if common[0] in "iuf":
            texts += [
                "x < y",
                "x >= y",
                "x // y",
                "x % y",
                "ops.maximum(x, y)",
                "ops.minimum(x, y)",
            ]
        if common[0] in "bui":
            texts += ["x & y", "x | y", "x ^ y"]
        for text in texts:
            with np.errstate(all="ignore"):
                want = eval(text, {"x": p, "y": q, "ops": np})
            for mode in ("eager", "compiled"):
                function = eval(f"lambda x, y: {text}", {"ops": ops})
                got = (ms.jit(function) if mode == "compiled" else function)(x, y)
                same = str(got.dtype).lower() == str(want.dtype) and np.allclose(
                    got.asnumpy(), want, 2e-3 if common == "float16" else 1e-5, equal_nan=True
                )
                if common[0] in "bui" or want.dtype == bool:
                    same = same and np.array_equal(got.asnumpy(), want)
                if not same:
                    wrong.append(f"{first}, {second}: {text}, {mode}: {got} for {want}")
    assert not wrong, "\n".join(wrong)


PRODUCTS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "@": (lambda a, b: a @ b, lambda a, b: a @ b),
    "ops.matmul": (lambda a, b: ops.matmul(a, b), np.matmul),
    "ops.mm": (lambda a, b: ops.mm(a, b), np.matmul),
    "ops.dot": (lambda a, b: ops.dot(a, b), np.dot),
    "ops.inner": (lambda a, b: ops.inner(a, b), np.inner),
    "ops.outer": (lambda a, b: ops.outer(a[0], b[0]), lambda a, b: np.outer(a[0], b[0])),
    "ops.tensor_dot": (lambda a, b: ops.tensor_dot(a, b, 1), lambda a, b: np.tensordot(a, b, 1)),
    "ops.einsum": (
        lambda a, b: ops.einsum("ij,jk->ik", a, b),
        lambda a, b: np.einsum("ij,jk->ik", a, b),
    ),
    "ops.bmm": (lambda a, b: ops.bmm(a[None], b[None]), lambda a, b: a[None] @ b[None]),
    "ops.kron": (lambda a, b: ops.kron(a, b), np.kron),
    "ops.mv": (lambda a, b: ops.mv(a, b[0]), lambda a, b: a @ b[0]),
    "ops.batch_dot": (
        lambda a, b: ops.batch_dot(a[None], b[None], (2, 1)),
        lambda a, b: a[None] @ b[None],
    ),
    "ops.addmm": (lambda a, b: ops.addmm(a, a, b), lambda a, b: a + a @ b),
    "ops.baddbmm": (
        lambda a, b: ops.baddbmm(a[None], a[None], b[None]),
        lambda a, b: (a + a @ b)[None],
    ),
    "ops.addmv": (lambda a, b: ops.addmv(a[0], b, a[0]), lambda a, b: a[0] + b @ a[0]),
    "ops.addr": (lambda a, b: ops.addr(a, a[0], b[0]), lambda a, b: a + np.outer(a[0], b[0])),
    "ops.cross": (
        lambda a, b: ops.cross(a[:, :3], b[:, :3], 1),
        lambda a, b: np.cross(a[:, :3], b[:, :3]),
    ),
    "numpy.dot": (lambda a, b: ms.numpy.dot(a, b), np.dot),
    "numpy.inner": (lambda a, b: ms.numpy.inner(a, b), np.inner),
    "numpy.outer": (lambda a, b: ms.numpy.outer(a, b), np.outer),
    "numpy.tensordot": (
        lambda a, b: ms.numpy.tensordot(a, b, 1),
        lambda a, b: np.tensordot(a, b, 1),
    ),
    "numpy.kron": (lambda a, b: ms.numpy.kron(a, b), np.kron),
    "numpy.convolve": (
        lambda a, b: ms.numpy.convolve(a[0], b[0, :3]),
        lambda a, b: np.convolve(a[0], b[0, :3]),
    ),
    "numpy.correlate": (
        lambda a, b: ms.numpy.correlate(a[0], b[0, :3]),
        lambda a, b: np.correlate(a[0], b[0, :3]),
    ),
    "numpy.multi_dot": (
        lambda a, b: ms.numpy.multi_dot((a, b, a)),
        lambda a, b: np.linalg.multi_dot((a, b, a)),
    ),
    "numpy.matmul": (lambda a, b: ms.numpy.matmul(a, b), np.matmul),
    "mint.matmul": (lambda a, b: ms.mint.matmul(a, b), np.matmul),
    "mint.einsum": (
        lambda a, b: ms.mint.einsum("ij,jk->ik", a, b),
        lambda a, b: np.einsum("ij,jk->ik", a, b),
    ),
    "mint.dot": (lambda a, b: ms.mint.dot(a[0], b[0]), lambda a, b: np.dot(a[0], b[0])),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("product", PRODUCTS)
def test_products_of_two_dtypes(product: str) -> None:
    """A product of any two dtypes is that in their common dtype."""
    of_tensors, of_arrays = PRODUCTS[product]
    rng = np.random.default_rng(4)
    wrong = []
    names = [n for n in OF_NUMPY if n not in ("bool", "int8", "int16", "uint64")]
    for first in names:
        for second in names:
            common = ms._core.promote(gradcell_dtype(first), gradcell_dtype(second)).name
            a, b = (
                rng.integers(0, 4, (4, 4)).astype(first),
                rng.integers(0, 4, (4, 4)).astype(second),
            )
            try:
                got = of_tensors(Tensor(a), Tensor(b))
            except TypeError as error:
                wrong.append(f"{first}, {second}: {error}")
                continue
            want = of_arrays(a.astype(common), b.astype(common))
            if got.dtype.name != common:
                wrong.append(f"{first}, {second}: {got.dtype.name}")
            elif not np.allclose(got.asnumpy(), want):
                wrong.append(f"{first}, {second}: {got} for {want}")
    assert not wrong, "\n".join(wrong)


SOLVERS: dict[str, Callable[[Any, Any], Any]] = {
    "ops.matrix_solve": lambda a, b: ops.matrix_solve(a, b),
    "ops.tensor_solve": lambda a, b: ops.tensor_solve(a, b),
    "ops.cholesky_solve": lambda a, b: ops.cholesky_solve(b, a),
    "scipy.cho_solve": lambda a, b: ms.scipy.linalg.cho_solve((a, True), b),
    "scipy.solve_triangular": lambda a, b: ms.scipy.linalg.solve_triangular(a, b, lower=True),
}


@pytest.mark.parametrize("solver", SOLVERS)
def test_solutions_of_two_dtypes(solver: str) -> None:
    solve = SOLVERS[solver]
    a, b = np.tril(np.full((3, 3), 0.1)) + 2 * np.eye(3), np.arange(6.0).reshape(3, 2) / 7
    floats = ("float32", "float64", "complex64", "complex128")
    for first in floats:
        for second in floats:
            common = str(np.promote_types(first, second))
            got = solve(Tensor(a.astype(first)), Tensor(b.astype(second)))
            want = solve(
                Tensor(a.astype(first).astype(common)), Tensor(b.astype(second).astype(common))
            )
            assert got.dtype.name == common, (first, second)
            np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), 1e-15)


# Unsigned integers --------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["float32", "float64", "float16"])
@pytest.mark.parametrize("target", ["uint8", "uint16", "uint32", "uint64"])
def test_casts_to_unsigned(source: str, target: str) -> None:
    """Every size of number that the target holds, and what is beyond uint64 or no number."""
    bits = 8 * np.dtype(target).itemsize
    powers = 2.0 ** np.arange(min(bits, 15 if source == "float16" else 64))
    with np.errstate(over="ignore"):
        a = np.concatenate([[0, 0.5, 1.5], powers, powers * 1.5, powers * 1.25]).astype(source)
    a = a[a.astype(float) < 2.0**bits]
    want = np.array([int(v) for v in a], target)
    call = ms.jit(lambda x: (x * 1).astype(gradcell_dtype(target)) + 0)
    for got in (Tensor(a).astype(gradcell_dtype(target)), call(Tensor(a))):
        np.testing.assert_array_equal(got.asnumpy(), want)
    if target == "uint64":
        ends = Tensor(np.array([np.nan, np.inf, np.inf if source == "float16" else 1e30], source))
        assert ends.astype(ms.uint64).asnumpy().tolist() == [0, 2**64 - 1, 2**64 - 1]


@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32", "float64", "complex128"])
def test_casts_of_uint64_round_once(target: str) -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2**64, 500, np.uint64) >> rng.integers(0, 64, 500, np.uint64)
    near = [2**64 - 1, 2**63, 2**63 + 1024, 2**63 + 1025, 2**63 + 2**39, 2**63 + 2**39 + 1]
    a = np.concatenate([a, np.array(near, np.uint64)])
    if target in HALVES:
        a = a[a < 2**11 if target == "float16" else a < 2**8]
    want = a.astype("float32" if target in HALVES else target)
    call = ms.jit(lambda x: (x + 0).astype(gradcell_dtype(target)))
    for got in (Tensor(a).astype(gradcell_dtype(target)), call(Tensor(a))):
        found = (got.astype(ms.float32) if target in HALVES else got).asnumpy()
        np.testing.assert_array_equal(found, want)


def test_arithmetic_of_uint64() -> None:
    """Quotients, remainders and powers beyond int64, against Python's integers."""
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2**64, 400, np.uint64) >> rng.integers(0, 64, 400, np.uint64)
    b = np.maximum(rng.integers(0, 2**64, 400, np.uint64) >> rng.integers(0, 64, 400, np.uint64), 1)
    ends = np.array([1, 2, 3, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1], np.uint64)
    a, b = np.concatenate([a, np.repeat(ends, 8)]), np.concatenate([b, np.tile(ends, 8)])
    pairs = [(int(p), int(q)) for p, q in zip(a, b, strict=True)]
    wants: dict[str, list[Any]] = {
        "x // y": [p // q for p, q in pairs],
        "x % y": [p % q for p, q in pairs],
        "ops.fmod(x, y)": [p % q for p, q in pairs],
        "x ** y": [pow(p, q, 2**64) for p, q in pairs],
        "x < y": [p < q for p, q in pairs],
        "x >= y": [p >= q for p, q in pairs],
        "ops.maximum(x, y)": [max(p) for p in pairs],
        "ops.sign(x)": [int(p > 0) for p, _ in pairs],
        "ops.abs(x)": [p for p, _ in pairs],
        "x > -1": [True for _ in pairs],
        "x == -1": [False for _ in pairs],
        "x & y": [p & q for p, q in pairs],
    }
    for text, want in wants.items():
        function = eval(f"lambda x, y: {text}", {"ops": ops})
        for call in (function, ms.jit(function)):
            assert call(Tensor(a), Tensor(b)).asnumpy().tolist() == want, text
    assert int(Tensor(2**63, ms.uint64)) == 2**63
    with pytest.raises(OverflowError, match="does not fit"):
        Tensor(2**64, ms.uint64)
    with pytest.raises(OverflowError, match="does not fit"):
        Tensor([-1], ms.uint64)


def test_comparisons_of_uint64_with_signed_numbers_are_exact() -> None:
    """As NumPy 2 has them: in no dtype that holds both."""
    near = [0, 1, 5, 2**53, 2**53 + 1, 2**63 - 1]
    a = np.array([*near, 2**63, 2**63 + 1, 2**64 - 1], np.uint64)
    b = np.array([*near, -1, -(2**53) - 1, -(2**63)], np.int64)
    pairs = [(int(p), int(q)) for p in a for q in b]
    x, y = Tensor(a[:, None]), Tensor(b)
    for sign in ("==", "!=", "<", "<=", ">", ">="):
        function = eval(f"lambda x, y: x {sign} y")
        for call in (function, ms.jit(function)):
            found, other = call(x, y), call(y, x)
            assert found.asnumpy().ravel().tolist() == [function(p, q) for p, q in pairs], sign
            assert other.asnumpy().ravel().tolist() == [function(q, p) for p, q in pairs], sign


def test_sums_of_unsigned_integers_do_not_wrap() -> None:
    for name in ("uint8", "uint16", "uint32"):
        most = 2 ** (8 * np.dtype(name).itemsize) - 1
        x = Tensor(np.array([most, most], name))
        for total in (ops.sum(x), x.sum(), ms.numpy.sum(x), ms.mint.sum(x), x.cumsum(0)[1]):
            assert int(total) == 2 * most, name
        assert int(ops.prod(x)) == int(ms.numpy.cumprod(x)[1]) == most**2 % 2**64, name


# Functions of floats ------------------------------------------------------------------------------

PORTIONS = 30


def results(case: str, kind: str) -> list[np.ndarray]:
    """What a case of the tables gives for small whole numbers of a dtype in the places of floats."""
    expression, inputs = CASES_OF_TABLES[case]
    rng, small = np.random.default_rng(zlib.crc32(case.encode())), np.random.default_rng(5)
    ms.set_seed(1)
    cell = agreement.made(ms, expression)
    if isinstance(cell, ms.nn.Cell):
        agreement.set_parameters(ms, cell, rng)
    arrays = [agreement.array(i, rng) for i in inputs]
    given = [
        small.integers(0, 10, a.shape).astype(kind) if a.dtype.kind == "f" else a for a in arrays
    ]
    return edges.arrays_of(cell(*map(Tensor, given)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.one_in(PORTIONS)
@pytest.mark.parametrize("kind", ["uint8", "uint16", "int32"])
@pytest.mark.parametrize("portion", range(PORTIONS))
def test_functions_of_floats_of_integers(portion: int, kind: str) -> None:
    """Every case of the tables whose result for integers is floating has that of the same numbers as
    floats: no op inside it subtracts, divides or rounds integers first."""
    wrong = []
    for case, (_, inputs) in list(CASES_OF_TABLES.items())[portion::PORTIONS]:
        if not inputs or any(not isinstance(i, str) for i in inputs):
            continue
        if any(word in case for word in RANDOM):
            continue
        try:
            pairs = zip(results(case, "float32"), results(case, kind), strict=True)
        except (
            TypeError,
            ValueError,
            NotImplementedError,
            IndexError,
            RuntimeError,
            OverflowError,
        ):
            continue  # refused, of integers or of such numbers
        for of_floats, of_integers in pairs:
            if of_floats.dtype.kind != "f" or of_integers.dtype.kind != "f":
                continue
            same_shape = of_floats.shape == of_integers.shape
            if not same_shape or not np.allclose(
                of_floats, of_integers, 1e-4, 1e-5, equal_nan=True
            ):
                wrong.append(f"{case}: {of_integers} for {of_floats}")
    assert not wrong, "\n".join(wrong)
