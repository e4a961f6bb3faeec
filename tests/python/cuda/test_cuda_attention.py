"""Attention's sums on a GPU: the kernels' text, run as C++ by several threads a block, against NumPy
with all scores in memory; their derivatives against the CPU engine."""

from __future__ import annotations

import ctypes
import pathlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attention_rows import LARGE, SUMS, WAYS, run, shapes, sums
from cuda_emulation import WHERE_NONE_SPILLS, Batch, Kernels, chosen, compiled, that_spill
from made_up_gpu import Process

import gradcell as gc
from gradcell import Tensor, _core, cuda, nn, ops

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

rng = np.random.default_rng(11)
KNOWN = ("AttentionRows", "AttentionColumns")
Case = tuple[Callable[..., Any], list[np.ndarray], Callable[..., np.ndarray] | None]
CASES: dict[str, Case] = {}


def add(op: str, label: str, heads: Any, dtype: str = "float32") -> None:
    operands = [rng.uniform(-0.5, 0.5, n).astype(dtype) for n in shapes(op, heads)]
    CASES[f"{op}, {label}"] = (
        lambda *xs: run(op, heads, *xs),
        operands,
        lambda *xs: sums(op, heads, *(x.astype(np.float64) for x in xs)),
    )


for op in ("Attention", "AttentionLogSum", *KNOWN):
    for label, heads in {**WAYS, **(SUMS if op in KNOWN else {})}.items():
        add(op, label, heads)
    for label, heads in LARGE.items():
        add(op, label, heads._replace(factors=(3,), shifted=True) if op in KNOWN else heads)
    wide = WAYS["plain"]._replace(width=70, values=130, keys=40, queries=35)
    add(op, "wide", wide)
    add(op, "float64", wide, "float64")


def layer(dtype: str, keep: float = 1.0) -> Case:
    """flash_attention_score and its gradient, whose reference is the CPU engine."""
    q, k, v = (rng.uniform(-1, 1, (2, 3, n, 8)).astype(dtype) for n in (40, 35, 35))

    def both(q: Tensor, k: Tensor, v: Tensor) -> Any:
        def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            gc.set_seed(5)
            return ops.flash_attention_score(
                q, k, v, 3, input_layout="BNSD", scalar_value=0.3, keep_prob=keep
            )

        y = attended(q, k, v)
        slopes = gc.grad(lambda *a: (attended(*a).astype(gc.float32) ** 2).sum(), (0, 1, 2))
        return [y, *slopes(q, k, v)]

    return both, [q, k, v], None


def slopes(op: str, label: str) -> Case:
    operands = [rng.uniform(-0.5, 0.5, n).astype("float32") for n in shapes(op, WAYS[label])]
    slope = gc.grad(lambda *xs: run(op, WAYS[label], *xs), tuple(range(len(operands))))
    return slope, operands, None


CASES["slopes without width"] = slopes("AttentionRows", "no width")
CASES["flash attention and its gradient"] = layer("float32")
CASES["flash attention, float16"] = layer("float16")
CASES["flash attention, dropout"] = layer("float32", 0.7)


def add_halves(op: str, label: str, heads: Any) -> None:
    """As a program in float16 has them: with normalisers and shifts in float32."""
    add(op, label, heads, "float16")
    fn, operands, reference = CASES[f"{op}, {label}"]
    numbers = {3, 4} if heads.shifted else {3}
    kept = [x.astype("float32") if k in numbers else x for k, x in enumerate(operands)]
    CASES[f"{op}, {label}"] = fn, kept if op in KNOWN else operands, reference


for label, heads in {**WAYS, **SUMS}.items():
    add_halves("AttentionRows", f"{label}, float16", heads)
for op in ("Attention", "AttentionLogSum", *KNOWN):
    for label, heads in LARGE.items():
        some = heads._replace(factors=(3,), shifted=True) if op in KNOWN else heads
        add_halves(op, f"{label}, float16", some)


#: Of the GPUs planned for: with tensor cores for TF32 (test_cuda_attention_cores.py has more), and without.
CAPABILITIES = (90, 75)


@pytest.fixture(scope="module")
def plans() -> dict[str, Any]:
    found = {}
    for capability in CAPABILITIES:
        _core.plan_for_cuda(capability)
        for name, (fn, a, _) in CASES.items():
            found[f"{name}, sm_{capability}"] = cuda.plan_of(fn, *map(Tensor, a))
    _core.plan_for_cuda()
    return found


