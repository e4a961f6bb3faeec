"""Shapes with corners: polygons, surfaces of triangles, and those of other libraries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcell import ops
from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value
from gradcell.physics.points import Array
from gradcell.physics.shapes import Shape, _picked

__all__ = ["Corner", "Mesh", "Polygon", "shape", "singular"]


@dataclass(frozen=True)
class Corner:
    """A corner of a polygon. at: its place; inward: the unit vector that halves it, into the shape; angle:
    the angle inside, in radians: above pi where it is re-entrant."""

    at: tuple[float, float]
    inward: tuple[float, float]
    angle: float


class Polygon(Shape):
    """The points inside an odd number of closed lines: a polygon, its holes, islands in them.

    rings: for each line its corners, an array [k, 2], in any order of rotation; the first corner may be
    repeated at the end. Lines must not cross. Raises ValueError for lines of fewer than three corners, and
    corners that are not finite.
    """

    def __init__(self, *rings: Any) -> None:
        lines = [np.asarray(r, np.float64) for r in rings]
        lines = [r[:-1] if r.ndim == 2 and len(r) and (r[0] == r[-1]).all() else r for r in lines]
        if not lines or any(r.ndim != 2 or r.shape[1:] != (2,) or len(r) < 3 for r in lines):
            bad_value(
                "Polygon: each line is an array of at least three corners, [k, 2], got shapes "
                f"{[list(r.shape) for r in lines]}"
            )
        if not all(np.isfinite(r).all() for r in lines):
            bad_value("Polygon: the corners must be finite")
        self._begins, self._ends = _edges(lines)
        for k, ring in enumerate(lines):  # the inside is to the left
            along = ring[1] - ring[0]
            left = np.array([-along[1], along[0]]) * 1e-7
            if not self._inside((ring[0] + along / 2 + left)[None])[0]:
                lines[k] = ring[::-1]
        self.rings: list[Array] = lines
        self._begins, self._ends = _edges(lines)
        along = self._ends - self._begins
        self._lengths = np.linalg.norm(along, axis=1)
        if not self._lengths.all():
            bad_value("Polygon: two neighbouring corners are the same point")
        self._normals = np.column_stack([along[:, 1], -along[:, 0]]) / self._lengths[:, None]
        self._lies_between(self._begins.min(0), self._begins.max(0))
        self._measure, self._numbers = float(self._lengths.sum()), 1

    @property
    def area(self) -> float:
        """The area, without that of the holes."""
        a, b = self._begins, self._ends
        return float(np.sum(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / 2)

    @property
    def perimeter(self) -> float:
        """The length of all lines."""
        return self._measure

    def corners(self, above: float = math.pi) -> list[Corner]:
        """Return the corners whose angle inside exceeds `above`, in radians; without it, the re-entrant ones,
        at which derivatives of solutions are unbounded (see `singular`)."""
        found = []
        for ring in self.rings:
            before, behind = np.roll(ring, 1, 0) - ring, np.roll(ring, -1, 0) - ring
            turn = np.arctan2(before[:, 1], before[:, 0]) - np.arctan2(behind[:, 1], behind[:, 0])
            angles = turn % (2 * math.pi)
            middle = np.arctan2(behind[:, 1], behind[:, 0]) + angles / 2
            found += [
                Corner((float(p[0]), float(p[1])), (math.cos(m), math.sin(m)), float(a))
                for p, m, a in zip(ring, middle, angles, strict=True)
                if a > above + 1e-9
            ]
        return found

    def _inside(self, points: Array) -> Array:
        x, y = points.T
        odd = np.zeros(len(points), bool)
        for (ax, ay), (bx, by) in zip(self._begins, self._ends, strict=True):
            if ay != by:
                crosses = (ay > y) != (by > y)
                odd ^= crosses & (x < ax + (y - ay) * ((bx - ax) / (by - ay)))
        return odd

    def _surface(self, unit: Array) -> tuple[Array, Array, Array]:
        edge, unit = _picked(unit, self._lengths)
        begin = self._begins[edge]
        points = begin + unit[:, :1] * (self._ends[edge] - begin)
        return points, self._normals[edge], np.full(len(unit), True)


class Mesh(Shape):
    """The body inside a closed surface of triangles, such as trimesh reads from STL files.

    vertices: points [k, 3]. faces: for each triangle the numbers of its corners, [m, 3], counterclockwise
    from outside. A point is inside if it sees the surface under the full solid angle (A. van Oosterom, J.
    Strackee, IEEE Trans. Biomed. Eng. 30, 1983), which takes a time in proportion to points times triangles.
    Raises ValueError for other shapes, and a surface that has holes or is inside out.
    """

    def __init__(self, vertices: Any, faces: Any) -> None:
        points, numbers = np.asarray(vertices, np.float64), np.asarray(faces)
        fits = points.ndim == numbers.ndim == 2 and points.shape[1] == numbers.shape[1] == 3
        if not fits or numbers.dtype.kind not in "iu" or not np.isfinite(points).all():
            bad_value(
                "Mesh: expected finite vertices [k, 3] and whole numbers for the faces [m, 3], got shapes "
                f"{list(points.shape)} and {list(numbers.shape)} of {numbers.dtype}"
            )
        sides = np.concatenate([numbers[:, [0, 1]], numbers[:, [1, 2]], numbers[:, [2, 0]]])
        if sorted(map(tuple, sides)) != sorted(map(tuple, sides[:, ::-1])):
            bad_value(
                "Mesh: the surface is not closed, or not all triangles turn the same way round"
            )
        self._triangles = points[numbers]
        a, b, c = np.moveaxis(self._triangles, 1, 0)
        across = np.cross(b - a, c - a)
        twice = np.linalg.norm(across, axis=1)
        if np.sum(a * across) <= 0:
            bad_value("Mesh: the triangles must be counterclockwise from outside: faces[:, ::-1]")
        self._areas = twice / 2
        self._normals = across / np.maximum(twice, np.finfo(np.float64).tiny)[:, None]
        self._lies_between(points[numbers].min((0, 1)), points[numbers].max((0, 1)))
        self._measure, self._numbers = float(self._areas.sum()), 3

    @property
    def volume(self) -> float:
        """The volume."""
        a, normals = self._triangles[:, 0], self._normals * self._areas[:, None]
        return float(np.sum(a * normals) / 3)

    def _inside(self, points: Array) -> Array:
        found, rows = [np.zeros(0, bool)], max(1, 1_000_000 // len(self._triangles))
        for begin in range(0, len(points), rows):
            a, b, c = np.moveaxis(self._triangles - points[begin : begin + rows, None, None], 2, 0)
            la, lb, lc = (np.linalg.norm(v, axis=2) for v in (a, b, c))
            dot = (np.sum(a * b, 2) * lc, np.sum(b * c, 2) * la, np.sum(c * a, 2) * lb)
            above = np.sum(a * np.cross(b, c), 2)
            angle = np.arctan2(above, la * lb * lc + dot[0] + dot[1] + dot[2]).sum(1)
            found.append(angle > math.pi)  # half of 4 pi inside, 0 outside
        return np.concatenate(found)

    def _surface(self, unit: Array) -> tuple[Array, Array, Array]:
        face, unit = _picked(unit, self._areas)
        a, b, c = np.moveaxis(self._triangles[face], 1, 0)
        root, share = np.sqrt(unit[:, 1:2]), unit[:, 2:3]
        points = a + root * (1 - share) * (b - a) + root * share * (c - a)
        return points, self._normals[face], np.full(len(unit), True)


class _DeepXDE(Shape):
    """A geometry of DeepXDE's, or one over a time. Its boundary is drawn by its own random state."""

    def __init__(self, geometry: Any) -> None:
        self.geometry = geometry
        over_time = hasattr(geometry, "timedomain")
        parts = [geometry.geometry, geometry.timedomain] if over_time else [geometry]
        ends = [[np.ravel(np.asarray(part.bbox[k], np.float64)) for part in parts] for k in (0, 1)]
        self._lies_between(*map(np.concatenate, ends))
        self._numbers = 1

    @property
    def _measure(self) -> float:  # type: ignore[override]
        bad_value(
            "shape: how long a boundary of DeepXDE's is is not known, so its geometries can be combined with "
            "one another, by DeepXDE, before they are given to shape()"
        )

    def _inside(self, points: Array) -> Array:
        return np.asarray(self.geometry.inside(points), bool).reshape(-1)

    def _surface(self, unit: Array) -> tuple[Array, Array, Array]:
        points = np.asarray(self.geometry.random_boundary_points(len(unit)))
        normals = np.asarray(self.geometry.boundary_normal(points), np.float64)
        kept = np.isfinite(normals).all(1) & (np.linalg.norm(normals, axis=1) > 0.5)
        return points.astype(np.float64), normals, kept


