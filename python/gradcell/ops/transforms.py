"""Transforms of functions, by their names among the ops."""

from __future__ import annotations

from gradcell.batching import vmap
from gradcell.jacobians import jacfwd, jacrev, linearize
from gradcell.taylor import derivative, jet

__all__ = ["derivative", "jacfwd", "jacrev", "jet", "linearize", "vmap"]
