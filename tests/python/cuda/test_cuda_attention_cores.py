"""Attention by tensor cores: the kernels' text run as C++ by whole warps, against float64 written out in
NumPy, to the second derivative; what is one kernel, what falls back, and what compilers make of it."""

from __future__ import annotations

import pathlib
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from cuda_emulation import Batch, Kernels, Nvrtc, chosen, spills, that_spill
from disassembly import disassembler, followed

import gradcell as gc
from gradcell import Tensor, _core, cuda, ops

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

rng = np.random.default_rng(28)


class Attended(NamedTuple):
    queries: int = 70
    keys: int = 75
    width: int = 24
    dtype: str = "float32"
    tf32: bool = False
    causal: bool = False
    mask: bool = False
    later: bool = False  # as causal, by a mask in memory: tiles of which it hides none, some, all
    keep: float = 1.0
    multiprocessors: int = 132  # of few, blocks have two pieces of rows
    shared: int = 227 << 10  # of little, a tile is read when the last one has been


CASES = {
    "float32": Attended(),
    "TF32": Attended(tf32=True),
    "float16": Attended(dtype="float16", queries=130),
    "bfloat16": Attended(dtype="bfloat16", width=20),
    "causal": Attended(queries=140, keys=140, width=8, causal=True),
    "mask": Attended(mask=True, width=5),
    "dropout": Attended(keep=0.7, keys=40),
    "wide": Attended(width=100),
    "wide bfloat16": Attended(dtype="bfloat16", width=300, queries=20, keys=24),
    "float16, wide": Attended(dtype="float16", width=136, keys=140),
    "float16, mask": Attended(dtype="float16", mask=True, keys=150, width=16),
    "float16, dropout": Attended(dtype="float16", keep=0.3, keys=130, width=16),
    "two pieces": Attended(
        dtype="float16", queries=200, keys=270, width=64, keep=0.7, multiprocessors=1
    ),
    "two pieces, causal": Attended(
        dtype="bfloat16", queries=300, keys=300, width=32, causal=True, multiprocessors=1
    ),
    "float16, later": Attended(dtype="float16", queries=208, keys=208, width=16, later=True),
    "two pieces, later": Attended(
        dtype="bfloat16", queries=270, keys=270, width=16, later=True, multiprocessors=1
    ),
    "float16, wide, later": Attended(dtype="float16", queries=160, keys=160, width=72, later=True),
    "one tile at a time": Attended(dtype="float16", keys=200, width=24, shared=48 << 10),
}
#: Of the largest number of a result. Sums of half types are rounded to them, weights to TF32.
TOLERANCE = {"float32": 2e-5, "TF32": 4e-3, "float16": 6e-3, "bfloat16": 3e-2}


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    gc.set_context(gpu_config={"matmul_allow_tf32": False})
    _core.plan_for_cuda()


def mask_of(of: Attended) -> np.ndarray | None:
    if of.causal or of.later:
        return np.triu(np.ones((of.queries, of.keys), bool), 1)
    return rng.random((of.queries, of.keys)) < 0.3 if of.mask else None


def attended(of: Attended, mask: np.ndarray | None, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    gc.set_seed(5)
    return ops.flash_attention_score(
        q, k, v, 1, input_layout="BNSD", scalar_value=0.5, keep_prob=of.keep,
        attn_mask=Tensor(mask) if of.mask or of.later else None, sparse_mode=2 if of.causal else 0,
    )  # fmt: skip


def gradient(of: Attended, mask: np.ndarray | None) -> Callable[..., Any]:
    """The value, the gradient of <y, c>, and that of <gradient, d>."""

    def run(q: Tensor, k: Tensor, v: Tensor, c: Tensor, *d: Tensor) -> Any:
        def first(q: Tensor, k: Tensor, v: Tensor) -> Any:
            return gc.grad(lambda *a: (attended(of, mask, *a) * c).sum(), (0, 1, 2))(q, k, v)

        def along(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return sum((g * x).sum() for g, x in zip(first(q, k, v), d, strict=True))

        return [attended(of, mask, q, k, v), *first(q, k, v), *gc.grad(along, (0, 1, 2))(q, k, v)]

    return run


def dropped(of: Attended, mask: np.ndarray | None) -> Any:
    """By what dropout multiplies: what comes of equal scores and values that are the unit matrix."""
    if of.keep == 1:
        return 1.0
    zero = Tensor(np.zeros((1, 1, of.queries, of.keys), np.float32))
    unit = Tensor(np.eye(of.keys, dtype=np.float32)[None, None])
    return attended(of, mask, zero, unit, unit).asnumpy()[0, 0].astype(np.float64) * of.keys


def in_float64(
    mask: np.ndarray | None, z: Any, q: np.ndarray, k: np.ndarray, v: np.ndarray, c: np.ndarray
) -> list[np.ndarray]:
    """The value and the gradient of <y, c>, with all scores in memory."""
    s = 0.5 * q @ k.T
    if mask is not None:
        s = np.where(mask, -np.inf, s)
    most = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(most), most, 0))
    total = e.sum(-1, keepdims=True)
    p = e / np.where(total == 0, 1, total)
    y = (p * z) @ v
    by_score = 0.5 * p * (z * (c @ v.T) - (c * y).sum(-1, keepdims=True))
    return [y, by_score @ k, by_score.T @ q, (p * z).T @ c]


