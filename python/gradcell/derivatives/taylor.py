"""Derivatives in forward mode, all orders in one pass: Taylor series, Laplacians and their kin.

A function is recorded once; truncated power series then go through the recorded graph, each op's
recurrence coming from its derivative (csrc/ad/series.h). The results are nodes like all others: they
can be differentiated again, by parameters too, and share what the function itself computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from gradcell import _core, dtype as dtypes
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_index, bad_type, bad_value, door, transform, tree
from gradcell.derivatives.differentiating import By, Call, Given, No, P, R, transformed

__all__ = ["biharmonic", "derivative", "divergence", "jet", "laplacian", "partials"]


#: How many elements of a tensor whose rows are combined a Laplacian is taken over without asking.
MOST_DIRECTIONS = 1024

Rule = Callable[[list[Tensor], list[Tensor]], list[Any]]


def _along(call: Call, rule: Rule) -> Any:
    """Apply `rule` to the call's outputs and variables; returns a list with one result for each
    output."""
    return rule([_core.record(t) for t in call.outputs], call.wrt)


# Series ---------------------------------------------------------------------------------------------

_TYPES = "`mstype.int32, mstype.int64, mstype.float32, mstype.float64`"


def _floating(name: str, what: str, x: Any, like: Any = None) -> Tensor:
    """A tensor of one of the dtypes that MindSpore takes, integers as float32."""
    if not isinstance(x, Tensor):
        bad_type(f"For 'F.{name}', the {what} must be Tensor, got {type(x).__name__}")
    known = x.dtype in (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)
    if not known or (like is not None and x.dtype != like.dtype):
        one = "the elements' types of primals and series must be the same and"
        bad_type(
            f"For `F.{name}`, {one if name == 'jet' else 'the elements of primals must'} belong to {_TYPES}, "
            f"but got {x.dtype}{'' if like is None else f' beside {like.dtype}'}"
        )
    return x if x.dtype.is_floating else x.astype(dtypes.float32)


def _series_of(primal: Any, series: Any) -> tuple[Tensor, Tensor]:
    """Both as floating tensors; the series with its dimension of orders."""
    x = _floating("jet", "primals", primal)
    s = _floating("jet", "series", series, primal)
    if tuple(s.shape) == tuple(x.shape):
        s = _ops.reshape(s, [1, *x.shape])
    if tuple(s.shape[1:]) != tuple(x.shape) or s.ndim == 0:
        bad_value(
            f"In series, the shape of each element must be the same as the primals. Got {list(series.shape)} "
            f"for {list(x.shape)}"
        )
    return x, s


def _taylor(
    name: str,
    fn: Any,
    primals: list[Tensor],
    series: list[Tensor] | None,
    order: int,
    wanted: list[int],
    kwargs: dict[str, Any],
) -> Any:
    """fn's output and its derivatives of the orders `wanted` stacked; lists of several outputs'."""
    by = Given(name, fn, tuple(primals))

    def record(xs: Any, series: Any, **kwargs: Any) -> Any:
        def rule(outputs: list[Tensor], wrt: list[Tensor]) -> list[Any]:
            if series is None:  # a line along which each argument moves by 1
                given = [[_ops.full(list(x.shape), 1.0, x.dtype)] for x in wrt]
            else:
                given = [_slices(s, x) for s, x in zip(series, wrt, strict=True)]
            return _core.taylor(outputs, wrt, given, order, wanted)

        with Call(by, xs, kwargs) as call:
            found = _along(call, rule)
        values = tree.leaves(call.out)
        results = [_stacked(f, v, series is not None) for f, v in zip(found, values, strict=True)]
        return (values, results) if len(values) > 1 else (values[0], results[0])

    by.complex = False
    return by.run(order, record, by.inputs, series, **kwargs)


def _slices(series: Tensor, x: Tensor) -> list[Tensor]:
    rank = x.ndim
    return [
        _ops.reshape(
            _ops.slice(series, [k] + [0] * rank, [1, *x.shape], [1] * (rank + 1)), list(x.shape)
        )
        for k in range(series.shape[0])
    ]


def _stacked(orders: list[Tensor], like: Tensor, stacked: bool) -> Tensor:
    if not stacked:
        return orders[0]
    if not orders:
        return _ops.full([0, *like.shape], 0, like.dtype)
    return _ops.concat([_ops.reshape(t, [1, *t.shape]) for t in orders], 0)


@overload
def jet(
    fn: Callable[..., Tensor], primals: Any, series: Any, **kwargs: Any
) -> tuple[Tensor, Tensor]: ...
@overload
def jet(
    fn: Callable[..., Any], primals: Any, series: Any, **kwargs: Any
) -> tuple[list[Tensor], list[Tensor]]: ...
def jet(fn: Callable[..., Any], primals: Any, series: Any, **kwargs: Any) -> tuple[Any, Any]:
    """The value of a function and its derivatives along a curve, given the derivatives of the
    curve.

    primals: a tensor, or a tuple of tensors for several arguments. series: the derivatives of orders
    1 to n of what the arguments move along, a tensor [n, *primal.shape] (or of the primal's shape: n is
    1), or a tuple of them. kwargs: fn's arguments by name, which stay as they are. With 1 for the first
    derivative and 0 for the others the results are fn's own. Derivatives, not divided by factorials,
    both in and out.

    Returns fn's output and a tensor [n, *output.shape]; of several outputs two lists. int32 and int64
    become float32.

    Raises TypeError for other dtypes than int32, int64, float32 and float64 or where the two differ,
    ValueError where shapes, orders or numbers of tensors do not fit.
    """
    arguments.function(fn, "jet")
    primals, series = door.numbers_too(primals, fn), door.numbers_too(series, fn)
    if isinstance(primals, Tensor) and isinstance(series, Tensor):
        primals, series = (primals,), (series,)
    elif not (isinstance(primals, tuple) and isinstance(series, tuple)):
        bad_type("For 'F.jet', the 'primals' and `series` must be both Tensor or tuple.")
    if len(primals) != len(series):
        bad_value(
            f"The lengths of primals and series must be the same. Got {len(primals)} and {len(series)}"
        )
    pairs = [_series_of(x, s) for x, s in zip(primals, series, strict=True)]
    orders = {s.shape[0] for _, s in pairs}
    if len(orders) != 1:
        bad_value(f"jet: the series must have equally many orders, got {sorted(orders)}")
    order = orders.pop()
    xs, ss = [x for x, _ in pairs], [s for _, s in pairs]
    return _taylor("jet", fn, xs, ss, order, list(range(1, order + 1)), kwargs)  # type: ignore[no-any-return]


@overload
def derivative(
    fn: Callable[..., Tensor], primals: Any, order: int, **kwargs: Any
) -> tuple[Tensor, Tensor]: ...
@overload
def derivative(
    fn: Callable[..., Any], primals: Any, order: int, **kwargs: Any
) -> tuple[list[Tensor], list[Tensor]]: ...
def derivative(fn: Callable[..., Any], primals: Any, order: int, **kwargs: Any) -> tuple[Any, Any]:
    """(fn(primals), its derivative of that order along the direction of ones), in one pass.

    primals: a tensor, or a tuple of tensors for several arguments, which all move together. For an
    elementwise function it is the derivative of each element. Of several outputs two lists. int32
    and int64 become float32. kwargs: fn's arguments by name, which stay as they are.

    Raises TypeError for other dtypes or an order that is not an int, ValueError for an order below 1.
    """
    arguments.function(fn, "derivative")
    if not isinstance(order, int) or isinstance(order, bool):
        bad_type("For `F.derivative`, the type of order must be int.")
    if order < 1:
        bad_value(f"For `F.derivative`, value of order should not be less than 1, but got {order}.")
    primals = door.numbers_too(primals, fn)
    items = primals if isinstance(primals, tuple) else (primals,)
    if not items:
        bad_value("For `F.derivative`, the primals must not be empty.")
    xs = [_floating("derivative", "primals", x) for x in items]
    return _taylor("derivative", fn, xs, None, order, [order], kwargs)  # type: ignore[no-any-return]


# Sums of derivatives --------------------------------------------------------------------------------


def _transformed(
    name: str,
    fn: Any,
    grad_position: Any,
    has_aux: bool,
    weights: Any,
    key: Any,
    rule: Rule,
    many: bool = False,
) -> Callable[..., Any]:
    """Return the function that applies `rule` to fn, in the structure of fn's output (of its first
    one with has_aux, followed by the others). many: the rule returns a list of such results, which
    become a tuple."""
    arguments.function(fn, name)
    by = By(name, fn, grad_position, weights, has_aux)

    def record(*args: Any, **kwargs: Any) -> Any:
        with Call(by, args, kwargs) as call:
            found = _along(call, rule)
            outline = tree.outline(call.target)
        results = tuple(tree.refill(outline, f) for f in (found if many else [found]))
        return call.with_aux(results if many else results[0])

    return transformed(by, key, record)


def _have_rows(wrt: list[Tensor]) -> bool:
    return all(x.ndim > 0 for x in wrt) and len({x.shape[0] for x in wrt}) == 1


def _laplacian(
    name: str, fn: Any, grad_position: Any, has_aux: bool, weights: Any, twice: bool
) -> Any:
    def rule(outputs: list[Tensor], wrt: list[Tensor]) -> list[Any]:
        order = 4 if twice else 2
        mixing = _core.first_mixing_rows(outputs, wrt, order, False) if _have_rows(wrt) else ""
        size = sum(x.size for x in wrt)
        if mixing and max(x.ndim for x in wrt) > 1 and size > MOST_DIRECTIONS:
            bad_value(
                f"{name}: {mixing} combines rows of arguments of shapes {[list(x.shape) for x in wrt]}, so "
                f"that each row's result depends on all {size} elements. Let the function treat rows one by "
                "one, or give it fewer at a time"
            )
        return _core.laplacian(outputs, wrt, mixing is None, twice)

    return _transformed(name, fn, grad_position, has_aux, weights, None, rule)


@overload
def laplacian(
    fn: Callable[P, R], grad_position: Any = 0, has_aux: No = False, weights: Any = None
) -> Callable[P, R]: ...
@overload
def laplacian(
    fn: Callable[P, Any], grad_position: Any = 0, has_aux: bool = False, weights: Any = None
) -> Callable[P, Any]: ...
@transform()
def laplacian(
    fn: Any, grad_position: Any = 0, has_aux: bool = False, weights: Any = None
) -> Callable[..., Any]:
    """A function that gives the Laplacian of fn, in one pass in forward mode.

    The Laplacian of each element of fn's output is the sum of its second derivatives with respect
    to all elements of the arguments at grad_position (an index or a tuple of them); the result has
    the output's structure and shapes. So fn may be a function of one point, or of a batch of them: [N, d] to
    [N, m], where each row of the output depends on its own row alone, gives the Laplacian in d
    dimensions of each row. The recorded function shows which it is. Rows that do not mix are
    processed together (d directions); where they mix, as in a sum over all rows, the N d
    directions are taken one by one, up to MOST_DIRECTIONS.

    Value, first derivatives and the sum of second derivatives go through fn together, d + 2 numbers
    in place of each, as in R. Li et al., "A computational framework for neural network-based
    variational Monte Carlo with Forward Laplacian", Nature Machine Intelligence 6 (2024) 209.
    has_aux: only fn's first output is taken, and the result is (Laplacian, second output), or has a tuple
    if there are several others. weights: a Parameter, or a list or tuple of them, by whose elements
    derivatives are taken too, or with grad_position None instead.

    Raises TypeError for an argument that is not a floating tensor, IndexError for a position beyond the
    arguments, ValueError where too many rows mix.
    """
    return _laplacian("laplacian", fn, grad_position, has_aux, weights, False)  # type: ignore[no-any-return]


@overload
def biharmonic(
    fn: Callable[P, R], grad_position: Any = 0, has_aux: No = False, weights: Any = None
) -> Callable[P, R]: ...
@overload
def biharmonic(
    fn: Callable[P, Any], grad_position: Any = 0, has_aux: bool = False, weights: Any = None
) -> Callable[P, Any]: ...
@transform()
def biharmonic(
    fn: Any, grad_position: Any = 0, has_aux: bool = False, weights: Any = None
) -> Callable[..., Any]:
    """A function that gives the Laplacian of fn's Laplacian, in one pass. Arguments and errors are
    those of `laplacian`.

    grad_position: the index, or a tuple of indices, of the arguments to differentiate with respect
    to.

    In d dimensions it carries 2 + 2 d + d (d + 1) / 2 numbers, where nested Laplacians carry (d + 2)^2.
    """
    return _laplacian("biharmonic", fn, grad_position, has_aux, weights, True)  # type: ignore[no-any-return]


def _point_size(
    name: str, outputs: list[Tensor], wrt: list[Tensor], batched: bool, order: int, in_place: bool
) -> int:
    """Coordinates of a point. Raises ValueError if points are not what the arguments' rows are, as far as
    derivatives of this order go; in_place: if they are not the outputs' rows either."""
    if not batched:
        return sum(x.size for x in wrt)
    if not _have_rows(wrt):
        bad_value(
            f"{name}: the arguments must contain the same number of points along their first dimension, got "
            f"shapes {[list(x.shape) for x in wrt]}"
        )
    mixing = _core.first_mixing_rows(outputs, wrt, order, in_place)
    if mixing:
        bad_value(
            f"{name}: {mixing} combines rows, or moves them, so that the function has no derivatives by a "
            "row's coordinates alone. Let it treat rows one by one, or pass batched=False for a function of "
            "one point"
        )
    return sum(x.size for x in wrt) // max(1, wrt[0].shape[0])


