"""Distributions: values as MindSpore prints them; moments, entropies and divergences by sums and
integrals of the densities; samples against the distribution function; bad input.
"""

from __future__ import annotations

import numpy as np
import pytest
from check_grads import check_grads

import gradcell as gc
from gradcell import Tensor
from gradcell.nn.probability import distribution as d

F64 = gc.float64
X = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])

#: Printed by MindSpore 2.10 for X: prob and cdf; where a kind has none, None.
PRINTED = {
    "Normal(0.5, 2.0)": (
        [0.15056863, 0.1933339, 0.19947103, 0.1933339, 0.15056863, 0.09132433],
        [0.22662735, 0.4012937, 0.5, 0.5987063, 0.77337265, 0.89435023],
    ),
    "LogNormal(0.5, 0.7)": (
        [0, 0, 0.26666287, 0.44159338, 0.274315, 0.13179258],
        [0, 0, 0.04414421, 0.23752525, 0.608697, 0.8037689],
    ),
    "Uniform(0.0, 2.0)": ([0, 0.5, 0.5, 0.5, 0.5, 0], [0, 0, 0.25, 0.5, 1, 1]),
    "Exponential(0.7)": (
        [0, 0.7, 0.49328157, 0.3476091, 0.17261757, 0.08571936],
        [0, 0, 0.29531324, 0.50341475, 0.7534031, 0.8775436],
    ),
    "Cauchy(0.5, 2.0)": (
        [0.10185909, 0.1497928, 0.15915483, 0.1497928, 0.10185909, 0.06210921],
        [0.29516724, 0.42202085, 0.5, 0.57797915, 0.7048328, 0.78522325],
    ),
    "Gumbel(0.5, 2.0)": (
        [0.1274351, 0.17778586, 0.18393938, 0.1787172, 0.14726609, 0.10756581],
        [0.12039216, 0.27692032, 0.36787882, 0.45895612, 0.6235248, 0.7508828],
    ),
    "Logistic(0.5, 2.0)": (
        [0.10894742, 0.12306701, 0.12499993, 0.12306704, 0.10894744, 0.08655223],
        [0.32082126, 0.43782353, 0.5, 0.5621766, 0.6791788, 0.7772999],
    ),
    "Laplace(0.5, 2.0)": (
        [0.11809158, 0.19470005, 0.24999991, 0.19470005, 0.11809158, 0.07162615],
        None,
    ),
    "HalfNormal(0.0, 2.0)": (
        [0, 0.3989423, 0.38666812, 0.35206532, 0.24197066, 0.12951751],
        None,
    ),
    "Geometric(0.3)": ([0, 0.3, 0.3, 0.21, 0.147, 0.1029], [0, 0.3, 0.3, 0.51, 0.657, 0.7599]),
    "Categorical([0.2, 0.3, 0.5])": ([0, 0.2, 0.2, 0.3, 0.5, 0], [0, 0.2, 0.2, 0.5, 1, 1]),
    "Bernoulli(0.3)": (None, [0, 0.7, 0.7, 1, 1, 1]),
}


def make(text, dtype=None):
    kind, _, rest = text.partition("(")
    return eval(
        f"d.{kind}({rest[:-1]}{', dtype=dtype' if dtype else ''})", {"d": d, "dtype": dtype}
    )


@pytest.mark.parametrize("name", PRINTED)
@np.errstate(divide="ignore")
def test_as_mindspore_prints(mode, name):
    dist, (prob, cdf) = make(name), PRINTED[name]
    x = Tensor(X.astype(np.float32))
    if prob is not None:
        np.testing.assert_allclose(dist.prob(x).asnumpy(), prob, rtol=1e-5, atol=2e-7)
        np.testing.assert_allclose(
            dist("log_prob", x).asnumpy(), np.log(prob), rtol=1e-5, atol=1e-6
        )
    if cdf is not None:
        np.testing.assert_allclose(dist.cdf(x).asnumpy(), cdf, rtol=1e-5, atol=2e-7)
        rest = dist.survival_function(x).asnumpy()
        np.testing.assert_allclose(rest, 1 - np.array(cdf), rtol=1e-5, atol=3e-7)
        found = dist.log_survival(x).asnumpy()
        np.testing.assert_allclose(found, np.log(rest), rtol=1e-6, atol=1e-6)
    assert dist.mean.__self__ is dist and dist.get_dist_type() == name.split("(")[0]


# A fine grid on which sums are integrals; u maps (0, 1) to the whole line.
U = (np.arange(400_000) + 0.5) / 400_000
GRID = np.log(U) - np.log1p(-U)
WEIGHT = 1 / (400_000 * U * (1 - U))

