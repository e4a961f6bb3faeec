"""Gamma, Beta, Poisson: densities, distribution functions, entropies and divergences against mpmath, in
float64; samples against distribution functions in closed form; their derivatives against quantiles.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from check_grads import check_grads

import gradcell as gc
from gradcell import Tensor
from gradcell.nn.probability import distribution as d

F64 = gc.float64
PARAMETERS = [(0.5, 1.5), (1.0, 2.0), (2.5, 1.3), (40.0, 7.0), (3000.0, 20.0)]


def density(kind, x, a, b):
    """log of it, in 40 digits."""
    x, a, b = map(mpmath.mpf, (x, a, b))
    if kind == "Gamma":
        return a * mpmath.log(b) + (a - 1) * mpmath.log(x) - b * x - mpmath.loggamma(a)
    if kind == "Beta":
        of = (a - 1) * mpmath.log(x) + (b - 1) * mpmath.log(1 - x)
        return of - mpmath.log(mpmath.beta(a, b))
    return x * mpmath.log(a) - a - mpmath.loggamma(x + 1)


def expected(kind, p, of):
    """The mean of `of` under the density with parameters p, by quadrature."""
    mean = p[0] / p[1] if kind == "Gamma" else p[0] / (p[0] + p[1])
    sd = math.sqrt(p[0]) / p[1] if kind == "Gamma" else math.sqrt(mean * (1 - mean) / (sum(p) + 1))
    end = mpmath.inf if kind == "Gamma" else 1
    cuts = [max(mean - 8 * sd, 0), mean, min(mean + 8 * sd, end), end]
    cuts = sorted({mpmath.mpf(0), *map(mpmath.mpf, cuts)})
    return mpmath.quad(lambda x: mpmath.exp(density(kind, x, *p)) * of(x), cuts)


def made(kind, a, b):
    parameters = [Tensor([a], F64)] if kind == "Poisson" else [Tensor([a], F64), Tensor([b], F64)]
    return getattr(d, kind)(*parameters, dtype=F64)


@pytest.mark.parametrize("kind", ["Gamma", "Beta", "Poisson"])
@pytest.mark.parametrize("p", PARAMETERS)
def test_densities(kind, p):
    x = np.array([0.02, 0.3, 0.5, 0.97])
    if kind == "Gamma":
        x = x * 2 * p[0] / p[1]
    if kind == "Poisson":
        x = np.array([0.0, 1.0, 2.0, np.floor(p[0])])
    made_of = made(kind, *p)
    with mpmath.workdps(40):
        wanted = np.array([float(density(kind, v, *p)) for v in x])
    np.testing.assert_allclose(
        made_of.log_prob(Tensor(x, F64)).asnumpy(), wanted, rtol=1e-9, atol=1e-9
    )
    single = getattr(d, kind)(*([p[0]] if kind == "Poisson" else p))
    found = single.log_prob(Tensor(x, gc.float32)).asnumpy()
    with mpmath.workdps(40):
        given = [np.float32(v) for v in (p[0], p[1])]
        wanted = np.array(
            [float(density(kind, float(np.float32(v)), *map(float, given))) for v in x]
        )
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("p", PARAMETERS)
def test_distribution_functions(p):
    with mpmath.workdps(40):
        x = np.array([0.2, 0.9, 1.0, 1.2]) * p[0] / p[1]
        below = [float(mpmath.gammainc(p[0], 0, v * p[1], regularized=True)) for v in x]
        above = [float(mpmath.gammainc(p[0], v * p[1], mpmath.inf, regularized=True)) for v in x]
        gamma = made("Gamma", *p)
        np.testing.assert_allclose(
            gamma.cdf(Tensor(x, F64)).asnumpy(), below, rtol=1e-7, atol=1e-300
        )
        found = gamma.survival_function(Tensor(x, F64)).asnumpy()
        np.testing.assert_allclose(found, above, rtol=1e-7, atol=1e-300)
        n = [0, 1, int(p[0]), int(1.1 * p[0]) + 1]
        below = [float(mpmath.gammainc(k + 1, p[0], mpmath.inf, regularized=True)) for k in n]
        poisson = made("Poisson", *p)
        for shift in (0.0, 0.75):  # between whole numbers it is that of the lower one
            found = poisson.cdf(Tensor(np.array(n) + shift, F64)).asnumpy()
            np.testing.assert_allclose(found, below, rtol=1e-7, atol=1e-300)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["Gamma", "Beta"])
@pytest.mark.parametrize("p", PARAMETERS[:4])
def test_entropies_and_divergences(kind, p):
    q = (1.2, 2.2)
    own = made(kind, *p)
    entropy = -expected(kind, p, lambda x: density(kind, x, *p))
    divergence = expected(kind, p, lambda x: density(kind, x, *p) - density(kind, x, *q))
    np.testing.assert_allclose(own.entropy().asnumpy(), [float(entropy)], rtol=1e-6, atol=1e-8)
    other = [Tensor([v], F64) for v in q]
    np.testing.assert_allclose(own.kl_loss(kind, *other).asnumpy(), [float(divergence)], rtol=1e-6)
    found = own.cross_entropy(kind, *other).asnumpy()
    np.testing.assert_allclose(found, [float(entropy + divergence)], rtol=1e-6, atol=1e-8)
    mean = expected(kind, p, lambda x: x)
    variance = expected(kind, p, lambda x: (x - mean) ** 2)
    np.testing.assert_allclose(own.mean().asnumpy(), [float(mean)], rtol=1e-8)
    np.testing.assert_allclose(own.var().asnumpy(), [float(variance)], rtol=1e-6)


@pytest.mark.parametrize("kind", ["Gamma", "Beta", "Poisson"])
def test_derivatives(kind):
    x = Tensor([0.3, 0.6], F64) if kind != "Poisson" else Tensor([2.0, 5.0], F64)
    parameters = [Tensor([1.7, 0.6], F64), Tensor([2.2, 3.1], F64)][: 1 if kind == "Poisson" else 2]
    own = made(kind, 1.0, 1.0)
    check_grads(lambda *p: own.log_prob(x, *p), parameters, order=2)


def test_edges():
    gamma = d.Gamma(Tensor([0.5, 1.0, 2.0], F64), Tensor([2.0], F64), dtype=F64)
    zero = Tensor([0.0, 0.0, 0.0], F64)
    np.testing.assert_array_equal(gamma.log_prob(zero).asnumpy(), [np.inf, np.log(2.0), -np.inf])
    np.testing.assert_array_equal(gamma.prob(zero - 1.0).asnumpy(), [0, 0, 0])
    np.testing.assert_array_equal(gamma.cdf(zero - 1.0).asnumpy(), [0, 0, 0])
    np.testing.assert_array_equal(gamma.mode().asnumpy(), [np.nan, np.nan, 0.5])
    beta = d.Beta(Tensor([1.0], F64), Tensor([3.0], F64), dtype=F64)
    found = beta.prob(Tensor([-0.1, 0.0, 1.0, 1.1], F64)).asnumpy()
    np.testing.assert_allclose(found, [0, 3, 0, 0], rtol=1e-12)
    poisson = d.Poisson(2.0)
    np.testing.assert_array_equal(poisson.prob(Tensor([-1.0])).asnumpy(), [0])
    with pytest.raises(ValueError, match="rate"):
        d.Poisson(0.0)
    with pytest.raises(NotImplementedError, match="cdf"):
        beta.cdf(zero)


N = 20000
#: A kind and its parameters, and the distribution function in closed form.
CLOSED = [
    (d.Gamma, (0.5, 2.0), lambda x: math.erf(math.sqrt(2 * x))),
    (d.Gamma, (1.0, 0.5), lambda x: 1 - math.exp(-x / 2)),
    (d.Gamma, (3.0, 1.0), lambda x: 1 - math.exp(-x) * (1 + x + x * x / 2)),
    (d.Beta, (0.5, 0.5), lambda x: 2 / math.pi * math.asin(math.sqrt(x))),
    (d.Beta, (3.0, 1.0), lambda x: x**3),
    (d.Poisson, (0.8,), None),
    (d.Poisson, (9.5,), None),
    (d.Poisson, (10.5,), None),
    (d.Poisson, (300.0,), None),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("k", range(len(CLOSED)))
def test_samples(k):
    kind, p, cdf = CLOSED[k]
    drawn = np.sort(kind(*p, seed=11).sample((N,)).asnumpy().astype(np.float64))
    if cdf is None:
        n = np.arange(int(p[0] + 12 * math.sqrt(p[0])) + 5)
        steps = np.exp(n * np.log(p[0]) - p[0] - np.array([math.lgamma(v + 1) for v in n]))
        wanted = np.cumsum(steps)
        found = np.searchsorted(drawn, n, "right") / N
        assert (drawn == np.floor(drawn)).all()
    else:
        wanted = np.array([cdf(x) for x in drawn])
        found = np.arange(1, N + 1) / N
    assert np.abs(found - wanted).max() < 1.95 / math.sqrt(N)  # Kolmogorov's test at 0.1 %


@pytest.mark.parametrize("a", [0.4, 1.3, 8.0])
def test_samples_move_with_the_concentration(a):
    """Along a quantile: first and second derivatives of the solution of F(a, x) = level."""

    def draw(a):
        gc.set_seed(3)
        return d.Gamma(a, Tensor([2.0], F64), dtype=F64).sample()

    at = Tensor([a], F64)
    x = float(draw(at).asnumpy()[0]) * 2

    def quantile(a):
        level = mpmath.gammainc(at_, 0, x, regularized=True)
        return mpmath.findroot(
            lambda v: mpmath.gammainc(a, 0, v, regularized=True) - level, mpmath.mpf(x)
        )

    with mpmath.workdps(30):
        at_ = mpmath.mpf(a)
        slope, bend = (mpmath.diff(quantile, at_, n, h=mpmath.mpf(10) ** -7) for n in (1, 2))
    first = gc.grad(lambda a: draw(a).sum())
    np.testing.assert_allclose(first(at).asnumpy(), [float(slope) / 2], rtol=1e-6)
    second = gc.grad(lambda a: first(a).sum())
    np.testing.assert_allclose(second(at).asnumpy(), [float(bend) / 2], rtol=1e-4)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("p", [(0.4, 0.7), (2.0, 0.5), (3.0, 4.0)])
def test_samples_of_beta_move_with_both_concentrations(p):
    """The mean derivative of x and of x^2 is that of their means, a / (a + b) and
    a (a + 1) / ((a + b) (a + b + 1)); each within five deviations of the mean of some draws."""
    few = 4000

    def draw(a, b):
        gc.set_seed(5)
        return d.Beta(a, b, dtype=F64).sample((few,))

    at = tuple(Tensor([v], F64) for v in p)
    means = [lambda a, b: a / (a + b), lambda a, b: a * (a + 1) / ((a + b) * (a + b + 1))]
    for power, mean in zip((1, 2), means, strict=True):
        for k in (0, 1):
            one = Tensor(np.ones(1)), Tensor(np.zeros(1))
            _, slopes = gc.jvp(lambda a, b, n=power: draw(a, b) ** n, at, one[k:] + one[:k])
            slopes = slopes.asnumpy().ravel()
            wanted = float(mpmath.diff(mean, p, (1 - k, k)))
            assert abs(slopes.mean() - wanted) < 5 * slopes.std() / math.sqrt(few)
            total = gc.grad(lambda a, b, n=power: (draw(a, b) ** n).mean(), k)(*at)
            np.testing.assert_allclose(total.asnumpy(), [slopes.mean()], rtol=1e-9)


#: Distributions whose samples move with their parameters, and points for those.
MOVING = {
    "Normal": (0.3, 1.4), "Uniform": (-0.5, 2.0), "Logistic": (0.3, 1.4), "Gumbel": (0.3, 1.4),
    "LogNormal": (0.3, 0.8), "Exponential": (1.4,), "Cauchy": (0.3, 1.4), "Laplace": (0.3, 1.4),
    "HalfNormal": (0.3, 1.4),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVING)
def test_samples_move_with_the_parameters(name):
    """Beside finite differences of the draws of one seed."""

    def draw(*parameters):
        gc.set_seed(7)
        return getattr(d, name)(*parameters, dtype=F64).sample((50,)).reshape(50)

    p = MOVING[name]
    for k in range(len(p)):
        low, high = ([v + s * (i == k) for i, v in enumerate(p)] for s in (-1e-6, 1e-6))
        low, high = (draw(*(Tensor([v], F64) for v in q)).asnumpy() for q in (low, high))
        at = tuple(Tensor([v], F64) for v in p)
        tangents = tuple(Tensor([float(i == k)], F64) for i in range(len(p)))
        found = gc.jvp(draw, at, tangents)[1].asnumpy()
        np.testing.assert_allclose(found, (high - low) / 2e-6, rtol=1e-6, atol=1e-8)
        assert np.abs(found).max() > 0.1
        total = gc.grad(lambda *q: draw(*q).sum(), k)(*at).asnumpy()
        np.testing.assert_allclose(total, [found.sum()], rtol=1e-10)


def test_samples_in_a_compiled_function():
    @gc.jit
    def draw(rate):
        return d.Gamma(2.0, 1.0).sample((4,)), d.Poisson(seed=5).sample((4,), rate)

    first, second = draw(Tensor([3.0])), draw(Tensor([3.0]))
    assert not np.array_equal(first[0].asnumpy(), second[0].asnumpy())
    assert first[1].shape == (4, 1)
