"""Random numbers by keys: every number follows from a key, a shape and a distribution, and from nothing else.

    key = random.key(0)
    key, other = random.split(key)
    x = random.normal(other, (1000, 3))

A key is a tensor, an integer of 64 bits. What is drawn with it is always the same, in compiled functions too;
`split` and `fold_in` give keys whose numbers have nothing to do with each other. `vmap` maps over keys. The
ops that take a seed, such as ops.dropout, take a key in its place. For numbers that differ from call to call
there are `set_seed` and the functions of `ops`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import DTypeLike, arguments, bad_type, bad_value, kind_of, publish
from gradcell.ops.arrays.indexing import topk
from gradcell.ops.decorators import one_plan
from gradcell.ops.random import draws as _draws, keys as _keys

#: How many random bits the numbers of a dtype have, where it is not 24: as many as it can tell apart below 1.
_BITS = {"float16": 11, "bfloat16": 8, "float64": 48}


def _key_of(value: Any, name: str) -> Tensor:
    if not _keys.is_key(value):
        many = isinstance(value, Tensor) and value.dtype == _core.uint64
        hint = ": vmap the function over several keys" if many else ""
        shape = f" of shape {list(value.shape)}" if isinstance(value, Tensor) else ""
        bad_type(
            f"random.{name}: expected a key, as random.key(0) gives it, got {kind_of(value)}{shape}{hint}"
        )
    return value  # type: ignore[no-any-return]


def _shape_of(shape: Any, name: str) -> list[int]:
    if isinstance(shape, (tuple, list)) and not shape:
        return []
    return arguments.shape(shape, f"random.{name}")


def key(seed: Any) -> Tensor:
    """Return the key that belongs to a seed.

    seed: an integer from 0 to below 2^63, or a tensor of one. Raises TypeError, ValueError for others.
    """
    if not isinstance(seed, Tensor):
        number = arguments.integer(seed, "random.key", "seed")
        if not 0 <= number < 2**63:
            bad_value(f"random.key: a seed is from 0 to below 2^63, got {number}")
        seed = Tensor(np.uint64(number))
    elif seed.dtype.is_floating or seed.ndim:
        bad_type(f"random.key: the seed must be one integer, got {seed.dtype} {list(seed.shape)}")
    return _begun(seed)


@one_plan
def _begun(seed: Tensor) -> Tensor:
    zero = _ops.full([], 0, _core.uint64)
    return _keys.keys_at(_ops.cast(seed, _core.uint64), zero, _keys.BEGUN)


@one_plan
def split(key: Tensor, num: Any = 2) -> Tensor:
    """Return new keys, [num], with numbers of their own: `first, second = random.split(key)`.

    key: a key, whose own numbers should not be used after that. num: how many, or a shape. Raises
    TypeError for what is no key.
    """
    shape = [num] if isinstance(num, (int, np.integer)) else num
    dims = _shape_of(shape, "split")
    counters = _ops.cast(_ops.iota([math.prod(dims)], _core.int64, 0), _core.uint64)
    found = _keys.keys_at(_key_of(key, "split"), counters, _keys.SPLIT)
    return _ops.reshape(found, dims)


@one_plan
def fold_in(key: Tensor, data: Any) -> Tensor:
    """Return the new key that belongs to a key and an integer, such as the number of a step.

    key: a key. data: an integer, or a tensor of one. Raises TypeError for what is no key, or no integer.
    """
    number = data if isinstance(data, Tensor) else Tensor(np.int64(data))
    if number.dtype.is_floating or number.ndim:
        bad_type(
            f"random.fold_in: data must be one integer, got {number.dtype} {list(number.shape)}"
        )
    return _keys.keys_at(_key_of(key, "fold_in"), _ops.cast(number, _core.uint64), _keys.FOLDED)


@one_plan
def bits(key: Tensor, shape: Any = ()) -> Tensor:
    """Return random integers of 32 bits, uint32.

    key: a key. shape: the shape of the result. Raises TypeError for what is no key.
    """
    dims = _shape_of(shape, "bits")
    return _ops.cast(_keys.words(dims, _key_of(key, "bits"), 0), _core.uint32)


def _unit(key: Tensor, dims: list[int], wanted: Any) -> Tensor:
    """Numbers in [0, 1), in float32 or float64, that are below 1 in the dtype that is wanted too."""
    high, count = _draws._draw(dims, key), _BITS.get(wanted.name.lower(), 24)
    if count < 24:
        return _ops.mul(_ops.floor(_ops.mul(high, 2.0**count)), 2.0**-count)
    if count == 24:
        return high
    low = _ops.cast(_draws._draw(dims, key, part=1), _core.float64)
    return _ops.add(_ops.cast(high, _core.float64), _ops.mul(low, 2.0**-24))


def _floating(dtype: Any, name: str) -> Any:
    wanted = arguments.dtype_or(dtype, _core.default_dtype())
    if not wanted.is_floating or wanted.is_complex:
        bad_type(f"random.{name}: the dtype must be a real floating one, got {wanted}")
    return wanted


@one_plan
def uniform(
    key: Tensor,
    shape: Any = (),
    dtype: DTypeLike | None = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
) -> Tensor:
    """Return uniform random numbers in [minval, maxval).

    key: a key. shape: the shape of the result. dtype: a floating one; by default that of set_default_dtype.
    minval, maxval: numbers or tensors, which broadcast with shape, and by which the result can be
    differentiated. Raises TypeError for what is no key.
    """
    wanted = _floating(dtype, "uniform")
    unit = _unit(_key_of(key, "uniform"), _shape_of(shape, "uniform"), wanted)
    return _ops.cast(_ops.add(_ops.mul(unit, _ops.sub(maxval, minval)), minval), wanted)


@one_plan
def normal(key: Tensor, shape: Any = (), dtype: DTypeLike | None = None) -> Tensor:
    """Return random numbers of the standard normal distribution (Box and Muller 1958).

    key: a key. shape: the shape of the result. dtype: a floating one; by default that of set_default_dtype.
    Raises TypeError for what is no key.
    """
    wanted, dims = _floating(dtype, "normal"), _shape_of(shape, "normal")
    pairs = (math.prod(dims) + 1) // 2
    unit = _unit(_key_of(key, "normal"), [2, pairs], wanted)
    return _ops.cast(_draws.normal_of(unit, dims), wanted)


@one_plan
def exponential(key: Tensor, shape: Any = (), dtype: DTypeLike | None = None) -> Tensor:
    """Return random numbers of the exponential distribution with mean 1.

    key: a key. shape: the shape of the result. dtype: a floating one; by default that of set_default_dtype.
    Raises TypeError for what is no key.
    """
    wanted = _floating(dtype, "exponential")
    unit = _unit(_key_of(key, "exponential"), _shape_of(shape, "exponential"), wanted)
    return _ops.cast(_ops.neg(_ops.log1p(_ops.neg(unit))), wanted)


def randint(
    key: Tensor, shape: Any, minval: Any, maxval: Any, dtype: DTypeLike | None = None
) -> Tensor:
    """Return integers from minval to maxval - 1, all equally likely.

    key: a key. shape: the shape of the result. minval, maxval: integers. dtype: that of the result; int64 by
    default. Raises TypeError for what is no key, ValueError unless minval < maxval.
    """
    dims = tuple(_shape_of(shape, "randint"))
    return _draws.randint(minval, maxval, dims, _key_of(key, "randint"), dtype=dtype)


@one_plan
def bernoulli(key: Tensor, p: Any = 0.5, shape: Any = None) -> Tensor:
    """Return bools that are true with probability p.

    key: a key. p: a number or a tensor. shape: that of the result, with which p broadcasts; by default p's.
    Raises TypeError for what is no key, ValueError for a number outside [0, 1].
    """
    if not isinstance(p, Tensor):
        p = arguments.number(p, "random.bernoulli", "p", least=0, most=1)
    dims = list(getattr(p, "shape", ())) if shape is None else _shape_of(shape, "bernoulli")
    return _ops.less(_draws._draw(dims, _key_of(key, "bernoulli")), p)


def permutation(key: Tensor, x: Any) -> Tensor:
    """Return the integers below x, or the slices of a tensor along its first dimension, in a random order.

    key: a key. x: an integer or a tensor. Raises TypeError for what is no key.
    """
    of_key = _key_of(key, "permutation")
    if not isinstance(x, Tensor) or not x.ndim:
        return _draws.randperm(x, seed=of_key)
    return _ops.gather(x, _draws.randperm(x.shape[0], seed=of_key), 0)


@one_plan
def categorical(key: Tensor, logits: Any, shape: Any = None) -> Tensor:
    """Return indices drawn by the softmax of scores along the last dimension, int64.

    key: a key. logits: scores, [..., classes]. shape: that of the result, which ends with the dimensions of
    the scores without the last; by default these. Raises TypeError for what is no key, ValueError for a
    shape that does not fit.
    """
    scores = arguments.tensor(logits, "random.categorical", "logits")
    lead, n = list(scores.shape[:-1]), scores.shape[-1]
    dims = lead if shape is None else _shape_of(shape, "categorical")
    if dims[len(dims) - len(lead) :] != lead:
        bad_value(f"random.categorical: shape {dims} does not end with {lead}, that of the scores")
    noise = _draws._gumbel([*dims, n], _key_of(key, "categorical"))
    return _ops.argmax(_ops.add(_ops.cast(scores, _core.float32), noise), len(dims))


def choice(key: Tensor, a: Any, shape: Any = (), replace: bool = True, p: Any = None) -> Tensor:
    """Return integers below a, or slices of a tensor along its first dimension, drawn at random.

    key: a key. a: an integer or a tensor. shape: how many, as a shape. replace: whether one may be drawn
    more than once. p: the probabilities, a vector; by default all are equally likely. Raises TypeError for
    what is no key, ValueError for more than there are without replace.
    """
    of_key, dims = _key_of(key, "choice"), _shape_of(shape, "choice")
    many = (
        a.shape[0] if isinstance(a, Tensor) and a.ndim else arguments.integer(a, "choice", "a", 1)
    )
    count = math.prod(dims)
    if not replace and count > many:
        bad_value(f"random.choice: {count} of {many} without replacement are too many")
    if p is None and replace:
        found = _draws.randint(0, many, (count,), of_key)
    elif p is None:
        found = _ops.slice(_draws.randperm(many, seed=of_key), [0], [count], [1])
    elif replace:
        found = categorical(of_key, _ops.log(arguments.tensor(p, "random.choice", "p")), (count,))
    else:
        logs = _ops.log(_ops.cast(arguments.tensor(p, "random.choice", "p"), _core.float32))
        found = topk(_ops.add(logs, _draws._gumbel([many], of_key)), count)[1]
    picked = _ops.gather(a, found, 0) if isinstance(a, Tensor) and a.ndim else found
    return _ops.reshape(picked, [*dims, *picked.shape[1:]])


publish(globals())
