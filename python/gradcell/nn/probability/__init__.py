"""Probability: distributions and bijectors."""

from gradcell.nn.probability import bijector, distribution

__all__ = ["bijector", "distribution"]
