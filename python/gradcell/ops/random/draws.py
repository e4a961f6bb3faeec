"""Random numbers.

The generator is a counter-based one. Its state, a variable of two integers (seed, offset), advances
by assignment, so a compiled function gives new numbers at each run, and the same seed gives the
same numbers in both modes. A call with a seed of its own draws from a stream of its own, and one with a
key as its seed (keys.py) gives the key's numbers, always the same.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import ParameterBase, Tensor, ops as _ops
from gradcell.base import DTypeLike, arguments, bad_type, bad_value, to_dtype
from gradcell.base.places import places
from gradcell.base.seed import get_seed, on_set_seed
from gradcell.ops.arrays import indexing
from gradcell.ops.decorators import method, one_plan
from gradcell.ops.random import keys

__all__ = [
    "bernoulli", "choice_with_mask", "dropout", "multinomial", "normal", "rand", "rand_like",
    "randint", "randint_like", "randn", "randn_like", "random_categorical", "randperm", "shuffle",
    "standard_normal", "uniform",
]  # fmt: skip


def _state(key: int) -> ParameterBase:
    return ParameterBase(Tensor([key, 0], _core.int64))


#: The global stream, and those of calls with seeds of their own.
_global = _state(int.from_bytes(os.urandom(7), "little"))
_streams: dict[tuple[int, int], ParameterBase] = {}


@on_set_seed
def _start_anew(seed: int) -> None:
    """Starts all streams at a seed."""
    _global._set_array(Tensor([seed, 0], _core.int64))
    for key, state in _streams.items():
        state._set_array(_stream_start(key))


def _stream_start(key: tuple[int, int]) -> Tensor:
    mixed = np.random.SeedSequence([*key, get_seed() or 0]).generate_state(1, np.uint64)[0]
    return Tensor([int(mixed) >> 1, 0], _core.int64)


def _stream(seed: Any, seed2: Any = 0) -> ParameterBase:
    if seed is None or (seed == 0 and seed2 == 0):
        return _global
    key = (arguments.integer(seed, "random", "seed"), arguments.integer(seed2, "random", "seed2"))
    if min(key) < 0:
        bad_value(f"random: a seed must not be negative, got {min(key)}")
    if key not in _streams:
        _streams[key] = ParameterBase(_stream_start(key))
    return _streams[key]


def _draw(shape: list[int], seed: Any = None, seed2: Any = 0, part: int = 0) -> Tensor:
    """float32 numbers in [0, 1), multiples of 2^-24; the stream moves on. part: which of its draws a call
    makes, which a key has to know."""
    if any(n < 0 for n in shape):
        bad_value(f"random: a shape cannot be negative, got {shape}")
    if keys.is_key(seed):
        return keys.drawn(shape, seed, part)
    state = _stream(seed, seed2)
    out = _ops.random_uniform(state, shape)
    blocks = -(-math.prod(shape) // 4)  # four numbers for each count of the offset
    state._set_array(_ops.add(state, Tensor([0, blocks], _core.int64)))
    return out


def _draw_normal(shape: list[int], seed: Any = None, seed2: Any = 0) -> Tensor:
    """Standard normal numbers from pairs of uniform ones.

    Box and Muller, "A note on the generation of random normal deviates" (1958).
    """
    return normal_of(_draw([2, (math.prod(shape) + 1) // 2], seed, seed2), shape)


def normal_of(u: Tensor, shape: list[int]) -> Tensor:
    """Return standard normal numbers of a shape from uniform ones, [2, pairs]."""
    pairs = u.shape[1]
    first = _ops.slice(u, [0, 0], [1, pairs], [1, 1])
    second = _ops.slice(u, [1, 0], [1, pairs], [1, 1])
    radius = _ops.sqrt(_ops.mul(_ops.log(_ops.sub(1.0, first)), -2.0))  # 1 - u is in (0, 1]
    angle = _ops.mul(second, 2.0 * math.pi)
    both = _ops.concat([_ops.mul(radius, _ops.cos(angle)), _ops.mul(radius, _ops.sin(angle))], 0)
    flat = _ops.reshape(both, [2 * pairs])
    return _ops.reshape(_ops.slice(flat, [0], [math.prod(shape)], [1]), shape)


def _size(size: tuple[Any, ...], op: str) -> list[int]:
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        return arguments.shape(size[0], op, "size")
    return arguments.shape(list(size) if size else [1], op, "size")


def _spread(shape: list[int], *bounds: Any) -> list[int]:
    """The result's shape: shape and the bounds' shapes broadcast or, failing that, one after
    the other."""
    dims: tuple[int, ...] = ()
    for b in bounds:
        if isinstance(b, Tensor):
            dims = np.broadcast_shapes(dims, tuple(b.shape))
    try:
        np.broadcast_shapes(tuple(shape), dims)
    except ValueError:
        return [*shape, *dims]
    return list(np.broadcast_shapes(tuple(shape), dims))


@one_plan
def uniform(
    shape: Any, minval: Any, maxval: Any, seed: Any = None, dtype: Any = _core.float32
) -> Tensor:
    """Uniform random numbers in [minval, maxval): tensors or numbers, which broadcast with shape.

    dtype: float32, or int32 for integers. Differentiable with respect to the bounds.
    """
    dims = _spread(arguments.shape(shape, "uniform"), minval, maxval)
    wanted = to_dtype(dtype)
    u = _draw(dims, seed)
    spread = _ops.add(_ops.mul(u, _ops.sub(maxval, minval)), minval)
    return _ops.cast(spread if wanted.is_floating else _ops.floor(spread), wanted)


@one_plan
def standard_normal(shape: Any, seed: Any = None) -> Tensor:
    """Random numbers of the standard normal distribution, float32."""
    return _draw_normal(arguments.shape(shape, "StandardNormal"), seed)


@one_plan
def normal(shape: Any, mean: Any, stddev: Any, seed: Any = None) -> Tensor:
    """Normal numbers, float32; mean and stddev are tensors or numbers, which broadcast with shape.

    Differentiable with respect to both.
    """
    dims = _spread(arguments.shape(shape, "normal"), mean, stddev)
    return _ops.add(_ops.mul(_draw_normal(dims, seed), stddev), mean)


@one_plan
def rand(*size: Any, dtype: DTypeLike | None = None, seed: Any = None) -> Tensor:
    """Uniform random numbers in [0, 1), float32 by default. size: integers or one tuple."""
    return _ops.cast(
        _draw(_size(size, "rand"), seed), arguments.dtype_or(dtype, _core.default_dtype())
    )


@one_plan
def randn(*size: Any, dtype: DTypeLike | None = None, seed: Any = None) -> Tensor:
    """Random numbers of the standard normal distribution, float32 by default. size: integers or one
    tuple."""
    normal_ = _draw_normal(_size(size, "randn"), seed)
    return _ops.cast(normal_, arguments.dtype_or(dtype, _core.default_dtype()))


def rand_like(input: Any, seed: Any = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Uniform random numbers in [0, 1) with the shape and dtype of input."""
    x = arguments.tensor(input, "rand_like")
    return rand(tuple(x.shape), dtype=arguments.dtype_or(dtype, x.dtype), seed=seed)


