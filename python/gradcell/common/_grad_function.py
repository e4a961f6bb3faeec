"""_Function: a function whose forward and backward a program writes itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import bad_type, fail, tree, unsupported, where, with_tensors
from gradcell.compilation.compiled import run_traced
from gradcell.derivatives.own_derivatives import Pullback, Tensors, call, defined_at, filled, fitted

__all__ = ["_Function"]


class _Function:
    """Subclassed with static methods forward(ctx, *args) and backward(ctx, *gradients), and called as
    apply(*args). An instance of the class is the ctx of one call.

        class Scale(_Function):
            @staticmethod
            def forward(ctx, x, k):
                ctx.save_for_backward(x)
                ctx.k = k
                return x * k

            @staticmethod
            def backward(ctx, dout):          # a gradient, or None, for each argument
                return dout * ctx.k, None

    With setup_context(ctx, inputs, output) forward comes without ctx. Derivatives of higher order
    differentiate backward, through what has been saved.

    apply raises NotImplementedError without forward; when a derivative is taken NotImplementedError
    without backward, RuntimeError for a wrong number of gradients, for what is neither a tensor nor None
    and for shapes that do not match the arguments', ValueError where backward unpacks saved tensors though
    none were saved.
    """

    def __init__(self) -> None:
        self._saved: tuple[Tensor | None, ...] | None = None
        self._looked = False
        self.dirty_tensors: tuple[Tensor, ...] = ()
        self.non_differentiable: tuple[Tensor, ...] = ()
        self.materialize_grads = True
        self._inputs: tuple[Any, ...] = ()
        self._wanted: tuple[bool, ...] | None = None

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """The function: to be defined."""
        unsupported("forward function should be customized.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the arguments, given those of the outputs: to be defined."""
        unsupported("backward function should be customized.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Saves what backward needs, where forward has no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for backward, which finds them in saved_tensors. Raises TypeError for others."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                bad_type(
                    f"save_for_backward: expected tensors, got {type(t).__name__}: keep other things as "
                    "attributes of ctx"
                )
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """Return the tensors given to save_for_backward."""
        self._looked = True
        return self._saved or ()

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Says which arguments forward has written into: they are outputs from then on."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Says which outputs are constants of derivatives; backward gets zeros for them."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """False: backward gets None, not zeros, for outputs that nothing depends on."""
        self.materialize_grads = value

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each argument whether its gradient will be used."""
        if self._wanted is not None:
            return self._wanted
        return tuple(isinstance(x, Tensor) and bool(x._requires_grad) for x in self._inputs)

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Return forward's result for these arguments."""
        if cls.setup_context is not _Function.setup_context:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        if kwargs:
            bad_type(f"{cls.__name__}.apply() takes no keyword arguments")
        return run_traced(cls._record, with_tensors(args), {})

    @classmethod
    def _record(cls, *args: Any) -> Any:
        ctx = cls()
        ctx._inputs = args
        given = [x for x in args if isinstance(x, Tensor)]
        inputs = [_core.record(x) for x in given]  # forward may write into them
        if cls.setup_context is not _Function.setup_context:
            out = cls.forward(*args)
            cls.setup_context(ctx, args, out)
        else:
            out = cls.forward(ctx, *args)
        ctx._inputs = ()
        values = tree.leaves(out)
        if not inputs or not values:
            return out
        places = [isinstance(x, Tensor) for x in args]
        constant = [any(v is t for t in ctx.non_differentiable) for v in values]
        passed = [any(v is x for x in given) for v in values]
        dirty = [any(v is t for t in ctx.dirty_tensors) for v in values]
        if not all(any(t is v for v in values) for t in ctx.dirty_tensors):
            fail(f"{cls.__name__}: what mark_dirty is given must be among the outputs of forward")
        ctx.dirty_tensors = ctx.non_differentiable = ()
        own = [None if p else v for v, p in zip(values, passed, strict=True)]
        state, kept = _put_away(ctx, own)

        def pull(
            xs: list[Tensor], outputs: Any, cotangents: Tensors, wanted: list[bool], kept: Any
        ) -> Tensors:
            back = cls()
            back.__dict__.update(state(outputs, kept))
            return back._pulled(places, xs, outputs, cotangents, wanted)

        made = call(values, inputs, Pullback(cls.__name__, pull, kept))
        for i, value in enumerate(values):
            if constant[i]:
                made[i] = _core.ops.stop_gradient(made[i])
            if dirty[i] and value._traced:
                value[...] = made[i]  # by way of a view into its base
                made[i] = value
        return tree.refill(tree.outline(out), made)

    def _pulled(
        self, places: list[bool], xs: list[Tensor], outputs: list[Tensor], cotangents: Tensors,
        wanted: list[bool],
    ) -> Tensors:  # fmt: skip
        rest = iter(wanted)
        self._wanted = tuple(next(rest) if there else False for there in places)
        self._looked = False
        given: list[Any] = [*cotangents]
        if self.materialize_grads:
            given = [*filled(cotangents, outputs)]
        who = defined_at(self.backward)
        try:
            found = self.backward(self, *given)
        except ValueError as error:
            if self._saved is None and self._looked:
                raise ValueError(
                    f"{who} reads ctx.saved_tensors, but forward has saved nothing: call "
                    f"ctx.save_for_backward there ({error}){where()}"
                ) from error
            raise
        finally:
            self._wanted = None
        gradients = list(found) if isinstance(found, (tuple, list)) else [found]
        extra = gradients[len(places) :]
        if len(gradients) < len(places) or any(g is not None for g in extra):
            fail(
                f"Function backward returned a wrong number of gradients, expected: {len(places)} but: "
                f"{len(gradients)} ({who})"
            )
        by_tensor = [g for g, there in zip(gradients, places, strict=False) if there]
        return [fitted(g, x, who, i) for i, (g, x) in enumerate(zip(by_tensor, xs, strict=True))]


def _put_away(
    ctx: _Function, outputs: list[Any]
) -> tuple[Callable[..., dict[str, Any]], list[Tensor]]:
    """Return the members of ctx as a function of the outputs and of the recorded tensors among
    them, and these tensors.

    A tensor that is an output is the call's output when backward finds it.
    """
    members = dict(ctx.__dict__)
    outline = tree.outline(members)
    spots: list[tuple[str, Any]] = []
    kept: list[Tensor] = []
    for t in tree.leaves(members):
        number = next((i for i, v in enumerate(outputs) if v is t), None)
        if number is not None:
            spots.append(("output", number))
        elif t._traced:
            spots.append(("kept", len(kept)))
            kept.append(t)
        else:
            spots.append(("value", t))

    def state(outs: Any, held: Any) -> dict[str, Any]:
        sources = {"output": outs, "kept": held}
        tensors = [x if kind == "value" else sources[kind][x] for kind, x in spots]
        found: dict[str, Any] = tree.refill(outline, tensors)
        return found

    return state, kept
