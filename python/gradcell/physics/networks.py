"""Networks that are solutions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from gradcell import _core, nn
from gradcell._core import DType
from gradcell.base import bad_value
from gradcell.base.seed import set_seed

__all__ = ["network"]


def network(
    sizes: Sequence[int], seed: int | None = None, dtype: DType = _core.float64
) -> nn.SequentialCell:
    """Return dense layers with tanh between them: points [n, sizes[0]] to values [n, sizes[-1]].

    sizes: how many numbers each layer has, the coordinates first. seed: for `set_seed`, before the weights
    are drawn by Glorot and Bengio's uniform distribution (AISTATS 2010); without it they are the next ones.
    dtype: that of the weights, float32 or float64.

    Raises ValueError for fewer than two sizes, or one below 1.
    """
    if len(sizes) < 2 or min(sizes) < 1:
        bad_value(f"network: expected at least two positive sizes, got {list(sizes)}")
    if seed is not None:
        set_seed(seed)
    cells: list[nn.Cell] = []
    for a, b in pairwise(sizes):
        cells += [nn.Tanh()] if cells else []
        cells.append(nn.Dense(a, b, "xavier_uniform", "zeros", dtype=dtype))
    return nn.SequentialCell(*cells)
