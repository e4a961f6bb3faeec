"""Convolutions in tiles by tensor cores: the kernels' text run as C++ by whole warps, against float64 in
plain loops, to the second derivative; how many parts and tiles there are, and what compilers make of it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from cuda_emulation import Batch, Kernels, Nvrtc, chosen
from disassembly import disassembler
from window_rows import Windows, convolved, loops, shapes, windows

import gradcell as gc
from gradcell import Tensor, _core, cuda, nn, ops

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

rng = np.random.default_rng(2811)


class Case(NamedTuple):
    windows: Windows
    dtype: str = "float32"
    tf32: bool = False
    #: Whether images, and weights, are (n, ..., channels).
    last: tuple[bool, bool] = (False, False)


PLANE = windows((7, 6), (3, 3), 1, 1, 1, 1, images=2, inputs=20, outputs=36)
CASES = {
    "float32": Case(PLANE),
    "TF32": Case(PLANE, tf32=True),
    "float16": Case(PLANE, "float16"),
    "bfloat16": Case(PLANE, "bfloat16"),
    "float64": Case(PLANE, "float64"),
    "line": Case(windows((50,), (5,), 3, 2, 4, 5, images=3, inputs=33, outputs=16), "float16"),
    "space": Case(windows((4, 5, 3), (2, 3, 2), 1, 1, 1, 1, images=2, inputs=8, outputs=24)),
    "strides": Case(windows((11, 10), (3, 3), 2, 1, 1, 1, images=2, inputs=16, outputs=32)),
    "strides beyond the kernel": Case(windows((10, 11), (2, 2), 3, images=4, inputs=32, outputs=32)),
    "strides and dilation": Case(windows((13, 12), (3, 3), 4, 2, 3, 2, images=4, inputs=32, outputs=24)),
    "pointwise": Case(windows((5, 5), (1, 1), images=3, inputs=40, outputs=70)),
    "groups": Case(windows((6, 5), (3, 3), 1, 1, 1, 1, groups=2, inputs=16, outputs=20)),
    "cropped": Case(windows((9, 9), (3, 3), 1, 1, -1, -1, images=3, inputs=16, outputs=16)),
    "channels last": Case(PLANE, last=(True, True)),
    "channels of images last": Case(PLANE, "bfloat16", last=(True, False)),
    "channels of weights last": Case(PLANE, "float16", last=(False, True)),
    "channels last, strides": Case(
        windows((9, 8), (3, 2), 2, 1, 1, 1, groups=2, inputs=16, outputs=24), last=(True, True)
    ),
    "pointwise, channels last": Case(
        windows((5, 5), (1, 1), images=3, inputs=40, outputs=70), "float16", last=(True, True)
    ),
    "a long line": Case(windows((40,), (33,), 1, 1, 16, 3, images=1, inputs=12, outputs=24)),  # 64 bits
}  # fmt: skip
#: Of the largest number of a result.
TOLERANCE = {"float32": 5e-6, "TF32": 4e-3, "float16": 6e-3, "bfloat16": 4e-2, "float64": 1e-13}


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    gc.set_context(gpu_config={"matmul_allow_tf32": False})
    _core.plan_for_cuda()


def second(t: Tensor, last: bool) -> Tensor:
    """With its channels second."""
    return ops.transpose(t, (0, t.ndim - 1, *range(1, t.ndim - 1))) if last else t


def moved(a: np.ndarray, last: bool) -> np.ndarray:
    return np.moveaxis(a, 1, -1) if last else a


def convolution(of: Case, x: Tensor, w: Tensor) -> Tensor:
    y = convolved(of.windows, "output", second(x, of.last[0]), second(w, of.last[1]))
    return ops.transpose(y, (0, *range(2, y.ndim), 1)) if of.last[0] else y


def derivatives(of: Case) -> Any:
    """y, the gradient of <y y, c>, and that of <gradient, d>."""

    def first(x: Tensor, w: Tensor, c: Tensor) -> Any:
        def loss(x: Tensor, w: Tensor) -> Tensor:
            y = convolution(of, x, w)
            return (y * y * c).sum()

        return gc.grad(loss, (0, 1))(x, w)

    def run(x: Tensor, w: Tensor, c: Tensor, *d: Tensor) -> Any:
        def along(x: Tensor, w: Tensor) -> Tensor:
            return sum((g * e).sum() for g, e in zip(first(x, w, c), d, strict=True))

        return [convolution(of, x, w), *first(x, w, c), *gc.grad(along, (0, 1))(x, w)]

    return run


def in_float64(s: Windows, operands: list[np.ndarray]) -> list[np.ndarray]:
    x, w, c, dx, dw = operands
    y = loops(s, "output", x, w)
    dy = 2 * y * c
    change = 2 * c * (loops(s, "output", dx, w) + loops(s, "output", x, dw))
    return [
        y, loops(s, "input", dy, w), loops(s, "weight", x, dy),
        loops(s, "input", change, w) + loops(s, "input", dy, dw),
        loops(s, "weight", x, change) + loops(s, "weight", dx, dy),
    ]  # fmt: skip


def operands_of(of: Case) -> list[Tensor]:
    s = of.windows
    scale = 1 / np.sqrt(s.inputs * np.prod(s.kernel))
    arrays = [
        rng.uniform(-1, 1, shape) * by
        for shape, by in ((s.x, 1), (s.w, scale), (s.y, 1), (s.x, 1), (s.w, scale))
    ]
    return [Tensor(a.astype(np.float64)).astype(getattr(gc, of.dtype)) for a in arrays]


class Made(NamedTuple):
    plan: Any
    want: list[np.ndarray]


@pytest.fixture(scope="module")
def made() -> dict[str, Made]:
    found = {}
    for name, of in CASES.items():
        operands = operands_of(of)
        gc.set_context(gpu_config={"matmul_allow_tf32": of.tf32})
        of_images, of_weights = of.last
        last = (of_images, of_weights, of_images, of_images, of_weights)
        stored = [
            Tensor(np.ascontiguousarray(moved(x.astype(gc.float64).asnumpy(), there))).astype(
                x.dtype
            )
            for x, there in zip(operands, last, strict=True)
        ]
        plan = cuda.plan_of(derivatives(of), *stored)
        exact = in_float64(of.windows, [x.astype(gc.float64).asnumpy() for x in operands])
        of_results = (of_images, of_images, of_weights, of_images, of_weights)
        found[name] = Made(plan, [moved(a, at) for a, at in zip(exact, of_results, strict=True)])
    gc.set_context(gpu_config={"matmul_allow_tf32": False})
    return found


@pytest.fixture(scope="module")
def batch(
    made: dict[str, Made], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Batch:
    plans = {name: m.plan for name, m in made.items()}
    return Batch(chosen(request, plans), tmp_path_factory.mktemp("convolution"))


@pytest.mark.one_in(32)
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_those_of_float64(
    name: str, made: dict[str, Made], batch: Batch
) -> None:
    of = CASES[name]
    names = [title for title, _ in made[name].plan.kernels]
    assert not any(
        "transpose" in title for title in names
    )  # each is read and written where it lies
    kernels = [text for title, text in made[name].plan.kernels if title.startswith("gc_conv")]
    assert all("gc_convolve<" in text or "double s = 0" in text for text in kernels)
    tolerance = TOLERANCE["TF32" if of.tf32 else of.dtype]
    got = batch.run(list(CASES).index(name), threads=None, grid=3)
    for k, want in enumerate(made[name].want):
        # Derivatives pass through what is rounded to the half type before.
        most = tolerance * np.abs(want).max() * (1 if k == 0 or of.dtype == "float32" else 3)
        np.testing.assert_allclose(got[k], want, rtol=0, atol=most, err_msg=f"{name}, {k}")


@pytest.mark.parametrize("name", ["groups"])
def test_in_which_order_threads_run_changes_no_bit(name: str, batch: Batch) -> None:
    number = list(CASES).index(name)
    one, other = (batch.run(number, threads=None, grid=g, order=o) for g, o in ((1, 0), (4, 9)))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_no_number_stays_where_it_is(tmp_path: Any) -> None:
    """Infinity in one pixel of one image, NaN in another and numbers near the largest: what tensor cores give
    is what multiply-adds do, and NumPy."""
    s = windows((6, 6), (3, 3), images=3, inputs=16, outputs=16)
    x, w = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in (s.x, s.w))
    x[0, 3, 1, 1], x[1, 5, 5, 5], x[2, 7, 0, 0] = np.inf, np.nan, 3e38
    found = []
    for capability in (90, 75):
        _core.plan_for_cuda(capability)
        plan = cuda.plan_of(lambda x, w: convolved(s, "output", x, w), Tensor(x), Tensor(w))
        folder = tmp_path / str(capability)
        folder.mkdir()
        found.append(Batch([plan], folder).run(0, threads=None)[0])
    with np.errstate(invalid="ignore"):
        want = loops(s, "output", x.astype(np.float64), w.astype(np.float64))
    assert np.isnan(want).any() and np.isinf(want).any() and np.isfinite(want).any()
    for got in found:
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


# What a kernel computes after a convolution ------------------------------------------------------


class End(NamedTuple):
    fn: Callable[..., Any]
    kernels: list[str]
    after: Callable[..., Any]  #: of the convolution's result in NumPy, and of the operands
    images: int = 2


def silu(x: Any) -> Any:
    return x / (1 + np.exp(-x))


OF_ENDS = windows((6, 5), (3, 3), 1, 1, 1, 1, images=2, inputs=16, outputs=20)


def applied(x: Tensor, w: Tensor) -> Tensor:
    return convolved(OF_ENDS._replace(images=x.shape[0]), "output", x, w)


def channels(b: Tensor) -> Tensor:
    return ops.reshape(b, (1, -1, 1, 1))


ENDS = {
    "bias": End(lambda x, w, b, r: applied(x, w) + channels(b), ["gc_convolution_add_0"],
                lambda y, b, r: y + b),
    "bias and activation": End(lambda x, w, b, r: ops.relu(applied(x, w) + channels(b)),
                               ["gc_convolution_relu_add_0"], lambda y, b, r: np.maximum(y + b, 0)),
    "used twice": End(lambda x, w, b, r: ops.silu(applied(x, w) * channels(b)) + r,
                      ["gc_convolution_add_mul_sigmoid_0"], lambda y, b, r: silu(y * b) + r),
    "a cast": End(lambda x, w, b, r: ops.tanh(applied(x, w) + r).astype(gc.float16),
                  ["gc_convolution_cast_tanh_add_0"], lambda y, b, r: np.tanh(y + r)),
    "in a view": End(lambda x, w, b, r: ops.exp(ops.reshape(applied(x, w), (-1,))),
                     ["gc_convolution_exp_0"], lambda y, b, r: np.exp(y).ravel()),
    # What is returned as well is stored, and the rest computed from that.
    "returned": End(lambda x, w, b, r: [y := applied(x, w) - channels(b), ops.exp(y)],
                    ["gc_convolution_sub_0", "gc_exp_1"], lambda y, b, r: [y - b, np.exp(y - b)]),
    # A number that is the same for all is there only after a kernel that needs the convolution.
    "a mean": End(lambda x, w, b, r: (y := applied(x, w)) - y.mean(),
                  ["gc_convolution_0", "gc_reduce_sum_1", "gc_sub_div_2"],
                  lambda y, b, r: y - y.mean()),
    # 5 steps of 32 terms are too few for parts; 200 are not.
    "parts": End(lambda x, w, b, r: ops.relu(
        convolved(windows((3, 3), (3, 3), images=1, inputs=224, outputs=20), "output", x, w) * channels(b)),
        ["gc_convolution_0", "gc_relu_mul_1"], lambda y, b, r: np.maximum(y * b, 0)),
}  # fmt: skip


def of_end(name: str) -> tuple[End, list[np.ndarray], np.ndarray]:
    """The case, its operands and the convolution's result."""
    end = ENDS[name]
    s = OF_ENDS
    if name == "parts":
        s = windows((3, 3), (3, 3), images=1, inputs=224, outputs=20)
    x, w, r = (rng.uniform(-1, 1, shape) / by for shape, by in ((s.x, 1), (s.w, 12), (s.y, 1)))
    arrays = [a.astype(np.float32) for a in (x, w, rng.uniform(0.5, 1, s.w[0]), r)]
    return end, arrays, loops(s, "output", *(a.astype(np.float64) for a in arrays[:2]))


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> tuple[Batch, dict[str, Any]]:
    made = {name: of_end(name) for name in ENDS}
    plans = [cuda.plan_of(end.fn, *map(Tensor, arrays)) for end, arrays, _ in made.values()]
    return Batch(plans, tmp_path_factory.mktemp("ends")), made


