"""Jacobians, Hessians and products with them.

A Jacobian's rows (or columns) come from one recording of the function: its derivative along one unit
vector, recorded for an example of them and made over all (gradcell/derivatives/batching.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments, tree
from gradcell.base.errors import bad_type, bad_value
from gradcell.base.signposts import explains_arguments
from gradcell.compilation.compiled import cache_for, function_name, run
from gradcell.derivatives.batching import in_vmap, moved_axis, over_examples
from gradcell.derivatives.checks import (
    aux_of,
    check_argument,
    check_directions,
    check_outputs,
    check_positions,
    check_real,
    check_weights,
    tensors_of,
)
from gradcell.tensors.parameter import Parameter

__all__ = ["hessian", "hvp", "jacfwd", "jacrev", "linearize"]

_ops = _core.ops

#: Up to how many rows (or columns) each is recorded by itself: they share most with the function, and
#: those that nobody picks are never computed. Under vmap the examples make products large enough, and
#: all rows run beside the function, in its tiles; without, one product of all rows is faster.
ONE_BY_ONE, ONE_BY_ONE_IN_VMAP = 4, 32


def _unit(shape: Sequence[int], k: int, dtype: Any) -> Tensor:
    """The k-th unit vector of the space of this shape."""
    one = _ops.full([1] * len(shape), 1, dtype)
    start = []
    for n in reversed(shape):
        start.append(k % n)
        k //= n
    return _ops.slice_scatter(one, list(shape), start[::-1], [1] * len(shape))


def _units(x: Tensor) -> Tensor:
    """All of them, one after the other: [x.size, *x.shape]."""
    square = [x.size, x.size]
    equal = _ops.equal(_ops.iota(square, _core.int32, 0), _ops.iota(square, _core.int32, 1))
    return _ops.reshape(_ops.cast(equal, x.dtype), [x.size, *x.shape])


def _along_units(
    fn: Callable[[Tensor], list[Tensor]], x: Tensor, like: Sequence[Tensor]
) -> list[Tensor]:
    """fn, linear, of every unit vector of x's space: for each of its outputs, of the shapes of
    `like`, [x.size, *shape]."""
    if x.size <= (ONE_BY_ONE_IN_VMAP if in_vmap() else ONE_BY_ONE):
        parts = [fn(_unit(x.shape, k, x.dtype)) for k in range(x.size)]
        if not parts:
            return [_ops.full([0, *t.shape], 0, t.dtype) for t in like]
        return [
            _ops.concat([_ops.reshape(p, [1, *p.shape]) for p in column], 0)
            for column in zip(*parts, strict=True)
        ]
    over = over_examples(lambda e: fn(e[0]), [_units(x)])
    return [
        _ops.full([x.size, *t.shape], 0, t.dtype) if o is None else o
        for o, t in zip(over, like, strict=True)
    ]


def _rows(y: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    """d y / d x for each input x, by reverse mode: [*y.shape, *x.shape]."""
    found = _along_units(lambda e: _core.adjoint([y], [e], inputs), y, inputs)
    return [_ops.reshape(f, [*y.shape, *x.shape]) for f, x in zip(found, inputs, strict=True)]


def _columns(outputs: list[Tensor], x: Tensor) -> list[Tensor]:
    """d y / d x for each output y, by forward mode: [*y.shape, *x.shape]."""
    found = _along_units(lambda e: _core.tangent(outputs, [x], [e]), x, outputs)
    return [
        _ops.reshape(moved_axis(f, 0, y.ndim), [*y.shape, *x.shape])
        for f, y in zip(found, outputs, strict=True)
    ]


def _jacobian(
    name: str,
    fn: Any,
    grad_position: Any,
    has_aux: bool,
    blocks: Callable[[list[Tensor], list[Tensor]], list[list[Tensor]]],
) -> Callable[..., Any]:
    """blocks: for each output, what it gives for each input."""
    arguments.function(fn, name)
    positions = check_positions(grad_position)
    arguments.boolean(has_aux, name, "has_aux")

    def record(*args: Any) -> Any:
        full = list(args)
        inputs: list[Tensor] = []
        try:
            for p in positions:
                full[p] = _core.alias(args[p])
                inputs.append(_core.record(full[p]))  # fn may write into its own
            out = fn(*full)
            target, aux = aux_of(out) if has_aux else (out, None)
            outputs = tree.leaves(target)
            check_outputs(function_name(fn), outputs)
            check_real(name, [*inputs, *outputs])
            rows = [r[0] if len(r) == 1 else tuple(r) for r in blocks(outputs, inputs)]
        finally:
            _core.dissolve(inputs)
        found = _filled(target, iter(rows))
        return (found, aux) if has_aux else found

    cache = cache_for(fn, (name, positions, has_aux))

    def jacobian(*args: Any) -> Any:
        for p in positions:
            if p >= len(args):
                bad_value(
                    f"{name}: the element in grad_position must belong to [0, {len(args)}), the number of "
                    f"arguments, but got {p}: grad_position {p} is too large"
                )
            x = arguments.tensor(args[p], name, f"argument {p}")
            if not x.dtype.is_floating:
                bad_type(
                    f"{name}: cannot differentiate with respect to argument {p} of dtype {x.dtype}; cast it "
                    "to a floating dtype"
                )
        return run(record, args, {}, cache)

    return functools.update_wrapper(jacobian, fn, updated=())


def _filled(target: Any, rows: Any) -> Any:
    """The outputs' tree with the next of rows for each tensor; a list becomes a tuple."""
    if isinstance(target, Tensor):
        return next(rows)
    found = tree.parts(target)
    if found is None:
        return target
    items = [_filled(t, rows) for t in found]
    return tuple(items) if type(target) is list else tree.rebuilt(target, items)


