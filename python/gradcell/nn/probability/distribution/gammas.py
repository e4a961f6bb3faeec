"""Gamma, Beta and Poisson: the distributions whose formulas have gamma functions in them, which are
computed in float64, since their large parts cancel. Formulas: as in continuous.py and discrete.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.nn.probability.distribution import sampling
from gradcell.nn.probability.distribution.distribution import Distribution, own, within
from gradcell.ops.elements.elementwise import xlogy
from gradcell.ops.elements.gammas import digamma, igamma, igammac, lgamma


def _in_float64(formula: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The formula computed in float64 and given in the dtype of the last parameter."""

    def run(*tensors: Tensor) -> Tensor:
        found = formula(*(_ops.cast(t, _core.float64) for t in tensors))
        return _ops.cast(found, tensors[-1].dtype)

    return run


def _from_zero(x: Tensor) -> Tensor:
    """Return whether x is finite and not below 0."""
    return _ops.logical_and(_ops.greater_equal(x, 0.0), _ops.less(x, math.inf))


def _log_beta(a: Tensor, b: Tensor) -> Tensor:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _gamma_log_prob(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    inside = _from_zero(x)
    at = _ops.where(inside, x, 1.0)
    return within(x, inside, xlogy(a - 1.0, at) - b * at + a * _ops.log(b) - lgamma(a))


def _gamma_prob(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    edge = _ops.equal(x, 0.0)
    smooth = _ops.exp(_gamma_log_prob(_ops.where(edge, 1.0, x), a, b))
    # By powers, whose derivatives are right at 0, where those of the logarithm are infinite.
    least = _ops.where(edge, x, 1.0)
    at_edge = _ops.pow(least, a - 1.0) * _ops.exp(a * _ops.log(b) - lgamma(a) - b * least)
    return _ops.where(edge, at_edge, smooth)


def _gamma_side(
    x: Tensor, a: Tensor, b: Tensor, side: Callable[..., Tensor], below: float
) -> Tensor:
    outside = _ops.less(x, 0.0)  # (at 0 itself the derivative may be infinite)
    return _ops.where(outside, below, side(a, b * _ops.where(outside, 1.0, x)))


def _gamma_kl(a: Tensor, b: Tensor, a_b: Tensor, b_b: Tensor) -> Tensor:
    first = (a - a_b) * digamma(a) + lgamma(a_b) - lgamma(a)
    return first + a_b * _ops.log(b / b_b) + a * (b_b / b - 1.0)


class Gamma(Distribution, positive="concentration rate"):
    """The gamma distribution: $x^(a - 1) exp(-b x) b^a / Gamma(a)$ of a concentration a and a rate b, both
    positive. Samples are differentiable with respect to both. Otherwise like Normal."""

    def __init__(
        self,
        concentration: Any = None,
        rate: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "Gamma",
    ) -> None:
        super().__init__(seed, dtype, name, {"concentration": concentration, "rate": rate})

    concentration: Any = own("concentration", "The concentration.")
    rate: Any = own("rate", "The rate.")

    _formulas = {  # noqa: RUF012
        "log_prob": _in_float64(_gamma_log_prob),
        "prob": _in_float64(_gamma_prob),
        "cdf": _in_float64(lambda x, a, b: _gamma_side(x, a, b, igamma, 0.0)),
        "survival": _in_float64(lambda x, a, b: _gamma_side(x, a, b, igammac, 1.0)),
        "mean": lambda a, b: a / b,
        "mode": lambda a, b: _ops.where(_ops.greater(a, 1.0), (a - 1.0) / b, math.nan),
        "var": lambda a, b: a / _ops.square(b),
        "entropy": _in_float64(lambda a, b: a - _ops.log(b) + lgamma(a) + (1.0 - a) * digamma(a)),
        "kl": _in_float64(_gamma_kl),
    }

    def _sample(self, shape: list[int], a: Tensor, b: Tensor) -> Tensor:
        drawn = sampling.gamma(shape, a, self._seed)
        return _ops.cast(drawn / _ops.cast(b, _core.float64), self.parameter_type)


def _beta_log_prob(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    inside = _ops.logical_and(_ops.greater_equal(x, 0.0), _ops.less_equal(x, 1.0))
    at = _ops.where(inside, x, 0.5)
    found = xlogy(a - 1.0, at) + xlogy(b - 1.0, 1.0 - at) - _log_beta(a, b)
    return within(x, inside, found)


def _beta_prob(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    edge = _ops.logical_or(_ops.equal(x, 0.0), _ops.equal(x, 1.0))
    smooth = _ops.exp(_beta_log_prob(_ops.where(edge, 0.5, x), a, b))
    # As for Gamma.
    end = _ops.where(edge, x, 0.5)
    powers = _ops.pow(end, a - 1.0) * _ops.pow(1.0 - end, b - 1.0)
    return _ops.where(edge, powers * _ops.exp(-_log_beta(a, b)), smooth)


def _beta_mode(a: Tensor, b: Tensor) -> Tensor:
    inner = _ops.logical_and(_ops.greater(a, 1.0), _ops.greater(b, 1.0))
    total = _ops.where(inner, a + b - 2.0, 1.0)
    return _ops.where(inner, (a - 1.0) / total, math.nan)


def _beta_var(a: Tensor, b: Tensor) -> Tensor:
    total = a + b
    return (a / total) * (b / total) / (total + 1.0)


def _beta_entropy(a: Tensor, b: Tensor) -> Tensor:
    found = _log_beta(a, b) - (a - 1.0) * digamma(a) - (b - 1.0) * digamma(b)
    return found + (a + b - 2.0) * digamma(a + b)


def _beta_kl(a: Tensor, b: Tensor, a_b: Tensor, b_b: Tensor) -> Tensor:
    found = _log_beta(a_b, b_b) - _log_beta(a, b)
    found = found + (a - a_b) * digamma(a) + (b - b_b) * digamma(b)
    return found + (a_b + b_b - a - b) * digamma(a + b)


class Beta(Distribution, positive="concentration1 concentration0"):
    """The beta distribution: $x^(a - 1) (1 - x)^(b - 1) / B(a, b)$ of a = concentration1 and b =
    concentration0, both positive. It has no cdf here. Samples are differentiable with respect to
    both. Otherwise like Normal."""

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "Beta",
    ) -> None:
        given = {"concentration1": concentration1, "concentration0": concentration0}
        super().__init__(seed, dtype, name, given)

    concentration1: Any = own("concentration1", "The power of x, plus 1.")
    concentration0: Any = own("concentration0", "The power of 1 - x, plus 1.")

    _formulas = {  # noqa: RUF012
        "log_prob": _in_float64(_beta_log_prob),
        "prob": _in_float64(_beta_prob),
        "mean": lambda a, b: a / (a + b),
        "mode": _beta_mode,
        "var": _beta_var,
        "entropy": _in_float64(_beta_entropy),
        "kl": _in_float64(_beta_kl),
    }

    def _sample(self, shape: list[int], *parameters: Tensor) -> Tensor:
        first, second = (sampling.gamma(shape, p, self._seed) for p in parameters)
        return _ops.cast(first / (first + second), self.parameter_type)


def _poisson_log_prob(x: Tensor, rate: Tensor) -> Tensor:
    inside = _from_zero(x)
    n = _ops.where(inside, x, 0.0)
    return within(x, inside, n * _ops.log(rate) - rate - lgamma(n + 1.0))


def _poisson_side(x: Tensor, rate: Tensor, formula: Callable[..., Tensor], last: float) -> Tensor:
    """The formula at the integer up to x; beyond all of them `last`, below 0 what is left of 1."""
    inside = _from_zero(x)
    n = _ops.floor(_ops.where(inside, x, 0.0))
    beyond = _ops.where(_ops.greater(x, 0.0), last, 1.0 - last)
    return within(x, inside, formula(n + 1.0, rate), beyond)


class Poisson(Distribution, positive="rate"):
    """The Poisson distribution: rate^n e^-rate / n! of a positive rate. dtype: of the samples; seed: of
    them, None the global one.

    log_prob is also defined between integers, as in MindSpore; the cdf between two integers is that
    of the lower one.
    """

    _value_dtypes = "any"

    def __init__(
        self,
        rate: Any = None,
        seed: int | None = None,
        dtype: _core.DType = _core.float32,
        name: str = "Poisson",
    ) -> None:
        super().__init__(seed, dtype, name, {"rate": rate})

    rate: Any = own("rate", "The rate.")

    _formulas = {  # noqa: RUF012
        "log_prob": _in_float64(_poisson_log_prob),
        "cdf": _in_float64(lambda x, rate: _poisson_side(x, rate, igammac, 1.0)),
        "survival": _in_float64(lambda x, rate: _poisson_side(x, rate, igamma, 0.0)),
        "mean": lambda rate: rate,
        "mode": lambda rate: _ops.floor(rate),
        "var": lambda rate: rate,
    }

    def _sample(self, shape: list[int], rate: Tensor) -> Tensor:
        return sampling.poisson(shape, rate, self._seed)
