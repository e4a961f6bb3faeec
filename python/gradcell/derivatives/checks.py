"""Checks of functions, arguments and results, shared by all transforms."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcell._core import Tensor, is_array, located, records_constants
from gradcell.base import bad_type, bad_value, fail, tree
from gradcell.compilation.compiled import function_name
from gradcell.tensors.parameter import Parameter, parameter_behind


def refuse_in_no_grad() -> None:
    """Raises RuntimeError within no_grad."""
    if records_constants():
        fail("In no_grad context, you can not calculate gradient")


def check_outputs(fn: Any, outputs: list[Tensor], integers: bool = False) -> None:
    """Raises TypeError unless there is a tensor that a derivative can be taken of; integers: those too. fn:
    the function that gave them, or a name."""
    if not outputs:
        bad_type(
            f"{function_name(fn)} returned no tensor to differentiate; it must return a Tensor or a tuple "
            "of them (float(x), x.item() and the functions of math give plain numbers: use those "
            "of gradcell.ops)"
        )
    if not integers and not any(t.dtype.is_floating for t in outputs):
        bad_type(
            f"{function_name(fn)} returned a tensor of {outputs[0].dtype}, which cannot be differentiated; "
            "cast it to a floating dtype"
        )


def check_real(name: str, tensors: Sequence[Tensor]) -> None:
    """Raises TypeError for a complex tensor: complex derivatives are not supported."""
    for t in tensors:
        if t.dtype.is_complex:
            bad_type(
                f"{name}: not defined for complex tensors, got {t.dtype}; take their parts, "
                "ops.real and ops.imag"
            )


def _types_of(tensors: Sequence[Tensor]) -> str:
    return ", ".join(f"{t.dtype}{list(t.shape)}" for t in tensors)


def check_directions(name: str, xs: Sequence[Tensor], vs: Sequence[Tensor]) -> None:
    """Raises ValueError unless there is a direction of its shape and dtype for each."""
    if len(xs) != len(vs):
        bad_value(f"{name}: v has invalid length: should be {len(xs)}, but got {len(vs)}")
    if [(tuple(x.shape), x.dtype) for x in xs] != [(tuple(t.shape), t.dtype) for t in vs]:
        bad_value(
            f"{name}: inputs and v must have the same shapes and dtypes, got {_types_of(xs)} and "
            f"{_types_of(vs)}"
        )


def aux_of(out: Any) -> tuple[Any, Any]:
    """(the first output, which alone is differentiated, the second or, if there are more, the tuple of
    them)."""
    if not isinstance(out, (tuple, list)) or len(out) < 2:
        bad_value("When has_aux is True, origin fn requires more than one outputs.")
    return out[0], out[1] if len(out) == 2 else tuple(out[1:])


def unmarked(x: Any) -> Any:
    """Return a container without the mark of mutable(), which gradients do not have."""
    if not (hasattr(x, "__ms_mutable__") and tree.is_container(x)):
        return x
    return next(plain(x) for plain in (tuple, list, dict) if isinstance(x, plain))


def as_tensors(x: Any) -> Any:
    """An argument with its numbers as tensors, since a derivative is taken by them too; those that are
    fields of a dataclass stay what they are, its settings."""
    if isinstance(x, Tensor):
        return x
    held = tree.parts(x)
    if held is None:
        number = isinstance(x, (int, float, np.number)) and not isinstance(x, bool)
        return Tensor(x) if number else x
    settings = dataclasses.is_dataclass(x)
    return tree.rebuilt(
        x, [v if settings and not tree.is_container(v) else as_tensors(v) for v in held]
    )


def check_positions(grad_position: Any) -> tuple[int, ...]:
    """The positions as a tuple. Raises TypeError for anything but an int or a tuple of them, ValueError
    for negative or repeated ones and for none."""
    positions = grad_position if isinstance(grad_position, tuple) else (grad_position,)
    if not isinstance(grad_position, (int, tuple)) or isinstance(grad_position, bool):
        given = grad_position if isinstance(grad_position, list) else [grad_position]
        way_out = ""
        if given and all(isinstance(p, Parameter) for p in given):
            way_out = ": Parameters are the third argument, grad(f, None, weights)"
        elif isinstance(grad_position, Tensor):
            way_out = ": the function's arguments come in a second call, grad(f)(x)"
        bad_type(f"For 'F.grad', the 'grad_position' must be int or tuple{way_out}.")
    if not positions:
        bad_value("grad_position should not be empty when grad by position!")
    for p in positions:
        if not isinstance(p, int) or isinstance(p, bool):
            bad_type("For 'F.grad', the element in 'grad_position' must be int.")
        if p < 0:
            bad_value("grad_position must be >= 0.")
    if len(set(positions)) != len(positions):
        bad_value("There are duplicate positions in `grad_position`, please check it")
    return positions


def _way_to_weights(given: Any) -> str:
    """Return advice on getting the Parameters of a value that was given in their place."""
    if isinstance(given, dict):
        return ": its Parameters are list(d.values())"
    trainable = hasattr(given, "trainable_params")
    return ": its Parameters are net.trainable_params()" if trainable else ""


def check_weights(weights: Any) -> list[Parameter]:
    """The Parameters, given alone, in a list or in a tuple. Raises TypeError for anything else."""
    items = [weights] if isinstance(weights, Tensor) else weights
    if not isinstance(items, (list, tuple)):
        bad_type(
            "The weights you provided is expected to be a tensor, or a list or tuple. but got "
            f"{type(weights).__name__}{_way_to_weights(weights)}"
        )
    found = [parameter_behind(w) for w in items]
    for w in found:
        if not isinstance(w, Parameter):
            bad_type(f"weights: every element must be a Parameter, got {type(w).__name__}")
    return found


class PositionError(IndexError, ValueError):
    """There is no argument at a position to differentiate by."""


def check_argument(fn: Any, args: Sequence[Any], position: int, integers: bool = False) -> None:
    """Raises PositionError unless there is such an argument, TypeError unless a derivative can be taken by
    it: by floating tensors; integers: by tensors of any dtype and by numbers too."""
    if position >= len(args):
        raise PositionError(
            located(
                f"grad_position {position} is out of range: the element in grad_position must belong to "
                f"[0, {len(args)}), since {function_name(fn)} was called with {len(args)} "
                f"argument{'s' * (len(args) != 1)}"
            )
        )
    arg = args[position]
    if isinstance(arg, Tensor) and arg.dtype.is_floating:
        return
    mutable = integers or hasattr(arg, "__ms_mutable__")
    if mutable and isinstance(arg, (Tensor, bool, int, float)):
        return
    found = tree.leaves(as_tensors(arg) if mutable or tree.is_container(arg) else arg)
    if not found:
        of = f" of dtype {arg.dtype}" if is_array(arg) and hasattr(arg, "dtype") else ""
        bad_type(
            f"{function_name(fn)}: cannot differentiate with respect to argument {position}: it is not a "
            f"Tensor but {type(arg).__name__}{of}"
        )
    for t in found:
        if not (mutable or t.dtype.is_floating):
            bad_type(
                f"{function_name(fn)}: cannot differentiate with respect to argument {position} of dtype "
                f"{t.dtype}; cast it to a floating dtype"
            )


def tensors_of(name: str, what: str, value: Any) -> list[Tensor]:
    """A tensor, or a tuple or list of tensors, as a list. Raises TypeError for anything else."""
    items = list(value) if isinstance(value, (tuple, list)) else [value]
    for t in items:
        if not isinstance(t, Tensor):
            bad_type(f"{name}: {what} must be tensors, got {type(t).__name__}")
    return items
