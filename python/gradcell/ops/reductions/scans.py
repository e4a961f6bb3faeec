"""Running sums, products and extrema along a dimension, recurrences, differences, the trapezoidal rule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import Axis, DTypeLike, arguments, bad_value, to_dtype
from gradcell.derivatives.own_derivatives import Pushforward, call
from gradcell.ops.arrays import indexing, shaping
from gradcell.ops.decorators import method, one_plan, wide_plan
from gradcell.ops.elements import composed

__all__ = [
    "cummax", "cummin", "cumprod", "cumsum", "diff", "linear_recurrence", "logcumsumexp", "trapz",
]  # fmt: skip


def cumsum(x: Any, axis: Axis, dtype: DTypeLike | None = None) -> Tensor:
    """The sums of all elements up to each along axis, in x's dtype unless dtype says otherwise."""
    if dtype is not None:
        x = _ops.cast(x, to_dtype(dtype))
    at = arguments.integer(axis, "CumSum", "axis")
    if isinstance(x, Tensor) and not x.ndim:
        return _ops.reshape(_ops.cumsum(arguments.vector(x), at), [])
    return _ops.cumsum(x, at)


@method(one_plan)
def cumprod(input: Any, dim: Any, dtype: DTypeLike | None = None) -> Tensor:
    """The products of all elements up to each along dim, in input's dtype unless dtype says otherwise.

    Derivatives of any order are exact where elements are zero too. Raises ValueError for a dim out of range.
    """
    x = arguments.tensor(input, "cumprod")
    x = x if dtype is None else _ops.cast(x, to_dtype(dtype))
    a = arguments.axis_of(dim, x.ndim, "cumprod", "dim")
    return running_product(x, a, exclusive=False, reverse=False) if x.ndim else x


@one_plan
def running_product(x: Any, axis: Any, *, exclusive: bool, reverse: bool) -> Tensor:
    """CumProd: the products of all elements up to each, itself left out if exclusive; from the end if
    reverse. Of complex numbers by doubling."""
    t = arguments.tensor(x, "CumProd", "x")
    if not t.dtype.is_complex:
        return _ops.cumprod(t, axis, exclusive, reverse)
    a = arguments.axis_of(axis, t.ndim, "CumProd")
    n, reach = t.shape[a], 1
    t = shaping.flip(t, (a,)) if reverse else t
    if exclusive and n:
        one = Tensor(np.ones([1 if i == a else d for i, d in enumerate(t.shape)]), t.dtype)
        t = _ops.concat([one, shaping._window(t, a, 0, n - 1)], a)
    while reach < n:
        late, early = shaping._window(t, a, reach, n - reach), shaping._window(t, a, 0, n - reach)
        t = _ops.concat([shaping._window(t, a, 0, reach), _ops.mul(late, early)], a)
        reach *= 2
    return shaping.flip(t, (a,)) if reverse else t


@one_plan
def linear_recurrence(
    factors: Any, terms: Any, axis: Any = 0, initial: Any = None, reverse: Any = False
) -> Tensor:
    """y along axis, where `y[i] = factors[i] * y[i - 1] + terms[i]`: a filter with feedback, an implicit
    Euler step after the other, discounted sums, a state that decays.

    factors, terms: tensors, or one of them a number, which broadcast. initial: what is before the
    first element, 0 for None; a tensor or a number which broadcasts to one place of axis. reverse:
    whether it runs from the end, `y[i] = factors[i] * y[i + 1] + terms[i]`. The result is computed in
    the wider of both dtypes, each float rounded once. Derivatives of any order are recurrences too.
    Raises ValueError for shapes that do not broadcast, or an axis out of range.
    """
    a, b = arguments.operands(factors, terms, "linear_recurrence", ("factors", "terms"))
    dtype = _ops.add(a, b).dtype
    shape = list(np.broadcast_shapes(tuple(a.shape), tuple(b.shape)))
    along = arguments.axis_of(axis, len(shape), "linear_recurrence")
    backwards = arguments.boolean(reverse, "linear_recurrence", "reverse")
    a, b = (_ops.broadcast_to(_ops.cast(x, dtype), shape) for x in (a, b))
    if initial is not None and shape and shape[along]:
        y = _ops.cast(arguments.operand(initial, "linear_recurrence", "initial", b), dtype)
        first, n = (shape[along] - 1 if backwards else 0), shape[along] - 1
        rest = shaping._window(b, along, 0 if backwards else 1, n)
        begins = _ops.add(
            _ops.mul(shaping._window(a, along, first, 1), y), shaping._window(b, along, first, 1)
        )
        b = _ops.concat([rest, begins] if backwards else [begins, rest], along)
    return _ops.linear_recurrence(a, b, along, False, backwards)


