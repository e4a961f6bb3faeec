"""Decorators that make a function an op: it runs as one plan, rounds half types once, is a method of Tensor.

    @method(one_plan)
    def mean(x, axis=None, keep_dims=False): ...

Outside a transform the plan is found without tracing from the second call with such arguments on: a form of
the op is kept for them, as jit keeps forms of a function.

Methods are said where the op is defined and attached when all of them are there. Keywords of reductions have
three spellings, NumPy's (axis, keepdims), PyTorch's (dim, keepdim) and MindSpore's keep_dims: all are taken,
by the ops too, whatever their parameters are called. Ops of modules that are imported later are in
`_index.py`, which is written from their decorators.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from types import FunctionType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from gradcell import _core
from gradcell._core import DType, Tensor, float32
from gradcell.base import bad_type, bad_value
from gradcell.base.spelling import Parameters, aliased, respelled
from gradcell.compilation.compiled import keep_form, traced

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")

# One plan -------------------------------------------------------------------------------------------

#: How many forms of an op are kept.
_MOST_FORMS = 64


def one_plan(function: Callable[P, R]) -> Callable[P, R]:
    """An op made of several others: called outside a transform, it runs as one plan.

    Where there is nothing to do it gives a copy, not its argument.
    """

    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        return _not_an_argument(function(*args, **kwargs), args, kwargs)  # type: ignore[no-any-return]

    def once(*args: P.args, **kwargs: P.kwargs) -> R:
        return _not_an_argument(traced(function, args, kwargs), args, kwargs)  # type: ignore[no-any-return]

    def again(*args: P.args, **kwargs: P.kwargs) -> R:
        return keep_form(forms, function, once, args, kwargs)  # type: ignore[no-any-return]

    forms = _core.Dispatcher(_MOST_FORMS, inside, once=once, again=again)

    @functools.wraps(function)
    def op(*args: P.args, **kwargs: P.kwargs) -> R:
        return forms(*args, **kwargs)  # type: ignore[no-any-return]

    return op


def _not_an_argument(out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = isinstance(out, Tensor) and any(out is a for a in (*args, *kwargs.values()))
    return _core.copy(out) if given else out


#: Integers that have no half type in common with halves.
_BEYOND_HALVES = (_core.uint16, _core.uint32, _core.uint64)


def in_float32(function: Callable[P, R]) -> Callable[P, R]:
    """An op made of several others that computes half types in float32 and rounds the result once.

    Without it every op inside would round.
    """

    @functools.wraps(function)
    def op(*args: P.args, **kwargs: P.kwargs) -> R:
        kinds = {
            a.dtype
            for a in (*args, *kwargs.values())
            if isinstance(a, Tensor) and (a.dtype.is_floating or a.dtype in _BEYOND_HALVES)
        }
        if len(kinds) != 1 or not next(iter(kinds)).is_narrow_float:
            return function(*args, **kwargs)  # no halves, or a wider type beside them
        wide, narrow = [_in(a, kinds, float32) for a in args], kinds.pop()
        named = {k: _in(a, (narrow,), float32) for k, a in kwargs.items()}
        return _in(function(*wide, **named), (float32,), narrow)  # type: ignore[no-any-return]

    return op


def wide_plan(function: Callable[P, R]) -> Callable[P, R]:
    """An op made of several others that runs as one plan, half types in float32."""
    return one_plan(in_float32(function))


def _in(value: Any, kinds: Collection[DType], target: DType) -> Any:
    """Tensors of these dtypes cast, in tuples too; anything else as it is."""
    if isinstance(value, tuple):
        return tuple(_in(v, kinds, target) for v in value)
    cast = isinstance(value, Tensor) and value.dtype in kinds
    return _core.ops.cast(value, target) if cast else value


# Methods of Tensor ----------------------------------------------------------------------------------


class Method(NamedTuple):
    """A method's function, and other spellings of its keywords: {another spelling: the function's}.
    The function is None for an op of the method's name (without the _ of one in place) that is
    imported when it is first called."""

    function: Callable[..., Any] | None
    spellings: dict[str, str]
    in_place: bool = False


#: The spellings of a reduction's keywords.
_KEPT = ("keepdims", "keepdim", "keep_dims")
_ALONG = ("axis", "dim")

#: The methods by their names.
METHODS: dict[str, Method] = {}


def method(*how: str | Callable[[Any], Any], **spellings: str) -> Callable[[F], F]:
    """A decorator: the function, of a tensor, is a method of Tensor too; under its own name or these. Both
    take the further spellings of keywords.

    Decorators in front of the names come first: `@method(one_plan, correction="ddof")`.
    """
    names = [n for n in how if isinstance(n, str)]

    def record(function: F) -> F:
        for decorate in (d for d in how if not isinstance(d, str)):
            function = decorate(function)
        every = {**_of_reductions(function), **spellings}
        for name in names or (function.__name__,):
            METHODS[name] = Method(function, every)
        return spelled(**spellings)(function) if every else function

    return record


def spelled(**spellings: str) -> Callable[[F], F]:
    """A decorator: the function's keywords may have further names, {another: the function's}, and those of
    a reduction."""
    return lambda function: respelled(
        function, f"ops.{function.__name__}", {**_of_reductions(function), **spellings}
    )


def _of_reductions(function: Any) -> dict[str, str]:
    """The further names of a reduction's keywords: {another: the function's}."""
    names = Parameters(function).names
    kept = [n for n in _KEPT if n in names]
    along = [n for n in _ALONG if n in names]
    if len(kept) != 1 or len(along) != 1:
        return {}
    return {n: kept[0] for n in _KEPT if n not in kept} | {
        n: along[0] for n in _ALONG if n not in along
    }


def in_place(*names: str, **spellings: str) -> Callable[[F], F]:
    """A decorator: registers the in-place variant, `name_` or these names, as a method of Tensor."""

    def record(function: F) -> F:
        for name in names or (f"{function.__name__}_",):
            METHODS[name] = Method(function, spellings, True)
        return function

    return record


def _taken_over(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """The end of an op in place: its result is the tensor's, in the tensor's dtype. Raises TypeError if that
    has no such numbers: fractions, imaginary parts, numbers besides 0 and 1."""

    def assigned(new: Tensor, self: Tensor) -> Tensor:
        if tuple(new.shape) != tuple(self.shape):
            bad_value(
                f"{name}: the result's shape {list(new.shape)} is not that of the tensor, {list(self.shape)}"
            )
        if new.dtype != self.dtype and _kind(new.dtype) > _kind(self.dtype):
            bad_type(
                f"{name}: the result is of {new.dtype}, which a tensor of {self.dtype} cannot hold; call "
                f"{name[:-1]}, or cast the tensor first"
            )
        return self.assign_value(new)

    return assigned


def _kind(dtype: DType) -> int:
    """0 of bool, 1 of integers, 2 of real floats, 3 of complex numbers."""
    if dtype.is_floating:
        return 3 if dtype.is_complex else 2
    return int(dtype != _core.bool)


def record_later(entries: str, in_place: bool = False) -> None:
    """The methods of `_index.py`: 'median|dim=axis|keepdim=keepdims'."""
    for entry in entries.split():
        name, *spellings = entry.split("|")
        renamed = dict(s.split("=") for s in spellings)
        # (A module that something has already imported has said so itself.)
        METHODS.setdefault(f"{name}_" if in_place else name, Method(None, renamed, in_place))


def _attached(name: str, method: Method, ops: Any) -> Any:
    """The method as Tensor has it: a spelling of its function."""
    function, spellings, changes = method
    op = name[:-1] if changes else name

    def callee() -> Any:
        return function or getattr(ops, op)

    made = aliased(
        f"Tensor.{name}",
        lambda: (callee(), callee()),
        spellings,
        _taken_over(name) if changes else None,
    )
    if function is not None:
        functools.update_wrapper(made, function, updated=())
    if changes or function is None:
        made.__name__ = made.__qualname__ = name
        made.__doc__ = (
            f"{op} in place. Returns the tensor." if changes else f"ops.{op} of this tensor."
        )
    made._spellings, made._callee = spellings, callee
    return made


#: What the core's methods are called with, by the number of operands.
_ROWS: dict[int, Any] = {1: lambda input: None, 2: lambda input, other: None}


def _both(core: Any, asked: Any) -> tuple[Any, Any]:
    return core, asked


def attach(ops: Any) -> None:
    """Gives Tensor the methods that have been recorded, and the core's the names of their ops."""
    for name, method in METHODS.items():
        setattr(Tensor, name, _attached(name, method, ops))
    for name, core in list(vars(Tensor).items()):
        if (
            name.startswith("_")
            or not callable(core)
            or isinstance(core, (staticmethod, _core.Spelling))
        ):
            continue
        function = core if isinstance(core, FunctionType) else getattr(ops, name)
        asked = function if function is core else _ROWS[len(Parameters(function).names)]
        made = aliased(f"Tensor.{name}", functools.partial(_both, core, asked), {})
        setattr(Tensor, name, functools.update_wrapper(made, function, updated=()))
