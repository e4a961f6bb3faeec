"""PageRank, the largest eigenvalue by power iteration, the smallest by inverse iteration."""

import numpy as np

parameters = np.array(
    [[4.0, 1.0, 0.5, 0.0], [1.0, 3.0, 0.2, 0.7], [0.5, 0.2, 2.0, 0.3], [0.0, 0.7, 0.3, 1.0]]
)


def power(apply, n, steps=200):
    v = np.ones(n) / np.sqrt(n)
    for _ in range(steps):
        w = apply(v)
        v = w / np.linalg.norm(w)
    return v @ apply(v), v


def program(A):
    largest, vector = power(lambda v: A.dot(v), len(A))
    inverse = np.linalg.inv(A)
    smallest, _ = power(lambda v: np.dot(inverse, v), len(A))
    links = np.abs(A) / np.abs(A).sum(axis=0, keepdims=True)
    damping = 0.85
    rank = np.full(len(A), 1 / len(A))
    for _ in range(50):
        rank = damping * links @ rank + (1 - damping) / len(A)
    deflated = A - largest * np.outer(vector, vector)
    second, _ = power(lambda v: deflated @ v, len(A))
    return np.concatenate(([largest, 1 / smallest, second], vector * np.sign(vector[0]), rank))