@one_plan
def _running(x: Tensor, axis: int, largest: bool, place: _core.DType) -> tuple[Tensor, Tensor]:
    fixed, inner = _ops.stop_gradient(x), x.ndim - 1 - axis
    places = _ops.running_best(fixed, inner, largest)
    values = _ops.running_best(fixed, inner, largest, True)
    if x.dtype.is_floating:

        def push(xs: Any, outputs: Any, tangents: Any, places: Tensor) -> list[Tensor]:
            return [indexing._at_places(tangents[0], axis, places)]

        rule = Pushforward("cummax" if largest else "cummin", push, places)
        (values,) = call([_core.record(values)], [_core.record(x)], rule)
    return values, _ops.cast(places, place)


def _run(input: Any, axis: Any, name: str, place: _core.DType) -> tuple[Tensor, Tensor]:
    x = indexing.ordered(input, name)
    a = arguments.axis_of(axis, x.ndim, name)
    if x.ndim == 0:
        return x, _ops.full([], 0, place)
    return _running(x, a, name == "cummax", place)


@method()
def cummax(input: Any, axis: Any) -> tuple[Tensor, Tensor]:
    """(the largest element up to each along axis, its index; the last one of equal elements)."""
    return _run(input, axis, "cummax", _core.int64)


@method()
def cummin(input: Any, axis: Any) -> tuple[Tensor, Tensor]:
    """(the smallest element up to each along axis, its index; the last one of equal elements)."""
    return _run(input, axis, "cummin", _core.int32)


@method(wide_plan)
def logcumsumexp(input: Any, axis: Any) -> Tensor:
    """The logarithm of the sums of exp of all elements up to each along axis, computed without
    overflow.
    """
    x = arguments.floating(arguments.tensor(input, "logcumsumexp"))
    a = arguments.axis_of(axis, x.ndim, "logcumsumexp")
    reach = 1
    while x.ndim and reach < x.shape[a]:
        head = shaping._window(x, a, 0, reach)
        late = shaping._window(x, a, reach, x.shape[a] - reach)
        early = shaping._window(x, a, 0, x.shape[a] - reach)
        both = composed.log_sum(late, early)
        x = _ops.concat([head, both], a)
        reach *= 2
    return x


@method(one_plan)
def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """The n-th differences along axis, after prepend and append have been joined to the ends: tensors,
    or numbers, each of which stands for one element everywhere."""
    t = arguments.tensor(x, "diff", "x")
    a = arguments.axis_of(axis, t.ndim, "diff")
    one = [1 if i == a else n for i, n in enumerate(t.shape)]
    parts = [
        p if getattr(p, "ndim", 0) else _ops.add(_ops.full(one, 0, t.dtype), p)
        for p in (prepend, t, append)
        if p is not None
    ]
    t = t if len(parts) == 1 else _ops.concat(parts, a)
    if t.ndim == 0 or arguments.integer(n, "diff", "n") < 0:
        bad_value(f"diff: needs a dimension and n >= 0, got {list(t.shape)} and {n}")
    for _ in range(min(n, t.shape[a])):
        count = t.shape[a] - 1
        late, early = (shaping._window(t, a, i, max(count, 0)) for i in (1, 0))
        t = _ops.logical_xor(late, early) if t.dtype == _core.bool else _ops.sub(late, early)
    return t


@one_plan
def trapz(y: Any, x: Any = None, *, dx: Any = 1.0, dim: int = -1) -> Tensor:
    """The integral of y along dim by the trapezoidal rule; x: the places of the values y; by
    default they are dx apart.
    """
    t = arguments.floating(arguments.tensor(y, "trapz", "y"))
    a = arguments.axis_in(t, dim, "trapz", "dim")
    step: Any = dx
    if x is not None:
        points = arguments.tensor(x, "trapz", "x")
        step = diff(points, axis=-1 if points.ndim == 1 else a)
        if points.ndim == 1:
            step = _ops.reshape(step, [step.size] + [1] * (t.ndim - 1 - a))
    n = t.shape[a] - 1
    if n < 0:
        return _ops.reduce_sum(t, a)
    if x is None and n > 0:  # one sum, in which the ends count half
        shares = np.ones(n + 1)
        shares[[0, -1]] = 0.5
        rest = [d for i, d in enumerate(t.shape) if i != a]
        if t.dtype in (_core.float32, _core.float64) and a in (0, t.ndim - 1):
            if a == 0:
                weight = Tensor(shares.reshape(1, -1), t.dtype)
                total = _ops.matmul(weight, _ops.reshape(t, [n + 1, math.prod(rest)]))
            else:
                weight = Tensor(shares.reshape(-1, 1), t.dtype)
                total = _ops.matmul(_ops.reshape(t, [math.prod(rest), n + 1]), weight)
            return _ops.mul(_ops.reshape(total, rest), step)
        weight = Tensor(shares.reshape([-1] + [1] * (t.ndim - 1 - a)), t.dtype)
        return _ops.mul(_ops.reduce_sum(_ops.mul(t, weight), a), step)
    pairs = _ops.add(shaping._window(t, a, 1, n), shaping._window(t, a, 0, n))
    return _ops.reduce_sum(_ops.mul(_ops.mul(pairs, 0.5), step), a)
