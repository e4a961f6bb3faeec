"""Functions composed of ops beside SciPy in float64: incomplete gamma functions, zeta, Bessel functions, the
matrix exponential; and their derivatives beside mpmath's."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.special

import gradcell as gc
from gradcell import Tensor, ops

RNG = np.random.default_rng(3)
A = np.concatenate([RNG.uniform(0.01, 5, 60), RNG.uniform(5, 150, 60), RNG.uniform(100, 5000, 40)])
X = A * np.concatenate(
    [RNG.uniform(0, 4, 60), RNG.uniform(0.5, 1.6, 60), RNG.uniform(0.9, 1.1, 40)]
)
FAR = np.concatenate(
    [np.geomspace(1e-6, 1, 30), np.linspace(1, 60, 200), np.geomspace(60, 5000, 20)]
)
BESSEL = "j0 j1 y0 y1 i0 i0e i1 i1e k0 k0e k1 k1e".split()


@pytest.mark.parametrize(("dtype", "digits"), [(np.float64, 5e-11), (np.float32, 2e-7)])
def test_incomplete_gamma_functions(dtype, digits):
    a, x = A.astype(dtype), X.astype(dtype)
    for ours, theirs in (
        (ops.igamma, scipy.special.gammainc),
        (ops.igammac, scipy.special.gammaincc),
    ):
        wanted = theirs(a.astype(np.float64), x.astype(np.float64))
        found = ours(Tensor(a), Tensor(x))
        assert found.asnumpy().dtype == dtype
        np.testing.assert_allclose(found.asnumpy(), wanted, digits, 1e-30)
    edges = ops.igamma(Tensor([1.0, 1.0, 0.0, -1.0, 2.0]), Tensor([0.0, np.inf, 1.0, 1.0, -1.0]))
    np.testing.assert_array_equal(edges.asnumpy(), [0, 1, np.nan, np.nan, np.nan])


#: (a, x) in all regions of the formulas: small ones, and a so large that rounding x moves the value.
CORNERS = [
    (a, x * max(a, 1))
    for a in (1e-20, 1e-8, 0.5, 2.9, 3.1, 9.99, 10.01, 1e3)
    for x in (1e-300, 1e-9, 0.1, 0.9, 1.0001, 3.0)
] + [(a, a + k * a**0.5) for a in (1e6, 1e8, 1e12) for k in (-6, 0, 3)]


def _both_tails(a, x):
    """(P, Q) by mpmath; for a large a, which its series do not reach, by its integrator."""
    if a < 2e3:
        ends = ((0, x), (x, mpmath.inf))
        return [float(mpmath.gammainc(a, *end, regularized=True)) for end in ends]
    top, sign = mpmath.mpf(a) - 1, 1 if x > a - 1 else -1
    front = mpmath.exp(top * mpmath.log(x) - x - mpmath.loggamma(a))
    steps = [k * mpmath.sqrt(a) for k in range(14)]
    tail = front * mpmath.quad(
        lambda t: mpmath.exp(top * mpmath.log1p(sign * t / x) - sign * t), steps
    )
    return [float(v) for v in ((1 - tail, tail) if sign > 0 else (tail, 1 - tail))]


def test_incomplete_gamma_functions_in_corners():
    """To 13 digits of each tail, which are also the smaller ones'."""
    with mpmath.workdps(35):
        wanted = np.array([_both_tails(*at) for at in CORNERS]).T
    a, x = (Tensor(np.array(t)) for t in zip(*CORNERS, strict=True))
    for function, want in zip((ops.igamma, ops.igammac), wanted, strict=True):
        usual = want > 1e-290
        np.testing.assert_allclose(function(a, x).asnumpy()[usual], want[usual], 3e-13)
        single = function(ops.cast(a, gc.float32), ops.cast(x, gc.float32)).asnumpy()
        same = usual & (np.float32(a.asnumpy()) == a.asnumpy()) & (np.float32(x) == x.asnumpy())
        np.testing.assert_allclose(single[same], want[same], 3e-7, 1e-37)
    ends = Tensor([np.inf, np.inf, np.nan, 2.0]), Tensor([3.0, np.inf, 1.0, np.nan])
    np.testing.assert_array_equal(ops.igamma(*ends).asnumpy(), [0, np.nan, np.nan, np.nan])


