"""Messages for missing names of modules, objects and arguments: replacements, or the nearest names."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, ParamSpec, TypeVar

from gradcell.base.errors import where

P = ParamSpec("P")
R = TypeVar("R")

_OF_FUNCTIONS = "gradcell.grad or gradcell.value_and_grad, which differentiate a function"
_DEVICE = 'gradcell.set_context(device_target="GPU") or "CPU", which holds for all tensors'
_CAST = "to_float(...), which sets what a cell computes in"

#: {module or class: {a name of PyTorch's or JAX's: what to write here}}.
INSTEAD = {
    "gradcell": {
        "arange": "ops.arange", "cat": "ops.concat", "zeros": "ops.zeros", "ones": "ops.ones",
        "linspace": "ops.linspace", "matmul": "ops.matmul", "stack": "ops.stack",
        "sin": "ops.sin", "exp": "ops.exp", "sum": "ops.reduce_sum", "mean": "ops.mean",
        "randn": "ops.randn", "rand": "ops.rand", "where": "ops.where",
        "save": "gradcell.save_checkpoint", "load": "gradcell.load_checkpoint",
        "autograd": "gradcell.grad, which takes a function", "optim": "nn.Adam and its kin",
        "compile": "gradcell.jit", "pi": "math.pi", "e": "math.e", "inf": "math.inf", "nan": "math.nan",
        "device": "gradcell.set_context(device_target=...)", "jacobian": "gradcell.jacrev or gradcell.jacfwd",
        "array": "gradcell.Tensor", "lax": "ops",
    },
    "gradcell.nn": {
        "Module": "nn.Cell, with construct in place of forward",
        "Sequential": "nn.SequentialCell", "ModuleList": "nn.CellList",
        "Parameter": "gradcell.Parameter", "BatchNorm": "nn.BatchNorm1d or nn.BatchNorm2d",
        "functional": "ops", "CrossEntropy": "nn.CrossEntropyLoss", "init": "gradcell.common.initializer",
    },
    "gradcell.ops": {
        "mse": "ops.mse_loss", "pi": "math.pi",
        "linear": "nn.Dense, or ops.matmul", "array": "gradcell.Tensor", "tensor": "gradcell.Tensor",
    },
    "gradcell.dataset": {
        "DataLoader": "dataset.GeneratorDataset(source, names).batch(size)",
        "TensorDataset": "dataset.NumpySlicesDataset((x, y), names)",
    },
    "Tensor": {
        "backward": _OF_FUNCTIONS, "grad": _OF_FUNCTIONS, "grad_fn": _OF_FUNCTIONS,
        "retain_grad": _OF_FUNCTIONS, "is_leaf": _OF_FUNCTIONS,
        "at": "x[i] = value, or ops.tensor_scatter_add",
        "cpu": _DEVICE, "cuda": _DEVICE, "devices": _DEVICE, "get_device": _DEVICE,
        "is_cuda": _DEVICE, "block_until_ready": "asnumpy(), which waits for the values",
        "mv": "x @ v", "vdot": "ops.dot",
        "unflatten": "reshape", "clamp_min": "clamp(min=...)",
        "clamp_max": "clamp(max=...)",
    },
    "Cell": {
        "parameters": "trainable_params() or get_parameters()",
        "named_parameters": "parameters_and_names()", "named_modules": "cells_and_names()",
        "modules": "cells_and_names()", "children": "cells()", "named_children": "name_cells()",
        "forward": "construct, which a call of the cell runs", "train": "set_train()",
        "eval": "set_train(False)",
        "zero_grad": "(gradients are returned, not kept: there is nothing to zero)",
        "to": _CAST + "; " + _DEVICE, "save": "gradcell.save_checkpoint(net, path)",
        "load": "gradcell.load_checkpoint(path, net=net)",
        "cuda": _DEVICE, "cpu": _DEVICE, "half": _CAST, "float": _CAST, "double": _CAST, "bfloat16": _CAST,
        "register_parameter": "insert_param_to_cell()", "add_module": "insert_child_to_cell()",
        "requires_grad_": "set_grad(), or requires_grad of each Parameter",
    },
    "Optimizer": {
        "step": "optimizer(gradients), with the gradients of gradcell.value_and_grad",
        "zero_grad": "(gradients are returned, not kept: there is nothing to zero)",
        "minimize": "optimizer(gradients), with the gradients of gradcell.value_and_grad",
        "apply_gradients": "optimizer(gradients), with the gradients of gradcell.value_and_grad",
        "add_param_group": "a list of groups, given when the optimiser is made",
    },
}  # fmt: skip

#: {an argument of PyTorch's or JAX's: arguments here that mean it}.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "argnums": ("grad_position",), "argnum": ("grad_position",), "in_dims": ("in_axes",),
    "out_dims": ("out_axes",), "lr": ("learning_rate",), "betas": ("beta1", "beta2"), "dim": ("axis",),
    "keepdim": ("keepdims", "keep_dims"), "in_features": ("in_channels",), "out_features": ("out_channels",),
    "bias": ("has_bias",), "p": ("keep_prob",), "num_embeddings": ("vocab_size",),
    "embedding_dim": ("embedding_size",), "params": ("parameters",), "model": ("network",),
}  # fmt: skip


def missing(module: str, name: str, names: Iterable[str]) -> AttributeError:
    """The error for a name that a module does not have."""
    text = f"module '{module}' has no attribute {name!r}"
    instead = INSTEAD.get(module, {}).get(name)
    if instead is not None:
        return AttributeError(f"{text}: use {instead}")
    if name.startswith("_"):
        return AttributeError(text)
    near = difflib.get_close_matches(name, list(names), 3, 0.75)
    return AttributeError(f"{text}; did you mean {' or '.join(near)}?" if near else text)


def instead(cls: type, name: str) -> str:
    """Return advice for an attribute that objects of a class do not have: ': use ..', or ' (why)'."""
    for base in cls.__mro__:
        text = INSTEAD.get(base.__name__, {}).get(name)
        if text is not None:
            return f" {text}" if text.startswith("(") else f": use {text}"
    return ""


class _Absent:
    """An attribute that the class does not have: reading it raises AttributeError, which says what to
    write instead. hasattr is False."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute {self.name!r}{instead(owner, self.name)}{where()}"
        )


