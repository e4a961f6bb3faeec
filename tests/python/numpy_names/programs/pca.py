"""Principal components by the eigenvectors of the covariance and by singular values."""

import numpy as np

rng = np.random.default_rng(4)
parameters = rng.normal(size=(25, 4)) @ np.diag([3.0, 1.5, 0.7, 0.2]) @ rng.normal(size=(4, 4))


def program(X):
    centred = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(centred, rowvar=False))
    order = np.argsort(values)[::-1]
    values, vectors = values[order], vectors[:, order]
    signs = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), range(4)])
    vectors = vectors * signs
    scores = centred @ vectors[:, :2]
    U, s, Vt = np.linalg.svd(centred, full_matrices=False)
    explained = np.cumsum(s**2) / np.sum(s**2)
    rebuilt = (U[:, :2] * s[:2]) @ Vt[:2] + X.mean(axis=0)
    error = np.linalg.norm(X - rebuilt)
    whitened = scores / np.sqrt(values[:2])
    return np.hstack([values, scores.ravel(), explained, error, whitened.std(axis=0, ddof=1)])
