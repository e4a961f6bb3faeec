"""Tensor's methods in all their spellings, and elementwise functions of more than one form."""

from __future__ import annotations

import numpy as np
import pytest
from ops_checks import T, check_derivatives, close, ramp

import gradcell as ms
from gradcell import Tensor, ops


def test_reduction_spellings() -> None:
    x, a = ramp(2, 3), np.arange(6.0).reshape(2, 3)
    for name in ("sum", "mean", "prod", "var", "std"):
        method, reference = getattr(x, name), getattr(a, name)
        close(method(), reference(), 1e-6)
        close(method(0), reference(0), 1e-6)
        close(method(axis=1), reference(1), 1e-6)
        close(method(dim=1), reference(1), 1e-6)
        close(method(axis=1, keepdims=True), reference(1, keepdims=True), 1e-6)
        close(method(dim=-1, keepdim=True), reference(-1, keepdims=True), 1e-6)
    close(x.mean(0, True), a.mean(0, keepdims=True))
    close(x.mean(axis=0, keep_dims=True), a.mean(0, keepdims=True))
    close(x.sum((0, 1)), 15)
    close(x.sum([0]), a.sum(0))
    close(x.sum(()), 15)
    close(x.sum(axis=0, initial=10), a.sum(0) + 10)
    close(x.var(0, 1), a.var(0, ddof=1))
    close(x.norm(dim=1), np.linalg.norm(a, axis=1), 1e-6)
    np.testing.assert_array_equal(x.argmax(axis=1, keepdims=True).asnumpy(), [[2], [2]])
    np.testing.assert_array_equal(x.argmax(dim=0).asnumpy(), [1, 1, 1])
    close(x.cumsum(), a.cumsum())
    close(x.cumsum(axis=0), a.cumsum(0))
    close(x.cumsum(dim=1), a.cumsum(1))
    with pytest.raises(TypeError, match="two names"):
        x.mean(axis=0, dim=1)


def test_max_spellings() -> None:
    x = ramp(2, 3)
    assert float(x.max()) == 5.0 and float(x.min()) == 0.0
    close(x.max(axis=0), [3, 4, 5])
    close(x.max(axis=0, keepdims=True), [[3, 4, 5]])
    for values, index in (x.max(0), x.max(dim=0), x.max(axis=0, return_indices=True)):
        close(values, [3, 4, 5])
        np.testing.assert_array_equal(index.asnumpy(), [1, 1, 1])
        assert index.dtype == ms.int64
    close(x.min(1)[0], [0, 3])


def test_shape_methods() -> None:
    x = ramp(1, 3, 1)
    assert x.squeeze().shape == (3,)
    assert x.squeeze(0).shape == x.squeeze(axis=0).shape == x.squeeze(dim=0).shape == (3, 1)
    assert x.squeeze((0, 2)).shape == x.squeeze(0, 2).shape == (3,)
    assert ramp(2, 3).squeeze(0).shape == (2, 3)
    y = ramp(2, 3)
    assert y.reshape(3, -1).shape == y.reshape((3, 2)).shape == y.view([3, 2]).shape == (3, 2)
    assert y.transpose().shape == y.transpose(1, 0).shape == y.transpose((1, 0)).shape == (3, 2)
    assert y.permute(1, 0).shape == y.permute((1, 0)).shape == (3, 2)
    assert y.expand_dims(-1).shape == y.unsqueeze(dim=2).shape == (2, 3, 1)
    assert y.broadcast_to(4, -1, 3).shape == y.broadcast_to((4, 2, 3)).shape == (4, 2, 3)
    assert ramp(3).expand_as(y).shape == y.view_as(y).shape == (2, 3)
    assert [p.shape for p in y.split(2, 1)] == [(2, 2), (2, 1)]
    assert [p.shape for p in y.split((1, 2), axis=1)] == [(2, 1), (2, 2)]
    assert [p.shape for p in y.split(split_size=1)] == [(1, 3), (1, 3)]
    assert y.to(ms.int32).dtype == y.type_as(y.astype(ms.int32)).dtype == ms.int32
    assert y.numel() == y.nelement() == 6 and y.ndimension() == 2


