"""Bijectors: functions that can be inverted, whose derivative is known, between random variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from gradcell._core import DType, Tensor, in_trace, ops as _ops
from gradcell.base import arguments, errors, explain
from gradcell.nn.cell import Cell
from gradcell.nn.probability.distribution.distribution import Distribution, kept, own
from gradcell.nn.probability.distribution.transformed import TransformedDistribution
from gradcell.ops.elements.activations import _softplus

__all__ = ["Bijector", "Exp", "GumbelCDF", "Invert", "PowerTransform", "ScalarAffine", "Softplus"]


class Bijector(Cell):
    """The base class of bijectors. A subclass defines _forward, _inverse, _forward_log_jacobian and
    _inverse_log_jacobian, functions of a tensor.

    is_constant_jacobian: it is linear. dtype: what values must have; None: any floating one. param:
    a dict of what it was made of, where 'param_dict' holds the parameters. Called with a
    distribution, it gives the TransformedDistribution; with a method's name and its arguments, what
    that gives. is_injective: stored as a property. Raises TypeError for values and parameters that
    are not floating tensors.
    """

    def __init__(
        self,
        is_constant_jacobian: bool = False,
        is_injective: bool = True,
        name: str | None = None,
        dtype: Any = None,
        param: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        if not isinstance(name, str):
            errors.bad_type(f"For '{owner}', the 'name' must be a string, got {name!r}")
        self._name, self._dtype = name, dtype
        self._is_constant_jacobian = arguments.boolean(
            is_constant_jacobian, owner, "is_constant_jacobian"
        )
        self._is_injective = arguments.boolean(is_injective, owner, "is_injective")
        self._given = {
            k: v for k, v in (param or {}).items() if k != "self" and not k.startswith("_")
        }
        numbers = self._given.get("param_dict", {}).values()
        self._is_scalar_batch = "param_dict" in self._given and all(
            v is None or isinstance(v, (int, float)) for v in numbers
        )
        self._batch_shape: Any = None
        if "param_dict" in self._given and all(v is not None for v in numbers):
            shapes = (tuple(v.shape) if isinstance(v, Tensor) else np.shape(v) for v in numbers)
            self._batch_shape = np.broadcast_shapes(*shapes)

    name: str = kept("_name", "The name.")
    dtype: Any = kept("_dtype", "The dtype of values, None for any.")
    parameters: dict[str, Any] = kept("_given", "The arguments it was made with.")
    is_constant_jacobian: bool = kept("_is_constant_jacobian", "Return whether it is linear.")
    is_injective: bool = kept(
        "_is_injective", "Return whether different values have different results."
    )
    is_scalar_batch: bool = kept("_is_scalar_batch", "Return whether all parameters are numbers.")
    batch_shape: Any = kept(
        "_batch_shape", "The shape that the parameters broadcast to; None if one is missing."
    )

    def _add_parameter(self, value: Any, name: str) -> Tensor:  # type: ignore[override]
        """A parameter as a tensor, checked."""
        if value is None or isinstance(value, bool):
            errors.bad_type(f"{name} cannot be type {type(value)}")
        tensor = value if isinstance(value, Tensor) else Tensor(value)
        wanted = self._dtype or getattr(self, "common_dtype", tensor.dtype)
        if not tensor.dtype.is_floating or tensor.dtype != wanted:
            errors.bad_type(
                f"For '{type(self).__name__}', the dtype of {name} must be "
                f"{wanted if wanted.is_floating else 'floating'}, but got {tensor.dtype}."
            )
        self.common_dtype: DType = tensor.dtype
        return tensor

    def _check_value_dtype(self, value: Any) -> Tensor:
        x = arguments.tensor(value, type(self).__name__, "value")
        if not x.dtype.is_floating or (self._dtype is not None and x.dtype != self._dtype):
            errors.bad_type(
                f"For '{type(self).__name__}', the input value of bijector must be "
                f"{self._dtype or 'floating'}, but got {x.dtype}."
            )
        return x

    def cast_param_by_value(self, value: Tensor, para: Tensor) -> Tensor:
        """A parameter in the dtype of a value."""
        return _ops.cast(para, value.dtype)

    def _rises(self) -> Any:
        """Return whether the bijector is increasing."""
        return True

    def forward(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Transform a value."""
        return self._forward(self._check_value_dtype(value), *args, **kwargs)  # type: ignore[no-any-return]

    def inverse(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Return the point whose transform is the value."""
        return self._inverse(self._check_value_dtype(value), *args, **kwargs)  # type: ignore[no-any-return]

    def forward_log_jacobian(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the absolute derivative of forward at a value."""
        return self._forward_log_jacobian(self._check_value_dtype(value), *args, **kwargs)  # type: ignore[no-any-return]

    def inverse_log_jacobian(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the absolute derivative of inverse at a value."""
        return self._inverse_log_jacobian(self._check_value_dtype(value), *args, **kwargs)  # type: ignore[no-any-return]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Distribution):
            return TransformedDistribution(self, args[0])
        return super().__call__(*args, **kwargs)

    def construct(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call the method of a name."""
        methods = ("forward", "inverse", "forward_log_jacobian", "inverse_log_jacobian")
        arguments.one_of(name, methods, type(self).__name__, "name")
        return getattr(self, name)(*args, **kwargs)

    def extend_repr(self) -> str:
        if not self._is_scalar_batch:
            return f"batch_shape = {self._batch_shape}"
        return ", ".join(f"{k} = {v}" for k, v in self._given["param_dict"].items())


def _of_parameters(formula: Callable[..., Tensor]) -> Callable[[Any, Tensor], Tensor]:
    def run(self: Any, x: Tensor) -> Tensor:
        return formula(x, *(self.cast_param_by_value(x, p) for p in self._own.values()))

    return run


class _WithParameters(Bijector):
    """Parameters by name, each with its property, and formulas of a value and of them in its dtype."""

    _formulas: ClassVar[dict[str, Callable[..., Tensor]]] = {}

    def __init__(self, name: str, linear: bool = False, **parameters: Any) -> None:
        param = {**parameters, "name": name, "param_dict": parameters}
        super().__init__(linear, True, name, None, param)
        self._own = {k: self._add_parameter(v, k) for k, v in parameters.items()}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, formula in vars(cls).get("_formulas", {}).items():
            setattr(cls, f"_{name}", _of_parameters(formula))

    def _least(self, name: str, strictly: bool) -> None:
        """Raises ValueError for a parameter below 0, or at it."""
        value = self._own[name]
        bad = _ops.less_equal(value, 0.0) if strictly else _ops.less(value, 0.0)
        if not in_trace() and bad.asnumpy().any():
            bound = "greater than" if strictly else "at least"
            errors.bad_value(
                f"For '{type(self).__name__}', the '{name}' must be {bound} 0, but got {value.asnumpy()}."
            )


def _over_power(f: Any, x: Tensor, c: Tensor, terms: Sequence[float]) -> Tensor:
    """f(c x) / c for the power c, where c x is small by f's power series, whose terms are given from the
    second power on: so derivatives by c are right at 0 too."""
    close = _ops.less(_ops.abs(c * x), 0.125)
    near = _ops.logical_or(close, _ops.equal(c, 0.0))  # x may be infinite
    small = _ops.where(close, c * x, 0.0)
    series: Tensor | float = 0.0
    for term in reversed(terms):
        series = small * (series + term)
    divisor = _ops.where(near, 1.0, c)
    far = f(_ops.where(near, 0.0, x) * divisor) / divisor
    return _ops.where(near, x * (1.0 + series), far)


_LOG1P = [(-1) ** k / (k + 1) for k in range(1, 18)]
_EXPM1 = [1 / math.factorial(k + 1) for k in range(1, 14)]


class PowerTransform(_WithParameters):
    """forward: (1 + c x)^(1 / c) for a power c, a number or tensor of at least 0; exp(x) where it is 0."""

    _formulas = {  # noqa: RUF012
        "forward": lambda x, c: _ops.exp(_over_power(_ops.log1p, x, c, _LOG1P)),
        "inverse": lambda y, c: _over_power(_ops.expm1, _ops.log(y), c, _EXPM1),
        "forward_log_jacobian": lambda x, c: (1.0 - c) * _over_power(_ops.log1p, x, c, _LOG1P),
        "inverse_log_jacobian": lambda y, c: (c - 1.0) * _ops.log(y),
    }

    def __init__(self, power: Any = 0.0, name: str = "PowerTransform") -> None:
        super().__init__(name, power=power)
        self._least("power", False)

    power = own("power", "The power.")


class Exp(PowerTransform):
    """The bijector whose forward function is exp(x)."""

    def __init__(self, name: str = "Exp") -> None:
        super().__init__(0.0, name)

    def extend_repr(self) -> str:
        return "exp"


def _gumbel_slope(x: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    z = (x - loc) / scale
    return -z - _ops.exp(-z) - _ops.log(scale)


class GumbelCDF(_WithParameters):
    """forward: exp(-exp(-(x - loc) / scale)), the cdf of Gumbel's distribution; scale positive."""

    _formulas = {  # noqa: RUF012
        "forward": lambda x, loc, scale: _ops.exp(-_ops.exp((loc - x) / scale)),
        "inverse": lambda y, loc, scale: loc - scale * _ops.log(-_ops.log(y)),
        "forward_log_jacobian": _gumbel_slope,
        "inverse_log_jacobian": lambda y, loc, scale: (
            _ops.log(scale) - _ops.log(y) - _ops.log(-_ops.log(y))
        ),
    }

    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, name: str = "GumbelCDF") -> None:
        super().__init__(name, loc=loc, scale=scale)
        self._least("scale", True)

    loc = own("loc", "The location.")
    scale = own("scale", "The scale.")


class ScalarAffine(_WithParameters):
    """forward: scale x + shift. Its jacobians have the shape of scale."""

    _formulas = {  # noqa: RUF012
        "forward": lambda x, scale, shift: scale * x + shift,
        "inverse": lambda y, scale, shift: (y - shift) / scale,
        "forward_log_jacobian": lambda x, scale, shift: _ops.log(_ops.abs(scale)),
        "inverse_log_jacobian": lambda y, scale, shift: -_ops.log(_ops.abs(scale)),
    }

    def __init__(self, scale: Any = 1.0, shift: Any = 0.0, name: str = "ScalarAffine") -> None:
        super().__init__(name, True, scale=scale, shift=shift)

    scale = own("scale", "The factor.")
    shift = own("shift", "The number that is added.")

    def _rises(self) -> Any:
        return _ops.greater(self.scale, 0.0)


class Softplus(_WithParameters):
    """forward: log(1 + exp(k x)) / k for a sharpness k.

    sharpness: k, a number or a tensor.
    """

    _formulas = {  # noqa: RUF012
        "forward": lambda x, k: _softplus(k * x) / k,
        "inverse": lambda y, k: y + _ops.log(-_ops.expm1(-k * y)) / k,
        "forward_log_jacobian": lambda x, k: -_softplus(-k * x),
        "inverse_log_jacobian": lambda y, k: -_ops.log(-_ops.expm1(-k * y)),
    }

    def __init__(self, sharpness: Any = 1.0, name: str = "Softplus") -> None:
        super().__init__(name, sharpness=sharpness)

    sharpness = own("sharpness", "The sharpness of the bend at 0.")


class Invert(Bijector):
    """The inverse of another bijector. name: by default 'Invert' and its name."""

    def __init__(self, bijector: Bijector, name: str = "") -> None:
        if not isinstance(bijector, Bijector):
            errors.bad_type(
                f"For 'Invert', the 'bijector' must be a Bijector, but got {type(bijector)}."
            )
        name = name or "Invert" + bijector.name
        is_linear, is_injective = bijector.is_constant_jacobian, bijector.is_injective
        param = {"bijector": bijector, "name": name}
        super().__init__(is_linear, is_injective, name, bijector.dtype, param)
        self._bijector = bijector
        self._is_scalar_batch, self._batch_shape = bijector.is_scalar_batch, bijector.batch_shape

    bijector: Bijector = kept("_bijector", "The other one.")

    def _rises(self) -> Any:
        return self._bijector._rises()

    def _forward(self, x: Tensor) -> Tensor:
        return self._bijector.inverse(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._bijector.forward(y)

    def _forward_log_jacobian(self, x: Tensor) -> Tensor:
        return self._bijector.inverse_log_jacobian(x)

    def _inverse_log_jacobian(self, y: Tensor) -> Tensor:
        return self._bijector.forward_log_jacobian(y)

    def extend_repr(self) -> str:
        return ""


explain(globals())
