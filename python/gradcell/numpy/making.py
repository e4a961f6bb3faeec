"""Arrays made of numbers: ranges, grids, windows, triangles' indices, random integers."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, to_dtype
from gradcell.base.places import places

from gradcell.numpy.conversion import (  # isort: skip
    _number, array, dtype_of, floats, full, shape_of, tensor, typed,
)  # fmt: skip


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Tensor:
    """The numbers from start on, step apart, short of stop: int32, or the default dtype if one is a float."""
    ends = (0, start) if stop is None else (start, stop)
    first, last, by = (_number(v) for v in (*ends, step))
    by = 1 if by is None else by
    if dtype is None:
        integers = not builtins.any(isinstance(v, (float, np.floating)) for v in (first, last, by))
        dtype = _core.int32 if integers else _core.default_dtype()
    if by != 0 and (last - first) / by <= 0:
        return ops.zeros((0,), to_dtype(dtype))
    return ops.arange(first, last, by, dtype=to_dtype(dtype))


def _between(
    function: Callable[..., np.ndarray], start: Any, stop: Any, dtype: Any, *rest: Any, axis: int
) -> Tensor | None:
    """NumPy's numbers between two ends, computed in float64 and rounded once; None for tensors."""
    if isinstance(start, Tensor) or isinstance(stop, Tensor):
        return None
    name = function.__name__
    arguments.addressable([arguments.integer(rest[0], name, "num", 0)], name)
    if dtype is None:
        common = _core.promote(*(dtype_of(x) or tensor(x).dtype for x in (start, stop)))
        dtype = common if common.is_floating else _core.default_dtype()
    found, want = function(start, stop, *rest, axis=axis), to_dtype(dtype)
    return Tensor(found if want.is_floating else found.tolist(), want)


def _ends(start: Any, stop: Any, dtype: Any) -> list[Tensor]:
    """Both as floating tensors that hold what is asked for in the dtype."""
    if dtype is None:
        return floats(start, stop)
    want = to_dtype(dtype)
    wide = want if want.is_floating else _core.float64
    kinds = [dtype_of(x) or tensor(x).dtype for x in (start, stop)]
    return [array(x, _core.promote(k, wide)) for x, k in zip((start, stop), kinds, strict=True)]


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    """num numbers evenly spaced from start to stop, which is left out without endpoint; for tensors
    along axis. retstep: (numbers, the step)."""
    count = arguments.integer(num, "linspace", "num", 0)
    arguments.addressable([count], "linspace")
    parts = builtins.max(count - 1 if endpoint else count, 1)
    out = _between(np.linspace, start, stop, dtype, count, endpoint, axis=axis)
    if out is not None:
        return (out, array(np.subtract(stop, start) / parts, out.dtype)) if retstep else out
    a, b = _ends(start, stop, dtype)
    weight = Tensor(np.arange(count) / parts, _core.promote(a.dtype, b.dtype))
    dims = np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
    column = _ops.reshape(weight, [count] + [1] * len(dims))
    out = _ops.add(_ops.mul(a, _ops.sub(1.0, column)), _ops.mul(b, column))
    out = typed(ops.movedim(out, 0, axis) if out.ndim > 1 else out, dtype)
    return (out, _ops.div(_ops.sub(b, a), float(parts))) if retstep else out


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None,
    axis: int = 0,
) -> Tensor:  # fmt: skip
    """Powers of base whose exponents are evenly spaced, as linspace gives them.

    start: the first exponent. stop: the last exponent. num: how many numbers there are. endpoint:
    whether stop is one of them.
    """
    if not isinstance(base, Tensor):
        out = _between(np.logspace, start, stop, dtype, num, endpoint, base, axis=axis)
        if out is not None:
            return out
    a, b = _ends(start, stop, dtype)
    exponents = linspace(a, b, num, endpoint, axis=axis)
    return typed(_ops.pow(base, exponents), dtype)  # type: ignore[no-any-return]


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Tensor:
    """num numbers from start to stop, each the same multiple of the one before."""
    out = _between(np.geomspace, start, stop, dtype, num, endpoint, axis=axis)
    if out is not None:
        return out
    a, b = _ends(start, stop, dtype)
    share = linspace(0.0, 1.0, num, endpoint, dtype=_core.promote(a.dtype, b.dtype))
    share = _ops.reshape(share, [num] + [1] * builtins.max(a.ndim, b.ndim))
    out = _ops.mul(a, _ops.pow(_ops.div(b, a), share))
    return typed(ops.movedim(out, 0, axis) if out.ndim > 1 else out, dtype)  # type: ignore[no-any-return]


def indices(dimensions: Any, dtype: Any = _core.int32, sparse: bool = False) -> tuple[Tensor, ...]:
    """For each dimension of a grid, the coordinates of its points; sparse: as vectors that broadcast."""
    lines = [ops.arange(n, dtype=to_dtype(dtype)) for n in dimensions]
    return _grids(lines, sparse, "ij")


