"""Continuous distributions. Formulas: Johnson, Kotz and Balakrishnan, Continuous univariate
distributions (1994, 1995); each is in the parameters' order of the constructor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import bad_value, where
from gradcell.nn.probability.distribution.distribution import Distribution, own, within
from gradcell.ops.elements.activations import _softplus
from gradcell.ops.elements.gammas import lgamma
from gradcell.ops.random.draws import _draw, _draw_normal

_EULER = 0.57721566490153286061
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _normal_log_prob(x: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
    return -0.5 * _ops.square((x - mean) / sd) - _ops.log(sd) - _HALF_LOG_2PI


def _normal_below(z: Tensor, sd: Tensor) -> Tensor:
    """The probability of less than z of a normal distribution about 0."""
    return 0.5 * _ops.erfc(-z / (sd * math.sqrt(2)))


def _normal_kl(mean: Tensor, sd: Tensor, mean_b: Tensor, sd_b: Tensor) -> Tensor:
    scale = _ops.log(sd) - _ops.log(sd_b)
    return 0.5 * (_ops.square((mean - mean_b) / sd_b) + _ops.expm1(2.0 * scale)) - scale


def _above_zero(x: Tensor, formula: Callable[[Tensor], Tensor], elsewhere: float) -> Tensor:
    """Return formula(log x), and another value where x is not positive."""
    positive = _ops.greater(x, 0.0)
    return within(x, positive, formula(_ops.log(_ops.where(positive, x, 1.0))), elsewhere)


def _cauchy_kl(loc: Tensor, scale: Tensor, loc_b: Tensor, scale_b: Tensor) -> Tensor:
    apart = _ops.square(scale + scale_b) + _ops.square(loc - loc_b)
    return _ops.log(apart / (4.0 * scale * scale_b))


def _standardised(
    x: Tensor, loc: Tensor, scale: Tensor, formula: Callable[[Tensor], Tensor]
) -> Tensor:
    """formula((x - loc) / scale) less log scale; log 0 at -inf, where parts of the formula are infinite."""
    given = (x - loc) / scale
    there = _ops.greater(given, -math.inf)
    return within(given, there, formula(_ops.where(there, given, 0.0)) - _ops.log(scale))


def _gumbel_kl(a: Tensor, s: Tensor, b: Tensor, t: Tensor) -> Tensor:
    ratio, apart = s / t, (b - a) / t
    far = _ops.exp(apart + lgamma(1.0 + ratio))
    return _ops.log(t / s) + _EULER * (ratio - 1.0) - apart + far - 1.0


def _laplace_below(z: Tensor) -> Tensor:
    """The probability of less than z at mean 0 and scale 1: one condition for both sides, so that the
    derivative at 0 is that of a side, not of a kink."""
    negative = _ops.less(z, 0.0)
    half = 0.5 * _ops.exp(_ops.where(negative, z, -z))
    return _ops.where(negative, half, 1.0 - half)


def _laplace_kl(mean: Tensor, scale: Tensor, mean_b: Tensor, scale_b: Tensor) -> Tensor:
    apart = mean - mean_b
    apart = _ops.where(_ops.less(apart, 0.0), -apart, apart)  # abs has derivative 0 at 0
    moved = (scale * _ops.exp(-apart / scale) + apart) / scale_b
    return _ops.log(scale_b / scale) + moved - 1.0


def _uniform_log_prob(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    inside = _ops.logical_and(_ops.greater_equal(x, low), _ops.less_equal(x, high))
    return within(x, inside, 0.0 * x - _ops.log(high - low))


def _uniform_cdf(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return _ops.minimum(_ops.maximum((x - low) / (high - low), 0.0), 1.0)


def _uniform_kl(low: Tensor, high: Tensor, low_b: Tensor, high_b: Tensor) -> Tensor:
    inside = _ops.logical_and(_ops.less_equal(low_b, low), _ops.less_equal(high, high_b))
    return _ops.where(inside, _ops.log(high_b - low_b) - _ops.log(high - low), math.inf)


def _log_normal_var(loc: Tensor, scale: Tensor) -> Tensor:
    square = _ops.square(scale)
    return _ops.expm1(square) * _ops.exp(2.0 * loc + square)


class _LocationScale(Distribution):
    """Base class of distributions of (x - location) / scale."""

    _formulas = {"mode": lambda location, scale: location + 0.0 * scale}  # noqa: RUF012

    def _standard(self, shape: list[int]) -> Tensor:
        """Samples at location 0 and scale 1."""
        raise self._absent("sample")

    def _sample(self, shape: list[int], location: Tensor, scale: Tensor) -> Tensor:
        return location + scale * self._standard(shape)

    def _uniform(self, shape: list[int]) -> Tensor:
        """Numbers in (0, 1), 0 left out."""
        return 1.0 - _draw(shape, self._seed)


class Normal(_LocationScale, positive="sd"):
    """The normal distribution. mean, sd: tensors or numbers, sd positive; None: given with each call.

    dtype: floating, of the samples. seed: of the samples; None: the global one.
    """

    def __init__(
        self,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "Normal",
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})

    _formulas = {  # noqa: RUF012
        "log_prob": _normal_log_prob,
        "cdf": lambda x, mean, sd: _normal_below(x - mean, sd),
        "survival": lambda x, mean, sd: _normal_below(mean - x, sd),
        "mean": lambda mean, sd: mean + 0.0 * sd,
        "var": lambda mean, sd: _ops.square(sd) + 0.0 * mean,
        "entropy": lambda mean, sd: _ops.log(sd) + 0.0 * mean + (0.5 + _HALF_LOG_2PI),
        "kl": _normal_kl,
    }

    def _standard(self, shape: list[int]) -> Tensor:
        return _draw_normal(shape, self._seed)


class LogNormal(Normal, positive="scale"):
    """exp of a normal distribution with mean loc and standard deviation scale. Otherwise like Normal."""

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        seed: int | None = 0,
        dtype: _core.DType | None = None,
        name: str = "LogNormal",
    ) -> None:
        Distribution.__init__(self, seed, dtype, name, {"loc": loc, "scale": scale})

    loc: Any = own("loc", "The mean of the logarithm.")
    scale: Any = own("scale", "The standard deviation of the logarithm.")

    _formulas = {  # noqa: RUF012
        "log_prob": lambda x, m, s: _above_zero(
            x, lambda z: _normal_log_prob(z, m, s) - z, -math.inf
        ),
        "cdf": lambda x, m, s: _above_zero(x, lambda z: _normal_below(z - m, s), 0.0),
        "survival": lambda x, m, s: _above_zero(x, lambda z: _normal_below(m - z, s), 1.0),
        "mode": lambda loc, scale: _ops.exp(loc - _ops.square(scale)),
        "mean": lambda loc, scale: _ops.exp(loc + 0.5 * _ops.square(scale)),
        "var": _log_normal_var,
        "entropy": lambda loc, scale: _ops.log(scale) + 0.0 * loc + (0.5 + _HALF_LOG_2PI) + loc,
    }

    def _sample(self, shape: list[int], location: Tensor, scale: Tensor) -> Tensor:
        return _ops.exp(super()._sample(shape, location, scale))


class Cauchy(_LocationScale, positive="scale"):
    """The Cauchy distribution, which has no moments. loc, scale: scale positive. Otherwise like Normal."""

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "Cauchy",
    ) -> None:
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})

    _formulas = {  # noqa: RUF012
        "log_prob": lambda x, loc, scale: (
            -_ops.log1p(_ops.square((x - loc) / scale)) - _ops.log(scale) - math.log(math.pi)
        ),
        "cdf": lambda x, loc, scale: 0.5 + _ops.atan((x - loc) / scale) * (1 / math.pi),
        "entropy": lambda loc, scale: _ops.log(scale) + 0.0 * loc + math.log(4 * math.pi),
        "kl": _cauchy_kl,
    }

    def _undefined(self, what: str) -> ValueError:
        return ValueError(f"{what} is undefined for Cauchy distribution.{where()}")

    def _mean(self, *parameters: Tensor) -> Tensor:
        raise self._undefined("mean")

    def _var(self, *parameters: Tensor) -> Tensor:
        raise self._undefined("variance")

    def _standard(self, shape: list[int]) -> Tensor:
        return _ops.tan((self._uniform(shape) - 0.5) * math.pi)


class Logistic(_LocationScale, positive="scale"):
    """The logistic distribution. loc, scale: scale positive. Otherwise like Normal."""

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "Logistic",
    ) -> None:
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})

    _formulas = {  # noqa: RUF012
        "log_prob": lambda x, loc, scale: _standardised(
            x, loc, scale, lambda z: -z - 2.0 * _softplus(-z)
        ),
        "cdf": lambda x, loc, scale: _ops.sigmoid((x - loc) / scale),
        "survival": lambda x, loc, scale: _ops.sigmoid((loc - x) / scale),
        "mean": lambda loc, scale: loc + 0.0 * scale,
        "var": lambda loc, scale: _ops.square(scale) * (math.pi**2 / 3) + 0.0 * loc,
        "entropy": lambda loc, scale: _ops.log(scale) + 0.0 * loc + 2.0,
    }

    def _standard(self, shape: list[int]) -> Tensor:
        u = self._uniform(shape)
        return _ops.log(u) - _ops.log(_ops.maximum(1.0 - u, 2.0**-25))


class Gumbel(_LocationScale, positive="scale"):
    """The Gumbel distribution of the largest of many values. loc, scale: scale positive. Otherwise
    like Normal."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        seed: int | None = 0,
        dtype: _core.DType | None = None,
        name: str = "Gumbel",
    ) -> None:
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})

    _formulas = {  # noqa: RUF012
        "log_prob": lambda x, loc, scale: _standardised(x, loc, scale, lambda z: -z - _ops.exp(-z)),
        "cdf": lambda x, loc, scale: _ops.exp(-_ops.exp((loc - x) / scale)),
        "survival": lambda x, loc, scale: -_ops.expm1(-_ops.exp((loc - x) / scale)),
        "mean": lambda loc, scale: loc + _EULER * scale,
        "var": lambda loc, scale: _ops.square(scale) * (math.pi**2 / 6) + 0.0 * loc,
        "entropy": lambda loc, scale: _ops.log(scale) + 0.0 * loc + (1.0 + _EULER),
        "kl": _gumbel_kl,
    }

    def _standard(self, shape: list[int]) -> Tensor:
        exponential = -_ops.log(self._uniform(shape))
        return -_ops.log(_ops.maximum(exponential, 2.0**-25))


