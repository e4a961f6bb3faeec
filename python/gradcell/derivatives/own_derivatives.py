"""Calls with a derivative of their own, for the core: values, the tensors that they are differentiated
by, and the rule used to differentiate them.

A rule has a name for messages, and adjoint(inputs, outputs, cotangents, wanted) or
tangent(inputs, outputs, tangents), the other being None: the core takes the transpose of what there
is. In these lists None stands for zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcell._core import Tensor, call_outputs, ops as _ops
from gradcell.base import fail, tree

Tensors = Sequence["Tensor | None"]


def defined_at(fn: Any) -> str:
    """A function's name and where it is: "bprop (net.py:12)"."""
    inner = getattr(fn, "__func__", fn)
    code = getattr(inner, "__code__", None)
    name = getattr(fn, "__qualname__", None) or type(fn).__name__
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"


def zeros_like(x: Tensor) -> Tensor:
    """Zeros in x's shape and dtype."""
    return _ops.full(list(x.shape), 0, x.dtype)


def filled(tensors: Tensors, like: Sequence[Tensor]) -> list[Tensor]:
    """The tensors, with zeros where there is none; `like` may be longer."""
    given = [*tensors, *[None] * (len(like) - len(tensors))]
    return [zeros_like(x) if t is None else t for t, x in zip(given, like, strict=True)]


def fitted(gradient: Any, x: Tensor, who: str, number: int) -> Tensor | None:
    """Return a gradient in the shape and dtype of x; dimensions to which x would be broadcast are
    summed.

    None and the number 0 are zero. Raises RuntimeError for other numbers and other shapes.
    """
    if gradient is None or not x.dtype.is_floating:
        return None
    if not isinstance(gradient, Tensor):
        if isinstance(gradient, (int, float)) and gradient == 0:
            return None
        fail(f"{who}: Gradient should be none or tensor, position: {number} type: {type(gradient)}")
    if gradient.dtype != x.dtype:
        gradient = _ops.cast(gradient, x.dtype)
    wanted, got = list(x.shape), list(gradient.shape)
    if got == wanted:
        return gradient  # type: ignore[no-any-return]
    lead = len(got) - len(wanted)
    summed = [i for i, n in enumerate(got) if i < lead or (wanted[i - lead] == 1 and n != 1)]
    if lead < 0 or any(
        got[i] != wanted[i - lead] for i in range(lead, len(got)) if i not in summed
    ):
        fail(
            f"{who}: the gradient with respect to input {number} should be of shape {wanted}, or one that "
            f"this broadcasts to, but got {got}"
        )
    return _ops.reshape(_ops.reduce_sum(gradient, summed), wanted)


class Pullback:
    """The rule of a call whose function gives cotangents: pull(inputs, outputs, cotangents, wanted).

    What the function needs of the call beside those is not in its closure, where a batch of examples would
    not find it: it is `keep`, a tree, which comes as a further argument.
    """

    tangent: None = None

    def __init__(self, name: str, pull: Callable[..., Tensors], keep: Any = None) -> None:
        self.name = name
        self.pull = pull
        self.kept: list[Tensor] = tree.leaves(keep)
        self.keeps: bool = keep is not None
        self.outline: Any = tree.outline(keep)

    def adjoint(
        self, inputs: list[Tensor], outputs: list[Tensor], cotangents: Tensors, wanted: list[bool],
        kept: list[Tensor],
    ) -> Tensors:  # fmt: skip
        """Return the cotangents of the inputs, for the core."""
        if not self.keeps:
            return self.pull(inputs, outputs, cotangents, wanted)
        return self.pull(inputs, outputs, cotangents, wanted, tree.refill(self.outline, kept))


class Pushforward:
    """The rule of a call whose function gives tangents: push(inputs, outputs, tangents, keep), linear in
    the tangents, None among them."""

    adjoint: None = None

    def __init__(self, name: str, push: Callable[..., Tensors], keep: Any) -> None:
        self.name = name
        self.push = push
        self.kept: list[Tensor] = tree.leaves(keep)
        self.outline: Any = tree.outline(keep)

    def tangent(
        self, inputs: list[Tensor], outputs: list[Tensor], tangents: Tensors, kept: list[Tensor]
    ) -> Tensors:
        """Return the tangents of the outputs, for the core."""
        return self.push(inputs, outputs, tangents, tree.refill(self.outline, kept))


def call(values: list[Tensor], inputs: list[Tensor], rule: Pullback | Pushforward) -> list[Tensor]:
    """The values as outputs of a call whose derivatives by the inputs are the rule's."""
    kept, rule.kept = rule.kept, []  # as nodes from now on
    return call_outputs(values, inputs, rule, kept)
