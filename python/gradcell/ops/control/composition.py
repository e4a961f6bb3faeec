"""Ops on parameters and on trees of tensors: assign, HyperMap, MultitypeFuncGraph, clipping."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import ParameterBase, Tensor
from gradcell.base import arguments
from gradcell.base.errors import bad_type, bad_value, fail
from gradcell.compilation import prints
from gradcell.ops.one_plan import one_plan
from gradcell.ops.reductions.reductions import norm
from gradcell.tensors.indexing import replaced
from gradcell.tensors.parameter import Parameter, parameter_behind

__all__ = [
    "HyperMap", "Map", "MultitypeFuncGraph", "addn", "assign", "assign_add", "assign_sub",
    "clip_by_global_norm", "clip_by_norm", "depend", "is_tensor", "partial", "print_",
    "scatter_add", "scatter_update", "typeof",
]  # fmt: skip

_ops = _core.ops


# Parameters ---------------------------------------------------------------------------------------


def _assign(op: str, variable: Any, value: Any, combine: Any) -> Tensor:
    variable = parameter_behind(variable)
    if not isinstance(variable, Tensor):
        bad_type(f"For '{op}', 'variable' must be a Parameter, got {type(variable).__name__}")
    new = value if isinstance(value, (Tensor, int, float)) else arguments.tensor(value, op, "value")
    shape = list(new.shape) if isinstance(new, Tensor) else []
    if shape != list(variable.shape) and (combine is None or isinstance(new, Tensor)):
        bad_value(
            f"For '{op}','value' must have the same shape as 'variable'. But got 'value' shape: {shape}, "
            f"'variable' shape: {list(variable.shape)}."
        )
    if combine is not None:
        new = combine(variable, new)
    elif not isinstance(new, Tensor):
        new = _ops.full([], new, variable.dtype)
    new = _ops.cast(new, variable.dtype)
    if isinstance(variable, ParameterBase):
        variable._set_array(new)
    else:
        _core.write(variable, new)
    return new


def assign(variable: Tensor, value: Any) -> Tensor:
    """Gives a parameter (or tensor) a new value, cast to its dtype; returns that value.

    Raises TypeError unless variable is a Parameter or Tensor, ValueError if the shapes differ.
    """
    return _assign("Assign", variable, value, None)


@one_plan
def assign_add(variable: Tensor, value: Any) -> Tensor:
    """Adds value, of the same shape or a number, to a parameter; returns the new value."""
    return _assign("AssignAdd", variable, value, _ops.add)


@one_plan
def assign_sub(variable: Tensor, value: Any) -> Tensor:
    """Subtracts value, of the same shape or a number, from a parameter; returns the new
    value."""
    return _assign("AssignSub", variable, value, _ops.sub)


def _rows(op: str, x: Any, indices: Any, updates: Any) -> tuple[Tensor, Tensor]:
    """Indices as a vector, and their updates [indices.size, ...] in x's dtype."""
    if not isinstance(x, ParameterBase):
        bad_type(f"For '{op}', 'input_x' must be a Parameter, got {type(x).__name__}")
    at, new = arguments.tensor(indices, op, "indices"), arguments.tensor(updates, op, "updates")
    if x.ndim == 0 or list(new.shape) != list(at.shape) + list(x.shape[1:]):
        bad_value(
            f"{op}: updates of shape {list(new.shape)} do not fit indices of shape {list(at.shape)} into "
            f"shape {list(x.shape)}"
        )
    flat = _ops.reshape(_ops.cast(new, x.dtype), [at.size, *x.shape[1:]])
    return _ops.reshape(at, [at.size]), flat


@one_plan
def scatter_add(input_x: Parameter, indices: Any, updates: Any) -> Tensor:
    """Adds updates to the rows of a parameter at indices; returns the new value.

    updates: shape indices.shape + input_x.shape[1:]. Raises IndexError for an index out of range.
    """
    input_x = parameter_behind(input_x)
    at, new = _rows("ScatterAdd", input_x, indices, updates)
    added = _ops.scatter_add(at, new, 0, input_x.shape[0])
    return _assign("ScatterAdd", input_x, added, _ops.add)


@one_plan
def scatter_update(input_x: Parameter, indices: Any, updates: Any) -> Tensor:
    """Replaces the rows of a parameter at indices by updates; returns the new value.

    updates: shape indices.shape + input_x.shape[1:]; if several are for one row, the last one
    stays. Raises IndexError for an index out of range.
    """
    input_x = parameter_behind(input_x)
    at, new = _rows("ScatterUpdate", input_x, indices, updates)
    return _assign("ScatterUpdate", input_x, replaced(input_x, at, new), None)


def depend(value: Any, expr: Any) -> Any:
    """value. The order of updates is always the program's, so nothing needs to wait for expr.

    expr has no effect.
    """
    return value


def print_(*input_x: Any) -> Any:
    """Prints its arguments, tensors in their long form, and returns the first.

    In a compiled function it prints at every call.
    """
    for x in input_x:
        prints.emit(x, text=repr if isinstance(x, Tensor) else str)
    return input_x[0] if input_x else None