@explains_arguments
def jacfwd(fn: Any, grad_position: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the Jacobian of fn, column by column in forward mode: fast for few
    inputs.

    The result has the shape of the output followed by the shape of the input. For several positions
    it is a tuple of Jacobians, and for several outputs a tuple of that. has_aux: only fn's first
    output is differentiated, and the result is (Jacobian, second output), or has a tuple if there
    are several others.

    Raises TypeError for an argument that is not a floating tensor, ValueError for positions beyond
    the arguments, or if fn has only one output with has_aux.
    """

    def blocks(outputs: list[Tensor], inputs: list[Tensor]) -> list[list[Tensor]]:
        by_input = [_columns(outputs, x) for x in inputs]
        return [list(row) for row in zip(*by_input, strict=True)]

    return _jacobian("jacfwd", fn, grad_position, has_aux, blocks)


@explains_arguments
def jacrev(fn: Any, grad_position: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the Jacobian of fn, row by row in reverse mode: fast for few outputs.

    The result has the shape of the output followed by the shape of the input. For several positions
    it is a tuple of Jacobians, and for several outputs a tuple of that. has_aux: only fn's first
    output is differentiated, and the result is (Jacobian, second output), or has a tuple if there
    are several others.

    Raises TypeError for an argument that is not a floating tensor, ValueError for positions beyond
    the arguments, or if fn has only one output with has_aux.
    """
    return _jacobian(
        "jacrev", fn, grad_position, has_aux,
        lambda outputs, inputs: [_rows(y, inputs) for y in outputs],
    )  # fmt: skip


@explains_arguments
def hessian(fn: Any, grad_position: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives fn's second derivatives, forward over reverse mode.

    The result has the shape of the output followed by twice the shape of the input. For several
    positions it is a tuple of tuples: [i][j] with respect to argument i and then j.

    fn: a function of tensors. grad_position: the index, or a tuple of indices, of the arguments to
    differentiate with respect to. has_aux: only fn's first output is differentiated, and the result
    is (second derivatives, second output).

    Raises TypeError for an argument that is not a floating tensor, ValueError for positions beyond
    the arguments, or if fn has only one output with has_aux.
    """
    return jacfwd(jacrev(fn, grad_position, has_aux), grad_position, has_aux)


# Products -------------------------------------------------------------------------------------------


def hvp(fn: Any, inputs: Any, v: Any, weights: Any = None) -> tuple[Any, Any]:
    """The product of fn's Hessian with a vector, without making the Hessian (forward over reverse
    mode): (fn(inputs), product).

    fn: a function that gives a scalar; of more elements, the sum is differentiated. inputs: a
    tensor or a tuple of tensors. v: the vector, with the shapes and dtypes of inputs; the product
    has them too. weights: a Parameter, or a list or tuple of them: v and the product then belong to
    these instead of inputs.

    Raises TypeError for anything that is not a tensor, ValueError where shapes or dtypes differ.
    """
    arguments.function(fn, "hvp")
    xs, vs = tensors_of("hvp", "inputs", inputs), tensors_of("hvp", "v", v)
    parameters = [] if weights is None else check_weights(weights)
    check_directions("hvp", parameters if weights is not None else xs, vs)
    if weights is None:
        for i in range(len(xs)):
            check_argument("hvp", xs, i)

    def record(*both: Tensor) -> Any:
        args = list(both[: len(xs)])
        wrt: list[Tensor] = []
        try:
            if weights is None:
                args = [_core.alias(x) for x in args]
                wrt += [_core.record(x) for x in args]
            else:
                wrt += [_core.push_alias(p) for p in parameters]
            out = fn(*args)
            outputs = tree.leaves(out)
            check_outputs(function_name(fn), outputs)
            gradients = _core.adjoint(outputs, [None] * len(outputs), wrt)
            found = _core.tangent(gradients, wrt, list(both[len(xs) :]))
        finally:
            _core.dissolve(wrt)
        single = isinstance(v, Tensor)
        return out, found[0] if single else tuple(found)

    key = ("hvp", len(xs), isinstance(v, Tensor), _identities(weights, parameters))
    return run(record, (*xs, *vs), {}, cache_for(fn, key))  # type: ignore[no-any-return]


def _identities(weights: Any, parameters: Sequence[Parameter]) -> Any:
    return None if weights is None else tuple(p._variable_id() for p in parameters)


def linearize(fn: Any, inputs: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of a function and its derivative at one point as a linear function: (fn(inputs),
    jvp_fn), where jvp_fn(v) is the Jacobian times v.

    fn is recorded, and the factors of its derivative are computed once; each jvp_fn(v) then runs
    only what depends on v. If the rule of a custom_jvp asks for values of a tangent, each jvp_fn(v)
    runs fn and the rule again.

    inputs: a tensor, or a tuple or list of tensors; v must have their shapes and dtypes.

    Raises TypeError for anything that is not a tensor, ValueError where they differ.
    """
    arguments.function(fn, "linearize")
    xs = tensors_of("linearize", "inputs", inputs)

    def record(*both: Tensor) -> tuple[Any, list[Tensor], Any]:
        given = [_core.alias(x) for x in both[: len(xs)]]
        wrt = [_core.record(x) for x in given]
        try:
            out = fn(*given)
            outputs = tree.leaves(out)
            check_outputs(function_name(fn), outputs)
            moved = _core.tangent(outputs, wrt, list(both[len(xs) :]))
        finally:
            _core.dissolve(wrt)
        return out, moved, out

    def shaped(out: Any, moved: Sequence[Tensor]) -> Any:
        found = iter(moved)
        return tree.map_leaves(lambda _: next(found), out)

    def again(vs: list[Tensor]) -> Any:
        same, moved, _ = record(*xs, *vs)
        return shaped(same, moved)

    if _core.in_trace():
        out = fn(*map(_core.record, xs))  # it may write into its arguments

        def inside(v: Any) -> Any:
            vs = tensors_of("linearize", "v", v)
            check_directions("linearize", xs, vs)
            return again(vs)

        return out, inside

    def body(trace: _core.Trace) -> tuple[Any, _core.Compiled | None]:
        directions = [trace.unknown(x) for x in xs]
        try:
            out, moved, _ = record(*xs, *directions)
        except ValueError:
            if not trace.asked_for_unknown:
                raise
            return None, None
        linear = trace.remainder(moved, directions)
        trace.finish(tree.leaves(out))
        return out, linear

    out, linear = _core.with_trace(body)
    if linear is None:
        out = run(fn, tuple(xs), {}, None, True)

    def jvp_fn(v: Any) -> Any:
        vs = tensors_of("linearize", "v", v)
        check_directions("linearize", xs, vs)
        if _core.in_trace():
            return again(vs)
        if linear is None:
            return run(lambda *vs: again(list(vs)), tuple(vs), {}, None, True)
        return shaped(out, linear.run(vs))

    return out, jvp_fn
