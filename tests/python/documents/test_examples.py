"""The demo and the programs of examples/, with small settings."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import gradcell as gc
from gradcell.demo import DEMOS, burgers, digits, forces, inverse

pytestmark = pytest.mark.one_in(8)
EXAMPLES = Path(__file__).parents[3] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.one_in(6)
def test_burgers_learns() -> None:
    net, losses = burgers.train(120, points=800, width=14, verbose=False)
    assert losses[-1] < 0.01 * losses[0]
    assert burgers.relative_error(net) < 0.05


def test_burgers_reference_solves_the_equation() -> None:
    exact = burgers.exact
    t, x, h = np.full(41, 0.2), np.linspace(-0.9, -0.1, 41), 1e-4
    u = exact(t, x)
    u_t = (exact(t + h, x) - exact(t - h, x)) / (2 * h)
    u_x = (exact(t, x + h) - exact(t, x - h)) / (2 * h)
    u_xx = (exact(t, x + h) - 2 * u + exact(t, x - h)) / h**2
    np.testing.assert_allclose(u_t + u * u_x, 0.01 / np.pi * u_xx, atol=1e-5)
    np.testing.assert_allclose(exact(np.full(5, 1e-9), x[:5]), -np.sin(np.pi * x[:5]), atol=1e-3)


def test_burgers_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "burgers.png"
    burgers.plot(burgers.network(8, 2), str(picture))
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize("matplotlib", [True, False])
def test_demo_command(tmp_path: Path, matplotlib: bool) -> None:
    if matplotlib:
        pytest.importorskip("matplotlib")
    else:  # a package that fails to import stands before it
        (tmp_path / "matplotlib.py").write_text("raise ImportError\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "gradcell", "demo", "--steps", "20", "--points", "50"],
        env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "relative L2 error" in done.stdout and "step     20" in done.stdout
    assert (tmp_path / "burgers.png").exists() == matplotlib
    assert ("saved burgers.png" if matplotlib else "matplotlib is not installed") in done.stdout


def test_every_demo_is_listed() -> None:
    command = [sys.executable, "-m", "gradcell", "demo", "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(DEMOS)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", DEMOS)
def test_demos_write_their_picture(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = subprocess.run(
        [sys.executable, "-m", "gradcell", "demo", name, "--steps", "5", "--points", "64"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_the_viscosity_is_found() -> None:
    h, t, x = 1e-4, np.full(21, 0.3), np.linspace(-0.9, 0.9, 21)
    u = inverse.exact(t, x)
    u_t = (inverse.exact(t + h, x) - inverse.exact(t - h, x)) / (2 * h)
    u_x = (inverse.exact(t, x + h) - inverse.exact(t, x - h)) / (2 * h)
    u_xx = (inverse.exact(t, x + h) - 2 * u + inverse.exact(t, x - h)) / h**2
    np.testing.assert_allclose(u_t + u * u_x, inverse.NU * u_xx, atol=1e-5)
    _, found, _ = inverse.train(2500, 200, verbose=False)
    assert abs(found[-1] / inverse.NU - 1) < 0.15


def test_force_matching_learns_forces() -> None:
    positions = forces.clusters(2, 0.05, np.random.default_rng(0))
    _, exact = forces.lennard_jones(positions)
    h = np.zeros_like(positions)
    h[:, 1, 2] = 1e-5
    slope = (forces.lennard_jones(positions + h)[0] - forces.lennard_jones(positions - h)[0]) / 2e-5
    np.testing.assert_allclose(exact[:, 1, 2], -slope[:, 0], rtol=1e-5)

    _, _, before = forces.train(1, 64, verbose=False)
    _, _, after = forces.train(150, 64, verbose=False)
    assert after[0] < 0.5 * before[0] and after[1] < 0.5 * before[1]


def test_digits_are_read_in_half_precision() -> None:
    _, _, scales, right = digits.train(400, 20000, verbose=False)
    assert right > 0.8
    assert scales[0] < 2**28 and min(scales) >= 1  # it overflowed, and came down


@pytest.mark.parametrize("order", [1, 2, 5, 8])
def test_high_order(order: int) -> None:
    assert load("high_order").largest_error(order, points=500) < 1e-12


#: Programs of examples/mindspore: a short run's arguments, what it prints last, and what must hold of that.
MINDSPORE = {
    "multiscale_poisson": (["--steps", "700"], r"multi-scale: .* error ([\d.]+)%", lambda v: v < 5),
    "inverse_problem": (["--steps", "2000"], r"nu = ([\d.]+)", lambda v: abs(v - 0.08) < 0.01),
    "gan": (["--steps", "1200"], r"(\d) of 8 Gaussians", lambda v: v >= 7),
    "vae": (["--epochs", "12"], r"-> ([\d.]+)", lambda v: v < 30),
    "transformer": (["--steps", "150", "--letters", "5"], r"held-out text ([\d.]+)", lambda v: v < 3),
    "half_precision": (["--network", "lenet", "--steps", "150"], r"% ([\d.]+), ", lambda v: v > 85),
    "lstm_tagger": (["--steps", "150", "--tests", "100"], r"right ([\d.]+)%", lambda v: v > 90),
}  # fmt: skip


@pytest.mark.one_in(12)
@pytest.mark.parametrize("name", MINDSPORE)
def test_mindspore_programs_learn(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    arguments, pattern, holds = MINDSPORE[name]
    program = EXAMPLES / "mindspore" / f"{name}.py"
    done = subprocess.run(
        [sys.executable, "-m", "gradcell", "run", str(program), *arguments],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.findall(pattern, done.stdout)
    assert found and holds(float(found[-1])), done.stdout
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_every_mindspore_program_is_run() -> None:
    programs = {path.stem for path in (EXAMPLES / "mindspore").glob("*.py")} - {"pictures"}
    assert programs == set(MINDSPORE)


@pytest.mark.one_in(8)
def test_burgers_by_adam_and_lbfgs(tmp_path: Path) -> None:
    example = load("burgers_lbfgs")
    net, course, adam = example.solve(100, 60, n=400, verbose=False)
    losses = [value for _, value in course]
    assert losses[-1] < 0.7 * min(losses[:adam])  # what Adam had come to
    pytest.importorskip("matplotlib")
    example.plot(net, course, adam, str(tmp_path / "burgers.png"))
    assert (tmp_path / "burgers.png").stat().st_size > 10_000


@pytest.mark.one_in(8)
def test_burgers_by_gauss_newton(tmp_path: Path) -> None:
    example = load("burgers_gauss_newton")
    u, course = example.solve(60, n=400, width=10)
    assert course[-1][1] < 0.1 * course[0][1] and course[-1][2] < 0.5 * course[0][2]
    pytest.importorskip("matplotlib")
    example.plot(u, course, str(tmp_path / "burgers.png"))
    assert (tmp_path / "burgers.png").stat().st_size > 10_000


@pytest.mark.one_in(8)
def test_gauss_newton_needs_fewer_steps_than_adam(tmp_path: Path) -> None:
    example = load("gauss_newton")
    net = example.network(12)
    newton = example.gauss_newton(net, 30, 200, iterations=100)
    by_adam = example.adam(example.network(12), 1e9, 200, steps=30)
    assert newton[-1][1] < 0.2 and newton[-1][1] < 0.3 * by_adam[-1][1]
    pytest.importorskip("matplotlib")
    example.plot(newton, by_adam, net, str(tmp_path / "newton.png"))
    assert (tmp_path / "newton.png").stat().st_size > 10_000


@pytest.mark.one_in(8)
def test_a_force_field_for_molecules_of_any_size(tmp_path: Path) -> None:
    example = load("force_field")
    random = np.random.default_rng(1)
    positions, real, _, forces = (a.asnumpy() for a in example.clusters(4, range(3, 9), random))
    moved = positions.astype(np.float64)
    moved[2, 1, 0] += 1e-5
    back = positions.astype(np.float64)
    back[2, 1, 0] -= 1e-5
    ends = [example.lennard_jones(p, real[..., 0])[0][2, 0] for p in (moved, back)]
    np.testing.assert_allclose(forces[2, 1, 0], -(ends[0] - ends[1]) / 2e-5, rtol=1e-3, atol=1e-3)
    _, before, _, _ = example.train(1, n=100, verbose=False)
    _, after, plans, found = example.train(120, n=100, verbose=False)
    assert plans == 0  # no size has been compiled
    assert np.mean(list(after.values())) < 0.7 * np.mean(list(before.values()))
    pytest.importorskip("matplotlib")
    example.plot(after, found, str(tmp_path / "forces.png"))
    assert (tmp_path / "forces.png").stat().st_size > 10_000


@pytest.mark.one_in(8)
def test_pictures_of_transforms(tmp_path: Path) -> None:
    example = load("transforms")
    _, ellipses = example.circles(3)
    small = 1e-6 * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]) + [0.0, 1.6]
    images = np.array([example.swirl(gc.Tensor(p)).asnumpy() for p in small])
    axes = (images[:2] - images[2:]) * (0.13 / 2e-6)  # of the ellipse around the point (0, 1.6)
    spans = np.ptp(ellipses[7], axis=0) / 2
    np.testing.assert_allclose(spans, np.linalg.norm(axes, axis=0), rtol=5e-3)
    values, _ = example.curvatures(np.array([[1.0, 1.0]]))
    np.testing.assert_allclose(values[0].prod(), 82 * 20 - 40**2, rtol=1e-9)
    x = np.array([-0.3, 0.2])
    by_order = example.polynomials(x)
    errors = [np.abs(by_order[n] - example.wave(gc.Tensor(x)).asnumpy()).max() for n in (1, 6, 24)]
    assert errors[0] > 1e-2 > errors[1] > 1e-5 and errors[2] < 1e-11
    _, said, losses = example.ensemble(5, 150)
    assert said.shape == (5, 200) and losses[-1] < 0.1 * losses[0]
    assert said.std(0)[[30, 170]].max() < said.std(0)[100]  # no data there
    pytest.importorskip("matplotlib")
    example.plot(str(tmp_path / "transforms.png"), 3, 5)
    assert (tmp_path / "transforms.png").stat().st_size > 30_000
