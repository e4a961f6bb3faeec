"""NumPy's functions and operators on tensors: operators are the tensor's, functions give arrays, and
none of them takes a derivative away unnoticed."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, ops

X = np.array([[1.5, -2.0], [0.25, 3.0]], np.float32)


FUNCTIONS = [np.abs, np.sin, np.sqrt, np.isnan, np.mean, np.sum, np.std, np.argmax, np.transpose]
FUNCTIONS += [lambda t: np.concatenate([t, t]), lambda t: np.maximum(t, 0), np.linalg.norm]
FUNCTIONS += [lambda t: np.clip(t, 0, 1), np.add.reduce, lambda t: np.where(t > 0, t, 0), np.shape]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_functions_give_what_they_give_for_the_array(function: Any) -> None:
    got, expected = function(Tensor(X)), function(X)
    assert not isinstance(got, Tensor)
    assert type(got) is type(expected)
    np.testing.assert_array_equal(got, expected)


OPERATORS = ["add", "sub", "mul", "truediv", "pow", "floordiv", "mod", "matmul"]
OPERATORS += ["lt", "le", "gt", "ge", "eq", "ne"]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_with_arrays_are_the_tensors(name: str) -> None:
    f, other = getattr(operator, name), np.abs(X.T) + 1
    for got in (f(other, Tensor(X)), f(Tensor(other), X), f(Tensor(other), Tensor(X))):
        assert isinstance(got, Tensor)
        np.testing.assert_allclose(got.asnumpy(), f(other, X), rtol=1e-6)
    if name != "matmul":
        scalar = f(np.float32(2), Tensor(X))
        assert isinstance(scalar, Tensor)
        np.testing.assert_allclose(scalar.asnumpy(), f(np.float32(2), X), rtol=1e-6)


def test_an_array_is_changed_in_place() -> None:
    a = np.ones_like(X)
    same = a
    a += Tensor(X)
    assert a is same
    np.testing.assert_array_equal(a, X + 1)


@pytest.mark.parametrize("function", [np.sin, np.mean, lambda x: np.stack([x, x])])
def test_a_function_inside_a_transform_says_that_it_loses_the_derivative(function: Any) -> None:
    def loss(x: Tensor) -> Tensor:
        return ops.sum(Tensor(function(x)) * x)

    with pytest.raises(TypeError, match=r"cannot be differentiated.*test_numpy_functions\.py:\d+"):
        ms.grad(loss)(Tensor(X))


def test_operators_and_shapes_inside_a_transform() -> None:
    def loss(x: Tensor) -> Tensor:
        return (X * x * np.ndim(x) + np.float32(3) * x).sum() * np.shape(x)[0]

    np.testing.assert_allclose(ms.grad(loss)(Tensor(X)).asnumpy(), 2 * (2 * X + 3))
