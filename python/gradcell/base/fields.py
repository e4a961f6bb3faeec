"""Declared fields: a class says each argument of its constructor in one line, as a dataclass does.

    @fields.declared
    class LeakyReLU(Cell):
        alpha: float = fields.number(default=0.2)

The constructor takes the fields by position, in the order of their lines (those of declared base
classes come first), or by name. It runs the `__init__` of the base class that is not declared, with the
arguments that are `of_base`, checks each field in the words of base/arguments and keeps it as an
attribute; then `_build` runs, where the class has it, and makes parameters and cells. A field of type
InitVar is no attribute: it is handed to `_build`, if that has a parameter of its name or one for all
others. A field whose default is None may be None. Type checkers and editors know the constructor by
`dataclass_transform`.

Subclasses that are not declared inherit the constructor, and may have one of their own that calls it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

from gradcell.base import arguments
from gradcell.base.errors import bad_type
from gradcell.base.signposts import wrong_argument

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform as dataclass_transform
else:

    def dataclass_transform(**_):
        """Mark a decorator for type checkers; at run time this changes nothing."""
        return lambda decorator: decorator


T = TypeVar("T")
#: What turns an argument into what is kept: check(value, the class's name, the argument's name).
Check = Callable[[Any, str, str], Any]

#: The default of an argument that has none.
NEEDED = inspect.Parameter.empty


class Field:
    """The declaration of one argument."""

    __slots__ = (
        "alias", "base", "check", "default", "fixed", "kept", "kw_only", "optional", "shown", "type",
    )  # fmt: skip

    def __init__(
        self,
        check: Check | None,
        *,
        default: Any = NEEDED,
        alias: str = "",
        kw_only: bool = False,
        shown: bool = False,
    ) -> None:
        self.check: Check | None = check
        self.default: Any = default
        self.alias: str = alias
        self.kw_only: bool = kw_only
        self.shown: bool = shown
        self.optional: bool = default is None
        self.kept: bool = True
        self.type: str = ""
        self.base: str | None = None
        self.fixed: bool = False


# The lines ------------------------------------------------------------------------------------------
#
# Options of each: default=, where the argument may be left out; alias=, its name for who gives it, if the
# attribute has another; kw_only=True, if it is given by name only; shown=True, if print shows it.


def anything(**options: Any) -> Any:
    """An argument that is kept as it is given."""
    return Field(None, **options)


def checked(check: Check, **options: Any) -> Any:
    """An argument that a function of (value, the class's name, the argument's name) checks."""
    return Field(check, **options)


def boolean(**options: Any) -> Any:
    """A flag."""
    return Field(arguments.boolean, **options)


def integer(least: int | None = None, **options: Any) -> Any:
    """An integer, of at least `least`."""
    return Field(lambda v, owner, name: arguments.integer(v, owner, name, least), **options)


def number(
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    **options: Any,
) -> Any:
    """A number, within bounds as arguments.number takes them."""
    bounds: dict[str, Any] = {"above": above, "least": least, "below": below, "most": most}
    return Field(lambda v, owner, name: arguments.number(v, owner, name, **bounds), **options)


def one_of(*allowed: Any, **options: Any) -> Any:
    """One of some values."""
    return Field(lambda v, owner, name: arguments.one_of(v, allowed, owner, name), **options)


def tensor(**options: Any) -> Any:
    """A tensor."""
    return Field(arguments.tensor, **options)


def floating_dtype(**options: Any) -> Any:
    """A floating dtype; the default one for None."""
    field = Field(arguments.floating_dtype, **options)
    field.optional = False
    return field


def of_base(name: str = "", **options: Any) -> Any:
    """An argument of the `__init__` of the base class that is not declared; its name there, if another.
    `_build` gets it too, if it has a parameter of its name."""
    field = Field(None, **options)
    field.base, field.kept = name, False
    return field


def fixed(value: Any, *, of_base: str | None = None, init: Literal[False] = False) -> Any:
    """Declare a value that is no argument of the class: of a field of the base class, or of an
    argument of its `__init__`, by its name there, if the base class is not declared."""
    field = Field(None, default=value)
    field.base, field.fixed = of_base, True
    return field


# The classes ----------------------------------------------------------------------------------------


@dataclass_transform(
    eq_default=False,
    field_specifiers=(
        anything, checked, boolean, integer, number, one_of, tensor, floating_dtype, of_base, fixed,
    ),
)  # fmt: skip
def declared(cls: type[T]) -> type[T]:
    """A decorator: gives a class the constructor that its fields describe."""
    made: Any = cls
    every: dict[str, Field] = {}
    for base in reversed(cls.__mro__[1:]):
        every |= vars(base).get("_declared_fields", {})
    every |= _own_fields(cls)
    made._declared_fields = every
    made.__init__ = _constructor(cls, {f.alias or name: (name, f) for name, f in every.items()})
    shown = [name for name, f in every.items() if f.shown]
    if shown and "extend_repr" not in vars(cls):
        made.extend_repr = _printer(shown)
    return cls


@dataclass_transform(
    eq_default=False,
    field_specifiers=(
        anything, checked, boolean, integer, number, one_of, tensor, floating_dtype, of_base, fixed,
    ),
)  # fmt: skip
class Declares:
    """A base of classes that are declared without the decorator, if they or several bases have fields."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        joined = sum(hasattr(base, "_declared_fields") for base in cls.__bases__) > 1
        if joined or any(isinstance(value, Field) for value in vars(cls).values()):
            declared(cls)


