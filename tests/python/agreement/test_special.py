"""scipy.special and scipy.stats of tensors, function by function over a grid: values beside mpmath's (or
SciPy's, at infinities and where nothing is defined), first and second derivatives by mpmath's differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.stats

import gradcell as gc
from gradcell import Tensor, ops
from gradcell.scipy import special, stats

mp = mpmath


class Row(NamedTuple):
    """A function of numbers, its reference, and points; by: which arguments it is differentiated by."""

    reference: Callable[..., Any]
    points: list[tuple[float, ...]]
    by: tuple[int, ...] = (0,)
    slopes: list[tuple[float, ...]] | None = (
        None  # where derivatives are compared, if not at all points
    )
    digits: float = 2e-13


def _each(*values: float) -> list[tuple[float, ...]]:
    return [(v,) for v in values]


def _ibeta(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


PAIRS = [(a, b) for a in (1e-10, 0.3, 1.0, 7.9, 30.0, 1e10) for b in (0.3, 2.0, 1e5)]
SOME = [(0.5, 0.5), (2.0, 3.0), (7.9, 0.3), (20.0, 20.0), (1e-3, 2.0)]
ORDERS: dict[str, list[Any]] = {
    "jn": [0, 1, 2, 7, 50, -3], "yn": [0, 1, 2, 9, -3],
    "iv": [0, 2, 0.5, -1.5, 3.3, 14.9, 40], "ive": [0, 1, 0.5, 15.5, 200],
}  # fmt: skip
BESSEL = {
    "jn": mp.besselj, "yn": mp.bessely, "iv": mp.besseli,
    "ive": lambda v, x: mp.besseli(v, x) * mp.exp(-abs(x)),
}  # fmt: skip
ROWS: dict[str, Row] = {
    "gamma": Row(mp.gamma, _each(-170.5, -20.3, -2.5, -0.5, -1e-10, 1e-300, 0.3, 0.7, 1.0, 1.5, 5.0, 12.4,
                                 12.6, 60.0, 143.2, 171.5), slopes=_each(-2.5, -0.5, 0.3, 1.0, 5.0, 20.0)),
    "rgamma": Row(mp.rgamma, _each(-20.3, -2.5, -2.0, -1e-10, 0.0, 1e-300, 0.3, 1.0, 12.6, 60.0, 143.2),
                  slopes=_each(-2.5, -2.0, 0.0, 0.3, 1.0, 20.0)),
    "erfcinv": Row(lambda y: mp.findroot(lambda x: mp.log(mp.erfc(x)) - mp.log(y),
                                         scipy.special.erfcinv(float(y))),
                   _each(1e-290, 1e-20, 0.01, 0.39, 0.41, 0.9999, 1.5, 1.99), slopes=_each(0.01, 0.7, 1.5)),
    "betaln": Row(lambda a, b: mp.log(abs(mp.beta(a, b))), [*PAIRS, (-2.5, 1e6), (-0.5, 0.7)], (0, 1), SOME),
    "beta": Row(mp.beta, [*PAIRS, (-2.5, 1e6), (-0.5, 0.7), (-0.5, -2.3)], (0, 1), SOME),
    "betainc": Row(_ibeta, [(a, b, x) for a, b in ((1e-3, 2.), (0.5, 0.5), (3., 1e-3), (9., 40.), (200., 3.))
                            for x in (1e-300, 1e-9, 0.02, 0.5, 0.9, 0.999)], (0, 1, 2),
                   [(0.5, 0.5, 0.3), (2.0, 3.0, 0.4), (0.3, 5.0, 0.05), (20.0, 0.7, 0.97), (0.01, 2.0, 0.5)],
                   digits=3e-12),
    "zeta": Row(mp.zeta, [(2.0, -10.3), (3.0, -0.5), (11.0, -1.5), (2.5, 0.7), (2.0, -1e-20), (1.5, 1e6)],
                (1,), [(2.0, -10.3), (3.0, -0.5), (2.5, 0.7)]),
    "gammainc": Row(lambda a, x: mp.gammainc(a, 0, x, regularized=True),
                    [(a, x) for a in (1e-8, 0.5, 3.1, 10.1, 200.0) for x in (1e-9, 0.3, 3.0, 40.0)], (0, 1),
                    [(0.5, 0.3), (0.5, 1.7), (4.0, 2.5), (12.0, 9.0), (60.0, 70.0)], digits=1e-12),
    "gammaincc": Row(lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
                     [(a, x) for a in (1e-8, 0.5, 3.1, 10.1, 200.0) for x in (1e-9, 0.3, 3.0, 40.0)], (0, 1),
                     [(1e-6, 0.5), (0.5, 1.7), (4.0, 2.5), (12.0, 9.0), (60.0, 70.0)], digits=1e-12),
}  # fmt: skip


def _function(name: str) -> Callable[..., Tensor]:
    return getattr(special, name)  # type: ignore[no-any-return]


def _columns(points: list[tuple[float, ...]]) -> list[Tensor]:
    return [Tensor(np.array(c, np.float64)) for c in zip(*points, strict=True)]


def _exact(row: Row, points: list[tuple[float, ...]]) -> np.ndarray:
    with mp.workdps(30):
        return np.array([float(row.reference(*map(mp.mpf, p))) for p in points])


def _compare(found: Any, wanted: np.ndarray, digits: float) -> None:
    usual = np.isfinite(wanted) & ((np.abs(wanted) > 1e-290) | (wanted == 0))
    np.testing.assert_allclose(found.asnumpy()[usual], wanted[usual], digits, 1e-300)


@pytest.mark.parametrize("name", ROWS)
def test_values(name):
    row = ROWS[name]
    wanted = _exact(row, row.points)
    _compare(_function(name)(*_columns(row.points)), wanted, row.digits)
    # Those that float32 has, which are computed in float64.
    short = [p for p in row.points if all(float(np.float32(v)) == v for v in p)]
    single = _function(name)(*(ops.cast(c, gc.float32) for c in _columns(short)))
    assert single.dtype == gc.float32
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(
            single.asnumpy(), _exact(row, short).astype(np.float32), 3e-7, 1e-37
        )


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ROWS)
def test_derivatives_of_order_1_and_2(name):
    row = ROWS[name]
    points = row.slopes or row.points
    values = _columns(points)
    for by in row.by:

        def slope(*args, by=by):
            return gc.grad(lambda *a: ops.sum(_function(name)(*a)), by)(*args)

        twice = gc.grad(lambda *a, by=by: ops.sum(slope(*a)), by)(*values)
        for order, found in ((1, slope(*values)), (2, twice)):
            with mp.workdps(30):
                wanted = []
                for p in points:

                    def along(t, p=p, by=by):
                        return row.reference(
                            *(t if k == by else mp.mpf(v) for k, v in enumerate(p))
                        )

                    wanted.append(float(mp.diff(along, p[by], order)))
            np.testing.assert_allclose(found.asnumpy(), wanted, 2e-11, err_msg=f"{by}, {order}")


#: Both sides of each choice between formulas.
ALONG = [1e-10, 1e-3, 0.1, 1.9, 5.0, 15.0, 20.1, 24.9, 25.1, 60.0, 134.0, 300.0]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "order"), [(n, v) for n, orders in ORDERS.items() for v in orders]
)
def test_bessel_functions_of_any_order(name, order):
    """Relative to the value, or to 1 / sqrt(x) where it turns; derivatives by those of neighbours."""
    x = np.array(ALONG)
    with mp.workdps(25):
        wanted = np.array([float(BESSEL[name](order, mp.mpf(t))) for t in x])
        slopes = np.array(
            [float(mp.diff(lambda t: BESSEL[name](order, t), mp.mpf(t))) for t in x[2:9]]
        )
    turning = (x > abs(order)) if name in ("jn", "yn") else np.zeros(len(x))
    size = np.maximum(np.abs(wanted), turning / np.sqrt(1 + x))
    usual = (size > 1e-290) & np.isfinite(wanted)
    values = Tensor(x)
    found = _function(name)(order, values).asnumpy()
    assert np.all(np.abs(found - wanted)[usual] <= 2e-13 * size[usual])
    slope = gc.grad(lambda t: ops.sum(_function(name)(order, t)))(values[2:9]).asnumpy()
    np.testing.assert_allclose(slope, slopes, 3e-13, 3e-14)
    short = _function(name)(order, Tensor(x.astype(np.float32)))
    assert short.dtype == gc.float32


def test_orders_and_signs_of_bessel_functions():
    x = Tensor([-3.0, 0.0, 3.0], gc.float64)
    for n in (2, 3):
        np.testing.assert_allclose(special.jn(n, x), scipy.special.jn(n, [-3.0, 0.0, 3.0]), 1e-13)
        np.testing.assert_allclose(special.iv(n, x), scipy.special.iv(n, [-3.0, 0.0, 3.0]), 1e-13)
    np.testing.assert_array_equal(special.yn(2, x[:2]), [np.nan, -np.inf])
    np.testing.assert_array_equal(special.iv(0.5, x[:2]), [np.nan, 0.0])
    g: Any = lambda t: special.jn(2, t)  # noqa: E731
    for wanted in (0.0, 1 / 4, 0.0, -1 / 4):  # of x^2 / 8 - x^4 / 96 + ...
        g = gc.grad(g)
        np.testing.assert_allclose(float(g(Tensor(0.0, gc.float64))), wanted, atol=1e-14)
    with pytest.raises(ValueError, match=r"jn: the order n must be a whole number, got 1\.5"):
        special.jn(1.5, x)


@pytest.mark.parametrize("name", ["gamma", "rgamma", "erfcinv", "betaln", "beta", "betainc"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ends(name, dtype):
    """Zeros, infinities, NaN and what is outside, as in SciPy."""
    one = np.array([0.0, -3.0, 2.0, 180.0, np.inf, np.nan, 2.5], dtype)
    two = [(1.0, 0.0), (0.0, 1.0), (2.0, np.nan), (np.nan, 2.0)]
    three = [
        (1, 1, 0),
        (1, 1, 1),
        (2, 3, -0.5),
        (2, 3, 1.5),
        (np.nan, 1, 0.5),
        (1, 1, np.nan),
        (2, 0.5, 1),
    ]
    points = {"betaln": two, "beta": two, "betainc": three}.get(name)
    args = [one] if points is None else [np.array(c, dtype) for c in zip(*points, strict=True)]
    found = _function(name)(*map(Tensor, args))
    np.testing.assert_allclose(found, getattr(scipy.special, name)(*args), 1e-6)


def test_densities_at_the_ends_of_betainc():
    a, b = Tensor([1.0, 2.0, 0.5, 1.0], gc.float64), Tensor([1.0, 2.0, 0.5, 3.0], gc.float64)
    for x, wanted in ((0.0, [1, 0, np.inf, 3]), (1.0, [1, 0, np.inf, 0])):
        at = Tensor([x] * 4, gc.float64)
        np.testing.assert_allclose(
            gc.grad(lambda t: ops.sum(special.betainc(a, b, t)))(at), wanted, 1e-13
        )
    curve = gc.grad(gc.grad(special.betainc, 2), 2)
    found = [float(curve(*(Tensor(v, gc.float64) for v in (2.0, 3.0, x)))) for x in (0.0, 1.0)]
    np.testing.assert_allclose(found, [12.0, 0.0], 1e-13, 1e-13)  # 12 x (1 - x)^2


def test_names_of_scipy():
    """Each name means what it means in SciPy."""
    x = np.array([0.3, 1.2, 2.7])
    for (
        name
    ) in "digamma psi erf erfc expit gammaln i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e y0 y1".split():
        np.testing.assert_allclose(
            _function(name)(Tensor(x)), getattr(scipy.special, name)(x), 1e-12
        )
    for name in ("gammainc", "gammaincc", "xlogy", "zeta"):
        found = _function(name)(Tensor(x + 1), Tensor(x))
        np.testing.assert_allclose(found, getattr(scipy.special, name)(x + 1, x), 1e-12)
    np.testing.assert_allclose(
        special.polygamma(2, Tensor(x)), scipy.special.polygamma(2, x), 1e-12
    )
    np.testing.assert_allclose(
        special.multigammaln(Tensor(x + 3), 2), scipy.special.multigammaln(x + 3, 2)
    )
    np.testing.assert_allclose(special.logit(Tensor(x / 3)), scipy.special.logit(x / 3), 1e-12)
    np.testing.assert_allclose(special.erfinv(Tensor(x / 3)), scipy.special.erfinv(x / 3), 1e-12)
    np.testing.assert_allclose(special.logsumexp(Tensor(x), 0), scipy.special.logsumexp(x), 1e-12)


# Distributions --------------------------------------------------------------------------------------


def _t_below(z: Any, df: Any) -> Any:
    half = mp.betainc(df / 2, mp.mpf(1) / 2, 0, df / (df + z * z), regularized=True) / 2
    return half if z < 0 else 1 - half


class Law(NamedTuple):
    """A distribution: its parameters, by mpmath its density and probability up to z, and points."""

    parameters: list[tuple[float, ...]]
    density: Callable[..., Any]
    below: Callable[..., Any]
    inside: tuple[float, ...]


LAWS = {
    "norm": Law([()], mp.npdf, mp.ncdf, (-3.0, 0.4)),
    "t": Law([(0.5,), (3.0,), (1e6,)],
             lambda z, v: (1 + z * z / v) ** (-(v + 1) / 2) / mp.sqrt(v) / mp.beta(v / 2, 0.5), _t_below,
             (-2.0, 0.3)),
    "gamma": Law([(0.5,), (2.5,), (1e3,)], lambda z, a: z ** (a - 1) * mp.exp(-z) / mp.gamma(a),
                 lambda z, a: mp.gammainc(a, 0, z, regularized=True), (0.3, 4.0)),
    "beta": Law([(0.5, 0.5), (2.0, 3.0), (100.0, 200.0)],
                lambda z, a, b: z ** (a - 1) * (1 - z) ** (b - 1) / mp.beta(a, b),
                lambda z, a, b: _ibeta(a, b, z), (0.2, 0.4)),
    "poisson": Law([(0.3,), (7.0,), (1e4,)], lambda k, mu: mp.exp(-mu) * mu**k / mp.factorial(k),
                   lambda k, mu: mp.gammainc(mp.floor(k) + 1, mu, regularized=True), (0.0, 3.0)),
}  # fmt: skip
QUANTILES = np.array(
    [-1e3, -40, -11, -9.9, -3, -0.5, -1e-6, 0, 0.2, 0.5, 1, 1.5, 2, 5, 30, 1e3, -np.inf, np.nan]
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", LAWS)
def test_distributions(name):
    """Beside SciPy's, in tails and outside; log(1 - p) for p close to 0 not of 1 - p, which SciPy's is."""
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    kind = "pmf" if name == "poisson" else "pdf"
    for parameters in LAWS[name].parameters:
        moved = (*parameters, -1.0) if kind == "pmf" else (*parameters, -1.0, 2.0)
        for given in (parameters, moved):
            for what in (kind, f"log{kind}", "cdf", "sf", "logcdf", "logsf"):
                with np.errstate(all="ignore"):
                    wanted = getattr(theirs, what)(QUANTILES, *given)
                    if what in ("logcdf", "logsf"):
                        near = np.abs(wanted) < 1e-3
                        rest = getattr(theirs, "sf" if what == "logcdf" else "cdf")(
                            QUANTILES, *given
                        )
                        wanted = np.where(near, np.log1p(-rest), wanted)
                found = getattr(ours, what)(Tensor(QUANTILES), *given)
                np.testing.assert_allclose(
                    found.asnumpy(), wanted, 3e-11, 1e-300, err_msg=f"{what} {given}"
                )
    single = getattr(ours, kind)(Tensor(QUANTILES.astype(np.float32)), *parameters)
    assert single.dtype == gc.float32


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", LAWS)
def test_derivatives_of_distributions(name):
    """Of densities, their logarithms and cumulative functions, by quantile, parameters, loc and scale."""
    law, ours = LAWS[name], getattr(stats, name)
    discrete = name == "poisson"
    kind = "pmf" if discrete else "pdf"

    def standard(function):
        def of(x, *given):
            loc, scale = (given[-1], 1) if discrete else given[-2:]
            shapes = given[: -1 if discrete else -2]
            value = function((x - loc) / scale, *shapes)
            return value / scale if function is law.density else value

        return of

    references = {
        kind: standard(law.density),
        f"log{kind}": lambda *p: mp.log(standard(law.density)(*p)),
        "cdf": standard(law.below),
        "logsf": lambda *p: mp.log(1 - standard(law.below)(*p)),
    }
    for shapes in law.parameters[:2]:
        for z in law.inside:
            place = (0.0,) if discrete else (0.5, 1.5)
            point = (z if discrete else 1.5 * z + 0.5, *shapes, *place)
            values = [Tensor(v, gc.float64) for v in point]
            for what, reference in references.items():
                for by in range(1, len(shapes) + 1) if discrete else range(len(point)):
                    slope = gc.grad(getattr(ours, what), by)
                    for order, f in ((1, slope), (2, gc.grad(slope, by))):
                        with mp.workdps(30):
                            wanted = mp.diff(
                                lambda t, by=by, reference=reference, point=point: reference(
                                    *(t if k == by else mp.mpf(v) for k, v in enumerate(point))
                                ),
                                point[by],
                                order,
                            )
                        np.testing.assert_allclose(
                            float(f(*values)),
                            float(wanted),
                            1e-10,
                            1e-13,
                            err_msg=f"{what} {point} {by}",
                        )


def test_derivatives_of_t_at_its_middle():
    z, df = Tensor(0.0, gc.float64), Tensor(3.0, gc.float64)
    slope = gc.grad(stats.t.cdf)(z, df)
    np.testing.assert_allclose(float(slope), scipy.stats.t.pdf(0.0, 3.0), 1e-14)
    assert float(gc.grad(gc.grad(stats.t.cdf))(z, df)) == 0
    assert float(gc.grad(stats.t.cdf, 1)(z, df)) == 0


def test_quantiles_of_the_normal_distribution():
    q = np.array([1e-300, 1e-5, 0.3, 0.5, 0.9, 0, 1, 2])
    found = stats.norm.ppf(Tensor(q), loc=1.0, scale=2.0)
    np.testing.assert_allclose(found, scipy.stats.norm.ppf(q, 1.0, 2.0), 1e-14)
    slope = gc.grad(lambda t: ops.sum(stats.norm.ppf(t)))(Tensor(q[1:5]))
    np.testing.assert_allclose(slope, 1 / scipy.stats.norm.pdf(scipy.stats.norm.ppf(q[1:5])), 1e-12)


def test_distributions_of_vectors():
    rng = np.random.default_rng(5)
    x, mean = rng.standard_normal((5, 3)), rng.standard_normal(3)
    root = rng.standard_normal((3, 3))
    cov = root @ root.T + np.eye(3)
    for given in ((mean, cov), (None, cov)):
        wanted = scipy.stats.multivariate_normal.logpdf(x, *given)
        ours = [g if g is None else Tensor(g) for g in given]
        np.testing.assert_allclose(
            stats.multivariate_normal.logpdf(Tensor(x), *ours), wanted, 1e-13
        )
        np.testing.assert_allclose(
            stats.multivariate_normal.pdf(Tensor(x), *ours), np.exp(wanted), 1e-13
        )
    twice = scipy.stats.multivariate_normal.logpdf(x, np.zeros(3), 2 * np.eye(3))
    scaled = stats.multivariate_normal.logpdf(Tensor(x), cov=2.0)
    np.testing.assert_allclose(scaled, twice, 1e-13)

    def density(x, m, r):
        cov = r @ ops.swapaxes(r, 0, 1) + ops.eye(3, 3, r.dtype)
        return stats.multivariate_normal.logpdf(x, m, cov)

    gc.check_grads(density, (Tensor(x), Tensor(mean), Tensor(root)))
    shares, alpha = np.array([[0.2, 0.3], [0.5, 0.6], [0.3, 0.1]]), np.array([1.5, 2.0, 0.7])
    wanted = scipy.stats.dirichlet.logpdf(shares, alpha)
    for rows in (shares, shares[:2]):
        np.testing.assert_allclose(
            stats.dirichlet.logpdf(Tensor(rows), Tensor(alpha)), wanted, 1e-13
        )
        np.testing.assert_allclose(
            stats.dirichlet.pdf(Tensor(rows), Tensor(alpha)), np.exp(wanted), 1e-13
        )
    gc.check_grads(stats.dirichlet.logpdf, (Tensor(shares[:, 0]), Tensor(alpha)))
    with pytest.raises(ValueError, match=r"dirichlet.logpdf: an x of shape \[1\] does not fit 3"):
        stats.dirichlet.logpdf(Tensor(shares[:1, 0]), Tensor(alpha))
    with pytest.raises(TypeError, match=r"t\.pdf: the parameter df is missing"):
        stats.t.pdf(Tensor(1.0))
