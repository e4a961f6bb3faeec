"""A picture of a curve with a band of how certain it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell.base import bad_value

__all__ = ["band"]

Array = np.ndarray[Any, Any]


def band(
    path: Any,
    x: Any,
    values: Any,
    half: Any,
    *,
    label: str = "",
    exact: Any = None,
    measured: tuple[Any, Any] | None = None,
    title: str = "",
) -> None:
    """Draws values over x, and a band that reaches half to both sides of them, into a file.

    x, values, half: tensors or arrays of as many numbers, [n] or [n, 1]; for half take twice the standard
    deviations of `Covariance.of`, or the absolute values of an `ErrorEstimate`. It may have nan, where the
    band has a gap. path: the file, whose ending says of which kind it is. label: what the band is, for the
    legend. exact: the values of a known solution. measured: x and y of measurements. title: the title.
    Needs Matplotlib. Raises ValueError for other shapes and for a negative half.
    """
    line, middle, width = _numbers(x), _numbers(values), _numbers(half)
    truth = None if exact is None else _numbers(exact)
    if not line.size == middle.size == width.size == (line if truth is None else truth).size:
        bad_value(
            "band: x, values, half and exact must have one number for each point, [n] or [n, 1], got "
            f"{[list(np.shape(a)) for a in (x, values, half, exact) if a is not None]}"
        )
    if np.any(width < 0):
        bad_value("band: half, the half width of the band, must not be negative")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    if truth is not None:
        axes.plot(line, truth, color="0.2", lw=1, ls="--", label="exact", zorder=3)
    axes.fill_between(
        line, middle - width, middle + width, color="C0", alpha=0.3, lw=0, label=label
    )
    axes.plot(line, middle, color="C0", label="network")
    if measured is not None:
        axes.plot(*map(_numbers, measured), ".", color="0.4", ms=4, label="measured")
    axes.set(title=title, xmargin=0)
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def _numbers(x: Any) -> Array:
    return np.asarray(x, np.float64).reshape(-1)
