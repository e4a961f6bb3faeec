"""Least squares of several kinds, with the spread of the coefficients."""

import numpy as np

rng = np.random.default_rng(11)
x = np.linspace(-1, 1, 30)
parameters = 0.5 - 2.0 * x + 1.5 * x**2 + 0.1 * rng.normal(size=30)


def program(y):
    A = np.column_stack([np.ones_like(x), x, x**2])
    coefficients, residuals, rank, _ = np.linalg.lstsq(A, y, rcond=None)
    normal = np.linalg.solve(A.T @ A, A.T @ y)
    fitted = A @ coefficients
    r2 = 1 - np.sum((y - fitted) ** 2) / np.sum((y - y.mean()) ** 2)
    sigma2 = residuals[0] / (len(y) - rank)
    errors = np.sqrt(np.diag(sigma2 * np.linalg.inv(A.T @ A)))
    ridge = np.linalg.inv(A.T @ A + 0.5 * np.eye(3)).dot(A.T).dot(y)
    weights = 1.0 / (1.0 + np.abs(x))
    weighted = np.polyfit(x, y, 2, w=weights)
    q, r = np.linalg.qr(A)
    by_qr = np.linalg.solve(r, q.T @ y)
    new = np.polyval(weighted, np.array([-0.5, 0.25, 2.0]))
    return np.r_[coefficients, normal, r2, errors, ridge, weighted, by_qr, new]
