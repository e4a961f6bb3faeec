"""Functions made of rows of a table: a signature, an expression, and the names that share them.

MindSpore has one idea under several names and spellings (ops, mint, numpy). A spelling is a row

    ("x1, x2, dtype=None", "typed(ops.{}(x1, x2), dtype)", "add multiply=mul")

which stands for `def add(x1, x2, dtype=None): return typed(ops.add(x1, x2), dtype)` and the same for
multiply over ops.mul. A function is made when it is first asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

Row = tuple[str, str, str]

#: Words of an expression that only convert what goes in or comes out.
_CONVERSIONS = frozenset({"typed", "array", "operand", "floating", "tensor", "pair", "_ops.cast"})


class Forms:
    """The functions of a table. module: the name of the module they belong to; names: what their
    expressions may use."""

    def __init__(self, module: str, rows: Iterable[Row], names: Mapping[str, Any]) -> None:
        self.module, self.names = module, names
        self.rows: dict[str, tuple[str, str]] = {}
        for signature, expression, entries in rows:
            for entry in entries.split():
                name, _, op = entry.partition("=")
                self.rows[name] = (signature, expression.replace("{}", op or name))

    def __contains__(self, name: str) -> bool:
        return name in self.rows

    def make(self, name: str) -> Any:
        """The function of a row. Raises KeyError for a name that has none."""
        signature, expression = self.rows[name]
        text = f"def {name}({signature}):\n    return {expression}\n"
        # A file of this package: messages name the user's line, not this one.
        place = os.path.join(os.path.dirname(__file__), f"{self.module}.{name}")
        made: dict[str, Any] = {}
        exec(compile(text, place, "exec"), dict(self.names), made)
        function = made[name]
        function.__module__ = self.module
        function.__doc__ = self._text(name, expression)
        return function

    def _text(self, name: str, expression: str) -> str:
        """What the function does: the text of the first thing it calls."""
        for path in re.findall(r"[A-Za-z_][\w.]*(?=\()", expression):
            found: Any = self.names.get(path.split(".")[0])
            for part in path.split(".")[1:]:
                found = getattr(found, part, None)
            if path not in _CONVERSIONS and getattr(found, "__doc__", None):
                return f"{found.__doc__}\n\nThis is {expression}."
        return f"{name}: {expression}."
