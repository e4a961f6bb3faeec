"""Probability distributions: densities, moments, entropies, divergences, samples."""

from __future__ import annotations

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

__all__ = [
    "Bernoulli",
    "Categorical",
    "Cauchy",
    "Distribution",
    "Exponential",
    "Geometric",
    "Gumbel",
    "HalfNormal",
    "Laplace",
    "LogNormal",
    "Logistic",
    "Normal",
    "Uniform",
]
