"""DeepXDE's scripts on its JAX backend, for `bench/deepxde_compare.py`.

That backend passes network outputs and derivatives as pairs of a value and a function, and scripts that are
written for it take them apart. The scripts here are written for PyTorch's names, so the pairs are given an
array's operators and `torch` is a module of JAX's functions: what XLA compiles is the same either way.
Unknown coefficients, which that backend gives to residuals as a third argument, stand behind the script's
Variables; a script that asks for float64 gets it (JAX's own option), with weights of that type.
DeepXDE on JAX has feed-forward networks and Adam alone; a script that needs more is refused by it, or here
with the reason where DeepXDE's own message does not tell it.
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


#: The script's Variables, in the order in which they were made, and what they are while something is traced.
_variables: list[Any] = []
_now: dict[int, Any] = {}


def _operators(*kinds: Any) -> None:
    for kind in kinds:
        for name in ("add", "sub", "mul", "truediv", "pow", "matmul"):
            op = getattr(operator, name)
            setattr(kind, f"__{name}__", lambda a, b, op=op: op(value(a), value(b)))
            setattr(kind, f"__r{name}__", lambda a, b, op=op: op(b, value(a)))
        kind.__neg__ = lambda a: -value(a)


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
    """Of a pair its value, of a Variable what it is now."""
    if any(found is variable for variable in _variables):
        return _now.get(id(found), found.value)
    return found[0] if isinstance(found, Pair) else found


def set_weights(model: Any) -> None:
    """The weights that `deepxde_compare.set_weights` gives to PyTorch's network, of the type asked for."""
    import deepxde as dde
    import jax.numpy as jnp

    random, dtype = np.random.default_rng(0), dde.config.real(np)
    layers = model.params[0]["params"]
    for name in sorted(layers, key=lambda layer: int(layer.rsplit("_", 1)[1])):
        kernel, bias = layers[name]["kernel"], layers[name]["bias"]
        shape = kernel.shape[::-1]  # [outputs, inputs] is PyTorch's
        values = random.normal(size=shape) * np.sqrt(2 / sum(shape))
        layers[name]["kernel"] = jnp.asarray(values.T, dtype)
        layers[name]["bias"] = jnp.asarray(random.normal(size=bias.shape) * 0.1, dtype)
    model.net.params = model.params[0]
    model.opt_state = model.opt.init(model.params)


def prepare() -> Any:
    """Imports DeepXDE on JAX, with pairs that compute; call before the script runs."""
    import deepxde as dde
    import jax

    _operators(Pair, dde.backend.Variable)
    _waiting(dde.Model)
    _without_regularization(dde.Model)
    variable, set_float = dde.Variable, dde.config.set_default_float

    def made(*args: Any, **kwargs: Any) -> Any:
        _variables.append(variable(*args, **kwargs))
        return _variables[-1]

    def set_default_float(name: str) -> None:
        jax.config.update("jax_enable_x64", name == "float64")
        set_float(name)

    dde.Variable, dde.config.set_default_float = made, set_default_float
    for name in ("jacobian", "hessian"):
        plain = getattr(dde.grad, name)

        def paired(ys: Any, xs: Any, *args: Any, plain: Any = plain, **kwargs: Any) -> Any:
            if not (isinstance(ys, tuple) and callable(ys[1])):
                raise NotImplementedError(
                    f"{_asker()} gets the network's values on JAX, but not the function to differentiate"
                )
            return Pair(plain(ys, xs, *args, **kwargs))

        setattr(dde.grad, name, paired)
    for owner in (dde.data.PDE, dde.icbc.OperatorBC):
        _with_pairs(owner, "pde" if owner is dde.data.PDE else "func")
    sys.modules["torch"] = torch_of_jax()
    return dde


def _asker() -> str:
    """The class of DeepXDE's whose method asks for a derivative."""
    frame = sys._getframe(2)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if frame.f_code.co_name in ("error", "losses_train") and owner is not None:
            return f"deepxde's {type(owner).__name__}"
        frame = frame.f_back  # type: ignore[assignment]
    return "the script"


def _waiting(model: Any) -> None:
    """A step is over when its numbers are there: JAX returns before."""
    import jax

    step = model._train_step

    def waited(self: Any, *given: Any) -> None:
        step(self, *given)
        jax.block_until_ready(self.params)

    model._train_step = waited


def _without_regularization(model: Any) -> None:
    """Takes out of the history the sum of squared weights, which DeepXDE adds to the losses on JAX alone:
    with PyTorch it is the optimiser's weight decay."""
    train = model.train

    def trained(self: Any, *args: Any, **kwargs: Any) -> Any:
        history, state = train(self, *args, **kwargs)
        if self.net.regularizer is not None:
            history.loss_train = [losses[:-1] for losses in history.loss_train]
        return history, state

    model.train = trained


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
            pair = Pair(outputs) if isinstance(outputs, tuple) else outputs
            found = function(inputs, pair, *others)
            return [value(f) for f in found] if isinstance(found, list) else value(found)

        def with_unknowns(inputs: Any, outputs: Any, unknowns: Any = ()) -> Any:
            for variable, unknown in zip(_variables, unknowns, strict=False):
                _now[id(variable)] = unknown
            try:
                return called(inputs, outputs)
            finally:
                _now.clear()

        setattr(self, attribute, with_unknowns if _variables and attribute == "pde" else called)

    owner.__init__ = made
