"""Lloyd's k-means, begun by the farthest points, with its inertia and silhouettes."""

import numpy as np

rng = np.random.default_rng(2)
centres = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])
parameters = np.vstack([c + 0.5 * rng.normal(size=(12, 2)) for c in centres])


def program(points):
    chosen = [0]
    for _ in range(2):
        apart = np.linalg.norm(points[:, None, :] - points[chosen][None], axis=-1).min(axis=1)
        chosen.append(int(np.argmax(apart)))
    means = points[chosen]
    for _ in range(10):
        distance = ((points[:, np.newaxis] - means) ** 2).sum(axis=2)
        labels = np.argmin(distance, axis=1)
        new = np.array([points[labels == k].mean(axis=0) for k in range(3)])
        if np.allclose(new, means):
            break
        means = new
    inertia = np.sum((points - means[labels]) ** 2)
    names, sizes = np.unique(labels, return_counts=True)
    matrix = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1) + 1e-12)
    mean_to = np.stack([matrix[:, labels == k].mean(axis=1) for k in names], axis=1)
    own = mean_to[np.arange(len(points)), labels]
    other = np.where(np.eye(3)[labels] > 0, np.inf, mean_to).min(axis=1)
    silhouette = np.mean((other - own) / np.maximum(own, other))
    return np.concatenate([means.flatten(), sizes, [inertia, silhouette]])
