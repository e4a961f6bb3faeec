"""Products of a narrow network's kernel by tensor cores: fragments against NumPy, the kernels' text run as
C++ by warps against the CPU engine and float64, infinities, the choice, and what compilers make of it."""

from __future__ import annotations

import ctypes
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cuda_emulation import (
    WHERE_NONE_SPILLS,
    Batch,
    Kernels,
    Nvrtc,
    block_of,
    compiled,
    that_spill,
    to_bfloat16,
)
from network_cases import (
    Case,
    burgers_step,
    first_order,
    rng,
    tensor,
)
from product_cases import CASES, STRANGE, agrees, in_halves, strange, two_products

import gradcell as ms
from gradcell import Tensor, _core, cuda, ops
from gradcell.base import tree

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

U = 2.0**-24
HALVES = {"float16": ms.float16, "bfloat16": ms.bfloat16}


@pytest.fixture(scope="module", autouse=True)
def networks_are_kernels() -> Iterator[None]:
    """Also where products would be quicker."""
    _core.weigh_cuda_plans(tiles=True)
    yield
    _core.weigh_cuda_plans()


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    ms.set_context(gpu_config={"matmul_allow_tf32": False})


def plan_of(case: Case, tf32: bool = False) -> Any:
    ms.set_context(gpu_config={"matmul_allow_tf32": tf32})
    return cuda.plan_of(case[0], *case[1])


def tile(plan: Any) -> str:
    """The text of the kernel that takes tiles of rows through the network."""
    (text,) = [k for _, k in plan.kernels if "gc_in_tile" in k]
    return str(text)


def units(plan: Any) -> tuple[set[str], set[str]]:
    """How products, and gradients of weights, are computed by tensor cores."""
    text = tile(plan)
    found = (
        re.findall(rf"{name}<(\w+)", text) for name in ("gc_multiply_warp", "gc_add_outer_warps")
    )
    products, outer = map(set, found)
    return products, outer


# Fragments ---------------------------------------------------------------------------------------

FRAGMENTS = """
using namespace gradcell::scalar;
extern "C" void run(void** a) {
  const unsigned lane = threadIdx.y * blockDim.x + threadIdx.x;
  unsigned left[4], right[2];
  float sum[4];
  for (int i = 0; i < 4; ++i) left[i] = ((unsigned*)a[0])[4 * lane + i];
  for (int i = 0; i < 2; ++i) right[i] = ((unsigned*)a[1])[2 * lane + i];
  for (int i = 0; i < 4; ++i) sum[i] = ((float*)a[2])[4 * lane + i];
  @(sum, left, right);
  for (int i = 0; i < 4; ++i) ((float*)a[2])[4 * lane + i] = sum[i];
}
"""


