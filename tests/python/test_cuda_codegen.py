"""The CUDA planner's text and plans, with no GPU: golden text, NVRTC, and the kernels run as C++.

Every case below is recorded, its kernels compiled by a C++ compiler in one batch and run by one
thread and by a few, and its outputs compared with the CPU engine's.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda_emulation import Batch, Kernels, Nvrtc

import gradcell as ms
from gradcell import Tensor, _core, cuda

GOLDEN = pathlib.Path(__file__).parent / "golden"
core = _core.ops
rng = np.random.default_rng(7)


def tensor(*shape: int, dtype: str = "float32", low: float = -2.0, high: float = 2.0) -> Tensor:
    values = rng.uniform(low, high, shape)
    if dtype == "bool":
        return Tensor(values > 0)
    if dtype.startswith(("int", "uint")):
        values = np.round(values * 5)
    return core.cast(Tensor(values), getattr(_core, dtype))


def total(x: Tensor) -> Tensor:
    return core.reduce_sum(x, None, False)


def weighted(y: Tensor) -> Tensor:
    """A scalar that no symmetry makes simple."""
    n = y.size
    weights = Tensor(np.cos(np.arange(n, dtype=np.float64)).reshape(y.shape).astype(np.float32))
    return total(y * core.cast(weights, y.dtype))


# Cases -------------------------------------------------------------------------------------------

#: Where a row of the op table is well defined, if not on [-2, 2].
DOMAIN = {
    "acosh": (1.1, 3), "atanh": (-0.9, 0.9), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9),
    "log": (0.1, 3), "log2": (0.1, 3), "log10": (0.1, 3), "log1p": (-0.9, 3),
    "sqrt": (0.1, 3), "rsqrt": (0.1, 3), "pow": (0.2, 2), "reciprocal": (0.3, 3), "div": (0.3, 3),
    "mod": (0.3, 3), "floor_div": (0.3, 3), "tan": (-1.2, 1.2),
}  # fmt: skip
ROWS = [r for r in _core.op_table() if r["kind"] != "structured"]
KINDS = {"unary": 1, "predicate": 1, "binary": 2, "compare": 2, "ternary": 3}
BOOLEAN = {"logical_not", "logical_and", "logical_or", "logical_xor"}

Case = tuple[Callable[..., Any], tuple[Tensor, ...]]
CASES: dict[str, Case] = {}


def case(name: str, *arguments: Tensor) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        assert name not in CASES
        CASES[name] = (fn, arguments)
        return fn

    return add


def row_arguments(row: dict[str, Any], dtype: str, n: int = 11) -> tuple[Tensor, ...]:
    low, high = DOMAIN.get(row["function"], (-2, 2))
    count = KINDS[row["kind"]]
    if row["function"] in BOOLEAN:
        return tuple(tensor(n, dtype="bool") for _ in range(count))
    if row["kind"] == "ternary":
        return (tensor(n, dtype="bool"), tensor(n, dtype=dtype), tensor(n, dtype=dtype))
    if dtype.startswith("int") and row["function"] == "pow":
        return (tensor(n, dtype=dtype), tensor(n, dtype=dtype, low=0, high=1))
    return tuple(tensor(n, dtype=dtype, low=low, high=high) for _ in range(count))


def add_rows() -> None:
    for dtype in ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8"):
        for row in ROWS:
            if row["function"] in BOOLEAN and dtype != "float32":
                continue
            CASES[f"{row['name']} {dtype}"] = (
                getattr(core, row["function"]),
                row_arguments(row, dtype),
            )
    for dtype in ("float32", "float64"):
        for row in ROWS:
            if row["differentiable"]:
                CASES[f"{row['name']} {dtype} adjoints"] = (orders(row), row_arguments(row, dtype))


def orders(row: dict[str, Any]) -> Callable[..., Any]:
    """First and second adjoints with respect to the floating arguments."""
    op = getattr(core, row["function"])

    def both(*arguments: Tensor) -> Any:
        where = tuple(i for i, a in enumerate(arguments) if a.dtype.is_floating)
        first = ms.grad(lambda *a: weighted(op(*a)), where)

        def slope(*a: Tensor) -> Tensor:
            d = first(*a)
            return sum(
                (weighted(x * x + x) for x in (d if isinstance(d, tuple) else (d,))), start=0.0
            )

        return first(*arguments), ms.grad(slope, where)(*arguments)

    return both


add_rows()

SPECIAL = Tensor(
    np.array(
        [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 300.7, -129.4, 1e-40, 65520, 3e9],
        np.float32,
    )
)
for _to in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float64"):
    CASES[f"Cast float32 to {_to}"] = (
        lambda x, to=_to: core.cast(x, getattr(_core, to)),
        (SPECIAL,),
    )
    for _from in ("int32", "float64", "float16", "uint8", "bool"):
        if _from != _to:
            CASES[f"Cast {_from} to {_to}"] = (
                lambda x, to=_to: core.cast(x, getattr(_core, to)),
                (tensor(9, dtype=_from, low=-40, high=40),),
            )


@case("special values", SPECIAL)
def _(x: Tensor) -> Any:
    tests = [core.isnan(x), core.isinf(x), core.isfinite(x), x != x, x == x, x < 1.0]
    ends = [core.maximum(x, 0.5), core.minimum(x, 0.5), core.sign(x), core.relu(x)]
    return tests + ends + [core.floor(x), core.round(x)]


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    axis %= x.ndim
    e = core.exp(x - core.reduce_max(x, [axis], True))
    return e / core.reduce_sum(e, [axis], True)


def normalised(x: Tensor) -> Tensor:
    axes = [x.ndim - 1]
    centred = x - core.mean(x, axes, True)
    return centred * core.rsqrt(core.mean(centred * centred, axes, True) + 1e-5)


for _axis in (0, 1, 2):
    CASES[f"softmax over axis {_axis}"] = (lambda x, a=_axis: softmax(x, a), (tensor(3, 5, 4),))
    CASES[f"softmax over axis {_axis}, adjoints"] = (
        lambda x, a=_axis: (
            ms.grad(lambda y: weighted(softmax(y, a)))(x),
            ms.grad(lambda z: weighted(ms.grad(lambda y: weighted(softmax(y, a)))(z)))(x),
        ),
        (tensor(3, 5, 4),),
    )
CASES["layer norm"] = (normalised, (tensor(6, 9),))
CASES["layer norm, float16"] = (normalised, (tensor(6, 9, dtype="float16"),))
CASES["layer norm, adjoint"] = (ms.grad(lambda x: weighted(normalised(x))), (tensor(6, 9),))
CASES["layer norm of long rows"] = (normalised, (tensor(3, 3000),))

for _dtype in ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8"):
    for _op in ("reduce_sum", "reduce_max", "reduce_min"):
        for _axes in ([0], [1], [2], [0, 1], [1, 2], [0, 2], None):
            CASES[f"{_op} {_axes} {_dtype}"] = (
                lambda x, op=_op, axes=_axes: getattr(core, op)(x, axes, False),
                (tensor(3, 4, 5, dtype=_dtype),),
            )
for _axes in ([0], [1], None):
    CASES[f"long sums {_axes}"] = (
        lambda x, axes=_axes: [core.reduce_sum(x, axes, False), core.reduce_max(x, axes, False)],
        (tensor(3000, 7),),
    )
    CASES[f"long sums of long rows {_axes}"] = (
        lambda x, axes=_axes: [
            core.reduce_sum(x * x, axes, False),
            core.reduce_min(x, axes, False),
        ],
        (tensor(2, 70000),),
    )
CASES["maxima with ties, adjoint"] = (
    ms.grad(lambda x: weighted(core.reduce_max(core.round(x), [1], False) * 2.0)),
    (tensor(4, 9),),
)
for _name, _axis in (("argmax", 0), ("argmax", 1), ("argmin", 1), ("argmin", 2)):
    CASES[f"{_name} {_axis}"] = (
        lambda x, n=_name, a=_axis: getattr(core, n)(core.round(x), a, False),
        (tensor(3, 7, 4),),
    )
CASES["argmax with NaN"] = (lambda x: core.argmax(core.reshape(x, [3, 4]), 1, False), (SPECIAL,))
CASES["argmax of a long axis"] = (lambda x: core.argmax(x, 0, False), (tensor(1000),))
for _axis in (0, 1):
    for _exclusive in (False, True):
        for _reverse in (False, True):
            CASES[f"cumsum {_axis} {_exclusive} {_reverse}"] = (
                lambda x, a=_axis, e=_exclusive, r=_reverse: core.cumsum(x * 2.0, a, e, r),
                (tensor(4, 5),),
            )

X345 = tensor(3, 4, 5)
MOVES: dict[str, Callable[[Tensor], Tensor]] = {
    "transpose 210": lambda x: core.transpose(x, [2, 1, 0]),
    "transpose 021": lambda x: core.transpose(x, [0, 2, 1]),
    "transpose 102": lambda x: core.transpose(x, [1, 0, 2]),
    "reshape": lambda x: core.reshape(x, [6, 10]),
    "slice": lambda x: core.slice(x, [0, 1, 0], [3, 2, 5], [1, 1, 1]),
    "slice with steps": lambda x: core.slice(x, [0, 1, 4], [2, 2, 3], [2, 2, -2]),
    "slice of features": lambda x: core.slice(x, [0, 0, 1], [3, 4, 2], [1, 1, 2]),
    "broadcast": lambda x: core.broadcast_to(core.reduce_sum(x, [1], True), [3, 4, 5]),
    "broadcast to more axes": lambda x: core.broadcast_to(x, [2, 3, 4, 5]),
    "concat 0": lambda x: core.concat([x, x * 2.0], 0),
    "concat 1": lambda x: core.concat([x, core.slice(x, [0, 0, 0], [3, 1, 5], [1, 1, 1]), -x], 1),
    "concat 2": lambda x: core.concat([core.sin(x), x], 2),
    "slice of transpose": lambda x: core.slice(
        core.transpose(x, [2, 0, 1]), [1, 0, 0], [2, 3, 4], [1, 1, 1]
    ),
    "transpose and add": lambda x: core.transpose(x, [0, 2, 1]) + core.reshape(x, [3, 5, 4]),
    "softmax and slice": lambda x: core.slice(softmax(x), [0, 0, 1], [3, 4, 2], [1, 1, 1]),
    "concat of softmax": lambda x: core.concat([softmax(x), x], 2),
    "softmax of concat": lambda x: softmax(core.concat([x, x * x], 2)),
    "softmax and transpose": lambda x: core.transpose(softmax(x), [1, 0, 2]),
}
for _name, _move in MOVES.items():
    CASES[_name] = (_move, (X345,))
    CASES[f"{_name}, adjoint"] = (ms.grad(lambda x, m=_move: weighted(core.sin(m(x)))), (X345,))
for _dtype in ("float16", "int8", "bool", "int64"):
    CASES[f"movement of {_dtype}"] = (
        lambda x: [core.transpose(x, [1, 0, 2]), core.concat([x, x], 1)],
        (tensor(3, 4, 5, dtype=_dtype),),
    )

INDICES = Tensor(np.array([[0, 3, -1], [2, 2, 0]], np.int32))
for _axis in (0, 1, 2):
    CASES[f"gather {_axis}"] = (
        lambda x, i, a=_axis: core.gather(x, i, a),
        (tensor(4, 4, 4), INDICES),
    )
    CASES[f"gather {_axis}, adjoints"] = (
        lambda x, i, a=_axis: ms.grad(lambda y: weighted(core.sin(core.gather(y * y, i, a))))(x),
        (tensor(4, 4, 4), INDICES),
    )
CASES["scatter_add float16"] = (
    lambda i, u: core.scatter_add(i, u, 0, 5),
    (INDICES, tensor(2, 3, 6, dtype="float16")),
)
CASES["scatter_add int32"] = (
    lambda i, u: core.scatter_add(i, u, 0, 5),
    (INDICES, tensor(2, 3, 6, dtype="int32")),
)
STATE = Tensor(np.array([123456789012345, 77], np.int64))
CASES["random"] = (lambda s: core.random_uniform(s, [5, 7]), (STATE,))
CASES["dropout"] = (
    lambda x, s: core.where(core.random_uniform(s, [4, 6]) < 0.5, x, 0.0) * 2.0,
    (tensor(4, 6), STATE),
)
CASES["iota"] = (
    lambda x: [core.iota([3, 4], _core.int32, 1), x * core.iota([3, 4], _core.float32, 0)],
    (tensor(3, 4),),
)
CASES["constants"] = (
    lambda x: [core.full([2, 3], 1.5, _core.float16), core.full([], 3, _core.int64)],
    (X345,),
)

for _dtype in ("float32", "float64", "float16", "bfloat16", "int32"):
    for _ta in (False, True):
        for _tb in (False, True):
            CASES[f"matmul {_dtype} {_ta} {_tb}"] = (
                lambda a, b, ta=_ta, tb=_tb: core.tanh(core.matmul(a, b, ta, tb)) * 2.0,
                (tensor(*((6, 5) if _ta else (5, 6)), dtype=_dtype),
                 tensor(*((4, 6) if _tb else (6, 4)), dtype=_dtype)),
            )  # fmt: skip
CASES["matmul, batched"] = (
    lambda a, b: core.matmul(a, b),
    (tensor(3, 2, 5, 6), tensor(3, 2, 6, 4)),
)
CASES["matmul of constants"] = (
    lambda a: core.matmul(a, core.full([6, 2], 0.5, _core.float32)),
    (tensor(5, 6),),
)


def network(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    h = core.tanh(core.matmul(x, w1) + b1)
    return core.matmul(h, w2) + b2


WEIGHTS = (tensor(2, 8), tensor(8), tensor(8, 1), tensor(1))


def pinn_loss(x: Tensor, *weights: Tensor) -> Tensor:
    """u_xx + u_tt + sin(u) at every point, squared and averaged."""
    first = ms.grad(lambda p: total(network(p, *weights)))
    gradient = first(x)
    residual = core.sin(network(x, *weights))
    for k in range(2):
        seed = [0, k], [x.shape[0], 1], [1, 1]
        second = ms.grad(lambda p, s=seed: total(core.slice(first(p), *s)))(x)
        residual = residual + core.slice(second, *seed)
    return core.mean(residual * residual, None, False) + core.mean(gradient, None, False) * 0.0


def pinn_step(x: Tensor, *weights: Tensor) -> Any:
    loss, gradients = ms.value_and_grad(pinn_loss, tuple(range(1, 5)))(x, *weights)
    return loss, [w - 0.01 * g for w, g in zip(weights, gradients, strict=True)]


def loss_scale_step(x: Tensor, target: Tensor, scale: Tensor, *weights: Tensor) -> Any:
    """A mixed-precision step: scaled loss, overflow check, update by select, new scale."""

    def loss(*w: Tensor) -> Tensor:
        half = [core.cast(v, _core.float16) for v in w]
        y = core.cast(network(core.cast(x, _core.float16), *half), _core.float32)
        return core.mean((y - target) * (y - target), None, False) * scale

    value, gradients = ms.value_and_grad(loss, tuple(range(4)))(*weights)
    finite = None
    for g in gradients:
        good = core.reduce_min(core.cast(core.isfinite(g), _core.int32), None, False)
        finite = good if finite is None else core.minimum(finite, good)
    ok = finite > 0
    updated = [
        core.where(core.broadcast_to(ok, list(w.shape)), w - 0.01 * (g / scale), w)
        for w, g in zip(weights, gradients, strict=True)
    ]
    return value / scale, core.where(ok, scale * 2.0, scale * 0.5), updated


CASES["PINN step"] = (pinn_step, (tensor(50, 2), *WEIGHTS))
CASES["loss-scale step"] = (
    loss_scale_step,
    (tensor(40, 2), tensor(40, 1), Tensor(np.float32(1024)), *WEIGHTS),
)
CASES["loss-scale step that overflows"] = (
    loss_scale_step,
    (tensor(40, 2), tensor(40, 1), Tensor(np.float32(3e38)), *WEIGHTS),
)

TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-12}


# Running -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plans() -> dict[str, Any]:
    return {name: cuda.plan_of(fn, *args) for name, (fn, args) in CASES.items()}


@pytest.fixture(scope="module")
def batch(plans: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Batch:
    return Batch(list(plans.values()), tmp_path_factory.mktemp("kernels"))


def compare(name: str, got: list[np.ndarray], want: list[Tensor]) -> None:
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        expected, dtype = w.asnumpy(), w.dtype.name
        assert g.shape == expected.shape
        if dtype not in TOLERANCE:
            np.testing.assert_array_equal(g, expected, err_msg=name)
            continue
        tolerance = TOLERANCE[dtype]
        finite = np.abs(expected[np.isfinite(expected)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        np.testing.assert_allclose(
            g, expected, rtol=tolerance, atol=tolerance * scale, err_msg=name
        )


@pytest.mark.parametrize("name", CASES)
def test_the_text_as_cpp_agrees_with_the_cpu_engine(name: str, batch: Batch) -> None:
    fn, arguments = CASES[name]
    want = ms.tree.leaves(fn(*arguments))
    number = list(CASES).index(name)
    compare(name, batch.run(number), want)
    compare(name, batch.run(number, aligned=False, grid=3), want)


THREADED = [
    n
    for n in CASES
    if n.startswith(("softmax", "layer", "long", "arg", "reduce_m", "PINN", "loss"))
]


@pytest.mark.parametrize("name", THREADED)
def test_a_few_threads_agree_with_one(name: str, batch: Batch) -> None:
    fn, arguments = CASES[name]
    want = ms.tree.leaves(fn(*arguments))
    number = list(CASES).index(name)
    compare(name, batch.run(number, threads=(4, 2), grid=2), want)
    if name.startswith(("layer", "long", "arg")):
        compare(name, batch.run(number, threads=(64, 1)), want)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_every_kernel_compiles(arch: str, plans: dict[str, Any]) -> None:
    assert Nvrtc().compile(Kernels(list(plans.values())).source(), arch)


def test_an_index_out_of_range_is_flagged(tmp_path: pathlib.Path) -> None:
    plan = cuda.plan_of(
        lambda x, i: core.gather(x, i, 0), tensor(4), Tensor(np.array([1, 4], np.int32))
    )
    with pytest.raises(IndexError):
        Batch([plan], tmp_path).run(0)


# The plan ----------------------------------------------------------------------------------------


def test_no_headers_and_no_sizes_in_the_text(plans: dict[str, Any]) -> None:
    first = cuda.plan_of(softmax, tensor(3, 5))
    second = cuda.plan_of(softmax, tensor(100, 1000))
    assert first.kernels == second.kernels
    for plan in plans.values():
        for _, text in plan.kernels:
            assert "#include" not in text


def test_constants_are_arguments() -> None:
    x = tensor(5)
    assert cuda.plan_of(lambda y: y * 2.0, x).kernels == cuda.plan_of(lambda y: y * 3.0, x).kernels


def test_equal_kernels_are_one() -> None:
    plan = cuda.plan_of(lambda a, b: [core.sin(a), core.sin(b)], tensor(5), tensor(9))
    assert len(plan.kernels) == 1
    assert len(plan.steps) == 2


def test_softmax_and_its_gradient_are_one_kernel() -> None:
    x = tensor(64, 10)
    assert len(cuda.plan_of(softmax, x).steps) == 1
    gradient = cuda.plan_of(ms.grad(lambda y: total(softmax(y) * core.sin(y))), x)
    assert len(gradient.steps) == 1
    assert gradient.bytes_moved == 2 * 64 * 10 * 4


def test_a_chain_moves_its_input_and_its_output() -> None:
    plan = cuda.plan_of(lambda x: core.tanh(core.sin(x) * core.exp(-x * x) + x), tensor(1000))
    assert len(plan.steps) == 1
    assert plan.bytes_moved == 8000


def test_more_outputs_than_a_kernel_can_have() -> None:
    plan = cuda.plan_of(lambda x: [core.sin(x * float(k)) for k in range(100)], tensor(7))
    assert len(plan.steps) == 4


def test_empty_tensors_need_no_launch() -> None:
    assert cuda.plan_of(core.sin, Tensor(np.zeros((0, 3), np.float32))).steps == []


def test_inspect_prints_kernels_and_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    cuda.inspect(softmax, tensor(3, 4))
    out = capsys.readouterr().out
    assert 'extern "C" __global__ void gc_reduce_max_exp_reduce_sum_div_0' in out
    assert "1 launches of 1 kernels" in out


def test_a_plan_leaves_parameters_alone() -> None:
    p = ms.Parameter(tensor(3), name="p")
    before = p.asnumpy().copy()

    def step(x: Tensor) -> Tensor:
        p.set_data(p + x)
        return total(p)

    plan = cuda.plan_of(step, tensor(3))
    assert len(plan.raw["outputs"]) == 2
    np.testing.assert_array_equal(p.asnumpy(), before)


# Golden text -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["elementwise", "softmax", "softmax_gradient", "pinn_step", "loss_scale_step"]
)
def test_golden_text(name: str) -> None:
    graphs: dict[str, Case] = {
        "elementwise": (lambda x, y: core.sin(x) * y + 2.0, (tensor(1000), tensor(1000))),
        "softmax": (softmax, (tensor(64, 10),)),
        "softmax_gradient": (ms.grad(lambda y: total(softmax(y) * core.sin(y))), (tensor(64, 10),)),
        "pinn_step": CASES["PINN step"],
        "loss_scale_step": CASES["loss-scale step"],
    }
    fn, arguments = graphs[name]
    text = str(cuda.plan_of(fn, *arguments)) + "\n"
    file = GOLDEN / f"{name}.cu.txt"
    if os.environ.get("GRADCELL_UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text(), "run with GRADCELL_UPDATE_GOLDEN=1 and read the difference"