CONTINUOUS = {
    "Normal": ([0.5, 2.0], [1.0, 3.0]),
    "LogNormal": ([0.5, 0.4], [0.1, 0.6]),
    "Exponential": ([0.7], [0.6]),
    "Gumbel": ([0.5, 0.7], [0.1, 0.9]),
    "Logistic": ([0.5, 0.3], None),
    "Laplace": ([0.5, 0.4], [1.0, 0.7]),
    "Uniform": ([0.2, 2.0], [-1.0, 3.0]),
    "Cauchy": ([0.5, 0.1], [0.3, 0.2]),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_integrals(name):
    own, other = CONTINUOUS[name]
    dist = getattr(d, name)(*(Tensor(np.array(v)) for v in own), dtype=F64)
    x = Tensor(GRID)
    p = dist.prob(x).asnumpy() * WEIGHT
    log = np.where(p > 0, dist.log_prob(x).asnumpy(), 0)
    loose = {"rtol": 2e-2 if name == "Cauchy" else 2e-4}
    np.testing.assert_allclose(p.sum(), 1, **loose)
    below = GRID <= 0.9
    np.testing.assert_allclose(dist.cdf(Tensor(np.array(0.9))).asnumpy(), p[below].sum(), **loose)
    if name != "Cauchy":
        mean = (p * GRID).sum()
        np.testing.assert_allclose(float(dist.mean()), mean, rtol=1e-3)
        np.testing.assert_allclose(float(dist.var()), (p * (GRID - mean) ** 2).sum(), rtol=5e-3)
        np.testing.assert_allclose(float(dist.sd()) ** 2, float(dist.var()), rtol=1e-12)
        np.testing.assert_allclose(float(dist.entropy()), -(p * log).sum(), rtol=1e-3)
    if name not in ("Uniform", "Exponential"):
        mode = float(dist.mode())
        near = dist.prob(Tensor(mode + np.array([-1e-3, 0.0, 1e-3]))).asnumpy()
        assert near.argmax() == 1
    if other is None:
        with pytest.raises(NotImplementedError, match="kl_loss"):
            dist.kl_loss(name, *(Tensor(np.array(v)) for v in own))
        return
    given = [Tensor(np.array(v)) for v in other]
    log_b = np.where(p > 0, dist.log_prob(x, *given).asnumpy(), 0)
    divergence = (p * (log - log_b)).sum()
    np.testing.assert_allclose(float(dist.kl_loss(name, *given)), divergence, rtol=2e-2, atol=1e-4)
    both = float(dist.cross_entropy(name, *given))
    np.testing.assert_allclose(both, float(dist.entropy()) + float(dist.kl_loss(name, *given)))
    names = dict(zip([f"{k}_b" for k in dist.parameters], given, strict=True))
    assert float(dist.kl_loss(name, **names)) == float(dist.kl_loss(name, *given))


DISCRETE = {
    "Bernoulli": (0.3, 0.6, 2),
    "Geometric": (0.3, 0.6, 400),
    "Categorical": ([0.2, 0.3, 0.5], [0.3, 0.3, 0.4], 3),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_sums(name):
    own, other, count = DISCRETE[name]
    dist = getattr(d, name)(Tensor(np.array(own)))
    k = np.arange(count, dtype=float)
    p = dist.prob(Tensor(k)).asnumpy()
    np.testing.assert_allclose(p.sum(), 1, rtol=1e-12)
    np.testing.assert_allclose(dist.cdf(Tensor(k)).asnumpy(), np.cumsum(p), rtol=1e-12)
    mean = (p * k).sum()
    np.testing.assert_allclose(float(dist.mean()), mean, rtol=1e-10)
    np.testing.assert_allclose(float(dist.var()), (p * (k - mean) ** 2).sum(), rtol=1e-10)
    log = dist.log_prob(Tensor(k)).asnumpy()
    np.testing.assert_allclose(float(dist.entropy()), -(p * log).sum(), rtol=1e-10)
    assert int(dist.mode()) == p.argmax()
    given = Tensor(np.array(other))
    divergence = (p * (log - dist.log_prob(Tensor(k), given).asnumpy())).sum()
    np.testing.assert_allclose(float(dist.kl_loss(name, given)), divergence, rtol=1e-10)
    if name != "Bernoulli":  # MindSpore's formula for it goes on beyond 0 and 1
        assert dist.prob(Tensor(np.array([-1.0]))).asnumpy() == 0


SAMPLED = [
    *(f"{k}({', '.join(map(str, v[0]))})" for k, v in CONTINUOUS.items()),
    "HalfNormal(0.0, 2.0)",
]


@pytest.mark.parametrize(
    "name", [*SAMPLED, "Geometric(0.3)", "Bernoulli(0.3)", "Categorical([0.2, 0.3, 0.5])"]
)
def test_samples(name):
    """Their distribution is the distribution function's: Kolmogorov's distance of 20,000 of them."""
    gc.set_seed(3)
    dist = make(name)
    x = dist.sample((4, 5000)).asnumpy()
    assert x.shape == (4, 5000) and x.dtype == (np.float32 if name in SAMPLED else np.int32)
    points = np.unique(np.sort(x.ravel())[::100])
    if name.startswith("HalfNormal"):
        from math import erf

        cdf = np.array([erf(v / 2 / 2**0.5) for v in points])
    else:
        cdf = dist.cdf(Tensor(points.astype(np.float32))).asnumpy()
    share = np.searchsorted(np.sort(x.ravel()), points, side="right") / x.size
    assert np.abs(cdf - share).max() < 0.015


def test_batches_and_parameters_of_the_call(mode):
    dist = d.Normal(Tensor(np.zeros((3, 1), np.float32)), Tensor(np.ones(2, np.float32)))
    assert dist.batch_shape == (3, 2) and not dist.is_scalar_batch
    assert dist.sample((4,)).shape == (4, 3, 2) and dist.sample().shape == (3, 2)
    assert dist.mean().shape == (3, 2)
    free = d.Normal(dtype=F64)
    x, m, s = (Tensor(np.array(v)) for v in (0.3, 0.1, 2.0))
    assert float(free.log_prob(x, m, s)) == float(free.log_prob(x, sd=s, mean=m))
    assert free.batch_shape is None
    rows = d.Categorical(Tensor(np.array([[0.2, 0.8], [0.5, 0.5]])))
    assert rows.batch_shape == (2,) and rows.sample((5,)).shape == (5, 2)
    np.testing.assert_allclose(rows.prob(Tensor(np.array([1.0, 0.0]))).asnumpy(), [0.8, 0.5])


def test_same_seed_same_samples():
    first, second = d.Normal(0.0, 1.0, seed=5), d.Normal(0.0, 1.0, seed=5)
    gc.set_seed(1)
    x = first.sample((3,)).asnumpy()
    gc.set_seed(1)
    assert (second.sample((3,)).asnumpy() == x).all()


@pytest.mark.parametrize(
    "name", ["Normal", "LogNormal", "Gumbel", "Logistic", "Cauchy", "Exponential"]
)
def test_log_prob_and_cdf_have_derivatives(name):
    dist = getattr(d, name)(*[None] * len(CONTINUOUS[name][0]), dtype=F64)
    own = [np.array(v) for v in CONTINUOUS[name][0]]
    check_grads(dist.log_prob, [np.array([0.4, 1.3]), *own], order=2, tolerance=1e-6)
    check_grads(dist.cdf, [np.array([0.4, 1.3]), *own], order=2, tolerance=1e-6)


def test_samples_carry_derivatives():
    def f(m, s):
        gc.set_seed(2)
        return d.Normal(dtype=F64).sample((5,), m, s).sum()

    one, z = gc.grad(f, (0, 1))(Tensor(np.array(0.5)), Tensor(np.array(2.0)))
    assert float(one) == 5
    gc.set_seed(2)
    total = d.Normal(0.5, 2.0).sample((5,)).asnumpy().sum()
    np.testing.assert_allclose(float(z), (total - 2.5) / 2, rtol=1e-5)


BAD = [
    (lambda: d.Normal(0.0, -1.0), ValueError, "sd"),
    (lambda: d.Bernoulli(1.2), ValueError, "probs"),
    (lambda: d.Categorical([0.2, 0.3]), ValueError, "sum to 1"),
    (lambda: d.Uniform(1.0, 1.0), ValueError, "low"),
    (lambda: d.Normal(0.0, 1.0, dtype=gc.int32), TypeError, "dtype"),
    (lambda: d.Normal(0.0, 1.0).log_prob(1.0), TypeError, "value"),
    (lambda: d.Normal(0.0).mean(), ValueError, "sd"),
    (
        lambda: d.Normal(0.0, 1.0).kl_loss("Cauchy", Tensor(0.0), Tensor(1.0)),
        TypeError,
        "same kind",
    ),
    (lambda: d.Normal(0.0, 1.0).kl_loss("Normal", Tensor(0.0)), ValueError, "sd_b"),
    (
        lambda: d.Normal(0.0, 1.0).mean(Tensor(0.0), Tensor(1.0), Tensor(1.0)),
        TypeError,
        "parameters",
    ),
    (lambda: d.Cauchy(0.0, 1.0).mean(), ValueError, "undefined"),
    (lambda: d.Uniform(0.0, 1.0).mode(), NotImplementedError, "mode"),
]


@pytest.mark.parametrize("k", range(len(BAD)))
def test_distributions_refuse_what_is_undefined(k):
    run, error, text = BAD[k]
    with pytest.raises(error, match=text):
        run()
