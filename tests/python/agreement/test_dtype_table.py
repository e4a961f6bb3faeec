"""Calls of every function with every dtype (dtype_table.py), beside NumPy 2: none differs without a reason,
and the guide has a page of the reasons.

What was found by it, as tests of their own beside NumPy and SciPy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dtype_cases
import dtype_table
import numpy as np
import pytest
from scipy import linalg

import gradcell as gc
from gradcell import Tensor, mint, ops

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import dtypes

#: So many parts of the table; a default run takes one.
PARTS = 400


@pytest.mark.one_in(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_call_differs_from_numpy_without_a_reason(part: int) -> None:
    found = dtype_table.counted(dtype_cases.trials(one_in=PARTS, which=part))
    assert found.unexplained == []
    assert found.counts["equal to NumPy"] > found.counts["trials"] / 3


def test_the_guide_has_each_reason() -> None:
    page = dtypes.PAGE.read_text()
    rows = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines()]
    assert [why for why, _ in dtype_table.REASONS] == [
        r for r in rows if r in dict(dtype_table.REASONS)
    ]
    assert "| different without a reason | 0 |" in page


@pytest.mark.slow
def test_the_guide_s_page_is_what_the_table_gives() -> None:
    found = dtype_table.counted(dtype_cases.trials())
    assert dtypes.page(found, dtypes.stored()) == dtypes.PAGE.read_text()


IMAGE = np.array([[[[7, -2, 4, 1], [3, 8, -5, 2], [0, 6, 1, -9], [2, 2, 5, 3]]]])
ROWS = IMAGE[0, 0]
BOX = Tensor([[0.0, 0.3, 0.2, 2.9, 3.1]])
#: Functions that divide, or take means, of integers: of floats of the same numbers, as in NumPy and PyTorch.
OF_FRACTIONS: dict[str, tuple[Callable[[Tensor], Any], np.ndarray]] = {
    "avg_pool2d": (lambda x: ops.avg_pool2d(x, 2, 2), IMAGE),
    "avg_pool2d, divided by 3": (lambda x: ops.avg_pool2d(x, 2, 2, divisor_override=3), IMAGE),
    "AvgPool, same": (lambda x: ops.AvgPool(3, 2, "same")(x), IMAGE),
    "adaptive_avg_pool2d": (lambda x: ops.adaptive_avg_pool2d(x, (2, 3)), IMAGE),
    "batch_norm": (lambda x: ops.batch_norm(x, x[0], x[1] * x[1], x[2], x[3]), ROWS),
    "batch_norm, training": (
        lambda x: ops.batch_norm(x, x[0], x[1], x[2], x[3], training=True), ROWS,
    ),
    "layer_norm": (lambda x: ops.layer_norm(x, (4,)), ROWS),
    "group_norm": (lambda x: mint.nn.functional.group_norm(x, 1), IMAGE),
    "rms_norm": (lambda x: ops.rms_norm(x, x[0]), ROWS),
    "var_mean": (lambda x: ops.var_mean(x, 1), ROWS),
    "std_mean": (lambda x: ops.std_mean(x, 1), ROWS),
    "mint.var_mean": (lambda x: mint.var_mean(x, 1), ROWS),
    "clip_by_norm": (lambda x: ops.clip_by_norm(x, 0.7), ROWS),
    "clip_by_norm of a pair": (lambda x: ops.clip_by_norm((x, x), 0.7), ROWS),
    "clip_by_global_norm": (lambda x: ops.clip_by_global_norm((x, x), 0.7), ROWS),
    "ROIAlign": (lambda x: ops.ROIAlign(2, 2, 1.0, 2)(x, BOX), IMAGE),
    "lrn": (ops.lrn, IMAGE),
    "numpy.mean": (lambda x: gc.numpy.mean(x, 0), ROWS),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_FRACTIONS)
def test_integers_are_taken_as_floats_where_fractions_come_out(name: str) -> None:
    function, numbers = OF_FRACTIONS[name]
    for dtype in (np.int8, np.int32, np.int64):
        found = function(Tensor(numbers.astype(dtype)))
        wanted = function(Tensor(numbers.astype(np.float64)))
        pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
        for a, b in pairs:
            assert a.dtype == gc.float32
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), 2e-5, 1e-6)


def test_numpy_s_functions_of_integers() -> None:
    x = np.array([[3, -1, 2], [4, 0, 5], [7, 1, -6]])
    t = Tensor(x)
    for name in ("nanmax", "nanmin", "mean", "nansum", "nanprod"):
        function, theirs = getattr(gc.numpy, name), getattr(np, name)
        for axis in (None, 0, 1):
            found, wanted = function(t, axis).asnumpy(), theirs(x, axis)
            assert found.dtype.kind == np.asarray(wanted).dtype.kind, name
            np.testing.assert_allclose(found, wanted, 1e-6)
    assert gc.numpy.fmax(Tensor(np.int8([1, 5])), 3).dtype == gc.int8
    assert gc.numpy.nan_to_num(t).dtype == gc.numpy.conj(t).dtype == gc.int64
    np.testing.assert_array_equal(gc.numpy.convolve(t[0], 3).asnumpy(), np.convolve(x[0], 3))
    for n in (0, 1, 5, -2):
        found, wanted = gc.numpy.matrix_power(t, n), np.linalg.matrix_power(x, n)
        assert found.asnumpy().dtype.kind == wanted.dtype.kind
        np.testing.assert_allclose(found.asnumpy(), wanted, 1e-5)


def test_a_correlation_conjugates_the_second_vector() -> None:
    rng = np.random.default_rng(0)
    a, v = (rng.standard_normal(n) + 1j * rng.standard_normal(n) for n in (7, 4))
    for mode in ("valid", "same", "full"):
        found = gc.numpy.correlate(Tensor(a), Tensor(v), mode).asnumpy()
        np.testing.assert_allclose(found, np.correlate(a, v, mode), 1e-12)


def test_exponentials_of_complex_matrices_have_all_digits_of_complex64() -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((5, 5)) + 1j * rng.standard_normal((5, 5))).astype(np.complex64)
    found = ops.matrix_exp(Tensor(x)).asnumpy()
    np.testing.assert_allclose(found, linalg.expm(x.astype(complex)), 1e-6, 1e-6)


WHOLE = np.array([4, 1, -3])
IN_PLACE = {
    "exp_": lambda x: x.exp_(), "tanh_": lambda x: x.tanh_(), "sigmoid_": lambda x: x.sigmoid_(),
    "div_": lambda x: x.div_(2), "mul_": lambda x: x.mul_(0.5), "add_": lambda x: x.add_(1.5),
    "sub_": lambda x: x.sub_(Tensor([0.5])), "clamp_": lambda x: x.clamp_(-0.5, 0.5),
    "remainder_": lambda x: x.remainder_(0.3), "complex add_": lambda x: x.float().add_(Tensor([1j])),
    "add_ to bools": lambda x: x.bool().add_(1),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_no_fraction_and_no_imaginary_part_is_dropped(name: str) -> None:
    """NumPy's `out=` and PyTorch refuse it too."""
    x = Tensor(WHOLE)
    with pytest.raises(TypeError, match=r"cannot hold; call \w+, or cast the tensor first"):
        IN_PLACE[name](x)
    np.testing.assert_array_equal(x.asnumpy(), WHOLE)


