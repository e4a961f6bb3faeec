"""Kernels that put elements into another order, or take them in order: sums at places, scans,
transposes, sums of neighbours, the best of elements, what searches count, Fourier transforms. Their
text, run as C++ by several threads a block, against NumPy in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda_emulation import WHERE_NONE_SPILLS, Batch, Kernels, Plans, chosen, that_spill

import gradcell
from gradcell import Tensor, _core, cuda, ops

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

core = _core.ops
rng = np.random.default_rng(3)

Case = tuple[Callable[..., Any], list[np.ndarray], Callable[..., list[np.ndarray]]]
CASES: dict[str, Case] = {}


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) if x.dtype.kind == "f" else x.astype(np.int64)


def values(*shape: int, dtype: str = "float32") -> np.ndarray:
    x = rng.uniform(-2, 2, shape)
    return np.round(x * 50).astype(dtype) if dtype.startswith("int") else x.astype(dtype)


# Sums at places ----------------------------------------------------------------------------------


def sums_at(places: np.ndarray, updates: np.ndarray, axis: int, size: int) -> list[np.ndarray]:
    shape = (*updates.shape[:axis], size, *updates.shape[axis + places.ndim :])
    lines = np.zeros((size, *shape[:axis], *shape[axis + 1 :]), wide(updates).dtype)
    flat = wide(updates).reshape(*shape[:axis], -1, *shape[axis + 1 :])
    np.add.at(lines, places.ravel() % size, np.moveaxis(flat, axis, 0))
    return [np.moveaxis(lines, 0, axis)]


def sums_case(
    name: str, places: np.ndarray, lead: tuple[int, ...], tail: tuple[int, ...], size: int,
    dtype: str = "float32",
) -> None:  # fmt: skip
    axis = len(lead)
    CASES[f"sums {name}"] = (
        lambda p, u: core.scatter_add(p, u, axis, size),
        [places, values(*lead, places.size, *tail, dtype=dtype)],
        lambda p, u: sums_at(p, u, axis, size),
    )


sums_case("few", rng.integers(-9, 9, 300), (), (3,), 9)
sums_case("in one pass of digits", rng.integers(-60, 60, 3001), (), (5,), 60)
sums_case("in two", rng.integers(0, 1500, 5003), (), (), 1500)
sums_case("in three", rng.integers(-5000, 5000, 2500), (), (2,), 5000)
sums_case("of one place", np.full(4321, 3), (), (3,), 7)
sums_case("of the only place", np.zeros(999, np.int64), (), (), 1)
sums_case("of the last place and a few", np.where(np.arange(2999) % 700, 69, 1), (), (2,), 70)
sums_case("of runs as long as chunks", np.arange(2048) // 32, (), (), 64)
sums_case("of an inner axis", rng.integers(0, 11, 700), (2, 3), (4,), 11)
sums_case("of the last axis", rng.integers(0, 11, 700), (3,), (), 11)
sums_case("float64", rng.integers(0, 99, 2000).astype(np.int32), (), (), 99, "float64")
sums_case("float16", rng.integers(0, 400, 2000), (), (2,), 400, "float16")
sums_case("int32", rng.integers(0, 9, 2000), (), (), 9, "int32")
sums_case("int8, which wrap", rng.integers(0, 90, 700), (), (), 90, "int8")


def lasts(places: np.ndarray) -> list[np.ndarray]:
    found = np.full(70, -1)
    found[places] = np.arange(places.size)
    return [found]


CASES["last writers"] = (
    lambda p: core.last_writer(p, 70),
    [np.concatenate([rng.integers(0, 60, 3000), [2]])],
    lasts,
)


def sums_in_rows(places: np.ndarray, updates: np.ndarray, size: int) -> list[np.ndarray]:
    """A place of -1 is none."""
    found = np.zeros((places.shape[0], size + 1))
    np.add.at(found, (np.arange(places.shape[0])[:, None], places), wide(updates))
    return [found[:, :size]]


for shape in ((5, 200), (1, 3000), (9, 60), (700, 1)):
    CASES[f"sums in rows {shape}"] = (
        lambda p, u: core.put_along(p, u, 40),
        [rng.integers(-1, 40, shape).astype(np.int32), values(*shape)],
        lambda p, u: sums_in_rows(p, u, 40),
    )
CASES["an embedding's gradient"] = (
    lambda i, w: ops.grad(lambda e: (ops.gather(e, i, 0) ** 2).sum())(w),
    [rng.integers(0, 80, (30, 40)), values(80, 6)],
    lambda i, w: [2 * wide(w) * np.bincount(i.ravel(), minlength=80)[:, None]],
)

# Places in ordered lines -------------------------------------------------------------------------


def places(line: np.ndarray, x: np.ndarray, right: bool) -> list[np.ndarray]:
    """NumPy's order, in which NaN is last, row by row."""
    side = "right" if right else "left"
    rows = [np.searchsorted(a, v, side) for a, v in zip(line, x, strict=True)]
    return [np.array(rows)]