@pytest.fixture(scope="module")
def batch(
    plans: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Batch:
    asked = chosen(request, plans, lambda of: f"{of['name']}, sm_{of['capability']}")
    return Batch(asked, tmp_path_factory.mktemp("attention"))


@pytest.mark.one_in(96)
@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("name", CASES)
def test_sums_are_what_all_scores_in_memory_give(
    name: str, capability: int, plans: dict[str, Any], batch: Batch
) -> None:
    fn, arguments, reference = CASES[name]
    number = list(plans).index(f"{name}, sm_{capability}")
    if reference is None:
        want = [y.asnumpy() for y in fn(*map(Tensor, arguments))]
    else:
        want = [reference(*arguments)]
    ways: list[Any] = [(None, 2)]
    if any("gc_square" in text for _, text in batch.plans[number].kernels):
        ways += [((1, 1), 1), ((8, 1), 3), ((64, 1), 2)]
    else:  # by whole warps only
        assert capability == 90
    for threads, grid in ways:
        got = batch.run(number, threads=threads, grid=grid)[: len(want)]
        for g, w in zip(got, want, strict=True):
            finite = w[np.isfinite(w)].astype(np.float64)
            scale = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
            tolerance = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-13}[str(g.dtype)]
            np.testing.assert_allclose(g, w, rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.one_in(40)
@pytest.mark.parametrize(("arch", "every"), WHERE_NONE_SPILLS)
def test_none_spills(arch: str, every: int, plans: dict[str, Any]) -> None:
    assert that_spill(Kernels(list(plans.values())), arch, every) == {}


def test_nothing_of_the_scores_size_is_in_memory() -> None:
    x = Tensor(np.zeros((1, 2, 4096, 16), np.float32))

    def slopes(x: Tensor) -> Any:
        def attended(x: Tensor) -> Tensor:
            return ops.flash_attention_score(x, x, x, 2, input_layout="BNSD").sum()

        return gc.grad(attended)(x)

    plan = cuda.plan_of(slopes, x)
    assert sum("attention" in s["kernel"] for s in plan.steps if "kernel" in s) == 3
    assert plan.raw["arena_bytes"] < 10e6  # scores of a head have 64 MB
    heads = 2 * 4096 // 64
    assert all(s["grid"] == heads for s in plan.steps if "attention" in s.get("kernel", ""))


def test_a_transformer_layer_has_a_plan() -> None:
    block = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    x = Tensor(rng.uniform(-1, 1, (2, 12, 16)).astype(np.float32))
    plan = cuda.plan_of(lambda y: gc.grad(lambda z: block(z).sum())(y), x)
    assert plan.steps


ON_A_GPU = """
ms.set_context(device_target="GPU")
def full(value): return Tensor(np.full((1, 1, 4, 16), value, np.float32)).astype(ms.float16)
def loss(q, v): return ops.flash_attention_score(q, q, v, 1, input_layout="BNSD").astype(ms.float32).mean()
np.testing.assert_allclose(float(loss(full(3e4), full(6e4))), 6e4, rtol=1e-3)
slope = ms.grad(loss, 1)(full(1), full(2))
np.testing.assert_allclose(slope.astype(ms.float32).asnumpy(), 1 / 64, rtol=1e-3)
"""


def test_a_gpu_runs_the_kernels_and_no_products(process: Process) -> None:
    """Scores beyond float16 stay numbers. (The made-up GPU runs kernels of single threads.)"""
    process.good(ON_A_GPU, FAKE_CUDA_CAPABILITY="75")
    assert process.counts()["products"] == 0


def philox(key: int, counter: int) -> list[int]:
    """Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011, section 3.3)."""
    low = 0xFFFFFFFF
    c, k = [counter & low, counter >> 32, 0, 0], [key & low, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & low, a >> 32 ^ c[3] ^ k[1], a & low]
        k = [(k[0] + 0x9E3779B9) & low, (k[1] + 0xBB67AE85) & low]
    return c


def test_dropout_counts_more_scores_than_32_bits_hold(tmp_path: pathlib.Path) -> None:
    """Scores are no tensor, so that nothing of such a graph asks for 64 bits (40 heads, 8,192 x 8,192)."""
    q = Tensor(np.zeros((1, 40, 8192, 8), np.float16))
    plan = cuda.plan_of(
        lambda q: ops.flash_attention_score(q, q, q, 40, input_layout="BNSD", keep_prob=0.9), q
    )
    assert "typedef int gc_index" in plan.raw["prelude"]
    draws = [line for _, text in plan.kernels for line in text.splitlines() if "gc_uniform" in line]
    assert draws
    for draw in draws:  # key, offset, ((gc_long)(head % n) * n + i) * n + j
        assert re.search(r"gc_uniform\([^,]+, [^,]+, \(\(gc_long\)\(head", draw), draw

    file = tmp_path / "uniform.cpp"
    file.write_text(
        plan.raw["prelude"]
        + """
        extern "C" void run(void** a) {
          for (int i = 0; i < 9; ++i)
            ((float*)a[0])[i] = gradcell::scalar::gc_uniform(7, 11, ((gc_long)40 << 26) + i);
        }"""
    )
    library = ctypes.CDLL(str(compiled([file], tmp_path)))
    found = np.zeros(9, np.float32)
    arguments = (ctypes.c_void_p * 1)(found.ctypes.data)
    assert library.shim_launch(library.run, arguments, 1, 1, 1, 0) == 0
    want = [philox(7, 11 + (40 << 24) + i // 4)[i % 4] for i in range(9)]
    np.testing.assert_array_equal(found, [(w >> 8) / 2**24 for w in want])
