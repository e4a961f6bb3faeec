"""Unique elements, searches, membership.

How many elements are unique only their values say; the rest is ops of the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value
from gradcell.ops.arrays import indexing
from gradcell.ops.decorators import method, one_plan
from gradcell.ops.reductions import reductions

__all__ = ["bucketize", "isin", "searchsorted", "unique", "unique_consecutive", "unique_with_pad"]


def unique(input: Any) -> tuple[Tensor, Tensor]:
    """(the different elements, in the order of their first occurrence; the place of each of input's
    elements among them, int32, or int64 for int64). Reads values, so a compiled function that
    calls it is retraced."""
    x = arguments.tensor(input, "unique")
    place = _core.int64 if x.dtype == _core.int64 else _core.int32
    first, index = _core.first_occurrences(x, place)
    return _ops.gather(_ops.reshape(x, [x.size]), first, 0), index


@method()
def unique_with_pad(x: Any, pad_num: Any) -> tuple[Tensor, Tensor]:
    """The unique elements, as from unique, padded with pad_num to x's length.

    pad_num: a number.
    """
    values, index = unique(x)
    missing = [index.size - values.size]
    return _ops.concat([values, _ops.full(missing, pad_num, values.dtype)], 0), index


@method()
def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The tensor without elements (slices along dim) that equal the one before; with return_inverse
    the place of
    each in the result, with return_counts the length of each run. Reads values, so a compiled
    function that calls it is retraced."""
    x = arguments.tensor(input, "unique_consecutive")
    t, a = (
        (_ops.reshape(x, [x.size]), 0)
        if dim is None
        else (x, arguments.axis_in(x, dim, "unique_consecutive", "dim"))
    )
    length = t.shape[a]
    known = None
    if t.ndim == 1 and not t.dtype.is_complex:
        begins, known = _core.runs(t)
    else:
        rows = np.moveaxis(t.asnumpy(), a, 0).reshape(length, -1)
        new = np.ones(length, bool)
        new[1:] = (rows[1:] != rows[:-1]).any(1)
        begins = Tensor(np.flatnonzero(new))
    if known is None or not _core.is_plain(t) or _core.in_trace():
        known = _ops.gather(t, begins, a)
    out: list[Tensor] = [known]
    counts = np.diff(begins.asnumpy() if return_inverse or return_counts else [], append=length)
    if return_inverse:
        place = np.repeat(np.arange(begins.size), counts)
        out.append(Tensor(place.reshape(x.shape) if dim is None else place))
    if return_counts:
        out.append(Tensor(counts))
    return out[0] if len(out) == 1 else tuple(out)


def _comparable(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both in one dtype, as NumPy compares them: integers and floats in float64."""
    if a.dtype == b.dtype:
        return a, b
    mixed = a.dtype.is_floating != b.dtype.is_floating and not (
        a.dtype.is_complex or b.dtype.is_complex
    )
    dtype = _core.float64 if mixed else _core.promote(a.dtype, b.dtype)
    return _ops.cast(a, dtype), _ops.cast(b, dtype)


def _numbers(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor(np.asarray(value))


@one_plan
def _place(line: Tensor, x: Tensor, right: bool, dtype: _core.DType) -> Tensor:
    line, wanted = _comparable(line, x)
    rows = _ops.reshape(wanted, [wanted.size]) if line.ndim == 1 else wanted
    found = _ops.place_in_line(_ops.stop_gradient(line), _ops.stop_gradient(rows), right)
    return _ops.cast(_ops.reshape(found, list(x.shape)), dtype)


def searchsorted(
    sorted_sequence: Any, values: Any, *, out_int32: bool = False, right: bool = False,
    side: Any = None, sorter: Any = None,
) -> Tensor:  # fmt: skip
    """Return the places of values in a sequence that is sorted along its last dimension: before
    equal elements, or after them with right=True or side='right'; int64.

    sorted_sequence: a tensor whose last dimension is sorted.

    A sequence of rows [..., n] takes rows of values [..., k]. out_int32: whether the result is
    int32. side: 'left' or 'right', in place of right. sorter: indices that sort the sequence, if it
    is not sorted. Raises ValueError where they do not fit.
    """
    line = indexing.ordered(sorted_sequence, "searchsorted", "sorted_sequence")
    if line.ndim == 0:
        bad_value("searchsorted: a sequence is needed, got a number")
    if sorter is not None:
        line = indexing.gather_elements(line, -1, sorter)
    dtype = _core.int32 if out_int32 else _core.int64
    return _place(line, _numbers(values), bool(right or side == "right"), dtype)


def bucketize(input: Any, boundaries: Any, *, right: bool = False) -> Tensor:
    """The interval between boundaries that each element lies in, int32; right: those on a boundary
    belong to the interval below it."""
    x = arguments.tensor(input, "bucketize")
    return _place(_numbers(boundaries), x, not right, _core.int32)


def isin(elements: Any, test_elements: Any, invert: bool = False) -> Tensor:
    """Return whether each element is among test_elements (is not, if invert); NaN is among none."""
    x = arguments.operand(elements, "isin", like=test_elements)
    return _is_among(x, _numbers(test_elements), bool(invert))


@one_plan
def _is_among(x: Tensor, tests: Tensor, invert: bool) -> Tensor:
    a, b = (_ops.reshape(_ops.stop_gradient(t), [t.size]) for t in _comparable(x, tests))
    if a.dtype.is_complex:
        pairs = _ops.equal(_ops.reshape(a, [a.size, 1]), b)
        found = reductions.any(pairs, 1) if b.size else _ops.full([a.size], False, _core.bool)
    else:
        found = _ops.among(a, b)
    found = _ops.reshape(found, list(x.shape))
    return _ops.logical_not(found) if invert else found
