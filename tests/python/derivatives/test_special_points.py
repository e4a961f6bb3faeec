"""Derivatives at special points: 0, ends of ranges, equal inputs, where a formula with two sides, an
absolute value or a quotient of small numbers may have a kink or a NaN that its function has not.

Every public function of one or two float64 numbers, and every distribution, is asked at each point
(the functions are found by a program). Where one-sided differences of its values agree from both
sides, the function is smooth, and the gradient, or the gradient's gradient, must be that number.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

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
    "documented: NaN where the spread or the length is 0": {"std", "nanstd", "std_mean"},
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


@pytest.mark.one_in(3)
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
