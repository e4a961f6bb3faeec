"""TransformedDistribution: what becomes of a distribution's values under a bijector."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell._core import Tensor, ops as _ops
from gradcell.base import bad_type, bad_value
from gradcell.nn.probability.distribution.distribution import Distribution, kept


def _constant_where(there: Tensor, function: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    """function(value), without derivatives where a bijector's may be infinite, as a logarithm's at 0."""
    found = function(_ops.where(there, _ops.stop_gradient(value), value))
    return _ops.where(there, _ops.stop_gradient(found), found)


class TransformedDistribution(Distribution):
    """The distribution of bijector.forward(x), x being distributed as `distribution` says.

    It has the methods that follow from the two: prob, cdf and related ones, sample, and mean where
    the bijector is linear. seed: of the samples; None: that of `distribution`. Parameters of
    `distribution` may follow the arguments. A custom bijector is taken to be increasing. Raises
    TypeError for other arguments.
    """

    def __init__(
        self,
        bijector: Any,
        distribution: Distribution,
        seed: int | None = None,
        name: str = "transformed_distribution",
    ) -> None:
        for what, value, known in (
            ("bijector", bijector, hasattr(bijector, "inverse_log_jacobian")),
            ("distribution", distribution, isinstance(distribution, Distribution)),
        ):
            if not known:
                bad_type(
                    f"For 'TransformedDistribution', the '{what}' must be a {what.title()}, but got "
                    f"{type(value).__name__}."
                )
        super().__init__(seed, distribution.dtype, name)
        self.parameter_type: Any = distribution.parameter_type
        if self._seed is not None:
            distribution = copy.copy(distribution)
            distribution._seed = self._seed
        self._bijector, self._distribution = bijector, distribution
        self._is_scalar_batch = distribution.is_scalar_batch and bijector.is_scalar_batch

    bijector: Any = kept("_bijector", "The bijector.")
    distribution: Distribution = kept("_distribution", "The distribution of what is transformed.")

    @property
    def is_linear_transformation(self) -> bool:
        """Return whether the bijector is linear."""
        return bool(self._bijector.is_constant_jacobian)

    @property
    def batch_shape(self) -> Any:
        """The batch_shape of the distribution that is transformed."""
        return self._distribution.batch_shape

    @property
    def broadcast_shape(self) -> Any:
        """Return the broadcast shape of the distribution and the bijector; None if one is not
        known."""
        shapes = self.batch_shape, self._bijector.batch_shape
        return None if None in shapes else np.broadcast_shapes(*shapes)

    def _side(self, below: bool, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of values up to this one, or beyond it."""

        def side(value: Tensor) -> Tensor:
            x, rises = self._bijector.inverse(value), self._bijector._rises()
            up_to = self._distribution.cdf(x, *args, **kwargs)
            beyond = self._distribution.survival_function(x, *args, **kwargs)
            return _ops.where(_ops.equal(rises, below), up_to, beyond)

        infinite = _ops.equal(_ops.abs(self._bijector.inverse(value)), math.inf)
        return _constant_where(infinite, side, value)

    def cdf(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of values up to this one."""
        return self._side(True, value, *args, **kwargs)

    def survival_function(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """1 - cdf."""
        return self._side(False, value, *args, **kwargs)

    def log_prob(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the density. It has the derivative 0 where the density is 0."""

        def before(value: Tensor) -> Tensor:
            return self._distribution.log_prob(self._bijector.inverse(value), *args, **kwargs)

        def log_density(value: Tensor) -> Tensor:
            found = before(value)
            jacobian = _ops.cast(self._bijector.inverse_log_jacobian(value), found.dtype)
            return _ops.where(nowhere, -math.inf, found + jacobian)

        nowhere = _ops.equal(before(value), -math.inf)
        return _constant_where(nowhere, log_density, value)

    def prob(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The density."""
        return _ops.exp(self.log_prob(value, *args, **kwargs))

    def sample(self, shape: Any = (), *args: Any, **kwargs: Any) -> Tensor:
        """Values of shape + batch_shape, new ones at each call."""
        return self._bijector.forward(self._distribution.sample(shape, *args, **kwargs))  # type: ignore[no-any-return]

    def mean(self, *args: Any, **kwargs: Any) -> Tensor:
        """The expected value. Raises ValueError unless the bijector is linear."""
        if not self.is_linear_transformation:
            bad_value("mean function must be implemented for non-linear transformation")
        return self._bijector.forward(self._distribution.mean(*args, **kwargs))  # type: ignore[no-any-return]

    def extend_repr(self) -> str:
        return f"batch_shape = {self.batch_shape}"