def _edges(rings: list[Array]) -> tuple[Array, Array]:
    return np.concatenate(rings), np.concatenate([np.roll(r, -1, 0) for r in rings])


def _of_interface(geometry: Any) -> Shape:
    """A shape of what has `__geo_interface__`, as shapely's geometries (https://gist.github.com/sgillies/2217756)."""
    held = geometry if isinstance(geometry, dict) else geometry.__geo_interface__
    kind, parts = held.get("type"), held.get("coordinates", ())
    if kind not in ("Polygon", "MultiPolygon"):
        bad_value(f"shape: only a Polygon or MultiPolygon has an inside, got a {kind}")
    rings = parts if kind == "Polygon" else [ring for polygon in parts for ring in polygon]
    return Polygon(*(np.asarray(r, np.float64)[:, :2] for r in rings))


#: By the attribute that tells whose geometry it is: what is made of it.
_LIBRARIES: dict[str, Callable[[Any], Shape]] = {
    "__geo_interface__": _of_interface,
    "random_boundary_points": _DeepXDE,
    "faces": lambda mesh: Mesh(mesh.vertices, mesh.faces),
}


def shape(geometry: Any) -> Shape:
    """Return the `Shape` of another library's geometry: a polygon of shapely's, or GeoJSON as a dict, with
    holes and parts; a closed mesh of trimesh's; a geometry of DeepXDE's.

    geometry: the geometry. A shape is returned as it is. Raises TypeError for anything else, ValueError for
    what has no inside.
    """
    if isinstance(geometry, Shape):
        return geometry
    if isinstance(geometry, dict):
        return _of_interface(geometry)
    for attribute, made in _LIBRARIES.items():
        if hasattr(geometry, attribute):
            return made(geometry)
    bad_type(
        "shape: expected a geometry of shapely, trimesh or DeepXDE, or GeoJSON as a dict, got "
        f"{type(geometry).__name__}"
    )