@pytest.mark.parametrize(
    ("instruction", "packed"),
    [("gc_mma_tf32", None), ("gc_mma_half", np.float16), ("gc_mma_bfloat", "bfloat16")],
)
def test_fragments_are_laid_out_as_documented(
    instruction: str, packed: Any, tmp_path: pathlib.Path
) -> None:
    """Registers are put together here by words: lane l has in register r of the left factor row
    l // 4 + 8 (r % 2), word l % 4 + 4 (r // 2); of the right one column l // 4, word l % 4 + 4 r; a word
    is a TF32 number or two halves. The result has row l // 4 + 8 (r // 2), column 2 (l % 4) + r % 2."""
    terms = 8 if packed is None else 16
    a, b, c = (
        rng.integers(-8, 9, s).astype(np.float32) for s in ((16, terms), (terms, 8), (16, 8))
    )

    def words(x: np.ndarray) -> np.ndarray:  # of neighbours in a row
        if packed is None:
            return x.view(np.uint32)
        halves = to_bfloat16(x) if packed == "bfloat16" else x.astype(np.float16).view(np.uint16)
        return np.ascontiguousarray(halves).view(np.uint32)

    lane, four, two = np.arange(32)[:, None], np.arange(4)[None], np.arange(2)[None]
    left = words(a)[lane // 4 + 8 * (four % 2), lane % 4 + 4 * (four // 2)]
    right = words(np.ascontiguousarray(b.T))[lane // 4, lane % 4 + 4 * two]
    place = (lane // 4 + 8 * (four // 2), 2 * (lane % 4) + four % 2)
    sums = np.ascontiguousarray(c[place])
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)

    file = tmp_path / "fragments.cpp"
    plan = cuda.plan_of(lambda x: x + 1.0, tensor(3))
    file.write_text(plan.raw["prelude"] + FRAGMENTS.replace("@", instruction))
    library = ctypes.CDLL(str(compiled([file], tmp_path)))
    arguments = (ctypes.c_void_p * 3)(*(x.ctypes.data for x in (left, right, sums)))
    assert library.shim_launch(library.run, arguments, 1, 32, 1, 0) == 0
    found = np.zeros((16, 8), np.float32)
    found[place] = sums
    np.testing.assert_array_equal(found, a @ b + c)


# Networks ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plans() -> dict[str, Any]:
    return {name: plan_of(case, tf32) for name, (case, tf32, _, _) in CASES.items()}


@pytest.fixture(scope="module")
def batch(plans: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Batch:
    return Batch(list(plans.values()), tmp_path_factory.mktemp("tensor_cores"))


def rows_of(plan: Any) -> int:
    """Rows of a tile with the shared memory of sm_90."""
    return block_of(next(s for s in plan.steps if s.get("shared", (0, 0))[1]))[0]


def launches(plan: Any) -> list[tuple[tuple[int, int], int]]:
    """As on a GPU, and with fewer warps, which take turns."""
    rows = rows_of(plan)
    return [((rows, 8), 1), ((rows, 64 // rows), 2)]


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_cpu_engine(name: str, plans: dict[str, Any], batch: Batch) -> None:
    (fn, arguments), _, products, outer = CASES[name]
    plan = plans[name]
    assert units(plan) == (products, outer)
    assert not any("matmul" in s for s in plan.steps)
    want = tree.leaves(fn(*arguments))
    for threads, grid in launches(plan):
        got = batch.run(list(CASES).index(name), threads=threads, grid=grid)[: len(want)]
        agrees(name, got, want)


@pytest.mark.parametrize("name", ["64 wide", "Burgers 4 x 64", "bfloat16"])
def test_two_runs_are_the_same_to_the_last_bit(
    name: str, plans: dict[str, Any], batch: Batch
) -> None:
    number, rows = list(CASES).index(name), rows_of(plans[name])
    one, other = (batch.run(number, threads=(rows, 8), grid=g) for g in (1, 2))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_sixteen_rows_are_what_two_groups_share(plans: dict[str, Any]) -> None:
    assert rows_of(plans["Burgers 4 x 64"]) == 16
    assert rows_of(plans["64 wide"]) == 32


# Errors ------------------------------------------------------------------------------------------


def errors(dtype: Any, tf32: bool, k: int, tmp_path: pathlib.Path) -> Iterator[tuple[Any, ...]]:
    """Of a product of k terms and of a gradient by 32 rows: found, float64, sum |a b|."""
    x, w1, w2, c = (tensor(*s) for s in ((32, k), (k, 64), (k, 64), (32, 64)))
    arguments = tuple(v.astype(dtype) for v in (x, w1, w2, c, Tensor(c.asnumpy())))
    plan = plan_of((two_products, arguments), tf32)
    assert all(units(plan))
    product, slope = Batch([plan], tmp_path).run(0, threads=(32, 8), grid=1)[:2]
    a, b, d = (
        v.astype(ms.float32).asnumpy().astype(np.float64) for v in (*arguments[:2], arguments[3])
    )
    yield product, a @ b, np.abs(a) @ np.abs(b)
    yield slope, a.T @ d, np.abs(a).T @ np.abs(d)


@pytest.mark.parametrize("k", [64, 128])
def test_float32_products_are_within_their_bound(k: int, tmp_path: pathlib.Path) -> None:
    """docs/cuda-kernels.md: (33 + n / 8) u sum |a b| for n terms, whatever the tensor cores truncate."""
    for (found, exact, size), n in zip(
        errors(ms.float32, False, k, tmp_path), (k, 32), strict=True
    ):
        error = np.abs(found - exact)
        assert np.all(error <= (33 + n / 8) * U * size)
        assert 0 < (error / size).max() and error.mean() < 8 * U * size.mean()


def test_tf32_products_are_within_their_bound(tmp_path: pathlib.Path) -> None:
    """Each factor is rounded to 11 bits, and so errs by 2^-11."""
    for found, exact, size in errors(ms.float32, True, 64, tmp_path):
        error = np.abs(found - exact) / size
        assert 2.0**-15 < error.max() <= 2.0**-10 + 2.0**-16


@pytest.mark.parametrize(("name", "digits"), [("float16", 11), ("bfloat16", 8)])
def test_half_products_are_rounded_once(name: str, digits: int, tmp_path: pathlib.Path) -> None:
    """Products of halves are exact in float32, where they are added up, truncated by the tensor cores:
    36 u sum |a b| for 16 terms each; then the sum is rounded."""
    for (found, exact, size), n in zip(
        errors(HALVES[name], False, 64, tmp_path), (64, 32), strict=True
    ):
        bound = 2.0**-digits * np.abs(exact) + 36 * n / 16 * U * size
        assert np.all(np.abs(found - exact) <= bound)


# Infinities --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STRANGE)
def test_infinities_are_where_they_belong(name: str, tmp_path: pathlib.Path) -> None:
    dtype, tf32 = STRANGE[name]
    arguments = strange(dtype)
    plan = plan_of((two_products, arguments), tf32)
    assert all(units(plan))
    with np.errstate(all="ignore"):
        want = [v.astype(ms.float32).asnumpy() for v in two_products(*arguments)]
    one, other = (Batch([plan], tmp_path).run(0, threads=t, grid=1) for t in ((32, 8), (16, 8)))
    for found in (one[:2], other[:2]):  # by warps, and without
        for g, w in zip(found, want, strict=True):
            assert np.isinf(w).any() and np.isnan(w).any() and np.isfinite(w).any()
            np.testing.assert_array_equal(np.isnan(g), np.isnan(w))
            np.testing.assert_array_equal(np.isinf(g), np.isinf(w))
            np.testing.assert_array_equal(np.sign(g[np.isinf(w)]), np.sign(w[np.isinf(w)]))


# The choice --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "tf32", "products", "outer"),
    [
        (lambda: burgers_step([20] * 8, 1000), False, set(), set()),
        (lambda: first_order([3, 32, 32, 1], 64, ops.tanh), False, set(), {"gc_tf32x3"}),
        (lambda: first_order([3, 64, 64, 1], 64, ops.tanh), False, {"gc_tf32x3"}, {"gc_tf32x3"}),
        (lambda: burgers_step([64] * 4, 1000), True, {"gc_tf32"}, {"gc_tf32"}),
        (lambda: first_order([3, 64, 64, 1], 64, ops.tanh, dtype=np.float64), False, set(), set()),
    ],
)
def test_the_cheaper_way_is_taken(
    case: Callable[[], Case], tf32: bool, products: set[str], outer: set[str]
) -> None:
    assert units(plan_of(case(), tf32)) == (products, outer)


def test_half_networks_are_one_kernel() -> None:
    """A loss and its gradients by all weights: products, kernels and sums are 2 launches."""
    for dtype in HALVES.values():
        plan = plan_of(in_halves(first_order([64] * 5, 256, ops.tanh), dtype))
        assert plan.products == 0 and plan.launches <= 4, plan.table()


# Compilers ---------------------------------------------------------------------------------------

ARCHITECTURES = ("sm_75", "sm_80", "sm_100", "sm_90")


@pytest.mark.one_in(40)
@pytest.mark.parametrize(("arch", "every"), WHERE_NONE_SPILLS)
def test_compiles_without_spills(arch: str, every: int, plans: dict[str, Any]) -> None:
    kernels = Kernels(list(plans.values()))
    kernels.texts = [t for t in kernels.texts if "gc_in_tile" in t or "gc_down" in t]
    assert len(kernels.texts) >= len(CASES)
    assert that_spill(kernels, arch, every) == {}


@pytest.mark.parametrize(
    ("name", "arch", "instruction"),
    [
        ("64 wide", "compute_75", None),
        ("64 wide", "compute_80", "m16n8k8.row.col.f32.tf32.tf32.f32"),
        ("float16", "compute_75", "m16n8k8.row.col.f32.f16.f16.f32"),
        ("float16", "compute_80", "m16n8k16.row.col.f32.f16.f16.f32"),
        ("bfloat16", "compute_75", None),
        ("bfloat16", "compute_80", "m16n8k16.row.col.f32.bf16.bf16.f32"),
    ],
)
def test_each_architecture_has_its_instructions(
    name: str, arch: str, instruction: str | None, plans: dict[str, Any]
) -> None:
    text = Nvrtc().compile(plans[name].source, arch).decode()
    assert set(re.findall(r"mma\.sync\.aligned\.([\w.]+)", text)) == ({instruction} - {None})


def test_a_warp_falls_back_together(plans: dict[str, Any]) -> None:
    """Whether sums are ordinary is put to the vote: of lanes that have gone separate ways, the next
    instruction for a whole warp would be undefined."""
    ptx = Nvrtc().compile(plans["Burgers 4 x 64"].source, "compute_80").decode()
    functions = re.findall(r"^\.func .*?gc_multiply_warp.*?^\}", ptx, re.S | re.M)
    with_cores = [f for f in functions if "mma.sync" in f]
    assert with_cores
    for function in with_cores:
        assert len(re.findall(r"vote\.sync\.all\.pred", function)) == 1
