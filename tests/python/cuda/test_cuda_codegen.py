"""The CUDA planner's text and plans, with no GPU: golden text, NVRTC, and the kernels run as C++.

Every case below is recorded, its kernels compiled by a C++ compiler in one batch and run by one
thread and by a few, and its outputs compared with the CPU engine's. Both are compared with an interpreter in
NumPy, which shares no rewriting and no function with them.
"""

from __future__ import annotations

import os
import pathlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from cuda_cases import CASES, compare, compare_with_interpreter
from cuda_emulation import WHERE_NONE_SPILLS, Batch, Kernels, Nvrtc, Plans, chosen, that_spill
from cuda_network_cases import ODD_SHAPES, adam, filled
from cuda_op_cases import BIASES, Case, softmax, tensor, total
from graph_interpreter import numbers_of

import gradcell as ms
from gradcell import Tensor, _core, cuda
from gradcell.base import tree

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
core = _core.ops


# Running -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plans() -> Plans:
    return Plans(CASES, lambda name: cuda.plan_of(CASES[name][0], *CASES[name][1]))


@pytest.fixture(scope="module")
def drawn(plans: Plans, request: pytest.FixtureRequest) -> list[Any]:
    return chosen(request, plans)


@pytest.fixture(scope="module")
def batch(drawn: list[Any], tmp_path_factory: pytest.TempPathFactory) -> Batch:
    return Batch(drawn, tmp_path_factory.mktemp("kernels"))


@pytest.mark.one_in(96)
@pytest.mark.parametrize("name", CASES)
def test_the_text_as_cpp_agrees_with_the_cpu_engine(name: str, batch: Batch) -> None:
    fn, arguments = CASES[name]
    want = tree.leaves(fn(*arguments))
    number = list(CASES).index(name)
    # A plan has what the function assigns to parameters too.
    got = batch.run(number)[: len(want)]
    compare(name, got, want)
    compare_with_interpreter(name, got)
    compare_with_interpreter(name, [numbers_of(t) for t in want])
    compare(name, batch.run(number, aligned=False, grid=3)[: len(want)], want)
    compare(name, batch.run(number, threads=None, grid=3)[: len(want)], want)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_order_of_threads_and_blocks_is_free(name: str, batch: Batch) -> None:
    fn, arguments = CASES[name]
    want, number = tree.leaves(fn(*arguments)), list(CASES).index(name)
    for order in (0, 1, 1001, 1002):
        compare(name, batch.run(number, threads=None, grid=3, order=order)[: len(want)], want)


#: With two warps a row.
TWO_WARPS = (
    "layer norm of long rows", "argmax of a long axis", "long sums of long rows [1]",
    "recurrence of (3, 1100) along 1 False False", "recurrence of (1000,) along 0 True True",
)  # fmt: skip
THREADED = [
    n
    for n in CASES
    if n.startswith(
        (
            "softmax",
            "layer",
            "long",
            "arg",
            "arrays",
            "reduce_m",
            "PINN",
            "MLP",
            "loss",
            "cum",
            "recur",
        )
    )
    and n != "long sums [1]"  # 3000 rows: as many barriers as the rest together
]


@pytest.mark.one_in(96)
@pytest.mark.parametrize("name", THREADED)
def test_a_few_threads_agree_with_one(name: str, batch: Batch) -> None:
    fn, arguments = CASES[name]
    want = tree.leaves(fn(*arguments))
    number = list(CASES).index(name)
    compare(name, batch.run(number, threads=(4, 2), grid=2)[: len(want)], want)
    if name in TWO_WARPS:
        compare(name, batch.run(number, threads=(64, 1))[: len(want)], want)


ARCHITECTURES = ("sm_75", "sm_80", "sm_100", "sm_90")


@pytest.mark.slow
def test_every_kernel_compiles(plans: Plans) -> None:
    kernels, nvrtc = Kernels(list(plans.values())), Nvrtc()
    begins = range(0, len(kernels.texts), 100)
    parts = [(kernels.source(b, b + 100), a, True) for b in begins for a in ARCHITECTURES[:-1]]
    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(lambda part: nvrtc.compile(*part), parts))


@pytest.mark.parametrize(("arch", "every"), WHERE_NONE_SPILLS)
def test_no_kernel_spills_registers(arch: str, every: int, drawn: list[Any]) -> None:
    """As the engine has them compiled. (A stack frame alone is an array of a library function's.)"""
    assert that_spill(Kernels(drawn), arch, every) == {}


