"""Blurring, Sobel's edges, a median filter, sharpening and a histogram of grey values."""

import numpy as np

y, x = np.mgrid[0:12, 0:12]
parameters = np.sin(x / 2.0) * np.cos(y / 3.0) + 0.1 * np.random.default_rng(3).standard_normal(
    (12, 12)
)


def convolve2d(image, kernel):
    m, n = kernel.shape
    padded = np.pad(image, ((m // 2, m // 2), (n // 2, n // 2)), mode="reflect")
    out = np.zeros_like(image)
    for i in range(m):
        for j in range(n):
            out += kernel[i, j] * padded[i : i + image.shape[0], j : j + image.shape[1]]
    return out


def median3(image):
    padded = np.pad(image, 1, mode="edge")
    views = [
        padded[i : i + image.shape[0], j : j + image.shape[1]] for i in range(3) for j in range(3)
    ]
    return np.median(np.stack(views), axis=0)


def program(image):
    line = np.exp(-0.5 * np.arange(-2, 3) ** 2)
    gauss = np.outer(line, line)
    gauss /= gauss.sum()
    smooth = convolve2d(image, gauss)
    sobel = np.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])
    edges = np.hypot(convolve2d(smooth, sobel), convolve2d(smooth, sobel.T))
    sharp = np.clip(image + 0.7 * (image - smooth), -2.0, 2.0)
    pooled = image.reshape(6, 2, 6, 2).max(axis=(1, 3))
    flipped = np.rot90(np.flipud(median3(image)))
    return np.concatenate([v.ravel() for v in (edges, sharp, pooled, flipped)])
