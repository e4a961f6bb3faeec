"""Logistic regression by gradient descent and by Newton's steps, and how well it does."""

import numpy as np

rng = np.random.default_rng(6)
labels = np.repeat([0, 1], 20)
parameters = rng.normal(size=(40, 2)) + 1.2 * labels[:, None]


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def program(features):
    X = np.c_[np.ones(len(features)), (features - features.mean(0)) / features.std(0)]
    w = np.zeros(X.shape[1])
    losses = []
    for _ in range(60):
        p = sigmoid(X @ w)
        losses.append(-np.mean(labels * np.log(p) + (1 - labels) * np.log(1 - p)))
        w -= 0.5 * X.T.dot(p - labels) / len(X)
    newton = np.zeros(3)
    for _ in range(6):
        p = sigmoid(X @ newton)
        H = X.T @ (X * (p * (1 - p))[:, np.newaxis]) + 0.01 * np.eye(3)
        newton = newton - np.linalg.solve(H, X.T @ (p - labels) + 0.01 * newton)
    predicted = (sigmoid(X @ newton) >= 0.5).astype(int)
    confusion = np.zeros((2, 2), dtype=int)
    for i in range(len(labels)):
        confusion[labels[i], predicted[i]] += 1
    order = np.argsort(-(X @ newton))
    hits = np.cumsum(labels[order]) / labels.sum()
    misses = np.cumsum(1 - labels[order]) / (1 - labels).sum()
    area = np.trapezoid(hits, misses)
    accuracy = np.mean(predicted == labels)
    return np.concatenate([w, newton, losses[::10], confusion.ravel(), [area, accuracy]])
