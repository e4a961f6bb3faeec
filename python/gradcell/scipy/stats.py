"""scipy.stats' distributions of tensors: densities and cumulative functions, computed in float64 and
differentiable to any order in the quantile and in all parameters.

Formulas: Johnson, Kotz and Balakrishnan, Continuous univariate distributions (1994, 1995). Where a parameter
has no meaning the result is NaN; outside the support densities are 0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, publish
from gradcell.ops.decorators import one_plan
from gradcell.ops.elements import gammas
from gradcell.ops.matrices.factorisations import triangular_solution
from gradcell.scipy import special

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _wide(given: Sequence[Any], name: str) -> tuple[list[Tensor], Any]:
    """All in float64, and the dtype of the result: that of the tensors among them."""
    found, kinds = [], []
    for x in given:
        if isinstance(x, (int, float, list, tuple)):
            found.append(Tensor(x, _core.float64))
            continue
        wide = arguments.floating(
            arguments.tensor(Tensor(x) if isinstance(x, np.ndarray) else x, name)
        )
        kinds.append(_ops.full([], 0, wide.dtype))
        found.append(_ops.cast(wide, _core.float64))
    common = functools.reduce(_ops.add, kinds).dtype if kinds else _core.float32
    return found, common


def _log(p: Tensor, rest: Tensor) -> Tensor:
    """log p, by the rest where that is the smaller."""
    above = _ops.greater(p, 0.5)
    close = _ops.log1p(-_ops.where(above, rest, 0.5))
    return _ops.where(above, close, _ops.log(_ops.where(above, 1.0, p)))


def _method(what: str, text: str) -> Any:
    @one_plan
    def run(self: _Distribution, x: Any, *args: Any, **named: Any) -> Tensor:
        return self._run(what, x, args, named)

    run.__name__ = what
    run.__doc__ = f"{text}, of x and the parameters, loc and scale."
    return run


class _Distribution:
    """A distribution of numbers: of a standard quantile z and parameters.

    log_density, density: functions of (z, *parameters); tails: (probability up to z, and of more).
    """

    def __init__(
        self,
        name: str,
        parameters: str,
        density: Callable[..., Tensor],
        log_density: Callable[..., Tensor],
        tails: Callable[..., tuple[Tensor, Tensor]],
        log_lower: Callable[..., Tensor] | None = None,
        quantile: Callable[..., Tensor] | None = None,
        discrete: bool = False,
    ) -> None:
        self._name, self._parameters, self._discrete = name, parameters.split(), discrete
        self._density, self._log_density = density, log_density
        self._tails, self._log_lower, self._quantile = tails, log_lower, quantile

    def __repr__(self) -> str:
        return f"scipy.stats.{self._name}"

    def _run(self, what: str, x: Any, given: Sequence[Any], named: dict[str, Any]) -> Tensor:
        names = [*self._parameters, "loc", *([] if self._discrete else ["scale"])]
        values: dict[str, Any] = {"loc": 0.0, "scale": 1.0}
        if len(given) > len(names) or not set(named) <= set(names[len(given) :]):
            bad_type(f"{self._name}.{what}: takes x, {', '.join(names)}")
        values |= dict(zip(names, given, strict=False)) | named
        missing = [n for n in self._parameters if n not in values]
        if missing:
            bad_type(f"{self._name}.{what}: the parameter {missing[0]} is missing")
        ordered = [values[n] for n in [*self._parameters, "loc", "scale"]]
        return self._computed(what, x, *ordered)

    def _computed(self, what: str, x: Any, *values: Any) -> Tensor:
        (x, *shapes, loc, scale), dtype = _wide([x, *values], f"{self._name}.{what}")
        shape = list(np.broadcast_shapes(*(tuple(v.shape) for v in (x, *shapes, loc, scale))))
        x, *shapes, loc, scale = (_ops.broadcast_to(v, shape) for v in (x, *shapes, loc, scale))
        good = _ops.logical_and(_ops.greater(scale, 0), _ops.isfinite(loc))
        for v in shapes:  # of which all have to be positive
            least = _ops.greater_equal(v, 0) if self._discrete else _ops.greater(v, 0)
            good = _ops.logical_and(good, least)
        scale = _ops.where(good, scale, 1.0)
        shapes = [_ops.where(good, v, 1.0) for v in shapes]
        z = x if what == "ppf" else (x - loc) / scale
        good = _ops.logical_and(good, _ops.logical_not(_ops.isnan(z)))
        z = _ops.where(good, z, 0.5)
        if what == "ppf":
            assert self._quantile is not None
            found = self._quantile(z, *shapes) * scale + loc
        elif what in ("pdf", "pmf"):
            found = self._density(z, *shapes) / scale
        elif what in ("logpdf", "logpmf"):
            found = self._log_density(z, *shapes) - _ops.log(scale)
        elif what in ("logcdf", "logsf") and self._log_lower is not None:  # of a symmetric density
            found = self._log_lower(z if what == "logcdf" else -z, *shapes)
        else:
            lower, upper = self._tails(z, *shapes)
            p, rest = (lower, upper) if what.endswith("cdf") else (upper, lower)
            found = _log(p, rest) if what.startswith("log") else p
        return _ops.cast(_ops.where(good, found, math.nan), dtype)

    cdf = _method("cdf", "The probability of at most x")
    logcdf = _method("logcdf", "The logarithm of the probability of at most x")
    sf = _method("sf", "The probability of more than x")
    logsf = _method("logsf", "The logarithm of the probability of more than x")


class _Discrete(_Distribution):
    pmf = _method("pmf", "The probability of x")
    logpmf = _method("logpmf", "The logarithm of the probability of x")


class _Continuous(_Distribution):
    pdf = _method("pdf", "The density at x")
    logpdf = _method("logpdf", "The logarithm of the density at x")


class _Invertible(_Continuous):
    ppf = _method("ppf", "The quantile up to which the probability is x")


# Normal -------------------------------------------------------------------------------------------


def _normal_tails(z: Tensor) -> tuple[Tensor, Tensor]:
    at = z * math.sqrt(0.5)
    return _ops.erfc(-at) * 0.5, _ops.erfc(at) * 0.5


def _log_normal_lower(z: Tensor) -> Tensor:
    """Its asymptotic series below -10 (Abramowitz and Stegun 26.2.12)."""
    far = _ops.less(z, -10.0)
    close = _log(*_normal_tails(_ops.where(far, 0.0, z)))
    y = _ops.where(far, z, -10.0)
    inverse, series = _ops.reciprocal(_ops.square(y)), _ops.full([], 1.0, z.dtype)
    for k in range(24, 0, -1):
        series = 1.0 - series * inverse * float(2 * k - 1)
    tail = _ops.log(series) - _ops.log(-y)
    return _ops.where(far, _log_normal(y) + tail, close)


def _log_normal(z: Tensor) -> Tensor:
    return _ops.square(z) * -0.5 - _HALF_LOG_2PI


#: The normal distribution of mean loc and standard deviation scale.
norm = _Invertible(
    "norm", "", lambda z: _ops.exp(_log_normal(z)), _log_normal, _normal_tails, _log_normal_lower,
    lambda q: special.erfcinv(q * 2.0) * -math.sqrt(2.0),
)  # fmt: skip


# Student ------------------------------------------------------------------------------------------


def _log_t(z: Tensor, df: Tensor) -> Tensor:
    far = _ops.greater(_ops.abs(z), 1e100)
    near = _ops.log1p(_ops.square(_ops.where(far, 0.0, z)) / df)
    away = _ops.log(_ops.abs(_ops.where(far, z, 1.0))) * 2.0
    size = (df + 1.0) * 0.5 * _ops.where(far, away - _ops.log(df), near)
    return -size - _log_t_scale(df)


def _log_t_scale(df: Tensor) -> Tensor:
    half = df * 0.5
    whole = special._log_beta(half, _ops.full(list(df.shape), 0.5, df.dtype))
    return whole + _ops.log(df) * 0.5


def _t_tails(z: Tensor, df: Tensor) -> tuple[Tensor, Tensor]:
    """Half of incomplete beta functions; close to 0 their first terms in z, of which they are roots."""
    square = _ops.square(z)
    close = _ops.less(square * (1.0 + _ops.reciprocal(df)), 1e-8)
    w = _ops.where(close, 1.0, square) / df
    x = _ops.reciprocal(w + 1.0)
    y = _ops.where(_ops.isinf(w), 1.0, w / (w + 1.0))
    outer, inner = special._incomplete_beta(df * 0.5, _ops.full(list(z.shape), 0.5, z.dtype), x, y)
    tail, rest = outer * 0.5, inner * 0.5 + 0.5
    below = _ops.less(z, 0)
    bend = (df + 1.0) / (df * 6.0) * square
    first = z * _ops.exp(-_log_t_scale(df)) * (1.0 - bend)
    lower = _ops.where(close, first + 0.5, _ops.where(below, tail, rest))
    return lower, _ops.where(close, 0.5 - first, _ops.where(below, rest, tail))


#: Student's t distribution of df degrees of freedom.
t = _Continuous("t", "df", lambda z, df: _ops.exp(_log_t(z, df)), _log_t, _t_tails)


# Gamma and Poisson --------------------------------------------------------------------------------


def _gamma_density(z: Tensor, a: Tensor) -> Tensor:
    inside = _ops.logical_and(_ops.greater_equal(z, 0), _ops.less(z, math.inf))
    edge = _ops.equal(z, 0)  # where logarithms are infinite
    found = gammas._density(a, _ops.where(_ops.logical_and(inside, _ops.logical_not(edge)), z, 1.0))
    least = _ops.where(edge, z, 1.0)
    power = _ops.pow(least, a - 1.0)
    at_edge = power * _ops.exp(-least) * _ops.exp(-ops.lgamma(a))
    return _ops.where(inside, _ops.where(edge, at_edge, found), 0.0)


def _log_gamma_density(z: Tensor, a: Tensor) -> Tensor:
    inside = _ops.logical_and(_ops.greater(z, 0), _ops.less(z, math.inf))
    found = gammas._log_density(a, _ops.where(inside, z, 1.0))
    edge = _ops.equal(z, 0)
    power = ops.xlogy(a - 1.0, _ops.where(edge, 0.0, 1.0))
    at_zero = power - ops.lgamma(a)
    return _ops.where(inside, found, _ops.where(edge, at_zero, -math.inf))


def _gamma_tails(z: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    at = _ops.where(_ops.greater(z, 0), z, 0.0)
    return gammas._incomplete(a, at, "gamma")


#: The gamma distribution of shape a.
gamma = _Continuous("gamma", "a", _gamma_density, _log_gamma_density, _gamma_tails)


def _poisson_log(k: Tensor, mu: Tensor) -> Tensor:
    whole = _ops.logical_and(_ops.greater_equal(k, 0), _ops.equal(k, _ops.floor(k)))
    whole = _ops.logical_and(whole, _ops.less(k, math.inf))
    at, none = _ops.where(whole, k, 0.0), _ops.equal(mu, 0)
    found = gammas._log_density(at + 1.0, _ops.where(none, 1.0, mu))
    least = _ops.where(none, mu, 0.0)
    at_zero = _ops.where(_ops.equal(at, 0), -least, -math.inf)
    return _ops.where(whole, _ops.where(none, at_zero, found), -math.inf)


def _poisson_tails(k: Tensor, mu: Tensor) -> tuple[Tensor, Tensor]:
    some = _ops.greater_equal(k, 0)
    count = _ops.floor(_ops.where(some, k, 0.0)) + 1.0
    more, less = gammas._incomplete(count, mu, "poisson")
    return _ops.where(some, less, 0.0), _ops.where(some, more, 1.0)


#: The Poisson distribution of mean mu; probabilities of numbers that are not whole are 0.
poisson = _Discrete(
    "poisson", "mu", lambda k, mu: _ops.exp(_poisson_log(k, mu)), _poisson_log, _poisson_tails,
    discrete=True,
)  # fmt: skip


# Beta ---------------------------------------------------------------------------------------------


def _log_beta_density(z: Tensor, a: Tensor, b: Tensor) -> Tensor:
    inside = _ops.logical_and(_ops.greater(z, 0), _ops.less(z, 1))
    x = _ops.where(inside, z, 0.5)
    y = 1.0 - x
    lean = a * y - b * x
    found = special._log_beta_density(a, b, x, y, lean) - (_ops.log(x) + _ops.log1p(-x))
    end = _ops.where(inside, 0.5, z)
    powers = ops.xlogy(a - 1.0, _ops.maximum(end, 0.0)) + ops.xlogy(
        b - 1.0, _ops.maximum(1.0 - end, 0.0)
    )
    edge = _ops.logical_or(_ops.equal(z, 0), _ops.equal(z, 1))
    outside = _ops.where(edge, powers - special._log_beta(a, b), -math.inf)
    return _ops.where(inside, found, outside)


def _beta_density(z: Tensor, a: Tensor, b: Tensor) -> Tensor:
    edge = _ops.logical_or(_ops.equal(z, 0), _ops.equal(z, 1))
    found = _ops.exp(_log_beta_density(_ops.where(edge, 0.5, z), a, b))
    end = _ops.where(edge, z, 0.5)
    powers = _ops.pow(end, a - 1.0) * _ops.pow(1.0 - end, b - 1.0)
    return _ops.where(edge, powers * _ops.exp(-special._log_beta(a, b)), found)


def _beta_tails(z: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    low, high = _ops.less(z, 0), _ops.greater(z, 1)
    at = _ops.where(low, 0.0, _ops.where(high, 1.0, z))
    return special._incomplete_beta(a, b, at)


#: The beta distribution of shapes a and b.
beta = _Continuous("beta", "a b", _beta_density, _log_beta_density, _beta_tails)


# Of vectors ---------------------------------------------------------------------------------------


class _Vectors:
    """A distribution of vectors."""

    def __init__(self, name: str, log_density: Callable[..., Tensor], text: str) -> None:
        self._name, self.__doc__ = name, text
        self.logpdf = one_plan(log_density)

    def __repr__(self) -> str:
        return f"scipy.stats.{self._name}"

    def pdf(self, x: Any, *args: Any, **named: Any) -> Tensor:
        """The density at x; arguments as of logpdf."""
        return _ops.exp(self.logpdf(x, *args, **named))


def _normal_vectors(x: Any, mean: Any = None, cov: Any = 1) -> Tensor:
    """The logarithm of the density at x [..., d] of a mean [d] (zeros for None) and a covariance [d, d], or
    its diagonal, a vector or a number.

    Raises ValueError for a covariance that is not positive definite.
    """
    (x, mean, cov), dtype = _wide(
        [x, 0.0 if mean is None else mean, cov], "multivariate_normal.logpdf"
    )
    size = max([t.shape[-1] for t in (mean, cov) if t.ndim] or [x.shape[-1] if x.ndim else 1])
    if size == 1 and (x.ndim == 0 or x.shape[-1] != 1):
        x = _ops.reshape(x, [*x.shape, 1])
    apart = x - mean
    if apart.shape[-1] != size:
        bad_value(
            f"multivariate_normal.logpdf: an x of shape {list(x.shape)} does not fit {size} dimensions"
        )
    if cov.ndim < 2:
        spread = _ops.broadcast_to(cov, [size])
        z, log = apart / _ops.sqrt(spread), _ops.log(spread) * 0.5
    else:
        root = ops.cholesky(cov)
        columns = _ops.reshape(apart, [-1, size])
        z = triangular_solution(root, ops.swapaxes(columns, 0, 1))
        z = _ops.reshape(ops.swapaxes(z, 0, 1), list(apart.shape))
        log = _ops.log(ops.diagonal(root))
    squares = _ops.reduce_sum(_ops.square(z), [z.ndim - 1], False)
    whole = _ops.reduce_sum(log, [0], False) + size * _HALF_LOG_2PI
    return _ops.cast(squares * -0.5 - whole, dtype)


def _dirichlet(x: Any, alpha: Any) -> Tensor:
    """The logarithm of the density at x [k] or [k, n] of concentrations alpha [k]; the last row of x may be
    left out, as the columns' sums are 1."""
    (x, alpha), dtype = _wide([x, alpha], "dirichlet.logpdf")
    count = alpha.shape[0]
    if x.shape[0] == count - 1:
        last = 1.0 - _ops.reduce_sum(x, [0], True)
        x = _ops.concat([x, last], 0)
    if x.shape[0] != count:
        bad_value(
            f"dirichlet.logpdf: an x of shape {list(x.shape)} does not fit {count} concentrations"
        )
    powers = _ops.reshape(alpha - 1.0, [count] + [1] * (x.ndim - 1))
    powers = ops.xlogy(_ops.broadcast_to(powers, list(x.shape)), x)
    norm = ops.lgamma(_ops.reduce_sum(alpha, [0], False))
    norm = norm - _ops.reduce_sum(ops.lgamma(alpha), [0], False)
    return _ops.cast(_ops.reduce_sum(powers, [0], False) + norm, dtype)


#: The normal distribution of vectors.
multivariate_normal = _Vectors(
    "multivariate_normal", _normal_vectors, "The normal distribution of vectors."
)
#: Dirichlet's distribution of shares.
dirichlet = _Vectors("dirichlet", _dirichlet, "Dirichlet's distribution of vectors of shares.")


publish(globals())
