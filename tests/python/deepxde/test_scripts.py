"""Whole scripts of DeepXDE's on gradcell: the losses that its PyTorch backend has, from the same weights."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("deepxde") is None:
    pytest.skip("needs DeepXDE", allow_module_level=True)

from gradcell.deepxde import dde, importing, torch

ROOT = Path(__file__).parents[3]
SCRIPTS = sorted((ROOT / "examples" / "deepxde").glob("*.py"))
#: Losses at the start and after 40 steps of Adam: bench/deepxde_compare.py --record.
LOSSES = json.loads((ROOT / "tests" / "python" / "golden" / "deepxde.json").read_text())


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "bench" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_losses_are_those_of_pytorch(script: Path) -> None:
    if script.stem == "physics_deeponet" and dde.__version__.startswith("1.13."):
        pytest.skip("DeepXDE 1.13 gives a list among the losses, which PyTorch refuses too")
    scope = importing.script_imports(str(script.parent))
    try:
        found = load("deepxde_compare").observe(str(script), dde, torch, scope)
    finally:
        dde.config.set_default_float("float32")
    assert found["losses"] == pytest.approx(LOSSES[script.stem], rel=1e-5)


def run(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(text)
    command = [sys.executable, "-m", "gradcell", "run", "--deepxde", str(script)]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)


POISSON = """
import deepxde as dde
import numpy as np
{imports}
dde.config.set_random_seed(1)
line = dde.geometry.Interval(-1, 1)
def residual(x, u):
    return -dde.grad.hessian(u, x) - np.pi**2 * {sin}(np.pi * x)
edges = dde.icbc.DirichletBC(line, lambda x: 0, lambda x, on: on)
data = dde.data.PDE(line, residual, edges, 16, 2, solution=lambda x: np.sin(np.pi * x), num_test=100)
model = dde.Model(data, dde.nn.FNN([1, 20, 20, 1], "tanh", "Glorot uniform"))
model.compile("adam", lr=1e-2, metrics=["l2 relative error"])
model.train(iterations=300, display_every=300, verbose=0)
dde.optimizers.set_LBFGS_options(maxiter=100)
model.compile("L-BFGS", metrics=["l2 relative error"])
history, state = model.train(display_every=100, verbose=0)
print("error", float(np.asarray(state.best_metrics)[0]) < 1e-3)
"""


@pytest.mark.parametrize(
    ("imports", "sin"),
    [
        ("import torch", "torch.sin"),
        ("from deepxde.backend import tf", "tf.sin"),
        ("from deepxde.backend import jax; jnp = jax.numpy", "jnp.sin"),
        ("import torch.nn.functional as F; from torch import sin", "sin"),
        ("", "dde.backend.sin"),
    ],
)
def test_a_script_with_anybodys_names(tmp_path: Path, imports: str, sin: str) -> None:
    done = run(tmp_path, POISSON.format(imports=imports, sin=sin))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "error True"


def test_errors_name_the_scripts_line(tmp_path: Path) -> None:
    done = run(tmp_path, POISSON.format(imports="import torch", sin="torch.sinus"))
    assert done.returncode == 1
    assert "gradcell.deepxde has no torch.sinus" in done.stderr
    assert "script.py:8" in done.stderr
    shown = re.findall(r'^  File "(.+)", line (\d+)', done.stderr, re.MULTILINE)
    assert {file for file, _ in shown} == {str(tmp_path / "script.py")} and shown[-1][1] == "8"


def test_nothing_stays_that_others_take_for_pytorch(tmp_path: Path) -> None:
    text = """
import sys
import gradcell.deepxde
import scipy.integrate, sklearn.linear_model
import deepxde as dde
assert not any(n.split(".")[0] in ("torch", "tensorflow") and "gradcell" in str(
    getattr(m, "__version__", "")) for n, m in sys.modules.items())
assert dde.backend.backend_name == "pytorch"
sklearn.linear_model.LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0])
try:
    import torch
except ImportError:
    pass
else:  # PyTorch itself, beside
    a = torch.tensor([2.0], requires_grad=True)
    (a * a).backward()
    assert a.grad.item() == 4 and "gradcell" not in torch.__version__
print("clean")
"""
    script = tmp_path / "script.py"
    script.write_text(text)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "clean\n"), done.stderr


def test_deepxde_that_is_imported_already(tmp_path: Path) -> None:
    text = "import sys; sys.modules['deepxde'] = sys\nimport gradcell.deepxde\n"
    script = tmp_path / "script.py"
    script.write_text(text)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "import gradcell.deepxde before it" in done.stderr and "line 2" in done.stderr


def test_versions_that_differ_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    importing.check(dde)  # what is replaced keeps the parameters, so it passes its own check
    monkeypatch.setattr(dde.Model, "predict", lambda self, x: None)
    with pytest.raises(
        ImportError, match=r"deepxde\.model\.Model\.predict has the parameters \(self, x\)"
    ):
        importing.check(dde)
    monkeypatch.undo()
    monkeypatch.delattr(dde.gradients, "clear")
    with pytest.raises(ImportError, match=r"deepxde\.gradients\.clear is missing"):
        importing.check(dde)