@pytest.mark.parametrize("name", ENDS)
def test_what_comes_after_is_in_the_kernel(name: str, ends: tuple[Batch, dict[str, Any]]) -> None:
    batch, made = ends
    end, (_, _, b, r), y = made[name]
    number = list(ENDS).index(name)
    assert [title for title, _ in batch.plans[number].kernels] == end.kernels
    want = end.after(y, b.reshape(-1, 1, 1).astype(np.float64), r.astype(np.float64))
    got = batch.run(number, threads=None, grid=2)
    near = 2e-3 if name == "a cast" else 2e-5
    for a, expected in zip(got, want if isinstance(want, list) else [want], strict=True):
        np.testing.assert_allclose(a, expected, rtol=near, atol=near)


def test_layers_with_channels_last_move_each_tensor_once() -> None:
    """(n, h, w, c) from one layer to the next, with biases and activations: no transposes, and no kernel
    but the convolutions'."""
    s = windows((16, 16), (3, 3), 1, 1, 1, 1, images=16, inputs=32, outputs=32)
    layer = ops.Conv2D(32, 3, pad_mode="same", data_format="NHWC")
    x, w, b = (Tensor(np.zeros(n, np.float32)) for n in ((16, 16, 16, 32), (32, 3, 3, 32), (32,)))

    def network(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        for _ in range(2):
            x = ops.relu(layer(x, w) + b)
        return x

    plan = cuda.plan_of(network, x, w, b)
    steps = plan.raw["steps"]
    image, weight = 4 * np.prod(s.x), 4 * np.prod(s.w)
    assert len(steps) == 2
    for step in steps:
        assert step["bytes_read"] == image + weight + 4 * 32
        assert step["bytes_written"] == image


def test_training_step_of_layers() -> None:
    """Forward a layer is one kernel; the derivative of an activation is in the gradient that comes to it."""
    net = nn.SequentialCell(
        nn.Conv2d(16, 32, 3, has_bias=True),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, has_bias=True),
        nn.ReLU(),
    )
    x = Tensor(np.zeros((8, 16, 12, 12), np.float32))
    weights = net.trainable_params()
    plan = cuda.plan_of(gc.value_and_grad(lambda x: net(x).sum(), None, weights), x)
    launched = [step["kernel"] for step in plan.raw["steps"]]
    assert launched[:2] == ["gc_convolution_relu_add_0"] * 2
    assert sum(name.startswith("gc_convolution_input_where_greater") for name in launched) == 1
    assert sum("where" in name for name in launched) == 2  # the last layer's by itself


