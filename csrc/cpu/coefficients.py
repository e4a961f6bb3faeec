"""Derive the polynomial coefficients of the vector math and write vecmath_coefficients.h.

Run by hand when a polynomial changes:  python csrc/cpu/coefficients.py > csrc/cpu/vecmath_coefficients.h
Each row below is a function, its interval, its number of coefficients and a weight; the fit is the
minimax polynomial of weight * (p - f), found by the Remez exchange on a dense grid (E. Y. Remez,
1934) in 60-digit arithmetic, its coefficients then rounded to the target type.
"""

import struct
import sys

from mpmath import mp, mpf

mp.dps = 60


def chebyshev_points(a, b, n):
    return [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * i / (n - 1)) for i in range(n)]


def remez(values, weights, grid, powers):
    """The coefficients c minimising max |w (sum c_j x^powers_j - f)| over the grid, and that maximum."""
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
        for x, f, w in zip(grid, values, weights):
            p = mpf(0)
            for cj, pj in zip(c, powers):
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


def fit(f, a, b, n, weight, single):
    """n coefficients, lowest degree first, rounded; the rounding error of the first; the fit's error in bits."""
    grid = chebyshev_points(mpf(a), mpf(b), 24 * n + 1)
    tiny = (mpf(b) - mpf(a)) * mpf("1e-6")  # a weight may vanish at 0, and a tail there is 0 / 0
    grid = [x if abs(x) > tiny else tiny for x in grid]
    values = [f(x) for x in grid]
    weights = [weight(x) for x in grid]
    c, _ = remez(values, weights, grid, list(range(n)))
    fixed = [rounded(v, single) for v in c]
    low = rounded(c[0] - fixed[0], single)
    worst = max(
        abs(w * (low + sum(c * x**i for i, c in enumerate(fixed)) - v)) for x, v, w in zip(grid, values, weights)
    )
    return fixed, low, mp.log(worst, 2)


def one(x):
    return mpf(1)


def root(f):
    """f as a function of z = x * x."""
    return lambda z: f(mp.sqrt(z))


def erfc_scaled(t, k=mpf("3.75")):
    x = k * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


half_log2 = mp.log(2) / 2 * mpf("1.0001")
log_low, log_high = mp.sqrt(mpf("0.5")) - 1, mp.sqrt(mpf(2)) - 1
atanh_high = (log_high / (log_high + 2)) ** 2 * mpf("1.0001")
quarter_pi2 = (mp.pi / 4 * mpf("1.0001")) ** 2
tan8 = mp.tan(mp.pi / 8) ** 2 * mpf("1.0001")


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


def erfc_t(x, k=mpf("3.75")):
    return (mpf(x) - k) / (mpf(x) + k)


# name, what it approximates, function, interval, coefficients, weight, single precision
TABLE = [
    ("kExp64", "(exp(r) - 1 - r) / r^2 on |r| <= log(2)/2", expm1_tail, -half_log2, half_log2, 11, lambda r: r**2, 0),
    ("kExp32", "the same, for float results", expm1_tail, -half_log2, half_log2, 6, lambda r: abs(r), 0),
    ("kExpFloat", "the same, in float", expm1_tail, -half_log2, half_log2, 5, lambda r: r**2, 1),
    ("kTanhFloat", "(tanh(x) - x) / x^3 in x^2, |x| <= 0.9, in float", root(tanh_tail), 0, mpf("0.811"), 7, lambda z: z, 1),
    ("kAtanh64", "(2 atanh(f) - 2f - 2f^3/3) / f^5 in f^2", root(atanh_tail), 0, atanh_high, 8, lambda z: z * z, 0),
    ("kLog32", "(log(1+g) - g) / g^2 on [sqrt(1/2)-1, sqrt(2)-1]", log_tail, log_low, log_high, 12, lambda g: abs(g), 0),
    ("kSin64", "(sin(x) - x) / x^3 in x^2, |x| <= pi/4", root(sin_tail), 0, quarter_pi2, 7, lambda z: z, 0),
    ("kSin32", "the same, for float results", root(sin_tail), 0, quarter_pi2, 4, lambda z: z, 0),
    ("kCos64", "(cos(x) - 1 + x^2/2) / x^4 in x^2, |x| <= pi/4", root(cos_tail), 0, quarter_pi2, 7, lambda z: z * z, 0),
    ("kCos32", "the same, for float results", root(cos_tail), 0, quarter_pi2, 4, lambda z: z * z, 0),
    ("kAtan64", "(atan(x) - x) / x^3 in x^2, |x| <= tan(pi/8)", root(atan_tail), 0, tan8, 12, lambda z: z, 0),
    ("kAtan32", "the same, for float results", root(atan_tail), 0, tan8, 6, lambda z: z, 0),
    ("kAsin64", "(asin(x) - x) / x^3 in x^2, |x| <= 1/2", root(asin_tail), 0, mpf("0.2501"), 14, lambda z: z, 0),
    ("kAsin32", "the same, for float results", root(asin_tail), 0, mpf("0.2501"), 7, lambda z: z, 0),
    ("kErf64", "(erf(x)/x - 2/sqrt(pi)) / x^2 in x^2, |x| <= 1", root(erf_tail), 0, mpf("1.001"), 14, lambda z: z, 0),
    ("kErf32", "the same, for float results", root(erf_tail), 0, mpf("1.001"), 8, lambda z: z, 0),
    ("kErfc64", "(1+2x) exp(x^2) erfc(x) in (x-K)/(x+K), K = 3.75, 0.5 <= x <= 28", erfc_scaled,
     erfc_t("0.499"), erfc_t(28), 24, one, 0),
    ("kErfc32", "the same, 0.5 <= x <= 10.5, for float results", erfc_scaled, erfc_t("0.499"), erfc_t("10.5"), 13, one, 0),
]


def main():
    only = sys.argv[1:]
    print("// Minimax polynomials, lowest degree first. Written by coefficients.py: change that, not this.")
    print("// The number of bits is -log2 of the largest weighted error (weights: see coefficients.py).")
    print("#pragma once\n\nnamespace gradcell::coefficients {")
    for name, what, f, a, b, n, weight, single in TABLE:
        if only and name not in only:
            continue
        c, low, bits = fit(f, a, b, n, weight, single)
        kind, suffix = ("float", "f") if single else ("double", "")
        print(f"\n/// {what}: {float(-bits):.1f} bits")
        print(f"inline constexpr {kind} {name}[{n}] = {{")
        for v in c:
            print(f"    {float(v).hex()}{suffix},  // {mp.nstr(v, 9)}")
        print("};")
        if name == "kErfc64":  # its constant term is wanted to more than a double
            print(f"inline constexpr double {name}Low = {float(low).hex()};")
        sys.stdout.flush()
    print("\n}  // namespace gradcell::coefficients")


if __name__ == "__main__":
    main()
