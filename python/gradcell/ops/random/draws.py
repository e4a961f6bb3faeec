"""Random choices: of indices by their probabilities, of positions where a mask is true, of an order."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.convert import to_dtype
from gradcell.base.errors import bad_value
from gradcell.ops.arrays import indexing
from gradcell.ops.method import method
from gradcell.ops.one_plan import one_plan
from gradcell.ops.random import functions

__all__ = ["choice_with_mask", "multinomial", "random_categorical", "shuffle"]

_ops = _core.ops


def _seed(seed: Any) -> int:
    return 0 if seed is None else int(seed)


@one_plan
def _gumbel(shape: list[int], seed: int) -> Tensor:
    """Gumbel's distribution: -log(-log(u)); the index of the largest sum with log p is drawn by p."""
    u = _ops.maximum(functions._draw(shape, seed, 0), 1e-30)
    return _ops.neg(_ops.log(_ops.neg(_ops.log(u))))


@method()
def multinomial(input: Any, num_samples: int, replacement: bool = True, seed: Any = None) -> Tensor:
    """Indices drawn by the weights in a vector, or each row of a matrix: int32 [..., num_samples].

    Without replacement no index comes twice. Raises ValueError
    for weights that are negative, not finite or all zero, or for more samples than weights without
    replacement.
    """
    x = arguments.of_rank(input, (1, 2), "multinomial")
    count = arguments.integer(num_samples, "multinomial", "num_samples", 1)
    n = x.shape[-1]
    if not replacement and count > n:
        bad_value(f"multinomial: {count} of {n} without replacement are too many")
    rows = _ops.reshape(_ops.cast(x, _core.float32), [x.shape[0] if x.ndim > 1 else 1, n])
    if replacement:
        drawn = _ops.draw_by_weights(rows, functions._draw([rows.shape[0], count], _seed(seed), 0))
        return _ops.reshape(drawn, [*x.shape[:-1], count])
    checked = _ops.draw_by_weights(rows, _ops.full([rows.shape[0], 1], 0.0, _core.float32))
    x = _ops.where(
        _ops.less(_ops.reshape(checked, [*x.shape[:-1], 1]), n), x, 0
    )  # always: it raises
    logs = _ops.log(_ops.cast(x, _core.float32))
    score = _ops.add(logs, _gumbel(list(x.shape), _seed(seed)))
    return indexing.topk(score, count)[1]


@method()
def random_categorical(
    logits: Any, num_sample: int, seed: int = 0, dtype: Any = _core.int64
) -> Tensor:
    """Indices drawn by the softmax of each row of scores: [rows, num_sample].

    logits: scores [rows, classes].
    """
    x = arguments.of_rank(logits, (2,), "random_categorical")
    rows, n = x.shape
    noise = _gumbel([rows, num_sample, n], _seed(seed))
    score = _ops.add(_ops.reshape(_ops.cast(x, _core.float32), [rows, 1, n]), noise)
    return _ops.cast(_ops.argmax(score, 2), to_dtype(dtype))


def choice_with_mask(input_x: Any, count: int = 256, seed: Any = None) -> tuple[Tensor, Tensor]:
    """(positions of `count` elements of a mask that are true, drawn without replacement, int32 [count,
    rank]; which of them count): zeros and False where there are fewer. Reads values, so a compiled
    function that calls it is retraced."""
    mask = arguments.tensor(input_x, "RandomChoiceWithMask", "input_x").asnumpy().astype(bool)
    places = np.argwhere(mask).astype(np.int32)
    if len(places):
        places = places[np.argsort(functions._draw([len(places)], _seed(seed), 0).asnumpy())]
    chosen = places[:count]
    index = np.zeros((count, mask.ndim), np.int32)
    index[: len(chosen)] = chosen
    return Tensor(index), Tensor(np.arange(count) < len(chosen))


def shuffle(x: Any, seed: Any = None) -> Tensor:
    """The slices along the first dimension, in a random order."""
    t = arguments.tensor(x, "shuffle", "x")
    if t.ndim == 0 or t.shape[0] < 2:
        return _core.copy(t)
    order = indexing.argsort(functions._draw([t.shape[0]], _seed(seed), 0), 0)
    return _ops.gather(t, order, 0)


def randperm_padded(n: Any, *, max_length: int, pad: Any, dtype: Any) -> Tensor:
    """The numbers from 0 on below n in a random order, filled up with pad to max_length."""
    count = arguments.integers(n, "Randperm", "n")[0]
    if count > max_length:
        bad_value(f"Randperm: n {count} is more than max_length {max_length}")
    order = indexing.argsort(functions._draw([count], 0, 0), 0)
    rest = _ops.full([max_length - count], pad, to_dtype(dtype))
    return _ops.concat([_ops.cast(order, to_dtype(dtype)), rest], 0)


@one_plan
def dropout_channels(x: Any, keep_prob: float, rank: int) -> tuple[Tensor, Tensor]:
    """(x with each channel kept with probability keep_prob and divided by it, the mask, bool)."""
    t = arguments.of_rank(x, (rank,), f"Dropout{rank - 2}D")
    keep = arguments.number(keep_prob, f"Dropout{rank - 2}D", "keep_prob", least=0, most=1)
    if keep == 0.0:
        return _ops.mul(t, 0), _ops.full(list(t.shape), False, _core.bool)
    kept = _ops.less(functions._draw([*t.shape[:2], *[1] * (rank - 2)], 0, 0), keep)
    kept = _ops.broadcast_to(kept, list(t.shape))
    return _ops.where(kept, _ops.mul(t, 1.0 / keep), 0), kept
