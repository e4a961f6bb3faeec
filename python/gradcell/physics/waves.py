"""Solutions as sums of waves of random frequencies, in coordinates that a map stretches where they are steep:
one hidden layer that is drawn, and a last one that least squares determine (A. Rahimi, B. Recht, NeurIPS
2007; J. Chen, X. Chi, W. E, Z. Yang, J. Mach. Learn. 1, 2022: the random feature method)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcell import nn, ops
from gradcell._core import Tensor
from gradcell.physics.points import Array
from gradcell.tensors.parameter import Parameter

__all__ = ["Coordinates", "Waves", "steep_sites"]

#: The share of all places above which as steep slopes as a site's are no site.
_EVERYWHERE = 0.25

#: A place (and width) where a coordinate is stretched.
Site = tuple[float, float]


@dataclass(frozen=True)
class Coordinates:
    """A map of each coordinate of a box to -1 to 1, by itself, finer around sites: the sum of the linear map
    and of asinh((x - place) / width) for its sites (A. Bayliss, E. Turkel, J. Comput. Phys. 101, 1992).

    low, high: the box. sites: for each axis its sites.
    """

    low: Array
    high: Array
    sites: tuple[tuple[Site, ...], ...]

    def _raw(self, k: int, x: Array) -> Array:
        half = (self.high[k] - self.low[k]) / 2
        found = (x - self.low[k]) / half - 1
        for place, width in self.sites[k]:
            found = found + np.arcsinh((x - place) / width)
        return np.asarray(found)

    def ends(self, k: int) -> tuple[float, float]:
        """The ends of an axis before they become -1 and 1."""
        ends = self._raw(k, np.array([self.low[k], self.high[k]]))
        return float(ends[0]), float(ends[1])

    @property
    def most(self) -> int:
        """The most sites of an axis."""
        return max(map(len, self.sites))

    def of(self, x: Array) -> Array:
        """Points [n, d] of the box, each coordinate from -1 to 1."""
        columns = []
        for k in range(self.low.size):
            a, b = self.ends(k)
            columns.append(2 * (self._raw(k, x[:, k]) - a) / (b - a) - 1)
        return np.stack(columns, 1)

    def back(self, z: Array) -> Array:
        """The points [n, d] of which `of` makes these, to the digits of a table."""
        columns = []
        for k in range(self.low.size):
            low, high = self.low[k], self.high[k]
            table = [np.linspace(low, high, 257)]
            for place, width in self.sites[k]:
                reach = np.arcsinh((high - low) / width)
                table.append(place + width * np.sinh(np.linspace(-reach, reach, 1025)))
            x = np.unique(np.clip(np.concatenate(table), low, high))
            a, b = self.ends(k)
            columns.append(np.interp(z[:, k], 2 * (self._raw(k, x) - a) / (b - a) - 1, x))
        return np.stack(columns, 1)


class Waves(nn.Cell):
    """The sum of sin(z w + b) times trained amplitudes, where z are mapped coordinates: [n, d] to [n, m].

    size: how many numbers d a point has. count: how many waves. outputs: m. sites: how many sites an axis
    can have. All numbers but the amplitudes are set by `place`.
    """

    def __init__(self, size: int, count: int, outputs: int, sites: int) -> None:
        super().__init__()

        def fixed(name: str, *shape: int) -> Parameter:
            return Parameter(Tensor(np.ones(shape)), name=name, requires_grad=False)

        self.slope: Parameter = fixed("slope", 1, size)
        self.shift: Parameter = fixed("shift", 1, size)
        self.sites: int = sites
        for k in range(sites):
            for name in ("place", "width", "share"):
                setattr(self, f"{name}{k}", fixed(f"{name}{k}", 1, size))
        self.frequencies: Parameter = fixed("frequencies", size, count)
        self.phases: Parameter = fixed("phases", 1, count)
        self.amplitudes: Parameter = Parameter(
            Tensor(np.zeros((count, outputs))), name="amplitudes"
        )

    def construct(self, x: Tensor) -> Tensor:
        z = x * self.slope + self.shift
        for k in range(self.sites):
            place, width, share = (getattr(self, f"{n}{k}") for n in ("place", "width", "share"))
            z = z + share * ops.asinh((x - place) / width)
        angles = ops.matmul(z, self.frequencies) + self.phases
        return ops.matmul(ops.sin(angles), self.amplitudes)

    def place(self, of: Coordinates, frequencies: Array, phases: Array) -> None:
        """Takes these coordinates, frequencies [d, count] and phases [1, count]."""
        size = of.low.size
        ends = np.array([of.ends(k) for k in range(size)])
        scale = 2 / (ends[:, 1] - ends[:, 0])
        slope = scale * 2 / (of.high - of.low)
        shift = -1 - scale * (ends[:, 0] + 1) - slope * of.low
        set_row(self.slope, slope)
        set_row(self.shift, shift)
        for k in range(self.sites):
            some = [s[k] if k < len(s) else None for s in of.sites]
            set_row(getattr(self, f"place{k}"), [s[0] if s else 0.0 for s in some])
            set_row(getattr(self, f"width{k}"), [s[1] if s else 1.0 for s in some])
            set_row(getattr(self, f"share{k}"), np.where([s is not None for s in some], scale, 0))
        self.frequencies.set_data(Tensor(frequencies))
        self.phases.set_data(Tensor(phases))


def set_row(parameter: Parameter, values: Any) -> None:
    """Sets a Parameter [1, d]."""
    parameter.set_data(Tensor(np.asarray(values, np.float64).reshape(1, -1)))


def steep_sites(
    x: Sequence[Array], u: Sequence[Array], length: float, most: int
) -> tuple[Site, ...]:
    """Sites along one axis for values u [n, m] at places x [n] of some lines: where the width over which u
    changes, its range over its slope, is far smaller than the axis is long. A site of width w covers what
    changes over w plus the distance from it. There are none where u is as steep in a quarter of all places:
    that is a wave, which no stretching helps.

    length: the axis' length. most: how many sites.
    """
    spread = np.ptp(np.concatenate([v.reshape(-1, v.shape[-1]) for v in u]), axis=0)
    spread = np.where(spread > 0, spread, 1)
    places = np.concatenate([(a[1:] + a[:-1]) / 2 for a in x])
    shares = np.concatenate([np.diff(a) for a in x])
    slopes = [
        np.abs(np.diff(v, axis=0) / np.diff(a)[:, None] / spread).max(1)
        for a, v in zip(x, u, strict=True)
    ]
    widths = 0.6 / np.maximum(np.concatenate(slopes), 0.6 / length)  # no wider than the axis
    covered = np.full(places.size, length / 6)
    found: list[Site] = []
    while len(found) < most:
        k = int(np.argmin(widths / covered))
        as_steep = np.average(widths < 4 * widths[k], weights=shares)
        if widths[k] > covered[k] / 2 or as_steep > _EVERYWHERE:
            break
        found.append((float(places[k]), float(widths[k])))
        covered = np.minimum(covered, np.hypot(widths[k], places - places[k]))
    return tuple(found)
