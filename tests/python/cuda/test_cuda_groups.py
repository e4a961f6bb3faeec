"""Small products of equal sizes that share a launch: which do, and what they come to beside float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cuda_emulation import WHERE_NONE_SPILLS, Batch, Kernels, Plans, chosen, that_spill
from made_up_gpu import Process

import gradcell as ms
from gradcell import Tensor, _core, cuda, ops
from gradcell.ops.control.loops import loop

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

core = _core.ops
rng = np.random.default_rng(5)


def numbers(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape)


def tensor(*shape: int, dtype: Any = ms.float32) -> Tensor:
    return Tensor(numbers(*shape).astype(np.float32)).astype(dtype)


# Programs ------------------------------------------------------------------------------------------------

Case = tuple[Callable[..., Any], tuple[Tensor, ...]]
CASES: dict[str, Case] = {}
#: Of the products in the plan: the segments of each group's launch.
GROUPS: dict[str, list[int]] = {}


def pairs(count: int, m: int, n: int, k: int, transposed: tuple[bool, bool], more: Any = ()) -> Any:
    """Products of operands of their own."""
    a, b = ((k, m) if transposed[0] else (m, k)), ((n, k) if transposed[1] else (k, n))
    return [s for _ in range(count) for s in ((*more, *a), (*more, *b))]


def products(ta: bool, tb: bool) -> Callable[..., Any]:
    return lambda *xs: [core.matmul(a, b, ta, tb) for a, b in zip(xs[::2], xs[1::2], strict=True)]


#: With the unit roundoff of a result.
DTYPES: dict[str, tuple[Any, float]] = {
    "float64": (ms.float64, 2.0**-53),
    "float32": (ms.float32, 2.0**-24),
    "float16": (ms.float16, 2.0**-11),
    "bfloat16": (ms.bfloat16, 2.0**-8),
}


def bound(kind: str, terms: int) -> float:
    """Of a sum's error, in sums of |a b|: docs/cuda-kernels.md, "Accuracy"."""
    u, by_eight, by_sixteen = 2.0**-24, -(-terms // 8), -(-terms // 16)
    return {
        "float64": terms * 2.0**-53,
        "float32": (33 + by_eight) * u,
        "TF32": 2.0**-10 + 2.0**-22 + 20 * u * by_eight,
        "float16": 36 * u * by_sixteen,
        "bfloat16": 36 * u * by_sixteen,
    }[kind]


SIZES = {
    "a tile": (3, 64, 64, 32), "less": (3, 5, 7, 6), "edges": (4, 70, 33, 45),
    "long": (4, 40, 24, 1500),
}  # fmt: skip
for _name, (_count, _m, _n, _k) in SIZES.items():
    for _dtype in DTYPES:
        for _ta, _tb in ((False, False), (True, False), (False, True), (True, True)):
            if _dtype != "float32" and (_name == "a tile" or (_ta == _tb) == (_name == "edges")):
                continue  # some of each
            _key = f"{_name}, {_dtype}, {_ta}, {_tb}"
            _shapes = pairs(_count, _m, _n, _k, (_ta, _tb))
            CASES[_key] = (
                products(_ta, _tb), tuple(tensor(*s, dtype=DTYPES[_dtype][0]) for s in _shapes)
            )  # fmt: skip
            GROUPS[_key] = [_count]
CASES["batches"] = (
    products(False, True),
    tuple(tensor(*s) for s in pairs(3, 20, 12, 40, (False, True), (2, 3))),
)
GROUPS["batches"] = [3]


@pytest.fixture(scope="module")
def plans() -> Plans:
    return Plans(CASES, lambda name: cuda.plan_of(CASES[name][0], *CASES[name][1]))


@pytest.fixture(scope="module")
def batch(
    plans: Plans, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Batch:
    return Batch(chosen(request, plans), tmp_path_factory.mktemp("groups"))


def groups(steps: list[dict[str, Any]]) -> list[int]:
    """Of how many products the groups are, in a loop's body too."""
    found = []
    for s in steps:
        if "loop" in s:
            found += groups(s["loop"]["body"]["steps"])
        elif s.get("kernel", "").startswith("gc_products_") and "sums" not in s["kernel"]:
            found.append(s["segments"])
    return found


def calls(plan: Any) -> int:
    """Products that are left to the library."""
    return sum("matmul" in s for s in plan.steps)


def wide(x: Tensor) -> np.ndarray:
    return x.astype(ms.float32 if x.dtype != ms.float64 else x.dtype).asnumpy().astype(np.float64)


@pytest.mark.one_in(48)
@pytest.mark.parametrize("name", CASES)
def test_products_are_those_of_float64(name: str, plans: Plans, batch: Batch) -> None:
    assert groups(plans[name].steps) == GROUPS[name] and calls(plans[name]) == 0
    _, args = CASES[name]
    words = (name + ", float32, False, True").split(", ")
    ta, tb = (words[2] == "True", words[3] == "True") if name != "batches" else (False, True)
    number = list(CASES).index(name)
    for grid in (1 << 20, 2):
        got = batch.run(number, threads=None, grid=grid, aligned=grid > 2)
        for a, b, c in zip(args[::2], args[1::2], got, strict=True):
            left, right = wide(a), wide(b)
            left = left.swapaxes(-1, -2) if ta else left
            right = right.swapaxes(-1, -2) if tb else right
            want, room = left @ right, np.abs(left) @ np.abs(right)
            most = bound(words[1], left.shape[-1]) * room + 2 * DTYPES[words[1]][1] * np.abs(want)
            assert np.all(np.abs(c - want) <= most), name


def test_shares_of_long_sums_are_added_up(plans: Plans) -> None:
    plan = plans["long, float32, True, False"]
    assert [s["segments"] for s in plan.steps] == [4, 4]
    multiply, add = plan.steps
    assert multiply["grid"] >= 4 * 8 and "products_sums" in add["kernel"]
    assert len(plans["edges, float32, True, False"].steps) == 1


def test_what_is_infinite_or_no_number_stays_that(tmp_path: Any) -> None:
    fn, args = CASES["edges, float32, False, False"]
    values = [x.asnumpy().copy() for x in args]
    values[0][3, 2], values[2][1, 1], values[5][4, 6] = np.inf, np.nan, 3e38
    plan = cuda.plan_of(fn, *map(Tensor, values))
    got = Batch([plan], tmp_path).run(0, threads=None)
    with np.errstate(all="ignore"):
        for a, b, c in zip(values[::2], values[1::2], got, strict=True):
            want = a @ b
            np.testing.assert_array_equal(np.isnan(c), np.isnan(want))
            finite = np.isfinite(want)
            np.testing.assert_array_equal(
                c[~finite & ~np.isnan(want)], want[~finite & ~np.isnan(want)]
            )
            np.testing.assert_allclose(c[finite], want[finite], rtol=1e-4, atol=1e-4)


def test_tf32_where_it_is_allowed(tmp_path: Any) -> None:
    fn, args = CASES["edges, float32, True, True"]
    ms.set_context(gpu_config={"matmul_allow_tf32": True})
    try:
        plan = cuda.plan_of(fn, *args)
    finally:
        ms.set_context(gpu_config={"matmul_allow_tf32": False})
    assert "gc_products<gc_tf32," in plan.kernels[0][1]
    for a, b, c in zip(
        args[::2], args[1::2], Batch([plan], tmp_path).run(0, threads=None), strict=True
    ):
        left, right = wide(a).T, wide(b).T
        error = np.abs(c - left @ right)
        most = bound("TF32", 45) * (np.abs(left) @ np.abs(right))
        assert np.all(error <= most) and np.any(
            error > bound("float32", 45) * most / bound("TF32", 45)
        )


@pytest.fixture
def as_products() -> Iterator[None]:
    _core.weigh_cuda_plans(tiles=False)
    yield
    _core.weigh_cuda_plans()


# Gradients -----------------------------------------------------------------------------------------------


def experts(count: int, rows: int, inputs: int, outputs: int) -> tuple[Any, list[Tensor], Any]:
    """A layer with a bias for each expert, its loss and gradients, and the same in NumPy."""
    xs = [tensor(rows, inputs) for _ in range(count)]
    ws = [tensor(inputs, outputs) for _ in range(count)]
    bs = [tensor(outputs) for _ in range(count)]

    def loss(*all_: Tensor) -> Tensor:
        x, w, b = all_[:count], all_[count : 2 * count], all_[2 * count :]
        return sum(ops.sin(ops.matmul(x[e], w[e]) + b[e]).sum() for e in range(count))  # type: ignore[return-value]

    def want(*all_: Tensor) -> list[np.ndarray]:
        x, w, b = ([wide(t) for t in all_[part * count : (part + 1) * count]] for part in range(3))
        slopes = [np.cos(x[e] @ w[e] + b[e]) for e in range(count)]
        value = sum(np.sin(x[e] @ w[e] + b[e]).sum() for e in range(count))
        return [
            np.array(value),
            *(s @ w[e].T for e, s in enumerate(slopes)),
            *(x[e].T @ s for e, s in enumerate(slopes)),
            *(s.sum(0) for s in slopes),
        ]

    arguments = [*xs, *ws, *bs]
    return ms.value_and_grad(loss, tuple(range(3 * count))), arguments, want


def test_gradients_of_experts(tmp_path: Any) -> None:
    fn, args, want = experts(4, 24, 40, 30)
    plan = cuda.plan_of(fn, *args)
    assert groups(plan.steps) == [4, 4, 4] and calls(plan) == 0
    assert "add_bias" not in str([sorted(s) for s in plan.steps])
    for got, right in zip(Batch([plan], tmp_path).run(0, threads=None), want(*args), strict=True):
        np.testing.assert_allclose(got, right, rtol=2e-5, atol=2e-5 * np.abs(right).max())


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_added_to_products(dtype: str, tmp_path: Any) -> None:
    """A matrix to some, a bias to others."""

    def fn(*xs: Tensor) -> Any:
        parts = list(zip(*(xs[k : k + 4] for k in range(0, 16, 4)), strict=True))
        return [ops.matmul(a, b) + c for a, b, c, _ in parts] + [
            ops.matmul(a, b[:, :16]) + d for a, b, _, d in parts
        ]

    count, shapes = 4, [(20, 33), (33, 17), (20, 17), (16,)]
    args = [tensor(*s, dtype=DTYPES[dtype][0]) for s in shapes for _ in range(count)]
    plan = cuda.plan_of(fn, *args)
    assert groups(plan.steps) == [4, 4] and calls(plan) == 0
    a, b, c, d = ([wide(x) for x in args[k : k + 4]] for k in range(0, 16, 4))
    sums = [
        *zip(a, b, c, strict=True),
        *((x, y[:, :16], z) for x, y, z in zip(a, b, d, strict=True)),
    ]
    for got, (x, y, z) in zip(Batch([plan], tmp_path).run(0, threads=None), sums, strict=True):
        room = np.abs(x) @ np.abs(y) + np.abs(z)
        most = bound(dtype, 33) * room + 2 * DTYPES[dtype][1] * np.abs(x @ y + z) + 2.0**-24 * room
        assert np.all(np.abs(got - (x @ y + z)) <= most)


def heads(q: Tensor, k: Tensor, v: Tensor) -> Any:
    """Attention's heads, one after another."""
    each = 8
    out = []
    for h in range(q.shape[1] // each):
        at = slice(h * each, (h + 1) * each)
        scores = ops.matmul(q[:, at], k[:, at].T) * each**-0.5
        out.append(ops.matmul(ops.softmax(scores, -1), v[:, at]))
    return ops.concat(out, 1)


def test_heads_of_attention_one_by_one(as_products: None) -> None:
    args = [tensor(50, 32) for _ in range(3)]
    assert groups(cuda.plan_of(heads, *args).steps) == [4, 4]
    slope = ms.grad(lambda *xs: ops.square(heads(*xs)).sum(), (0, 1, 2))
    plan = cuda.plan_of(slope, *args)
    assert groups(plan.steps) == [4, 4, 4, 4, 8] and calls(plan) == 0


def test_gradients_of_equal_layers(as_products: None, tmp_path: Any) -> None:
    """They wait for the last of them, which is the first layer's."""
    weights = [tensor(48, 48) for _ in range(5)]
    x = tensor(100, 48)

    def loss(*ws: Tensor) -> Tensor:
        h = x
        for w in ws:
            h = ops.sin(ops.matmul(h, w) * 0.1)
        return ops.square(h).sum()

    plan = cuda.plan_of(ms.grad(loss, tuple(range(5))), *weights)
    assert groups(plan.steps) == [5]
    assert calls(plan) == 9  # the way up and the way down
    hs, zs = [wide(x)], []
    for w in weights:
        zs.append(hs[-1] @ wide(w) * 0.1)
        hs.append(np.sin(zs[-1]))
    slope, want = 2 * hs[-1], []
    for w, z, h in zip(weights[::-1], zs[::-1], hs[-2::-1], strict=True):
        slope = slope * np.cos(z) * 0.1
        want.insert(0, h.T @ slope)
        slope = slope @ wide(w).T
    for got, right in zip(Batch([plan], tmp_path).run(0, threads=None), want, strict=True):
        np.testing.assert_allclose(got, right, rtol=2e-5, atol=2e-5 * np.abs(right).max())


# Plans ---------------------------------------------------------------------------------------------------


def test_what_needs_another_is_not_grouped(as_products: None) -> None:
    def chain(x: Tensor, *ws: Tensor) -> Tensor:
        for w in ws:
            x = ops.matmul(x, w)
        return x

    square = [tensor(40, 40) for _ in range(6)]
    plan = cuda.plan_of(chain, *square[:4])
    assert groups(plan.steps) == [] and calls(plan) == 3
    both = cuda.plan_of(lambda *xs: [chain(*xs[:3]), chain(*xs[3:])], *square)
    assert groups(both.steps) == [2, 2] and calls(both) == 0


def test_what_differs_is_not_grouped() -> None:
    shapes = [(40, 30, 20), (40, 30, 21), (41, 30, 20)]
    args = [tensor(*s) for m, n, k in shapes for s in ((m, k), (k, n))]
    assert groups(cuda.plan_of(products(False, False), *args).steps) == []
    same = [tensor(32, 32) for _ in range(4)]

    def other_way(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Any:
        return core.matmul(a, b, False, False), core.matmul(c, d, False, True)

    assert groups(cuda.plan_of(other_way, *same).steps) == []
    mixed = [x.astype(t) for x, t in zip(same, [ms.float16] * 2 + [ms.float32] * 2, strict=True)]
    assert groups(cuda.plan_of(products(False, False), *mixed).steps) == []
    assert groups(cuda.plan_of(products(False, False), *same).steps) == [2]
    with_bias = cuda.plan_of(
        lambda a, b, c, d, e: [ops.matmul(a, b) + e, ops.matmul(c, d)], *same, tensor(32)
    )
    assert groups(with_bias.steps) == [] and calls(with_bias) == 2


@pytest.mark.parametrize(
    ("size", "grouped"), [(64, True), (128, True), (1024, False), (4096, False)]
)
def test_only_small_products_are_grouped(size: int, grouped: bool) -> None:
    args = [Tensor(np.zeros((size, size), np.float32)) for _ in range(8)]
    plan = cuda.plan_of(products(False, False), *args)
    assert (groups(plan.steps) == [4]) == grouped and calls(plan) == (0 if grouped else 4)


def test_a_launch_has_room_for_fifty() -> None:
    args = [tensor(16, 16) for _ in range(130)]
    assert groups(cuda.plan_of(products(False, False), *args).steps) == [50, 15]


def test_plans_can_be_without_them() -> None:
    fn, args, _ = experts(4, 24, 40, 30)
    before = cuda.plan_of(fn, *args)
    _core.weigh_cuda_plans(groups=False)
    try:
        plan = cuda.plan_of(fn, *args)
    finally:
        _core.weigh_cuda_plans()
    assert groups(plan.steps) == [] and calls(plan) == 12
    assert len(plan.steps) >= len(before.steps) + 9
    assert sum(s["flops"] for s in plan.steps) == sum(s["flops"] for s in before.steps)
    assert plan.bytes_moved == before.bytes_moved


def test_gates_in_the_body_of_a_loop(tmp_path: Any) -> None:
    """As a recurrent layer has them that was written gate by gate."""

    def run(h: Tensor, xs: Tensor, *ws: Tensor) -> Any:
        def step(state: Any, slices: Any) -> Any:
            i, f, o, g = (ops.matmul(state[0], w) + slices[0] for w in ws)
            c = ops.sigmoid(f) * state[1] + ops.sigmoid(i) * ops.tanh(g)
            y = ops.sigmoid(o) * ops.tanh(c)
            return [y, c], [y]

        last, kept = loop(step, [h, h], [xs], 5)
        return last[0], kept[0]

    args = [tensor(8, 32), tensor(5, 8, 32), *(tensor(32, 32) for _ in range(4))]
    _core.weigh_cuda_plans(loop_kernels=False)
    plan = cuda.plan_of(run, *args)
    _core.weigh_cuda_plans()
    assert groups(plan.steps) == [4]
    c = y = wide(args[0])
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    for x in wide(args[1]):
        i, f, o, g = (y @ wide(w) + x for w in args[2:])
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        y = sigmoid(o) * np.tanh(c)
    got = Batch([plan], tmp_path).run(0, threads=None)[0]
    np.testing.assert_allclose(got, y, rtol=2e-5, atol=2e-5)


@pytest.mark.one_in(40)
@pytest.mark.parametrize(("arch", "every"), WHERE_NONE_SPILLS)
def test_compiles_without_spills(arch: str, every: int, plans: Plans) -> None:
    assert that_spill(Kernels(list(plans.values())), arch, every) == {}


# Runs ----------------------------------------------------------------------------------------------------

RUNS = """
ms.set_context(device_target="GPU")
ws = [Parameter(tensor(24, 20), name=f"w{e}") for e in range(3)]
value = ms.value_and_grad(lambda *xs: sum(ops.sin(ops.matmul(x, w)).sum() for x, w in zip(xs, ws)), None, ws)
@ms.jit
def step(rate, *xs):
    found, slopes = value(*xs)
    for w, s in zip(ws, slopes): w.set_data(w - rate * s)
    return found
right = [w.asnumpy().astype(np.float64) for w in ws]
keep = []
for k in range(24):
    xs = [tensor(16, 24) for _ in ws]
    keep.append(xs)  # always at other addresses
    rate = 0.01 / (1 + k)
    got = float(step(rate, *xs))
    wide = [x.asnumpy().astype(np.float64) for x in xs]
    want = sum(np.sin(x @ w).sum() for x, w in zip(wide, right))
    right = [w - rate * (x.T @ np.cos(x @ w)) for x, w in zip(wide, right)]
    assert abs(got - want) < 1e-3, (k, got, want)
for w, r in zip(ws, right): np.testing.assert_allclose(w.asnumpy(), r, rtol=2e-5, atol=2e-5)
"""


def test_a_captured_run_finds_what_has_moved(process: Process) -> None:
    process.good(RUNS)
    counts = process.counts()
    assert counts["graphs"] >= 10 and counts["captures"] <= 6, counts


def test_each_buffer_an_allocation(process: Process) -> None:
    process.good(RUNS, GRADCELL_CUDA_EXACT_MEMORY="1")