def reference(mask: np.ndarray | None, z: Any, operands: list[np.ndarray]) -> list[np.ndarray]:
    q, k, v, c, *d = operands
    h = 1e-5
    above, below = (
        in_float64(mask, z, *(x + t * y for x, y in zip((q, k, v), d, strict=True)), c)[1:]
        for t in (h, -h)
    )
    # The gradient of <gradient, d> is how the gradient changes along d.
    return in_float64(mask, z, q, k, v, c) + [
        (a - b) / (2 * h) for a, b in zip(above, below, strict=True)
    ]


def operands_of(of: Attended) -> list[Tensor]:
    rows = (of.queries, of.keys, of.keys, of.queries, of.queries, of.keys, of.keys)
    arrays = (rng.uniform(-1, 1, (1, 1, n, of.width)).astype(np.float32) for n in rows)
    return [Tensor(x).astype(getattr(gc, of.dtype)) for x in arrays]


class Made(NamedTuple):
    plan: Any
    want: list[np.ndarray]


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest) -> dict[str, Made]:
    """The cases that are asked for."""
    found = {}
    asked = chosen(request, {name: name for name in CASES})
    for name, of in CASES.items():
        mask, operands = mask_of(of), operands_of(of)
        if name not in asked:
            continue
        z = dropped(of, mask)
        gc.set_context(gpu_config={"matmul_allow_tf32": of.tf32})
        _core.plan_for_cuda(90, of.shared, multiprocessors=of.multiprocessors)
        plan = cuda.plan_of(gradient(of, mask), *operands)
        exact = [x.astype(gc.float32).asnumpy()[0, 0].astype(np.float64) for x in operands]
        found[name] = Made(plan, reference(mask, z, exact))
    gc.set_context(gpu_config={"matmul_allow_tf32": False})
    _core.plan_for_cuda()
    return found


@pytest.fixture(scope="module")
def batch(made: dict[str, Made], tmp_path_factory: pytest.TempPathFactory) -> Batch:
    plans = [made[name].plan if name in made else None for name in CASES]
    return Batch(plans, tmp_path_factory.mktemp("attention_cores"))


@pytest.mark.one_in(32)
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_those_of_float64(
    name: str, made: dict[str, Made], batch: Batch
) -> None:
    of = CASES[name]
    tolerance = TOLERANCE["TF32" if of.tf32 else of.dtype]
    texts = "".join(text for _, text in made[name].plan.kernels)
    assert "gc_dots_warp" in texts
    # Of the widest rows there is room for those that normalisers need.
    assert ("gc_square" in texts) == (of.width > 256)
    halves = of.dtype != "float32"
    assert ("gc_send_rows<" in texts) == halves
    assert ("gc_way<2, 8>" in texts) == (of.multiprocessors == 1)
    stages = {"place ^=" in t for _, t in made[name].plan.kernels if "gc_send_rows<" in t}
    assert stages == ({True, False} if of.shared < 227 << 10 else {True} if halves else set())
    if not halves:
        # Second derivatives have so many operands that all but narrow ones are read part by part.
        assert ("gc_stage_rows<" in texts) == (of.width > 8)
        assert ("gc_fetch_rows<" in texts) == (of.width < 100)
    got = batch.run(list(CASES).index(name), threads=None, grid=2)
    for k, want in enumerate(made[name].want):
        scale = np.abs(want).max()
        # Derivatives pass through what is rounded to the half type before.
        most = tolerance * scale * (1 if k < 4 or of.dtype == "float32" else 3)
        np.testing.assert_allclose(got[k][0, 0], want, rtol=0, atol=most, err_msg=f"{name}, {k}")


