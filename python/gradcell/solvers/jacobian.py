"""Residuals of several blocks as one vector, and their Jacobian by Parameters, as nodes of a trace.

A block is a function of points, [N, ...] to [N] or [N, k]. Where a row of its result depends on its own
point alone, the Jacobian's rows are gradients of single points, made for all of them at once
(gradcell/derivatives/batching.py); else each residual's gradient goes back through all points.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell._core import DType, Tensor, adjoint, float64, ops as _ops, tangent
from gradcell.base import arguments, bad_value, where
from gradcell.compilation.compiled import function_name, jit
from gradcell.derivatives.batching import over_examples
from gradcell.derivatives.checks import check_weights
from gradcell.derivatives.differentiating import differentiating
from gradcell.derivatives.jacobians import _rows
from gradcell.ops.control.loops import loop
from gradcell.tensors.parameter import Parameter

Residuals = Callable[..., Tensor]


class Blocks:
    """Residual functions with weights, and the Parameters they read.

    The loss is the sum over blocks of weight times the mean square of the block's residuals. `vector`
    holds the residuals scaled so that the loss is the sum of their squares.
    """

    def __init__(self, name: str, residuals: Any, parameters: Any, weights: Any) -> None:
        self.name = name
        self.functions: list[Residuals] = [residuals] if callable(residuals) else list(residuals)
        if not self.functions:
            bad_value(f"{name}: there are no residual functions")
        for fn in self.functions:
            arguments.function(fn, name)
        self.parameters: list[Parameter] = check_weights(parameters)
        dtypes = {p.dtype.name.lower() for p in self.parameters}
        if len(dtypes) != 1 or not dtypes <= {"float32", "float64"}:
            bad_value(
                f"{name}: the parameters must all be float32 or all float64, but they are of "
                f"{', '.join(sorted(dtypes)) or 'no dtype: there are none'}"
            )
        self.dtype: DType = self.parameters[0].dtype
        self.size: int = sum(p.size for p in self.parameters)
        self.weights: list[float] = (
            [1.0] * len(self.functions) if weights is None else _checked(self, weights)
        )
        #: How many processes have parts of the points: the loss is the mean over all of theirs.
        self.processes: int = _processes()
        self._known: dict[Any, list[bool]] = {}  # whether rows are apart, by the points' shapes

    # Points ---------------------------------------------------------------------------------------

    def given(self, points: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Each block's arguments, arrays as tensors of the parameters' dtype. Those of a single function may
        be a tuple too."""
        if len(self.functions) == 1:
            alone = len(points) == 1 and isinstance(points[0], (tuple, list))
            points = (points[0] if alone else tuple(points),)
        if len(points) != len(self.functions):
            bad_value(
                f"{self.name}: there are {len(self.functions)} residual functions, and each wants its points "
                f"(a tensor, or a tuple of arguments), but got {len(points)}"
            )
        return [
            tuple(map(self._tensor, p if isinstance(p, (tuple, list)) else (p,))) for p in points
        ]

    def _tensor(self, x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            bad_value(
                f"{self.name}: an argument of a residual function is a tensor, an array or a number, but one "
                f"is a {type(x).__name__}: several functions take a tuple of arguments each, one function "
                "takes its own one by one"
            )
        return Tensor(x, self.dtype) if isinstance(x, np.ndarray) else x

    def rows_apart(self, points: Sequence[tuple[Any, ...]]) -> list[bool]:
        """For each block whether a residual depends on its own point alone: what the function gives for
        each point by itself is what it gives for all. Found once for points of these shapes."""
        key = tuple(tuple(getattr(x, "shape", x) for x in p) for p in points)
        if key not in self._known:
            self._known[key] = [
                self._is_apart(fn, p) for fn, p in zip(self.functions, points, strict=True)
            ]
        return self._known[key]

    def _is_apart(self, fn: Residuals, points: tuple[Any, ...]) -> bool:
        batches = [x for x in points if _is_batch(x)]
        counts = {x.shape[0] for x in batches}
        if len(counts) > 1:
            bad_value(
                f"{self.name}: the arguments of {function_name(fn)} must contain the same number of points, "
                f"but their shapes are {[list(x.shape) for x in batches]}; residuals at other points are a "
                "separate function: GaussNewton([inside, edge], ...)"
            )
        if not batches:
            return False
        count = counts.pop()
        if count == 0:
            bad_value(
                f"{self.name}: {function_name(fn)} has been given no points: shapes "
                f"{[list(x.shape) for x in batches]}"
            )
        seen: list[int] = []

        def both(*given: Any) -> tuple[Tensor, Tensor]:
            whole = self._checked_output(fn, fn(*given))
            seen.append(whole.shape[0])
            if whole.shape[0] != count:
                return whole, whole

            def one(points: tuple[Any, ...]) -> list[Tensor]:
                return [_flat(self._checked_output(fn, fn(*points)))]

            found = _over_points(one, given)[0]
            return _ops.reshape(whole, [whole.size]), _ops.reshape(found, [found.size])

        whole, single = (t.asnumpy() for t in jit(both)(*points))
        if seen[-1] != count:
            return False
        tolerance = 1e-3 if self.dtype.name.lower() == "float32" else 1e-8
        apart = single.shape == whole.shape and np.allclose(
            single, whole, tolerance, tolerance * np.nanmax(np.abs(whole), initial=0), True
        )
        if not apart and count > 1:
            warnings.warn(
                f"{self.name}: the residuals of {function_name(fn)} combine points, or depend on how many "
                f"there are, so each of the {count} gradients goes back through all points, which is "
                "slow. Let it treat points one by one (means and weights are GaussNewton's)"
                f"{where()}",
                RuntimeWarning,
                stacklevel=5,
            )
        return apart

    def _checked_output(self, fn: Residuals, out: Any) -> Tensor:
        if not isinstance(out, Tensor) or out.ndim == 0 or out.dtype != self.dtype:
            got = (
                f"{out.dtype} {list(out.shape)}" if isinstance(out, Tensor) else type(out).__name__
            )
            bad_value(
                f"{self.name}: {function_name(fn)} must give a vector of residuals, one (or k) for each "
                f"point, [N] or [N, k], of the parameters' dtype {self.dtype}, but it gave {got}. Give the "
                "residuals themselves, not the mean of their squares"
            )
        if out.size == 0:
            bad_value(f"{self.name}: {function_name(fn)} gave no residuals")
        return out

    # Values ---------------------------------------------------------------------------------------

    def _scale(self, block: int, count: int) -> float:
        return float(np.sqrt(self.weights[block] / count / self.processes))

    def summed(self, x: Tensor) -> Tensor:
        """The sum over all processes that have parts of the points."""
        if self.processes == 1:
            return x
        from gradcell.communication.collectives import all_reduce

        return all_reduce(x)

    def vector(self, points: Sequence[tuple[Any, ...]]) -> Tensor:
        """All residuals, scaled: [N]."""
        parts = self.vectors(points)
        return parts[0] if len(parts) == 1 else _ops.concat(parts, 0)

    def vectors(self, points: Sequence[tuple[Any, ...]]) -> list[Tensor]:
        """Each block's residuals, scaled."""
        parts = []
        for k, (fn, p) in enumerate(zip(self.functions, points, strict=True)):
            out = self._checked_output(fn, fn(*p))
            parts.append(_ops.mul(_ops.reshape(out, [out.size]), self._scale(k, out.size)))
        return parts

    def jacobian(self, points: Sequence[tuple[Any, ...]], apart: Sequence[bool]) -> list[Tensor]:
        """d vector / d parameters, [N, size], by blocks of rows."""
        parts = []
        for k, (fn, p) in enumerate(zip(self.functions, points, strict=True)):
            parts.append(self._of_points(k, fn, p) if apart[k] else self._of_all(k, fn, p))
        return parts

    def gram(self, points: Sequence[tuple[Any, ...]], apart: Sequence[bool], rows: int) -> Tensor:
        """J' J in float64, [size, size], by the rows of so many points at once."""
        total = _ops.full([self.size, self.size], 0, float64)
        for k, (fn, p) in enumerate(zip(self.functions, points, strict=True)):
            if apart[k]:
                total = self._gram_of_points(total, k, p, rows)
            else:
                total = _added(total, self._of_all(k, fn, p))
        return self.summed(total)

    def _gram_of_points(self, total: Tensor, block: int, points: Any, rows: int) -> Tensor:
        """The sum with J' J of one block."""
        batches = [i for i, x in enumerate(points) if _is_batch(x)]
        count = points[batches[0]].shape[0]
        parts, rest = divmod(count, rows)

        def step(state: list[Tensor], some: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            given = list(points)
            for i, x in zip(batches, some, strict=True):
                given[i] = x
            found = self._of_points(block, self.functions[block], tuple(given), count)
            return [_added(state[0], found)], []

        if parts:
            whole = [
                _ops.reshape(x[: count - rest], [parts, rows, *x.shape[1:]])
                for x in (points[i] for i in batches)
            ]
            (total,), _ = loop(step, [total], whole, parts)
        return step([total], [points[i][count - rest :] for i in batches])[0][0] if rest else total

    def _of_points(
        self, block: int, fn: Residuals, points: tuple[Any, ...], of: int | None = None
    ) -> Tensor:
        """Row by row, for all points at once. of: how many there are in all, if these are some."""
        count = of or next(x.shape[0] for x in points if _is_batch(x))

        def one(point: tuple[Any, ...]) -> list[Tensor]:
            with differentiating(parameters=self.parameters) as (_, weights):
                out = _flat(fn(*point))
                scale = self._scale(block, count * out.size)
                rows = []
                for k in range(out.size):
                    piece = _ops.reshape(_ops.slice(out, [k], [1], [1]), [])
                    sens = _ops.full([], scale, self.dtype)
                    rows.append(joined(adjoint([piece], [sens], weights)))
            return [_ops.concat([_ops.reshape(r, [1, self.size]) for r in rows], 0)]

        found = _over_points(one, points)[0]
        return _ops.reshape(found, [found.size // self.size, self.size])

    def _of_all(self, block: int, fn: Residuals, points: tuple[Any, ...]) -> Tensor:
        """One residual after the other, back through all points."""
        with differentiating(parameters=self.parameters) as (_, weights):
            out = _flat(fn(*points))
            scaled = _ops.mul(out, self._scale(block, out.size))
            rows = _rows(scaled, weights)
        count = scaled.size
        return _ops.concat([_ops.reshape(r, [count, r.size // count]) for r in rows], 1)

    def second(self, direction: Tensor, points: Sequence[tuple[Any, ...]]) -> Tensor:
        """The second derivative of the vector along a direction of the parameters, [N]."""
        with differentiating(parameters=self.parameters) as (_, weights):
            along = self.split(direction)
            first = tangent([self.vector(points)], weights, along)
            return tangent(first, weights, along)[0]

    # Parameters -----------------------------------------------------------------------------------

    def elements(self) -> Tensor:
        """All parameters' elements, one after the other."""
        return joined(self.parameters)

    def split(self, vector: Tensor) -> list[Tensor]:
        """A vector's parts, of the parameters' shapes."""
        return split(vector, self.parameters)

    def assign(self, vector: Tensor) -> None:
        """The parameters become this vector's parts."""
        for p, part in zip(self.parameters, self.split(vector), strict=True):
            p.set_data(part)


def _processes() -> int:
    """Return how many processes have parts of the data; who has not asked for that has not loaded it."""
    sharing: Any = sys.modules.get("gradcell.communication.sharing")
    return int(sharing._get_device_num()) if sharing and sharing._shares_data() else 1


def _checked(blocks: Blocks, weights: Any) -> list[float]:
    found = [float(w) for w in np.atleast_1d(np.asarray(weights, np.float64))]
    if len(found) != len(blocks.functions) or not all(0 < w < np.inf for w in found):
        bad_value(
            f"{blocks.name}: weights must be a positive number for each of the {len(blocks.functions)} "
            f"residual functions, got {weights}"
        )
    return found


def _is_batch(x: Any) -> bool:
    return isinstance(x, Tensor) and x.ndim > 0 and not x._is_variable


def _added(total: Tensor, part: Tensor) -> Tensor:
    """The sum with J' J of some rows."""
    return _ops.add(total, _ops.cast(_ops.matmul(part, part, True), float64))


def _flat(x: Tensor) -> Tensor:
    return _ops.reshape(x, [x.size])


def joined(parts: Sequence[Tensor]) -> Tensor:
    """The elements of tensors as a vector, one after the other."""
    flat = [_flat(p) for p in parts]
    return flat[0] if len(flat) == 1 else _ops.concat(flat, 0)


def split(vector: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Split the vector that `joined` made into tensors of the shapes of `like`."""
    parts, at = [], 0
    for p in like:
        parts.append(_ops.reshape(_ops.slice(vector, [at], [p.size], [1]), list(p.shape)))
        at += p.size
    return parts


def _over_points(
    one: Callable[[tuple[Any, ...]], list[Tensor]], points: tuple[Any, ...]
) -> list[Tensor]:
    """one, of the arguments with a single point each, for every point: [N, ...]."""
    places = [k for k, x in enumerate(points) if _is_batch(x)]
    count = points[places[0]].shape[0]

    def of_examples(examples: list[Tensor]) -> list[Tensor]:
        given = list(points)
        for k, e in zip(places, examples, strict=True):
            given[k] = e
        like.extend(out := one(tuple(given)))
        return out

    like: list[Tensor] = []
    batches = [_ops.reshape(points[k], [count, 1, *points[k].shape[1:]]) for k in places]
    found = over_examples(of_examples, batches)
    return [
        _ops.broadcast_to(_ops.reshape(x, [1, *x.shape]), [count, *x.shape]) if f is None else f
        for f, x in zip(found, like, strict=True)
    ]
