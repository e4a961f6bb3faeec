"""Distribution: what all distributions share.

A distribution gives its formulas, of a value and of its parameters, which are tensors that broadcast, in a
table, or as methods with an underscore; what is asked by name is here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gradcell._core import DType, Tensor, default_dtype, in_trace, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, where
from gradcell.nn.cell import Cell


def within(x: Tensor, condition: Tensor, value: Tensor, elsewhere: Any = -math.inf) -> Tensor:
    """value where the condition on x holds, `elsewhere` (log 0) where it does not, NaN where x is NaN."""
    found = _ops.where(condition, value, elsewhere)
    return _ops.where(_ops.isnan(x), math.nan, found)


def own(name: str, text: str) -> Any:
    """The property of a distribution that is its parameter of this name, None if it was made without."""
    return property(lambda self: self._own[name], doc=text)


def kept(attribute: str, text: str) -> Any:
    """The property that is an attribute of another name."""
    return property(operator.attrgetter(attribute), doc=text)


class Distribution(Cell):
    """The base of distributions. Its methods are those of MindSpore's:

    prob, log_prob, cdf, log_cdf, survival_function, log_survival: of a value. mean, mode, sd, var,
    entropy. kl_loss, cross_entropy: of the name of a distribution of the same kind and its
    parameters. sample: of a shape, in front of the parameters'. Parameters behind these arguments,
    by position or name, take the place of the distribution's own. Called with a method's name and
    its arguments, a distribution does the same.

    param: a dict of what the distribution was made of, where 'param_dict' holds its parameters.
    Raises TypeError for values that are not tensors, ValueError for parameters out of range or
    missing, NotImplementedError for a method that a distribution does not have.
    """

    #: The parameters' names, and what each has to be: '', 'positive' or 'probability'.
    _needs: ClassVar[dict[str, str]] = {}
    _value_dtypes: ClassVar[str] = "floating"
    #: Formulas by name: log_prob, prob, cdf and survival of a value and the parameters, mean, mode, var and
    #: entropy of the parameters, kl of the parameters and those of another.
    _formulas: ClassVar[dict[str, Callable[..., Tensor]]] = {}

    def __init_subclass__(cls, positive: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if positive:
            cls._needs = dict.fromkeys(positive.split(), "positive")
        for name, formula in vars(cls).get("_formulas", {}).items():
            setattr(cls, f"_{name}", staticmethod(formula))

    def __init__(
        self, seed: int | None = None, dtype: Any = None, name: str = "", param: Any = None
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        if not isinstance(name, str):
            bad_type(f"For '{owner}', the 'name' must be a string, got {name!r}")
        self._name = name or owner
        self._seed = arguments.integer(seed or 0, owner, "seed", 0) or None
        self._dtype = dtype
        given = dict(param or {})
        tensors = [v for v in given.values() if isinstance(v, Tensor) and v.dtype.is_floating]
        self.parameter_type: DType = tensors[0].dtype if tensors else default_dtype()
        if self._value_dtypes == "floating":
            self.parameter_type = arguments.floating_dtype(dtype, owner)
        self._own = {k: None if v is None else self._parameter(k, v) for k, v in given.items()}
        scalar = all(v is None or isinstance(v, (int, float)) for v in given.values())
        self._is_scalar_batch = scalar

    def _parameter(self, name: str, value: Any) -> Tensor:
        """A parameter as a tensor, checked."""
        if not isinstance(value, Tensor):
            value = Tensor(np.asarray(value), self.parameter_type)
        if value.dtype != self.parameter_type:
            value = _ops.cast(value, self.parameter_type)
        need = self._needs.get(name, "")
        if not need or in_trace():
            return value  # type: ignore[no-any-return]
        numbers = value.asnumpy()
        inside = numbers > 0 if need == "positive" else (numbers >= 0) & (numbers <= 1)
        if not inside.all():
            bad_value(
                f"For '{type(self).__name__}', the '{name}' must be {need}, but got {numbers}."
            )
        return value  # type: ignore[no-any-return]

    # What it is -----------------------------------------------------------------------------------

    name: str = kept("_name", "The name.")
    dtype: Any = kept("_dtype", "The dtype of samples.")

    @property
    def seed(self) -> int:
        """The seed of samples; 0: the global one."""
        return self._seed or 0

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        return dict(self._own)

    is_scalar_batch: bool = kept("_is_scalar_batch", "Return whether all parameters are numbers.")

    @property
    def batch_shape(self) -> Any:
        """The shape that the parameters broadcast to; None if one is missing."""
        own = [v for v in self._own.values() if v is not None]
        if len(own) < len(self._own):
            return None
        return np.broadcast_shapes(*(tuple(v.shape) for v in own))

    broadcast_shape = batch_shape

    def get_dist_type(self) -> str:
        """The kind's name, as kl_loss takes it."""
        return type(self).__name__

    def get_dist_args(self, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        """The parameters; given ones take the place of the distribution's own."""
        return tuple(self._parameters_of(args, kwargs))

    # Parameters -----------------------------------------------------------------------------------

    def _parameters_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
        owner, names = type(self).__name__, list(self._own)
        if len(args) > len(names) or any(k not in names for k in kwargs):
            bad_type(f"{owner}: the parameters are {', '.join(names)}")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        found = []
        for name in names:
            value = given.get(name)
            if value is not None:
                value = self._parameter(name, arguments.tensor(value, owner, name))
            else:
                value = self._own[name]
            if value is None:
                bad_value(f"For '{owner}', the '{name}' is needed.")
            found.append(value)
        return found

    def _value(self, value: Any) -> Tensor:
        x = arguments.tensor(value, type(self).__name__, "value")
        return _ops.cast(x, self.parameter_type)

    def _formula(self, name: str, asked: str = "") -> Callable[..., Tensor]:
        found: Callable[..., Tensor] | None = getattr(self, f"_{name}", None)
        if found is None:
            raise self._absent(asked or name)
        return found

    def _absent(self, what: str) -> NotImplementedError:
        return NotImplementedError(
            f"{what} is not implemented for {type(self).__name__} distribution.{where()}"
        )

    # Of values ------------------------------------------------------------------------------------

    def log_prob(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the density, or of the probability."""
        return self._formula("log_prob")(self._value(value), *self._parameters_of(args, kwargs))

    def prob(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The density, or the probability."""
        return self._prob(self._value(value), *self._parameters_of(args, kwargs))

    def cdf(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of values up to this one."""
        return self._formula("cdf")(self._value(value), *self._parameters_of(args, kwargs))

    def log_cdf(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of cdf."""
        return _ops.log(self.cdf(value, *args, **kwargs))

    def survival_function(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """1 - cdf, without cancellation where the kind has such a formula."""
        if hasattr(self, "_survival"):
            return self._formula("survival")(self._value(value), *self._parameters_of(args, kwargs))
        return _ops.sub(1.0, self.cdf(value, *args, **kwargs))

    def log_survival(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of survival_function."""
        return _ops.log(self.survival_function(value, *args, **kwargs))

    # Of parameters --------------------------------------------------------------------------------

    def mean(self, *args: Any, **kwargs: Any) -> Tensor:
        """The expected value."""
        return self._formula("mean")(*self._parameters_of(args, kwargs))

    def mode(self, *args: Any, **kwargs: Any) -> Tensor:
        """The value of the largest density or probability."""
        return self._formula("mode")(*self._parameters_of(args, kwargs))

    def var(self, *args: Any, **kwargs: Any) -> Tensor:
        """The variance."""
        return self._formula("var")(*self._parameters_of(args, kwargs))

    def sd(self, *args: Any, **kwargs: Any) -> Tensor:
        """The standard deviation."""
        return _ops.sqrt(self.var(*args, **kwargs))

    def entropy(self, *args: Any, **kwargs: Any) -> Tensor:
        """Minus the expected log_prob."""
        return self._formula("entropy")(*self._parameters_of(args, kwargs))

    def kl_loss(self, dist: str, *args: Any, **kwargs: Any) -> Tensor:
        """The expected log_prob less that of another distribution: of its kind `dist` and its
        parameters, by position or by name with the suffix _b; own parameters may follow."""
        other, own = self._both(dist, args, kwargs)
        return self._formula("kl", "kl_loss")(*own, *other)

    def cross_entropy(self, dist: str, *args: Any, **kwargs: Any) -> Tensor:
        """entropy plus kl_loss. Arguments are those of kl_loss."""
        other, own = self._both(dist, args, kwargs)
        kl = self._formula("kl", "kl_loss")
        return _ops.add(self._formula("entropy")(*own), kl(*own, *other))

    def _both(
        self, dist: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Tensor], list[Tensor]]:
        if dist != type(self).__name__:
            bad_type(
                f"For '{type(self).__name__}', the divergence is to a distribution of the same kind, but got "
                f"{dist!r}"
            )
        n = len(self._own)
        by_name = {k[:-2]: v for k, v in kwargs.items() if k.endswith("_b")}
        rest = {k: v for k, v in kwargs.items() if not k.endswith("_b")}
        missing = [k for k in list(self._own)[len(args) :] if k not in by_name]
        if missing:
            bad_value(f"For '{type(self).__name__}', the '{missing[0]}_b' is needed.")
        return self._parameters_of(args[:n], by_name), self._parameters_of(args[n:], rest)

    def sample(self, shape: Any = (), *args: Any, **kwargs: Any) -> Tensor:
        """Values of shape + batch_shape, new ones at each call."""
        parameters = self._parameters_of(args, kwargs)
        batch = self._batch_of(parameters)
        sizes = [] if shape == () else arguments.integers(shape, type(self).__name__, "shape")
        drawn = self._formula("sample")([*sizes, *batch], *parameters)
        return _ops.cast(drawn, self._dtype or self.parameter_type)

    def _batch_of(self, parameters: list[Tensor]) -> list[int]:
        return list(np.broadcast_shapes(*(tuple(p.shape) for p in parameters)))

    def construct(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call the method of a name."""
        return getattr(self, name)(*args, **kwargs)

    def extend_repr(self) -> str:
        if not self._is_scalar_batch:
            return f"batch_shape = {self.batch_shape}"
        return ", ".join(f"{k} = {v}" for k, v in self._own.items())

    def _prob(self, x: Tensor, *parameters: Tensor) -> Tensor:
        return _ops.exp(self._formula("log_prob")(x, *parameters))
