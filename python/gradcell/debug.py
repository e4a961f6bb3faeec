"""Insight into what a program does unseen: why functions are traced again, where the first number that is
not finite comes from, where the time goes.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gradcell import _core
from gradcell.base import arguments, fail, publish
from gradcell.compilation import compiled
from gradcell.derivatives.overflow import Overflow as Overflow, locate_overflow as locate_overflow
from gradcell.profiler import profile as profile


@dataclass
class Trace:
    """One trace of a compiled function: a run of its Python code.

    function: its name. location: the user's file and line that called it. why: what was new. seconds: the
    time of the run, planning included. answers: those to what it asked of tensors, in order.
    """

    function: str
    location: str
    why: str
    seconds: float
    answers: list[bool] = field(default_factory=list)

    def __str__(self) -> str:
        answers = ", ".join("yes" if answer else "no" for answer in self.answers)
        place = os.path.basename(self.location)
        way = f" (answers: {answers})" if answers else ""
        return f"{1e3 * self.seconds:9.2f} ms  {self.function}  {place}: {self.why}{way}"


class Traces(list[Trace]):
    """The traces that `traces` has seen, in order; as text a table."""

    def __str__(self) -> str:
        total = 1e3 * sum(t.seconds for t in self)
        return "\n".join([f"{total:9.2f} ms  {len(self)} traces", *map(str, self)])


@contextlib.contextmanager
def traces(limit: int | None = None) -> Iterator[Traces]:
    """Note why functions are traced, of jit and in GRAPH_MODE of transforms and cells too: each trace takes
    the time of many calls.

    limit: the most traces of functions of one name, beyond which a call raises RuntimeError, with the reason
    for the last.

    with gc.debug.traces() as seen:
        train()
    print(seen)
    """
    if limit is not None:
        arguments.integer(limit, "traces", "limit", 0)
    found = Traces()
    last: dict[int, tuple[Any, Any]] = {}  # by cache: itself, which stays alive, and its last key

    def note(cache: Any, key: Any, begin: float, trace: _core.Trace | None, again: str) -> None:
        before = last.get(id(cache))
        why = again or ("the first call" if before is None else _difference(before[1], key))
        last[id(cache)] = (cache, key)
        answers = [answer for _, answer in trace.steps] if trace is not None else []
        seconds = time.perf_counter() - begin
        found.append(Trace(cache.name, _core.user_location(), why, seconds, answers))
        if limit is not None and sum(t.function == cache.name for t in found) > limit:
            fail(
                f"debug.traces: {cache.name} has been traced more than {limit} times; the last time: {why}"
            )

    compiled.watchers.append(note)
    try:
        yield found
    finally:
        compiled.watchers.remove(note)


_STRUCTURE = (
    "the structure of a cell, or elements of a tensor that a function reads, have changed",
    "an attribute of a cell, or what is trained, has changed",
    "an attribute of a cell, or what is trained, has changed",
    "a setting has changed, as set_context changes them",
)


def _difference(was: Any, now: Any) -> str:
    """Return what is other in the keys of two calls."""
    for before, after, text in zip(was[0], now[0], _STRUCTURE, strict=True):
        if before != after:
            return text
    if was == now:
        return "an answer that has not come before"
    for name, before, after in (("argument", was[1], now[1]), ("keyword", was[2], now[2])):
        if before != after:
            return _other(name, before, after)
    raise AssertionError("keys have three parts")


def _other(name: str, was: Any, now: Any) -> str:
    """Return the first difference between two signatures of containers."""
    if was is None or now is None or len(was) != len(now):
        return f"another number of {name}s"
    for k, (before, after) in enumerate(itertools.islice(zip(was, now, strict=True), 1, None)):
        if before != after:
            return f"{name} {k}: {_text(after)}, before {_text(before)}"
    return f"another type of {name}s"


def _text(signature: Any) -> str:
    """Return the signature of a value in words."""
    match signature:
        case ("variable", _):
            return "a Parameter"
        case (str() as dtype, tuple() as shape):
            return f"{dtype}{list(shape)}"
        case (str(), str() as value):
            return value
        case ("object", *_):
            return "an object"
        case _:
            return "a container"


publish(globals(), "Overflow", "locate_overflow", "profile")
