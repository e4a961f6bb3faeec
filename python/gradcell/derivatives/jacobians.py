"""Jacobians, Hessians and products with them.

A Jacobian's rows (or columns) come from one recording of the function: its derivative along one unit
vector, recorded for an example of them and made over all (gradcell/derivatives/batching.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import Made, arguments, explains_arguments, transform, tree
from gradcell.derivatives.batching import in_vmap, moved_axis, over_examples
from gradcell.derivatives.differentiating import By, Call, Given, No, P, R, Several, transformed

__all__ = ["hessian", "hvp", "jacfwd", "jacrev", "linearize"]


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
    weights: Any,
    blocks: Callable[[list[Tensor], list[Tensor]], list[list[Tensor]]],
) -> Callable[..., Any]:
    """blocks: for each output, what it gives for each variable."""
    arguments.function(fn, name)
    by = By(name, fn, grad_position, weights, has_aux)

    def record(*args: Any, **kwargs: Any) -> Any:
        with Call(by, args, kwargs) as call:
            rows = [call.arranged(row) for row in blocks(call.outputs, call.wrt)]
        return call.with_aux(_filled(call.target, iter(rows)))

    return transformed(by, None, record)


def _filled(target: Any, rows: Any) -> Any:
    """The outputs' tree with the next of rows for each tensor; a list becomes a tuple."""
    if isinstance(target, Tensor):
        return next(rows)
    found = tree.parts(target)
    if found is None:
        return target
    items = [_filled(t, rows) for t in found]
    return tuple(items) if type(target) is list else tree.rebuilt(target, items)


@overload
def jacfwd(
    fn: Callable[P, Tensor], grad_position: int = 0, has_aux: No = False, weights: None = None
) -> Callable[P, Tensor]: ...
@overload
def jacfwd(
    fn: Callable[P, Tensor], grad_position: Several, has_aux: No = False, weights: None = None
) -> Callable[P, tuple[Tensor, ...]]: ...
@overload
def jacfwd(
    fn: Callable[P, Any], grad_position: Any = 0, has_aux: bool = False, weights: Any = None
) -> Callable[P, Any]: ...
@transform()
@explains_arguments
def jacfwd(
    fn: Any, grad_position: Any = 0, has_aux: bool = False, weights: Any = None
) -> Callable[..., Any]:
    """A function that gives the Jacobian of fn, column by column in forward mode: fast for few
    inputs.

    The result has the shape of the output followed by the shape of the input. For several positions
    it is a tuple of Jacobians, and for several outputs a tuple of that; by a tree of tensors it is a
    tree. has_aux: only fn's first output is differentiated, and the result is (Jacobian, second
    output), or has a tuple if there are several others. weights: a Parameter, or a list or tuple of
    them, to differentiate by too, or with grad_position None instead: their Jacobians come as the
    gradients of grad do.

    Raises TypeError for an argument that is not a floating tensor, IndexError (which is a ValueError too)
    for positions beyond the arguments, ValueError if fn has only one output with has_aux.
    """

    def blocks(outputs: list[Tensor], inputs: list[Tensor]) -> list[list[Tensor]]:
        by_input = [_columns(outputs, x) for x in inputs]
        return [list(row) for row in zip(*by_input, strict=True)]

    return _jacobian("jacfwd", fn, grad_position, has_aux, weights, blocks)


@overload
def jacrev(
    fn: Callable[P, Tensor], grad_position: int = 0, has_aux: No = False, weights: None = None
) -> Callable[P, Tensor]: ...
@overload
def jacrev(
    fn: Callable[P, Tensor], grad_position: Several, has_aux: No = False, weights: None = None
) -> Callable[P, tuple[Tensor, ...]]: ...
@overload
def jacrev(
    fn: Callable[P, Any], grad_position: Any = 0, has_aux: bool = False, weights: Any = None
) -> Callable[P, Any]: ...
@transform()
@explains_arguments
def jacrev(
    fn: Any, grad_position: Any = 0, has_aux: bool = False, weights: Any = None
) -> Callable[..., Any]:
    """A function that gives the Jacobian of fn, row by row in reverse mode: fast for few outputs.

    The result has the shape of the output followed by the shape of the input. For several positions
    it is a tuple of Jacobians, and for several outputs a tuple of that; by a tree of tensors it is a
    tree. has_aux: only fn's first output is differentiated, and the result is (Jacobian, second
    output), or has a tuple if there are several others. weights: a Parameter, or a list or tuple of
    them, to differentiate by too, or with grad_position None instead: their Jacobians come as the
    gradients of grad do.

    Raises TypeError for an argument that is not a floating tensor, IndexError (which is a ValueError too)
    for positions beyond the arguments, ValueError if fn has only one output with has_aux.
    """
    return _jacobian(
        "jacrev", fn, grad_position, has_aux, weights,
        lambda outputs, inputs: [_rows(y, inputs) for y in outputs],
    )  # fmt: skip


@overload
def hessian(
    fn: Callable[P, Tensor], grad_position: int = 0, has_aux: No = False, weights: None = None
) -> Callable[P, Tensor]: ...
@overload
def hessian(
    fn: Callable[P, Tensor], grad_position: Several, has_aux: No = False, weights: None = None
) -> Callable[P, tuple[tuple[Tensor, ...], ...]]: ...
@overload
def hessian(
    fn: Callable[P, Any], grad_position: Any = 0, has_aux: bool = False, weights: Any = None
) -> Callable[P, Any]: ...
@transform()
@explains_arguments
def hessian(
    fn: Any, grad_position: Any = 0, has_aux: bool = False, weights: Any = None
) -> Callable[..., Any]:
    """A function that gives fn's second derivatives, forward over reverse mode.

    The result has the shape of the output followed by twice the shape of the input. For several
    positions it is a tuple of tuples: [i][j] with respect to argument i and then j.

    fn: a function of tensors. grad_position: the index, or a tuple of indices, of the arguments to
    differentiate with respect to. has_aux: only fn's first output is differentiated, and the result
    is (second derivatives, second output). weights: Parameters to differentiate by, as in jacrev.

    Raises what jacrev does.
    """
    return jacfwd(jacrev(fn, grad_position, has_aux, weights), grad_position, has_aux, weights)