def _grids(lines: list[Tensor], sparse: bool, indexing: str) -> tuple[Tensor, ...]:
    if not sparse:
        return ops.meshgrid(*lines, indexing=indexing)
    rank = len(lines)
    places = list(builtins.range(rank))
    if indexing == "xy" and rank > 1:
        places[:2] = [1, 0]
    return tuple(
        _ops.reshape(x, [x.size if j == i else 1 for j in builtins.range(rank)])
        for i, x in zip(places, lines, strict=True)
    )


class _Grid:
    """mgrid[0:3, 0:1:5j]: coordinates of a grid's points, given as slices; an imaginary step is a
    number of points, both ends included."""

    def __init__(self, sparse: bool) -> None:
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        lines = [self._line(s) for s in (key if isinstance(key, tuple) else (key,))]
        if not isinstance(key, tuple):
            return lines[0]
        if any(x.dtype.is_floating for x in lines):
            lines = [arguments.floating(x) for x in lines]
        grids = _grids(lines, self.sparse, "ij")
        return list(grids) if self.sparse else ops.stack(grids, 0)

    @staticmethod
    def _line(s: builtins.slice) -> Tensor:
        start = 0 if s.start is None else s.start
        if isinstance(s.step, complex):
            return linspace(start, s.stop, int(builtins.abs(s.step)))  # type: ignore[no-any-return]
        return arange(start, s.stop, s.step)


class _Joined:
    """r_[1:4, 0, x]: ranges, numbers and tensors joined along the first dimension; c_[x, y]: vectors as
    columns, and matrices, along the last. An imaginary step is a number of points, as in mgrid."""

    def __init__(self, columns: bool) -> None:
        self.columns = columns

    def __getitem__(self, key: Any) -> Tensor:
        items = key if isinstance(key, tuple) else (key,)
        if builtins.any(isinstance(k, str) for k in items):
            bad_value(f"r_, c_: texts that say how to join are not supported, got {key!r}")
        kinds = [k.dtype for k in items if isinstance(k, Tensor) and k.dtype.is_floating]
        wide = functools.reduce(_core.promote, kinds) if kinds else None
        parts = [self._part(k, wide) for k in items]
        return ops.concat(parts, -1 if self.columns else 0)

    def _part(self, item: Any, wide: Any) -> Tensor:
        if isinstance(item, builtins.slice):
            x = _Grid._line(item)
        elif isinstance(item, Tensor) or wide is None:
            x = tensor(item)
        else:
            x = Tensor(np.asarray(item), wide)
        x = ops.atleast_1d(x)
        return ops.expand_dims(x, -1) if self.columns and x.ndim == 1 else x


def eye(rows: int, columns: int, k: int, dtype: Any) -> Tensor:
    """Ones on the k-th diagonal, zeros elsewhere."""
    ones = full((rows, columns), 1, dtype)
    return ops.triu(ops.tril(ones, k), k)


def randint(minval: Any, maxval: Any = None, shape: Any = None, dtype: Any = _core.int32) -> Tensor:
    """Random integers from minval on below maxval; from 0 on below minval without it."""
    low, high = (0, minval) if maxval is None else (minval, maxval)
    dims = tuple(shape_of(1 if shape is None else shape))
    return ops.randint(low, high, dims, dtype=to_dtype(dtype))


def window(length: Any, kind: str, beta: float | None = None) -> Tensor:
    """NumPy's window of that name, in the default dtype; beta: how narrow Kaiser's is."""
    count = int(_number(length))
    arguments.addressable([count], kind)
    others = () if beta is None else (beta,)
    return Tensor(getattr(np, kind)(count, *others), _core.default_dtype())


def tri_indices(rows: Any, columns: Any, k: int, upper: bool) -> tuple[Tensor, Tensor]:
    """(rows, columns) of the elements on and below, or on and above, the k-th diagonal, int32."""
    name = "triu_indices" if upper else "tril_indices"
    arguments.addressable([rows, rows if columns is None else columns], name)
    diagonal = arguments.integer(k, name, "k")
    found = (np.triu_indices if upper else np.tril_indices)(rows, diagonal, columns)
    return places(found[0]), places(found[1])


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of an array of ndim dimensions of size n.

    n: the size of each dimension. ndim: the number of dimensions.
    """
    return (arange(n),) * arguments.integer(ndim, "diag_indices", "ndim")


def ix_(*args: Any) -> tuple[Tensor, ...]:
    """Vectors reshaped so that together they index a grid.

    args: vectors of indices. Raises ValueError for an array of other than one dimension.
    """
    lines = [tensor(a) for a in args]
    if any(x.ndim != 1 for x in lines):
        bad_value(f"ix_: vectors are needed, got shapes {[list(x.shape) for x in lines]}")
    return _grids(lines, True, "ij")


mgrid: _Grid = _Grid(False)
ogrid: _Grid = _Grid(True)
r_: _Joined = _Joined(False)
c_: _Joined = _Joined(True)