def randn_like(input: Any, seed: Any = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Standard normal random numbers with the shape and dtype of input."""
    x = arguments.tensor(input, "randn_like")
    return randn(tuple(x.shape), dtype=arguments.dtype_or(dtype, x.dtype), seed=seed)


@one_plan
def randint(
    low: Any, high: Any, size: Any, seed: Any = None, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Integers from low to high - 1, all equally likely, int64 by default.

    size: the shape, a tuple. Raises ValueError unless low < high.
    """
    first, end = (
        arguments.integer(low, "randint", "low"),
        arguments.integer(high, "randint", "high"),
    )
    if first >= end:
        bad_value(f"randint: low must be less than high, got {first} and {end}")
    u = _draw(arguments.shape(size, "randint", "size"), seed)
    # 24 random bits; for wide ranges twice as many, so that every integer can appear.
    wide = _ops.cast(u, _core.float64)
    if end - first > 1 << 16:
        low_bits = _ops.cast(_draw(list(u.shape), seed, part=1), _core.float64)
        wide = _ops.add(wide, _ops.mul(low_bits, 2.0**-24))
    picked = _ops.cast(_ops.floor(_ops.mul(wide, float(end - first))), _core.int64)
    return _ops.cast(_ops.add(picked, first), arguments.dtype_or(dtype, _core.int64))


def randint_like(
    input: Any, low: Any, high: Any, seed: Any = None, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Random integers, as randint makes them, with input's shape and dtype.

    low: the smallest number. high: the upper bound, which is left out.
    """
    x = arguments.tensor(input, "randint_like")
    return randint(low, high, tuple(x.shape), seed, dtype=arguments.dtype_or(dtype, x.dtype))


@one_plan
def randperm(n: Any, seed: Any = 0, offset: int = 0, dtype: Any = _core.int64) -> Tensor:
    """The integers from 0 to n - 1 in random order.

    offset has no effect.
    """
    keys = _draw([arguments.integer(n, "randperm", "n")], seed)
    # The numbers are multiples of 2^-24: as integers they have fewer digits to sort by.
    whole = _ops.cast(_ops.mul(keys, float(1 << 24)), _core.int32)
    return _ops.cast(_ops.order(whole), to_dtype(dtype))


@one_plan
def bernoulli(input: Any, p: Any = 0.5, seed: Any = None) -> Tensor:
    """Ones with probability p (a tensor or number), else zeros; input's shape and dtype.

    Raises ValueError for a number outside [0, 1].
    """
    x = arguments.tensor(input, "bernoulli")
    if not isinstance(p, Tensor):
        p = arguments.number(p, "bernoulli", "p", least=0, most=1)
    kept = _ops.less(_draw(list(x.shape), seed), p)
    return _ops.cast(kept, x.dtype)


def _dropout(x: Tensor, keep: float, seed: Any, seed2: Any = 0) -> tuple[Tensor, Tensor]:
    """(x with each element kept with probability keep and divided by it, the mask)."""
    if keep == 0.0:
        return _ops.mul(x, 0), _ops.full(list(x.shape), 0, x.dtype)
    kept = _ops.less(_draw(list(x.shape), seed, seed2), keep)
    return _ops.where(kept, _ops.mul(x, 1.0 / keep), 0), _ops.cast(kept, x.dtype)


@one_plan
def dropout(input: Any, p: Any = 0.5, training: bool = True, seed: Any = None) -> Tensor:
    """Each element set to 0 with probability p, the others divided by 1 - p; input itself unless
    training.

    Raises ValueError unless 0 <= p <= 1, TypeError unless input is floating. Srivastava et al.,
    "Dropout: a simple way to prevent neural networks from overfitting" (JMLR 2014).
    """
    x = arguments.tensor(input, "Dropout")
    p = arguments.number(p, "Dropout", "p", least=0, most=1)
    if not x.dtype.is_floating:
        bad_type(f"Dropout: the input must be floating, got {x.dtype}")
    if not training or p == 0:
        return x
    return _dropout(x, 1.0 - p, seed)[0]


# Choices and orders -------------------------------------------------------------------------------


def _seed(seed: Any) -> Any:
    return (
        0
        if seed is None
        else seed
        if keys.is_key(seed)
        else int(arguments.option(seed, "random", "seed"))
    )


@one_plan
def _gumbel(shape: list[int], seed: Any) -> Tensor:
    """Gumbel's distribution: -log(-log(u)); the index of the largest sum with log p is drawn by p."""
    u = _ops.maximum(_draw(shape, seed, 0), 1e-30)
    return _ops.neg(_ops.log(_ops.neg(_ops.log(u))))


@method()
def multinomial(input: Any, num_samples: int, replacement: bool = True, seed: Any = None) -> Tensor:
    """Indices drawn by the weights in a vector, or each row of a matrix: int32 [..., num_samples].

    Without replacement no index comes twice. Raises ValueError for weights that are negative, not
    finite or all zero, or for more samples than weights without replacement.
    """
    x = arguments.of_rank(input, (1, 2), "multinomial")
    count = arguments.integer(num_samples, "multinomial", "num_samples", 1)
    n = x.shape[-1]
    if not replacement and count > n:
        bad_value(f"multinomial: {count} of {n} without replacement are too many")
    rows = _ops.reshape(_ops.cast(x, _core.float32), [x.shape[0] if x.ndim > 1 else 1, n])
    if replacement:
        drawn = _ops.draw_by_weights(rows, _draw([rows.shape[0], count], _seed(seed), 0))
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
    true = np.argwhere(mask)
    if len(true):
        true = true[np.argsort(_draw([len(true)], _seed(seed), 0).asnumpy())]
    chosen = true[: arguments.integer(count, "RandomChoiceWithMask", "count")]
    index = np.zeros((count, mask.ndim), np.int64)
    index[: len(chosen)] = chosen
    return places(index), Tensor(np.arange(count) < len(chosen))


def shuffle(x: Any, seed: Any = None) -> Tensor:
    """The slices along the first dimension, in a random order."""
    t = arguments.tensor(x, "shuffle", "x")
    if t.ndim == 0 or t.shape[0] < 2:
        return _core.copy(t)
    order = indexing.argsort(_draw([t.shape[0]], _seed(seed), 0), 0)
    return _ops.gather(t, order, 0)


def randperm_padded(n: Any, *, max_length: int, pad: Any, dtype: Any) -> Tensor:
    """The numbers from 0 on below n in a random order, filled up with pad to max_length."""
    count = arguments.integers(n, "Randperm", "n")[0]
    if count > max_length:
        bad_value(f"Randperm: n {count} is more than max_length {max_length}")
    order = indexing.argsort(_draw([count], 0, 0), 0)
    rest = _ops.full([max_length - count], pad, to_dtype(dtype))
    return _ops.concat([_ops.cast(order, to_dtype(dtype)), rest], 0)


@one_plan
def dropout_channels(x: Any, keep_prob: float, rank: int) -> tuple[Tensor, Tensor]:
    """(x with each channel kept with probability keep_prob and divided by it, the mask, bool)."""
    t = arguments.of_rank(x, (rank,), f"Dropout{rank - 2}D")
    keep = arguments.number(keep_prob, f"Dropout{rank - 2}D", "keep_prob", least=0, most=1)
    if keep == 0.0:
        return _ops.mul(t, 0), _ops.full(list(t.shape), False, _core.bool)
    kept = _ops.less(_draw([*t.shape[:2], *[1] * (rank - 2)], 0, 0), keep)
    kept = _ops.broadcast_to(kept, list(t.shape))
    return _ops.where(kept, _ops.mul(t, 1.0 / keep), 0), kept
