"""A function's graph as a page for a browser, which zooms, folds cells, and needs nothing else."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import tree, with_tensors


class _Scopes:
    """Record of the nodes that each call of a cell made: calls nest, and a trace numbers its nodes
    as it makes them."""

    def __init__(self, trace: _core.Trace) -> None:
        self.trace = trace
        self.calls: list[dict[str, Any]] = []
        self.open: list[int] = []

    def enter(self, name: str) -> None:
        parent = self.open[-1] if self.open else None
        first = self.trace.node_count
        self.open.append(len(self.calls))
        self.calls.append({"name": name, "parent": parent, "first": first, "last": first})

    def leave(self) -> None:
        self.calls[self.open.pop()]["last"] = self.trace.node_count

    def innermost(self, node: int) -> int | None:
        """The call that made the node; of nested ones the inner one, which began later."""
        held = [i for i, c in enumerate(self.calls) if c["first"] <= node < c["last"]]
        return held[-1] if held else None


@contextlib.contextmanager
def _cells_watched(scopes: _Scopes, names: dict[int, str]) -> Iterator[None]:
    from gradcell.nn.cell import Cell

    plain = Cell.__call__

    def watched(self: Cell, *args: Any, **kwargs: Any) -> Any:
        kind = type(self).__name__
        name = names.get(id(self))
        scopes.enter(f"{name}: {kind}" if name else kind)
        try:
            return plain(self, *args, **kwargs)
        finally:
            scopes.leave()

    Cell.__call__ = watched  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Cell.__call__ = plain  # type: ignore[method-assign]


def _cell_names(fn: Any) -> dict[int, str]:
    """The cells below fn, where it is a cell or a method of one, by what leads to them."""
    cell = getattr(fn, "__self__", fn)
    if not hasattr(cell, "cells_and_names"):
        return {}
    return {id(c): name for name, c in cell.cells_and_names() if name}


def page(fn: Callable[..., Any], args: tuple[Any, ...], leaf: Callable[..., dict[int, str]]) -> str:
    """The page of fn(*args). leaf(trace, arguments): what the leaves are, by their number."""

    def body(trace: _core.Trace) -> dict[str, Any]:
        given: list[Tensor] = []

        def symbol(t: Tensor) -> Tensor:
            if t._is_variable:
                return t
            given.append(trace.argument(t))
            return given[-1]

        try:
            scopes = _Scopes(trace)
            symbols = tree.map_leaves(symbol, with_tensors(args, fn))
            with _cells_watched(scopes, _cell_names(fn)):
                outputs = tree.leaves(fn(*symbols))
            nodes = _core.live_nodes([_core.node_id(t) for t in outputs])
            names = leaf(trace, given)
            return _data(nodes, names, scopes)
        finally:
            trace.abandon()

    data = _core.with_trace(body)
    data["title"] = getattr(fn, "__name__", type(fn).__name__)
    text = json.dumps(data).replace("</", "<\\/")  # inside a script
    return (Path(__file__).parent / "drawing.html").read_text().replace("/*graph*/null", text)


def _data(nodes: list[dict[str, Any]], names: dict[int, str], scopes: _Scopes) -> dict[str, Any]:
    place = {node["id"]: i for i, node in enumerate(nodes)}
    drawn = []
    for node in nodes:
        shape = ", ".join(map(str, node["shape"]))
        drawn.append(
            {
                "id": node["id"],
                "op": node["op"] if node["inputs"] else names.get(node["id"], node["op"]),
                "type": f"{node['dtype'].name}[{shape}]",
                "inputs": [place[i] for i in node["inputs"]],
                "attributes": node["attributes"],
                "order": node["order"],
                "place": node["location"],
                "cell": scopes.innermost(node["id"]),
            }
        )
    cells = [
        {"id": i, "name": call["name"], "parent": call["parent"]}
        for i, call in enumerate(scopes.calls)
    ]
    return {"nodes": drawn, "cells": cells}