@pytest.mark.parametrize(
    ("a", "x"), [(0.5, 1.0), (2.0, 1.5), (4.0, 8.0), (60.0, 50.0), (250.0, 260.0)]
)
def test_derivatives_of_incomplete_gamma_functions(a, x):
    def p(s, t):
        return mpmath.gammainc(s, 0, t, regularized=True)

    by_a, by_x = gc.grad(ops.igamma, (0, 1))(Tensor(a, gc.float64), Tensor(x, gc.float64))
    np.testing.assert_allclose(float(by_a), float(mpmath.diff(p, (a, x), (1, 0))), 1e-7)
    np.testing.assert_allclose(float(by_x), float(mpmath.diff(p, (a, x), (0, 1))), 1e-9)
    twice = gc.grad(gc.grad(ops.igamma, 1), 1)(Tensor(a, gc.float64), Tensor(x, gc.float64))
    np.testing.assert_allclose(float(twice), float(mpmath.diff(p, (a, x), (0, 2))), 1e-7)


def test_zeta_and_polygamma():
    s, q = RNG.uniform(1.01, 20, 100), RNG.uniform(0.01, 30, 100)
    found = ops.zeta(Tensor(s), Tensor(q)).asnumpy()
    np.testing.assert_allclose(found, scipy.special.zeta(s, q), 1e-13)
    for n in (0, 1, 2, 5):
        found = ops.polygamma(n, Tensor(q)).asnumpy()
        np.testing.assert_allclose(found, scipy.special.polygamma(n, q), 1e-12)
    by_s, by_q = gc.grad(ops.zeta, (0, 1))(Tensor(2.5, gc.float64), Tensor(0.7, gc.float64))
    np.testing.assert_allclose(
        float(by_s), float(mpmath.diff(lambda t: mpmath.zeta(t, 0.7), 2.5)), 1e-9
    )
    np.testing.assert_allclose(float(by_q), -2.5 * scipy.special.zeta(3.5, 0.7), 1e-12)
    negative = np.array([-10.3, -0.3, -0.5, -1.5, -2.999, -1e-3, -1e-20, -50.25])
    for n in (1, 2, 5, 10):
        values = Tensor(negative)
        for order, found in enumerate(
            (ops.polygamma(n, values), gc.grad(lambda t, n=n: ops.sum(ops.polygamma(n, t)))(values))
        ):
            wanted = [float(mpmath.polygamma(n + order, mpmath.mpf(v))) for v in negative]
            np.testing.assert_allclose(found.asnumpy(), wanted, 1e-13)
    np.testing.assert_array_equal(ops.polygamma(1, Tensor([np.inf, np.nan])), [0, np.nan])
    with pytest.raises(ValueError, match="must not be negative"):
        ops.polygamma(-1, Tensor([1.0]))


def test_derivatives_of_zeta_at_edges():
    """By the second argument -s zeta(s + 1, q), also where zeta is infinite or has no value; no zeros."""
    s, q = np.array([1.0, 0.5, 1.0, 0.05]), np.array([2.0, 2.0, 0.3, 7.0])
    wanted = [float(-a * mpmath.zeta(a + 1, b)) for a, b in zip(s, q, strict=True)]
    found = gc.grad(ops.zeta, (0, 1))(Tensor(s), Tensor(q))
    np.testing.assert_allclose(found[1].asnumpy(), wanted, 1e-12)
    by_s = [
        float(mpmath.diff(lambda t, b=b: mpmath.zeta(t, b), a)) for a, b in ((0.5, 2), (0.05, 7))
    ]
    np.testing.assert_allclose(found[0].asnumpy(), [-np.inf, by_s[0], -np.inf, by_s[1]], 1e-9)
    twice = gc.grad(lambda s, q: ops.sum(gc.grad(ops.zeta, 1)(s, q)), 1)(Tensor(s), Tensor(q))
    wanted = [float(a * (a + 1) * mpmath.zeta(a + 2, b)) for a, b in zip(s, q, strict=True)]
    np.testing.assert_allclose(twice.asnumpy(), wanted, 1e-11)
    s, q = [-2.0, 0.0, 2.0, 2.0, 3.0, 2.5, 1.0], [2.0, 1.0, 0.0, -1.0, -1.0, -0.5, -3.0]
    given = Tensor(s, gc.float64), Tensor(q, gc.float64)
    ones = tuple(map(ops.ones_like, given))
    for slope in (*gc.grad(ops.zeta, (0, 1))(*given), gc.jvp(ops.zeta, given, ones)[1]):
        assert not np.isfinite(slope.asnumpy()).any()


