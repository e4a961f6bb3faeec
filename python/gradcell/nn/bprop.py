"""Cell.bprop: a cell whose derivative is a method of its own, as a call that the core knows."""

from __future__ import annotations

import inspect
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import bad_type, fail, tree
from gradcell.derivatives.custom_rules import gradients_of
from gradcell.derivatives.own_derivatives import Pullback, Tensors, call, defined_at, filled, fitted
from gradcell.tensors.parameter import Parameter


def construct_with_bprop(cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """cell.construct(*args, **kwargs); its derivative is cell.bprop(*args, output, gradient).

    bprop gives a gradient for each argument: a tuple, or for a single argument the gradient itself; None
    for zero; for an argument that is a tuple, a tuple. It may give (those, {parameter: gradient}), too:
    parameters that are not there have no gradient. Raises, when the derivative is taken, TypeError
    where nothing is returned, RuntimeError for another number of gradients and for shapes that do not
    fit the arguments'.
    """
    given = args
    if kwargs or len(args) < len(inspect.signature(cell.construct).parameters):
        bound = inspect.signature(cell.construct).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.args
    parameters: list[Parameter] = [p for p in cell.get_parameters() if p.requires_grad]
    tensors = [_core.record(x) for x in tree.leaves(given)]  # construct may write into them
    weights = [_core.record(p) for p in parameters]
    in_outline = tree.outline(given)
    out = cell.construct(*args, **kwargs)
    values = tree.leaves(out)
    if not values or not (tensors or parameters):
        return out
    out_outline = tree.outline(out)
    count, bprop = len(tensors), cell.bprop
    who = f"{type(cell).__name__}: {defined_at(bprop)}"

    def pull(inputs: list[Tensor], outputs: list[Tensor], cotangents: Tensors, _: Any) -> Tensors:
        given = tree.refill(in_outline, inputs[:count])
        dout = tree.refill(out_outline, filled(cotangents, outputs))
        found = bprop(*given, tree.refill(out_outline, outputs), dout)
        if found is None:
            bad_type(f"{who} returned nothing: a gradient for each argument is needed")
        by_parameter: dict[Any, Any] = {}
        if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], dict):
            found, by_parameter = found
        if not isinstance(found, (tuple, list)):
            found = (found,)
        if len(found) < len(given) or any(g is not None for g in found[len(given) :]):
            fail(
                f"{who} must give a gradient for each of the {len(given)} arguments of construct, got "
                f"{len(found)}"
            )
        gradients = gradients_of(found[: len(given)], in_outline, inputs[:count], who)
        for key in by_parameter:
            if not any(key is p for p in parameters):
                fail(
                    f"{who} gave a gradient with respect to {key!r}, which is not a trained parameter of the "
                    "cell"
                )
        named = {id(p): g for p, g in by_parameter.items()}
        for p, x in zip(parameters, inputs[count:], strict=True):
            gradients.append(fitted(named.get(id(p)), x, who, len(gradients)))
        return gradients

    made = call(values, [*tensors, *weights], Pullback(who, pull))
    return tree.refill(out_outline, made)
