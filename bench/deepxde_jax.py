"""DeepXDE's scripts on its JAX backend, for `bench/deepxde_compare.py`.

That backend passes network outputs and derivatives as pairs of a value and a function, and scripts that are
written for it take them apart. The scripts here are written for PyTorch's names, so the pairs are given an
array's operators and `torch` is a module of JAX's functions: what XLA compiles is the same either way.
DeepXDE on JAX has feed-forward networks and Adam alone; a script that needs more is refused by it.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
from typing import Any

import numpy as np


class Pair(tuple[Any, Any]):
    """A value and the function of a point that gives it. Computes as the value does."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if isinstance(key, int) else super().__getitem__(0)[key]


def _operators() -> None:
    for name in ("add", "sub", "mul", "truediv", "pow", "matmul"):
        op = getattr(operator, name)
        setattr(Pair, f"__{name}__", lambda pair, other, op=op: op(pair[0], value(other)))
        setattr(Pair, f"__r{name}__", lambda pair, other, op=op: op(other, pair[0]))
    Pair.__neg__ = lambda pair: -pair[0]  # type: ignore[attr-defined]


def torch_of_jax() -> types.ModuleType:
    """PyTorch's names that the scripts use, as JAX's functions."""
    import jax.numpy as jnp

    module = types.ModuleType("torch")
    module.cat = lambda tensors, dim=0: jnp.concatenate(tensors, axis=dim)  # type: ignore[attr-defined]
    module.as_tensor = jnp.asarray  # type: ignore[attr-defined]
    for name in ("sin", "cos", "exp", "tanh", "matmul"):
        function = getattr(jnp, name)
        setattr(module, name, lambda *args, function=function: function(*map(value, args)))
    return module


def value(found: Any) -> Any:
    """Of a pair its value."""
    return found[0] if isinstance(found, Pair) else found


def set_weights(model: Any) -> None:
    """The weights that `deepxde_compare.set_weights` gives to PyTorch's network."""
    import jax.numpy as jnp

    random = np.random.default_rng(0)
    layers = model.params[0]["params"]
    for name in sorted(layers, key=lambda layer: int(layer.rsplit("_", 1)[1])):
        kernel, bias = layers[name]["kernel"], layers[name]["bias"]
        shape = kernel.shape[::-1]  # [outputs, inputs] is PyTorch's
        values = random.normal(size=shape) * np.sqrt(2 / sum(shape))
        layers[name]["kernel"] = jnp.asarray(values.T, kernel.dtype)
        layers[name]["bias"] = jnp.asarray(random.normal(size=bias.shape) * 0.1, bias.dtype)
    model.net.params = model.params[0]


def prepare() -> Any:
    """Imports DeepXDE on JAX, with pairs that compute; call before the script runs."""
    import deepxde as dde

    _operators()
    _waiting(dde.Model)
    for name in ("jacobian", "hessian"):
        plain = getattr(dde.grad, name)

        def paired(ys: Any, xs: Any, *args: Any, plain: Any = plain, **kwargs: Any) -> Any:
            return Pair(plain(ys, xs, *args, **kwargs))

        setattr(dde.grad, name, paired)
    for owner in (dde.data.PDE, dde.icbc.OperatorBC):
        _with_pairs(owner, "pde" if owner is dde.data.PDE else "func")
    sys.modules["torch"] = torch_of_jax()
    return dde


def _waiting(model: Any) -> None:
    """A step is over when its numbers are there: JAX returns before."""
    import jax

    step = model._train_step

    def waited(self: Any, *given: Any) -> None:
        step(self, *given)
        jax.block_until_ready(self.params)

    model._train_step = waited


def _with_pairs(owner: Any, attribute: str) -> None:
    """The user's function, kept in this attribute, gets pairs that compute."""
    init = owner.__init__

    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        function = getattr(self, attribute)
        if function is None:
            return

        @functools.wraps(function)  # DeepXDE counts its parameters
        def called(inputs: Any, outputs: Any, *others: Any) -> Any:
            found = function(inputs, Pair(outputs), *others)
            return [value(f) for f in found] if isinstance(found, list) else value(found)

        setattr(self, attribute, called)

    owner.__init__ = made
