"""Probability: distributions and bijectors."""

from __future__ import annotations

from gradcell.nn.probability import bijector, distribution

__all__ = ["bijector", "distribution"]