def is_tensor(obj: Any) -> bool:
    """Whether an object is a Tensor.

    obj: any object.
    """
    return isinstance(obj, Tensor)


def typeof(x: Any) -> str:
    """The type of a value as text: 'tensor[float32]' for tensors.

    x: any value.
    """
    return f"tensor[{x.dtype.name}]" if isinstance(x, Tensor) else type(x).__name__


@one_plan
def addn(x: Any) -> Tensor:
    """The sum of several tensors, given as a tuple or list.

    x: a tuple or list of tensors that broadcast. Raises ValueError for none.
    """
    xs = arguments.tensors(x, "AddN", "x")
    if not xs:
        bad_value("AddN: needs at least one tensor")
    return functools.reduce(_ops.add, xs[1:], _core.copy(xs[0]))


def partial(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """fn with its first arguments given.

    fn: a function. args, kwargs: its first arguments. Raises TypeError unless fn can be called.
    """
    if not callable(fn):
        bad_type(f"partial: a function is needed, got {type(fn).__name__}")
    return functools.partial(fn, *args, **kwargs)


# Trees --------------------------------------------------------------------------------------------


class _Mapping:
    """What Map and HyperMap share: the function, given now or at the call."""

    _name = "Map"

    def __init__(self, ops: Callable[..., Any] | None = None, reverse: bool = False) -> None:
        if ops is not None and not callable(ops):
            bad_type(f"{self._name}: a function is needed, got {type(ops).__name__}")
        arguments.boolean(reverse, self._name, "reverse")
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args: Any) -> Any:
        if self.ops is None:
            if not args or not callable(args[0]):
                bad_type(f"{self._name}: the first argument must be a function")
            fn, args = args[0], args[1:]
        else:
            fn = self.ops
        if not args:
            bad_type(f"{self._name}: needs at least one sequence")
        return _run_mapping(self._apply, fn, args)

    def _zip(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        lengths = {len(a) for a in args if isinstance(a, (tuple, list))}
        if len(lengths) != 1 or not all(isinstance(a, (tuple, list)) for a in args):
            bad_value(
                f"{self._name}: the arguments must be tuples or lists of one length, got "
                f"{[len(a) if isinstance(a, (tuple, list)) else type(a).__name__ for a in args]}"
            )
        rows = list(zip(*args, strict=True))
        return rows[::-1] if self.reverse else rows

    def _collect(self, items: list[Any]) -> tuple[Any, ...]:
        return tuple(items[::-1] if self.reverse else items)

    def _apply(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        return self._collect([fn(*row) for row in self._zip(args)])


@one_plan
def _run_mapping(apply: Callable[..., Any], fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return apply(fn, args)


class Map(_Mapping):
    """Applies a function to the members of tuples or lists, one of each at a time.

    Map(fn)(xs, ys) or Map()(fn, xs, ys) gives (fn(xs[0], ys[0]), ...); reverse: from the last to
    the first. The result is a tuple, also of lists. ops: the function, or None. Raises ValueError
    for different lengths.
    """


class HyperMap(_Mapping):
    """Applies a function to the leaves of nested tuples and lists of one structure.

    HyperMap(fn)(xs, ys) or HyperMap()(fn, xs, ys); reverse: from the last to the first. The result
    is of tuples, also where the arguments are lists. ops: the function, or None. Raises ValueError
    for different lengths.
    """

    _name = "HyperMap"

    def _apply(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if not any(isinstance(a, (tuple, list)) for a in args):
            return fn(*args)
        return self._collect([self._apply(fn, row) for row in self._zip(args)])


def _type_names(value: Any) -> tuple[str, ...]:
    """The names under which a value's type can be registered, the most special first."""
    if isinstance(value, Parameter):
        return ("Parameter", "Ref", "Tensor")
    if isinstance(value, Tensor):
        return ("Tensor",)
    if isinstance(value, bool):
        return ("Bool", "Number")
    if isinstance(value, np.generic):
        return (
            value.dtype.name.capitalize(),
            value.dtype.name.rstrip("0123456789").capitalize(),
            "Number",
        )
    if isinstance(value, int):
        return ("Int", "Int64", "Number")
    if isinstance(value, float):
        return ("Float", "Float64", "Float32", "Number")
    if isinstance(value, str):
        return ("String",)
    if isinstance(value, tuple):
        return ("Tuple",)
    if isinstance(value, list):
        return ("List",)
    if isinstance(value, dict):
        return ("Dictionary", "Dict")
    if value is None:
        return ("None", "NoneType")
    if isinstance(value, _core.DType):
        return ("TypeType", "Type")
    return ("Function", "Func") if callable(value) else (type(value).__name__,)


class MultitypeFuncGraph:
    """A function with one body for each combination of argument types.

    name: for messages. Bodies are registered by the names of the types: Tensor, Number, Int, Int64, Float,
    Float32, Float64, Bool, String, Tuple, List, Dictionary, None, Function, Parameter:

        @add.register("Tensor", "Number")
        def _add(x, y): ...

    A call takes the body whose types fit most specially, argument by argument. read_value has no
    effect. Raises TypeError if none does.
    """

    def __init__(self, name: str, read_value: bool = False) -> None:
        self.name = name
        self.entries: dict[tuple[str, ...], Callable[..., Any]] = {}

    def register(self, *type_names: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Registers the function that it decorates for arguments of these types."""
        key = tuple(n if isinstance(n, str) else getattr(n, "__name__", str(n)) for n in type_names)

        def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.entries[key] = fn
            return fn

        return decorate

    def _score(
        self, key: tuple[str, ...], names: Sequence[tuple[str, ...]]
    ) -> tuple[int, ...] | None:
        """How specially the registered types fit, argument by argument: less is more specially."""
        if len(key) != len(names):
            return None
        places = []
        for wanted, has in zip(key, names, strict=True):
            if wanted == "Any":
                places.append(len(has))
            elif wanted in has:
                places.append(has.index(wanted))
            else:
                return None
        return tuple(places)

    def __call__(self, *args: Any) -> Any:
        names = [_type_names(a) for a in args]
        scored = [(s, key) for key in self.entries if (s := self._score(key, names)) is not None]
        if not scored:
            known = ", ".join(f"({', '.join(k)})" for k in self.entries)
            bad_type(
                f"The '{self.name}' operation does not support the type [{', '.join(n[0] for n in names)}]; "
                f"it is defined for {known or 'none'}"
            )
        return self.entries[min(scored)[1]](*args)

    def __repr__(self) -> str:
        return f"MultitypeFuncGraph<{self.name}>"


# Clipping -----------------------------------------------------------------------------------------


@one_plan
def clip_by_global_norm(x: Any, clip_norm: Any = 1.0, use_norm: Any = None) -> Any:
    """All tensors of a tuple or list, scaled together so that their joint 2-norm is at most
    clip_norm.

    x * clip_norm / max(norm, clip_norm), each in its own dtype; a tuple, or a tensor for a tensor.
    use_norm: taken for the norm. x: a tuple or list of tensors, or one tensor. Raises ValueError
    unless clip_norm is positive, TypeError for anything but tensors. Pascanu et al., "On the
    difficulty of training recurrent neural networks" (ICML 2013), algorithm 1.
    """
    if not isinstance(clip_norm, Tensor):
        arguments.number(clip_norm, "clip_by_global_norm", "clip_norm", above=0)
    xs = [x] if isinstance(x, Tensor) else arguments.tensors(x, "clip_by_global_norm", "x")
    if not xs:
        return ()
    total = (
        use_norm
        if use_norm is None
        else arguments.operand(use_norm, "clip_by_global_norm", "use_norm", arguments.single(xs[0]))
    )
    if total is None:
        squares = [_ops.reduce_sum(_ops.square(arguments.single(v))) for v in xs]
        total = _root(functools.reduce(_ops.add, squares))
    scale = _ops.div(clip_norm, _ops.maximum(total, clip_norm))
    out = tuple(_ops.cast(_ops.mul(arguments.single(v), scale), v.dtype) for v in xs)
    return out[0] if isinstance(x, Tensor) else out


def _root(x: Tensor) -> Tensor:
    """The square root, with derivative 0 at 0: what is clipped has none of a norm there."""
    positive = _ops.greater(x, 0)
    return _ops.where(positive, _ops.sqrt(_ops.where(positive, x, 1)), x)


def _length(x: Tensor, order: float) -> Tensor:
    """The norm of a vector, with derivative 0 at 0."""
    if order == 2:
        return _root(_ops.reduce_sum(_ops.square(x)))
    zero = (
        _ops.equal(_ops.reduce_max(_ops.abs(x)), 0) if x.size else _ops.full([], True, _core.bool)
    )
    return _ops.where(zero, 0, norm(_ops.where(zero, 1, x), order, 0))


@one_plan
def clip_by_norm(
    x: Any, max_norm: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Any:
    """The tensors of a tuple or list (or one tensor), scaled together so that their joint norm is
    at most max_norm: x * min(max_norm / (norm + 1e-6), 1).

    x: a tensor, or a tuple or list of them. error_if_nonfinite: whether a norm that is infinite or
    NaN is an error. Raises RuntimeError, with error_if_nonfinite, if the norm is infinite or NaN.
    """
    xs = [x] if isinstance(x, Tensor) else arguments.tensors(x, "clip_by_norm", "x")
    norms = [_length(_ops.reshape(arguments.single(v), [v.size]), norm_type) for v in xs]
    total = _length(_ops.concat([_ops.reshape(n, [1]) for n in norms], 0), norm_type)
    if error_if_nonfinite and not bool(_ops.isfinite(total)):
        fail(f"clip_by_norm: the norm of order {norm_type} is not finite")
    scale = _ops.minimum(_ops.div(max_norm, _ops.add(total, 1e-6)), 1.0)
    out = [_ops.cast(_ops.mul(arguments.single(v), scale), v.dtype) for v in xs]
    return out[0] if isinstance(x, Tensor) else tuple(out)