@pytest.mark.parametrize("name", ["dropout", "float16, dropout", "two pieces, causal"])
def test_in_which_order_threads_run_changes_no_bit(name: str, batch: Batch) -> None:
    number = list(CASES).index(name)
    one, other = (batch.run(number, threads=None, grid=g, order=o) for g, o in ((1, 0), (2, 7)))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


# What is one kernel ------------------------------------------------------------------------------


HIDDEN = Tensor(np.zeros((256, 256), np.bool_))


def training(
    dtype: Any = np.float32,
    width: int = 64,
    tokens: int = 256,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    q, k, v, c = (
        Tensor(np.zeros((1, 2, tokens, width), np.float32)).astype(dtype) for _ in range(4)
    )

    def step(q: Tensor, k: Tensor, v: Tensor) -> Any:
        def loss(q: Tensor, k: Tensor, v: Tensor) -> Any:
            y = ops.flash_attention_score(q, k, v, 2, input_layout="BNSD", **more)
            return (y * c).sum()

        return gc.value_and_grad(loss, (0, 1, 2))(q, k, v)

    return cuda.plan_of(step, q, k, v)


def test_scores_are_computed_once_each_way() -> None:
    """Forward: the values with their normalisers. Backward: dQ, and dK with dV, each of which has the
    scores and the products of values with the result's gradient once."""
    texts = [text for name, text in training().kernels if "attention" in name]
    assert len(texts) == 3
    assert [text.count("gc_dots_warp") for text in texts] == [1, 2, 2]
    assert [text.count("gc_add_warp") for text in texts] == [1, 1, 2]
    assert ["::log_sum(" in text for text in texts] == [True, False, False]


def test_each_kernel_moves_its_operands_once() -> None:
    plan = training(tokens=1024)
    steps = [s for s in plan.raw["steps"] if "attention" in s.get("kernel", "")]
    each = 2 * 1024 * 64 * 4
    rows = 2 * 1024 * 4  # a number a query
    assert [(s["bytes_read"], s["bytes_written"]) for s in steps] == [
        (3 * each, each + rows), (4 * each + 2 * rows, each), (4 * each + 2 * rows, 2 * each)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("capability", "shared", "dtype", "width", "tensor_cores"),
    [
        (90, 227 << 10, gc.float32, 128, True),
        (86, 99 << 10, gc.float32, 64, True),
        (86, 99 << 10, gc.float32, 128, False),  # 64 rows of queries, keys, values: 101,376 bytes
        (86, 99 << 10, gc.float16, 128, True),
        (75, 64 << 10, gc.float16, 64, False),  # no TF32
        (90, 227 << 10, gc.float64, 64, False),
    ],
)
def test_what_does_not_fit_is_left_to_other_kernels(
    capability: int, shared: int, dtype: Any, width: int, tensor_cores: bool
) -> None:
    _core.plan_for_cuda(capability, shared)
    kernels = "".join(text for _, text in training(dtype, width).kernels)
    assert ("gc_add_warp" in kernels) == tensor_cores
    assert tensor_cores or "gc_square" in kernels


def test_sums_with_dropouts_of_their_own_are_apart() -> None:
    q = Tensor(np.zeros((1, 1, 70, 8), np.float32))

    def two(q: Tensor) -> Any:
        return [
            ops.flash_attention_score(q, q, q, 1, input_layout="BNSD", keep_prob=0.5)
            for _ in range(2)
        ]

    texts = [t for _, t in cuda.plan_of(two, q).kernels if "gc_dots_warp" in t]
    assert texts and all(t.count("gc_add_warp") == 1 for t in texts)


# Small and large in float16 -----------------------------------------------------------------------


@pytest.mark.one_in(8)
def test_weights_below_float16_count(tmp_path: pathlib.Path) -> None:
    """300 keys of which one has nearly all weight and a value of 0; the others have 2^-26 of it each,
    which is 0 in float16, and 60,000."""
    q, k, v = np.zeros((1, 1, 1, 8)), np.zeros((1, 1, 300, 8)), np.full((1, 1, 300, 8), 6e4)
    q[..., 0], k[0, 0, 1:, 0], v[0, 0, 0] = 1, -18, 0
    plan = cuda.plan_of(
        lambda *a: ops.flash_attention_score(*a, 1, input_layout="BNSD"),
        *(Tensor(x.astype(np.float16)) for x in (q, k, v)),
    )
    got = Batch([plan], tmp_path).run(0, threads=None)[0]
    small = 299 * np.exp(-18.0)
    np.testing.assert_allclose(got, np.full((1, 1, 1, 8), small / (1 + small) * 6e4), rtol=1e-3)


@pytest.mark.one_in(8)
def test_rows_of_gradients_of_any_size_keep_their_digits(tmp_path: pathlib.Path) -> None:
    """Weights of a gradient are rounded to float16 beside the largest of their row: here rows of the result's
    gradient, and columns of values, are 2^16 apart."""
    of = Attended(dtype="float16", queries=70, keys=66, width=16)
    q, k, v, c = (
        x.astype(gc.float32).asnumpy()[0, 0].astype(np.float64) for x in operands_of(of)[:4]
    )
    c *= 2.0 ** np.linspace(-6, 10, 70)[:, None]
    v *= 2.0 ** np.linspace(-6, 3, 66)[:, None]
    arrays = [x.astype(np.float16)[None, None] for x in (q, k, v, c)]
    plan = cuda.plan_of(
        lambda q, k, v, c: gc.grad(lambda *a: (attended(of, None, *a) * c).sum(), (0, 1, 2))(
            q, k, v
        ),
        *map(Tensor, arrays),
    )
    got = Batch([plan], tmp_path).run(0, threads=None)[:3]
    want = in_float64(None, 1.0, *(x[0, 0].astype(np.float64) for x in arrays))[1:]
    for g, w in zip(got, want, strict=True):
        error = np.abs(g[0, 0] - w).max(-1) / np.abs(w).max(-1)
        assert error.max() <= 2e-3, error.max()


# What is no number -------------------------------------------------------------------------------


@pytest.mark.one_in(24)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_infinities_are_where_other_kernels_have_them(dtype: str, tmp_path: Any) -> None:
    """Among ordinary rows: NaN in a query, infinity in a key and in a value, numbers near the largest."""
    q, k, v = (rng.uniform(-1, 1, (1, 1, n, 8)).astype(np.float32) for n in (70, 66, 66))
    q[0, 0, 3, 2] = np.nan
    k[0, 0, 40, 1] = -np.inf
    v[0, 0, 9, 5] = np.inf
    q[0, 0, 50] *= 60000 if dtype == "float16" else 3e38
    found = []
    for capability in (90, 75):
        _core.plan_for_cuda(capability)
        plan = cuda.plan_of(
            lambda *a: ops.flash_attention_score(*a, 1, input_layout="BNSD"),
            *(Tensor(x).astype(getattr(gc, dtype)) for x in (q, k, v)),
        )
        folder = tmp_path / str(capability)
        folder.mkdir()
        found.append(Batch([plan], folder).run(0, threads=None)[0])
    assert np.isnan(found[0]).any() and np.isfinite(found[0]).any() and np.isinf(found[0]).any()
    near = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 2e-2}[dtype]
    np.testing.assert_allclose(found[0], found[1], rtol=near, atol=near / 10)


