"""Probability distributions: densities, moments, entropies, divergences, samples."""

from gradcell.base import explain
from gradcell.nn.probability.distribution.continuous import (
    Cauchy,
    Exponential,
    Gumbel,
    HalfNormal,
    Laplace,
    Logistic,
    LogNormal,
    Normal,
    Uniform,
)
from gradcell.nn.probability.distribution.discrete import Bernoulli, Categorical, Geometric
from gradcell.nn.probability.distribution.distribution import Distribution
from gradcell.nn.probability.distribution.gammas import Beta, Gamma, Poisson
from gradcell.nn.probability.distribution.transformed import TransformedDistribution

__all__ = [
    "Bernoulli", "Beta", "Categorical", "Cauchy", "Distribution", "Exponential", "Gamma",
    "Geometric", "Gumbel", "HalfNormal", "Laplace", "LogNormal", "Logistic", "Normal", "Poisson",
    "TransformedDistribution", "Uniform",
]  # fmt: skip

explain(globals())