def with_nans(x: np.ndarray) -> np.ndarray:
    return np.where(rng.uniform(size=x.shape) < 0.2, np.nan, x).astype(x.dtype)


for right in (False, True):
    side = "right" if right else "left"
    for dtype in ("float32", "float64", "float16", "int32", "int8", "int64"):
        line, x = (values(3, n, dtype=dtype) for n in (57, 40))
        x[:, :20] = line[:, :20]  # equal ones
        if dtype.startswith("float"):
            line, x = with_nans(line), with_nans(x)
        CASES[f"places {dtype} {side}"] = (
            lambda a, v, right=right: core.place_in_line(a, v, right),
            [np.sort(line), x],
            lambda a, v, right=right: places(a, v, right),
        )
    CASES[f"places of large integers {side}"] = (
        lambda a, v, right=right: core.place_in_line(a, v, right),
        [
            np.array([[1, 5, 2**63, 2**63 + 9]], np.uint64),
            np.array([[0, 2**63, 2**64 - 1]], np.uint64),
        ],
        lambda a, v, right=right: places(a, v, right),
    )
    CASES[f"places in lines of {side}"] = (
        lambda a, v, right=right: core.place_in_line(ops.sin(a), v * 2.0, right),
        [np.linspace(-1.5, 1.5, 5000, dtype=np.float32)[None], values(1, 70)],
        lambda a, v, right=right: places(np.sin(a), v * np.float32(2), right),
    )

# Scans -------------------------------------------------------------------------------------------


def scanned(
    x: np.ndarray, axis: int, exclusive: bool, reverse: bool, product: bool
) -> list[np.ndarray]:
    x = np.flip(wide(x), axis) if reverse else wide(x)
    y = (np.cumprod if product else np.cumsum)(x, axis)
    if exclusive:
        y = np.roll(y, 1, axis)
        np.moveaxis(y, axis, 0)[:1] = 1 if product else 0
    return [np.flip(y, axis) if reverse else y]


SCANNED = {
    (3,): 0, (1,): 0, (1023,): 0, (9001,): 0, (7, 3): 1, (5, 130): 1, (3, 1500): 1, (2, 8200): 1,
    (300, 2): 0, (20_000, 3): 0, (3, 600, 2): 1,
}  # fmt: skip
for shape, axis in SCANNED.items():
    for exclusive, reverse in ((False, False), (True, False), (False, True), (True, True)):
        CASES[f"scan {shape} {exclusive} {reverse}"] = (
            lambda x, a=axis, e=exclusive, r=reverse: core.cumsum(x * 2.0, a, e, r),
            [values(*shape)],
            lambda x, a=axis, e=exclusive, r=reverse: scanned(2 * wide(x), a, e, r, False),
        )
for exclusive, reverse in ((False, False), (True, True)):
    CASES[f"cumprod {exclusive} {reverse}"] = (
        lambda x, e=exclusive, r=reverse: core.cumprod(x, 1, e, r),
        [(1 + 0.01 * values(2, 9001)).astype(np.float32)],
        lambda x, e=exclusive, r=reverse: scanned(x, 1, e, r, True),
    )
CASES["scan int32"] = (
    lambda x: core.cumsum(x, 0, False, True),
    [values(5001, dtype="int32")],
    lambda x: scanned(x, 0, False, True, False),
)