WIDE = [
    n
    for n in CASES
    if n.startswith(("softmax", "gather", "slice", "concat", "random", "PINN", "arrays"))
]


@pytest.fixture(scope="module")
def wide_batch(
    plans: Plans, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Batch:
    return Batch(chosen(request, plans), tmp_path_factory.mktemp("wide"), wide=True)


@pytest.mark.one_in(48)
@pytest.mark.parametrize("name", WIDE)
def test_the_same_with_64_bit_indices(name: str, wide_batch: Batch) -> None:
    fn, arguments = CASES[name]
    want = tree.leaves(fn(*arguments))
    compare(name, wide_batch.run(list(CASES).index(name))[: len(want)], want)


def test_more_elements_than_32_bits_can_count() -> None:
    x = tensor(1, 1)
    side = [1 << 17, 1 << 17]

    def far(y: Tensor) -> Tensor:
        places = core.iota(side, _core.float32, 0)
        return core.reduce_sum(core.sin(core.broadcast_to(y, side) * places), [1], False)

    plan = cuda.plan_of(far, x)
    assert "typedef long long gc_index" in plan.raw["prelude"]
    assert Nvrtc().compile(plan.source, "sm_90")


def test_the_place_of_an_extreme_beyond_32_bits() -> None:
    x = Tensor.from_numpy(np.zeros((1 << 31) + 5, np.int8))  # of which nobody touches a page
    plan = cuda.plan_of(lambda y: core.argmax(y, 0, False), x)
    assert "(long long)s.at" in plan.source
    assert Nvrtc().compile(plan.source, "sm_90")


def test_an_index_out_of_range_is_flagged(tmp_path: pathlib.Path) -> None:
    plan = cuda.plan_of(
        lambda x, i: core.gather(x, i, 0), tensor(4), Tensor(np.array([1, 4], np.int32))
    )
    with pytest.raises(IndexError):
        Batch([plan], tmp_path).run(0)


# The plan ----------------------------------------------------------------------------------------


def test_no_headers_and_no_sizes_in_the_text(batch: Batch) -> None:
    first = cuda.plan_of(softmax, tensor(3, 5))
    second = cuda.plan_of(softmax, tensor(100, 1000))
    assert first.kernels == second.kernels
    for text in batch.kernels.texts:
        assert "#include" not in text


def test_constants_are_arguments() -> None:
    x = tensor(5)
    assert cuda.plan_of(lambda y: y * 2.0, x).kernels == cuda.plan_of(lambda y: y * 3.0, x).kernels


def test_equal_kernels_are_one() -> None:
    plan = cuda.plan_of(
        lambda a, b: [core.reduce_sum(a, [0], False), core.reduce_sum(b, [0], False)],
        tensor(5, 2),
        tensor(9, 3),
    )
    assert len(plan.kernels) == 1
    assert len(plan.steps) == 2


# Arrays of different sizes in one launch --------------------------------------------------------


def updates_of(plan: Any) -> list[dict[str, Any]]:
    """The launches that write what an optimiser's step leaves behind, parameters with it."""
    outputs = {i for i, b in enumerate(plan.raw["buffers"]) if b[0] == "output"}
    return [
        s
        for s in plan.steps
        if "kernel" in s
        and "div_sqrt" in s["kernel"]  # not that of the step's number
        and outputs & {a[1] for a in s["arguments"] if a[0] == "buffer"}
    ]


def parameter_bytes(step: dict[str, Any]) -> int:
    width = {"float": 4, "int": 4, "size": 4, "divisor": 12, "packs": 4}
    return sum(width.get(a[2] if a[0] == "constant" else a[0], 8) for a in step["arguments"])


def test_an_optimiser_updates_all_parameters_in_one_launch() -> None:
    fn, arguments = adam(ODD_SHAPES)
    (update,) = updates_of(cuda.plan_of(fn, *arguments))
    assert update["segments"] == len(ODD_SHAPES)

    def network(hidden: int) -> ms.nn.Cell:
        return filled(ms.nn.SequentialCell(
            ms.nn.Dense(3, hidden), ms.nn.Tanh(), ms.nn.Dense(hidden, 5), ms.nn.Tanh(),
            ms.nn.Dense(5, 1),
        ))  # fmt: skip

    texts = []
    for hidden in (8, 33):
        net = network(hidden)
        optimiser = ms.nn.Adam(net.trainable_params(), 0.01)
        slope = ms.value_and_grad(lambda x, n=net: core.mean(n(x) ** 2, None, False), None,
                                  list(net.trainable_params()))  # fmt: skip
        plan = cuda.plan_of(lambda x, s=slope, o=optimiser: o(s(x)[1]), tensor(32, 3))
        (update,) = updates_of(plan)
        assert update["segments"] == 6
        texts.append([text for _, text in plan.kernels if "gc_each" in text])
    assert texts[0] == texts[1]  # sizes are arguments here too


def test_arrays_that_a_launch_has_no_room_for_go_to_another() -> None:
    fn, arguments = CASES["arrays: more than a launch has room for"]
    plan = cuda.plan_of(fn, *arguments)
    updates = updates_of(plan)
    assert len(updates) == 2 and len({s["kernel"] for s in updates}) == 1
    assert all(s["segments"] == 40 for s in updates)  # 79 = 40 + 39
    assert all(parameter_bytes(s) <= 4096 for s in updates)
    written = {a[1] for s in updates for a in s["arguments"] if a[0] == "buffer"}
    assert {
        i for i, b in enumerate(plan.raw["buffers"]) if b[0] == "output" and b[3] > 4
    } <= written
    # A copy that fills up the last launch has no blocks.
    each = len(updates[-1]["arguments"]) // 40
    ends = [a[1] for a in updates[-1]["arguments"][each - 1 :: each]]
    assert ends == [*range(1, 40), 39] and updates[-1]["grid"] == 39


def test_arrays_of_one_size_stay_one_plain_kernel() -> None:
    plan = cuda.plan_of(lambda a, b: [core.sin(a), core.sin(b)], tensor(9), tensor(9))
    assert len(plan.steps) == 1 and plan.steps[0]["segments"] == 1
    assert "gc_each" not in plan.kernels[0][1]


def test_nothing_is_joined_where_that_saves_no_launch() -> None:
    def both(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Any:
        return [core.sin(a), core.cos(c), core.sin(b), core.cos(d)]

    plan = cuda.plan_of(both, tensor(5), tensor(9), tensor(5), tensor(9))
    assert [s["segments"] for s in plan.steps] == [1, 1]


def test_what_is_read_again_does_not_wait() -> None:
    fn, arguments = CASES["arrays: one is read again"]
    steps = cuda.plan_of(fn, *arguments).steps
    assert ["matmul" in s for s in steps] == [False, True, False]
    assert [s.get("segments") for s in steps] == [1, None, 2]


def test_arguments_of_arrays_stay_in_constant_memory(plans: Plans) -> None:
    ptx = Nvrtc().compile(plans["arrays: Adam of odd sizes"].source, "compute_75").decode()
    assert "gc_add_mul_div_sqrt" in ptx and ".local" not in ptx


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
    assert (
        'extern "C" __global__ void __launch_bounds__(512, 1) gc_reduce_max_exp_reduce_sum_div_0'
        in out
    )
    assert (
        "10 nodes of the graph: 1 launches of 1 kernels, 0 matrix products, 96 bytes moved" in out
    )


@pytest.mark.parametrize(
    ("name", "nodes", "launches", "products", "megabytes"),
    [
        ("PINN step", 100, 20, 14, 0.1),
        ("MLP step", 200, 28, 8, 0.1),
        ("loss-scale step", 90, 17, 5, 0.01),
    ],
)
def test_whole_steps_are_few_launches(
    name: str,
    nodes: int,
    launches: int,
    products: int,
    megabytes: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Most nodes are inside a kernel: the table says so beside the graph's node count."""
    fn, arguments = CASES[name]
    plan = cuda.inspect(fn, *arguments)
    printed = capsys.readouterr().out
    assert plan.node_count >= nodes
    found = sum("matmul" in s for s in plan.steps)
    assert found <= products and len(plan.steps) - found <= launches
    assert plan.bytes_moved < megabytes * 1e6
    assert f"{plan.node_count} nodes of the graph: {len(plan.steps) - found} launches" in printed
    for kernel, text in plan.kernels:
        assert kernel in printed and text in printed
    computed = sum(s["nodes"] for s in plan.steps)
    assert computed > 2 * len(plan.steps)


def test_a_plan_leaves_parameters_alone() -> None:
    p = ms.Parameter(tensor(3), name="p")
    before = p.asnumpy().copy()

    def step(x: Tensor) -> Tensor:
        p.set_data(p + x)
        return total(p)

    plan = cuda.plan_of(step, tensor(3))
    assert len(plan.raw["outputs"]) == 2
    np.testing.assert_array_equal(p.asnumpy(), before)


# Epilogues ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BIASES)
def test_products_add_the_bias_where_that_saves_a_kernel(name: str, plans: Plans) -> None:
    plan = plans[f"bias {name}"]
    assert sum("add_bias" in s for s in plan.steps) == BIASES[name][0]


def test_layers_without_activation_are_products_alone(plans: Plans) -> None:
    plan = plans["bias float32"]
    assert [s["matmul"]["bias"] for s in plan.steps] == [2, 4]
    assert "0 launches of 0 kernels, 2 matrix products" in plan.table()
    assert plan.table().count("matmul float32 + bias") == 2
    read = 4 * (5 * 6 + 6 * 5 + 5) + 4 * (5 * 5 + 3 * 5 + 3)
    assert plan.bytes_moved == read + 4 * (5 * 5 + 5 * 3)


@pytest.mark.one_in(32)
@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("bias ")])
def test_the_same_where_the_library_adds_no_bias(name: str, batch: Batch) -> None:
    fn, arguments = CASES[name]
    got = batch.run(list(CASES).index(name), epilogues=False, grid=2)
    compare(name, got, tree.leaves(fn(*arguments)))


# Golden text -------------------------------------------------------------------------------------


def test_a_reduction_of_rows_leaves_other_kernels_flat() -> None:
    """sin(x) goes into the kernel that reduces, and is flat nevertheless: four elements at a time."""
    x, w = tensor(64, 20), tensor(20, 20)

    def f(x: Any) -> Any:
        h = core.sin(x)
        return core.reduce_sum(ms.ops.matmul(h, w) * h, [1], False)

    first, last = (text for _, text in cuda.plan_of(f, x).kernels)
    assert "gc_load" in first and "gc_across" not in first
    assert "gc_across" in last


def test_elements_of_rows_come_in_fours() -> None:
    """Where four divides their number; the text is the same where it does not."""
    whole, odd = (cuda.plan_of(softmax, tensor(64, n)) for n in (20, 21))
    assert whole.kernels == odd.kernels
    assert whole.kernels[0][1].count("gc_load(p0, j, packs > 0)") == 3
    assert whole.kernels[0][1].count("gc_store(q0, j, y0, packs > 0)") == 1

    def fours(plan: Any) -> int:
        (step,) = plan.steps
        return [a[1] for a in step["arguments"] if a[0] == "size"][1]

    assert fours(whole) == 5 and fours(odd) == 0


def test_sums_of_columns() -> None:
    """Tall ones keep all multiprocessors at work, small ones are one launch."""

    def columns(x: Any) -> Any:
        return core.reduce_sum(x, [0], False)

    first, _ = cuda.plan_of(columns, tensor(100_000, 20)).steps
    assert first["grid"] >= 200
    assert (
        "#pragma unroll"
        in dict(cuda.plan_of(columns, tensor(100_000, 20)).kernels)[first["kernel"]]
    )
    for rows in (2, 64, 65, 1024):
        assert len(cuda.plan_of(columns, tensor(rows, 200)).steps) == 1


def test_long_lines_are_scanned_by_many_threads() -> None:
    first, last = cuda.plan_of(lambda x: core.cumsum(x, 0, False, False), tensor(100_000)).steps
    for step in (first, last):
        assert step["grid"] * step["block"][0] >= 1000
    (one,) = cuda.plan_of(lambda x: core.cumsum(x, 0, False, False), tensor(20, 70_000)).steps
    assert one["grid"] * one["block"][0] >= 50_000


@pytest.mark.parametrize(
    "name",
    [
        "elementwise",
        "arrays",
        "softmax",
        "softmax_gradient",
        "pinn_step",
        "mlp_step",
        "loss_scale_step",
    ],
)
def test_golden_text(name: str) -> None:
    graphs: dict[str, Case] = {
        "elementwise": (lambda x, y: core.sin(x) * y + 2.0, (tensor(1000), tensor(1000))),
        "arrays": (
            lambda *a: [core.exp(x) * 2.0 for x in a],
            (tensor(3), tensor(1), tensor(70, 9)),
        ),
        "softmax": (softmax, (tensor(64, 10),)),
        "softmax_gradient": (ms.grad(lambda y: total(softmax(y) * core.sin(y))), (tensor(64, 10),)),
        "pinn_step": CASES["PINN step"],
        "mlp_step": CASES["MLP step"],
        "loss_scale_step": CASES["loss-scale step"],
    }
    fn, arguments = graphs[name]
    text = str(cuda.plan_of(fn, *arguments)) + "\n"
    file = GOLDEN / f"{name}.cu.txt"
    if os.environ.get("GRADCELL_UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text(), "run with GRADCELL_UPDATE_GOLDEN=1 and read the difference"
