"""MindSpore's checks of arguments, as programs call them: each returns the value or raises.

rel: a relation, EQ to NOT_IN, or for ranges INC_NEITHER to INC_BOTH, which ends belong to it.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
from collections.abc import Callable
from typing import Any

from gradcell import dtype
from gradcell.base import bad_type, bad_value, where

EQ, NE, LT, LE, GT, GE = 1, 2, 3, 4, 5, 6
INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH = 7, 8, 9, 10
IN, NOT_IN = 11, 12

#: Dtypes by the names that checkpoints have for them.
DTYPES = {
    name: getattr(dtype, name.lower() if name != "Bool" else "bool_")
    for name in """
        Bool Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 Float16 Float32 Float64 BFloat16
    """.split()
}

_RELATIONS: dict[int, tuple[str, Callable[[Any, Any], bool]]] = {
    EQ: ("==", operator.eq), NE: ("!=", operator.ne), LT: ("<", operator.lt),
    LE: ("<=", operator.le), GT: (">", operator.gt), GE: (">=", operator.ge),
}  # fmt: skip


def _say(prim_name: Any, arg_name: Any) -> str:
    of = f"For '{prim_name}', the" if prim_name else "The"
    return f"{of} '{arg_name or 'argument'}'"


def _number(value: Any, kinds: tuple[type, ...], arg_name: Any, prim_name: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, kinds):
        bad_type(
            f"{_say(prim_name, arg_name)} must be {kinds[-1].__name__}, but got '{value}' with type "
            f"'{type(value).__name__}'."
        )
    if isinstance(value, float) and not math.isfinite(value):
        bad_value(f"{_say(prim_name, arg_name)} must be finite, but got {value}.")
    return value


def _related(value: Any, limit: Any, rel: int, arg_name: Any, prim_name: Any) -> Any:
    word, holds = _RELATIONS[rel]
    if not holds(value, limit):
        bad_value(f"{_say(prim_name, arg_name)} must be {word} {limit}, but got '{value}'.")
    return value


def check_is_number(
    arg_value: Any, arg_type: Any, arg_name: Any = None, prim_name: Any = None
) -> Any:
    """A number of a type."""
    return _number(arg_value, (arg_type,), arg_name, prim_name)


def _to_zero(rel: int | None, text: str, *kinds: type) -> Callable[..., Any]:
    """A check of numbers of some kinds, in a relation to 0 if one is given."""

    def check(arg_value: Any, arg_name: Any = None, prim_name: Any = None) -> Any:
        _number(arg_value, kinds, arg_name, prim_name)
        return arg_value if rel is None else _related(arg_value, 0, rel, arg_name, prim_name)

    check.__doc__ = text
    return check


def _to_value(text: str, *kinds: type) -> Callable[..., Any]:
    """A check of numbers of some kinds, in a relation to another."""

    def check(
        arg_value: Any, value: Any, rel: int, arg_name: Any = None, prim_name: Any = None
    ) -> Any:
        _number(arg_value, kinds, arg_name, prim_name)
        return _related(arg_value, value, rel, arg_name, prim_name)

    check.__doc__ = text
    return check


def _to_ends(text: str, *kinds: type) -> Callable[..., Any]:
    """A check of numbers of some kinds, within limits."""

    def check(
        arg_value: Any, lower_limit: Any, upper_limit: Any, rel: int, arg_name: Any = None,
        prim_name: Any = None,
    ) -> Any:  # fmt: skip
        _number(arg_value, kinds, arg_name, prim_name)
        left, right = rel in (INC_LEFT, INC_BOTH), rel in (INC_RIGHT, INC_BOTH)
        above = operator.ge if left else operator.gt
        below = operator.le if right else operator.lt
        if not (above(arg_value, lower_limit) and below(arg_value, upper_limit)):
            ends = f"{'(['[left]}{lower_limit}, {upper_limit}{')]'[right]}"
            owner = _say(prim_name, arg_name)
            bad_value(f"{owner} must be in range of {ends}, but got {arg_value}.")
        return arg_value

    check.__doc__ = text
    return check


check_is_int: Callable[..., Any] = _to_zero(None, "An integer.", int)
check_is_float: Callable[..., Any] = _to_zero(None, "A float.", float)
check_positive_int: Callable[..., Any] = _to_zero(GT, "An integer above 0.", int)
check_negative_int: Callable[..., Any] = _to_zero(LT, "An integer below 0.", int)
check_non_positive_int: Callable[..., Any] = _to_zero(LE, "An integer not above 0.", int)
check_non_negative_int: Callable[..., Any] = _to_zero(GE, "An integer not below 0.", int)
check_positive_float: Callable[..., Any] = _to_zero(GT, "A float above 0.", float)
check_negative_float: Callable[..., Any] = _to_zero(LT, "A float below 0.", float)
check_non_positive_float: Callable[..., Any] = _to_zero(LE, "A float not above 0.", float)
check_non_negative_float: Callable[..., Any] = _to_zero(GE, "A float not below 0.", float)
check_int: Callable[..., Any] = _to_value("An integer in relation rel to value.", int)
check_float: Callable[..., Any] = _to_value("A float in relation rel to value.", float)
check_int_range: Callable[..., Any] = _to_ends("An integer within limits.", int)
check_float_range: Callable[..., Any] = _to_ends("A number within limits.", int, float)
check_number_range: Callable[..., Any] = check_float_range


def check_bool(arg_value: Any, arg_name: Any = None, prim_name: Any = None) -> bool:
    """A bool."""
    if not isinstance(arg_value, bool):
        bad_type(f"{_say(prim_name, arg_name)} must be a bool, but got {type(arg_value).__name__}.")
    return arg_value


def check_string(
    arg_value: Any, valid_values: Any, arg_name: Any = None, prim_name: Any = None
) -> str:
    """One of some words."""
    if not isinstance(arg_value, str) or arg_value not in valid_values:
        bad_value(
            f"{_say(prim_name, arg_name)} must be str and must be in '{valid_values}', but got '{arg_value}'."
        )
    return arg_value


def check_value_type(arg_name: Any, arg_value: Any, valid_types: Any, prim_name: Any = None) -> Any:
    """A value of one of some types; a bool counts as int only where bool is one of them."""
    types = tuple(valid_types) if isinstance(valid_types, (list, tuple)) else (valid_types,)
    if not isinstance(arg_value, types) or (isinstance(arg_value, bool) and bool not in types):
        names = ", ".join(t.__name__ for t in types)
        bad_type(
            f"{_say(prim_name, arg_name)} must be one of '{names}', but got '{type(arg_value).__name__}'."
        )
    return arg_value


def check_isinstance(arg_name: Any, arg_value: Any, classes: Any) -> Any:
    """A value of one of some classes. Raises ValueError for others."""
    if not isinstance(arg_value, classes):
        bad_value(
            f"The parameter '{arg_name}' must be isinstance of {classes}, but got {type(arg_value).__name__}."
        )
    return arg_value


def check(
    arg_name: Any, arg_value: Any, value_name: Any, value: Any, rel: int = EQ, prim_name: Any = None,
    excp_cls: type[Exception] = ValueError,
) -> Any:  # fmt: skip
    """A value in relation rel to another."""
    if rel in (IN, NOT_IN):
        holds, word = (arg_value in value) == (rel == IN), "in" if rel == IN else "not in"
    else:
        word, relation = _RELATIONS[rel]
        holds = relation(arg_value, value)
    if not holds:
        raise excp_cls(
            f"{_say(prim_name, arg_name)} must be {word} {value_name}: {value}, but got {arg_value}."
            f"{where()}"
        )
    return arg_value


def check_file_name_by_regular(target: Any, reg: Any = None, prim_name: Any = None) -> str:
    """The name of a file, of characters that file systems take."""
    if not isinstance(target, str) or not re.fullmatch(reg or r"[0-9a-zA-Z@\-_.:/\\ ]+", target):
        bad_value(f"{_say(prim_name, 'file name')} is not valid: {target!r}.")
    return target


def check_input_3d(input_shape: Any, op_name: Any) -> None:
    """Raises ValueError unless the shape has three dimensions."""
    if len(input_shape) != 3:
        bad_value(f"For '{op_name}', the dimension of input must be 3d, got {len(input_shape)}.")


def check_random_transform_ops(method: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of a transform's constructor, which is given a list of functions first.

    It raises TypeError for what is no list of functions, ValueError for an empty one.
    """

    @functools.wraps(method)
    def checked(self: Any, transforms: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(transforms, list) or not all(map(callable, transforms)):
            bad_type(f"The transforms must be a list of functions, but got {transforms!r}.")
        if not transforms:
            bad_value("The list of transforms must not be empty.")
        return method(self, transforms, *args, **kwargs)

    return checked


def args_type_check(*types: Any, **types_by_name: Any) -> Callable[[Any], Any]:
    """A decorator that checks the types of a function's arguments, by place or by name; None is of any.

    The function raises TypeError for another type.
    """

    def check(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        bound = signature.bind_partial(*types, **types_by_name).arguments
        expected = {**bound, **bound.get("kwargs", {})}

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs).arguments
            for name, value in {**given, **given.get("kwargs", {})}.items():
                kind = expected.get(name)
                if isinstance(kind, (type, tuple)) and not isinstance(value, (type(None), kind)):
                    bad_type(f"The parameter '{name}' must be {kind}, but got {type(value)}")
            return function(*args, **kwargs)

        return checked

    return check
