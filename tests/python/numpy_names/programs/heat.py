"""The heat equation by explicit differences and by Crank and Nicolson's implicit ones."""

import numpy as np

parameters = np.exp(-((np.linspace(0, 1, 21) - 0.4) ** 2) / 0.02)


def program(u):
    n = len(u)
    dx = 1.0 / (n - 1)
    dt = 0.4 * dx**2
    explicit = u.copy()
    for _ in range(40):
        explicit[1:-1] += dt / dx**2 * (explicit[2:] - 2 * explicit[1:-1] + explicit[:-2])
        explicit[0] = 0.0
        explicit[-1] = explicit[-2]
    L = np.diag(np.full(n, -2.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    step = 5 * dt / dx**2
    left, right = np.identity(n) - step / 2 * L, np.identity(n) + step / 2 * L
    implicit = u
    for _ in range(8):
        implicit = np.linalg.solve(left, right @ implicit)
    plate = np.tile(u, (9, 1)) * np.sin(np.pi * np.linspace(0, 1, 9))[:, None]
    for _ in range(15):
        inner = plate[1:-1, 1:-1]
        around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
        plate[1:-1, 1:-1] = inner + 0.2 * (around - 4 * inner)
    energy = 0.5 * np.sum(np.diff(implicit) ** 2) / dx
    return np.concatenate((explicit, implicit, plate[4], [energy, plate.mean()]))
