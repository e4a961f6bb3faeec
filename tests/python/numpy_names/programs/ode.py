"""Lotka and Volterra's equations by the classical Runge-Kutta method."""

import numpy as np

parameters = np.array([1.1, 0.4, 0.1, 0.4, 10.0, 5.0])


def slope(state, rates):
    prey, predator = state
    a, b, c, d = rates
    return np.array([a * prey - b * prey * predator, c * prey * predator - d * predator])


def program(p):
    rates, y = p[:4], p[4:]
    times = np.linspace(0.0, 4.0, 81)
    h = times[1] - times[0]
    path = [y]
    for _ in times[1:]:
        k1 = slope(y, rates)
        k2 = slope(y + h / 2 * k1, rates)
        k3 = slope(y + h / 2 * k2, rates)
        k4 = slope(y + h * k3, rates)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(y)
    path = np.stack(path)
    return np.hstack([path[::20].ravel(), path.max(axis=0), np.trapezoid(path, times, axis=0)])
