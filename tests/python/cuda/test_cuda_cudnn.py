"""Convolutions by cuDNN: which a plan leaves to it, and values and derivatives by a made-up one
(tests/fake_cudnn.cpp) beside float64 in plain loops; what it refuses, and what there is without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from made_up_gpu import Process
from window_rows import Windows, convolved, shapes, windows

import gradcell as gc
from gradcell import Tensor, _core, cuda, ops

pytestmark = pytest.mark.one_in(8)  # each has a process of its own, and compiles kernels

GPU = "ms.set_context(device_target='GPU')\n"

# Plans -------------------------------------------------------------------------------------------

LAYER = windows((32, 32), (3, 3), 1, 1, 1, 1, images=16, inputs=32, outputs=64)
PARTS = ("output", "input", "weight")


@pytest.fixture(autouse=True)
def with_cudnn() -> Iterator[None]:
    _core.plan_for_cuda(cudnn=True)
    yield
    gc.set_context(gpu_config={"matmul_allow_tf32": False})
    _core.plan_for_cuda()


def planned(s: Windows, part: str = "output", dtype: str = "float32") -> Any:
    a, b = (
        Tensor(np.zeros(shape, np.float32)).astype(getattr(gc, dtype)) for shape in shapes(s, part)
    )
    return cuda.plan_of(lambda a, b: convolved(s, part, a, b), a, b)


@pytest.mark.parametrize("part", PARTS)
def test_a_large_convolution_is_one_call(part: str) -> None:
    plan = planned(LAYER, part)
    (step,) = plan.steps
    c = step["convolution"]
    assert (plan.convolutions, plan.launches, plan.kernels) == (1, 0, [])
    assert (c["part"], c["dtype"], c["tf32"], c["channels_last"]) == (part, "float32", False, False)
    assert (c["images"], c["groups"], c["inputs"], c["outputs"]) == (16, 1, 32, 64)
    axis = {"input": 32, "kernel": 3, "output": 32, "stride": 1, "dilation": 1, "before": 1}
    assert c["axes"] == [axis, axis]
    sizes = {"output": LAYER.y, "input": LAYER.x, "weight": LAYER.w}
    read = [4 * np.prod(shape) for name, shape in sizes.items() if name != part]
    assert step["bytes_read"] == sum(read)
    assert step["bytes_written"] == 4 * np.prod(sizes[part])
    assert step["flops"] == 2 * 16 * 32 * 64 * 32 * 32 * 9
    named = "cuDNN float32" + ("" if part == "output" else f", gradient of {part}")
    assert named in plan.table() and "1 convolutions by cuDNN" in plan.table()


def test_without_cudnn_nothing_is_left_to_it() -> None:
    _core.plan_for_cuda()
    plan = planned(LAYER)
    assert plan.convolutions == 0 and "gc_convolve<" in plan.kernels[0][1]


def test_tf32_where_it_is_allowed() -> None:
    gc.set_context(gpu_config={"matmul_allow_tf32": True})
    assert planned(LAYER).steps[0]["convolution"]["tf32"]
    assert not planned(LAYER, dtype="float16").steps[0]["convolution"]["tf32"]


@pytest.mark.parametrize(
    ("layer", "part", "dtype"),
    [
        (LAYER._replace(images=1, inputs=4), "output", "float32"),  # 2.4e6 multiply-adds
        (LAYER, "output", "float64"),
        (LAYER, "output", "int32"),
        (windows((32, 32), (3, 3), 2, 1, 0, 1, images=64, inputs=32, outputs=64), "input", "float16"),
        (windows((34, 34), (3, 3), 1, 1, -1, -1, images=16, inputs=32, outputs=64), "weight", "float32"),
        (LAYER._replace(output=(30, 30)), "output", "float32"),  # not all the windows that fit
        (windows((64, 64), (3, 3), 1, 1, 1, 1, images=64, groups=64, inputs=1, outputs=1), "output",
         "float32"),  # a thread an element
    ],
)  # fmt: skip
def test_what_is_not_left_to_it(layer: Windows, part: str, dtype: str) -> None:
    assert planned(layer, part, dtype).convolutions == 0


def test_bfloat16_only_where_a_gpu_has_it() -> None:
    assert planned(LAYER, dtype="bfloat16").convolutions == 1
    _core.plan_for_cuda(75, 64 << 10, cudnn=True)
    assert planned(LAYER, dtype="bfloat16").convolutions == 0
    assert planned(LAYER, dtype="float16").convolutions == 1


def test_more_padding_behind_that_no_window_needs() -> None:
    s = windows((31, 31), (3, 3), 2, 1, 0, 1, images=64, inputs=32, outputs=64)
    assert planned(s).convolutions == 1


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_what_comes_after_is_a_kernel_of_its_own(layout: str) -> None:
    layer = ops.Conv2D(32, 3, pad_mode="same", data_format=layout)
    last = layout == "NHWC"
    x, w, b = (
        Tensor(np.zeros((n[0], *n[2:], n[1]) if last else n, np.float32))
        for n in ((16, 32, 24, 24), (32, 32, 3, 3), (1, 32, 1, 1))
    )
    plan = cuda.plan_of(lambda x, w, b: layer(ops.relu(layer(x, w) + b), w) + b, x, w, b)
    assert ["convolution" in step for step in plan.steps] == [True, False] * 2
    calls = [step["convolution"] for step in plan.steps if "convolution" in step]
    assert [c["channels_last"] for c in calls] == [last] * 2
    assert [name for name, _ in plan.kernels] == ["gc_relu_add_0", "gc_add_1"]


def test_tensors_that_lie_in_different_ways_are_not_left_to_it() -> None:
    x = Tensor(np.zeros((16, 32, 32, 32), np.float32))
    w = Tensor(np.zeros(LAYER.w, np.float32))
    plan = cuda.plan_of(
        lambda x, w: convolved(LAYER, "output", ops.transpose(x, (0, 3, 1, 2)), w), x, w
    )
    assert plan.convolutions == 0 and len(plan.steps) == 1


# Values by a made-up library ---------------------------------------------------------------------

VALUES = '''
from window_rows import convolved, loops, windows

def second(t, last): return ops.transpose(t, (0, t.ndim - 1, *range(1, t.ndim - 1))) if last else t
def moved(a, last): return np.ascontiguousarray(np.moveaxis(a, 1, -1)) if last else a

def check(s, dtype, near, last=False):
    """The convolution, the gradient of <y y, c>, and that of <gradient, d>. With channels last of <y, c>: y y
    would lie with its channels second, as derivatives have it."""
    square = not last
    def convolution(x, w):
        y = convolved(s, "output", second(x, last), second(w, last))
        return ops.transpose(y, (0, *range(2, y.ndim), 1)) if last else y
    def first(x, w, c):
        def loss(x, w):
            y = convolution(x, w)
            return (y * y * c if square else y * c).sum()
        return ms.grad(loss, (0, 1))(x, w)
    @ms.jit
    def run(x, w, c, dx, dw):
        def along(x, w):
            a, b = first(x, w, c)
            return (a * dx).sum() + (b * dw).sum()
        return [convolution(x, w), *first(x, w, c), *ms.grad(along, (0, 1))(x, w)]
    scale = 1 / np.sqrt(s.inputs * np.prod(s.kernel))
    made = [Tensor(moved(rng.uniform(-1, 1, shape) * by, last)).astype(getattr(ms, dtype))
            for shape, by in ((s.x, 1), (s.w, scale), (s.y, 1), (s.x, 1), (s.w, scale))]
    for _ in range(RUNS):
        got = [t.astype(ms.float64).asnumpy() for t in run(*made)]
    back = (lambda a: np.moveaxis(a, -1, 1)) if last else (lambda a: a)
    x, w, c, dx, dw = (back(t.astype(ms.float64).asnumpy()) for t in made)
    y = loops(s, "output", x, w)
    dy = 2 * y * c if square else c
    change = 2 * c * (loops(s, "output", dx, w) + loops(s, "output", x, dw)) if square else 0 * c
    want = [y, loops(s, "input", dy, w), loops(s, "weight", x, dy),
            loops(s, "input", change, w) + loops(s, "input", dy, dw),
            loops(s, "weight", x, change) + loops(s, "weight", dx, dy)]
    for k, (a, b) in enumerate(zip(got, want)):
        error = np.abs(back(a) - b).max() / np.abs(b).max()
        assert error < near * (1 if k == 0 else 3), (k, error)
        errors.append(error)
errors = []
'''

PLANE = "windows((16, 16), (3, 3), 1, 1, 1, 1, images=8, inputs=32, outputs=32)"
CASES = {
    "float32": f"check({PLANE}, 'float32', 1e-6)",
    "float16": f"check({PLANE}, 'float16', 2e-3)",
    "bfloat16": f"check({PLANE}, 'bfloat16', 2e-2)",
    "channels last": f"check({PLANE}, 'float16', 2e-3, True)",
    "line": "check(windows((600,), (5,), 3, 2, 4, 4, images=4, inputs=64, outputs=72), 'float32', 1e-6)",
    "space": "check(windows((6, 8, 8), (3, 2, 3), 1, 1, 1, 1, images=3, inputs=32, outputs=32),"
             " 'float32', 1e-6)",
    "strides, dilation, groups": "check(windows((24, 21), (3, 3), 2, 2, 2, 2, groups=2, images=8, inputs=32,"
                                 " outputs=36), 'float32', 1e-6)",
}  # fmt: skip


@pytest.mark.one_in(24)
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_those_of_float64(name: str, process: Process) -> None:
    process.good(GPU + "RUNS = 3\n" + VALUES + CASES[name])
    counts = process.counts()
    # y; x' and w' by dy; y by dx and by dw; two of x' and of w'. Without the square three are nought.
    once = 5 if name == "channels last" else 9
    assert counts["convolutions"] == 3 * once and counts["graphs"] > 0


def test_tf32_only_where_it_is_allowed(process: Process) -> None:
    allow = "ms.set_context(gpu_config={'matmul_allow_tf32': True})\n"
    process.good(
        GPU + "RUNS = 1\n" + VALUES + allow + f"check({PLANE}, 'float32', 2e-3)\n"
        "assert min(errors) > 1e-5, errors"
    )


ONE = """
from window_rows import convolved, windows
s = windows((16, 16), (3, 3), 1, 1, 1, 1, images=8, inputs=32, outputs=32)
x, w = tensor(*s.x), tensor(*s.w)
print(convolved(s, "output", x, w).asnumpy().sum())
"""


@pytest.mark.one_in(1)
@pytest.mark.parametrize(
    "name",
    [
        "cudnnCreate",
        "cudnnSetTensorNdDescriptor",
        "cudnnSetConvolutionGroupCount",
        "cudnnGetConvolutionForwardAlgorithm_v7",
        "cudnnConvolutionForward",
    ],
)
def test_a_call_that_fails(name: str, process: Process) -> None:
    error = process.error(GPU + ONE, FAKE_CUDNN_FAILS=name)
    assert f"{name} failed: CUDNN_STATUS_INTERNAL_ERROR" in error
    assert "GRADCELL_CUDNN=0" in error


@pytest.mark.one_in(1)
def test_no_algorithm_that_is_deterministic(process: Process) -> None:
    error = process.error(GPU + ONE, FAKE_CUDNN_ALGORITHMS="0")
    assert "no deterministic algorithm" in error and "float32, 32 to 32 channels" in error
    assert "GRADCELL_CUDNN=0" in error


@pytest.mark.one_in(1)
def test_a_library_that_does_not_open_names_its_extra(process: Process) -> None:
    broken = process.folder / "broken.so"
    broken.write_text("")
    error = process.error(GPU + ONE, GRADCELL_CUDNN=str(broken))
    if "cuDNN" not in error:
        pytest.skip("the system has cuDNN")
    assert "gradcell[cudnn13]" in error


INFO = """
from gradcell.base import gpu
print(dict(gpu.report())["cuDNN"])
"""


def test_info_says_which(process: Process) -> None:
    assert process.good(INFO).startswith("9.28.1 " + process.environment["GRADCELL_CUDNN"])
    assert process.good(INFO, GRADCELL_CUDNN="0").strip() == "not used: GRADCELL_CUDNN=0"


def test_plans_are_for_the_gpu_in_use(process: Process) -> None:
    looks = """
