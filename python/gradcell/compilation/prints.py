"""Output of compiled functions: recorded in the trace, printed at each call.

A value that is known only when the compiled function runs is not asked for: it becomes one more
output of the plan. So `print(x)` and `ops.Print` need no second trace. What needs a text at once
(an f-string, str()) still asks for the value.
"""

from __future__ import annotations

import builtins
import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import tree

#: One argument of print: its text, or the outline of a tree of tensors and what makes a text of it.
_Part = str | tuple[Any, int, Callable[[Any], str]]


def recording() -> bool:
    """Return whether this thread runs a function in order to compile it."""
    return threading.get_ident() in _recording


class Prints:
    """The calls of print in one function, and the tensors that they show."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[_Part], dict[str, Any]]] = []
        self.tensors: list[Tensor] = []  # while it is traced
        self.count: int = 0  # of them

    # (While it is open, this thread's calls of print are recorded.)
    def __enter__(self) -> None:
        global _plain
        with _lock:
            if builtins.print is not emit:  # (it is while another thread's recording ends)
                _plain = builtins.print
                builtins.print = emit
            _recording[threading.get_ident()] = self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        thread = threading.get_ident()
        if kind is not None:
            del _recording[thread]
            with contextlib.suppress(Exception):  # of two errors it is the first that counts
                self.show(self.tensors)  # what was printed before it helps to understand it
        with _lock:
            _recording.pop(thread, None)
            if not _recording and builtins.print is emit:
                builtins.print = _plain

    def finish(self) -> None:
        """Prints for the first time. No tensor is kept."""
        self.show(self.tensors)
        self.count, self.tensors = len(self.tensors), []

    def add(
        self, values: Sequence[Any], options: dict[str, Any], text: Callable[[Any], str]
    ) -> None:
        """Record a call of print. Raises the error of text for a value that cannot be known."""
        self.calls.append(([self._part(value, text) for value in values], options))

    def _part(self, value: Any, text: Callable[[Any], str]) -> _Part:
        tensors = [t for t in tree.leaves(value) if not t._is_variable and not _core.is_plain(t)]
        if not tensors or not all(map(_core.has_value, tensors)):
            return text(value)
        recorded = tree.map_leaves(lambda t: t if t._is_variable else _core.record(t), value)
        shown = tree.leaves(recorded)
        self.tensors += shown
        return tree.outline(recorded), len(shown), text

    def show(self, tensors: Sequence[Tensor]) -> None:
        """Prints, with these values of the tensors."""
        values = iter(tensors)
        for parts, options in self.calls:
            texts = [
                part
                if isinstance(part, str)
                else part[2](tree.refill(part[0], [next(values) for _ in range(part[1])]))
                for part in parts
            ]
            _plain(*texts, **options)


_lock = threading.Lock()
_recording: dict[int, Prints] = {}  # by thread
_plain: Callable[..., None] = print  # what builtins.print was before a thread recorded


def emit(*values: Any, text: Callable[[Any], str] = str, **options: Any) -> None:
    """print(*values, **options), now or at each call of the function being compiled."""
    prints = _recording.get(threading.get_ident()) if _core.in_trace() else None
    if prints is not None:
        prints.add(values, options, text)
    else:
        _plain(*map(text, values), **options)
