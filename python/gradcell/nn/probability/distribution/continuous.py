"""Continuous distributions. Formulas: Johnson, Kotz and Balakrishnan, Continuous univariate
distributions (1994, 1995); each is in the parameters' order of the constructor.
"""

from __future__ import annotations

import math
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base.errors import bad_value
from gradcell.base.location import where
from gradcell.nn.probability.distribution.distribution import Distribution, own, within
from gradcell.ops.elements.activations import _softplus
from gradcell.ops.elements.special import lgamma
from gradcell.ops.random.functions import _draw, _draw_normal

_ops = _core.ops
_EULER = 0.57721566490153286061
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _full(like: Tensor, value: float) -> Tensor:
    return _ops.full(list(like.shape), value, like.dtype)


class _LocationScale(Distribution):
    """What distributions of (x - location) / scale share."""

    def _standard(self, shape: list[int]) -> Tensor:
        """Samples at location 0 and scale 1."""
        raise self._absent("sample")

    def _mode(self, *parameters: Tensor) -> Tensor:
        return parameters[0] + 0.0 * parameters[1]

    def _sample(self, shape: list[int], *parameters: Tensor) -> Tensor:
        location, scale = parameters
        return location + scale * self._standard(shape)

    def _uniform(self, shape: list[int]) -> Tensor:
        """Numbers in (0, 1), 0 left out."""
        return 1.0 - _draw(shape, self._seed)


class Normal(_LocationScale):
    """The normal distribution. mean, sd: tensors or numbers, sd positive; None: given with each call.

    dtype: floating, of the samples. seed: of the samples; None: the global one.
    """

    _needs = {"sd": "positive"}  # noqa: RUF012

    def __init__(
        self,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "Normal",
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})

    def _log_prob(self, x: Tensor, *parameters: Tensor) -> Tensor:
        mean, sd = parameters
        return -0.5 * _ops.square((x - mean) / sd) - _ops.log(sd) - _HALF_LOG_2PI

    def _cdf(self, x: Tensor, *parameters: Tensor) -> Tensor:
        mean, sd = parameters
        return 0.5 * _ops.erfc((mean - x) / (sd * math.sqrt(2)))

    def _survival(self, x: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        return 0.5 * _ops.erfc((x - mean) / (sd * math.sqrt(2)))

    def _mean(self, *parameters: Tensor) -> Tensor:
        return self._mode(*parameters)

    def _var(self, *parameters: Tensor) -> Tensor:
        return _ops.square(parameters[1]) + 0.0 * parameters[0]

    def _entropy(self, *parameters: Tensor) -> Tensor:
        return _ops.log(parameters[1]) + 0.0 * parameters[0] + (0.5 + _HALF_LOG_2PI)

    def _kl(self, *parameters: Tensor) -> Tensor:
        mean, sd, mean_b, sd_b = parameters
        scale = _ops.log(sd) - _ops.log(sd_b)
        return 0.5 * (_ops.square((mean - mean_b) / sd_b) + _ops.expm1(2.0 * scale)) - scale

    def _standard(self, shape: list[int]) -> Tensor:
        return _draw_normal(shape, self._seed)


class LogNormal(Normal):
    """exp of a normal distribution with mean loc and standard deviation scale. Otherwise like Normal."""

    _needs = {"scale": "positive"}  # noqa: RUF012

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

    def _log_prob(self, x: Tensor, *parameters: Tensor) -> Tensor:
        log = _ops.log(_ops.where(_ops.greater(x, 0.0), x, 1.0))
        return within(x, _ops.greater(x, 0.0), super()._log_prob(log, *parameters) - log)

    def _cdf(self, x: Tensor, *parameters: Tensor) -> Tensor:
        log = _ops.log(_ops.where(_ops.greater(x, 0.0), x, 1.0))
        return within(x, _ops.greater(x, 0.0), super()._cdf(log, *parameters), 0.0)

    def _survival(self, x: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        log = _ops.log(_ops.where(_ops.greater(x, 0.0), x, 1.0))
        return within(x, _ops.greater(x, 0.0), super()._survival(log, mean, sd), 1.0)

    def _mode(self, *parameters: Tensor) -> Tensor:
        return _ops.exp(parameters[0] - _ops.square(parameters[1]))

    def _mean(self, *parameters: Tensor) -> Tensor:
        return _ops.exp(parameters[0] + 0.5 * _ops.square(parameters[1]))

    def _var(self, *parameters: Tensor) -> Tensor:
        square = _ops.square(parameters[1])
        return _ops.expm1(square) * _ops.exp(2.0 * parameters[0] + square)

    def _entropy(self, *parameters: Tensor) -> Tensor:
        return super()._entropy(*parameters) + parameters[0]

    def _sample(self, shape: list[int], *parameters: Tensor) -> Tensor:
        return _ops.exp(super()._sample(shape, *parameters))


class Cauchy(_LocationScale):
    """The Cauchy distribution, which has no moments. loc, scale: scale positive. Otherwise like Normal."""

    _needs = {"scale": "positive"}  # noqa: RUF012

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "Cauchy",
    ) -> None:
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})

    def _log_prob(self, x: Tensor, *parameters: Tensor) -> Tensor:
        loc, scale = parameters
        return -_ops.log1p(_ops.square((x - loc) / scale)) - _ops.log(scale) - math.log(math.pi)

    def _cdf(self, x: Tensor, *parameters: Tensor) -> Tensor:
        return 0.5 + _ops.atan((x - parameters[0]) / parameters[1]) * (1 / math.pi)

    def _undefined(self, what: str) -> ValueError:
        return ValueError(f"{what} is undefined for Cauchy distribution.{where()}")

    def _mean(self, *parameters: Tensor) -> Tensor:
        raise self._undefined("mean")

    def _var(self, *parameters: Tensor) -> Tensor:
        raise self._undefined("variance")

    def _entropy(self, *parameters: Tensor) -> Tensor:
        return _ops.log(parameters[1]) + 0.0 * parameters[0] + math.log(4 * math.pi)

    def _kl(self, *parameters: Tensor) -> Tensor:
        loc, scale, loc_b, scale_b = parameters
        apart = _ops.square(scale + scale_b) + _ops.square(loc - loc_b)
        return _ops.log(apart / (4.0 * scale * scale_b))

    def _standard(self, shape: list[int]) -> Tensor:
        return _ops.tan((self._uniform(shape) - 0.5) * math.pi)


