"""InsertGradientOf and HookBackward: primitives that give their input, and see its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell._core import Tensor, in_trace, ops as _ops
from gradcell.base import bad_type, bad_value, tree, with_tensors
from gradcell.derivatives.hooks import check_hook
from gradcell.derivatives.own_derivatives import Pullback, Tensors, call, defined_at, filled
from gradcell.ops.primitive import Primitive

__all__ = ["HookBackward", "InsertGradientOf"]


class InsertGradientOf(Primitive):
    """Returns its input, a tensor or a tuple of them, and replaces its gradient by f(gradient).

    f: a function of the gradient (with a tuple, of the tuple); None leaves it as it is. Raises TypeError
    if f is not a function or (when a gradient is taken) gives another number of gradients or no tensors,
    ValueError if it gives another shape.
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        check_hook(f)
        super().__init__("InsertGradientOf", f=f)
        self.f = f

    def __call__(self, input_x: Any) -> Any:
        """The input."""
        input_x = with_tensors(input_x)
        values = tree.leaves(input_x)
        if not in_trace() or not values:
            return input_x
        shape, f = tree.outline(input_x), self.f

        def pull(inputs: list[Tensor], outputs: Any, cotangents: Tensors, _: Any) -> Tensors:
            given = filled(cotangents, inputs)
            new = f(tree.refill(shape, given))
            if new is None:
                return cotangents
            if not (isinstance(new, Tensor) and len(given) == 1):
                new = tree.matched(f"InsertGradientOf: {defined_at(f)}", new, shape)
            return _fitted(f, new, given, "InsertGradientOf", True)

        return tree.refill(shape, call(values, values, Pullback("InsertGradientOf", pull)))


class HookBackward(Primitive):
    """Returns its inputs, and passes their gradients, a tuple, to hook_fn.

    What hook_fn returns, unless None, replaces the gradients. hook_fn: a function of the tuple of
    gradients. cell_id has no effect. Raises TypeError if it is not a function, an input is
    not a tensor, or (when a gradient is taken) it returns another number of gradients, ValueError if it
    returns another shape or dtype.
    """

    def __init__(self, hook_fn: Callable[..., Any], cell_id: str = "") -> None:
        check_hook(hook_fn)
        super().__init__("HookBackward", cell_id=cell_id)
        self.hook_fn = hook_fn

    def __call__(self, *inputs: Any) -> Any:
        """The input, or the tuple of several."""
        made: list[Tensor] = list(with_tensors(inputs))
        for x in made:
            if not isinstance(x, Tensor):
                bad_type(f"HookBackward: expected tensors, got {type(x).__name__}")
        hook = self.hook_fn
        if in_trace() and inputs:

            def pull(xs: list[Tensor], outputs: Any, cotangents: Tensors, _: Any) -> Tensors:
                given = filled(cotangents, xs)
                new = hook(tuple(given))
                return (
                    cotangents if new is None else _fitted(hook, new, given, "HookBackward", False)
                )

            made = call(made, made, Pullback("HookBackward", pull))
        return made[0] if len(made) == 1 else tuple(made)


def _fitted(f: Any, new: Any, given: list[Tensor], name: str, casts: bool) -> list[Tensor | None]:
    """Check a function's new gradients against those that it was given; returns them."""
    listed = [new] if isinstance(new, Tensor) else new
    found = list(listed) if isinstance(listed, (tuple, list)) else None
    if found is None or len(found) != len(given):
        count = type(new).__name__ if found is None else len(found)
        bad_type(f"{name}: {defined_at(f)} must return {len(given)} gradients, got {count}")
    checked: list[Tensor | None] = []
    for got, was in zip(found, given, strict=True):
        if got is None or not was.dtype.is_floating:
            checked.append(was if was.dtype.is_floating else None)
            continue
        if not isinstance(got, Tensor):
            bad_type(f"{name}: {defined_at(f)} must return tensors, got {type(got).__name__}")
        if tuple(got.shape) != tuple(was.shape) or (got.dtype != was.dtype and not casts):
            bad_value(
                f"The output type of function: {defined_at(f)} is not consistent with the expected, it "
                f"should be Tensor shape:{list(was.shape)} {was.dtype}, but got Tensor "
                f"shape:{list(got.shape)} {got.dtype}"
            )
        checked.append(got if got.dtype == was.dtype else _ops.cast(got, was.dtype))
    return checked
