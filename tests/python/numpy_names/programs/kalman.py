"""A Kalman filter of a moving point that is measured with noise, and its likelihood."""

import numpy as np

truth = np.cumsum(np.full(25, 0.3))
parameters = truth + 0.4 * np.random.default_rng(5).normal(size=25)


def program(measured):
    dt = 0.5
    F = np.array([[1, dt], [0, 1]])
    H = np.array([[1.0, 0.0]])
    Q = 0.05 * np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])
    R = np.array([[0.16]])
    x, P = np.zeros((2, 1)), 10 * np.eye(2)
    likelihood = 0.0
    track = np.empty((len(measured), 2))
    for t, z in enumerate(measured):
        x = F @ x
        P = F @ P @ F.T + Q
        v = z - H @ x
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        x = x + K @ v
        P = (np.eye(2) - K @ H) @ P
        likelihood -= (
            0.5 * (np.log(2 * np.pi * np.linalg.det(S)) + v.T @ np.linalg.inv(S) @ v)[0, 0]
        )
        track[t] = x.ravel()
    return np.append(track.ravel(), [np.trace(P), likelihood])
