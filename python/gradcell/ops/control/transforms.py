"""Transforms of functions, by their names among the ops."""

from gradcell.derivatives.batching import vmap
from gradcell.derivatives.jacobians import jacfwd, jacrev, linearize
from gradcell.derivatives.taylor import derivative, jet

__all__ = ["derivative", "jacfwd", "jacrev", "jet", "linearize", "vmap"]
