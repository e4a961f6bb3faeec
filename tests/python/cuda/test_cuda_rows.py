"""What kernels of rows take over on a GPU: products by a column or two, transposed operands, small kernels
of other sizes. Their text, run as C++ by several threads a block, against NumPy in float64; and how
many launches, products and bytes there are."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cuda_emulation import Batch, Kernels, Nvrtc, chosen
from made_up_gpu import Process
from network_cases import burgers_step, norms, tensor

import gradcell as ms
from gradcell import Tensor, _core, cuda, nn, ops

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

core = _core.ops
#: By name: what is planned, its arguments, NumPy's results, and what a launch is worth then.
CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...], list[np.ndarray], float]] = {}
DEFAULT = float(2 << 20)


def exact(x: Tensor) -> np.ndarray:
    return x.astype(ms.float64).asnumpy()


def add(name: str, fn: Any, arguments: Any, want: Any, launch: float = DEFAULT) -> None:
    CASES[name] = (fn, tuple(arguments), [np.asarray(w, np.float64) for w in want], launch)


# Products by a column or two ---------------------------------------------------------------------


def sine(x: Tensor) -> Tensor:
    return ops.sin(x)


def narrow(shape: tuple[int, int, int], ta: bool, tb: bool, dtype: Any, leading: int) -> None:
    """sin(a) b c, with something in the kernels before and behind."""
    m, n, k = shape
    lead = (1,) * leading
    a = tensor(*lead, *((k, m) if ta else (m, k))).astype(dtype)
    b = tensor(*lead, *((n, k) if tb else (k, n))).astype(dtype)

    def fn(a: Tensor, b: Tensor) -> Any:
        a, b = (ops.sin(a), b) if n <= m else (a, ops.sin(b))
        return core.matmul(a, b, ta, tb) * 2.0 + 1.0

    x, y = exact(a), exact(b)
    x, y = (np.sin(x), y) if n <= m else (x, np.sin(y))
    x, y = (v.swapaxes(-1, -2) if t else v for v, t in ((x, ta), (y, tb)))
    add(f"{shape} {ta} {tb} {dtype} {leading}", fn, (a, b), [(x @ y) * 2 + 1], 0.0)


SHAPES = ((40, 1, 9), (33, 2, 12), (1, 40, 9), (2, 33, 12))
for _shape, _ta, _tb in itertools.product(SHAPES, (False, True), (False, True)):
    narrow(_shape, _ta, _tb, ms.float32, 0)
for _dtype, (_ta, _tb) in zip(
    (ms.float64, ms.float16, ms.bfloat16),
    ((False, True), (True, False), (False, False)),
    strict=True,
):
    narrow((34, 2, 8), _ta, _tb, _dtype, 1)
narrow((40, 1, 3000), False, False, ms.float32, 0)  # rows that several warps share


def sums(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Any:
    return ops.sin(ops.matmul(ops.sin(a), b) + ops.matmul(ops.sin(c), d))


for _n, _k in ((1, 7), (2, 12)):  # two products over as many terms, or over others
    _all = (tensor(36, 7), tensor(7, _n), tensor(36, _k), tensor(_k, _n))
    _a, _b, _c, _d = map(exact, _all)
    add(f"sums {_n} {_k}", sums, _all, [np.sin(np.sin(_a) @ _b + np.sin(_c) @ _d)], 0.0)


def last_layer(x: Tensor, w: Tensor, v: Tensor) -> Any:
    """A network's last layer of one output, and the gradients of all."""

    def loss(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        return ops.square(ops.matmul(ops.sin(ops.matmul(x, w)), v)).sum()

    return ms.value_and_grad(loss, (0, 1, 2))(x, w, v)


def last_layer_values(x: np.ndarray, w: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    h = np.sin(x @ w)
    y = h @ v
    dh = 2 * y @ v.T * np.cos(x @ w)
    return [(y * y).sum(), dh @ w.T, x.T @ dh, h.T @ (2 * y)]


_all = (tensor(70, 9), tensor(9, 132), tensor(132, 1))
add("last layer", last_layer, _all, last_layer_values(*map(exact, _all)))

# Transposed operands -----------------------------------------------------------------------------


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def across(shape: tuple[int, ...], order: tuple[int, ...], launch: float, dtype: Any) -> None:
    x = tensor(*shape).astype(dtype)
    y = tensor(*(shape[k] for k in order)).astype(dtype)
    z = exact(x).transpose(order) * 2 + exact(y)
    want = [softmax(z), (z * z).sum(-1), *([z.sum()] if launch == 0 else [])]

    def fn(x: Tensor, y: Tensor) -> Any:
        z = ops.transpose(x * 2, order) + y
        rows = ops.softmax(z, -1), core.reduce_sum(z * z, [len(order) - 1], False)
        return (*rows, z.sum()) if launch == 0 else rows

    add(f"{shape} by {order}, {launch}, {dtype}", fn, (x, y), want, launch)


across((40, 36), (1, 0), 0.0, ms.float32)  # a launch of its own before
across((33, 50), (1, 0), 0.0, ms.float64)
across((3, 20, 33), (0, 2, 1), 0.0, ms.float32)
across((20, 1 << 14), (1, 0), DEFAULT, ms.float32)  # rows enough: eight a warp
across((17, 1 << 14), (1, 0), DEFAULT, ms.float16)

# Small kernels of other sizes --------------------------------------------------------------------


def recurrent(kind: str, rows: int) -> None:
    layer = getattr(nn, kind)(6, 8)
    x = tensor(3, rows, 6)

    def fn(x: Tensor) -> Any:
        return ms.value_and_grad(
            lambda x: ops.square(layer(x)[0]).sum(), 0, layer.trainable_params()
        )(x)

    value, (dx, dw) = fn(x)
    add(f"{kind}, {rows}", fn, (x,), [exact(t) for t in (value, dx, *dw)])


for _kind, _rows in (("LSTM", 8), ("GRU", 8), ("GRU", 12)):
    recurrent(_kind, _rows)

# Products that add a matrix ----------------------------------------------------------------------


def added(name: str, fn: Callable[..., Any], *arguments: Tensor) -> None:
    """fn(np or ms's matmul and sine, arguments)."""
    values = [exact(a) for a in arguments]
    add(
        f"added {name}",
        lambda *xs: fn(ops.matmul, ops.sin, *xs),
        arguments,
        [fn(np.matmul, np.sin, *values)],
    )


_x, _w, _y = tensor(20, 9), tensor(9, 12), tensor(20, 12)
added("input", lambda mul, sin, x, w, y: mul(x, w) + y, _x, _w, _y)
added("computed", lambda mul, sin, x, w, y: sin(y) * 2.0 + mul(sin(x), w), _x, _w, _y)
added("twice", lambda mul, sin, x, w, y: mul(sin(mul(x, w) + y), w.T) + x, _x, _w, _y)
added(
    "sums",
    lambda mul, sin, x, w, y: mul(sin(x).T, sin(y)) + mul((x * x).T, y * y) + w,
    *(tensor(20, 9), tensor(9, 12), tensor(20, 12)),
)
for _dtype in (ms.float64, ms.float16, ms.bfloat16):
    added(
        str(_dtype),
        lambda mul, sin, x, w, y: mul(x, w) + y,
        *(t.astype(_dtype) for t in (_x, _w, _y)),
    )


# Rows in registers, where there is much in them ---------------------------------------------------


def normed(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def slopes(x: np.ndarray) -> np.ndarray:
    """Of the sum of a softmax's products with the sine of its operand."""
    y, s = softmax(x), np.sin(x)
    return y * (s - (y * s).sum(-1, keepdims=True)) + y * np.cos(x)


def held(name: str, rows: int, length: int, dtype: Any = ms.float32) -> None:
    x, w = tensor(rows, length).astype(dtype), tensor(length).astype(dtype)
    z, weight = exact(x), exact(w)
    add(f"held softmax {name}", lambda x: ops.softmax(x, -1), (x,), [softmax(z)])
    add(
        f"held norm {name}",
        lambda x, w: ops.layer_norm(x, (length,), w, w, 1e-5),
        (x, w),
        [normed(z) * weight + weight],
    )
    add(
        f"held slopes {name}",
        ms.grad(lambda x: (ops.softmax(x, -1) * ops.sin(x)).sum()),
        (x,),
        [slopes(z)],
    )


held("of a warp", 8192, 32)
held("of a warp, eight fours", 8200, 36 * 4)
held("of some warps", 300, 1000)
held("of more than a warp holds", 8192, 1028)
held("of a block", 64, 4 * 2200)
held("float64", 300, 1000, ms.float64)
held("float16", 300, 1000, ms.float16)


@pytest.fixture(scope="module")
def plans() -> Iterator[dict[str, Any]]:
    found = {}
    for name, (fn, arguments, _, launch) in CASES.items():
        _core.weigh_cuda_plans(launch=launch)
        try:
            found[name] = cuda.plan_of(fn, *arguments)
        finally:
            _core.weigh_cuda_plans()
    yield found


@pytest.fixture(scope="module")
def batch(
    plans: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Batch:
    return Batch(chosen(request, plans), tmp_path_factory.mktemp("rows"))


def agrees(name: str, found: list[np.ndarray]) -> None:
    _, arguments, want, _ = CASES[name]
    worst = 2e-2 if any(a.dtype in (ms.float16, ms.bfloat16) for a in arguments) else 2e-4
    for got, reference in zip(found, want, strict=False):
        got = got.astype(np.float64)
        assert got.size == reference.size
        scale = np.abs(reference).max()
        assert np.abs(got.reshape(reference.shape) - reference).max() <= worst * scale, name


@pytest.mark.one_in(48)
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_numpy(name: str, plans: dict[str, Any], batch: Batch) -> None:
    number = list(CASES).index(name)
    for threads in ((1, 1), (4, 8), None):
        agrees(name, batch.run(number, threads=threads, grid=3, aligned=threads == (1, 1)))


def test_products_by_a_column_or_two_are_reductions(plans: dict[str, Any]) -> None:
    """Where that moves less: two sums over rows would compute the sine twice."""
    for name, plan in plans.items():
        if not name.startswith(("(3", "(4", "(1,", "(2,", "sums")) or " by " in name:
            continue
        over = r"\(3\d, 2, \d+\) True|\(2, 33, 12\) \w+ False"
        assert plan.products == 0 or re.match(over, name), name
    assert plans["(33, 2, 12) True False Float32 0"].products == 1


def test_long_rows_are_read_once_and_their_exponentials_kept(plans: dict[str, Any]) -> None:
    for name, plan in plans.items():
        if not name.startswith("held"):
            continue
        ((_, text),) = plan.kernels
        assert " h_p0[" in text and text.count("gc_load(p0") == 1, name
        if "norm" not in name:
            assert text.count("= exp(") == 1, name
    few = cuda.plan_of(lambda x: ops.softmax(x, -1), tensor(200, 1000))
    assert "h_p0" not in few.kernels[0][1]  # the text that other sizes have


def kernels(plan: Any, what: str) -> list[dict[str, Any]]:
    text = dict(plan.kernels)
    return [s for s in plan.steps if "kernel" in s and what in text[s["kernel"]]]


def test_what_few_rows_need_transposed_is_transposed_before(plans: dict[str, Any]) -> None:
    for name, plan in plans.items():
        if " by " not in name:
            continue
        if CASES[name][3] == 0:
            assert len(kernels(plan, "__shared__ float tile0")) == 1 or "Float64" in name, name
        else:
            assert kernels(plan, " tile0[") == [], name
            blocks = {tuple(s["block"]) for s in kernels(plan, "gc_across")}
            assert (4, 64) in blocks, name
    few = cuda.plan_of(lambda x: ops.softmax(x.T, -1), tensor(1024, 1024))
    assert few.launches == 2 and few.bytes_moved == 4 * 4 * 1024 * 1024


def test_the_loss_of_a_network_is_one_kernel() -> None:
    """Of Burgers' equation: both streams' last layer, the loss's slope and its adjoint."""
    fn, arguments = burgers_step([128] * 4, 1_000_000)
    plan = cuda.plan_of(fn, *arguments)
    assert (plan.launches, plan.products) == (38, 30)  # were 38 and 32
    assert 77.4e9 < plan.bytes_moved < 77.5e9  # were 78.5e9
    assert not any(
        "matmul" in s and s["matmul"]["n"] == 1 and s["matmul"]["k"] == 128 for s in plan.steps
    )


@pytest.mark.parametrize(("kind", "launches"), [("LSTM", (311, 210)), ("GRU", (311, 210))])
def test_a_recurrent_step_has_fewer_launches(kind: str, launches: tuple[int, int]) -> None:
    """One of 100 steps, 64 to 128, a batch of 32, with Adam: launches before and now, where its loops are no
    kernels."""
    layer = getattr(nn, kind)(64, 128)
    optimizer = nn.Adam(layer.trainable_params(), 1e-3)
    slope = ms.value_and_grad(lambda x: ops.square(layer(x)[0]).mean(), None, optimizer.parameters)

    def step(x: Tensor) -> Tensor:
        value, gradients = slope(x)
        optimizer(gradients)
        return value

    _core.weigh_cuda_plans(loop_kernels=False)
    plan = cuda.plan_of(step, tensor(100, 32, 64))
    _core.weigh_cuda_plans()
    assert plan.launches == launches[1] < launches[0]
    assert plan.products == 203


def test_products_add_matrices(plans: dict[str, Any]) -> None:
    for name, plan in plans.items():
        if name.startswith("added"):
            found = [s["matmul"] for s in plan.steps if "matmul" in s]
            assert sum("addend" in m for m in found) == 1, name
    assert plans["added input"].launches == 0
    assert plans["added twice"].launches == 1
    joined = plans["added sums"]
    assert [len(s["matmul"]["a_parts"]) for s in joined.steps if "matmul" in s] == [2]


def test_the_library_adds_matrices(process: Process) -> None:
    """On the made-up GPU, in graphs."""
    process.good(
        """
ms.set_context(device_target="GPU")
def layers(x, w, y): return ops.matmul(ops.sin(ops.matmul(x, w) + y), w.T) + x
for dtype, tolerance in ((np.float32, 1e-5), (np.float64, 1e-13), (np.float16, 2e-2)):
    x, w, y = (rng.standard_normal(s).astype(dtype) for s in ((5, 7), (7, 6), (5, 6)))
    f = ms.jit(layers)
    given = [Tensor(v) for v in (x, w, y)]
    for _ in range(4): got = f(*given).asnumpy()
    want = np.sin(x.astype(float) @ w + y) @ w.T.astype(float) + x
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=10 * tolerance)
"""
    )
    counts = process.counts()
    assert counts["products"] == 2 * counts["additions"] == 3 * 4 * 2
    assert counts["graphs"] > 0


@pytest.mark.parametrize(
    ("launch", "instructions"), list(itertools.product((0.5, 1.0, 2.0), (0.5, 1.0, 2.0)))
)
def test_plans_change_little_with_what_is_weighed(launch: float, instructions: float) -> None:
    """At half or twice what a launch and an instruction are taken to cost: the steps of docs/cuda-kernels.md
    move as much within 2 %, and have at most four launches and products more or fewer."""
    cases = {
        "4 x 128": burgers_step([128] * 4, 10_000),
        "a million": burgers_step([128] * 4, 1_000_000),
        "8 x 256": burgers_step([256] * 8, 1000),
        "norms": norms(4096, 256, 1),
        "second order": norms(4096, 256, 2),
    }
    for name, (fn, arguments) in cases.items():
        plan = cuda.plan_of(fn, *arguments)
        _core.weigh_cuda_plans(launch=launch * DEFAULT, instructions=8 * instructions)
        try:
            other = cuda.plan_of(fn, *arguments)
        finally:
            _core.weigh_cuda_plans()
        assert abs(other.bytes_moved / plan.bytes_moved - 1) < 0.02, name
        assert abs(other.launches + other.products - plan.launches - plan.products) <= 4, name


@pytest.mark.one_in(32)
@pytest.mark.parametrize(
    "arch",
    [*(pytest.param(a, marks=pytest.mark.slow) for a in ("sm_75", "sm_80", "sm_100")), "sm_90"],
)
def test_none_spills(arch: str, plans: dict[str, Any]) -> None:
    few = [plan for name, plan in plans.items() if not name.startswith("(")]
    few += [
        plans["(33, 2, 12) False False Float32 0"],
        plans["(40, 1, 3000) False False Float32 0"],
    ]
    usage = Nvrtc().usage(Kernels(few).source(), arch)
    assert {name: of for name, of in usage.items() if of.spilled} == {}


def test_kernels_may_use_the_registers_of_the_threads_they_have() -> None:
    """Elementwise kernels have 256 threads: bound to 512, long ones of float64 spilled registers."""
    several = cuda.plan_of(lambda *xs: [ops.exp(x) * 2.0 for x in xs], tensor(7), tensor(300))
    for plan in (cuda.plan_of(ops.sin, tensor(1000)), several):
        assert [tuple(s["block"]) for s in plan.steps] == [(256, 1)]
        assert "__launch_bounds__(256, 1)" in plan.kernels[0][1]
