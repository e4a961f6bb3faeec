"""Derivatives of a function or network as a cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell.base import fields
from gradcell.derivatives.transform import jvp, vjp
from gradcell.nn.cell import Cell

__all__ = ["Jvp", "Vjp"]


@fields.declared
class Jvp(Cell):
    """Called with fn's inputs and v: (fn(inputs), the Jacobian of fn times v).

    v: a tensor, or for several inputs a tuple of them, of the inputs' shapes and dtypes. Raises
    TypeError, ValueError.
    """

    fn: Callable[..., Any] = fields.anything()

    def construct(self, *args: Any) -> tuple[Any, ...]:
        inputs = args[:-1]
        return jvp(self.fn, inputs if len(inputs) > 1 else inputs[0], args[-1])


@fields.declared
class Vjp(Cell):
    """Called with fn's inputs and v: (fn(inputs), v times the Jacobian of fn by each input).

    v: a tensor or tuple like fn's output. Raises TypeError, ValueError.
    """

    fn: Callable[..., Any] = fields.anything()

    def construct(self, *args: Any) -> tuple[Any, ...]:
        out, pull_back = vjp(self.fn, *args[:-1])
        v = args[-1]
        found = pull_back(*v) if isinstance(v, tuple) else pull_back(v)
        return out, found[0] if len(found) == 1 else found


def custom_vjp(fn: Any = None) -> Any:
    """The function as a cell whose derivative is what its defbwd is given: bwd(*args, output, gradient)."""
    return CustomVjp(fn) if fn is not None else CustomVjp


@fields.declared
class CustomVjp(Cell):
    """A function with a derivative of its own, which defbwd sets."""

    fwd: Any = fields.anything()

    def _build(self) -> None:
        self.bwd: Any = None

    def defbwd(self, bwd: Any) -> None:
        """Sets the derivative."""
        self.bwd = bwd

    def construct(self, *args: Any) -> Any:
        return self.fwd(*args)

    def bprop(self, *args: Any) -> Any:
        return self.bwd(*args)
