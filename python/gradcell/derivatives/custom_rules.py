"""custom_vjp and custom_jvp: functions with custom derivative rules, as in JAX."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value, fail, tree, where, with_tensors
from gradcell.base.remade import name_of
from gradcell.compilation.compiled import run_traced
from gradcell.derivatives.own_derivatives import Pullback, Tensors, call, defined_at, filled, fitted

__all__ = ["custom_jvp", "custom_vjp"]


class _Rule:
    """Base class of custom_vjp and custom_jvp: the function, and which arguments have a derivative."""

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        kind = type(self).__name__
        if not callable(fun):
            bad_type(f"{kind}: expected a function, got {type(fun).__name__}")
        if isinstance(nondiff_argnums, int):
            nondiff_argnums = (nondiff_argnums,)
        self.fun = fun
        self.nondiff: tuple[int, ...] = tuple(nondiff_argnums)
        functools.update_wrapper(self, fun)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return name_of(self) or super().__reduce_ex__(protocol)

    def _rule_of(self, values: Any, args: list[Any], name: str) -> Any:
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result; in a derivative, the rule's part of it."""
        return run_traced(self._record, with_tensors(args), with_tensors(kwargs))

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        try:
            bound = inspect.signature(self.fun).bind(*args, **kwargs)
        except ValueError:  # a builtin without a signature
            return list(args)
        bound.apply_defaults()
        if bound.kwargs:
            bad_type(
                f"{type(self).__name__} {defined_at(self.fun)}: arguments by keyword alone have no derivative"
            )
        return list(bound.args)

    def _record(self, *args: Any, **kwargs: Any) -> Any:
        given = self._positional(args, kwargs)
        for i in self.nondiff:
            if not 0 <= i < len(given):
                bad_value(
                    f"{type(self).__name__}: nondiff_argnums {i} is not one of the {len(given)} arguments of "
                    f"{defined_at(self.fun)}"
                )
        differentiable = [x for i, x in enumerate(given) if i not in self.nondiff]
        inputs = [_core.record(x) for x in tree.leaves(differentiable)]  # it may write into them
        out = self.fun(*given)
        values = tree.leaves(out)
        name = f"{type(self).__name__} {defined_at(self.fun)}"
        rule = self._rule_of(out, given, name)  # (raises if there is none yet)
        if _core.differentiated(values, inputs):
            bad_value(
                f"{name} uses a tensor or Parameter that is being differentiated, but is not one of its "
                "arguments, so its rule gives no derivative: make it an argument"
            )
        if not inputs or not values:
            return out
        return tree.refill(tree.outline(out), call(values, inputs, rule))

    def _arranged(self, static: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
        """All arguments: those in nondiff_argnums, and those that are differentiated by."""
        full = list(parts)
        for place, x in sorted(zip(self.nondiff, static, strict=True), key=lambda pair: pair[0]):
            full.insert(place, x)
        return full

    def _known(self, given: list[Any]) -> tuple[Any, tuple[Any, ...]]:
        """An outline of the arguments that are differentiated by, and the others."""
        parts = [x for i, x in enumerate(given) if i not in self.nondiff]
        return tree.outline(parts), tuple(given[i] for i in self.nondiff)


class custom_vjp(_Rule):
    """A function with a custom reverse-mode derivative.

        @gradcell.custom_vjp
        def f(x, y): return ...

        def f_fwd(x, y): return f(x, y), (x, y)          # the output, and what the derivative needs
        def f_bwd(residuals, dout): return dx, dy        # a cotangent for each argument, or None
        f.defvjp(f_fwd, f_bwd)

    Arguments and outputs may be trees of tensors; arguments in nondiff_argnums have no derivative and
    come first when bwd is called. f_fwd runs when a derivative is asked for. Derivatives of higher order
    differentiate f_fwd's residuals and f_bwd; forward mode takes the transpose of f_bwd, which must be
    linear in dout for that. Named and behaving as in JAX.

    Calling it raises AttributeError before defvjp, ValueError if the function uses a value that is
    being differentiated without taking it as an argument; its derivative TypeError if f_fwd does not return
    a pair of output and residuals, RuntimeError if f_bwd gives another number or other shapes than the
    arguments have.

    fun: the function that gets the rule.
    """

    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> custom_vjp:
        """Sets the rule. Returns itself."""
        for f in (fwd, bwd):
            if not callable(f):
                bad_type(f"defvjp: expected functions, got {type(f).__name__}")
        self.fwd, self.bwd = fwd, bwd
        return self

    def _rule_of(self, out: Any, given: list[Any], name: str) -> Pullback:
        fwd, bwd = self.fwd, self.bwd
        if fwd is None or bwd is None:
            raise AttributeError(f"{name} has no rule yet: call defvjp(fwd, bwd){where()}")
        shape_out = tree.outline(out)
        parts, static = self._known(given)

        def pull(
            inputs: list[Tensor], outputs: list[Tensor], cotangents: Tensors, _: Any, static: Any
        ) -> Tensors:
            made = fwd(*self._arranged(static, tree.refill(parts, inputs)))
            if not isinstance(made, tuple) or len(made) != 2:
                bad_type(
                    f"{name}: {defined_at(fwd)} must give (output, residuals), a tuple of two, got "
                    f"{type(made).__name__}{f' of {len(made)}' if isinstance(made, tuple) else ''}"
                )
            if not tree.same_structure(made[0], tree.refill(shape_out, outputs)):
                bad_type(
                    f"{name}: the output of {defined_at(fwd)} does not have the structure of the function's "
                    "output"
                )
            dout = tree.refill(shape_out, filled(cotangents, outputs))
            found = bwd(*static, made[1], dout)
            count = len(parts)
            if not isinstance(found, (tuple, list)):
                found = (found,)
            if len(found) != count:
                fail(
                    f"{name}: {defined_at(bwd)} must give a gradient for each of {count} arguments, got "
                    f"{len(found)}"
                )
            return gradients_of(found, parts, inputs, f"{name}: {defined_at(bwd)}")

        return Pullback(name, pull, static)


def gradients_of(
    found: Any, outline: Any, inputs: Sequence[Tensor], who: str
) -> list[Tensor | None]:
    """The gradients by the tensors of a tree, given in a tree like it: None stands for all below.

    Raises RuntimeError where the trees differ.
    """
    made: list[Tensor | None] = []
    _collect(tree.refill(outline, [_Wanted(x) for x in inputs]), found, who, made)
    return made


def _collect(wanted: Any, got: Any, who: str, made: list[Tensor | None]) -> None:
    # (No function inside gradients_of: one that calls itself would keep the tensors for a while.)
    if isinstance(wanted, _Wanted):
        made.append(fitted(got, wanted.tensor, who, len(made)))
    elif (parts := tree.parts(wanted)) is not None:
        if isinstance(wanted, dict) and isinstance(got, dict):
            got = [got.get(key) for key in wanted]
        elif not isinstance(got, Tensor):
            found = None if isinstance(got, dict) else tree.parts(got)
            got = [None] * len(parts) if found is None else found
        else:
            got = [got]
        if len(got) != len(parts):
            fail(f"{who} gave {len(got)} gradients for {len(parts)} tensors of one argument")
        for w, g in zip(parts, got, strict=True):
            _collect(w, g, who, made)


class _Wanted:
    """A tensor in a tree of arguments: no tensor itself, so that trees take it for a leaf."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class custom_jvp(_Rule):
    """A function with a custom forward-mode derivative.

        @gradcell.custom_jvp
        def f(x, y): return ...

        @f.defjvp
        def f_jvp(primals, tangents): return output, tangent

    or f.defjvps(lambda dx, out, x, y: ..., lambda dy, out, x, y: ...), a term for each argument. Reverse
    mode takes the transpose, for which the tangent must be linear in the given ones. nondiff_argnums as
    in custom_vjp; tangents of what does not change are zeros. Named and behaving as in JAX.

    Calling it raises AttributeError before defjvp, ValueError if the function uses a value that is
    being differentiated without taking it as an argument; its derivative TypeError if the rule
    does not return a pair of output and tangent, RuntimeError for a tangent of another shape than
    the output's.

    fun: the function that gets the rule.
    """

    jvp: Callable[..., Any] | None = None

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the rule. Returns it, so that it can be a decorator."""
        if not callable(jvp):
            bad_type(f"defjvp: expected a function, got {type(jvp).__name__}")
        self.jvp = jvp
        return jvp

    def defjvps(self, *terms: Callable[..., Any] | None) -> None:
        """Sets the rule as a sum: for each argument a function of (its tangent, output, arguments), or
        None for zero."""

        def jvp(*args: Any) -> Any:
            *before, primals, tangents = args
            out = self.fun(*self._arranged(before, primals))
            if len(terms) != len(primals):
                fail(
                    f"defjvps of {defined_at(self.fun)}: {len(terms)} terms for {len(primals)} arguments"
                )
            total: Any = None
            for term, t in zip(terms, tangents, strict=True):
                if term is not None:
                    part = term(t, out, *primals)
                    total = part if total is None else total + part
            return out, total

        self.jvp = jvp

    def _rule_of(self, out: Any, given: list[Any], name: str) -> Any:
        jvp = self.jvp
        if jvp is None:
            raise AttributeError(f"{name} has no rule yet: call defjvp(rule){where()}")
        parts, static = self._known(given)
        return _Pushforward(name, jvp, parts, static, out)


class _Pushforward(Pullback):
    """The rule of a call whose function gives tangents."""

    adjoint = None  # type: ignore[assignment]

    def __init__(self, name: str, jvp: Any, parts: Any, static: Any, out: Any) -> None:
        super().__init__(name, jvp, static)
        self.jvp, self.parts, self.shape_out = jvp, parts, tree.outline(out)

    def tangent(  # type: ignore[override]
        self, inputs: list[Tensor], outputs: list[Tensor], tangents: Tensors, kept: list[Tensor]
    ) -> Tensors:
        """Return the tangents of the outputs, for the core."""
        primals = tuple(tree.refill(self.parts, inputs))
        moved = tuple(tree.refill(self.parts, filled(tangents, inputs)))
        made = self.jvp(*tree.refill(self.outline, kept), primals, moved)
        if not isinstance(made, tuple) or len(made) != 2:
            bad_type(
                f"{self.name}: {defined_at(self.jvp)} must give (output, tangent), a tuple of two, got "
                f"{type(made).__name__}"
            )
        found = tree.matched(
            f"{self.name}: tangents of {defined_at(self.jvp)}", made[1], self.shape_out
        )
        checked = []
        for k, (t, y) in enumerate(zip(found, outputs, strict=True)):
            if t is not None and list(t.shape) != list(y.shape):
                fail(
                    f"{self.name}: tangent {k} of {defined_at(self.jvp)} should be of shape {list(y.shape)}, "
                    f"but got {list(t.shape)}"
                )
            if t is not None and t.dtype != y.dtype:
                t = _core.ops.cast(t, y.dtype)
            checked.append(t if y.dtype.is_floating else None)
        return checked