def _own_fields(cls: type) -> dict[str, Field]:
    """The fields of the class's own lines, which are no attributes of the class."""
    found = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
    types = cls.__annotations__
    for name, text in types.items():
        if name not in found and not str(text).startswith("ClassVar"):
            raise TypeError(f"{cls.__name__}.{name} is no field: its type has to be a ClassVar")
    for name, field in found.items():
        delattr(cls, name)
        text = str(types.get(name, "Any"))
        handed = text.startswith("InitVar[")
        field.kept = not handed and field.base is None
        field.type = text[len("InitVar[") : -1] if handed else text
    return found


def _constructor(cls: type, by_name: dict[str, tuple[str, Field]]) -> Any:
    """The `__init__` of a class with these fields, {the argument's name: (the attribute's, field)}.

    Its globals are those of the class's module: errors name the class, and its types can be resolved.
    """
    needed, missing, misfit = NEEDED, _missing, _misfit
    every = list(by_name.items())
    by_name = {name: (attribute, f) for name, (attribute, f) in every if not f.fixed}
    inherited = (vars(c)["__init__"] for c in cls.__mro__[1:] if "__init__" in vars(c))
    begin: Any = next(init for init in inherited if not hasattr(init, "declares"))
    build: Any = getattr(cls, "_build", None)
    takes = _taken(build, every)
    label = None if cls.__name__.startswith("_") else cls.__name__
    rows = [
        (name, attribute, f.default, f.check, f.optional, f.kept)
        for name, (attribute, f) in every
        if f.base is None
    ]
    of_base = [(name, f.base or name, f.default) for name, (_, f) in every if f.base is not None]
    places = [name for name, (_, field) in by_name.items() if not field.kw_only]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        owner = label or type(self).__name__
        given = dict(zip(places, args, strict=False))
        if (
            len(args) > len(places)
            or kwargs.keys() & given.keys()
            or kwargs.keys() - by_name.keys()
        ):
            misfit(owner, by_name, places, args, kwargs)
        given.update(kwargs)
        passed, first = {}, {}
        for name, base, default in of_base:
            first[base] = given.get(name, default)
            if first[base] is needed:
                missing(owner, by_name, given)
            if name in takes:
                passed[name] = first[base]
        begin(self, **first)
        for name, attribute, default, check, optional, kept in rows:
            value = given.get(name, default)
            if value is needed:
                missing(owner, by_name, given)
            if check is not None and not (optional and value is None):
                value = check(value, owner, name)
            if kept:
                setattr(self, attribute, value)
            elif name in takes:
                passed[name] = value
        if build is not None:
            build(self, **passed)

    module = vars(sys.modules[cls.__module__])
    made: Any = FunctionType(__init__.__code__, module, "__init__", None, __init__.__closure__)
    made.declares = True
    made.__module__, made.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    made.__signature__ = _signature(by_name)
    made.__annotations__ = {n: f.type for n, (_, f) in by_name.items()} | {"return": "None"}
    return made


def _taken(build: Any, fields: list[tuple[str, tuple[str, Field]]]) -> set[str]:
    """The arguments that `_build` is handed."""
    if build is None:
        return set()
    code = build.__code__
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return {name for name, (_, f) in fields if not f.kept and f.base is None}
    return set(code.co_varnames[: code.co_argcount])


def _signature(by_name: dict[str, tuple[str, Field]]) -> inspect.Signature:
    plain, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    own = [
        inspect.Parameter(
            name, keyword if f.kw_only else plain, default=f.default, annotation=f.type
        )
        for name, (_, f) in by_name.items()
    ]
    own.sort(key=lambda p: p.kind)
    return inspect.Signature([inspect.Parameter("self", plain), *own], return_annotation="None")


def _misfit(
    owner: str, names: Any, places: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> NoReturn:
    """Raises the TypeError of a call that the fields do not fit."""
    for name in kwargs:
        if name not in names:
            raise wrong_argument(owner, name, names)
        if name in places[: len(args)]:
            bad_type(f"{owner}() got multiple values for argument {name!r}")
    takes = f"{len(places)} positional argument{'s' * (len(places) != 1)}"
    bad_type(f"{owner}() takes at most {takes} ({', '.join(places)}), but {len(args)} were given")


def _missing(owner: str, by_name: dict[str, tuple[str, Field]], given: dict[str, Any]) -> NoReturn:
    """Raises the TypeError of a call without an argument that has no default."""
    left = [n for n, (_, f) in by_name.items() if f.default is NEEDED and n not in given]
    bad_type(
        f"{owner}() missing {len(left)} required argument{'s' * (len(left) > 1)}: "
        f"{', '.join(map(repr, left))}"
    )


def _printer(shown: list[str]) -> Callable[[Any], str]:
    def extend_repr(self: Any) -> str:
        """Return the text between the parentheses of the cell's repr."""
        return ", ".join(f"{name}={getattr(self, name)}" for name in shown)

    return extend_repr