# Compilers ---------------------------------------------------------------------------------------

SHAPES = [(dtype, width) for dtype in ("float32", "float16", "bfloat16") for width in (64, 128)]


def products_of(dtype: str, width: int) -> Kernels:
    """The three kernels of a step."""
    kernels = Kernels([training(getattr(gc, dtype), width)])
    kernels.texts = [t for t in kernels.texts if "gc_dots_warp" in t]
    assert len(kernels.texts) == 3
    return kernels


@pytest.mark.one_in(40)
@pytest.mark.parametrize(
    ("arch", "every"),
    [
        ("sm_90", 3),
        *(pytest.param(a, 1, marks=pytest.mark.slow) for a in ("sm_80", "sm_90", "sm_100")),
    ],
)
def test_compiles_without_spills(arch: str, every: int) -> None:
    """Of the kernels for wide heads one in `every`, of each dtype another one."""
    _core.plan_for_cuda(int(arch.removeprefix("sm_")))
    for number, (dtype, width) in enumerate(SHAPES):
        kernels = products_of(dtype, width)
        if width > 64:
            kernels.texts = kernels.texts[number // 2 % every :: every]
        usage = Nvrtc().usage(kernels.source(), arch)
        assert len(usage) == len(kernels.texts)
        texts = [next(t for t in kernels.texts if f" {name}(" in t) for name in usage]
        assert [of for of, t in zip(usage.values(), texts, strict=True) if spills(of, t)] == []


@pytest.mark.one_in(40)
@pytest.mark.parametrize(
    "arch",
    ["sm_90", *(pytest.param(a, marks=pytest.mark.slow) for a in ("sm_80", "sm_100"))],
)
@pytest.mark.parametrize("multiprocessors", [1, 132])
@pytest.mark.parametrize("width", [32, 64, 80])
def test_kernels_of_halves_spill_nothing(arch: str, multiprocessors: int, width: int) -> None:
    _core.plan_for_cuda(int(arch.removeprefix("sm_")), multiprocessors=multiprocessors)
    plans = [
        training(dtype, width, more=more)
        for dtype in (gc.float16, gc.bfloat16)
        for more in ({"sparse_mode": 2}, {"keep_prob": 0.9}, {"attn_mask": HIDDEN})
    ]
    assert that_spill(Kernels(plans), arch, 1) == {}


@pytest.mark.one_in(24)
@pytest.mark.parametrize(
    ("dtype", "instructions"),
    [("float16", (165, 264, 324)), ("bfloat16", (180, 208, 268))],
)
def test_a_warp_has_few_instructions_for_its_scores(
    dtype: str, instructions: tuple[int, ...], tmp_path: pathlib.Path
) -> None:
    """For 16 x 32 scores of heads with 64 features: forward, dQ, dK with dV, each from the difference that
    512 rows more make. (650, 690 and 1,041 of float16, when a warp had half of a tile's columns.)"""
    _core.plan_for_cuda(multiprocessors=1)
    found = []
    for kernel in range(3):
        counts = []
        for tokens in (512, 1024):
            plan = training(getattr(gc, dtype), 64, tokens)
            step = [s for s in plan.raw["steps"] if "attention" in s.get("kernel", "")][kernel]
            threads = tuple(step["block"])
            given = list(map(list, step["arguments"]))
            counts.append(followed(plan, step, given, threads, lambda place: True, tmp_path).issued)
        pieces = 2 if "gc_way<2" in dict(plan.kernels)[step["kernel"]] else 1
        found.append((counts[1] - counts[0]) / (512 / 32) / pieces)
    assert found[0] <= 200  # what FlashAttention-2's arrangement is said to take
    assert all(x <= most for x, most in zip(found, instructions, strict=True)), found


@pytest.mark.parametrize(
    ("dtype", "tf32", "instructions"),
    [
        ("float32", False, {"HMMA.1688.F32.TF32"}),
        ("float32", True, {"HMMA.1688.F32.TF32"}),
        ("float16", False, {"HMMA.16816.F32"}),
        ("bfloat16", False, {"HMMA.16816.F32.BF16"}),
    ],
)
def test_tensor_cores_compute_the_products(
    dtype: str, tf32: bool, instructions: set[str], tmp_path: Any
) -> None:
    gc.set_context(gpu_config={"matmul_allow_tf32": tf32})
    kernels = products_of(dtype, 64)
    file = tmp_path / "attention.cubin"
    file.write_bytes(Nvrtc().compile(kernels.source(), "sm_90"))
    sass = subprocess.run(
        [disassembler(), "-c", str(file)], capture_output=True, text=True, check=True
    ).stdout
    assert set(re.findall(r"HMMA[.\w]+", sass)) == instructions
    assert ("LDSM.16.MT88.4" in sass and "LDSM.16.M88.4" in sass) == (dtype != "float32")
