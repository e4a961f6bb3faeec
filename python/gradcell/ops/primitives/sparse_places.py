"""Ops on the places of the elements of a sparse tensor, which come as plain tensors: one row of numbers for
each element, one column for each dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcell._core import Tensor, int64, ops as _ops
from gradcell.base import arguments, bad_value
from gradcell.ops.arrays import scatters


def sparse_reshape(indices: Any, shape: Any, new_shape: Any) -> tuple[Tensor, Tensor]:
    """The same elements' places where a tensor of `shape` is reshaped to new_shape, one dimension of which
    may be -1; and that shape, int64. Both shapes are read, so they decide what is compiled.

    Raises ValueError where they do not have equally many elements, or the indices not as many columns.
    """
    at = arguments.tensor(indices, "SparseReshape", "indices")
    old, new = (
        [int(n) for n in arguments.tensor(s, "SparseReshape", name).asnumpy()]
        for s, name in ((shape, "shape"), (new_shape, "new_shape"))
    )
    size, rest = math.prod(old), math.prod(n for n in new if n != -1)
    if new.count(-1) == 1 and rest:
        new[new.index(-1)] = size // rest
    if math.prod(new) != size or min(new, default=0) < 0:
        bad_value(f"SparseReshape: {old} cannot become {new}")
    if at.ndim != 2 or at.shape[1] != len(old):
        bad_value(
            f"SparseReshape: places in shape {old} need {len(old)} columns, got indices of shape "
            f"{list(at.shape)}"
        )
    flat = _ops.reduce_sum(_ops.mul(_ops.cast(at, int64), _strides(old)), [1], True)
    sizes = Tensor(np.array(new, np.int64))
    return _ops.mod(_ops.floor_div(flat, _strides(new)), sizes), sizes


def _strides(shape: list[int]) -> Tensor:
    return Tensor(np.array([math.prod(shape[k + 1 :]) for k in range(len(shape))], np.int64))


def sparse_count(
    indices: Any, values: Any, dense_shape: Any, weights: Any, *, binary_output: bool = False,
    minlength: int = -1, maxlength: int = -1,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Count each value in each row of a sparse tensor of one or two dimensions, each time with its
    weight, or as 1 if it occurs at all (binary_output). Returns (places [row, value], counts,
    shape).

    Values from maxlength on do not count; there are that many columns, otherwise as many as the
    largest value asks for and at least minlength. Reads the values, so a compiled function that
    calls it is retraced. Raises ValueError for negative values and for shapes that do not fit.
    """
    at, found, given = (
        arguments.tensor(t, "SparseCountSparseOutput", name)
        for t, name in ((indices, "indices"), (values, "values"), (weights, "weights"))
    )
    dims = [int(n) for n in arguments.tensor(dense_shape, "SparseCountSparseOutput").asnumpy()]
    if len(dims) not in (1, 2) or at.shape != (found.size, len(dims)) or given.shape != found.shape:
        bad_value(
            f"SparseCountSparseOutput: indices {list(at.shape)}, values {list(found.shape)}, weights "
            f"{list(given.shape)} and dense_shape {dims} do not fit"
        )
    numbers = found.asnumpy().astype(np.int64)
    if (numbers < 0).any():
        bad_value("SparseCountSparseOutput: values must not be negative")
    row = at.asnumpy()[:, 0] if len(dims) == 2 else np.zeros_like(numbers)
    counts = np.flatnonzero(numbers < maxlength) if maxlength >= 0 else np.arange(numbers.size)
    pairs = np.stack([row.astype(np.int64), numbers], 1)[counts]
    places, group = np.unique(pairs, axis=0, return_inverse=True)
    columns = maxlength if maxlength > 0 else max([minlength, *(numbers + 1)])
    kept = _ops.gather(given, Tensor(counts), 0)
    total = scatters.unsorted_segment_sum(kept, Tensor(group.reshape(-1)), len(places))
    if binary_output:
        total = _ops.full([len(places)], 1, given.dtype)
    rows = dims[:1] if len(dims) == 2 else []
    return Tensor(places[:, 2 - len(dims) :]), total, Tensor(np.array([*rows, columns], np.int64))