# Products -------------------------------------------------------------------------------------------


@overload
def hvp(
    fn: Callable[..., R],
    inputs: Any,
    v: Tensor,
    weights: Any = None,
    has_aux: No = False,
    **kwargs: Any,
) -> tuple[R, Tensor]: ...
@overload
def hvp(
    fn: Callable[..., R],
    inputs: Any,
    v: Sequence[Tensor],
    weights: Any = None,
    has_aux: No = False,
    **kwargs: Any,
) -> tuple[R, tuple[Tensor, ...]]: ...
@overload
def hvp(
    fn: Callable[..., R],
    inputs: Any,
    v: Any,
    weights: Any = None,
    has_aux: No = False,
    **kwargs: Any,
) -> tuple[R, Any]: ...
@overload
def hvp(
    fn: Callable[..., Any],
    inputs: Any,
    v: Any,
    weights: Any = None,
    has_aux: bool = False,
    **kwargs: Any,
) -> tuple[Any, ...]: ...
def hvp(
    fn: Any, inputs: Any, v: Any, weights: Any = None, has_aux: bool = False, **kwargs: Any
) -> tuple[Any, ...]:
    """The product of fn's Hessian with a vector, without making the Hessian (forward over reverse
    mode): (fn(inputs), product).

    fn: a function that gives a scalar; several elements are summed. inputs: the
    arguments, a tuple of tensors and trees of them, or the only one. v: the vector, with the structure,
    shapes and dtypes of inputs; the product has them too. weights: a Parameter, or a list or tuple of
    them: v and the product then belong to these instead of inputs. has_aux: only fn's first output is
    differentiated, and the result is (value, product, second output), or has a tuple of several. kwargs:
    fn's arguments by name, which stay as they are.

    Raises TypeError for anything that is not a floating tensor, ValueError where shapes or dtypes differ.
    """
    by = Given("hvp", fn, inputs, weights, has_aux)
    v = by.directions(v)

    def record(xs: tuple[Any, ...], v: Any, **kwargs: Any) -> Any:
        with Call(by, xs, kwargs) as call:
            gradients = _core.adjoint(call.outputs, [None] * len(call.outputs), call.wrt)
            found = iter(_core.tangent(gradients, call.wrt, tree.leaves(v)))
        product = tree.map_leaves(lambda _: next(found), v)
        return call.valued(tuple(product) if type(product) is list else product)

    return by.run(None, record, by.inputs, v, **kwargs)  # type: ignore[no-any-return]


@overload
def linearize(
    fn: Callable[..., R], inputs: Any, weights: Any = None, has_aux: No = False, **kwargs: Any
) -> tuple[R, Callable[[Any], R]]: ...
@overload
def linearize(
    fn: Callable[..., Any], inputs: Any, weights: Any = None, has_aux: bool = False, **kwargs: Any
) -> tuple[Any, ...]: ...
@transform(part=1)
def linearize(
    fn: Any, inputs: Any, weights: Any = None, has_aux: bool = False, **kwargs: Any
) -> tuple[Any, ...]:
    """The value of a function and its derivative at one point as a linear function: (fn(inputs),
    jvp_fn), where jvp_fn(v) is the Jacobian times v.

    fn is recorded, and the factors of its derivative are computed once; each jvp_fn(v) then runs
    only what depends on v. If the rule of a custom_jvp asks for values of a tangent, each jvp_fn(v)
    runs fn and the rule again.

    inputs: the arguments, a tuple of tensors and trees of them, or the only one; v must have their shapes
    and dtypes. weights: a Parameter, or a list or tuple of them, to which v belongs instead. has_aux: only
    fn's first output is differentiated, and the result is (value, jvp_fn, second output), or has a tuple of
    several. kwargs: fn's arguments by name, which stay as they are.

    Raises TypeError for anything that is not a tensor, ValueError where they differ.
    """
    by = Given("linearize", fn, inputs, weights, has_aux)
    by.integer_inputs = True

    def record(xs: tuple[Any, ...], alone: bool, **kwargs: Any) -> Any:
        with Call(by, xs, kwargs) as call:
            value = call.valued()
            if not alone:
                return value, [], None
            directions = list(map(_core.unknown, call.wrt))
            try:
                moved = _core.tangent(call.outputs, call.wrt, directions)
            except ValueError:
                if not _core.asked_for_unknown():
                    raise
                return value, [], None
        rest, factors = _core.remainder(moved, directions)
        return value, factors, rest

    def again(xs: tuple[Any, ...], v: Any, **kwargs: Any) -> Any:
        with Call(by, xs, kwargs) as call:
            moved = _core.tangent(call.outputs, call.wrt, tree.leaves(v))
        return tree.refill(outline, moved)

    (out, *aux), factors, rest = by.run("value", record, by.inputs, not _core.in_trace(), **kwargs)
    outline = tree.outline(out)

    def jvp_fn(v: Any) -> Any:
        v = by.directions(v)
        if rest is None or _core.in_trace():
            return by.run("again", again, by.inputs, v, **kwargs)
        return tree.refill(outline, rest.run([*tree.leaves(v), *factors]))

    return out, Made(jvp_fn), *aux