def test_in_place_a_copy_is_cast_and_wider_dtypes_take_narrower_ones() -> None:
    np.testing.assert_array_equal(
        Tensor(WHOLE).copy_(Tensor([1.5, 2.5, -1.5])).asnumpy(), [1, 2, -1]
    )
    assert Tensor(WHOLE).float().add_(Tensor(WHOLE)).dtype == gc.float32
    assert Tensor(WHOLE).add_(Tensor([True, False, True])).dtype == gc.int64


def test_the_dot_product_of_vectors_conjugates_the_first_one() -> None:
    a, b = np.array([1 + 2j, -3j]), np.array([2 - 1j, 4 + 1j])
    assert mint.vdot(Tensor(a), Tensor(b)).item() == np.vdot(a, b)


def test_functions_of_real_numbers_refuse_others() -> None:
    z = Tensor([1 + 2j])
    functions = {
        "digamma": lambda: ops.digamma(z), "zeta": lambda: ops.zeta(z, 2.5),
        "igamma": lambda: ops.igamma(z, z), "igammac": lambda: ops.igammac(2.5, z),
    }  # fmt: skip
    for name, function in functions.items():
        with pytest.raises(TypeError, match=f"{name}: not defined for complex numbers"):
            function()
    with pytest.raises(TypeError, match=r"histc: .*bool"):
        ops.histc(Tensor([True, False]), 2)
