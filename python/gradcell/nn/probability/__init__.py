"""Probability: distributions."""

from __future__ import annotations

from gradcell.nn.probability import distribution

__all__ = ["distribution"]
