"""Derivatives at special points: 0, ends of ranges, equal inputs, where a formula with two sides, an
absolute value or a quotient of small numbers may have a kink or a NaN that its function has not.

Every public function of one or two float64 numbers, and every distribution, is asked at each point
(the functions are found by a program). Where one-sided differences of its values agree from both
sides, the function is smooth, and the gradient, or the gradient's gradient, must be that number.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from mpmath import mp

import gradcell as ms
from gradcell import Tensor, mint, ops
from gradcell.nn.probability import distribution

Function = Callable[[Tensor], Tensor]

STEP = 1e-3
#: Weights of one-sided differences at 0, STEP, 2 STEP, ...: Fornberg, Generation of finite difference
#: formulas on arbitrarily spaced grids (1988), table 3.
WEIGHTS = {
    1: np.array([-25 / 12, 4, -3, 4 / 3, -1 / 4]),
    2: np.array([15 / 4, -77 / 6, 107 / 6, -13, 61 / 12, -5 / 6]),
}
POINTS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, 6.0, 20.0, -20.0, 100.0, -100.0]
OTHERS = [0.0, 1.0, -1.0, 0.5, 2.0]

#: What is no function of real numbers that its derivative is of, and why.
EXCUSED = {
    "random": {"bernoulli", "dropout", "normal", "poisson", "rand", "standard_laplace"},
    "a step, whose differences agree where they leave it on both sides": {"sgn", "sign", "heaviside"},
    "constant by definition": {
        "stop_gradient", "stop_gradient_", "arange", "histogram_bin_edges", "scalar_to_tensor",
    },
    "float32 results": {"asfarray"},
    "a spread, with a kink where it is 0": {"std", "nanstd", "std_mean"},
    "rounding by a power of ten": {"around", "round"},
    "a jump to 0, or no value, at 0": {
        "cbrt", "arctan2", "atan2", "celu", "div_no_nan", "hardshrink", "softshrink", "normalize",
        "float_power", "pow", "pows", "power", "norm", "scalar_pow", "vector_norm", "tensor_pow",
    },
    "many jumps near 0": {"floor_mod", "mod", "remainder", "fmod"},
    "its bounds meet": {"hardtanh", "logit"},
    "its results are printed": {"print_"},
}  # fmt: skip
NAMES_EXCUSED = set().union(*EXCUSED.values())


def value(f: Function, x: float) -> float:
    return float(f(Tensor(np.float64(x), ms.float64)).asnumpy().reshape(-1)[0])


def one_sided(f: Function, x: float, order: int, step: float) -> float:
    weights = WEIGHTS[order]
    values = [value(f, x + k * step) for k in range(len(weights))]
    with np.errstate(invalid="ignore"):  # of infinities: no number, as the caller sees
        return float(weights @ values) / step**order


def wrong_at(f: Function, x: float) -> list[tuple[int, float, float]]:
    """(order, gradient, what the differences say) where they differ."""

    def total(t: Tensor) -> Tensor:
        return f(t).sum()

    point, first = Tensor(np.float64(x), ms.float64), ms.grad(total)
    if not np.isfinite(value(f, x)):
        return []
    found = []
    for order, gradient in ((1, first), (2, ms.grad(lambda t: first(t).sum()))):
        left, right = (one_sided(f, x, order, step) for step in (-STEP, STEP))
        size = np.max([1.0, abs(left), abs(right)])  # NaN where a side is
        apart = abs(left - right)
        if not np.isfinite(size) or size > 1e3 or apart > (1e-5 if order == 1 else 2e-3) * size:
            break  # a kink, or no number
        got = float(gradient(point).asnumpy())
        if not abs(got - (left + right) / 2) <= max(3e-6 if order == 1 else 1e-3, 3 * apart) * size:
            found.append((order, got, (left + right) / 2))
    return found


def is_scalar_function(f: Function) -> bool:
    """Whether f gives one float64 number for one, twice the same."""
    try:
        once, again = (f(Tensor(0.3, ms.float64)) for _ in range(2))
    except Exception:
        return False
    good = isinstance(once, Tensor) and once.size == 1 and once.dtype == ms.float64
    return good and float(once.asnumpy().item()) == float(again.asnumpy().item())


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    spaces = {"ops": ops, "mint": mint, "F": mint.nn.functional, "numpy": ms.numpy}
    for space, module in spaces.items():
        for name in dir(module):
            f = getattr(module, name)
            if name.startswith("_") or not callable(f) or inspect.isclass(f):
                continue
            if name not in NAMES_EXCUSED and not name.startswith("rand"):
                yield f"{space}.{name}", f


def of_one_argument(f: Callable[..., Any]) -> Iterator[tuple[str, Function]]:
    """f of x alone, and with another number before or behind it."""
    yield "x", f
    for other in OTHERS:
        for shape in ((), (1,), (1, 1)):
            fixed = Tensor(np.full(shape, other))

            def behind(x: Tensor, fixed: Tensor = fixed, shape: Any = shape) -> Any:
                return f(x.reshape(shape), fixed)

            def before(x: Tensor, fixed: Tensor = fixed, shape: Any = shape) -> Any:
                return f(fixed, x.reshape(shape))

            yield f"x {list(shape)}, {other}", behind
            yield f"{other}, x {list(shape)}", before


def failures(functions: Iterator[tuple[str, Function]]) -> dict[str, Any]:
    found = {}
    for label, f in functions:
        if not is_scalar_function(f):
            continue
        for x in POINTS:
            try:
                wrong = wrong_at(f, x)
            except (TypeError, ValueError, IndexError):  # not within the function's range
                continue
            if wrong:
                found[f"{label} at {x}"] = wrong
    return found


FUNCTIONS = dict(public_functions())


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_at_special_points(name: str) -> None:
    assert not failures(of_one_argument(FUNCTIONS[name]))


PARAMETERS = {
    "Cauchy": (0.5, 1.0), "Exponential": (1.5,), "Gumbel": (0.5, 1.0), "HalfNormal": (0.0, 1.0),
    "Laplace": (0.5, 1.0), "LogNormal": (0.5, 1.0), "Logistic": (0.5, 1.0), "Normal": (0.5, 1.0),
    "Uniform": (0.0, 2.0), "Beta": (2.5, 1.5), "Gamma": (2.5, 1.5),
}  # fmt: skip
#: Of integers, or in float32.
DISCRETE = {"Bernoulli", "Categorical", "Geometric", "Poisson", "Distribution"}
#: Of another one, whose derivatives are tested.
DERIVED = {"TransformedDistribution"}


def test_no_distribution_is_left_out() -> None:
    assert set(distribution.__all__) == set(PARAMETERS) | DISCRETE | DERIVED


@pytest.mark.parametrize("name", [*PARAMETERS, "Poisson"])
def test_densities_beyond_all_numbers(name: str) -> None:
    numbers = PARAMETERS.get(name, (2.0,))
    made = getattr(distribution, name)(
        *numbers, dtype=ms.float64 if name != "Poisson" else ms.int64
    )
    x = Tensor(np.array([-np.inf, np.inf, np.nan]))
    for method, ends in (("prob", [0, 0]), ("log_prob", [-np.inf] * 2), ("cdf", [0, 1])):
        if method != "cdf" or name not in ("Beta", "HalfNormal"):  # which have none
            got = getattr(made, method)(x).asnumpy()
            np.testing.assert_allclose(got, [*ends, np.nan], err_msg=method)


@pytest.mark.one_in(36)
@pytest.mark.parametrize("name", PARAMETERS)
def test_distributions_at_special_points(name: str) -> None:
    numbers, kind = PARAMETERS[name], getattr(distribution, name)

    def call(method: str, before: tuple[Any, ...], t: Tensor, at: int, given: bool) -> Tensor:
        parameters: list[Any] = [Tensor(p, ms.float64) for p in numbers]
        parameters[at] = t
        given = given or name == "Gumbel"  # takes its parameters when it is made
        made = kind(*numbers, dtype=ms.float64) if given else kind(dtype=ms.float64)
        return getattr(made, method)(*before, *([] if name == "Gumbel" else parameters))

    functions: dict[str, Function] = {}
    for method in ("log_prob", "prob", "cdf", "log_cdf", "survival_function", "log_survival"):
        functions[f"{method} by x"] = getattr(kind(*numbers, dtype=ms.float64), method)
        for at in range(len(numbers)):
            for x in (0.0, 0.5, 1.0, 2.0):
                before = (Tensor(x, ms.float64),)
                label = f"{method}({x}) by parameter {at}"
                functions[label] = lambda t, m=method, b=before, k=at: call(m, b, t, k, False)
    for at in range(len(numbers)):
        for method in ("entropy", "mean", "var"):
            functions[f"{method} by {at}"] = lambda t, m=method, k=at: call(m, (), t, k, False)
        functions[f"kl_loss by {at}"] = lambda t, k=at: call("kl_loss", (name,), t, k, True)
    assert functions
    wrong = failures(iter(functions.items()))
    meet = {
        at
        for at in wrong
        if name == "Uniform" and at.endswith(("0 at 2.0", "1 at 0.0", "1 at -0.0"))
    }
    assert not set(wrong) - meet  # an interval without a length has no density


def test_what_was_wrong() -> None:
    """The cases that this file was written for, to the digits of their closed forms."""
    zero, one = Tensor([0.0], ms.float64), Tensor([1.0], ms.float64)
    soft = functools.partial(ops.soft_margin_loss, target=one, reduction="sum")
    assert float(ms.grad(soft)(zero)) == -0.5
    assert float(ms.grad(lambda x: ms.grad(soft)(x).sum())(zero)) == 0.25
    labels = Tensor([[1.0, 0.0]], ms.float64)
    many = ms.grad(lambda x: ops.multilabel_soft_margin_loss(x, labels))
    assert many(ops.zeros((1, 2), ms.float64)).asnumpy().tolist() == [[-0.25, 0.25]]
    logistic = distribution.Logistic(0.0, 1.0, dtype=ms.float64)
    assert float(ms.grad(lambda x: logistic.log_prob(x).sum())(zero)) == 0.0
    laplace = distribution.Laplace(0.0, 1.0, dtype=ms.float64)
    assert float(ms.grad(lambda x: laplace.cdf(x).sum())(zero)) == 0.5
    far = float(laplace.log_survival(Tensor([40.0], ms.float64)))
    assert far == pytest.approx(-40.0 - np.log(2.0), rel=1e-14)
    for clip in (ops.clip_by_norm, ops.clip_by_global_norm):
        assert float(ms.grad(lambda x, clip=clip: clip(x, 1.0).sum())(zero)) == 1.0
    by_beta = ms.grad(lambda beta: ops.softplus(Tensor(0.3, ms.float64), beta))(one[0])
    z = np.exp(0.3)
    assert float(by_beta) == pytest.approx(0.3 * z / (1 + z) - np.log1p(z), rel=1e-14)
    with pytest.raises(TypeError, match="ord"):
        ops.norm(one, one)


# Powers, to order 4 in all modes ------------------------------------------------------------------

BASES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, np.inf]
EXPONENTS = [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.5, 2.5, -0.5]
POWERS = np.array(list(itertools.product(BASES, EXPONENTS)))
#: How often by the base and by the exponent.
ORDERS = [(m, n) for m in range(5) for n in range(5) if 0 < m + n <= 4]


def of_power(m: int, n: int, base: float, exponent: float) -> float:
    """What m derivatives by the base and n by the exponent make of a power: their limit at base 0, and at
    infinity; NaN where there is none."""
    if base == exponent == 0 and m == 0:
        return 0.0  # as 0^b is 0 for b > 0
    if base < 0 and (n or exponent != int(exponent)):
        return np.nan

    def near(a: Any) -> Any:
        def along(b: Any) -> Any:
            return mp.ff(b, m) * mp.power(a, b - m)

        return mp.diff(along, mp.mpf(exponent), n) if n else along(mp.mpf(exponent))

    with mp.workdps(120):
        if base not in (0, np.inf):
            return float(near(mp.mpf(base)))
        side = -1 if np.signbit(base) and n == 0 and exponent == int(exponent) else 1
        far, further = (near(side * mp.mpf(10) ** (k if base else -k)) for k in (1000, 2000))
        if abs(further) <= abs(far) * mp.mpf(10) ** -100:
            return 0.0
        if abs(further - far) <= abs(far) * mp.mpf(10) ** -50:
            return float(far)
        return float(np.inf * mp.sign(further))


@functools.cache  # (of_power itself would take -0 for 0)
def of_powers(m: int, n: int) -> list[float]:
    return [of_power(m, n, *p) for p in POWERS.tolist()]


def nested(step: Callable[[Function, int], Function], m: int, n: int) -> Function:
    f: Function = ops.pow
    for k in (0,) * m + (1,) * n:
        f = step(f, k)
    return f


def reverse(f: Function, k: int) -> Function:
    return ms.grad(lambda a, b: f(a, b).sum(), k)


def forward(f: Function, k: int) -> Function:
    def along(a: Tensor, b: Tensor) -> Tensor:
        x = (a, b)[k]
        return ms.jvp(lambda t: f(t, b) if k == 0 else f(a, t), x, ops.ones_like(x))[1]

    return along


def series(m: int, n: int, a: Tensor, b: Tensor) -> Tensor:
    points = ops.stack([a, b], 1)
    return ms.partials(lambda x: ops.pow(x[:, 0], x[:, 1]), [(0,) * m + (1,) * n])(points)[0]


MODES = {
    "reverse": lambda m, n, a, b: nested(reverse, m, n)(a, b),
    "forward": lambda m, n, a, b: nested(forward, m, n)(a, b),
    "forward over reverse": lambda m, n, a, b: nested(
        lambda f, k: forward(f, k) if f is not ops.pow else reverse(f, k), m, n
    )(a, b),
    "series": series,
}


@pytest.mark.one_in(16)
@pytest.mark.parametrize("mode", MODES)
def test_powers(mode: str) -> None:
    a, b = Tensor(POWERS[:, 0]), Tensor(POWERS[:, 1])
    for m, n in ORDERS:
        want: Any = of_powers(m, n)
        got = MODES[mode](m, n, a, b).asnumpy()
        if n:  # the powers of -0, which is no limit of positive numbers, have no logarithm
            below = np.signbit(POWERS[:, 0]) & (POWERS[:, 0] == 0)
            want, got = np.where(below, np.abs(want), want), np.where(below, np.abs(got), got)
        np.testing.assert_allclose(got, want, rtol=2e-13, err_msg=f"{m} by the base, {n}")


def test_powers_of_the_same() -> None:
    one = Tensor(0.0, ms.float64)
    f = ms.grad(ms.grad(lambda x: (1 + x) ** x))
    assert float(f(one)) == 2.0
    by_both = ms.grad(ms.grad(ops.pow, 0), 1)
    assert float(by_both(Tensor(2.0, ms.float64), Tensor(0.0, ms.float64))) == 0.5


def test_polynomials_with_a_tensor_of_exponents() -> None:
    exponents = Tensor(np.arange(5.0))
    f: Function = lambda x: (x**exponents).sum()  # noqa: E731
    for order in range(1, 6):
        f = ms.grad(f)
        got = float(f(Tensor(0.0, ms.float64)))
        assert got == (float(np.prod(np.arange(1, order + 1))) if order < 5 else 0.0)
    assert np.isfinite(
        ops.derivative(lambda x: (x**exponents).sum(), Tensor(0.0, ms.float64), 5)[1]
    )


# Both orders of differentiation -------------------------------------------------------------------

#: Functions with a jump, or a jump of the slope, where one operand is 0, or both are equal.
WITH_KINKS = {
    "copysign", "floor_div", "floor_mod", "fmod", "maximum", "minimum", "mod", "remainder",
}  # fmt: skip
PAIRS = np.array(list(itertools.product([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0], repeat=2)))


@functools.cache
def binary_functions() -> dict[str, Function]:
    found = {}
    for label, f in FUNCTIONS.items():
        try:
            y = f(Tensor([0.3, 0.7], ms.float64), Tensor([0.6, 0.2], ms.float64))
        except Exception:
            continue
        if not isinstance(y, Tensor) or y.shape != (2,) or y.dtype != ms.float64:
            continue
        late = f(Tensor([0.3, 0.9], ms.float64), Tensor([0.6, 0.4], ms.float64)).asnumpy()
        early = f(Tensor([0.9, 0.7], ms.float64), Tensor([0.4, 0.2], ms.float64)).asnumpy()
        if (late[0], early[1]) == tuple(y.asnumpy()):  # each element of its own operands
            found[label] = f
    for name in ("pow", "atan2", "float_power", "div_no_nan"):  # not among FUNCTIONS
        found[f"ops.{name}"] = getattr(ops, name)
    return found


@pytest.mark.one_in(12)
@pytest.mark.parametrize("name", binary_functions())
def test_both_orders_agree(name: str) -> None:
    """The mixed second derivative is the same whichever operand comes first."""
    f = binary_functions()[name]
    a, b = Tensor(PAIRS[:, 0]), Tensor(PAIRS[:, 1])
    try:
        first, second = reverse(reverse(f, 0), 1), reverse(reverse(f, 1), 0)
        np.testing.assert_allclose(
            first(a, b).asnumpy(), second(a, b).asnumpy(), rtol=1e-12, atol=1e-12
        )
    except (TypeError, ValueError) as error:
        if isinstance(error, AssertionError):
            raise
        pytest.skip(str(error))


# Other functions of the list ----------------------------------------------------------------------


@pytest.mark.parametrize("a", [1.0, 2.0, 3.0, 0.5])
def test_incomplete_gamma_functions_at_zero(a: float) -> None:
    """The slope is x^(a - 1) e^-x / Gamma(a)."""
    zero = Tensor(0.0, ms.float64)
    lower = upper = None
    for order in range(1, 5):
        lower = reverse(lower or ops.igamma, 1)
        upper = reverse(upper or ops.igammac, 1)
        with mp.workdps(50):
            near = mp.mpf(10) ** -30
            want = sum(
                mp.binomial(order - 1, k)
                * mp.ff(a - 1, k)
                * (near ** (a - 1 - k) if a == 0.5 else 0 ** int(a - 1 - k) if a - 1 >= k else 0)
                * (-1) ** (order - 1 - k)
                for k in range(order)
            ) / mp.gamma(a)
        want = float(want) if a != 0.5 else float(np.inf * mp.sign(want))
        for f, sign in ((lower, 1), (upper, -1)):
            got = float(f(Tensor(a, ms.float64), zero))
            np.testing.assert_allclose(got, sign * want, rtol=1e-14)
    assert float(reverse(ops.igamma, 0)(Tensor(a, ms.float64), zero)) == 0.0


def test_x_log_x_at_zero() -> None:
    """The slope is log(x) + 1, then 1 / x."""
    f: Function = lambda x: ops.xlogy(x, x)  # noqa: E731
    for want in (0.0, -np.inf, np.inf):
        assert float(f(Tensor(0.0, ms.float64))) == want
        f = ms.grad(f)


def test_power_transform_by_a_power_of_zero() -> None:
    """(1 + c x)^(1 / c) is exp(x - c x^2 / 2 + c^2 x^3 / 3 - ...)."""
    x, make = 0.7, ms.nn.probability.bijector.PowerTransform

    def forward(c: Tensor) -> Tensor:
        return make(c).forward(Tensor(x, ms.float64))

    first, zero = ms.grad(forward), Tensor(0.0, ms.float64)
    assert float(first(zero)) == pytest.approx(-np.exp(x) * x**2 / 2, rel=1e-14)
    want = np.exp(x) * (x**4 / 4 + 2 * x**3 / 3)
    assert float(ms.grad(first)(zero)) == pytest.approx(want, rel=1e-14)
    small = Tensor(1e-5, ms.float64)
    assert float(forward(small)) == pytest.approx((1 + 1e-5 * x) ** 1e5, rel=1e-9)
    back = make(small).inverse(make(small).forward(Tensor(x, ms.float64)))
    assert float(back) == pytest.approx(x, rel=1e-14)


def test_quantiles_by_their_shares() -> None:
    x, some = Tensor([1.0, 2.0, 4.0], ms.float64), Tensor([1.0, np.nan, 2.0, 4.0], ms.float64)
    assert float(ms.grad(lambda q: ops.quantile(x, q))(Tensor(0.6, ms.float64))) == 4.0
    several = Tensor([0.2, 0.6], ms.float64)
    for f, of in ((ops.quantile, x), (ops.nanquantile, some)):
        slopes = ms.grad(lambda q, f=f, of=of: f(of, q).sum())(several)
        assert slopes.asnumpy().tolist() == [2.0, 4.0]
    assert float(ms.jit(ops.quantile)(x, Tensor(0.6, ms.float64))) == pytest.approx(2.4)
    assert np.isnan(float(ms.jit(ops.quantile)(x, Tensor(1.5, ms.float64))))
    with pytest.raises(ValueError, match="within 0 and 1"):
        ops.quantile(x, Tensor(1.5, ms.float64))
