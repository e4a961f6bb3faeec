"""Derive the polynomial coefficients of the vector math and write vecmath_coefficients.h.

Run by hand when a polynomial changes, in csrc/math:
    python coefficients.py | clang-format > vecmath_coefficients.h
Each row of TABLE is a function, its interval, its number of coefficients and a weight (a power of
the argument, None: the value's inverse, for the smallest relative error, or a function); the fit is
the minimax polynomial of weight * (p - f), found by the Remez exchange on a dense grid (E. Y.
Remez, 1934) in 60-digit arithmetic, its coefficients then rounded to the target type.
"""

import struct
import sys

from mpmath import mp, mpf

mp.dps = 60


def chebyshev_points(a, b, n):
    return [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * i / (n - 1)) for i in range(n)]


def remez(values, weights, grid, powers):
    """The c minimising max |w (sum c_j x^powers_j - f)| over the grid, and that maximum."""
    n = len(powers)
    step = (len(grid) - 1) / n
    nodes = [round(i * step) for i in range(n + 1)]
    for _ in range(30):
        rows, right = [], []
        for sign, i in enumerate(nodes):
            rows.append([grid[i] ** p for p in powers] + [mpf((-1) ** sign) / weights[i]])
            right.append(values[i])
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix(right))
        c = [solution[j] for j in range(n)]
        error = []
        for x, f, w in zip(grid, values, weights, strict=True):
            p = mpf(0)
            for cj, pj in zip(c, powers, strict=True):
                p += cj * x**pj
            error.append(w * (p - f))
        extrema = alternation(error, n + 1)
        worst = max(abs(e) for e in error)
        if extrema is None or worst <= abs(solution[n]) * mpf("1.001"):
            break
        nodes = extrema
    return c, worst


def alternation(error, count):
    """Indices of `count` extrema of alternating sign, the largest ones."""
    runs = []
    for i, e in enumerate(error):
        if runs and (error[runs[-1]] > 0) == (e > 0):
            if abs(e) > abs(error[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > count:
        runs.pop(0 if abs(error[runs[0]]) < abs(error[runs[-1]]) else -1)
    return runs if len(runs) == count else None


def rounded(x, single):
    if single:
        return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])
    return mpf(float(x))


def fit(f, a, b, n, power, single):
    """n coefficients, lowest degree first, rounded; the first's rounding error; log2(error)."""
    grid = chebyshev_points(mpf(a), mpf(b), 24 * n + 1)
    tiny = (mpf(b) - mpf(a)) * mpf("1e-6")  # a weight may vanish at 0, and a tail there is 0 / 0
    grid = [x if abs(x) > tiny else tiny for x in grid]
    values = [f(x) for x in grid]
    if callable(power):
        weights = [power(x) for x in grid]
    else:
        weights = [
            1 / v if power is None else abs(x) ** power for x, v in zip(grid, values, strict=True)
        ]
    c, _ = remez(values, weights, grid, list(range(n)))
    fixed = [rounded(v, single) for v in c]
    low = rounded(c[0] - fixed[0], single)
    worst = mpf(0)
    for x, v, w in zip(grid, values, weights, strict=True):
        p = low + sum(c * x**i for i, c in enumerate(fixed))
        worst = max(worst, abs(w * (p - v)))
    return fixed, low, mp.log(worst, 2)


def root(f):
    """f as a function of z = x * x."""
    return lambda z: f(mp.sqrt(z))


ERFC_CENTRE = mpf("3.75")
ERFC_FLOAT_CENTRE = mpf(2)


def erfc_scaled(t, centre=ERFC_CENTRE):
    x = centre * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def erfc_scaled_float(t):
    return erfc_scaled(t, ERFC_FLOAT_CENTRE)


def erf_rest(u):
    x = u + ERFC_FLOAT_CENTRE
    return mp.exp(x * x) * mp.erfc(x)


def erf_rest_weight(u):
    return mp.exp(-((u + ERFC_FLOAT_CENTRE) ** 2))


NDTR_CENTRE = mpf(2)


def ndtr_scaled(u):
    x = u + NDTR_CENTRE
    return mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2)) / 2


def erfinv_slope(w):
    """erfinv(x) / x where w = -log(1 - x^2)."""
    if w <= 0:
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def erfinv_near(t):
    return erfinv_slope(t + 1)