# Transposes --------------------------------------------------------------------------------------


def transposed(name: str, fn: Callable[..., Any], *arguments: np.ndarray) -> None:
    """fn: in gradcell's ops, and in NumPy's."""
    CASES[f"transpose {name}"] = (
        lambda *a: fn(ops, *a),
        list(arguments),
        lambda *a: [fn(np, *(wide(x) for x in a))],
    )


transposed("of a matrix", lambda m, x: m.transpose(x, (1, 0)), values(45, 70))
transposed("of a batch", lambda m, x: m.transpose(x, (0, 2, 1)), values(3, 33, 20))
transposed("of outer axes", lambda m, x: m.transpose(x, (2, 1, 0)), values(17, 5, 40))
transposed("in four axes", lambda m, x: m.transpose(x, (2, 0, 3, 1)), values(3, 40, 2, 17))
transposed("of a sum", lambda m, x, y: m.sin(m.transpose(x * 2 + y, (1, 0))), values(64, 32),
           values(64, 32))  # fmt: skip
transposed("beside what is not", lambda m, x, y: m.transpose(m.exp(x), (1, 0)) * y + 1,
           values(50, 41), values(41, 50))  # fmt: skip
transposed("several", lambda m, x, y: m.transpose(x, (1, 0)) - m.transpose(y, (1, 0)),
           values(50, 41), values(50, 41))  # fmt: skip
transposed("float64", lambda m, x: m.transpose(x, (1, 0)), values(45, 70, dtype="float64"))
transposed("float16", lambda m, x: m.transpose(x, (1, 0)) * 2, values(45, 70, dtype="float16"))
transposed("int8", lambda m, x: m.transpose(x, (1, 0)), values(45, 70, dtype="int8"))

# Sums of neighbours, four at a time ---------------------------------------------------------------

for shape, axes in (((4096,), [0]), ((100_000,), [0]), ((3, 128), [1]), ((2, 8, 64), [1, 2])):
    for dtype in ("float32", "float64", "float16", "int32"):
        CASES[f"fours {shape} {dtype}"] = (
            lambda x, a=axes: core.reduce_sum(x * x, a, False),
            [
                0.1 * values(*shape, dtype=dtype)
                if dtype != "int32"
                else values(*shape, dtype=dtype)
            ],
            lambda x, a=axes: [(wide(x.astype(x.dtype)) ** 2).sum(tuple(a))],
        )
CASES["fours, one of which stands for all"] = (
    lambda x, y: core.reduce_max(core.broadcast_to(y, [256, 12]) - x, [0, 1], False),
    [values(256, 12), values(12)],
    lambda x, y: [(wide(y) - wide(x)).max()],
)

# Running -----------------------------------------------------------------------------------------


# Rows in order -----------------------------------------------------------------------------------


def in_order(x: np.ndarray, count: int, descending: bool) -> list[np.ndarray]:
    """Of equal elements the first first; NaN is larger than all numbers, zeros are equal."""
    found = []
    for row in x:
        ranks = np.searchsorted(np.unique(row), row)
        found.append(np.argsort(-ranks if descending else ranks, kind="stable")[:count])
    return [np.array(found)]


