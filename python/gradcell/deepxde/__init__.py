"""DeepXDE on gradcell: import this before deepxde, or run a script by

    python -m gradcell run --deepxde script.py

DeepXDE's networks, problems, conditions, gradients and callbacks run as they are, on gradcell's tensors;
its training step is one compiled plan. `torch`, `tf` and `jax` are the names of PyTorch, TensorFlow and
JAX that residuals use; `from deepxde.backend import torch` (or tf, jax) gives the same. `dde` is DeepXDE
itself, for programs that sort their imports. PyTorch is neither needed nor touched.

Raises ImportError without DeepXDE, where it is imported already, and for versions that differ in what is
replaced (gradcell.deepxde.importing.REPLACED).
"""

from __future__ import annotations

from types import ModuleType

from gradcell.deepxde import importing
from gradcell.deepxde.importing import jax, tf, torch

__all__ = ["dde", "jax", "jnp", "tf", "torch"]

jnp = jax.numpy

dde: ModuleType = importing.load()
importing.replace(dde)
