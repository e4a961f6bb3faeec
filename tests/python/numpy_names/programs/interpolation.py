"""Linear, Lagrange's, Newton's and natural cubic spline interpolation, with an integral of each."""

import numpy as np

x = np.array([0.0, 0.5, 1.3, 2.0, 3.1, 4.0])
parameters = np.cos(x) + 0.1 * x


def lagrange(y, at):
    total = 0.0
    for i in range(len(x)):
        others = np.delete(x, i)
        total = total + y[i] * np.prod((at[:, None] - others) / (x[i] - others), axis=1)
    return total


def newton(y, at):
    table = np.array(y)
    for k in range(1, len(x)):
        table[k:] = (table[k:] - table[k - 1 : -1]) / (x[k:] - x[:-k])
    value = table[-1] * np.ones_like(at)
    for k in range(len(x) - 2, -1, -1):
        value = value * (at - x[k]) + table[k]
    return value


def spline(y, at):
    n, h, d = len(x), np.diff(x), np.diff(y) / np.diff(x)
    A, b = np.zeros((n, n)), np.zeros(n)
    A[0, 0] = A[-1, -1] = 1.0
    for i in range(1, n - 1):
        A[i, i - 1 : i + 2] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        b[i] = 6 * (d[i] - d[i - 1])
    m = np.linalg.solve(A, b)
    i = np.clip(np.searchsorted(x, at) - 1, 0, n - 2)
    left, right = x[i + 1] - at, at - x[i]
    cubic = (m[i] * left**3 + m[i + 1] * right**3) / (6 * h[i])
    return (
        cubic
        + (y[i] / h[i] - m[i] * h[i] / 6) * left
        + (y[i + 1] / h[i] - m[i + 1] * h[i] / 6) * right
    )


def program(y):
    at = np.linspace(0.1, 3.9, 20)
    curves = [np.interp(at, x, y), lagrange(y, at), newton(y, at), spline(y, at)]
    areas = [np.trapezoid(c, at) for c in curves]
    return np.concatenate([*curves, areas, np.gradient(y, x)])
