"""Products of small matrices, which no library computes: all of a batch in one call."""

from __future__ import annotations

import ctypes
import itertools
import mmap

import numpy as np
import pytest

from gradcell import Tensor, ops

RNG = np.random.default_rng(8)
SIZES = [1, 2, 3, 4, 5, 8, 9, 16]
#: On both sides of the largest: rows, columns, terms.
BORDERS = [*itertools.product([31, 32, 33], [15, 16, 17], [31, 32, 33])]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 3, 700])
@pytest.mark.parametrize("turned", [*itertools.product([False, True], repeat=2)], ids=str)
def test_all_sizes(turned, count, dtype):
    sizes = SIZES if count < 100 else [1, 3, 8]
    for m, n, k in [*itertools.product(sizes, repeat=3), *(BORDERS if count < 100 else ())]:
        a, b = (
            RNG.normal(size=(count, m, k)).astype(dtype),
            RNG.normal(size=(count, k, n)).astype(dtype),
        )
        given = [
            np.swapaxes(x, 1, 2).copy() if t else x for x, t in zip((a, b), turned, strict=True)
        ]
        found = ops.BatchMatMul(*turned)(*map(Tensor, given)).asnumpy()
        near = 1e-5 if dtype == np.float32 else 1e-13
        np.testing.assert_allclose(found, a.astype(np.float64) @ b, atol=near)


def before_a_page(array):
    """The array behind which no memory can be read."""
    page = mmap.PAGESIZE
    whole = (array.nbytes + page - 1) // page * page
    pages = mmap.mmap(-1, whole + page)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(begin + whole), page, 0) == 0
    placed = np.frombuffer(pages, array.dtype, array.size, whole - array.nbytes)
    placed = placed.reshape(array.shape)
    placed[...] = array
    return placed


@pytest.mark.parametrize("count", [1, 2, 5])
def test_nothing_behind_an_input_is_read(count):
    for m, n, k in [(2, 2, 1), (3, 3, 3), (5, 9, 2), (16, 9, 9)]:
        a, b = (before_a_page(RNG.normal(size=(count, *s))) for s in ((m, k), (k, n)))
        found = ops.matmul(Tensor.from_numpy(a), Tensor.from_numpy(b)).asnumpy()
        np.testing.assert_allclose(found, a @ b, atol=1e-13)


def test_what_is_no_number_stays_so():
    a = np.array([[np.inf, 0.0, 1.0], [0.0, np.nan, 0.0], [1.0, 2.0, 3.0]])
    found = (Tensor(a) @ Tensor(np.eye(3))).asnumpy()
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, a @ np.eye(3))


def test_in_bfloat16_and_half_precision():
    for dtype, near in (("float16", 2e-2), ("bfloat16", 1e-1)):
        a = Tensor(RNG.normal(size=(5, 3, 3))).astype(dtype)
        found = (a @ a).astype("float32").asnumpy()
        wide = a.astype("float32").asnumpy()
        np.testing.assert_allclose(found, wide @ wide, atol=near)
