"""Classes of primitives, made of rows: a function, MindSpore's names of its inputs, attributes."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from gradcell.base import arguments, bad_type, bad_value, where
from gradcell.base.spelling import Parameters, text_of
from gradcell.ops.primitive import Primitive

REQUIRED = inspect.Parameter.empty


class Row(NamedTuple):
    """The description of a primitive: see row."""

    function: Callable[..., Any]
    inputs: str
    attributes: dict[str, Any]
    fixed: dict[str, Any]
    named: dict[str, str]
    ignored: str


def row(
    function: Callable[..., Any], inputs: str = "", /, *, fixed: dict[str, Any] | None = None,
    named: dict[str, str] | None = None, ignored: str = "", **attributes: Any,
) -> Row:  # fmt: skip
    """A primitive over a function of its inputs by position and its attributes by keyword.

    inputs: MindSpore's names of the inputs, in order, where the function has others. attributes: with their
    defaults, in the order of the constructor. named: of an attribute the function's parameter, where that
    has another name. fixed: arguments of the function that are always these. ignored: attributes that have
    no effect.
    """
    return Row(function, inputs, attributes, fixed or {}, named or {}, ignored)


class Axis(int):
    """The default of an attribute that is an axis or a tuple of axes."""


def _check(name: str, attribute: str, value: Any, default: Any) -> None:
    if isinstance(default, bool):
        arguments.boolean(value, name, attribute)
    elif isinstance(default, Axis) and isinstance(value, tuple):
        if not value:
            bad_value(f"For '{name}', the '{attribute}' must not be empty")
        arguments.integers(value, name, attribute)
    elif isinstance(default, int):
        arguments.integer(value, name, attribute)


def primitive(name: str, row: Row, integers: bool = False) -> type[Primitive]:
    """The class of an op.

    Attributes whose default is a bool are checked to be one; with `integers` likewise those of an int.
    """
    function, said, attributes, fixed, named, ignored = row
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(a, kind, default=d) for a, d in attributes.items()]
    signature = inspect.Signature(parameters)
    to = {a: named.get(a, a) for a in attributes if a not in ignored.split()}
    taken = {*to.values(), *fixed}
    own = list(itertools.takewhile(lambda n: n not in taken, Parameters(function).placed))
    inputs = dict(zip(said.split() or own, own, strict=False))
    most = len(inputs) if said else 1 << 30  # what the function has besides is no input
    as_they_are = not (fixed or named or ignored)

    def init(self: Primitive, *args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"ops.{name}{signature}: {error}{where()}") from None
        bound.apply_defaults()
        for attribute, value in bound.arguments.items():
            default = attributes[attribute]
            if integers or isinstance(default, bool):
                _check(name, attribute, value, default)
            if isinstance(value, Axis):
                bound.arguments[attribute] = int(value)
        Primitive.__init__(self, name, **bound.arguments)

    def call(self: Primitive, *args: Any, **kwargs: Any) -> Any:
        given = self.attributes
        if not as_they_are:
            given = {**fixed, **{other: given[n] for n, other in to.items()}}
        if kwargs:
            for keyword in kwargs:
                if keyword not in inputs:
                    all_ = ", ".join(inputs)
                    bad_type(f"ops.{name}: there is no input {keyword!r}; the inputs are {all_}")
            given = {**given, **{inputs[n]: value for n, value in kwargs.items()}}
        try:
            if len(args) > most:
                raise TypeError(f"ops.{name}: too many inputs")
            return function(*args, **given)
        except TypeError:
            _explain(call, name, args, kwargs)
            raise

    call.function, call.inputs, call.others, call.fixed = function, inputs, to, fixed  # type: ignore[attr-defined]
    text = text_of(function, {**inputs, **to}) if said or named else None
    members = {
        "__call__": call, "__doc__": text or inspect.getdoc(function), "__module__": "gradcell.ops",
        "__init__": init, "__signature__": signature,
    }  # fmt: skip
    return type(name, (Primitive,), members)


def signature_of(call: Any) -> inspect.Signature:
    """The inputs that a primitive's __call__ takes, by MindSpore's names, with their defaults."""
    own = inspect.signature(call.function).parameters
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    plain = [own[of].replace(name=name, kind=kind) for name, of in call.inputs.items()]
    more = [p for p in own.values() if p.kind is p.VAR_POSITIONAL]
    return inspect.Signature([*plain, *more])


def _explain(call: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises TypeError, with MindSpore's names and the user's line, if these are no inputs of the op."""
    try:
        signature_of(call).bind(*args, **kwargs)
    except TypeError as error:
        bad_type(f"ops.{name}({', '.join(call.inputs)}): {error}")