def test_in_place_methods() -> None:
    x = ramp(3)
    assert x.add_(1) is x
    close(x, [1, 2, 3])
    close(x.mul_(x), [1, 4, 9])
    close(x.sub_(1, alpha=2), [-1, 2, 7])
    close(x.zero_(), [0, 0, 0])
    close(x.copy_(ramp(3)), [0, 1, 2])
    whole = ramp(3).astype(ms.int32)
    assert whole.add_(2).dtype == ms.int32
    with pytest.raises(TypeError, match=r"add_: .*Float32.*Int32 cannot hold"):
        whole.add_(1.5)
    close(whole, [2, 3, 4])
    with pytest.raises(ValueError, match="add_"):
        x.add_(ramp(2, 3))


def test_elementwise_forms() -> None:
    a, b = np.array([-3.5, 3.5, -7.0]), np.array([2.0, -2.0, 2.5])
    close(ops.fmod(T(a), T(b)), np.fmod(a, b))
    close(ops.div(T(a), T(b), rounding_mode="floor"), np.floor(a / b))
    close(ops.div(T(a), T(b), rounding_mode="trunc"), np.trunc(a / b))
    close(ops.trunc(T(a)), np.trunc(a))
    close(ops.round(T(a / 3), decimals=2), np.round(a / 3, 2))
    close(ops.hypot(T(a), T(b)), np.hypot(a, b))
    close(ops.xlogy(T([0.0, 2.0]), T([0.0, 3.0])), [0, 2 * np.log(3)], 1e-6)
    close(ops.div_no_nan(T([1.0, 2.0]), T([0.0, 4.0])), [0, 0.5])
    check_derivatives(lambda x: ops.xlogy(x, x * x + 1), np.array([0.0, 0.5, 2.0]), order=2)
    close(T(a).pow(2), a**2)
    close(ops.pow(2.0, T(a)), 2.0**a)
    with pytest.raises(ValueError, match="rounding_mode"):
        ops.div(T(a), T(b), rounding_mode="up")


def test_unique() -> None:
    """In order, of elements or slices, with places and numbers, as NumPy has them."""
    values = np.array([[3, 1, 3], [2, 1, 3], [3, 1, 3]], np.int32)
    x = Tensor(values)
    found = x.unique(return_inverse=True, return_counts=True)
    for ours, exact in zip(found, np.unique(values, False, True, True), strict=True):
        np.testing.assert_array_equal(ours.asnumpy().ravel(), exact.ravel())
    assert found[0].dtype == ms.int32 and found[1].dtype == found[2].dtype == ms.int64
    assert found[1].shape == (3, 3)
    rows, counts = x.unique(return_counts=True, dim=0)
    np.testing.assert_array_equal(rows.asnumpy(), [[2, 1, 3], [3, 1, 3]])
    assert counts.asnumpy().tolist() == [1, 2] and x.unique().asnumpy().tolist() == [1, 2, 3]


def test_elements_moved_and_taken() -> None:
    x = Tensor([1.0, 2.0])
    # (A view that derivatives do not pass, as in MindSpore: test_views.py.)
    assert ms.grad(lambda t: (t.data * t).sum())(x).asnumpy().tolist() == [1, 2]
    assert ms.grad(lambda t: (t.move_to("CPU") * t).sum())(x).asnumpy().tolist() == [2, 4]
    for call in (lambda: x.diag(1), lambda: x.itemset(), lambda: Tensor(1.0).diag()):
        with pytest.raises(ValueError):
            call()
    for call in (lambda: x.itemset(5, 1.0), lambda: x.itemset(1.0)):
        with pytest.raises(IndexError):
            call()