plan = ms.cuda.plan_of(lambda x, w: convolved(s, "output", x, w), x, w)
assert plan.convolutions == int({there}), plan.table()
"""
    setup = GPU + ONE.replace("print", "# ")
    process.good(setup + looks.format(there=1))
    process.good(setup + looks.format(there=0), GRADCELL_CUDNN="0")


@pytest.mark.one_in(1)
def test_it_can_be_turned_off(process: Process) -> None:
    # The made-up GPU has no whole warps, which our kernel needs.
    error = process.error(GPU + ONE, GRADCELL_CUDNN="0")
    assert "gc_convolution_0 failed" in error and process.counts()["convolutions"] == 0


@pytest.mark.one_in(1)
def test_an_array_at_an_odd_address(process: Process) -> None:
    """cuDNN's kernels for tensor cores read 16 bytes at a time."""
    script = """
class Shared:
    def __init__(self, tensor, skipped):
        self.of = tensor
        self.__cuda_array_interface__ = {**tensor.__cuda_array_interface__, "shape": s.x}
        address, _ = tensor.__cuda_array_interface__["data"]
        self.__cuda_array_interface__["data"] = (address + 4 * skipped, False)
large = tensor(int(np.prod(s.x)) + 4).move_to("GPU")
convolved(s, "output", ms.from_numpy(Shared(large, 4)), w).asnumpy()
convolved(s, "output", ms.from_numpy(Shared(large, 1)), w).asnumpy()
"""
    error = process.error(GPU + ONE + script)
    assert "multiples of 16" in error and "GRADCELL_CUDNN=0" in error
