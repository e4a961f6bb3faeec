"""Shapes, indices and creation against NumPy; errors name the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops_checks import T, check_derivatives, close, ramp

import gradcell as ms
from gradcell import Tensor, ops

C = np.arange(24.0).reshape(2, 3, 4)
MATRIX = np.arange(12.0).reshape(3, 4)
SHAPING: list[tuple[str, Callable[[Tensor], Any], Any]] = [
    ("tile", lambda x: ops.tile(x, (2, 1, 3)), np.tile(C, (2, 1, 3))),
    ("tile-long", lambda x: ops.tile(x, (2, 1, 1, 2)), np.tile(C, (2, 1, 1, 2))),
    ("tile-short", lambda x: x.tile((2,)), np.tile(C, 2)),
    ("repeat_interleave", lambda x: x.repeat_interleave(2, 1), C.repeat(2, 1)),
    ("repeat_interleave-counts", lambda x: x.repeat_interleave([1, 0, 2], 1),
     C.repeat([1, 0, 2], 1)),
    ("repeat", lambda x: x.repeat(1, 2, 1), np.tile(C, (1, 2, 1))),
    ("flip", lambda x: ops.flip(x, (0, 2)), np.flip(C, (0, 2))),
    ("roll", lambda x: ops.roll(x, (1, -2), (0, 2)), np.roll(C, (1, -2), (0, 2))),
    ("roll-flat", lambda x: ops.roll(x, 5), np.roll(C, 5)),
    ("movedim", lambda x: ops.movedim(x, 0, 2), np.moveaxis(C, 0, 2)),
    ("movedim-2", lambda x: ops.movedim(x, (0, 1), (2, 0)), np.moveaxis(C, (0, 1), (2, 0))),
    ("swapaxes", lambda x: x.swapaxes(0, -1), C.swapaxes(0, -1)),
    ("transpose-two", lambda x: x.transpose(0, 1), C.swapaxes(0, 1)),
    ("transpose", lambda x: x.transpose(2, 0, 1), C.transpose(2, 0, 1)),
    ("T", lambda x: x.T, C.T),
    ("mT", lambda x: x.mT, C.swapaxes(1, 2)),
    ("flatten", lambda x: x.flatten(), C.ravel()),
    ("flatten-ops", ops.flatten, C.reshape(2, 12)),
    ("flatten-F", lambda x: ops.flatten(x, "F"), C.transpose(0, 2, 1).reshape(2, 12)),
    ("stack", lambda x: ops.stack((x, x * 2), -1), np.stack((C, C * 2), -1)),
    ("unstack", lambda x: ops.stack(ops.unstack(x, 1)), C.swapaxes(0, 1)),
    ("unbind", lambda x: x.unbind(2)[3], C[:, :, 3]),
    ("chunk", lambda x: ops.concat(x.chunk(2, 1)[::-1], 1),
     np.concatenate((C[:, 2:], C[:, :2]), 1)),
    ("split", lambda x: ops.split(x, (1, 3), -1)[1], C[..., 1:]),
    ("narrow", lambda x: x.narrow(1, 1, 2), C[:, 1:3]),
    ("tril", lambda x: ops.tril(x, 1), np.tril(C, 1)),
    ("triu", lambda x: x.triu(-1), np.triu(C, -1)),
    ("diagonal", lambda x: ops.diagonal(x, 1, 1, 2), C.diagonal(1, 1, 2)),
    ("diagonal-below", lambda x: ops.diagonal(x, -1, 1, 2), C.diagonal(-1, 1, 2)),
    ("mint-diag-of-matrix", lambda x: ms.mint.diag(x[0]), C[0].diagonal()),
    ("mint-diag", lambda x: ms.mint.diag(x[0, 0], 1), np.diag(C[0, 0], 1)),
    ("mint-diag-below", lambda x: ms.mint.diag(x[0, 0], -2), np.diag(C[0, 0], -2)),
    ("diag", lambda x: ops.diag(x[0, 0]), np.diag(C[0, 0])),
    ("diag-of-matrix", lambda x: ops.diag(x[0]).reshape(C[0].size, C[0].size), np.diag(C[0].ravel())),
    ("trace", lambda x: x[0].trace(), C[0].trace()),
    ("pad", lambda x: ops.pad(x, (1, 2, 0, 1)), np.pad(C, ((0, 0), (0, 1), (1, 2)))),
    ("pad-value", lambda x: ops.pad(x, (1, 2), value=7.0),
     np.pad(C, ((0, 0), (0, 0), (1, 2)), constant_values=7)),
    ("pad-negative", lambda x: ops.pad(x, (-1, 2)), np.pad(C[..., 1:], ((0, 0), (0, 0), (0, 2)))),
    ("pad-reflect", lambda x: ops.pad(x, (3, 2), "reflect"),
     np.pad(C, ((0, 0), (0, 0), (3, 2)), "reflect")),
    ("pad-replicate", lambda x: ops.pad(x, (1, 2), "replicate"),
     np.pad(C, ((0, 0), (0, 0), (1, 2)), "edge")),
    ("pad-circular", lambda x: ops.pad(x, (1, 2), "circular"),
     np.pad(C, ((0, 0), (0, 0), (1, 2)), "wrap")),
    ("Pad", lambda x: ops.Pad(((1, 0), (0, 0), (0, 2)))(x), np.pad(C, ((1, 0), (0, 0), (0, 2)))),
    ("strided_slice", lambda x: ops.strided_slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 2)),
     C[:, 1:3, ::2]),
    ("strided_slice-masks",
     lambda x: ops.StridedSlice(1, 4, 0, 0, 2)(x, (1, 1, 1), (2, 2, 2), (1, 1, 1)), C[:2, 1, 1:]),
    ("strided_slice-ellipsis",
     lambda x: ops.StridedSlice(ellipsis_mask=1)(x, (0, 1), (0, 3), (1, 1)), C[..., 1:3]),
    ("Slice", lambda x: ops.Slice()(x, (0, 1, 2), (1, -1, 2)), C[:1, 1:, 2:]),
    ("gather", lambda x: ops.gather(x, T([[0, 2], [-1, 1]]), 1), C[:, [[0, 2], [-1, 1]]]),
    ("gather-batch", lambda x: ops.gather(x, T([[0, 2], [1, -1]]), 1, 1),
     np.stack([C[0][[0, 2]], C[1][[1, -1]]])),
    ("gather-batch-2", lambda x: ops.Gather(batch_dims=1)(x, T([[0, 3], [1, -1]]), 2),
     np.stack([C[0][:, [0, 3]], C[1][:, [1, -1]]])),
    ("gather_elements", lambda x: x.gather(2, T(np.array([[[0, 3], [1, 1]]]))),
     np.take_along_axis(C[:1, :2], np.array([[[0, 3], [1, 1]]]), 2)),
    ("gather_d-front", lambda x: ops.gather_d(x, 0, T(np.array([[[1, 0, 1, -1]]]))),
     np.take_along_axis(C[:, :1], np.array([[[1, 0, 1, -1]]]), 0)),
    ("gather_nd", lambda x: ops.gather_nd(x, T([[0, 1], [1, -1]])), C[[0, 1], [1, -1]]),
    ("index_select", lambda x: x.index_select(1, T([2, 0])), C[:, [2, 0]]),
    ("take", lambda x: x.take(T([1, 30])), C.take([1, 23])),
    ("take-wrap", lambda x: x.take(T([1, 30, -1]), 1, "wrap"), C.take([1, 30, -1], 1, mode="wrap")),
    ("scatter", lambda x: ops.tensor_scatter_add(x, T([[0, 1], [0, 1]]), T(np.ones((2, 4)))),
     C + 2 * np.eye(6)[1].reshape(2, 3, 1)),
    ("scatter-update", lambda x: ops.tensor_scatter_update(x, T([[1, 2, 3]]), T([9.0])),
     np.where(C == 23, 9, C)),
    ("scatter_add", lambda x: x.scatter_add(1, T(np.zeros((2, 1, 4), int)), T(np.ones((2, 1, 4)))),
     C + np.eye(3)[0].reshape(3, 1)),
    ("index_add", lambda x: ops.index_add(x, T([0, 0]), T(np.ones((2, 2, 4))), 1),
     C + 2 * np.eye(3)[0].reshape(3, 1)),
    ("masked_fill", lambda x: x.masked_fill(T(C > 5), -1.0), np.where(C > 5, -1, C)),
    ("masked_select", lambda x: x.masked_select(T(C % 2 == 0)), C[C % 2 == 0]),
    ("where", lambda x: x.where(T(C > 5), 0.0), np.where(C > 5, C, 0)),
    ("clip", lambda x: x.clip(2, 5), C.clip(2, 5)),
    ("sort", lambda x: ops.sort(x, -1, True)[0], C[..., ::-1]),
    ("topk", lambda x: x.topk(2)[0], C[..., [3, 2]]),
    ("meshgrid", lambda x: ops.meshgrid(x[0, 0], x[0, 1])[1], np.meshgrid(C[0, 0], C[0, 1])[1]),
    ("meshgrid-ij", lambda x: ops.meshgrid(x[0, 0], x[0, 1], indexing="ij")[1],
     np.meshgrid(C[0, 0], C[0, 1], indexing="ij")[1]),
    ("outer", lambda x: ops.outer(x[0, 0], x[0, 1]), np.outer(C[0, 0], C[0, 1])),
    ("dot", lambda x: ops.dot(x, x[0].T), C @ C[0].T),
    ("inner", lambda x: ops.inner(x, x), np.inner(C, C)),
    ("tensor_dot", lambda x: ops.tensor_dot(x, x, ((0, 2), (0, 2))),
     np.tensordot(C, C, ((0, 2), (0, 2)))),
    ("addmm", lambda x: ops.addmm(x[0] @ x[0].T, x[0], x[1].T, beta=2, alpha=0.5),
     2 * C[0] @ C[0].T + 0.5 * C[0] @ C[1].T),
    ("vstack", lambda x: ops.vstack((x[0], x[1, 0])), np.vstack((C[0], C[1, 0]))),
    ("hstack", lambda x: ops.hstack((x[0], x[1])), np.hstack((C[0], C[1]))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fn", "expected"), SHAPING, ids=[c[0] for c in SHAPING])
def test_shaping(name: str, fn: Any, expected: np.ndarray) -> None:
    close(fn(T(C)), expected)
    if name not in ("masked_select", "sort", "topk"):  # these ask for values
        close(ms.jit(fn)(T(C)), expected)
    check_derivatives(lambda x: fn(x) * fn(x), np.asarray(C) / 10 + 0.03, order=2)


def test_one_hot() -> None:
    index = T(np.array([[0, 2], [5, -1]]))
    hot = ops.one_hot(index, 3)
    assert hot.dtype == ms.int64
    np.testing.assert_array_equal(hot.asnumpy(), [[[1, 0, 0], [0, 0, 1]], [[0] * 3, [0] * 3]])
    floats = ops.OneHot(axis=0)(index, 3, T(1.0, ms.float32), T(0.0, ms.float32))
    assert floats.dtype == ms.float32 and floats.shape == (3, 2, 2)
    with pytest.raises(TypeError, match="OneHot"):
        ops.one_hot(T(1.5), 3)


def test_index_errors() -> None:
    x = T(MATRIX)
    for call in (
        lambda: ops.gather(x, T([0, 3]), 0),
        lambda: ops.gather(x[None], T([[0, 3]]), 1, 1),
        lambda: ops.gather_elements(x, 0, T([[-4]])),
        lambda: ops.gather_nd(x, T([[0, 4]])),
        lambda: ops.take(x, T([12]), mode="raise"),
    ):
        with pytest.raises(IndexError):
            call()
    with pytest.raises(TypeError, match="integers"):
        ops.gather(x, T([0.5]), 0)


def test_creation() -> None:
    assert ops.zeros(3).dtype == ops.ones((2,)).dtype == ops.eye(2).dtype == ms.float32
    np.testing.assert_array_equal(ops.eye(2, 3, ms.int32).asnumpy(), np.eye(2, 3))
    assert ops.full((2,), 3).dtype == ms.int64 and ops.full((2,), 3.0).dtype == ms.int64
    assert ops.arange(5).dtype == ms.int64 and ops.arange(5.0).dtype == ms.float32
    for args in ((5,), (2, 9), (9, 2, -3), (0, 1, 0.25), (1, 1)):
        close(ops.arange(*args), np.arange(*args))
    close(ops.linspace(0, 1, 5), np.linspace(0, 1, 5))
    ends = T(2.0, ms.float64)
    close(ops.linspace(ends, ends * 2, 3), [2, 3, 4])
    close(ms.grad(lambda a: ops.linspace(a, a * 2, 3).sum())(ends), 4.5)
    assert ops.zeros_like(ramp(2, 3), dtype=ms.int8).dtype == ms.int8
    assert ramp(2).new_ones((3, 1)).shape == (3, 1)
    for call, kind in (
        (lambda: ops.arange(5, 0), ValueError),
        (lambda: ops.arange(0, 5, 0), ValueError),
        (lambda: ops.zeros((2, -1)), ValueError),
        (lambda: ops.zeros((2, 1.5)), TypeError),
        (lambda: ops.ones("a"), TypeError),
        (lambda: ops.ones(1 << 50), MemoryError),
    ):
        with pytest.raises(kind):
            call()


def test_bad_shapes_say_where() -> None:
    x = ramp(2, 3)
    calls = [
        lambda: ops.concat((x, ramp(2, 2))),
        lambda: ops.stack((x, ramp(2, 2))),
        lambda: ops.split(x, (1, 1), 1),
        lambda: ops.Split(1, 2)(x),
        lambda: ops.reshape(x, (4, 2)),
        lambda: ops.transpose(x, (0, 0)),
        lambda: x.sum(axis=5),
        lambda: x.sum(axis=(0, 0)),
        lambda: ops.MatMul()(x, ramp(3)),
        lambda: ops.MatMul()(x, x),
        lambda: ops.mm(x, ramp(3)),
        lambda: ops.clamp(x),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"test_ops_shaping\.py:\d+"):
            call()
    for call in (lambda: ops.concat(x), lambda: ops.tile(x, 2), lambda: ops.ReduceSum(1)):
        with pytest.raises(TypeError, match=r"test_ops_shaping\.py:\d+"):
            call()


#: What MindSpore 2.10 prints for sorted=False: (elements, k, dim, largest), values, indices.
UNSORTED = [
    (([3.0, 1, 4, 1, 5, 9, 2, 6], 4, 0, True), [5.0, 6, 9, 4], [4, 7, 5, 2]),
    (([3.0, 1, 4, 1, 5, 9, 2, 6], 4, 0, False), [1.0, 1, 3, 2], [1, 3, 0, 6]),
    (([3.0, 1, 4, 1, 5, 9, 2, 6], 8, 0, True), [3.0, 1, 4, 1, 5, 9, 2, 6], list(range(8))),
    (([9.0, 8, 7, 6, 5, 4, 3, 2, 1, 10, 11], 4, 0, True), [8.0, 9, 11, 10], [1, 0, 10, 9]),
    (([9.0, 8, 7, 6, 5, 4, 3, 2, 1, 10, 11], 6, 0, True), [8.0, 9, 11, 10, 6, 7],
     [1, 0, 10, 9, 3, 2]),
    (([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 6, 0, True), [6.0, 11, 10, 9, 8, 7],
     [5, 10, 9, 8, 7, 6]),
    (([5.0, 5, 5, 1, 5, 5, 5], 3, 0, True), [5.0, 5, 5], [5, 4, 1]),
    (([[3.0, 1, 4, 1], [5, 9, 2, 6]], 2, 0, True), [[3.0, 1, 4, 1], [5, 9, 2, 6]],
     [[0] * 4, [1] * 4]),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "values", "indices"), UNSORTED)
def test_topk_unsorted_is_mindspores(arguments, values, indices):
    elements, k, dim, largest = arguments
    for dtype in (ms.float32, ms.float64, ms.float16, ms.bfloat16, ms.int32, ms.int64):
        got = ops.topk(Tensor(elements).astype(dtype), k, dim, largest, False)
        assert got[0].dtype == dtype and got[0].tolist() == values
        assert got[1].dtype == ms.int32 and got[1].tolist() == indices


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8, np.uint8])
def test_topk_sorted_takes_the_first_of_equals(dtype, dim, largest):
    x = np.random.default_rng(5).integers(0, 5, (4, 7, 6)).astype(dtype)
    if dtype == np.float64:
        x[1, 2, 3] = x[0, 2, 1] = np.nan
    order = np.argsort(x, axis=dim, kind="stable")
    if largest:
        flipped = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
        order = np.flip(x.shape[dim] - 1 - flipped, dim)
    for k in (0, 1, 3, x.shape[dim]):
        expected = np.take(order, range(k), axis=dim)
        values, indices = ops.topk(Tensor(x), k, dim, largest)
        np.testing.assert_array_equal(indices.asnumpy(), expected)
        np.testing.assert_array_equal(values.asnumpy(), np.take_along_axis(x, expected, dim))
