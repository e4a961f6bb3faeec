"""Initialisers: moments, ranges, seeds, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from nn_checks import normal

import gradcell as ms
from gradcell import Parameter, Tensor, nn


def draw(init, *shape):
    return ms.common.initializer.initializer(init, shape).asnumpy()


def test_initialiser_distributions():
    init = ms.common.initializer
    ms.set_seed(11)
    shape = (30, 20, 3, 3)
    fan_in, fan_out = 180, 270
    for name, limit in (
        ("uniform", 0.07),
        ("xavier_uniform", math.sqrt(6 / (fan_in + fan_out))),
        ("he_uniform", math.sqrt(6 / fan_in)),
    ):
        values = draw(name, *shape)
        assert 0.99 * limit < np.abs(values).max() <= limit * (1 + 1e-6)
        np.testing.assert_allclose(values.std(), limit / math.sqrt(3), rtol=0.05)
    for name, deviation in (
        ("normal", 0.01),
        ("xavier_normal", math.sqrt(2 / (fan_in + fan_out))),
        ("he_normal", math.sqrt(2 / fan_in)),
        (init.HeNormal(0.5, "fan_out"), math.sqrt(2 / 1.25 / fan_out)),
        (init.VarianceScaling(2.0, "fan_avg"), math.sqrt(4 / (fan_in + fan_out))),
    ):
        values = draw(name, *shape)
        np.testing.assert_allclose(values.std(), deviation, rtol=0.05)
        assert abs(values.mean()) < 0.1 * deviation
    np.testing.assert_array_equal(draw("zeros", 2, 3), 0)
    np.testing.assert_array_equal(draw("ones", 2, 3), 1)
    np.testing.assert_array_equal(draw(init.Constant(2.5), 2), 2.5)
    np.testing.assert_array_equal(draw(1.5, 2), 1.5)


@pytest.mark.parametrize(
    "arguments", [(1.0, 0.0, -1.0, 2.0), (1.0, 3.0, -2.0, 2.0), (1.0, 0.0, 5.0, 6.0)]
)
def test_truncated_normal(arguments):
    sigma, mean, a, b = arguments
    values = draw(ms.common.initializer.TruncatedNormal(*arguments), 20000)
    assert values.min() >= a and values.max() <= b

    def density(z):
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    low, high = (a - mean) / sigma, (b - mean) / sigma
    mass = (math.erfc(low / math.sqrt(2)) - math.erfc(high / math.sqrt(2))) / 2
    expected = mean + sigma * (density(low) - density(high)) / mass
    np.testing.assert_allclose(values.mean(), expected, atol=0.03)


def test_other_initialisers():
    init = ms.common.initializer
    q = draw(init.Orthogonal(2.0), 4, 6).astype(np.float64)
    np.testing.assert_allclose(q @ q.T, 4 * np.eye(4), atol=1e-5)
    np.testing.assert_array_equal(draw("identity", 2, 3), np.eye(2, 3))
    sparse = draw(init.Sparse(0.3, 1.0), 10, 5)
    np.testing.assert_array_equal((sparse == 0).sum(0), 3)
    x = normal(1, 3, 4, 4).astype(np.float32)
    same = nn.Conv2d(3, 3, 3, weight_init="dirac")(Tensor(x))
    np.testing.assert_allclose(same.asnumpy(), x, rtol=1e-6)


def test_initialisers_repeat_after_set_seed():
    ms.set_seed(4)
    first = [nn.Dense(5, 4).weight.asnumpy().copy() for _ in range(2)]
    ms.set_seed(4)
    again = [nn.Dense(5, 4).weight.asnumpy() for _ in range(2)]
    np.testing.assert_array_equal(first, again)
    assert (first[0] != first[1]).any()


def test_a_tensor_of_an_initialiser():
    x = Tensor(shape=(2, 3), dtype=ms.float16, init="ones")
    assert x.dtype == ms.float16
    np.testing.assert_array_equal(x.init_data().asnumpy(), np.ones((2, 3)))
    ms.set_seed(3)
    drawn = Tensor(shape=(5,), dtype=ms.float32, init=ms.common.initializer.Normal(2.0))
    ms.set_seed(3)
    np.testing.assert_array_equal(drawn.asnumpy(), draw(ms.common.initializer.Normal(2.0), 5))
    p = Parameter(Tensor(shape=[2], dtype=ms.float32, init=0.5), name="p")
    np.testing.assert_array_equal(p.asnumpy(), [0.5, 0.5])
    with pytest.raises(ValueError, match=r"foo.*test_initializers"):
        Tensor(shape=(2,), dtype=ms.float32, init="foo")
    zeros = Tensor(shape=(2,), dtype=ms.float32)
    np.testing.assert_array_equal(zeros.asnumpy(), [0, 0])


def test_initializer_refuses():
    initializer = ms.common.initializer.initializer
    with pytest.raises(ValueError, match="foo"):
        initializer("foo", [2])
    with pytest.raises(ValueError, match="shape"):
        initializer("normal", (2, -1))
    with pytest.raises(ValueError, match="2 dimensions"):
        initializer("he_uniform", (2,))
    with pytest.raises(ValueError, match=r"\[1\]"):
        initializer(Tensor([1.0]), (2,))
    with pytest.raises(TypeError):
        initializer(None, (2,))
    with pytest.raises(ValueError, match="nonlinearity"):
        initializer(ms.common.initializer.HeUniform(nonlinearity="x"), (2, 2))
    assert initializer("ones", 3, ms.float16).dtype == ms.float16


def test_an_initialiser_of_one_s_own():
    class Ramp(ms.common.initializer.Initializer):
        def _initialize(self, arr):
            arr[...] = np.arange(arr.size).reshape(arr.shape)

    np.testing.assert_array_equal(draw(Ramp(), 2, 2), [[0, 1], [2, 3]])
