"""Tracebacks of the user's lines alone.

Python puts a frame into an error's traceback wherever the error passes, and only a wrapper around each
function could take it out again, at a cost for each call. So frames are left out where an error is shown: by
the standard library's formatter (print_exc, logging, unittest), at the end of a program or thread, in IPython
and in pytest. The entries that stay are linked anew, so that debuggers stop at the user's line too.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from gradcell import _core

#: Whether all frames are shown: set_context(full_tracebacks=True).
full: bool = os.environ.get("GRADCELL_FULL_TRACEBACKS", "0") not in ("", "0")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_COMMAND_LINE = os.path.join(_PACKAGE, "__main__.py")
_LIBRARY = os.path.join(os.path.dirname(os.__file__), "")
_NUMPY = os.path.join(os.path.dirname(np.__file__), "")
_folders: list[str] = []


def leave_out(folder: str) -> None:
    """Takes what runs from this folder for none of the user's code, in tracebacks and where messages name a
    line."""
    _folders.append(os.path.join(folder, ""))
    _core.add_package_directory(_folders[-1])


def _helps(file: str) -> bool:
    """Return whether it is a file of what gradcell itself is made with: Python's library, or NumPy."""
    installed = "site-packages" in file or "dist-packages" in file
    return file.startswith((_NUMPY, "<frozen ")) or (file.startswith(_LIBRARY) and not installed)


def _of_the_user(entries: list[TracebackType]) -> list[TracebackType]:
    """The entries without those of gradcell's files, of the helpers that they call, and of what starts the
    command line."""
    kept: list[TracebackType] = []
    inside = False
    for entry in entries:
        file = entry.tb_frame.f_code.co_filename
        if file == _COMMAND_LINE:
            kept.clear()
        inside = file.startswith(tuple(_folders)) or (inside and _helps(file))
        if not inside:
            kept.append(entry)
    return kept


class _Entries(list[TracebackType]):
    """All entries of an error's traceback; none in a copy of the error, or where it is pickled."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return list, ()


def shown(error: BaseException | None, trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback of an error as it is shown from now on. All its entries are remembered, for when
    all are asked for."""
    if error is None or (trace is None and error.__traceback__ is not None):
        return trace  # none is wanted
    entries: list[TracebackType] = []
    entry: TracebackType | None = trace
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    before: list[TracebackType] = error.__dict__.get("_traceback_entries", [])
    known = set(map(id, before))
    every = [*itertools.takewhile(lambda e: id(e) not in known, entries), *before]
    kept = every if full else _of_the_user(entries)
    if len(kept) < len(every):
        error.__dict__["_traceback_entries"] = _Entries(every)
    first: TracebackType | None = None
    for entry in reversed(kept):
        if entry.tb_next is not first:
            entry.tb_next = first
        first = entry
    if error.__traceback__ is trace:
        error.__traceback__ = first
    return first


def _shorten(error: BaseException | None) -> None:
    """Brings an error, and those behind it, into the form in which they are shown."""
    seen: set[int] = set()
    behind = [error]
    while behind:
        one = behind.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        shown(one, one.__traceback__)
        behind += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


def _before(
    show: Callable[..., Any], error_of: Callable[..., BaseException | None]
) -> Callable[..., Any]:
    """Return `show`, but with the error in its short form; error_of finds it among the arguments."""

    @functools.wraps(show)
    def call(*args: Any, **kwargs: Any) -> Any:
        _shorten(error_of(*args, **kwargs))
        return show(*args, **kwargs)

    return call


def _in_cell(given: Any = None, *_: Any, **__: Any) -> BaseException | None:
    return given[1] if given else sys.exc_info()[1] or getattr(sys, "last_value", None)


def install() -> None:
    """From now on tracebacks are short, wherever they are shown."""
    leave_out(_PACKAGE)
    formatter: Any = traceback.TracebackException
    make, end = formatter.__init__, sys.excepthook

    @functools.wraps(make)
    def __init__(
        self: Any, exc_type: Any, exc_value: Any, exc_traceback: Any, *args: Any, **kwargs: Any
    ) -> None:
        trace = shown(exc_value, exc_traceback)
        if (
            kwargs.get("_seen") is None
        ):  # not one of those behind another, which that one is made with
            _shorten(exc_value)
        make(self, exc_type, exc_value, trace, *args, **kwargs)

    @functools.wraps(end)
    def excepthook(kind: Any, error: Any, trace: Any) -> None:
        _shorten(error)
        end(kind, error, shown(error, trace))

    formatter.__init__ = __init__
    sys.excepthook = excepthook
    threading.excepthook = _before(threading.excepthook, lambda args: args.exc_value)
    if (pytest := sys.modules.get("pytest")) is not None:
        info = pytest.ExceptionInfo
        info.getrepr = _before(info.getrepr, lambda self, *_, **__: self.value)
    if (ipython := sys.modules.get("IPython")) is not None and (shell := ipython.get_ipython()):
        shell.showtraceback = _before(shell.showtraceback, _in_cell)