class Laplace(_LocationScale, positive="sd"):
    """The Laplace distribution: density $exp(-|x - mean| / sd) / (2 sd)$. sd: positive; it is the scale,
    not the standard deviation, as in MindSpore. Otherwise like Normal."""

    def __init__(
        self,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "Laplace",
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})

    _formulas = {  # noqa: RUF012
        "log_prob": lambda x, mean, sd: -_ops.abs((x - mean) / sd) - _ops.log(2.0 * sd),
        "cdf": lambda x, mean, sd: _laplace_below((x - mean) / sd),
        "survival": lambda x, mean, sd: _laplace_below((mean - x) / sd),
        "mean": lambda mean, sd: mean + 0.0 * sd,
        "var": lambda mean, sd: 2.0 * _ops.square(sd) + 0.0 * mean,
        "entropy": lambda mean, sd: _ops.log(2.0 * sd) + 0.0 * mean + 1.0,
        "kl": _laplace_kl,
    }

    def _standard(self, shape: list[int]) -> Tensor:
        u = self._uniform(shape) - 0.5
        return -_ops.sign(u) * _ops.log1p(-2.0 * _ops.minimum(_ops.abs(u), 0.5 - 2.0**-25))


class HalfNormal(_LocationScale, positive="sd"):
    """The upper half of a normal distribution about mean with standard deviation sd. As in MindSpore,
    the density is 0 below 0, whatever the mean, which should be 0. Otherwise like Normal."""

    def __init__(
        self,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "HalfNormal",
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})

    def _log_prob(self, x: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        value = -0.5 * _ops.square((x - mean) / sd) - _ops.log(sd) + 0.5 * math.log(2 / math.pi)
        return within(x, _ops.greater_equal(x, 0.0), value)

    def _standard(self, shape: list[int]) -> Tensor:
        return _ops.abs(_draw_normal(shape, self._seed))


class Uniform(Distribution):
    """The uniform distribution from low to high: tensors or numbers; None: given with each call."""

    def __init__(
        self,
        low: Any = None,
        high: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "Uniform",
    ) -> None:
        super().__init__(seed, dtype, name, {"low": low, "high": high})
        low, high = self._own["low"], self._own["high"]
        if low is not None and high is not None and not (low.asnumpy() < high.asnumpy()).all():
            bad_value(
                f"For 'Uniform', the 'low' must be below the 'high', but got {low} and {high}"
            )

    low: Any = own("low", "The lower end.")
    high: Any = own("high", "The upper end.")

    _formulas = {  # noqa: RUF012
        "log_prob": _uniform_log_prob,
        "cdf": _uniform_cdf,
        "mean": lambda low, high: 0.5 * (low + high),
        "var": lambda low, high: _ops.square(high - low) * (1 / 12),
        "entropy": lambda low, high: _ops.log(high - low),
        "kl": _uniform_kl,
    }

    def _sample(self, shape: list[int], low: Tensor, high: Tensor) -> Tensor:
        return low + (high - low) * _draw(shape, self._seed)


class Exponential(Distribution, positive="rate"):
    """The exponential distribution: density $rate exp(-rate x)$ from 0 on. rate: positive."""

    def __init__(
        self,
        rate: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "Exponential",
    ) -> None:
        super().__init__(seed, dtype, name, {"rate": rate})

    rate: Any = own("rate", "The rate.")

    _formulas = {  # noqa: RUF012
        "log_prob": lambda x, rate: within(
            x, _ops.greater_equal(x, 0.0), _ops.log(rate) - rate * x
        ),
        "cdf": lambda x, rate: -_ops.expm1(-rate * _ops.maximum(x, 0.0)),
        "survival": lambda x, rate: _ops.exp(-rate * _ops.maximum(x, 0.0)),
        "mean": lambda rate: 1.0 / rate,
        "mode": lambda rate: _ops.full(list(rate.shape), 0.0, rate.dtype),
        "var": lambda rate: 1.0 / _ops.square(rate),
        "entropy": lambda rate: 1.0 - _ops.log(rate),
        "kl": lambda rate, rate_b: _ops.log(rate) - _ops.log(rate_b) + rate_b / rate - 1.0,
    }

    def _sample(self, shape: list[int], rate: Tensor) -> Tensor:
        return -_ops.log(1.0 - _draw(shape, self._seed)) / rate
