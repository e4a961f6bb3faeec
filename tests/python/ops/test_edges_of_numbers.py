"""NaN, signed zeros, powers and parts that are none, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, mint, ops

A, B = np.array([1.0, np.nan, 2.0, np.nan]), np.array([np.nan, 3.0, 1.0, np.nan])


def test_extremes_where_one_is_nan() -> None:
    np.testing.assert_array_equal(Tensor(A).fmax(Tensor(B)).asnumpy(), np.fmax(A, B))
    np.testing.assert_array_equal(Tensor(A).fmin(Tensor(B)).asnumpy(), np.fmin(A, B))
    np.testing.assert_array_equal(Tensor(A).fmax(1.5).asnumpy(), np.fmax(A, 1.5))
    whole = Tensor([3, 1]).fmin(Tensor([2, 2]))
    assert whole.asnumpy().tolist() == [2, 1]
    gradient = gc.grad(lambda a: a.fmax(Tensor(B))[:3].sum())(Tensor(A)).asnumpy()
    np.testing.assert_array_equal(gradient, [1, 0, 1, 0])


def test_fmod_has_the_sign_of_its_input() -> None:
    x, y = np.array([-0.0, 0.0, -4.0, 5.0, -5.5]), np.array([1.0, 1.0, 2.0, -2.0, 2.0])
    for f in (ops.fmod, mint.fmod, gc.jit(ops.fmod)):
        got = f(Tensor(x), Tensor(y)).asnumpy()
        np.testing.assert_array_equal(got, np.fmod(x, y))
        np.testing.assert_array_equal(np.signbit(got), np.signbit(np.fmod(x, y)))


def test_a_bound_that_is_nan() -> None:
    x = np.array([1.0, 2.0])
    bound = np.array([np.nan, 0.5])
    for f in (ops.clamp, ops.clip, mint.clamp):
        np.testing.assert_array_equal(
            f(Tensor(x), Tensor(bound)).asnumpy(), np.clip(x, bound, None)
        )
        np.testing.assert_array_equal(f(Tensor(x), np.nan, None).asnumpy(), [np.nan] * 2)
        np.testing.assert_array_equal(
            f(Tensor(x), None, Tensor(bound)).asnumpy(), np.clip(x, None, bound)
        )


def test_negative_powers_of_integers() -> None:
    for call in (
        lambda: Tensor([2]) ** -1,
        lambda: ops.pow(Tensor([2, 3]), Tensor([1, -1])),
        lambda: gc.jit(lambda x: x**-2)(Tensor([2])),
    ):
        with pytest.raises(ValueError, match="integers to negative powers"):
            call()
    assert float(Tensor([2.0]) ** -1) == 0.5
    assert (Tensor([2]) ** Tensor([3])).asnumpy().tolist() == [8]


@pytest.mark.parametrize("name", ["tensor_split", "vsplit", "hsplit"])
def test_too_many_parts(name: str) -> None:
    x = Tensor(np.arange(4.0).reshape(2, 2))
    with pytest.raises(ValueError, match="2147483648 parts of 2 elements"):
        getattr(ops, name)(x, 2**31)
    assert [p.shape[0] for p in ops.tensor_split(x, 5)] == [1, 1, 0, 0, 0]