def _is_batched(wrt: list[Tensor], batched: bool | None) -> bool:
    return any(x.ndim > 1 for x in wrt) if batched is None else batched


@overload
def partials(
    fn: Callable[P, R],
    indices: Sequence[Any],
    grad_position: Any = 0,
    has_aux: No = False,
    batched: bool | None = None,
    weights: Any = None,
) -> Callable[P, tuple[R, ...]]: ...
@overload
def partials(
    fn: Callable[P, Any],
    indices: Sequence[Any],
    grad_position: Any = 0,
    has_aux: bool = False,
    batched: bool | None = None,
    weights: Any = None,
) -> Callable[P, Any]: ...
@transform()
def partials(
    fn: Any,
    indices: Sequence[Any],
    grad_position: Any = 0,
    has_aux: bool = False,
    batched: bool | None = None,
    weights: Any = None,
) -> Callable[..., Any]:
    """A function that gives partial derivatives of fn, of any orders, in one pass.

    indices: which, each a tuple of coordinates to differentiate with respect to, in any order:
    (0,) is the first derivative with respect to the first coordinate, (0, 0, 1) a third one, () the value.
    Coordinates are the elements of a point, counted through the arguments at grad_position (an
    index or a tuple of them): of u(x, t), each [N, 1], with grad_position (0, 1), x is 0 and t is
    1. batched: each row of the arguments is a point ([N, d]); None: where they have two dimensions or more.
    has_aux: as in laplacian. weights: a Parameter, or a list or tuple of them, whose elements are
    coordinates too, behind those of arguments; with grad_position None they are the only ones.

    Returns a tuple, for each index what fn returns, differentiated. The derivatives share all lower
    ones that they are made of; those that none needs are not computed.

    Raises TypeError for arguments that are not floating tensors or indices that are not ints,
    IndexError for a coordinate that a point does not have, ValueError if batched and rows mix.
    """
    chosen = [_index(i) for i in indices]

    def rule(outputs: list[Tensor], wrt: list[Tensor]) -> list[Any]:
        rows = _is_batched(wrt, batched)
        order = max(map(len, chosen), default=0)
        size = _point_size("partials", outputs, wrt, rows, order, False)
        for i in chosen:
            for coordinate in i:
                if not 0 <= coordinate < size:
                    bad_index(f"partials: there is no coordinate {coordinate}; a point has {size}")
        orders = [[i.count(c) for c in range(size)] for i in chosen if i]
        found = _core.partials(outputs, wrt, rows, orders)
        made = iter(zip(*found, strict=True))
        return [list(next(made)) if i else outputs for i in chosen]

    key = (tuple(chosen), batched)
    return _transformed("partials", fn, grad_position, has_aux, weights, key, rule, many=True)


