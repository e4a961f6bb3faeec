"""Bijectors: there and back, jacobians against finite differences, transformed distributions against what
NumPy says of them, bad input. tests/python/cases/distributions.txt has them beside MindSpore."""

from __future__ import annotations

import math

import numpy as np
import pytest
from check_grads import check_grads

import gradcell as gc
from gradcell import Tensor
from gradcell.nn.probability import bijector as b, distribution as d

F64 = gc.float64


def _64(value):
    return Tensor(value, F64)


MADE = {
    "Exp": lambda: b.Exp(),
    "GumbelCDF": lambda: b.GumbelCDF(_64(0.3), _64([0.5, 1.0, 2.0])),
    "PowerTransform": lambda: b.PowerTransform(_64([0.0, 0.5, 2.0])),
    "ScalarAffine": lambda: b.ScalarAffine(_64([-2.0, 0.5, 3.0]), _64(1.0)),
    "Softplus": lambda: b.Softplus(_64([0.5, 1.0, 30.0])),
    "Invert": lambda: b.Invert(b.Softplus(_64(2.0))),
}


@pytest.mark.parametrize("name", MADE)
def test_there_and_back(name):
    made, x = MADE[name](), np.array([0.1, 0.4, 1.7])
    y = made.forward(_64(x))
    np.testing.assert_allclose(made.inverse(y).asnumpy(), x, rtol=1e-9)
    h = 1e-6
    slope = (made.forward(_64(x + h)).asnumpy() - made.forward(_64(x - h)).asnumpy()) / (2 * h)
    log = np.broadcast_to(made.forward_log_jacobian(_64(x)).asnumpy(), x.shape)
    np.testing.assert_allclose(log, np.log(np.abs(slope)), rtol=1e-6, atol=1e-8)
    back = np.broadcast_to(made.inverse_log_jacobian(y).asnumpy(), x.shape)
    np.testing.assert_allclose(back, -log, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("method", ["forward", "inverse", "forward_log_jacobian"])
def test_derivatives(name, method):
    made = MADE[name]()
    check_grads(getattr(made, method), [_64([0.3, 0.5, 0.8])], order=2)


def test_large_values():
    soft = b.Softplus()
    far = Tensor([-80.0, 0.0, 80.0])
    np.testing.assert_allclose(
        soft.forward(far).asnumpy(), np.logaddexp(0, [-80.0, 0, 80]), rtol=1e-6
    )
    np.testing.assert_allclose(
        soft.inverse(Tensor([1e-6, 90.0])).asnumpy(), [math.log(math.expm1(1e-6)), 90]
    )


def test_transformed():
    log_normal = b.Exp()(d.Normal(0.5, 0.7))
    assert isinstance(log_normal, d.TransformedDistribution)
    x = Tensor([0.3, 1.0, 2.5])
    for method in ("log_prob", "prob", "cdf", "log_cdf", "survival_function", "log_survival"):
        wanted = getattr(d.LogNormal(0.5, 0.7), method)(x)
        np.testing.assert_allclose(
            getattr(log_normal, method)(x).asnumpy(), wanted.asnumpy(), rtol=1e-5
        )
    np.testing.assert_allclose(log_normal("cdf", x).asnumpy(), log_normal.cdf(x).asnumpy())
    with pytest.raises(ValueError, match="non-linear"):
        log_normal.mean()
    drawn = d.TransformedDistribution(b.Exp(), d.Normal(0.5, 0.7), seed=4).sample((5,)).asnumpy()
    again = np.exp(d.Normal(0.5, 0.7, seed=4).sample((5,)).asnumpy())
    assert drawn.shape == again.shape and (drawn > 0).all()


def test_transformed_by_what_falls():
    """-2 x + 1 of a normal distribution is one, too; MindSpore's cdf is that of the other side."""
    made, wanted = b.ScalarAffine(-2.0, 1.0)(d.Normal(0.5, 0.7)), d.Normal(0.0, 1.4)
    x = Tensor([-1.0, 0.2, 2.0])
    for method in ("log_prob", "cdf", "survival_function", "log_survival"):
        found = getattr(made, method)(x).asnumpy()
        np.testing.assert_allclose(found, getattr(wanted, method)(x).asnumpy(), rtol=1e-5)
    np.testing.assert_allclose(made.mean().asnumpy(), 0.0, atol=1e-7)
    assert made.is_linear_transformation and made.batch_shape == ()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("method", ["prob", "cdf", "survival_function"])
@pytest.mark.parametrize("base", [d.Normal(0.5, 2.0), d.Gamma(2.0, 3.0), d.Uniform(0.0, 1.0)])
@pytest.mark.parametrize(
    ("made", "end"),
    [(b.Exp(), 0.0), (b.Softplus(), 0.0), (b.GumbelCDF(), 0.0), (b.GumbelCDF(), 1.0)],
)
def test_there_is_no_slope_where_there_is_no_density(made, end, base, method):
    """The derivatives of bijectors are infinite at the ends; x^-n times a normal density of log(x) goes to 0
    there for every n, and beyond the ends of the others all is constant."""
    of, one = getattr(made(base), method), Tensor(1.0)
    x = Tensor(end)
    assert float(gc.grad(of)(x)) == 0.0
    assert float(gc.jvp(of, x, one)[1]) == 0.0
    assert float(gc.grad(gc.grad(of))(x)) == 0.0
    assert float(gc.jvp(gc.grad(of), x, one)[1]) == 0.0


@pytest.mark.parametrize("method", ["cdf", "survival_function"])
def test_below_a_gamma_distribution(method):
    """Also where the derivative at 0 itself is infinite."""
    of, x = getattr(d.Gamma(0.5, 1.0), method), Tensor(-1.0)
    assert float(gc.grad(of)(x)) == 0.0 == float(gc.jvp(of, x, Tensor(1.0))[1])


def test_one_of_your_own():
    class Cube(b.Bijector):
        def __init__(self):
            param = dict(locals())
            param["param_dict"] = {}
            super().__init__(name="Cube", param=param)

        def _forward(self, x):
            return x**3

        def _inverse(self, y):
            return y ** (1 / 3)

        def _forward_log_jacobian(self, x):
            return gc.ops.log(3 * x**2)

        def _inverse_log_jacobian(self, y):
            return -self._forward_log_jacobian(self._inverse(y))

    cube = Cube()
    np.testing.assert_allclose(cube("forward", Tensor([2.0])).asnumpy(), [8], rtol=1e-6)
    found = cube(d.Exponential(1.0)).prob(Tensor([8.0])).asnumpy()
    np.testing.assert_allclose(found, [math.exp(-2) / 12], rtol=1e-5)


BAD = [
    (lambda: b.Softplus(2), TypeError, "sharpness"),
    (lambda: b.ScalarAffine(None), TypeError, "scale"),
    (lambda: b.ScalarAffine(Tensor(1.0, F64), 1.0), TypeError, "shift"),
    (lambda: b.GumbelCDF(0.0, 0.0), ValueError, "scale"),
    (lambda: b.PowerTransform(-1.0), ValueError, "power"),
    (lambda: b.Exp().forward(1.0), TypeError, "value"),
    (lambda: b.Exp().forward(Tensor([1, 2])), TypeError, "floating"),
    (lambda: b.Exp()("backward", Tensor([1.0])), ValueError, "name"),
    (lambda: b.Invert(3), TypeError, "Bijector"),
    (lambda: b.Bijector(param={}), TypeError, "name"),
    (lambda: d.TransformedDistribution(b.Exp(), b.Exp()), TypeError, "distribution"),
]


@pytest.mark.parametrize("k", range(len(BAD)))
def test_what_is_refused(k):
    run, error, text = BAD[k]
    with pytest.raises(error, match=text):
        run()
