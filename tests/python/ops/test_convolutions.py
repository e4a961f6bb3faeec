"""Convolutions and their adjoints, and pooling, at sizes that bands, classes and threads cut: against
plain loops in float64; dtypes, instruction sets, numbers that are not finite, bad input."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from window_rows import OPS, Windows, convolved, largest, loops, shapes, windows

import gradcell as ms
from gradcell import Tensor, _core, nn, ops

core = _core.ops

#: Large enough for several bands of an image, with every way of moving.
LARGE = {
    "plane": windows((33, 29), (3, 3), before=1, after=1, images=3, inputs=20, outputs=17),
    "one image": windows((61, 70), (3, 3), before=1, after=1, images=1, inputs=9, outputs=8),
    "kernel of 5": windows((32, 32), (5, 5), images=2, inputs=1, outputs=6),
    "strides": windows((30, 31), (3, 3), 2, 1, 1, 1, images=2, inputs=13, outputs=15),
    "stride of 3": windows((28, 40), (2, 5), 3, 1, 0, 2, images=2, inputs=7, outputs=9),
    "pointwise, strides": windows((16, 16), (1, 1), 2, images=2, inputs=33, outputs=31),
    "dilation": windows((25, 24), (3, 3), 1, 4, 4, 4, images=1, inputs=12, outputs=10),
    "groups": windows((20, 22), (3, 3), before=1, after=1, groups=3, inputs=5, outputs=7),
    "depthwise": windows((24, 24), (3, 3), 1, 1, 1, 1, groups=19, inputs=1, outputs=1),
    "line": windows((1500,), (9,), 1, 2, 8, 8, images=3, inputs=11, outputs=12),
    "line, strides": windows((999,), (7,), 4, 1, 3, 3, images=3, inputs=11, outputs=12),
    "space": windows((9, 10, 11), (3, 3, 3), 1, 1, 1, 1, images=2, inputs=6, outputs=5),
    "space, strides": windows((8, 9, 10), (2, 3, 2), 2, 1, 1, 0, images=2, inputs=6, outputs=9),
    "patches": windows((32, 32), (8, 8), 8, images=2, inputs=3, outputs=24),
    "many channels": windows((6, 6), (3, 3), before=1, after=1, inputs=150, outputs=140),
    "features as lanes": windows((16, 16), (3, 3), before=1, after=1, images=9, inputs=19, outputs=32),
    "lanes of 5 vectors": windows((40, 33), (3, 3), before=1, after=1, images=2, inputs=5, outputs=75),
    "lanes, strides": windows((17, 16), (3, 3), 2, 1, 1, 1, images=12, inputs=21, outputs=64),
    "lanes, small images": windows((4, 4), (3, 3), before=1, after=1, images=40, inputs=33, outputs=60),
    "lanes, a line": windows((5000,), (3,), before=1, after=1, images=2, inputs=7, outputs=48),
}  # fmt: skip


def operands(s: Windows, part: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a, b = shapes(s, part)
    return rng.standard_normal(a), rng.standard_normal(b)


def fast_loops(s: Windows, part: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """As `loops`, all places of a tap at once."""
    import itertools

    out = np.zeros({"output": s.y, "input": s.x, "weight": s.w}[part])
    for tap in itertools.product(*map(range, s.kernel)):
        xs, ys = [], []
        for n, p, t, u, d, b0 in zip(
            s.input, s.output, s.stride, tap, s.dilation, s.before, strict=True
        ):
            at = np.arange(p) * t + u * d - b0
            inside = (at >= 0) & (at < n)
            xs.append(at[inside]), ys.append(np.arange(p)[inside])
        for g in range(s.groups):
            c = np.arange(g * s.inputs, (g + 1) * s.inputs)
            o = np.arange(g * s.outputs, (g + 1) * s.outputs)
            n = np.arange(s.images)
            x, y, w = (
                np.ix_(n, c, *xs),
                np.ix_(n, o, *ys),
                (slice(o[0], o[-1] + 1), slice(None), *tap),
            )
            if part == "output":
                out[y] += np.einsum("nc...,oc->no...", a[x], b[w])
            elif part == "input":
                out[x] += np.einsum("no...,oc->nc...", a[y], b[w])
            else:
                left = a[x].reshape(s.images, s.inputs, -1)
                right = b[y].reshape(s.images, s.outputs, -1)
                out[w] += np.einsum("nop,ncp->oc", right, left)
    return out


@pytest.mark.one_in(4)
@pytest.mark.parametrize("part", OPS)
@pytest.mark.parametrize("name", LARGE)
def test_values(name: str, part: str) -> None:
    s = LARGE[name]
    a, b = operands(s, part)
    wanted = fast_loops(s, part, a, b)
    scale = np.abs(wanted).max()
    for dtype, tolerance in ((np.float64, 1e-13), (np.float32, 5e-6)):
        got = convolved(s, part, Tensor(a.astype(dtype)), Tensor(b.astype(dtype))).asnumpy()
        assert got.dtype == dtype
        np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("part", OPS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", LARGE)
def test_half_types_round_once(name: str, dtype: str, part: str) -> None:
    s = LARGE[name]
    kind = getattr(ms, dtype)
    a, b = (Tensor(v.astype(np.float32)).astype(kind) for v in operands(s, part))
    exact = fast_loops(s, part, *(v.astype(ms.float64).asnumpy() for v in (a, b)))
    got = convolved(s, part, a, b)
    assert got.dtype == kind
    ulp = 2.0 ** (-11 if dtype == "float16" else -8)
    error = np.abs(got.astype(ms.float64).asnumpy() - exact)
    assert (error <= 1.01 * ulp * np.abs(exact) + 1e-4 * np.abs(exact).max()).all()


@pytest.mark.parametrize("part", OPS)
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_integers_are_exact(dtype: str, part: str) -> None:
    s = windows((7, 6), (3, 2), 2, 1, 1, 1, groups=2, inputs=2, outputs=3)
    a, b = ((v * 3).astype(dtype) for v in operands(s, part))
    wanted = loops(s, part, a.astype(np.int64), b.astype(np.int64)).astype(dtype)
    np.testing.assert_array_equal(convolved(s, part, Tensor(a), Tensor(b)).asnumpy(), wanted)


SOME = (
    "plane", "one image", "strides", "groups", "line, strides", "space", "features as lanes",
    "lanes, strides",
)  # fmt: skip


@pytest.mark.parametrize("part", OPS)
@pytest.mark.parametrize("name", SOME)
def test_results_do_not_depend_on_the_number_of_threads(name: str, part: str) -> None:
    a, b = (Tensor(v.astype(np.float32)) for v in operands(LARGE[name], part))
    before = _core.max_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            ms.set_context(max_threads=threads)
            found.append(convolved(LARGE[name], part, a, b).asnumpy())
    finally:
        ms.set_context(max_threads=before)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


PROGRAM = """
import sys
sys.path[:0] = {tests!r}
import gradcell as ms
from gradcell import Tensor
import numpy as np
from test_convolutions import LARGE, OPS, SOME, convolved, fast_loops, operands
ms.set_context(max_threads=2)
for name in SOME:
    for part in OPS:
        a, b = operands(LARGE[name], part)
        wanted = fast_loops(LARGE[name], part, a, b)
        got = convolved(LARGE[name], part, Tensor(a.astype("f")), Tensor(b.astype("f"))).asnumpy()
        assert np.abs(got - wanted).max() <= 5e-6 * np.abs(wanted).max(), (name, part)
