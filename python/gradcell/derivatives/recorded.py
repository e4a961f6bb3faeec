"""Gradients of tensors that have been recorded by tensors that they were computed from, as
tf.gradients and torch.autograd.grad have them; and the scope that says by which."""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value, door, fail, tree, where
from gradcell.derivatives.checks import check_outputs, check_real, refuse_in_no_grad
from gradcell.derivatives.differentiating import differentiating
from gradcell.derivatives.transform import _after_hooks
from gradcell.tensors.parameter import Parameter

__all__ = ["gradients", "watch"]


class watch:
    """A scope in which `gradients` can differentiate with respect to tensors.

        with gc.watch(x, t) as (x, t):
            u = net(x, t)
            u_x, u_t = gc.gradients(u, [x, t])
            u_xx = gc.gradients(u_x, x)

    It returns a tensor for one argument and a tuple for several (trees of tensors keep their
    structure). The values are those of the arguments, but they are new variables: derivatives
    count only what is computed from them, inside the scope. When the scope closes, its results are
    ordinary tensors: of the function around it (so grad, jit and vmap of that work as ever), or,
    outside of any transform, with their values, computed by one plan for the whole scope. Scopes
    nest.

    Raises TypeError unless it is given floating tensors.
    """

    def __init__(self, *tensors: Any) -> None:
        tensors = door.numbers_too(tensors)
        found = tree.leaves(tensors)
        for t in found:
            if not t.dtype.is_floating:
                bad_type(
                    f"watch: cannot differentiate with respect to a tensor of {t.dtype}; cast it to a "
                    "floating dtype"
                )
        if not found:
            bad_type("watch: expected tensors to differentiate with respect to")
        self._given = tensors
        # A Parameter is known by its variable, others by what is handed out.
        self._scope = differentiating(
            [t for t in found if not isinstance(t, Parameter)],
            [t for t in found if isinstance(t, Parameter)],
        )
        self._trace: _core.Trace | None = None

    def __enter__(self) -> Any:
        outer = _core.in_trace()
        try:
            if not outer:
                self._trace = _core.begin_trace()
            aliases, variables = self._scope.__enter__()
            for alias, x in zip(aliases, self._scope.args, strict=True):
                alias.__dict__["_watched"] = x
            tensors, parameters = iter(aliases), iter(variables[len(aliases) :])
            watched = tree.map_leaves(
                lambda t: next(parameters if isinstance(t, Parameter) else tensors), self._given
            )
            return watched if len(watched) > 1 else watched[0]
        except BaseException:
            self._close(not outer and _core.in_trace())
            raise

    def _close(self, abandon: bool) -> None:
        trace, self._trace = self._trace, None
        try:
            self._scope.__exit__()
            if abandon and trace is not None:
                trace.abandon()
            elif trace is not None:
                trace.finish([])
        finally:
            if trace is not None:
                _core.end_trace()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close(kind is not None)


def gradients(ys: Any, xs: Any, cotangents: Any = None) -> Any:
    """The gradients of tensors ys by tensors xs that they were computed from: of the sum of all
    elements of ys, or of their sum weighted by cotangents.

    ys: a tensor, or a tuple, list or dict of them, recorded in a transform, in a function under jit or
    in a scope of `watch`. xs: the same; each is a tensor that a scope of `watch` has given, a Parameter,
    or an argument of the function that jit compiles. cotangents: None, or as many as ys, in their
    structure: tensors of ys' shapes, numbers, or None for ones. Gradients come in xs' structure, with
    their shapes and dtypes; zeros where ys do not depend on them. They are recorded like everything else,
    so they can be differentiated again, to any order, by `gradients` and by the transforms around.

    Raises RuntimeError where nothing is recorded, ValueError for other tensors among xs (they may be one
    with others of the same value: open a scope) and for cotangents of another number or shape, TypeError
    for anything that is not a floating tensor.
    """
    refuse_in_no_grad()
    if not _core.in_trace():
        fail(
            "gradients: nothing is recorded here, so ys are only values. Compute them inside `with "
            "gradcell.watch(x) as x:`, or in a function under gradcell.jit, or take gradcell.grad of a "
            "function"
        )
    outputs, wrt = tree.leaves(ys), tree.leaves(xs)
    check_outputs("gradients: ys", outputs)
    _check_recorded(wrt)
    check_real("gradients", [*outputs, *wrt])
    seeds = _seeds(ys, outputs, cotangents)
    found = _core.adjoint(outputs, seeds, wrt)
    _warn_of_what_was_given(outputs, wrt, found)
    hooked = (
        _after_hooks(x, g) if isinstance(x, Parameter) else g
        for x, g in zip(wrt, found, strict=True)
    )
    return tree.map_leaves(lambda _: next(hooked), xs)


def _warn_of_what_was_given(outputs: list[Tensor], wrt: list[Tensor], found: list[Tensor]) -> None:
    """Warns of a gradient that is zero since ys were computed from the tensor that watch was given, not from
    the one that it gives."""
    for x, g in zip(wrt, found, strict=True):
        given = x.__dict__.get("_watched")
        if given is None or not _core.same_node(g, _core.ops.full(list(g.shape), 0, g.dtype)):
            continue
        (by_given,) = _core.adjoint(outputs, [None] * len(outputs), [given])
        if not _core.same_node(by_given, _core.ops.full(list(g.shape), 0, g.dtype)):
            warnings.warn(
                f"gradients: ys do not depend on the tensor of shape {list(x.shape)} that watch gives, but "
                "on the one that it was given, so the gradient is 0; compute them from what `with "
                f"gradcell.watch(x) as x:` gives{where()}",
                RuntimeWarning,
                stacklevel=3,
            )


def _check_recorded(wrt: list[Tensor]) -> None:
    if not wrt:
        bad_type("gradients: xs has no tensor to differentiate with respect to")
    for x in wrt:
        if not x.dtype.is_floating:
            bad_type(
                f"gradients: cannot differentiate with respect to a tensor of {x.dtype} among xs; cast it to "
                "a floating dtype"
            )
        if not _core.apart(x):
            bad_value(
                f"gradients: a tensor of shape {list(x.shape)} among xs is not watched here: it was "
                "computed, is a constant, or its scope has closed. Compute ys from what `with "
                "gradcell.watch(x) as x:` gives"
            )


def _seeds(ys: Any, outputs: list[Tensor], cotangents: Any) -> list[Tensor | None]:
    """A cotangent for each output; None: ones."""
    if cotangents is None:
        return [None] * len(outputs)
    cotangents = door.with_tensors(cotangents)
    if isinstance(ys, Tensor) and (listed := tree.parts(cotangents)) is not None:
        if len(listed) != 1:
            bad_value(f"gradients: there are 1 ys and {len(listed)} cotangents")
        ys = [ys]
    given = tree.matched("gradients: cotangents", cotangents, ys)
    return [_seed(y, c) for y, c in zip(outputs, given, strict=True)]


def _seed(y: Tensor, cotangent: Any) -> Tensor | None:
    if cotangent is None:
        return None
    if isinstance(cotangent, (int, float)):
        return _core.ops.full(list(y.shape), float(cotangent), y.dtype)
    if not isinstance(cotangent, Tensor):
        bad_type(
            f"gradients: a cotangent must be a Tensor, a number or None, got {type(cotangent).__name__}"
        )
    if tuple(cotangent.shape) != tuple(y.shape):
        bad_value(
            f"gradients: a cotangent must have the shape of its y, {list(y.shape)}, but has "
            f"{list(cotangent.shape)}"
        )
    return cotangent if cotangent.dtype == y.dtype else cotangent.astype(y.dtype)
