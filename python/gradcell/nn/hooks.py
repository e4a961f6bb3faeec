"""Hooks of cells, for the forward and the backward pass: register_forward_pre_hook and its kin."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from gradcell._core import Tensor, further_outputs
from gradcell.base import bad_type, bad_value, fail, tree
from gradcell.derivatives.hooks import HookHandle, check_hook
from gradcell.derivatives.own_derivatives import Pullback, Tensors, call, defined_at, zeros_like

Hook = Callable[..., Any]


class CellHooks:
    """The hooks of one cell, in the order in which they are called."""

    def __init__(self) -> None:
        self.forward_pre: OrderedDict[int, Hook] = OrderedDict()
        self.forward: OrderedDict[int, Hook] = OrderedDict()
        self.backward_pre: OrderedDict[int, Hook] = OrderedDict()
        self.backward: OrderedDict[int, Hook] = OrderedDict()
        self.with_kwargs: set[int] = set()
        self.always: set[int] = set()

    def add(
        self, kind: str, hook: Hook, prepend: bool = False, with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookHandle:  # fmt: skip
        """Adds a hook. Raises TypeError if it is not a function."""
        check_hook(hook)
        hooks = getattr(self, kind)
        handle = HookHandle(hooks, hook)
        if prepend:
            hooks.move_to_end(handle.handle_id, last=False)
        if with_kwargs:
            self.with_kwargs.add(handle.handle_id)
        if always_call:
            self.always.add(handle.handle_id)
        return handle

    def run(
        self, cell: Any, compute: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """compute(args, kwargs) with the hooks around it."""
        called: set[int] = set()
        out: Any = None
        try:
            args, kwargs = self._before(cell, args, kwargs)
            entry: _Entry | None = None
            if self.backward:
                entry = _Entry(cell, list(self.backward.values()), args)
                args = entry.args
            out = compute(args, kwargs)
            for number, hook in list(self.forward.items()):
                called.add(number)
                new = self._after(number, hook, cell, args, kwargs, out)
                out = out if new is None else new
            if entry is not None:
                out = entry.close(out)
            if self.backward_pre:
                out = _backward_pre(cell, list(self.backward_pre.values()), out)
            return out
        except Exception:
            for number, hook in list(self.forward.items()):
                if number not in self.always or number in called:
                    continue
                try:
                    new = self._after(number, hook, cell, args, kwargs, out)
                    out = out if new is None else new
                except Exception as error:
                    warnings.warn(
                        f"{defined_at(hook)}, a forward hook with always_call, raised {error!r} while "
                        f"another error was on its way",
                        RuntimeWarning,
                        stacklevel=4,
                    )
            raise

    def _before(
        self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for number, hook in list(self.forward_pre.items()):
            if number in self.with_kwargs:
                new = hook(cell, args, kwargs)
                if new is None:
                    continue
                if not isinstance(new, tuple) or len(new) != 2:
                    fail(
                        "forward pre hook with kwargs must return None or a tuple of (new_args, "
                        f"new_kwargs), but {defined_at(hook)} gave {new}"
                    )
                args, kwargs = new
            else:
                new = hook(cell, args)
                if new is not None:
                    args = new if isinstance(new, tuple) else (new,)
        return args, kwargs

    def _after(self, number: int, hook: Hook, cell: Any, args: Any, kwargs: Any, out: Any) -> Any:
        if number in self.with_kwargs:
            return hook(cell, args, kwargs, out)
        return hook(cell, args, out)


def _checked(
    hook: Hook, new: Any, old: tuple[Tensor | None, ...], kind: str, what: str
) -> tuple[Tensor | None, ...]:
    """Check the gradients that a hook returned in place of others. Raises TypeError for another
    number of them, ValueError for another shape or dtype."""
    if new is None:
        return old
    found = tuple(new) if isinstance(new, (tuple, list)) else (new,)
    if len(found) != len(old):
        bad_type(
            f"The {kind} return value size is {len(found)} not equal to expect {what} size {len(old)}: "
            f"{defined_at(hook)}"
        )
    for got, was in zip(found, old, strict=True):
        if got is not None and not isinstance(got, Tensor):
            bad_type(f"The {kind} {defined_at(hook)} must return tensors, got {type(got).__name__}")
        if got is None or was is None:
            continue
        if tuple(got.shape) != tuple(was.shape) or got.dtype != was.dtype:
            bad_value(
                f"The output type of function: {defined_at(hook)} is not consistent with the expected, it "
                f"should be Tensor shape:{list(was.shape)} {was.dtype}, but got Tensor "
                f"shape:{list(got.shape)} {got.dtype}"
            )
    return tuple(was if got is None else got for got, was in zip(found, old, strict=True))


def _floating(out: Any) -> list[Tensor]:
    return [t for t in tree.leaves(out) if t.dtype.is_floating]


def _with(out: Any, marked: Sequence[Tensor]) -> Any:
    """The tree with the floating tensors replaced, in order."""
    rest = iter(marked)
    return tree.map_leaves(lambda t: next(rest) if t.dtype.is_floating else t, out)


def _backward_pre(cell: Any, hooks: list[Hook], out: Any) -> Any:
    """The output, whose gradients the hooks see and may change."""
    values = _floating(out)
    places = [t.dtype.is_floating for t in tree.leaves(out)]
    if not values:
        return out

    def pull(inputs: Any, outputs: Any, cotangents: Tensors, wanted: Any) -> Tensors:
        gradients = _spread(cotangents, places)
        for hook in hooks:
            gradients = _checked(
                hook, hook(cell, gradients), gradients, "backward pre hook", "output"
            )
        return [g for g, there in zip(gradients, places, strict=True) if there]

    rule = Pullback(f"the backward pre hooks of {type(cell).__name__}", pull)
    return _with(out, call(values, values, rule))


def _spread(gradients: Tensors, places: list[bool]) -> tuple[Tensor | None, ...]:
    """A gradient, or None, for each leaf: integers have none."""
    rest = iter(gradients)
    return tuple(next(rest) if there else None for there in places)


class _Entry:
    """The arguments of a cell with backward hooks, as outputs of a call: its rule calls the hooks with
    the gradients of the arguments and those of the cell's output.

    The latter come to it through further outputs of that call, zeros that nothing computes with: the
    cell's output is a call on them too, which hands its gradients over.
    """

    def __init__(self, cell: Any, hooks: list[Hook], args: tuple[Any, ...]) -> None:
        self.cell, self.hooks = cell, hooks
        #: For each tensor or tree among the arguments whether it has a gradient of its own.
        self.places = [
            isinstance(a, Tensor) and a.dtype.is_floating
            for a in args
            if isinstance(a, (Tensor, tuple, list, dict))
        ]
        values = [a for a in args if isinstance(a, Tensor) and a.dtype.is_floating]
        self.count = len(values)
        self.out_places: list[bool] = []
        self.marked: list[Tensor] = []
        self.rule = Pullback(f"the backward hooks of {type(cell).__name__}", self._pull)
        if values:
            self.marked = call(values, values, self.rule)
        rest = iter(self.marked)
        self.args = tuple(
            next(rest) if isinstance(a, Tensor) and a.dtype.is_floating else a for a in args
        )

    def _called(
        self, grad_input: tuple[Tensor | None, ...], grad_output: tuple[Tensor | None, ...]
    ) -> tuple[Tensor | None, ...]:
        for hook in self.hooks:
            new = hook(self.cell, grad_input, grad_output)
            grad_input = _checked(hook, new, grad_input, "backward hook", "grad input")
        return grad_input

    def _pull(self, inputs: Any, outputs: Any, cotangents: Tensors, wanted: Any) -> Tensors:
        grad_input = _spread(cotangents[: self.count], self.places)
        grad_output = _spread(cotangents[self.count :], self.out_places)
        found = self._called(grad_input, grad_output)
        return [g for g, there in zip(found, self.places, strict=True) if there]

    def close(self, out: Any) -> Any:
        """The cell's output, whose gradients the hooks are called with."""
        values = _floating(out)
        self.out_places = [t.dtype.is_floating for t in tree.leaves(out)]
        if not values:
            return out
        tokens: list[Tensor] = []
        if self.marked:
            zeros = [zeros_like(v) for v in values]
            tokens = further_outputs(self.marked[0], zeros, self.count)
        count, others = len(values), len(tokens)
        self.marked, self.args = [], ()

        def pull(inputs: Any, outputs: Any, cotangents: Tensors, wanted: list[bool]) -> Tensors:
            given = list(cotangents)
            if any(wanted[count:]):
                return given + given
            # No argument has a derivative: nothing else will call the hooks.
            self._called((None,) * len(self.places), _spread(given, self.out_places))
            return given + [None] * others

        rule = Pullback(self.rule.name, pull)
        return _with(out, call(values, [*values, *tokens], rule))
