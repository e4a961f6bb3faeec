"""Spellings: a function under another name, with other names, order and defaults of its parameters.

    @spelling(ops.std, correction="ddof")
    def std(input: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Tensor: ...

A definition without a body says how the function is called; a call goes to the target, without a frame of
Python. A parameter is the target's of the same name; the others are the target's remaining ones, in order,
but for those of which the decorator says what they are: the name of the target's parameter, or what turns
the argument into the target's. The docstring is the target's, in the names of the definition.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

from gradcell import _core
from gradcell.base import arguments
from gradcell.base.errors import bad_type

F = TypeVar("F", bound=Callable[..., Any])
_MISSING = object()


class Parameters:
    """The parameters of a Python function, as its code has them: what inspect says too, but quickly."""

    def __init__(self, function: Any) -> None:
        while hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        code = function.__code__
        count = code.co_argcount
        self.placed: tuple[str, ...] = code.co_varnames[:count]
        self.names: tuple[str, ...] = code.co_varnames[: count + code.co_kwonlyargcount]
        defaults = function.__defaults__ or ()
        self.defaults: dict[str, Any] = dict(
            zip(self.placed[count - len(defaults) :], defaults, strict=True)
        )
        self.defaults.update(function.__kwdefaults__ or {})


def _pairs(
    own: Parameters, target: Parameters, said: dict[str, str], besides: set[str], fixed: set[str]
) -> dict[str, str]:
    """{a parameter: the target's}."""
    found = dict(said)
    found.update({n: n for n in own.names if n in target.names and n not in {*said, *besides}})
    left = [n for n in own.names if n not in {*found, *besides}]
    free = [n for n in target.names if n not in {*found.values(), *fixed}]
    if len(left) > len(free):
        raise ValueError(f"no parameters of the target for {left[len(free) :]}")
    return {**found, **dict(zip(left, free, strict=False))}


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and bool(a == b))


