"""What has to look at the numbers to know its answer: unique elements, searches, membership.

NumPy does the work, on values; the results are integers, truths or copies of elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell import _core, arguments
from gradcell._core import Tensor
from gradcell._location import where

_ops = _core.ops


def unique(input: Any) -> tuple[Tensor, Tensor]:
    """(the different elements, in the order of their first occurrence; the place of each of input's
    elements among them, int32, or int64 for int64). Asks for the value."""
    x = arguments.tensor(input, "unique")
    place = _core.int64 if x.dtype == _core.int64 else _core.int32
    first, index = _core.first_occurrences(x, place)
    return _ops.gather(_ops.reshape(x, [x.size]), first, 0), index


def unique_with_pad(x: Any, pad_num: Any) -> tuple[Tensor, Tensor]:
    """As unique, filled up with pad_num to x's length."""
    values, index = unique(x)
    missing = [index.size - values.size]
    return _ops.concat([values, _ops.full(missing, pad_num, values.dtype)], 0), index


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """Without elements (slices along dim) that equal the one before; with return_inverse the place of
    each in the result, with return_counts the length of each run. Asks for the value."""
    x = arguments.tensor(input, "unique_consecutive")
    t, a = (
        (_ops.reshape(x, [x.size]), 0)
        if dim is None
        else (x, arguments.axis_of(dim, x.ndim, "unique"))
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


def _places(line: Any, values: Tensor, right: bool, dtype: _core.DType) -> Tensor | None:
    """Where to put values into a line in order; None where float64 does not hold all numbers."""
    edges = np.asarray(line)
    if edges.dtype == np.int64 or edges.dtype.kind not in "biuf" or values.dtype == _core.int64:
        return None
    line64 = Tensor(np.ascontiguousarray(edges, np.float64))
    return _core.places_in_line(line64, values, right, dtype)


def searchsorted(
    sorted_sequence: Any, values: Any, *, out_int32: bool = False, right: bool = False,
    side: Any = None, sorter: Any = None,
) -> Tensor:  # fmt: skip
    """Where to put values into a sequence that is in order along its last dimension: before equal
    elements, behind them for right or side 'right'. int64, or int32 for out_int32."""
    line = arguments.tensor(sorted_sequence, "searchsorted", "sorted_sequence").asnumpy()
    if line.ndim == 1 and sorter is None and isinstance(values, Tensor):
        dtype = _core.int32 if out_int32 else _core.int64
        placed = _places(line, values, right or side == "right", dtype)
        if placed is not None:
            return placed
    wanted = values.asnumpy() if isinstance(values, Tensor) else np.asarray(values)
    if sorter is not None:
        line = np.take_along_axis(line, sorter.asnumpy(), -1)
    place: Any = "right" if right or side == "right" else "left"
    if line.ndim == 1:
        found = np.searchsorted(line, wanted, place)
    else:
        rows = zip(
            line.reshape(-1, line.shape[-1]), wanted.reshape(-1, wanted.shape[-1]), strict=True
        )
        found = np.stack([np.searchsorted(a, v, place) for a, v in rows]).reshape(wanted.shape)
    return Tensor(np.asarray(found, np.int32 if out_int32 else np.int64))


def bucketize(input: Any, boundaries: Any, *, right: bool = False) -> Tensor:
    """The interval between boundaries that each element lies in, int32; right: those on a boundary
    belong to the interval below it."""
    x = arguments.tensor(input, "bucketize")
    edges = boundaries.asnumpy() if isinstance(boundaries, Tensor) else np.asarray(boundaries)
    placed = _places(edges, x, not right, _core.int32)
    if placed is not None:
        return placed
    places = np.searchsorted(edges, x.asnumpy(), "left" if right else "right")
    return Tensor(np.asarray(places, np.int32))


def isin(elements: Any, test_elements: Any, invert: bool = False) -> Tensor:
    """Whether each element is among test_elements (is not, if invert)."""
    x = arguments.operand(elements, "isin")
    if isinstance(test_elements, Tensor) and test_elements.dtype == x.dtype:
        if not x.dtype.is_complex and x.dtype != _core.uint64:
            found = _core.among(x, test_elements)
            return _ops.logical_not(found) if invert else found
    tests = (
        test_elements.asnumpy() if isinstance(test_elements, Tensor) else np.asarray(test_elements)
    )
    return Tensor(np.asarray(np.isin(x.asnumpy(), tests, invert=invert)))


# Integers -----------------------------------------------------------------------------------------


def _integer_dtype(a: Tensor, b: Tensor, known_a: bool, known_b: bool) -> _core.DType:
    """The dtype that both go into: a number takes that of a tensor, unless that is bool."""
    if known_a == known_b:
        return _core.promote(a.dtype, b.dtype)  # type: ignore[no-any-return]
    own, number = (a, b) if known_a else (b, a)
    return number.dtype if own.dtype == _core.bool else own.dtype


def _of_integers(name: str, a: Tensor, b: Tensor) -> Tensor:
    dims = list(np.broadcast_shapes(tuple(a.shape), tuple(b.shape)))
    a, b = (x if list(x.shape) in (dims, []) else _ops.broadcast_to(x, dims) for x in (a, b))
    return _core.of_integers(name, a, b)  # type: ignore[no-any-return]


def _integers(name: str, text: str, logical: Any = None) -> Any:
    """logical: the same of bools; None: there is none."""
    function = name.removeprefix("bitwise_")

    def op(input: Any, other: Any) -> Tensor:
        a, b = (v if isinstance(v, Tensor) else Tensor(v) for v in (input, other))
        for x in (a, b):
            if x.dtype.is_floating:
                raise TypeError(f"{name}: integers are needed, got {x.dtype}{where()}")
        dtype = _integer_dtype(a, b, isinstance(input, Tensor), isinstance(other, Tensor))
        if dtype == _core.bool:
            if logical is None:
                raise TypeError(f"{name}: not defined for bool{where()}")
            return logical(a, b)  # type: ignore[no-any-return]
        return _of_integers(function, _ops.cast(a, dtype), _ops.cast(b, dtype))

    op.__name__ = op.__qualname__ = name
    op.__doc__ = f"{text}, elementwise over integers, which broadcast. Raises TypeError for others."
    return op


bitwise_and = _integers("bitwise_and", "The bits that both have", _ops.logical_and)
bitwise_or = _integers("bitwise_or", "The bits that one of both has", _ops.logical_or)
bitwise_xor = _integers("bitwise_xor", "The bits that only one of both has", _ops.logical_xor)
bitwise_left_shift = _integers("bitwise_left_shift", "input times 2^other")
bitwise_right_shift = _integers("bitwise_right_shift", "input over 2^other, down")


def bitwise_not(input: Any) -> Tensor:
    """All bits turned over: -1 - input for integers, not for bool."""
    x = arguments.tensor(input, "bitwise_not")
    return _ops.logical_not(x) if x.dtype == _core.bool else _ops.sub(-1, x)


gcd = _integers("gcd", "The greatest common divisor")
lcm = _integers("lcm", "The least common multiple")
