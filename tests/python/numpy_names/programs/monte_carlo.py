"""The price of options on a path of a random price, with antithetic draws, and pi by darts."""

import numpy as np

parameters = np.array([100.0, 0.2, 0.03, 105.0])


def program(p):
    start, volatility, rate, strike = p
    rng = np.random.default_rng(2024)
    z = rng.standard_normal((200, 12))
    z = np.concatenate([z, -z])
    dt = 1 / 12
    steps = (rate - 0.5 * volatility**2) * dt + volatility * np.sqrt(dt) * z
    paths = start * np.exp(np.cumsum(steps, axis=1))
    gain = np.maximum(paths[:, -1] - strike, 0.0)
    asian = np.maximum(paths.mean(axis=1) - strike, 0)
    discount = np.exp(-rate)
    prices = discount * np.array([gain.mean(), asian.mean()])
    errors = discount * np.array([gain.std(ddof=1), asian.std(ddof=1)]) / np.sqrt(len(paths))
    worst = np.quantile(paths.min(axis=1), 0.05)
    darts = rng.uniform(-1, 1, size=(500, 2))
    inside = np.count_nonzero((darts**2).sum(axis=1) <= 1.0)
    knocked = np.any(paths < 85, axis=1)
    barrier = discount * np.where(knocked, 0.0, gain).mean()
    return np.hstack((prices, errors, worst, 4 * inside / len(darts), barrier))