def erfinv_rest(s):
    return erfinv_slope(s**2) - s


def erfinv_mid(t):
    return erfinv_rest(t + mpf("3.125"))


def erfinv_far(t):
    return erfinv_rest(t + 5)


def expm1_tail(r):
    return (mp.expm1(r) - r) / r**2


def tanh_tail(x):
    return (mp.tanh(x) - x) / x**3


def atanh_tail(f):
    return (2 * mp.atanh(f) - 2 * f - 2 * f**3 / 3) / f**5


def log_tail(g):
    return (mp.log1p(g) - g) / g**2


def sin_tail(x):
    return (mp.sin(x) - x) / x**3


def cos_tail(x):
    return (mp.cos(x) - 1 + x**2 / 2) / x**4


def atan_tail(x):
    return (mp.atan(x) - x) / x**3


def asin_tail(x):
    return (mp.asin(x) - x) / x**3


def erf_tail(x):
    return (mp.erf(x) / x - 2 / mp.sqrt(mp.pi)) / x**2


def erfc_t(x, centre=ERFC_CENTRE):
    return (mpf(x) - centre) / (mpf(x) + centre)


half_log2 = mp.log(2) / 2 * mpf("1.0001")
EXP = (-half_log2, half_log2)
LOG = (mp.sqrt(mpf("0.5")) - 1, mp.sqrt(mpf(2)) - 1)
ATANH = (0, (LOG[1] / (LOG[1] + 2)) ** 2 * mpf("1.0001"))
SIN = (0, (mp.pi / 4 * mpf("1.0001")) ** 2)
ATAN = (0, mp.tan(mp.pi / 8) ** 2 * mpf("1.0001"))
ASIN = (0, mpf("0.2501"))
ERF = (0, mpf("1.001"))
ERF_HALF = (0, mpf("0.2505"))
ERF_NEAR = (0, mpf("0.8655"))
ERF_REST = (mpf("-1.0702"), mpf("1.9502"))
ERFC64 = (erfc_t("0.499"), erfc_t(28))
ERFC32 = (erfc_t("0.499"), erfc_t("10.5"))
ERFC_FLOAT = (erfc_t("0.499", ERFC_FLOAT_CENTRE), erfc_t("10.1", ERFC_FLOAT_CENTRE))
NDTR = (mpf("-2.0002"), mpf("2.0002"))
ERFINV_NEAR = (-1, 4)
ERFINV_MID = (mp.sqrt(5) - mpf("3.125"), mpf("4.001") - mpf("3.125"))
ERFINV_FAR = (mpf("-1.001"), mpf("1.005"))
TANH64 = (0, mpf("0.3907"))
TANH = (0, mpf("0.811"))