class Logistic(_LocationScale):
    """The logistic distribution. loc, scale: scale positive. Otherwise like Normal."""

    _needs = {"scale": "positive"}  # noqa: RUF012

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "Logistic",
    ) -> None:
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})

    def _log_prob(self, x: Tensor, *parameters: Tensor) -> Tensor:
        given = (x - parameters[0]) / parameters[1]
        there = _ops.greater(given, -math.inf)  # where parts of the sum are infinite
        z = _ops.where(there, given, 0.0)
        return within(given, there, -z - 2.0 * _softplus(-z) - _ops.log(parameters[1]))

    def _cdf(self, x: Tensor, *parameters: Tensor) -> Tensor:
        return _ops.sigmoid((x - parameters[0]) / parameters[1])

    def _survival(self, x: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return _ops.sigmoid((loc - x) / scale)

    def _mean(self, *parameters: Tensor) -> Tensor:
        return self._mode(*parameters)

    def _var(self, *parameters: Tensor) -> Tensor:
        return _ops.square(parameters[1]) * (math.pi**2 / 3) + 0.0 * parameters[0]

    def _entropy(self, *parameters: Tensor) -> Tensor:
        return _ops.log(parameters[1]) + 0.0 * parameters[0] + 2.0

    def _standard(self, shape: list[int]) -> Tensor:
        u = self._uniform(shape)
        return _ops.log(u) - _ops.log(_ops.maximum(1.0 - u, 2.0**-25))


class Gumbel(_LocationScale):
    """The Gumbel distribution of the largest of many values. loc, scale: scale positive. Otherwise
    like Normal."""

    _needs = {"scale": "positive"}  # noqa: RUF012

    def __init__(
        self,
        loc: Any,
        scale: Any,
        seed: int | None = 0,
        dtype: _core.DType | None = None,
        name: str = "Gumbel",
    ) -> None:
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})

    def _log_prob(self, x: Tensor, *parameters: Tensor) -> Tensor:
        given = (x - parameters[0]) / parameters[1]
        there = _ops.greater(given, -math.inf)  # where parts of the sum are infinite
        z = _ops.where(there, given, 0.0)
        return within(given, there, -z - _ops.exp(-z) - _ops.log(parameters[1]))

    def _cdf(self, x: Tensor, *parameters: Tensor) -> Tensor:
        return _ops.exp(-_ops.exp((parameters[0] - x) / parameters[1]))

    def _survival(self, x: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return -_ops.expm1(-_ops.exp((loc - x) / scale))

    def _mean(self, *parameters: Tensor) -> Tensor:
        return parameters[0] + _EULER * parameters[1]

    def _var(self, *parameters: Tensor) -> Tensor:
        return _ops.square(parameters[1]) * (math.pi**2 / 6) + 0.0 * parameters[0]

    def _entropy(self, *parameters: Tensor) -> Tensor:
        return _ops.log(parameters[1]) + 0.0 * parameters[0] + (1.0 + _EULER)

    def _kl(self, *parameters: Tensor) -> Tensor:
        a, s, b, t = parameters
        ratio, apart = s / t, (b - a) / t
        far = _ops.exp(apart + lgamma(1.0 + ratio))
        return _ops.log(t / s) + _EULER * (ratio - 1.0) - apart + far - 1.0

    def _standard(self, shape: list[int]) -> Tensor:
        exponential = -_ops.log(self._uniform(shape))
        return -_ops.log(_ops.maximum(exponential, 2.0**-25))


class Laplace(_LocationScale):
    """The Laplace distribution: density $exp(-|x - mean| / sd) / (2 sd)$. sd: positive; it is the scale,
    not the standard deviation, as in MindSpore. Otherwise like Normal.
    """

    _needs = {"sd": "positive"}  # noqa: RUF012

    def __init__(
        self,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "Laplace",
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})

    def _log_prob(self, x: Tensor, *parameters: Tensor) -> Tensor:
        return -_ops.abs((x - parameters[0]) / parameters[1]) - _ops.log(2.0 * parameters[1])

    def _cdf(self, x: Tensor, *parameters: Tensor) -> Tensor:
        return self._below((x - parameters[0]) / parameters[1])

    def _survival(self, x: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        return self._below((mean - x) / sd)

    @staticmethod
    def _below(z: Tensor) -> Tensor:
        """The probability of less than z at mean 0 and scale 1: one condition for both sides, so that
        the derivative at 0 is that of a side, not of a kink."""
        negative = _ops.less(z, 0.0)
        half = 0.5 * _ops.exp(_ops.where(negative, z, -z))
        return _ops.where(negative, half, 1.0 - half)

    def _mean(self, *parameters: Tensor) -> Tensor:
        return self._mode(*parameters)

    def _var(self, *parameters: Tensor) -> Tensor:
        return 2.0 * _ops.square(parameters[1]) + 0.0 * parameters[0]

    def _entropy(self, *parameters: Tensor) -> Tensor:
        return _ops.log(2.0 * parameters[1]) + 0.0 * parameters[0] + 1.0

    def _kl(self, *parameters: Tensor) -> Tensor:
        mean, scale, mean_b, scale_b = parameters
        apart = mean - mean_b
        apart = _ops.where(_ops.less(apart, 0.0), -apart, apart)  # abs has derivative 0 at 0
        moved = (scale * _ops.exp(-apart / scale) + apart) / scale_b
        return _ops.log(scale_b / scale) + moved - 1.0

    def _standard(self, shape: list[int]) -> Tensor:
        u = self._uniform(shape) - 0.5
        return -_ops.sign(u) * _ops.log1p(-2.0 * _ops.minimum(_ops.abs(u), 0.5 - 2.0**-25))


class HalfNormal(_LocationScale):
    """The upper half of a normal distribution about mean with standard deviation sd. As in MindSpore,
    the density is 0 below 0, whatever the mean, which should be 0. Otherwise like Normal.
    """

    _needs = {"sd": "positive"}  # noqa: RUF012

    def __init__(
        self,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "HalfNormal",
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})

    def _log_prob(self, x: Tensor, *parameters: Tensor) -> Tensor:
        mean, sd = parameters
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

    def _log_prob(self, x: Tensor, *parameters: Tensor) -> Tensor:
        low, high = parameters
        inside = _ops.logical_and(_ops.greater_equal(x, low), _ops.less_equal(x, high))
        return within(x, inside, 0.0 * x - _ops.log(high - low))

    def _cdf(self, x: Tensor, *parameters: Tensor) -> Tensor:
        low, high = parameters
        return _ops.minimum(_ops.maximum((x - low) / (high - low), 0.0), 1.0)

    def _mean(self, *parameters: Tensor) -> Tensor:
        return 0.5 * (parameters[0] + parameters[1])

    def _var(self, *parameters: Tensor) -> Tensor:
        return _ops.square(parameters[1] - parameters[0]) * (1 / 12)

    def _entropy(self, *parameters: Tensor) -> Tensor:
        return _ops.log(parameters[1] - parameters[0])

    def _kl(self, *parameters: Tensor) -> Tensor:
        low, high, low_b, high_b = parameters
        within = _ops.logical_and(_ops.less_equal(low_b, low), _ops.less_equal(high, high_b))
        return _ops.where(within, _ops.log(high_b - low_b) - _ops.log(high - low), math.inf)

    def _sample(self, shape: list[int], *parameters: Tensor) -> Tensor:
        low, high = parameters
        return low + (high - low) * _draw(shape, self._seed)