def _index(index: Any) -> tuple[int, ...]:
    items = tuple(index) if isinstance(index, (tuple, list)) else (index,)
    for c in items:
        if not isinstance(c, int) or isinstance(c, bool):
            bad_type(f"partials: an index must be a tuple of ints, got {index!r}")
    return tuple(sorted(items))


@overload
def divergence(
    fn: Callable[P, Tensor],
    grad_position: int = 0,
    has_aux: No = False,
    batched: bool | None = None,
) -> Callable[P, Tensor]: ...
@overload
def divergence(
    fn: Callable[P, Any], grad_position: int = 0, has_aux: bool = False, batched: bool | None = None
) -> Callable[P, Any]: ...
@transform()
def divergence(
    fn: Any,
    grad_position: int = 0,
    has_aux: bool = False,
    batched: bool | None = None,
) -> Callable[..., Any]:
    """A function that gives the divergence of fn, a vector field, in one pass in forward mode.

    has_aux: whether only fn's first output is differentiated, and the others come back as they are.

    fn's output has the shape of the argument at grad_position; the sum of the derivatives of its
    elements, each by the argument's element at its place, is a scalar for one point and [N] for a
    batch of them. batched: each row is a point ([N, d]); None: where the argument has two dimensions
    or more.

    Raises TypeError for an argument that is not a floating tensor, ValueError if shapes differ, or if
    batched and rows mix.
    """

    def rule(outputs: list[Tensor], wrt: list[Tensor]) -> list[Any]:
        (x,) = wrt
        rows = _is_batched(wrt, batched)
        size = _point_size("divergence", outputs, wrt, rows, 1, True)
        count = x.size // size if size else 0
        for out in outputs:
            if tuple(out.shape) != tuple(x.shape):
                bad_value(
                    f"divergence: a vector field has the shape of its argument, got {list(out.shape)} for "
                    f"{list(x.shape)}"
                )
        units = [[int(i == c) for i in range(size)] for c in range(size)]
        found = _core.partials(outputs, wrt, rows, units)
        result = []
        for of in found:
            terms = [
                _ops.slice(_ops.reshape(d, [count, size]), [0, c], [count, 1], [1, 1])
                for c, d in enumerate(of)
            ]
            total = sum(terms[1:], terms[0]) if terms else _ops.full([count], 0, x.dtype)
            result.append(_ops.reshape(total, [count] if rows else []))
        return result

    if not isinstance(grad_position, int):
        bad_type(f"divergence: grad_position must be an int, got {grad_position!r}")
    return _transformed("divergence", fn, grad_position, has_aux, None, batched, rule)