def order_case(dtype: str, rows: int, length: int, count: int, descending: bool) -> None:
    x = rng.integers(0, 90, (rows, length)).astype(dtype)
    if dtype.startswith("float"):
        x = with_nans(values(rows, length, dtype=dtype).round(1))
        x[:, :4] = np.array([0.0, -0.0, -np.inf, np.inf], dtype)[: x[:, :4].shape[1]]
    elif dtype != "bool":
        ends = np.iinfo(dtype)
        edges = np.array([ends.max, ends.min, ends.max - 1, ends.max // 2], dtype)
        x[:, : edges.size] = edges[: x[:, : edges.size].shape[1]]

    def of(t: Tensor) -> Tensor:
        if count == length:
            return core.order(t, descending)
        return core.first_in_order(t, count, descending, True)

    CASES[f"order {dtype} {rows} {length} {count} {descending}"] = (
        of,
        [x],
        lambda x: in_order(x, count, descending),
    )


for dtype in (
    "float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64",
    "bool",
):  # fmt: skip
    for descending in (False, True):
        order_case(dtype, 3, 57, 57, descending)
        order_case(dtype, 2, 1500, 1500, descending)
for rows, length, count in ((1, 1, 1), (70, 10, 3), (1, 1024, 1), (1, 5000, 5000), (70, 1100, 40)):
    order_case("float32", rows, length, count, True)
CASES["a median"] = (
    lambda x: ops.median(ops.sin(x), 1)[0],
    [values(4, 1301)],
    lambda x: [np.sort(np.sin(wide(x)), 1)[:, 650]],
)
CASES["the gradient of a sorted sum"] = (
    lambda x: ops.grad(lambda v: (ops.sort(v)[0] * ops.arange(1200.0)).sum())(x),
    [values(2, 1200)],
    lambda x: [np.argsort(np.argsort(x, 1, kind="stable"), 1, kind="stable")],
)

# Functions of integers ---------------------------------------------------------------------------

OF_INTEGERS: list[Callable[[int, int, int], int]] = [
    lambda a, b, _: a & b,
    lambda a, b, _: a | b,
    lambda a, b, _: a ^ b,
    lambda a, b, bits: a << b if 0 <= b < bits else 0,
    lambda a, b, bits: a >> b if 0 <= b < bits else -(a < 0),
    lambda a, b, _: math.gcd(a, b),
    lambda a, b, _: math.lcm(a, b),
]


def of_integers(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    """By Python's integers, whose lowest bits a dtype keeps; a signed multiple's size is taken after."""
    found, bits = [], 8 * a.itemsize
    pairs = [*zip(*(x.ravel().tolist() for x in np.broadcast_arrays(a, b)), strict=True)]
    for k, f in enumerate(OF_INTEGERS):
        exact = np.array([f(x, y, bits) % 2**bits for x, y in pairs], np.uint64)
        low = exact.astype(f"uint{bits}").view(a.dtype)
        found.append(np.abs(low) if k == 6 else low)
    return [np.stack(found)]


def all_of_integers(a: Tensor, b: Tensor) -> Tensor:
    return ops.stack([core.of_integers(a, b, k) for k in range(len(OF_INTEGERS))])


for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
    ends, width = np.iinfo(dtype), 8 * np.dtype(dtype).itemsize
    edges = [ends.min, ends.max, ends.max - 1, 0, 1, 2, 3, 12, 18, width - 1, width, width + 1]
    edges += [-1, -2, -12, -width] if ends.min < 0 else [ends.max // 2 + 1]
    a, b = (x.ravel() for x in np.meshgrid(*[np.array(edges, dtype)] * 2))
    few = rng.integers(0, min(99, ends.max), 30).astype(dtype)
    CASES[f"integers {dtype}"] = (all_of_integers, [a, b], of_integers)
    CASES[f"integers {dtype} and a number"] = (all_of_integers, [few, b[7]], of_integers)
    CASES[f"a number and integers {dtype}"] = (all_of_integers, [b[7], few], of_integers)

for dtype in ("int8", "int32", "int64", "uint16", "uint64"):
    a, b = (rng.integers(1, 99, 40).astype(dtype) for _ in range(2))
    a = a if np.iinfo(dtype).min == 0 else np.where(np.arange(40) % 3, a, -a).astype(dtype)
    CASES[f"quotients {dtype}"] = (
        lambda a, b: a // b * 2 + a % b,
        [a, b],
        lambda a, b: [a // b * 2 + a % b],
    )

# The best so far, and the best of segments --------------------------------------------------------


def best_so_far(x: np.ndarray, axis: int, largest: bool) -> list[np.ndarray]:
    """The last of equal ones; a NaN stays the best until the next one. Values, then places."""
    lines = np.moveaxis(x, axis, -1)
    values, places = np.empty_like(lines), np.empty(lines.shape, np.int64)
    for k in np.ndindex(lines.shape[:-1]):
        best = 0
        for i, v in enumerate(lines[k]):
            top = lines[k][best]
            if np.isnan(v) or (not np.isnan(top) and (v >= top if largest else v <= top)):
                best = i
            values[(*k, i)], places[(*k, i)] = lines[k][best], best
    return [np.moveaxis(values, -1, axis), np.moveaxis(places, -1, axis)]


def ends_of(dtype: str) -> tuple[float, float]:
    if dtype.startswith("float"):
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def with_ends(x: np.ndarray) -> np.ndarray:
    """Some NaNs, or the ends of what the dtype has."""
    if x.dtype.kind == "f":
        x = with_nans(x)
    elif x.dtype.kind != "b":
        x.ravel()[: x.size // 2][rng.uniform(size=x.size // 2) < 0.1] = ends_of(x.dtype.name)[0]
    return x


ALL_ORDERED = (
    "float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64",
)  # fmt: skip


def running_case(dtype: str, axis: int, *shape: int) -> None:
    x = with_ends(values(*shape).round(1).astype(dtype) if dtype.startswith("float")
                  else rng.integers(0, 90, shape).astype(dtype))  # fmt: skip
    for largest, which in ((True, 0), (False, 0), (True, 1), (False, 1)):
        CASES[f"running {dtype} {shape} {largest} {which}"] = (
            lambda x, most=largest, w=which: core.running_best(x, x.ndim - 1 - axis, most, w == 0),
            [x],
            lambda x, most=largest, w=which: [best_so_far(x, axis, most)[w]],
        )


for dtype in ALL_ORDERED:
    running_case(dtype, 1, 3, 70)
running_case("bool", 0, 40, 3)
for axis, *shape in ((0, 1), (0, 9001), (1, 2, 8200), (0, 300, 2), (0, 2000, 3), (1, 3, 600, 2)):
    running_case("float32", axis, *shape)
running_case("uint64", 0, 9001)
CASES["a running maximum of sines"] = (
    lambda x: core.running_best(ops.sin(x), 0, True, True),
    [values(3, 500)],
    lambda x: [np.maximum.accumulate(np.sin(wide(x)), 1)],
)


def best_of_segments(
    rows: np.ndarray, ids: np.ndarray, count: int, largest: bool
) -> list[np.ndarray]:
    """The first of equal ones; a NaN stays if it comes first. Values, then rows."""
    low, high = ends_of(rows.dtype.name)
    values = np.full((*ids.shape[:-1], count, rows.shape[-1]), low if largest else high, rows.dtype)
    places = np.full(values.shape, -1)
    for k in np.ndindex(ids.shape):
        *lead, i = k
        if ids[k] < 0:
            continue
        for j, v in enumerate(rows[k]):
            at = (*lead, ids[k], j)
            if places[at] < 0 or (v > values[at] if largest else v < values[at]):
                values[at], places[at] = v, i
    return [values, places]


def segment_case(
    name: str, ids: np.ndarray, count: int, columns: int, dtype: str = "float32"
) -> None:
    shape = (*ids.shape, columns)
    rows = with_ends(values(*shape).round(1).astype(dtype) if dtype.startswith("float")
                     else rng.integers(0, 90, shape).astype(dtype))  # fmt: skip
    for largest, which in ((True, 0), (False, 0), (True, 1), (False, 1)):
        CASES[f"segments {name} {dtype} {largest} {which}"] = (
            lambda x, i, most=largest, w=which: core.segment_best(x, i, count, most, w == 0),
            [rows, ids],
            lambda x, i, most=largest, w=which: [best_of_segments(x, i, count, most)[w]],
        )


for dtype in ALL_ORDERED:
    segment_case("few", rng.integers(-2, 9, 30), 10, 3, dtype)
    segment_case("many", rng.integers(-2, 90, 700), 95, 2, dtype)
segment_case("of one", np.full(1000, 3, np.int32), 5, 3)
segment_case("of one and some", np.where(np.arange(2999) % 700, 69, 1), 70, 2)
segment_case("of runs as long as chunks", np.arange(2048) // 32, 64, 1)
segment_case("a batch of few", rng.integers(-1, 7, (3, 20)), 7, 4)
segment_case("a batch of many", rng.integers(-1, 40, (3, 400)), 40, 2)
segment_case("none of which has a place", np.full(600, -1), 4, 2)
segment_case("none", np.zeros((2, 0), np.int64), 3, 2)

# Membership, counts and draws ---------------------------------------------------------------------


def among(x: np.ndarray, tests: np.ndarray) -> list[np.ndarray]:
    return [np.stack([np.isin(a, b) for a, b in zip(x, tests, strict=True)])]


for dtype in (*ALL_ORDERED, "bool"):
    x, tests = (
        with_nans(values(3, n, dtype=dtype).round(1)) if dtype.startswith("float")
        else rng.integers(0, 90 if dtype != "bool" else 2, (3, n)).astype(dtype) for n in (80, 30)
    )  # fmt: skip
    CASES[f"among {dtype}"] = (core.among, [x, tests], among)
CASES["among none"] = (core.among, [values(2, 5), values(2, 0)], among)
CASES["among many"] = (
    core.among, [rng.integers(0, 9000, (2, 700)), rng.integers(0, 9000, (2, 2000))], among,
)  # fmt: skip


def counts(x: np.ndarray, edges: np.ndarray) -> list[np.ndarray]:
    found = [np.histogram(a[~np.isnan(wide(a))], e)[0] for a, e in zip(x, edges, strict=True)]
    return [np.stack(found)]


for dtype in ("float32", "float64", "float16", "int8", "int64", "uint8"):
    x = (
        values(3, 300, dtype=dtype)
        if dtype != "uint8"
        else rng.integers(0, 90, (3, 300)).astype(dtype)
    )
    x = with_nans(x) if dtype.startswith("float") else x
    edges = np.sort(rng.integers(-9, 9, (3, 14)) / (4 if dtype.startswith("float") else 0.25), 1)
    edges[0] = np.linspace(edges[0, 0], edges[0, -1], 14)
    x[:, :14] = np.maximum(edges, 0).astype(dtype) if dtype == "uint8" else edges.astype(dtype)
    CASES[f"counts {dtype}"] = (core.count_between, [x, edges], counts)
CASES["counts in one interval"] = (
    core.count_between, [values(2, 900), np.array([[-1.0, 1.0], [0.0, 0.0]])], counts,
)  # fmt: skip
CASES["a histogram"] = (
    lambda x: ops.histc(ops.sin(x), 12, -1.0, 1.0),
    [values(5000)],
    lambda x: [np.histogram(np.sin(x), 12, (-1, 1))[0]],
)


def drawn(weights: np.ndarray, u: np.ndarray) -> list[np.ndarray]:
    sums = np.cumsum(wide(weights), 1)
    last = [np.flatnonzero(w)[-1] for w in weights]
    found = [
        np.minimum(np.searchsorted(s, wide(a) * s[-1], "right"), k)
        for s, a, k in zip(sums, u, last, strict=True)
    ]
    return [np.stack(found)]


for n in (1, 7, 900, 9000):
    weights = rng.integers(0, 4, (3, n)).astype(np.float32)
    weights[:, n // 2], weights[:, n // 2 + 1 :] = 1, 0
    u = rng.uniform(size=(3, 200)).astype(np.float32)
    u[:, 0], u[:, 1] = 0, np.nextafter(np.float32(1), np.float32(0))
    CASES[f"draws of {n}"] = (core.draw_by_weights, [weights, u], drawn)

# Fourier transforms -------------------------------------------------------------------------------


def transformed_pairs(x: np.ndarray, axis: int, inverse: bool) -> list[np.ndarray]:
    """In float64, without a factor."""
    z = wide(x)[..., 0] + 1j * wide(x)[..., 1]
    found = np.fft.ifft(z, axis=axis, norm="forward") if inverse else np.fft.fft(z, axis=axis)
    return [np.stack([found.real, found.imag], -1)]


for axis, *shape in (
    (1, 3, 1), (1, 2, 2), (1, 4, 5), (1, 7, 16, 3), (0, 17), (1, 2, 34), (0, 128, 3), (1, 2, 100),
    (1, 2, 360, 5), (0, 4096), (1, 3, 134), (2, 3, 2, 1024), (0, 1001),
):  # fmt: skip
    for dtype, inverse in (("float32", False), ("float64", True)):
        CASES[f"transform {dtype} {tuple(shape)} {inverse}"] = (
            lambda x, a=axis, i=inverse: core.fourier(x, a, i),
            [values(*shape, 2, dtype=dtype)],
            lambda x, a=axis, i=inverse: transformed_pairs(x, a, i),
        )
CASES["a derivative by Fourier modes"] = (
    lambda x: ops.irfft(ops.rfft(x) * Tensor(1j * (np.arange(61) % 60), gradcell.complex128), 120),
    [np.sin(3 * np.linspace(0, 2 * np.pi, 120, endpoint=False))[None]],
    lambda x: [3 * np.cos(3 * np.linspace(0, 2 * np.pi, 120, endpoint=False))[None]],
)


@pytest.fixture(scope="module")
def plans() -> Plans:
    return Plans(CASES, lambda name: cuda.plan_of(CASES[name][0], *map(Tensor, CASES[name][1])))


@pytest.fixture(scope="module")
def batch(
    plans: Plans, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Batch:
    return Batch(chosen(request, plans), tmp_path_factory.mktemp("orders"))


@pytest.mark.one_in(64)
@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("fours")])
def test_unaligned_memory_gives_the_same_bits(name: str, batch: Batch) -> None:
    number = list(CASES).index(name)
    runs = [batch.run(number, threads=(8, 1), aligned=a)[0] for a in (True, False)]
    np.testing.assert_array_equal(*runs)


def agrees(got: np.ndarray, expected: np.ndarray) -> None:
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, expected.astype(got.dtype))
        return
    scale = max(1.0, float(np.abs(expected).max()))
    epsilon = float(np.finfo(got.dtype).eps)
    # Sums are in float64 and rounded once; those of float64 are rounded at each of their terms, and
    # transforms a few times.
    roundings = 200 if got.dtype == np.float64 else 3
    np.testing.assert_allclose(got, expected, rtol=0, atol=roundings * epsilon * scale)


@pytest.mark.one_in(64)
@pytest.mark.parametrize("name", CASES)
def test_any_number_of_threads_finds_what_numpy_finds(name: str, batch: Batch) -> None:
    _, arguments, reference = CASES[name]
    (expected,) = reference(*arguments)
    number = list(CASES).index(name)
    first = None
    for threads, grid in (((1, 1), 1), ((4, 2), 3), ((64, 1), 2), (None, 3)):
        (got,) = batch.run(number, threads=threads, grid=grid)
        agrees(got, expected)
        if name.startswith("sums"):  # and the same bits, in whatever order threads come
            first = got if first is None else first
            np.testing.assert_array_equal(got, first)


@pytest.mark.one_in(1)
def test_places_out_of_range_are_flagged(tmp_path: Any) -> None:
    places = np.zeros(900, np.int64)
    places[850] = 5
    arguments = Tensor(places), Tensor(values(900))
    plan = cuda.plan_of(lambda p, u: core.scatter_add(p, u, 0, 5), *arguments)
    with pytest.raises(IndexError):
        Batch([plan], tmp_path).run(0)


@pytest.mark.one_in(40)
@pytest.mark.parametrize(("arch", "every"), WHERE_NONE_SPILLS)
def test_none_spills(arch: str, every: int, plans: Plans) -> None:
    assert that_spill(Kernels(list(plans.values())), arch, every) == {}


# Counts ------------------------------------------------------------------------------------------


def test_rows_are_put_in_order_by_kernels() -> None:
    """Short rows in one; of others three a pass: 6 of 32 bits, 2 of 70 rows, and what is wanted."""

    def kinds(of: Callable[[Tensor], Tensor], *shape: int) -> list[str]:
        plan = cuda.plan_of(of, Tensor(np.zeros(shape, np.float32)))
        return [s["kernel"].rsplit("_", 1)[0] for s in plan.steps]

    assert kinds(lambda x: core.order(x, False), 70, 1000) == ["gc_order"]
    for ordered in (True, False):
        first = kinds(lambda x, o=ordered: core.first_in_order(x, 3, True, o), 70, 1000)
        assert first == ["gc_first_in_order"]
    long = kinds(lambda x: core.order(x, False), 70, 5000)
    assert len(long) == 3 * (6 + 2) + 1 and long.count("gc_sort_move") == 8
    many = kinds(lambda x: core.order(x, False), 5000, 1000)
    assert len(many) == 3 * (6 + 3) + 1
    assert kinds(lambda x: core.order(x, False), 90_000, 60) == ["gc_order"]


def test_transforms_take_a_kernel_for_some_factors() -> None:
    """Of 2^20 elements 16 terms each, five times, where each was a sum of 2^20."""
    for n, launches in ((16, 1), (128, 2), (4096, 3), (1 << 20, 5), (17, 1), (1000, 3)):
        plan = cuda.plan_of(lambda x: core.fourier(x, 0, False), Tensor(np.zeros((n, 2))))
        assert len(plan.steps) == launches, n
        assert plan.bytes_moved == launches * 2 * 16 * n


def test_functions_of_integers_are_part_of_other_kernels() -> None:
    """Nothing is left to the host, and a chain of them is one kernel."""

    def mixed(x: Tensor) -> Tensor:
        hashed = (x ^ ops.bitwise_right_shift(x, 3)) * 7
        return ops.gcd(hashed & 255, x | 1) % 5

    plan = cuda.plan_of(mixed, Tensor(np.arange(1000)))
    assert len(plan.steps) == 1 and len(plan.kernels) == 1


def threads_of(step: dict[str, Any]) -> int:
    x, y = step["block"]
    return step["grid"] * x * y


def test_many_updates_are_sorted_not_searched() -> None:
    """10^6 updates at 50,000 places: three passes of 6 bits, then one thread for some of them."""
    places, updates = (Tensor(np.zeros(1_000_000, t)) for t in (np.int32, np.float32))
    plan = cuda.plan_of(lambda p, u: core.scatter_add(p, u, 0, 50_000), places, updates)
    kinds = [s["kernel"].rsplit("_", 1)[0] for s in plan.steps]
    assert kinds.count("gc_sort_move") == 3 and len(kinds) == 12
    sums = plan.steps[kinds.index("gc_scatter_add")]
    assert threads_of(sums) >= 1900
    assert plan.bytes_moved < 200e6  # each update was read by each of 50,000 threads


def test_sums_of_neighbours_load_16_bytes() -> None:
    def text(*shape: int) -> str:
        x = Tensor(np.zeros(shape, np.float32))
        plan = cuda.plan_of(lambda y: core.reduce_sum(core.sin(y), None, False), x)
        return plan.kernels[0][1]

    assert "= gc_load(p0, j, packs > 0)" in text(1_000_000)
    assert "gc_load" not in text(1_000_001)


def test_long_lines_are_scanned_by_blocks() -> None:
    first, last = cuda.plan_of(lambda x: core.cumsum(x, 0, False, False),
                               Tensor(np.zeros(1_000_000, np.float32))).steps  # fmt: skip
    for step in (first, last):
        assert step["grid"] >= 200 and step["block"][0] == 256
    (one,) = cuda.plan_of(lambda x: core.cumsum(x, 1, False, False),
                          Tensor(np.zeros((1000, 1000), np.float32))).steps  # fmt: skip
    assert one["grid"] == 1000 and one["block"] == (256, 1)
    (short,) = cuda.plan_of(lambda x: core.cumsum(x, 1, False, False),
                            Tensor(np.zeros((1000, 30), np.float32))).steps  # fmt: skip
    assert short["block"] == (8, 32)


def test_a_transpose_reads_and_writes_neighbours() -> None:
    def kernel(fn: Callable[[Tensor], Tensor], *shape: int) -> str:
        ((_, text),) = cuda.plan_of(fn, Tensor(np.zeros(shape, np.float32))).kernels
        return text

    assert "__shared__ float tile0[32 * 33]" in kernel(ops.t, 64, 64)
    for order, shape in (((0, 2, 1, 3), (8, 16, 4, 32)), ((1, 0), (4, 4096))):
        assert "__shared__" not in kernel(lambda x, o=order: ops.transpose(x, o), *shape)