def put_up(cls: type) -> None:
    """Signposts for the names that a class does not have: found last, so that lookups of others are as
    fast as without."""
    for name in INSTEAD[cls.__name__]:
        if not hasattr(cls, name):
            post = _Absent()
            post.__set_name__(cls, name)
            setattr(cls, name, post)


def wrong_argument(function: str, name: str, names: Iterable[str]) -> TypeError:
    """The error for a keyword that a function does not take."""
    known = list(names)
    near = [n for n in ARGUMENTS.get(name, ()) if n in known] or difflib.get_close_matches(
        name, known, 2, 0.7
    )
    hint = (
        f": use {' and '.join(near)}" if near else f"; it takes {', '.join(known)}" if known else ""
    )
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}{where()}")


def kind_of(value: Any) -> str:
    """Describe a value given in place of a cell, with advice if it is a class or a function."""
    if inspect.isclass(value):
        return f"the class {value.__name__}: make one of it, {value.__name__}()"
    if inspect.isroutine(value) or inspect.isfunction(value):
        name = getattr(value, "__name__", "function")
        return f"the function {name}: put it into the construct of an nn.Cell"
    return type(value).__name__


def nearest(name: str, names: Iterable[str]) -> str:
    """'; did you mean a or b?', or nothing."""
    near = difflib.get_close_matches(name, list(names), 2, 0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


_UNEXPECTED = re.compile(r"got an unexpected keyword argument '(\w+)'")


def explains_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: a keyword that the function does not take is answered with the one that it does."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            below = error.__traceback__.tb_next if error.__traceback__ else None
            wrong = _UNEXPECTED.search(str(error))
            if below is not None or wrong is None:
                raise
            raise wrong_argument(
                function.__name__, wrong[1], inspect.signature(function).parameters
            ) from None

    return call


def check_arguments(cls: Any, given: dict[str, Any]) -> None:
    """Raises TypeError for keywords that an object of the class is not made of."""
    parameters = _parameters(cls.__init__)
    if parameters is not None:
        for name in given:
            if name not in parameters:
                raise wrong_argument(cls.__name__, name, parameters)


class SignatureOfInit:
    """A class's signature: that of its __init__, whatever its __new__ looks at."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature | None:
        if instance is not None:
            return None
        signature = inspect.signature(owner.__init__)  # type: ignore[misc]
        return inspect.Signature(list(signature.parameters.values())[1:])


@functools.lru_cache(512)
def _parameters(init: Any) -> tuple[str, ...] | None:
    """Return the names of a constructor's parameters; None if it takes any keyword or has no
    signature."""
    try:
        parameters = list(inspect.signature(init).parameters.values())[1:]
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return tuple(p.name for p in parameters if p.kind is not p.VAR_POSITIONAL)
