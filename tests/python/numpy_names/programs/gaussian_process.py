"""A Gaussian process: the mean and spread between points, and the likelihood of its kernel's width."""

import numpy as np

x = np.sort(np.random.default_rng(12).uniform(-3, 3, 12))
parameters = np.sin(x) + 0.05 * x


def kernel(a, b, width=1.0):
    return np.exp(-0.5 * np.subtract.outer(a, b) ** 2 / width**2)


def program(y):
    noise = 1e-2
    K = kernel(x, x) + noise * np.eye(len(x))
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    new = np.linspace(-3, 3, 9)
    across = kernel(x, new)
    mean = across.T @ alpha
    v = np.linalg.solve(L, across)
    spread = np.sqrt(np.diag(kernel(new, new)) - np.sum(v**2, axis=0))
    likelihoods = []
    for width in (0.5, 1.0, 2.0):
        C = kernel(x, x, width) + noise * np.identity(len(x))
        _, logdet = np.linalg.slogdet(C)
        fit = y @ np.linalg.solve(C, y)
        likelihoods.append(-0.5 * (fit + logdet + len(x) * np.log(2 * np.pi)))
    best = np.argmax(likelihoods)
    upper, lower = mean + 1.96 * spread, mean - 1.96 * spread
    return np.concatenate([mean, upper, lower, likelihoods, [best]])