@pytest.mark.one_in(6)
@pytest.mark.parametrize("dtype", [gc.float64, gc.float32])
@pytest.mark.parametrize("s", [1.0, 1.5, 2.0, 3.0, 4.0, 0.5, -1.0])
@pytest.mark.parametrize("q", [2.5, 0.7, 1.0, 0.0, -1.0, -0.5, -2.0])
def test_both_modes_give_the_same_derivatives_of_zeta(s, q, dtype):
    """At input 1 and at poles too, where infinities may meet (inf - inf, 0 inf): their sum is no number."""
    given = Tensor(s, dtype), Tensor(q, dtype)
    back = np.array([float(d) for d in gc.grad(ops.zeta, (0, 1))(*given)])
    for tangents in ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (-2.0, 0.5)):
        forward = gc.jvp(ops.zeta, given, tuple(Tensor(t, dtype) for t in tangents))[1]
        with np.errstate(invalid="ignore"):
            want = back @ np.array(tangents)
        if not np.isfinite(want) and not np.isnan(back).any():
            assert not np.isfinite(float(forward))
        else:
            np.testing.assert_allclose(float(forward), want, 1e-6)
    alone = [
        gc.jvp(lambda s: ops.zeta(s, given[1]), given[0], Tensor(1.0, dtype))[1],
        gc.jvp(lambda q: ops.zeta(given[0], q), given[1], Tensor(1.0, dtype))[1],
    ]
    finite = np.isfinite(back)
    found = np.array([float(d) for d in alone])
    np.testing.assert_allclose(found[finite], back[finite], 1e-6)
    assert not np.isfinite(found[~finite]).any()


def test_derivatives_of_zeta_at_poles_are_those_from_above():
    """zeta is q^-s and what is finite there: its derivatives are q^-s (-log q, -s / q), q towards 0."""
    at = [
        (s, q)
        for s, q in ((1.0, 0.0), (1.5, 0.0), (2.0, 0.0), (3.0, 0.0), (2.0, -3.0), (4.0, -1.0))
    ]
    for s, q in at:
        by_s, by_q = gc.grad(ops.zeta, (0, 1))(Tensor(s, gc.float64), Tensor(q, gc.float64))
        near = gc.grad(ops.zeta, (0, 1))(Tensor(s, gc.float64), Tensor(q + 1e-5, gc.float64))
        assert float(near[0]) > 1e4 or s == 1
        assert float(near[1]) < -1e4
        assert (float(by_s), float(by_q)) == (np.inf, -np.inf)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions(name):
    function, wanted = getattr(ops, f"bessel_{name}"), getattr(scipy.special, name)(FAR)
    if name[0] in "jy":  # SciPy's before 1.18 rounds x - pi / 4
        exact = mpmath.besselj if name[0] == "j" else mpmath.bessely
        with mpmath.workdps(40):
            wanted = np.array([float(exact(int(name[1]), x)) if x else w
                               for x, w in zip(FAR.tolist(), wanted, strict=True)])  # fmt: skip
    usual = np.isfinite(wanted) & (np.abs(wanted) > 1e-290)
    found = function(Tensor(FAR)).asnumpy()
    size = np.abs(wanted) if name[0] in "ik" else np.maximum(np.abs(wanted), 1 / np.sqrt(1 + FAR))
    assert np.all(np.abs(found[usual] - wanted[usual]) <= 1e-13 * size[usual])
    half = function(Tensor(FAR[usual].astype(np.float32))).asnumpy()
    assert half.dtype == np.float32


