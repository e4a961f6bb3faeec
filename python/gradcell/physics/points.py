"""Points in boxes and balls and on their surfaces, as float64 arrays [n, d]."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcell.base import bad_value, where

__all__ = ["ball", "box", "by_size", "faces", "sphere"]

Array = np.ndarray[Any, Any]
Random = int | np.random.Generator | None

#: The sequences, by their names in scipy.stats.qmc.
_METHODS = {"halton": "Halton", "sobol": "Sobol", "latin": "LatinHypercube", "uniform": None}


def box(
    n: int,
    low: Sequence[float],
    high: Sequence[float],
    seed: Random = None,
    method: str = "halton",
) -> Array:
    """n points in a box, as an array [n, d].

    low, high: the ends along each axis. seed: a seed or a generator of NumPy's. method: "halton",
    "sobol" or "latin" (scrambled sequences of scipy.stats.qmc, which fill the box evenly), or "uniform".
    Raises ValueError if low is not below high, ImportError without SciPy for all methods but "uniform".
    """
    a, b = _ends("box", low, high)
    return a + _unit("box", n, a.size, seed, method) * (b - a)  # type: ignore[no-any-return]


def faces(
    n: int,
    low: Sequence[float],
    high: Sequence[float],
    seed: Random = None,
    method: str = "halton",
    sides: Sequence[tuple[int, int]] | None = None,
) -> Array:
    """n points on a box's faces, in proportion to their areas, face after face: [n, d].

    sides: which faces, as pairs of an axis and 0 for its low or 1 for its high end; all without it. In a box
    of t and x, [(0, 0)] is where time begins, [(1, 0), (1, 1)] the edges. Other arguments and
    errors are those of `box`.
    """
    a, b = _ends("faces", low, high)
    chosen = [(k, e) for k in range(a.size) for e in (0, 1)] if sides is None else list(sides)
    if not chosen or any(not 0 <= k < a.size or e not in (0, 1) for k, e in chosen):
        bad_value(f"faces: sides are pairs of an axis below {a.size} and 0 or 1, got {sides}")
    areas = np.array([np.prod(np.delete(b - a, k)) for k, _ in chosen])
    bounds = np.rint(np.cumsum(areas) / areas.sum() * n).astype(int)
    points = a + _unit("faces", n, a.size, seed, method) * (b - a)
    for (axis, end), begin, stop in zip(chosen, [0, *bounds[:-1]], bounds, strict=True):
        points[begin:stop, axis] = (b if end else a)[axis]
    return points  # type: ignore[no-any-return]


def ball(
    n: int, center: Sequence[float], radius: float, seed: Random = None, method: str = "halton"
) -> Array:
    """n points in a ball, [n, d], evenly by volume. Other arguments and errors as `box`.

    center: the centre. radius: the radius. seed: a NumPy generator, or a seed. method: how they
    are spread, as for `box`.
    """
    middle = _center("ball", center, radius)
    d = middle.size
    unit = _unit("ball", n, 1 + _pairs(d), seed, method)
    return middle + radius * unit[:, :1] ** (1 / d) * _directions(unit[:, 1:], d)


def sphere(
    n: int, center: Sequence[float], radius: float, seed: Random = None, method: str = "halton"
) -> Array:
    """n points on a sphere (in two dimensions a circle), [n, d], evenly by area. Other arguments and errors
    as `box`.

    center: the centre. radius: the radius. seed: a NumPy generator, or a seed. method: how they
    are spread, as for `box`.
    """
    middle = _center("sphere", center, radius)
    unit = _unit("sphere", n, _pairs(middle.size), seed, method)
    return middle + radius * _directions(unit, middle.size)


def by_size(candidates: Any, size: Any, n: int, seed: Random = None, floor: float = 1.0) -> Array:
    """n different ones of the candidates [m, d], drawn with probabilities that grow with their sizes [m] or
    [m, 1], such as absolute residuals: |size| / mean |size| + floor (C. Wu, M. Zhu, Q. Tan, Y. Kartha, L. Lu,
    Comput. Methods Appl. Mech. Eng. 403, 2023: RAD, with k = 1 and c = floor).

    candidates: points, an array [m, d]. size: numbers [m] or [m, 1]. floor: what is added to each
    relative size, so that points with small ones are drawn too. seed: a NumPy generator, or a
    seed. Raises ValueError for other shapes, sizes that are not finite, and fewer than n
    candidates.
    """
    points, sizes = np.asarray(candidates), np.abs(np.asarray(size, np.float64)).reshape(-1)
    if points.ndim != 2 or sizes.size != len(points) or not 0 < n <= len(points):
        bad_value(
            "by_size: expected candidates [m, d], a size for each and n from 1 to m, got "
            f"{list(points.shape)}, {list(np.shape(size))} and {n}"
        )
    if not np.isfinite(sizes).all() or not floor >= 0:
        bad_value(f"by_size: sizes must be finite, and floor not negative, got {floor}")
    largest = sizes.max()
    relative = sizes / largest if largest > 0 else sizes
    share = (relative / relative.mean() if largest > 0 else relative) + max(floor, 1e-12)
    picked = np.random.default_rng(seed).choice(
        len(points), n, replace=False, p=share / share.sum()
    )
    return points[picked]


def _unit(name: str, n: int, d: int, seed: Random, method: str) -> Array:
    """n points in the unit cube."""
    if method not in _METHODS or n < 1:
        bad_value(
            f"{name}: n must be at least 1 and method one of {', '.join(_METHODS)}, got {n} and {method!r}"
        )
    generator = np.random.default_rng(seed)
    if method == "uniform":
        return generator.random((n, d))
    try:
        qmc: Any = importlib.import_module("scipy.stats").qmc
    except ImportError as error:
        raise ImportError(
            f"{name}: method=\"{method}\" needs SciPy: pip install 'gradcell[optimize]', or take "
            f'method="uniform"{where()}'
        ) from error
    sequence = getattr(qmc, _METHODS[method] or "")(d, seed=generator)
    if method == "sobol":  # balanced for powers of 2
        return np.asarray(sequence.random_base2(int(np.ceil(np.log2(n)))))[:n]
    return np.asarray(sequence.random(n))


def _ends(name: str, low: Any, high: Any) -> tuple[Array, Array]:
    a, b = np.asarray(low, np.float64), np.asarray(high, np.float64)
    if a.ndim != 1 or a.shape != b.shape or a.size == 0 or not np.all(a < b):
        bad_value(
            f"{name}: low and high must be as long as each other, and each low end below its high one, got "
            f"{low} and {high}"
        )
    return a, b


def _center(name: str, center: Any, radius: float) -> Array:
    middle = np.asarray(center, np.float64)
    if middle.ndim != 1 or middle.size == 0 or not 0 < radius < np.inf:
        bad_value(
            f"{name}: center must be the coordinates of one point, and radius positive, got {center} and "
            f"{radius}"
        )
    return middle


def _directions(unit: Array, d: int) -> Array:
    """Vectors [n, d] of length 1 from points in a unit cube of `_pairs(d)` dimensions: normal distributions
    (G. Box, M. Muller, 1958) point everywhere alike."""
    length, angle = np.sqrt(-2 * np.log1p(-unit[:, ::2])), 2 * np.pi * unit[:, 1::2]
    normal = np.stack([length * np.cos(angle), length * np.sin(angle)], 2).reshape(len(unit), -1)[
        :, :d
    ]
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))


def _pairs(d: int) -> int:
    return d + d % 2