# Plans -------------------------------------------------------------------------------------------


def planned(s: Windows, part: str, dtype: str = "float32") -> Any:
    a, b = (
        Tensor(np.zeros(shape, np.float32)).astype(getattr(gc, dtype)) for shape in shapes(s, part)
    )
    return cuda.plan_of(lambda a, b: convolved(s, part, a, b), a, b)


LAYER = windows((32, 32), (3, 3), 1, 1, 1, 1, images=128, inputs=64, outputs=64)
SMALL = windows((7, 7), (3, 3), 1, 1, 1, 1, images=1, inputs=512, outputs=512)
FIRST = windows((32, 32), (3, 3), 1, 1, 1, 1, images=128, inputs=3, outputs=64)
DEPTHWISE = windows((32, 32), (3, 3), 1, 1, 1, 1, images=128, groups=64, inputs=1, outputs=1)


@pytest.mark.parametrize(
    ("layer", "part", "blocks", "parts"),
    [
        (LAYER, "output", 131072 // 128, 1),
        (LAYER, "input", 131072 // 128, 1),
        (LAYER, "weight", 9 * 28, 28),  # one tile by nine, the terms of 131,072 places in 28 parts
        (SMALL, "output", 8 * 18, 18),  # 144 steps of 32 terms, 8 of them each
        (SMALL, "weight", 4 * 72, 1),
        (FIRST, "output", 131072 // 128, 1),
        (FIRST, "weight", 256, 256),
        (DEPTHWISE, "weight", 64 * 4, 4),
    ],
)  # fmt: skip
def test_tiles_and_parts_keep_a_gpu_busy(
    layer: Windows, part: str, blocks: int, parts: int
) -> None:
    steps = planned(layer, part).raw["steps"]
    assert steps[0]["grid"] == blocks
    assert len(steps) == 1 + (parts > 1)
    if parts > 1:
        # Each element's partial sums are read once.
        count = np.prod({"output": layer.y, "weight": layer.w}[part])
        assert steps[1]["bytes_read"] == parts * count * 4
    places = np.prod(layer.output) * layer.images * layer.groups
    assert steps[0]["flops"] == 2 * places * layer.inputs * layer.outputs * np.prod(layer.kernel)


def test_layers_of_one_kind_share_a_kernel() -> None:
    layers = [
        windows((n, n), (k, k), stride, 1, k // 2, k // 2, images=64, inputs=c, outputs=d)
        for n, k, stride, c, d in ((32, 3, 1, 64, 64), (32, 3, 2, 64, 128), (32, 5, 1, 32, 96))
    ]
    texts = {planned(s, "output").kernels[0][1] for s in layers}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("layer", "dtype", "capability", "shared"),
    [
        (DEPTHWISE, "float32", 90, 227 << 10),  # 1 of 64 columns, and 9 of 32 terms
        (LAYER, "int32", 90, 227 << 10),
        (LAYER, "float64", 75, 64 << 10),
        (windows((80,), (65,), inputs=32, outputs=32), "float32", 90, 227 << 10),  # 65 bits
    ],
)  # fmt: skip
def test_what_tiles_are_not_for(layer: Windows, dtype: str, capability: int, shared: int) -> None:
    _core.plan_for_cuda(capability, shared)
    assert "gc_convolve<" not in planned(layer, "output", dtype).kernels[0][1]


# Compilers ---------------------------------------------------------------------------------------

DTYPES = ("float32", "float16", "bfloat16", "float64")


def kernels_of(dtype: str) -> Kernels:
    return Kernels([planned(LAYER, part, dtype) for part in ("output", "input", "weight")])


@pytest.mark.one_in(40)
@pytest.mark.parametrize(
    "arch",
    [*(pytest.param(a, marks=pytest.mark.slow) for a in ("sm_75", "sm_80", "sm_100")), "sm_90"],
)
def test_compiles_without_spills(arch: str) -> None:
    for dtype in DTYPES:
        kernels = kernels_of(dtype)
        usage = Nvrtc().usage(kernels.source(), arch)
        assert len(usage) == len(kernels.texts)
        assert {name: of for name, of in usage.items() if of.spilled} == {}


@pytest.mark.parametrize(
    ("dtype", "tf32", "instruction"),
    [
        ("float32", False, "HMMA.1688.F32.TF32"),
        ("float32", True, "HMMA.1688.F32.TF32"),
        ("float16", False, "HMMA.16816.F32"),
        ("bfloat16", False, "HMMA.16816.F32.BF16"),
    ],
)
def test_tensor_cores_compute_the_products(
    dtype: str, tf32: bool, instruction: str, tmp_path: Any
) -> None:
    gc.set_context(gpu_config={"matmul_allow_tf32": tf32})
    kernels = kernels_of(dtype)
    file = tmp_path / "convolution.cubin"
    file.write_bytes(Nvrtc().compile(kernels.source(), "sm_90"))
    sass = subprocess.run(
        [disassembler(), "-c", str(file)], capture_output=True, text=True, check=True
    ).stdout
    found = re.findall(r"HMMA[.\w]+", sass)
    assert set(found) == {instruction}
    # A step of 32 terms is written out: 128 x 64 by two kernels, 64 x 64 by the third, of which a warp has an
    # eighth; an instruction takes 16 x 8 of 8 or 16 terms.
    parts = (2 + 2 + 1) * 4
    terms = 4 if dtype == "float32" else 2
    assert len(found) == parts * terms * (3 if dtype == "float32" and not tf32 else 1)
