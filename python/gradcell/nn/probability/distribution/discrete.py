"""Discrete distributions. Formulas: Johnson, Kemp and Kotz, Univariate discrete distributions (2005).

Probabilities of values between two integers are those of the lower one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import bad_value
from gradcell.nn.probability.distribution.distribution import Distribution, own
from gradcell.ops.random.draws import _draw


def _log(p: Tensor) -> Tensor:
    """log p, -inf at 0, without a derivative there that is not a number."""
    positive = _ops.greater(p, 0.0)
    return _ops.where(positive, _ops.log(_ops.where(positive, p, 1.0)), -math.inf)


def _p_log(p: Tensor, q: Tensor) -> Tensor:
    """p log q, 0 where p is."""
    positive = _ops.greater(p, 0.0)
    return _ops.where(positive, p * _log(_ops.where(positive, q, 1.0)), 0.0)


def _both(p: Tensor, q: Tensor) -> Tensor:
    """p log q of a success and of a failure, added up."""
    return _p_log(p, q) + _p_log(1.0 - p, 1.0 - q)


def _times_log(x: Tensor, p: Tensor) -> Tensor:
    """x log p; where p is 0, 0 for x = 0 and -inf else."""
    positive = _ops.greater(p, 0.0)
    finite = x * _ops.log(_ops.where(positive, p, 1.0))
    return _ops.where(positive, finite, _ops.where(_ops.equal(x, 0.0), 0.0, -math.inf))


def _classes(p: Tensor) -> Tensor:
    return Tensor(np.arange(p.shape[-1]), p.dtype)


def _picked(x: Tensor, p: Tensor, weight: Any) -> Tensor:
    """The sum over classes of p times weight(class, x)."""
    k = _ops.reshape(_ops.floor(x), [*x.shape, 1])
    return _ops.reduce_sum(_ops.where(weight(_classes(p), k), p, 0.0), -1)


class _OfProbabilities(Distribution):
    _needs = {"probs": "probability"}  # noqa: RUF012
    _value_dtypes = "any"

    def __init__(
        self,
        probs: Any = None,
        seed: int | None = None,
        dtype: _core.DType = _core.int32,
        name: str = "",
    ) -> None:
        super().__init__(seed, dtype, name, {"probs": probs})
        if self.probs is not None:
            self._check(self.probs)

    def _check(self, probs: Tensor) -> None:
        """Raises ValueError for probabilities that do not fit the distribution."""

    probs: Any = own("probs", "The probabilities.")


class Bernoulli(_OfProbabilities):
    """1 with probability probs, else 0. dtype: of the samples; seed: of them, None the global one.

    log_prob, x log p + (1 - x) log(1 - p), is also defined between and beyond 0 and 1, as in MindSpore.
    """

    _formulas = {  # noqa: RUF012
        "log_prob": lambda x, p: _times_log(x, p) + _times_log(1.0 - x, 1.0 - p),
        "mean": lambda p: p,
        "var": lambda p: p * (1.0 - p),
        "entropy": lambda p: -_both(p, p),
        "kl": lambda p, q: _both(p, p) - _both(p, q),
    }

    def _cdf(self, x: Tensor, p: Tensor) -> Tensor:
        at_zero = _ops.where(_ops.less(x, 1.0), 1.0 - p, 1.0)
        return _ops.where(_ops.less(x, 0.0), 0.0, at_zero)

    def _mode(self, p: Tensor) -> Tensor:
        return _ops.cast(_ops.greater(p, 0.5), self._dtype)

    def _sample(self, shape: list[int], p: Tensor) -> Tensor:
        return _ops.less(_draw(shape, self._seed), p)


class Geometric(_OfProbabilities):
    """The number of failures before the first success, each trial with probability probs, in (0,
    1]. dtype: of the samples."""

    _formulas = {  # noqa: RUF012
        "mean": lambda p: (1.0 - p) / p,
        "var": lambda p: (1.0 - p) / _ops.square(p),
        "entropy": lambda p: -_both(p, p) / p,
        "kl": lambda p, q: _both(p, p) / p - _both(p, q) / p,
    }

    def _log_prob(self, x: Tensor, p: Tensor) -> Tensor:
        k = _ops.maximum(_ops.floor(x), 0.0)
        value = _log(p) + _ops.where(_ops.greater(k, 0.0), k * _log(1.0 - p), 0.0)
        return _ops.where(_ops.greater_equal(x, 0.0), value, -math.inf)

    def _survival(self, x: Tensor, p: Tensor) -> Tensor:
        k = _ops.floor(x) + 1.0
        return _ops.where(_ops.less(x, 0.0), 1.0, _ops.pow(1.0 - p, _ops.maximum(k, 1.0)))

    def _cdf(self, x: Tensor, p: Tensor) -> Tensor:
        return 1.0 - self._survival(x, p)

    def _mode(self, p: Tensor) -> Tensor:
        return _ops.full(list(p.shape), 0, self._dtype)

    def _sample(self, shape: list[int], p: Tensor) -> Tensor:
        # P(k or more) = (1 - p)^k: floor of an exponential variable
        u = 1.0 - _draw(shape, self._seed)
        return _ops.floor(_ops.log(u) / _ops.log(_ops.maximum(1.0 - p, 1e-38)))


class Categorical(_OfProbabilities):
    """A distribution over class indices: probs[..., k] is the probability of k; each row sums to 1.

    probs: a tensor or list; None: given with each call. Values broadcast with the rows. dtype: of
    the samples. Raises ValueError for rows that do not sum to 1.
    """

    def _check(self, probs: Tensor) -> None:
        if probs.ndim < 1:
            bad_value("For 'Categorical', the 'probs' must have a dimension.")
        sums = probs.asnumpy().sum(-1)
        if not np.allclose(sums, 1, atol=1e-4):
            bad_value(f"For 'Categorical', the 'probs' must sum to 1, but they sum to {sums}.")

    @property
    def batch_shape(self) -> Any:
        """The shape of the rows; None without probs."""
        return None if self.probs is None else tuple(self.probs.shape[:-1])

    def _batch_of(self, parameters: list[Tensor]) -> list[int]:
        return list(parameters[0].shape[:-1])

    _formulas = {  # noqa: RUF012
        "log_prob": lambda x, p: _log(_picked(x, p, _ops.equal)),
        "cdf": lambda x, p: _picked(x, p, _ops.less_equal),
        "mean": lambda p: _ops.reduce_sum(_classes(p) * p, -1, True),
        "entropy": lambda p: -_ops.reduce_sum(_p_log(p, p), -1),
        "kl": lambda p, q: _ops.reduce_sum(_p_log(p, p), -1) - _ops.reduce_sum(_p_log(p, q), -1),
    }

    def _mode(self, p: Tensor) -> Tensor:
        return _ops.cast(_ops.argmax(p, -1, False), self._dtype)

    def _var(self, p: Tensor) -> Tensor:
        mean = _ops.reduce_sum(_classes(p) * p, -1, True)
        return _ops.reduce_sum(_ops.square(_classes(p) - mean) * p, -1, True)

    def _sample(self, shape: list[int], p: Tensor) -> Tensor:
        u = _ops.reshape(_draw(shape, self._seed), [*shape, 1])
        below = _ops.greater_equal(u, _ops.cumsum(p, p.ndim - 1))
        # The last sum may fall short of 1 by a rounding.
        count = _ops.reduce_sum(_ops.cast(below, _core.int32), -1)
        return _ops.minimum(count, p.shape[-1] - 1)
