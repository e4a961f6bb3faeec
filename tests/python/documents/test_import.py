"""What `import gradcell` loads: enough to differentiate a function, and nothing else."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import gradcell as gc


def fresh(code: str) -> str:
    """What a process of its own prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_is_not_imported() -> None:
    loaded = fresh(
        "import sys, numpy; before = set(sys.modules); import gradcell as gc\n"
        "gc.grad(gc.ops.sin)(gc.Tensor(1.0)).asnumpy()\n"
        "print(*sorted(set(sys.modules) - before))"
    ).split()
    others = {name.split(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert others <= {"gradcell", "numpy"}, others  # no tqdm, safetensors, matplotlib, sklearn
    for name in ("nn", "train", "dataset", "amp"):
        assert f"gradcell.{name}" not in loaded
    assert "subprocess" not in loaded
    assert not any("deepxde" in name for name in loaded)  # installed or not


def names_of(node: ast.ImportFrom) -> list[str]:
    """The names that a statement imports; a star's are the module's."""
    if node.names[0].name == "*":
        return list(importlib.import_module(str(node.module)).__all__)
    return [alias.name for alias in node.names]


def later() -> list[str]:
    """The names that type checkers are told of and that are imported when asked for."""
    tree = ast.parse(Path(gc.__file__).read_text())
    blocks = [node.body for node in tree.body if isinstance(node, ast.If)]
    imports = [node for body in blocks for node in body if isinstance(node, ast.ImportFrom)]
    return [name for node in imports if node.module != "__future__" for name in names_of(node)]


def test_type_checkers_and_the_module_know_the_same_names() -> None:
    assert sorted(set(later())) == sorted(gc._LATER)


@pytest.mark.parametrize("name", later())
def test_names_imported_later(name: str) -> None:
    assert name in dir(gc) and name in gc.__all__
    assert getattr(gc, name) is getattr(gc, name)


@pytest.mark.one_in(12)
@pytest.mark.parametrize("part", range(12))
def test_names_imported_later_as_the_first(part: int) -> None:
    """Each in a process that has imported nothing else of the package by then, in one way or the other."""
    names = later()[part::12]
    told = fresh(f"""
import os
import gradcell as gc
for number, name in enumerate({names}):
    child = os.fork()
    if child == 0:
        found = {{"gc": gc}}
        exec((f"x = gc.{{name}}", f"from gradcell import {{name}} as x")[number % 2], found)
        label = getattr(found["x"], "__name__", type(found["x"]).__name__)
        print(name, label, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
""").splitlines()
    labels = {n: getattr(getattr(gc, n), "__name__", type(getattr(gc, n)).__name__) for n in names}
    assert told == [f"{name} {label}" for name, label in labels.items()]


def each_as_the_first(names: list[str]) -> None:
    """Each module in a process that has imported nothing else of the package."""
    if importlib.util.find_spec("deepxde") is None:
        names = [name for name in names if not name.startswith("gradcell.deepxde")]
    fresh(f"""
import importlib, os, numpy
for name in {names}:
    child = os.fork()
    if child == 0:
        importlib.import_module(name)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
""")


def modules() -> list[str]:
    names = [m.name for m in pkgutil.walk_packages(gc.__path__, "gradcell.")]
    return [name for name in names if not name.endswith(("__main__", "_core"))]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("part", range(8))
def test_packages_can_be_imported_first(part: int) -> None:
    each_as_the_first([name for name in modules() if name.count(".") == 1][part::8])


@pytest.mark.slow
def test_modules_can_be_imported_first() -> None:
    each_as_the_first(modules())


def test_everything_by_star() -> None:
    namespace: dict[str, object] = {}
    exec("from gradcell import *", namespace)
    for name in ("Tensor", "grad", "float32", "nn", "ops", "Model", "set_context"):
        assert namespace[name] is getattr(gc, name)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="'gradcell' has no attribute 'nothing'"):
        _ = gc.nothing
    with pytest.raises(ImportError, match="nothing"):
        from gradcell import nothing  # noqa: F401