def _of_both(target: Callable[..., Any], together: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(target)
    def callee(first: Any, second: Any, *others: Any, **named: Any) -> Any:
        first, second = together(first, second)
        if not others and not named:
            return target(first, second)  # (sooner than with nothing to unpack)
        return target(first, second, *others, **named)

    return callee


def spelling(
    target: Callable[..., Any],
    /,
    *,
    ignored: str = "",
    fixed: dict[str, Any] | None = None,
    then: Callable[..., Any] | None = None,
    together: Callable[..., Any] | None = None,
    **said: str | Callable[[Any], Any],
) -> Callable[[F], F]:
    """A decorator: the function that is defined is the target, under its own names.

    ignored: parameters that have no effect. fixed: arguments of the target that are always these. then: a
    function of the result, and of what is given for the parameter that is called as its second one.
    together: a function of the target's first two arguments that gives what it gets in their place. said: of
    a parameter the target's name, or what turns its argument into the target's.
    """
    callee = target if together is None else _of_both(target, together)

    def define(function: F) -> F:
        own, theirs, always = Parameters(function), Parameters(target), fixed or {}
        turned = {n: made for n, made in said.items() if callable(made)}
        renamed = {n: to for n, to in said.items() if isinstance(to, str)}
        last = "" if then is None else "".join(Parameters(then).names[1:2])
        besides = {*ignored.split()} | ({last} & {*own.names})
        to = _pairs(own, theirs, renamed, besides, {*always})
        differing = {
            to[n]: value
            for n, value in own.defaults.items()
            if n in to and not _same(theirs.defaults.get(to[n], _MISSING), value)
        }

        def planned(count: int, names: tuple[str, ...]) -> tuple[Any, ...]:
            refuse_misfit(label_of(function), function, count, names)
            given = {n: i for i, n in enumerate((*own.placed[:count], *names))}
            sources: dict[str, Any] = {n: (v,) for n, v in {**differing, **always}.items()}
            sources.update({to[n]: i for n, i in given.items() if n in to})
            by_place = []
            for name in theirs.placed:
                if name not in sources:
                    break
                by_place.append(sources.pop(name))
            turns = tuple((i, turned[n]) for n, i in given.items() if n in turned)
            second = [given.get(last, (own.defaults.get(last),))] if last in besides else []
            end = () if then is None else (then, *second)
            values = (*by_place, *sources.values())
            return callee, values, len(by_place), tuple(sources), turns, end

        call: Any = functools.update_wrapper(_core.Spelling(planned), function)
        call._target, call._planned = target, planned
        if not function.__doc__:
            call.__doc__ = text_of(target, to, theirs)
        return cast(F, call)

    return define


def named(function: F, name: str) -> F:
    """A function that a table makes, under its own name, by which errors call it."""
    function.__name__ = function.__qualname__ = name
    return spelling(function)(function)


def refuse_misfit(
    label: str, function: Any, count: int, names: tuple[str, ...], skip: int = 0
) -> None:
    """Raises TypeError, with what the function is called as and the user's line, if arguments of this
    number by place and of these names are no call of it. skip: of its parameters are not shown."""
    arguments.explain_misfit(label, function, (None,) * count, dict.fromkeys(names), skip)


def own_names(label: str, spellings: dict[str, str], names: tuple[str, ...]) -> tuple[str, ...]:
    """Keywords by the function's own names. Raises TypeError for an argument under two names."""
    own = tuple(spellings.get(n, n) for n in names)
    if len({*own}) < len(own):
        bad_type(f"{label}: an argument is given under two names: {', '.join(names)}")
    return own


def aliased(
    label: str,
    found: Callable[[], tuple[Any, Any]],
    spellings: dict[str, str],
    then: Callable[[Any, Any], Any] | None = None,
    skip: int = 1,
) -> Any:
    """A method whose keywords may have further names, {another: the function's}. found: gives what is
    called and the function that has its parameters, when it is first called. then: a function of the
    result and of the tensor itself. skip: of the parameters are not shown."""

    def planned(count: int, names: tuple[str, ...]) -> tuple[Any, ...]:
        target, function = found()
        own = own_names(label, spellings, names)
        refuse_misfit(label, function, count, own, skip)
        values = tuple(range(count + len(own)))
        return target, values, count, own, (), () if then is None else (then, 0)

    made: Any = _core.Spelling(planned)
    made._planned = planned
    return made


def respelled(function: F, label: str, spellings: dict[str, str]) -> F:
    """The function, whose keywords may have further names, {another: the function's}."""
    made = aliased(label, lambda: (function, function), spellings, skip=0)
    planned = made._planned
    call: Any = functools.update_wrapper(made, function)
    call._target, call._planned = function, planned
    return cast(F, call)


def label_of(function: Callable[..., Any]) -> str:
    """The public name: of gradcell.mint.functions.std mint.std, of one in gradcell.ops.arrays ops.cat."""
    module = function.__module__.removeprefix("gradcell.")
    if module.startswith("ops."):
        return f"ops.{function.__name__}"
    module = re.sub(
        r"\.(functions|elementwise|shaping|mathematics|making|conversion|order|polynomials|reductions|writing)$",
        "",
        module,
    )
    return f"{module}.{function.__name__}"


#: What begins the description of arguments, "axis, keepdims: ...", or a part behind it.
_PART = re.compile(r"(?:^|(?<=[.;:\s]))(?:(\w+(?:, \w+)*): |Returns |Raises )", re.M)


def text_of(target: Any, to: dict[str, str], theirs: Parameters | None = None) -> str | None:
    """The target's docstring with its parameters renamed, without what is said of those that are not
    there."""
    text = inspect.getdoc(target)
    if not text:
        return text
    names = (theirs or Parameters(target)).names
    back = {other: own for own, other in to.items()}
    starts = [m for m in _PART.finditer(text) if not m[1] or {*m[1].split(", ")} <= {*names}]
    ends = [m.start() for m in starts[1:]] + [len(text)]
    parts = [text[: starts[0].start()] if starts else text]
    for match, end in zip(starts, ends, strict=False):
        described = match[1].split(", ") if match[1] else []
        kept = [n for n in described if n in back]
        if kept or not described:
            about = f"{', '.join(kept)}: " if described else match[0]
            parts.append(about + text[match.end() : end])
    paragraphs = "".join(parts).rstrip().split("\n\n")
    paragraphs[1:] = [
        p
        for p in paragraphs[1:]
        if p and re.split(r"\W", p, maxsplit=1)[0] not in {*names} - {*back}
    ]
    words = {n: own for n, own in back.items() if n != own}
    if words:
        pattern = re.compile(rf"(?<!\b(?:an|ea|ew) )\b({'|'.join(words)})\b")
        paragraphs = [pattern.sub(lambda m: words[m[1]], p) for p in paragraphs]
    return "\n\n".join(paragraphs)
