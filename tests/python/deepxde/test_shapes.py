"""DeepXDE's geometries as shapes of gradcell.physics."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("deepxde") is None:
    pytest.skip("needs DeepXDE", allow_module_level=True)

from gradcell import physics
from gradcell.deepxde import dde


def test_geometries_are_shapes() -> None:
    square, disk = dde.geometry.Rectangle([-1, -1], [1, 1]), dde.geometry.Disk([0, 0], 0.5)
    shape = physics.shape(square - disk)
    inside = shape.interior(2000, 0, "uniform")
    assert (np.linalg.norm(inside, axis=1) > 0.499).all() and shape.inside(inside).all()
    points, normals = shape.boundary(400, 0, "uniform")
    radii = np.linalg.norm(points, axis=1)
    hole = radii < 0.6
    assert points.shape == normals.shape == (400, 2) and 5 < hole.sum() < 395
    np.testing.assert_allclose(normals[hole], -points[hole] / radii[hole][:, None], atol=1e-5)
    np.testing.assert_allclose(np.abs(points[~hole]).max(1), 1, atol=1e-6)
    line, hour = dde.geometry.Interval(0, 2), dde.geometry.TimeDomain(1, 4)
    over_time = physics.shape(dde.geometry.GeometryXTime(line, hour))
    np.testing.assert_array_equal([over_time.low, over_time.high], [[0, 1], [2, 4]])
    points, normals = over_time.boundary(20, 0, "uniform")
    np.testing.assert_allclose(normals, np.stack([points[:, 0] - 1, np.zeros(20)], 1))
    with pytest.raises(ValueError, match="combined with one another"):
        shape | physics.Ball([0, 0], 1)
