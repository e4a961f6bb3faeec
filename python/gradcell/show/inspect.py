"""Shows the graph of a function, as text or as a drawing, and the plan that runs it.

None of these runs the plan or changes a parameter; the function's Python is run once, on tensors
that record.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import bad_value, fail, tree, with_tensors
from gradcell.base.notebook import Drawing, Listing
from gradcell.base.whole_file import write_whole
from gradcell.show import drawing
from gradcell.tensors.parameter import Parameter, parameter_of


def _recorded(fn: Callable[..., Any], args: tuple[Any, ...], read: Callable[..., str]) -> str:
    """read(trace, outputs, names of parameters) after fn was recorded."""
    if _core.in_trace():
        raise RuntimeError(
            f"a graph cannot be inspected while it is recorded ({_core.user_location()})"
        )

    def body(trace: _core.Trace) -> str:
        def symbol(t: Tensor) -> Tensor:
            return t if t._is_variable else trace.argument(t)

        try:
            outputs = tree.leaves(fn(*tree.map_leaves(symbol, with_tensors(args, fn))))
            variables = {v: parameter_of(v) for v in _core.lifted_variables()}
            names = {v: p.name for v, p in variables.items() if p is not None}
            return read(trace, outputs, names)
        finally:
            trace.abandon()

    return _core.with_trace(body)  # type: ignore[no-any-return]


def recorded_nodes(
    fn: Callable[..., Any], args: tuple[Tensor, ...], parameters: Iterable[Parameter] = ()
) -> tuple[list[dict[str, Any]], list[int], list[int], dict[int, Parameter]]:
    """The graph of fn(*args) as data: nodes in order of execution, the arguments' and the outputs'
    numbers, and which node each of `parameters` is.

    Loops are taken apart into steps. A node is a dict: id, op, inputs, attributes by name, dtype,
    shape, order, location; a leaf that is neither an argument nor one of the parameters holds its
    value.
    """

    def body(trace: _core.Trace) -> Any:
        try:
            symbols = [trace.argument(t) for t in args]
            results = _core.without_loops(tree.leaves(fn(*symbols)))
            outputs = [_core.node_id(t) for t in results]
            given = [_core.node_id(t) for t in symbols]
            held = {_core.node_id(p): p for p in parameters}
            nodes = _core.live_nodes(outputs)
            known = {*given, *held}
            rest = [n for n in nodes if n["op"] == "Leaf" and n["id"] not in known]
            values = _core.node_values([n["id"] for n in rest])
            for node, value in zip(rest, values, strict=True):
                node["value"] = value
            return nodes, given, outputs, held
        finally:
            trace.abandon()

    if _core.in_trace():
        raise RuntimeError(
            f"a graph cannot be inspected while it is recorded ({_core.user_location()})"
        )
    return _core.with_trace(body)  # type: ignore[no-any-return]


def graph_text(fn: Callable[..., Any], *args: Any) -> str:
    """The graph of fn(*args), one line for each node, inputs before the nodes that use them.

    A line holds the op, its inputs and attributes, dtype and shape; behind the # the user's file and
    line (for a leaf, which argument or parameter it is) and, for a node that differentiation made,
    its order. fn may itself be a transform: graph_text(grad(f), x) shows the gradient's graph.
    """
    return Listing(_recorded(fn, args, lambda trace, out, names: trace.graph_text(out, names)))


def plan_text(fn: Callable[..., Any], *args: Any) -> str:
    """The plan that computes fn(*args): stages of regions (tile programs) and calls."""
    return Listing(_recorded(fn, args, lambda trace, out, names: trace.plan_text(out)))


def draw_graph(fn: Callable[..., Any], *args: Any, path: str | Path) -> Path:
    """Draws the graph of fn(*args) and returns the file's path.

    path: .html becomes a page for a browser, which zooms, folds cells and names lines, with nothing
    else installed; .dot becomes DOT text; a picture (.svg, .png, .pdf) is laid out by Graphviz's
    `dot` program. In a notebook a cell that ends with the call shows the page. Raises RuntimeError
    where Graphviz is not installed, ValueError for other endings.
    """
    target = Drawing(path)
    if target.suffix not in (".html", ".dot", ".svg", ".png", ".pdf"):
        bad_value(
            f"draw_graph: 'path' ends in .html, .dot, .svg, .png or .pdf, but got {str(path)!r}"
        )
    if target.suffix == ".html":
        if _core.in_trace():
            raise RuntimeError(
                f"a graph cannot be inspected while it is recorded ({_core.user_location()})"
            )
        write_whole(target, drawing.page(fn, args, _leaf_names))
        return target
    program = shutil.which("dot")
    if target.suffix != ".dot" and program is None:
        fail(
            f"draw_graph: a {target.suffix} picture needs Graphviz's program `dot`, which is not installed; "
            "a path that ends in .html needs nothing"
        )
    text = _recorded(fn, args, lambda trace, out, names: trace.graph_dot(out, names))
    if program is None or target.suffix == ".dot":
        write_whole(target, text)
        return target
    import subprocess

    command = [program, f"-T{target.suffix[1:]}"]
    picture = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, check=True)
    write_whole(target, picture.stdout)
    return target


def _leaf_names(trace: _core.Trace, arguments: list[Tensor]) -> dict[int, str]:
    """Return the names of a trace's leaves: arguments by number, parameters by name."""
    found = {_core.node_id(t): f"argument {i}" for i, t in enumerate(arguments)}
    for variable in _core.lifted_variables():
        parameter = parameter_of(variable)
        if parameter is not None:
            found[_core.node_id(parameter)] = parameter.name
    return found