"""


@pytest.mark.parametrize("isa", _core.runnable_isa_levels()[:-1])
def test_lower_instruction_sets(isa: str) -> None:
    here = Path(__file__).parent
    support = here.parent / "support"
    program = PROGRAM.format(tests=[str(here), str(support), str(support / "cases")])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "GRADCELL_ISA": isa},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("part", OPS)
def test_what_is_not_finite_stays_where_windows_see_it(part: str) -> None:
    """An infinite corner of an image reaches no result or gradient whose windows do not touch it."""
    s = windows((9, 10), (2, 3), 2, images=2, inputs=3, outputs=4)
    a, b = operands(s, part)
    a[0, 1, 0, 0] = np.inf
    a[1, 0, -1, -1] = np.nan
    with np.errstate(invalid="ignore"):  # (some processors' products say so)
        wanted = loops(s, part, a, b)
    sound = np.isfinite(wanted)
    for dtype, tolerance in ((ms.float64, 1e-12), (ms.bfloat16, 0.05)):
        half = convolved(s, part, Tensor(a).astype(dtype), Tensor(b).astype(dtype))
        got = half.astype(ms.float64).asnumpy()
        np.testing.assert_array_equal(np.isfinite(got), sound)
        np.testing.assert_allclose(got[sound], wanted[sound], rtol=tolerance, atol=tolerance)


def test_adjoints_of_adjoints_are_convolutions() -> None:
    """The third derivative of a convolution's square is made of the family's ops alone."""
    s = windows((5, 6), (3, 3), 2, 1, 1, 1)
    x, w = (Tensor(v) for v in operands(s, "output"))

    def energy(x: Tensor, w: Tensor) -> Tensor:
        return ops.tanh(convolved(s, "output", x, w)).sum()

    def third(x: Tensor, w: Tensor) -> Tensor:
        first = lambda x, w: (ms.grad(energy)(x, w) ** 2).sum()  # noqa: E731
        return ms.grad(lambda x, w: (ms.grad(first, 1)(x, w) ** 2).sum())(x, w)

    text = ms.graph_text(third, x, w)
    assert {"Convolution(", "ConvolutionInput(", "ConvolutionWeight("} <= {
        line.split(" = ")[1].split("(")[0] + "(" for line in text.splitlines() if " = " in line
    }
    assert "Slice" not in text and "Concat" not in text


# Pooling -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_largest_of_windows(stride: int, dtype: str) -> None:
    rng = np.random.default_rng(1)
    x = np.round(rng.standard_normal((3, 2, 17, 18)) * 3).astype(dtype)  # with ties
    how = ((3, 2), (stride, stride), (1, 2), (1, 0), ((16 // stride) + 1, 15 // stride + 1))
    best, found = largest(x.astype(np.float64), *how)
    lists = [list(v) for v in how]
    np.testing.assert_array_equal(core.window_max(Tensor(x), *lists).asnumpy(), best.astype(dtype))
    np.testing.assert_array_equal(core.window_argmax(Tensor(x), *lists).asnumpy(), found)


def test_pooling_of_nan_and_infinities() -> None:
    x = np.array([[np.nan, 1, -np.inf, -np.inf, 3, np.inf, 2, np.nan]])
    got = core.window_max(Tensor(x), [2], [2], [1], [0], [4]).asnumpy()
    np.testing.assert_array_equal(got, [[np.nan, -np.inf, np.inf, np.nan]])
    found = core.window_argmax(Tensor(x), [2], [2], [1], [0], [4]).asnumpy()
    np.testing.assert_array_equal(found, [[0, 2, 5, 7]])


def test_max_pooling_sends_its_gradient_to_the_first_of_equals() -> None:
    x = Tensor(np.zeros((1, 1, 4, 4), np.float32))
    got = ms.grad(lambda x: nn.MaxPool2d(2, 2)(x).sum())(x).asnumpy()[0, 0]
    np.testing.assert_array_equal(got, [[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]])


# Networks ----------------------------------------------------------------------------------------


def test_channels_are_features_of_the_positions() -> None:
    """What stands between convolutions runs over positions: bias, batch norm, sums by channel."""
    rng = np.random.default_rng(2)
    x = Tensor(rng.standard_normal((3, 5, 6, 7)).astype(np.float32))
    scale = Tensor(rng.standard_normal(5).astype(np.float32))

    def layer(x: Tensor, scale: Tensor) -> Tensor:
        y = ops.tanh(x * scale.reshape(-1, 1, 1))
        return y / (1 + (y * y).sum((0, 2, 3), keepdims=True))

    assert "blocks of 42" in ms.plan_text(layer, x, scale)
    y = np.tanh(x.asnumpy().astype(np.float64) * scale.asnumpy()[:, None, None])
    wanted = y / (1 + (y * y).sum((0, 2, 3), keepdims=True))
    np.testing.assert_allclose(layer(x, scale).asnumpy(), wanted, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_channels_that_are_cut_and_joined(dtype: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((4, 6, 5, 3)).astype(dtype)
    shift = rng.standard_normal((1, 6, 1, 1)).astype(dtype)

    def mixed(x: Tensor, shift: Tensor) -> Tensor:
        y = x + shift
        z = ops.concat((y[:, 3:], y[:, :2] * 2, y[:, ::-2]), 1)
        return z - z.mean(1, True)

    y = x.astype(np.float64) + shift
    z = np.concatenate((y[:, 3:], y[:, :2] * 2, y[:, ::-2]), 1)
    wanted = z - z.mean(1, keepdims=True)
    tolerance = {"float16": 2e-2, "float32": 2e-6, "float64": 1e-14}[dtype]
    got = mixed(Tensor(x), Tensor(shift)).asnumpy()
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


# Bad input ---------------------------------------------------------------------------------------

IMAGE = Tensor(np.ones((1, 4, 5, 5), np.float32))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: ops.conv2d(IMAGE, ops.ones((2, 4, 7, 7))), ValueError, "after padding"),
        (lambda: ops.conv2d(IMAGE, ops.ones((2, 3, 3, 3))), ValueError, "4 channels"),
        (lambda: ops.conv2d(IMAGE, ops.ones((3, 2, 3, 3)), groups=2), ValueError, "groups"),
        (lambda: ops.conv2d(IMAGE, ops.ones((2, 4, 3))), ValueError, "4 dimensions"),
        (lambda: ops.conv2d(IMAGE, ops.ones((2, 4, 3, 3), ms.float64)), TypeError, "one type"),
        (lambda: nn.MaxPool2d(9)(IMAGE), ValueError, "after padding"),
        (
            lambda: core.convolution(IMAGE, ops.ones((3, 2, 3, 3)), [1, 1], [1, 1], [0, 0], [3, 3], 2),
            ValueError,
            "3 do not fall into 2 groups",
        ),
        (
            lambda: core.convolution(IMAGE, ops.ones((2, 4, 3, 3)), [0, 1], [1, 1], [0, 0], [3, 3], 1),
            ValueError,
            "stride",
        ),
        (
            lambda: core.convolution(IMAGE, ops.ones((2, 4, 3, 3)), [1], [1], [0], [3], 1),
            ValueError,
            "must have 3 dimensions",
        ),
        (
            lambda: core.convolution_weight(IMAGE, ops.ones((2, 4, 3, 3)), [1] * 2, [1] * 2, [0] * 2,
                                            [3, 3], 1),
            ValueError,
            "batches",
        ),
        (lambda: core.take_along(ops.ones((2, 3)), Tensor([[0]], ms.int32)), ValueError, "rows"),
        (lambda: core.take_along(ops.ones((1, 3)), Tensor([[3]], ms.int32)).asnumpy(), IndexError, "3"),
        (lambda: core.sample(ops.ones((1, 6, 5)), Tensor([[[0]]], ms.int32), ops.ones((1, 2, 1))), ValueError,
         "do not fit places"),
        (lambda: core.sample(ops.ones((1, 1, 3)), Tensor([[[3]]], ms.int32), ops.ones((1, 1, 1))).asnumpy(),
         IndexError, "place 3 is out of range for 3"),
        (lambda: core.put_along(Tensor([[-2]], ms.int32), ops.ones((1, 1)), 3).asnumpy(), IndexError,
         "-2"),
    ],
)  # fmt: skip
def test_operands_that_do_not_fit_are_refused(
    call: object, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says) as caught:
        call()  # type: ignore[operator]
    assert "test_convolutions.py" in str(caught.value) or error is IndexError
