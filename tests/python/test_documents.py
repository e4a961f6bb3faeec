"""What the documents show is what happens: their Python blocks print the text below them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gradcell

ROOT = Path(__file__).parents[2]


def load(tool: str) -> Any:
    """A program of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(tool, ROOT / "tools" / f"{tool}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "document", ["README.md", "ARCHITECTURE.md", "docs/cuda.md", "docs/views.md"]
)
def test_documents_show_true_output(document: str) -> None:
    _, differences = load("run_documents").checked((ROOT / document).read_text())
    assert not differences, "\n".join(differences)


def test_the_stub_has_the_names_of_the_core() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_stubs.py"), "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_of_rows_come_from_the_table() -> None:
    tool = load("make_stubs")
    table = """
//   UNARY(Name, function, class, forward in x, adjoint in x, y and dy)
UNARY(Lorentz, lorentz, Float, T(1) / (1 + x * x), dy * (-2.0 * x * y * y))
BINARY(Pair, pair, Number, a + b,
       dy, dy)
PREDICATE(IsOdd, is_odd, x != x)
TERNARY(Pick, pick, c ? a : b, dy, dy)
STRUCTURED(Reshape, reshape, Linear)
"""
    functions, methods = tool.rows_stub(table).split("class TensorRows")
    found = re.findall(r"def (.*): \.\.\.", functions)
    assert found == [
        "lorentz(input: Any) -> Tensor",
        "pair(input: Any, other: Any) -> Tensor",
        "is_odd(input: Any) -> Tensor",
        "pick(condition: Any, input: Any, other: Any) -> Tensor",
    ]
    assert re.findall(r"def (.*) -> Tensor", methods) == [
        "lorentz(self)",
        "pair(self, other: Any)",
        "is_odd(self)",
        "pick(self, input: Any, other: Any)",
    ]


def test_types_are_installed() -> None:
    for name in ("py.typed", "_core.pyi", "_op_rows.pyi"):
        assert (Path(gradcell.__file__).parent / name).is_file(), name
