"""Pictures of shapes, and of functions on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell._core import Tensor
from gradcell.base import bad_value
from gradcell.physics.shapes import Shape

__all__ = ["plot"]


def plot(
    shape: Shape,
    u: Callable[[Tensor], Any] | None = None,
    axes: Any = None,
    *,
    n: int = 200,
    label: str = "",
    signed: bool = False,
    **options: Any,
) -> Any:
    """Draw a function on a shape with Matplotlib, and return the axes, whose `figure` can be saved.

    shape: of one dimension: a line; of two: colours, with a bar; of three: the colours of points on the
    boundary. u: a function of points [m, d], a tensor, that gives [m, 1] or [m]; without it points inside and
    on the boundary with their normals are drawn. axes: where; without it on a new figure. n: points along
    each axis, and of the boundary in three dimensions n * n / 4. label: the function's name. signed:
    whether colours are even about 0, as errors need. options: for Matplotlib's plot, pcolormesh, scatter or
    (without u) quiver. Raises ValueError for more dimensions.
    """
    d = shape.dimensions
    if not 1 <= d <= 3:
        bad_value(f"plot: a shape of {d} dimensions cannot be drawn; 1, 2 or 3 can")
    if axes is None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 4.5), layout="constrained")
        axes = figure.add_subplot(projection="3d" if d == 3 else None)
    if u is None:
        _points(shape, axes, n, options)
    else:
        [_line, _image, _surface][d - 1](shape, u, axes, n, label, signed, options)
    axes.set_xlabel("x")
    if d > 1:
        axes.set(ylabel="y", aspect="equal")
    if d == 3:
        axes.set_zlabel("z")
        axes.locator_params(nbins=4)
    return axes


def _values(u: Callable[[Tensor], Any], points: Any) -> Any:
    found = np.asarray(u(Tensor(points)))
    if found.size != len(points):
        bad_value(
            f"plot: the function must give a number for each point, [{len(points)}, 1], got "
            f"{list(found.shape)}"
        )
    return found.reshape(-1)


def _colours(values: Any, signed: bool, options: Any) -> Any:
    """Matplotlib's options for colours of these values, and the user's."""
    most = float(np.nanmax(np.abs(values)))
    return {**({"cmap": "RdBu_r", "vmin": -most, "vmax": most} if signed else {}), **options}


def _line(shape: Shape, u: Any, axes: Any, n: int, label: str, signed: bool, options: Any) -> None:
    x = np.linspace(shape.low, shape.high, n)
    y = np.where(shape.inside(x), _values(u, x), np.nan)
    axes.plot(x[:, 0], y, **options)
    axes.set_ylabel(label)


def _image(shape: Shape, u: Any, axes: Any, n: int, label: str, signed: bool, options: Any) -> None:
    x, y = (np.linspace(a, b, n) for a, b in zip(shape.low, shape.high, strict=True))
    grid = np.stack(np.meshgrid(x, y), -1).reshape(-1, 2)
    held, values = shape.inside(grid), np.full(len(grid), np.nan)
    values[held] = _values(u, grid[held])
    options = {"rasterized": True, **_colours(values, signed, options)}
    image = axes.pcolormesh(x, y, values.reshape(n, n), **options)
    axes.figure.colorbar(image, ax=axes, label=label)


def _surface(
    shape: Shape, u: Any, axes: Any, n: int, label: str, signed: bool, options: Any
) -> None:
    points, _ = shape.boundary(n * n // 4, 0)
    values = _values(u, points)
    image = axes.scatter(*points.T, c=values, **{"s": 4, **_colours(values, signed, options)})
    axes.figure.colorbar(image, ax=axes, label=label)


def _points(shape: Shape, axes: Any, n: int, options: Any) -> None:
    inside, (points, normals) = shape.interior(2 * n, 0), shape.boundary(n, 0)
    if shape.dimensions == 1:
        axes.plot(inside[:, 0], 0 * inside[:, 0], ".", points[:, 0], 0 * points[:, 0], "o")
        return
    axes.plot(*inside.T, ".", color="0.7", markersize=3)
    if shape.dimensions == 2:
        options = {"angles": "xy", "width": 0.003, **options}
    else:
        options = {
            "length": 0.1 * float(np.max(shape.high - shape.low)),
            "linewidth": 0.7,
            **options,
        }
    axes.quiver(*points.T, *normals.T, **options)
