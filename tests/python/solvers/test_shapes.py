"""gradcell.physics: shapes, their boundaries, conditions, corners, files and pictures."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import ops, physics
from gradcell.physics import Ball, Box, Mesh, Polygon

ELL = Polygon([[-1, -1], [0, -1], [0, 0], [1, 0], [1, 1], [-1, 1]])
SQUARE = Box([-1, -1], [1, 1])
HOLE = [[-0.5, 0.2], [-0.2, 0.2], [-0.2, 0.7], [-0.5, 0.7]]
TOPS = [[0, 0, 0], [2, 0, 0], [0, 2, 0], [0, 0, 2]]
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
TETRAHEDRON = Mesh(TOPS, FACES)
CAP = math.acos(0.5)  # of the lens of two unit disks whose centres are 1 apart
LENS = 2 * CAP - math.sqrt(3) / 2

#: Shapes, their volumes and the sizes of their boundaries.
SHAPES = {
    "interval": (Box([2.0], [5.0]), 3, 2),
    "box": (Box([0, 0, 1], [1, 2, 4]), 6, 22),
    "disk": (Ball([1, 2], 0.5), math.pi / 4, math.pi),
    "ball": (Ball([0, 1, 0], 2), 32 * math.pi / 3, 16 * math.pi),
    "ball of five": (Ball([0] * 5, 1), 8 * math.pi**2 / 15, 8 * math.pi**2 / 3),
    "L": (ELL, 3, 8),
    "clockwise": (Polygon(ELL.rings[0][::-1]), 3, 8),
    "hole": (Polygon(ELL.rings[0], HOLE), 2.85, 9.6),
    "island": (Polygon([[0, 0], [4, 0], [4, 4], [0, 4]], [[1, 1], [3, 1], [3, 3], [1, 3]],
                       [[1.5, 1.5], [2.5, 1.5], [2.5, 2.5], [1.5, 2.5]]), 13, 28),
    "difference": (SQUARE - Box([0, -1], [1, 0]), 3, 8),  # with edges in common
    "beside": (Box([-1, 0], [1, 1]) | Box([-1, -1], [0, 0]), 3, 8),
    "overlap": (Box([-1, -1], [0, 1]) | Box([-1, 0], [1, 1]), 3, 8),  # edges lie on each other
    "lens": (Ball([0, 0], 1) & Ball([1, 0], 1), LENS, 4 * CAP),
    "moon": (Ball([0, 0], 1) - Ball([1, 0], 1), math.pi - LENS, 2 * math.pi),
    "two holes": (SQUARE - Ball([-0.5, 0], 0.2) - Ball([0.5, 0], 0.3), 4 - 0.13 * math.pi,
                  8 + math.pi),
    "nothing more": (SQUARE | Box([-0.5, -0.5], [0.5, 1]), 4, 8),
    "prism": (ELL * Box([0], [2]), 6, 22),
    "cylinder": (Ball([0, 0], 1) * Box([0], [3]), 3 * math.pi, 8 * math.pi),
    "pipe": (Box([0], [3]) * (Ball([0, 0], 1) - Ball([0, 0], 0.5)), 2.25 * math.pi, 10.5 * math.pi),
    "tetrahedron": (TETRAHEDRON, 4 / 3, 6 + 2 * math.sqrt(3)),
    "cut": (TETRAHEDRON - Box([1, -1, -1], [2, 1, 1]), 4 / 3 - 1 / 6, None),
}  # fmt: skip


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", SHAPES)
def test_points_and_normals_obey_gauss(name: str) -> None:
    """The integrals of n and of x . n over a boundary are 0 and d times the volume."""
    shape, volume, surface = SHAPES[name]
    points, normals = shape.boundary(4000, 0, "uniform")
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=1e-12)
    tiny = 1e-6 * normals
    assert shape.inside(points - tiny).all() and not shape.inside(points + tiny).any()
    np.testing.assert_allclose(normals.mean(0), 0, atol=0.06)
    if surface:
        flux = np.sum(points * normals, 1)
        error = 5 * flux.std() / np.sqrt(4000) + 1e-9
        np.testing.assert_allclose(flux.mean(), shape.dimensions * volume / surface, atol=error)
    inside = shape.interior(4000, 0, "uniform")
    assert inside.shape == (4000, shape.dimensions) and shape.inside(inside).all()
    box = np.random.default_rng(1).uniform(shape.low, shape.high, (4000, shape.dimensions))
    share = volume / np.prod(shape.high - shape.low)
    assert abs(shape.inside(box).mean() - share) < 5 * np.sqrt(share * (1 - share) / 4000) + 1e-9
    again = shape.boundary(50, 7, "uniform"), shape.boundary(50, 7, "uniform")
    np.testing.assert_array_equal(*again)


def test_boundaries_are_drawn_by_length() -> None:
    pytest.importorskip("scipy")
    points, _ = ELL.boundary(800, 0)
    along = [(points[:, 0] == -1), (points[:, 1] == -1), (points[:, 0] == 0)]
    assert all(
        abs(int(side.sum()) - n) <= 2 for side, n in zip(along, (200, 100, 100), strict=True)
    )
    left, normals = ELL.boundary(30, 0, where=lambda p: p[:, 0] < -0.999)
    assert (left[:, 0] == -1).all() and (normals == [-1, 0]).all()
    with pytest.raises(ValueError, match="where `where` is true"):
        ELL.interior(3, 0, "uniform", where=lambda p: p[:, 0] > 5)
    with pytest.raises(ValueError, match="a bool for each"):
        ELL.interior(3, 0, "uniform", where=lambda p: p[:, 0])


def test_corners_and_what_is_singular_there() -> None:
    (corner,) = ELL.corners()
    assert corner.at == (0, 0) and np.isclose(corner.angle, 1.5 * math.pi)
    np.testing.assert_allclose(corner.inward, [-math.sqrt(0.5), math.sqrt(0.5)])
    assert len(ELL.corners(0)) == 6 and len(Polygon(ELL.rings[0], HOLE).corners()) == 5
    edges = np.array([[0.3, 0.0], [0.9, 0.0], [0.0, -0.4], [0.0, -1.0]])
    normals = np.array([[0.0, -1], [0, -1], [1, 0], [1, 0]])
    inside = gc.Tensor(ELL.interior(50, 0, "uniform"))
    for zero, value, slope in (("value", 4, 0), ("slope", 0, 4), ("both", 2, 2)):
        for k in (1, 2):
            u = lambda x, k=k, zero=zero: physics.singular(x, corner, k, zero)  # noqa: E731
            scale = np.abs(gc.hessian(lambda x, u=u: u(x).sum())(inside).asnumpy()).max()
            assert np.abs(gc.laplacian(u)(inside).asnumpy()).max() < 1e-13 * scale + 1e-11
            found, slopes = (t.asnumpy() for t in gc.jvp(u, gc.Tensor(edges), gc.Tensor(normals)))
            held = slice(0, value)
            np.testing.assert_allclose(found[held], 0, atol=1e-14)
            held = slice(value, None) if zero == "both" else slice(0, slope)
            np.testing.assert_allclose(slopes[held], 0, atol=1e-13)
    point = gc.Tensor(np.array([[-0.5, 0.5]]))  # r^(2/3) sin(2/3 t) at t = 3 pi / 4
    np.testing.assert_allclose(physics.singular(point, corner).asnumpy(), 0.5 ** (1 / 3))


def curve(x: gc.Tensor) -> gc.Tensor:
    """x^2 y and sin(y), whose slopes are known."""
    return ops.concat((x[:, :1] ** 2 * x[:, 1:], ops.sin(x[:, 1:])), 1)


def test_conditions_are_zero_where_they_hold() -> None:
    x, n = (gc.Tensor(a) for a in SQUARE.boundary(40, 0, "uniform"))
    (a, b), (p, q) = x.asnumpy().T[:, :, None], n.asnumpy().T[:, :, None]
    value = np.hstack([a**2 * b, np.sin(b)])
    slope = np.hstack([2 * a * b * p + a**2 * q, np.cos(b) * q])
    for condition, given, want in (
        (physics.dirichlet(curve), (x, gc.Tensor(value)), 0 * value),
        (physics.dirichlet(curve, 2.0), (x,), value - 2),
        (physics.neumann(curve), (x, n, gc.Tensor(slope)), 0 * slope),
        (physics.neumann(curve, lambda x: x[:, 1:], flux=3.0), (x, n), 3 * slope - b),
        (physics.robin(curve, 2.0, lambda x: x[:, :1], 1.0), (x, n), 2 * value + a * slope - 1),
        (physics.interface(curve, lambda x: 2 * curve(x), (3.0, 1.0), 0.5, 0.25), (x, n),
         np.hstack([-value - 0.5, slope - 0.25])),
    ):  # fmt: skip
        np.testing.assert_allclose(condition(*given).asnumpy(), want, atol=1e-14)
    wave = lambda x: ops.sin(2 * np.pi * x[:, :1]) * x[:, 1:]  # noqa: E731
    for shift, size in (([1.0, 0.0], 0.0), ([0.0, 2.0], 2.0)):
        found = physics.periodicity(wave, shift)(x).asnumpy()
        want = np.hstack([-size * np.sin(2 * np.pi * a), 0 * a])
        np.testing.assert_allclose(found, want, atol=1e-12)


def test_a_disk_with_mixed_conditions() -> None:
    """u = x^2 - y^2 on a disk with a hole: given around the hole, its slope given or mixed outside."""
    ring = Ball([0, 0], 1) - Ball([0.2, 0], 0.3)
    net = physics.network([2, 12, 12, 1], 0)
    exact = lambda x: x[:, :1] ** 2 - x[:, 1:] ** 2  # noqa: E731
    hole, _ = ring.boundary(40, 0, "uniform", where=lambda p: np.hypot(*p.T) < 0.9)
    left, n_left = ring.boundary(40, 1, "uniform", where=lambda p: p[:, 0] < -0.2)
    right, n_right = ring.boundary(
        40, 2, "uniform", where=lambda p: (p[:, 0] > 0) & (np.hypot(*p.T) > 0.9)
    )
    conditions = [
        gc.laplacian(net), physics.dirichlet(net, exact), physics.neumann(net),
        physics.robin(net, 1.0, 1.0, lambda x: 3 * exact(x)),
    ]  # fmt: skip
    solver = gc.GaussNewton(conditions, net.trainable_params(), weights=[1, 100, 10, 10])
    inside = ring.interior(200, 0, "uniform")
    solver.run(40, inside, hole, (left, n_left, 2 * exact(left)), (right, n_right))
    test = ring.interior(500, 5, "uniform")
    assert np.abs(net(gc.Tensor(test)).asnumpy() - exact(test)).max() < 2e-3


def test_shapes_of_other_libraries() -> None:
    ring = ELL.rings[0].tolist()
    parts = [[ring, HOLE], [[[2, 0], [3, 0], [3, 1]]]]
    several = physics.shape({"type": "MultiPolygon", "coordinates": parts})
    assert isinstance(several, Polygon) and np.isclose(several.area, 2.85 + 0.5)
    assert physics.shape(several) is several
    with pytest.raises(ValueError, match="got a LineString"):
        physics.shape({"type": "LineString", "coordinates": ring})
    with pytest.raises(TypeError, match=r"shapely, trimesh or DeepXDE.* got int"):
        physics.shape(3)


def test_shapes_of_shapely() -> None:
    shapely = pytest.importorskip("shapely")
    geometry = shapely.Point(0, 0).buffer(1).difference(shapely.box(-0.2, -0.2, 0.3, 0.3))
    shape: Any = physics.shape(geometry)
    assert np.isclose(shape.area, geometry.area) and np.isclose(shape.perimeter, geometry.length)
    points = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    np.testing.assert_array_equal(shape.inside(points), shapely.contains_xy(geometry, *points.T))


@pytest.mark.one_in(2)
def test_bodies_of_trimesh() -> None:
    trimesh = pytest.importorskip("trimesh")
    body = trimesh.creation.torus(1.0, 0.3, 16, 8)
    shape: Any = physics.shape(body)
    assert np.isclose(shape.volume, body.volume)
    points = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    away = np.abs(np.hypot(np.hypot(*points.T[:2]) - 1, points[:, 2]) - 0.28) > 0.06
    inside = np.hypot(np.hypot(*points.T[:2]) - 1, points[:, 2]) < 0.28
    np.testing.assert_array_equal(shape.inside(points)[away], inside[away])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Box([0, 1], [1, 1]), "each low end below its high one"),
        (lambda: Ball([0, 0], 0), "radius positive"),
        (lambda: Polygon([[0, 0], [1, 1]]), "at least three corners"),
        (lambda: Polygon([[0, 0], [1, 0], [1, 0], [0, 1]]), "the same point"),
        (lambda: Mesh(np.zeros((3, 3)), [[0, 1, 2]]), "not closed"),
        (lambda: Mesh(TOPS, FACES[:, ::-1]), "counterclockwise from outside"),
        (lambda: SQUARE | Box([0], [1]), "equally many dimensions, got 2 and 1"),
        (lambda: SQUARE & Ball([5, 5], 1), "no points in common"),
        (lambda: SQUARE.inside(np.zeros((3, 3))), r"points \[n, 2\]"),
        (lambda: SQUARE.interior(5, method="grid"), "'grid'"),
        (lambda: physics.network([2]), "two positive sizes"),
        (lambda: physics.periodicity(curve, [0.0, 0.0]), "must have a length"),
        (lambda: physics.dirichlet(curve)(gc.Tensor(np.ones((2, 2)))), "it got 0"),
        (lambda: physics.singular(gc.Tensor(np.ones((2, 2))), ELL.corners()[0], 0), "at least 1"),
        (lambda: physics.plot(Ball([0] * 4, 1)), "4 dimensions"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_columns_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "measured.csv"
    file.write_text("time, height\n0, 1.5\n2,-3e-1\n\n")
    found = physics.columns(file)
    np.testing.assert_array_equal(found["time"], [[0.0], [2.0]])
    np.testing.assert_array_equal(found["height"], [[1.5], [-0.3]])
    for text, words in (
        ("a,b\n1,2\n1,x\n", "line 3"),
        ("a,b\n1\n", "2 numbers"),
        ("a,a\n1,2", "dif"),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=words):
            physics.columns(file)
    monkeypatch.setitem(sys.modules, "meshio", None)
    with pytest.raises(ImportError, match=r"gradcell\[shapes\]"):
        physics.columns(tmp_path / "flow.vtk")


def test_columns_of_meshes(tmp_path: Path) -> None:
    meshio = pytest.importorskip("meshio")
    points, cells = np.eye(3), [("triangle", np.array([[0, 1, 2]]))]
    data = {"T": np.array([1.0, 2, 4]), "v": 2 * np.eye(3)}
    meshio.Mesh(points, cells, point_data=data).write(tmp_path / "flow.vtk")
    found = physics.columns(tmp_path / "flow.vtk")
    np.testing.assert_array_equal(found["T"], [[1.0], [2], [4]])
    np.testing.assert_array_equal(found["v"], 2 * np.eye(3))
    np.testing.assert_array_equal(np.hstack([found[a] for a in "xyz"]), points)


def test_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("scipy")
    total = lambda x: x.sum(1)  # noqa: E731
    for k, shape in enumerate((Box([0], [1]), ELL, TETRAHEDRON)):
        for u in (None, total):
            axes = physics.plot(shape, u, n=20)
            file = tmp_path / f"{k}{u is None}.png"
            axes.figure.savefig(file)
            assert file.stat().st_size > 5000
    image = physics.plot(ELL, total, n=51).collections[0].get_array()
    grid = np.linspace(-1, 1, 51)
    inside = ~np.ma.getmaskarray(image)
    assert abs(inside.mean() - 0.75) < 0.03
    np.testing.assert_allclose(image[inside], np.add.outer(grid, grid)[inside])
    with pytest.raises(ValueError, match=r"\[51\d*, 1\]|a number for each"):
        physics.plot(ELL, lambda x: x, n=51)