# Name, what it approximates, function, interval, number of coefficients, the power of the argument
# that is the weight, and whether in float. "Short": for float results, computed in double.
TABLE = [
    ("kExp64", "(exp(r) - 1 - r) / r^2, |r| <= log(2)/2", expm1_tail, EXP, 11, 2, 0),
    ("kExp32", "the same, short", expm1_tail, EXP, 6, 1, 0),
    ("kExpFloat", "the same, in float", expm1_tail, EXP, 5, 2, 1),
    ("kTanh64", "(tanh(x) - x) / x^3 in x^2, |x| <= 0.625", root(tanh_tail), TANH64, 11, 1, 0),
    ("kTanhFloat", "the same, |x| <= 0.93, in float", root(tanh_tail), TANH, 7, 1, 1),
    ("kAtanh64", "(2 atanh(f) - 2f - 2f^3/3) / f^5 in f^2", root(atanh_tail), ATANH, 8, 2, 0),
    ("kLog32", "(log(1+g) - g) / g^2, 1+g in [sqrt(1/2), sqrt(2)]", log_tail, LOG, 12, 1, 0),
    ("kSin64", "(sin(x) - x) / x^3 in x^2, |x| <= pi/4", root(sin_tail), SIN, 7, 1, 0),
    ("kSin32", "the same, short", root(sin_tail), SIN, 4, 1, 0),
    ("kSinFloat", "the same, in float", root(sin_tail), SIN, 4, 1, 1),
    ("kCos64", "(cos(x) - 1 + x^2/2) / x^4 in x^2, |x| <= pi/4", root(cos_tail), SIN, 7, 2, 0),
    ("kCos32", "the same, short", root(cos_tail), SIN, 4, 2, 0),
    ("kCosFloat", "the same, in float", root(cos_tail), SIN, 3, 2, 1),
    ("kAtan64", "(atan(x) - x) / x^3 in x^2, |x| <= tan(pi/8)", root(atan_tail), ATAN, 12, 1, 0),
    ("kAtan32", "the same, short", root(atan_tail), ATAN, 6, 1, 0),
    ("kAsin64", "(asin(x) - x) / x^3 in x^2, |x| <= 1/2", root(asin_tail), ASIN, 14, 1, 0),
    ("kAsin32", "the same, short", root(asin_tail), ASIN, 7, 1, 0),
    ("kErf64", "(erf(x)/x - 2/sqrt(pi)) / x^2 in x^2, |x| <= 1", root(erf_tail), ERF, 14, 1, 0),
    ("kErf32", "the same, short", root(erf_tail), ERF, 8, 1, 0),
    ("kErfFloat", "the same, |x| <= 1/2, in float", root(erf_tail), ERF_HALF, 5, 1, 1),
    ("kErfNearFloat", "the same, |x| <= 0.93, in float", root(erf_tail), ERF_NEAR, 7, 1, 1),
    (
        "kErfRestFloat",
        "exp(x^2) erfc(x) in x - 2, 0.93 <= x <= 3.95, for 1 - erf(x), in float",
        erf_rest,
        ERF_REST,
        10,
        erf_rest_weight,
        1,
    ),
    ("kErfc64", "(1+2x) exp(x^2) erfc(x) in (x-K)/(x+K), x <= 28", erfc_scaled, ERFC64, 24, 0, 0),
    ("kErfc32", "the same, x <= 10.5, short", erfc_scaled, ERFC32, 13, 0, 0),
    ("kErfcFloat", "the same, K = 2, x <= 10.1, in float", erfc_scaled_float, ERFC_FLOAT, 11, 0, 1),
    (
        "kNdtrFloat",
        "exp(x^2/2) ndtr(-x) in x - 2, x <= 4, in float",
        ndtr_scaled,
        NDTR,
        13,
        None,
        1,
    ),
    ("kErfinv64", "erfinv(x)/x in w - 1, w = -log(1-x^2) <= 5", erfinv_near, ERFINV_NEAR, 23, 0, 0),
    ("kErfinv32", "the same, short", erfinv_near, ERFINV_NEAR, 12, 0, 0),
    (
        "kErfinvMiddle64",
        "erfinv(x)/x - s in s - 3.125, s = sqrt(w) <= 4",
        erfinv_mid,
        ERFINV_MID,
        22,
        0,
        0,
    ),
    ("kErfinvMiddle32", "the same, short", erfinv_mid, ERFINV_MID, 12, 0, 0),
    ("kErfinvFar64", "the same in s - 5, 16 <= w <= 36.1", erfinv_far, ERFINV_FAR, 19, 0, 0),
]


def main():
    only = sys.argv[1:]
    print("// Minimax polynomials, lowest degree first. Written by coefficients.py: change that.")
    print("// The number of bits is -log2 of the largest error, weighted as coefficients.py says.")
    print("#pragma once\n\nnamespace gradcell::coefficients {")
    for name, what, f, (a, b), n, power, single in TABLE:
        if only and name not in only:
            continue
        c, low, bits = fit(f, a, b, n, power, single)
        kind, suffix = ("float", "f") if single else ("double", "")
        print(f"\n/// {what}: {float(-bits):.1f} bits")
        values = ", ".join(float(v).hex() + suffix for v in c)
        print(f"inline constexpr {kind} {name}[{n}] = {{{values}}};")
        if name in ("kErfNearFloat", "kErfc64", "kErfcFloat", "kErfinv64"):
            # Their constant terms are wanted to more than a double.
            print(f"inline constexpr {kind} {name}Low = {float(low).hex()}{suffix};")
    print("\n}  // namespace gradcell::coefficients")


if __name__ == "__main__":
    main()