#: What a singular function is along the two edges of its corner: (sine or cosine, where k begins).
_EDGES = {"value": (ops.sin, 0.0), "slope": (ops.cos, 0.0), "both": (ops.sin, 0.5)}


def singular(x: Tensor, corner: Corner, k: int = 1, zero: str = "value") -> Tensor:
    """$r^a sin(a t)$, [n, 2] to [n, 1], for the distance r from a corner and the angle t from its edge on the
    right, seen from the corner into the shape, with a = k pi / corner.angle: a solution of Laplace's equation
    that is 0 on both edges. Below a = 1 its slope at the corner is infinite (P. Grisvard, Elliptic Problems
    in Nonsmooth Domains, 1985), which that of no smooth network is: add it to one, times a Parameter.

    x: points [n, 2], none at the corner. corner: one of `Polygon.corners()`. k: 1, 2, ...: the next powers.
    zero: what is 0 on the edges: "value"; "slope", with cosines; or "both": the value on the right edge and
    the slope on the left one, where k is half a number less. Raises ValueError for another k or zero.
    """
    if zero not in _EDGES or k < 1:
        bad_value(
            f"singular: zero must be one of {', '.join(_EDGES)} and k at least 1, got {zero!r} and {k}"
        )
    function, less = _EDGES[zero]
    power = (k - less) * math.pi / corner.angle
    (px, py), (cos, sin) = corner.at, corner.inward
    dx, dy = x[:, :1] - px, x[:, 1:] - py
    ahead, aside = cos * dx + sin * dy, cos * dy - sin * dx
    turned = ops.atan2(aside, ahead) + corner.angle / 2
    radius = ops.square(dx) + ops.square(dy)
    return ops.pow(radius, power / 2) * function(power * turned)