class Exponential(Distribution):
    """The exponential distribution: density $rate exp(-rate x)$ from 0 on. rate: positive."""

    _needs = {"rate": "positive"}  # noqa: RUF012

    def __init__(
        self,
        rate: Any = None,
        seed: int | None = None,
        dtype: _core.DType | None = None,
        name: str = "Exponential",
    ) -> None:
        super().__init__(seed, dtype, name, {"rate": rate})

    rate: Any = own("rate", "The rate.")

    def _log_prob(self, x: Tensor, *parameters: Tensor) -> Tensor:
        value = _ops.log(parameters[0]) - parameters[0] * x
        return within(x, _ops.greater_equal(x, 0.0), value)

    def _cdf(self, x: Tensor, *parameters: Tensor) -> Tensor:
        return -_ops.expm1(-parameters[0] * _ops.maximum(x, 0.0))

    def _survival(self, x: Tensor, rate: Tensor) -> Tensor:
        return _ops.exp(-rate * _ops.maximum(x, 0.0))

    def _mean(self, *parameters: Tensor) -> Tensor:
        return 1.0 / parameters[0]

    def _mode(self, *parameters: Tensor) -> Tensor:
        return _full(parameters[0], 0.0)

    def _var(self, *parameters: Tensor) -> Tensor:
        return 1.0 / _ops.square(parameters[0])

    def _entropy(self, *parameters: Tensor) -> Tensor:
        return 1.0 - _ops.log(parameters[0])

    def _kl(self, *parameters: Tensor) -> Tensor:
        rate, rate_b = parameters
        return _ops.log(rate) - _ops.log(rate_b) + rate_b / rate - 1.0

    def _sample(self, shape: list[int], *parameters: Tensor) -> Tensor:
        return -_ops.log(1.0 - _draw(shape, self._seed)) / parameters[0]