#: A function's derivative, of order 0 and 1.
SLOPES = {
    "j0": lambda x: -scipy.special.j1(x), "j1": lambda x: scipy.special.jvp(1, x),
    "y0": lambda x: -scipy.special.y1(x), "y1": lambda x: scipy.special.yvp(1, x),
    "i0": scipy.special.i1, "i1": lambda x: scipy.special.ivp(1, x),
    "k0": lambda x: -scipy.special.k1(x), "k1": lambda x: scipy.special.kvp(1, x),
}  # fmt: skip


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_of_bessel_functions(name):
    x = np.array([0.01, 0.5, 3.0, 20.0, 40.0])
    found = gc.grad(getattr(ops, f"bessel_{name}"))(Tensor(x)).asnumpy()
    np.testing.assert_allclose(found, SLOPES[name](x), 1e-11)


@pytest.mark.parametrize("name", ["i0", "i1", "j0", "j1"])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_bessel_functions_are_smooth_at_zero(name, zero):
    """Derivatives of the orders 1 to 4 there, by their series (Abramowitz and Stegun, 9.1.10, 9.6.10)."""
    sign = -1.0 if name[0] == "j" else 1.0
    even, odd = [0, sign / 2, 0, 3 / 8], [1 / 2, 0, sign * 3 / 8, 0]
    f = getattr(ops, f"bessel_{name}")
    for wanted in odd if name[1] == "1" else even:
        f = gc.grad(f)
        np.testing.assert_allclose(f(Tensor(zero, gc.float64)).asnumpy(), wanted, atol=1e-14)


def test_signs_of_bessel_functions():
    x = Tensor([-2.0, 0.0], gc.float64)
    np.testing.assert_allclose(ops.bessel_j1(x).asnumpy(), scipy.special.j1([-2.0, 0.0]), 1e-14)
    np.testing.assert_allclose(ops.bessel_i1(x).asnumpy(), scipy.special.i1([-2.0, 0.0]), 1e-14)
    for name in ("i0e", "i1e"):
        both = getattr(ops, f"bessel_{name}")(Tensor([np.inf, -np.inf]))
        np.testing.assert_array_equal(both.asnumpy(), [0, 0])
    np.testing.assert_array_equal(ops.bessel_k0(x).asnumpy(), [np.nan, np.inf])
    np.testing.assert_array_equal(ops.bessel_y1(x).asnumpy(), [np.nan, -np.inf])


def test_matrix_exponential():
    for scale in (1e-6, 1.0, 10.0):
        a = RNG.standard_normal((3, 4, 4)) * scale
        np.testing.assert_allclose(
            ops.matrix_exp(Tensor(a)).asnumpy(), scipy.linalg.expm(a), 1e-9, 1e-9
        )
    a, e = RNG.standard_normal((2, 3, 3))
    _, slope = gc.jvp(ops.matrix_exp, Tensor(a), Tensor(e))
    np.testing.assert_allclose(slope.asnumpy(), scipy.linalg.expm_frechet(a, e)[1], 1e-9)
    with pytest.raises(ValueError, match="square matrices"):
        ops.matrix_exp(Tensor(np.ones((2, 3))))


def test_products_at_places_that_come_several_times():
    n, rows = 40, 7
    at = RNG.integers(0, rows, n)
    new, x = RNG.uniform(0.5, 1.5, (n, 2)), RNG.standard_normal((rows, 2))
    product, largest = x.copy(), x.copy()
    np.multiply.at(product, at, new)
    np.maximum.at(largest, at, new)
    places = Tensor(at[:, None])
    given = [Tensor(x), places, Tensor(new)]
    np.testing.assert_allclose(ops.tensor_scatter_mul(*given).asnumpy(), product, 1e-13)
    np.testing.assert_array_equal(ops.tensor_scatter_max(*given).asnumpy(), largest)

    def total(a, b):
        return ops.sum(ops.sin(ops.tensor_scatter_mul(a, places, b)))

    gc.check_grads(total, (Tensor(x), Tensor(new)))
    with pytest.raises(IndexError):
        ops.tensor_scatter_mul(Tensor(x), Tensor([[rows]]), Tensor(new[:1]))
