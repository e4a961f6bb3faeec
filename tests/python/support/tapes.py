"""Random programs (random_programs.py) with gradcell's ops."""

from __future__ import annotations

from typing import Any

import numpy as np
from random_programs import HEADER, MAX_OPS

from gradcell import Tensor, ops

#: Relative to the largest element, for float64 sums in another order.
TOLERANCE = 1e-9


def random_bytes(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    return rng.bytes(HEADER + 4 * int(rng.integers(3, MAX_OPS + 1)))


class GradcellTape:
    """NumpyTape's methods, with gradcell's ops."""

    def constant(self, value: Any) -> Any:
        return float(value) if np.ndim(value) == 0 else Tensor(np.asarray(value))

    def unary(self, name: str, x: Any) -> Any:
        return getattr(ops, name)(x)

    def add(self, x: Any, y: Any) -> Any:
        return x + y

    def sub(self, x: Any, y: Any) -> Any:
        return x - y

    def mul(self, x: Any, y: Any) -> Any:
        return x * y

    def div(self, x: Any, y: Any) -> Any:
        return x / y

    def maximum(self, x: Any, y: Any) -> Any:
        return ops.maximum(x, y)

    def minimum(self, x: Any, y: Any) -> Any:
        return ops.minimum(x, y)

    def greater(self, x: Any, y: Any) -> Any:
        return x > y

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return ops.where(condition, x, y)

    def matmul(self, x: Any, y: Any) -> Any:
        return ops.matmul(x, y)

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        return ops.reshape(x, shape)

    def transpose(self, x: Any, order: tuple[int, ...]) -> Any:
        return ops.transpose(x, order)

    def broadcast_to(self, x: Any, shape: tuple[int, ...]) -> Any:
        return ops.broadcast_to(x, shape)

    def index(self, x: Any, index: Any) -> Any:
        return x[index]

    def gather(self, x: Any, indices: np.ndarray, axis: int) -> Any:
        return ops.gather(x, Tensor(indices.astype(np.int32)), axis)

    def concat(self, xs: list[Any], axis: int) -> Any:
        return ops.concat(xs, axis)

    def cumsum(self, x: Any, axis: int) -> Any:
        return ops.cumsum(x, axis)

    def reduce_sum(self, x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        return ops.ReduceSum(keep)(x, axes)

    def reduce_mean(self, x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        return ops.ReduceMean(keep)(x, axes)

    def reduce_max(self, x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        return ops.ReduceMax(keep)(x, axes)

    def reduce_min(self, x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        return ops.ReduceMin(keep)(x, axes)
