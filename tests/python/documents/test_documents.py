"""What the documents show is what happens: their Python blocks print the text below them."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gradcell

ROOT = Path(__file__).parents[3]


def load(tool: str) -> Any:
    """A program of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(tool, ROOT / "tools" / f"{tool}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: Every document with Python in it.
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md"))
    if "```python" in path.read_text()
)


@pytest.fixture(autouse=True)
def usual_context() -> Iterator[None]:
    """Documents may choose a mode, or to be one of several processes; the next one starts with the
    usual."""
    gradcell.set_context(full_tracebacks=False)
    yield
    gradcell.set_context(mode=gradcell.PYNATIVE_MODE, full_tracebacks=True)
    gradcell.reset_auto_parallel_context()
    gradcell.communication.release()


@pytest.mark.one_in(6)
@pytest.mark.parametrize("document", DOCUMENTS)
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
    functions, methods, public = re.split(r"class TensorRows|\n\n(?=def)", tool.rows_stub(table))
    found = re.findall(r"def (.*): \.\.\.", functions)
    assert found == [
        "lorentz(input: Array) -> Tensor",
        "pair(input: TensorLike, other: TensorLike) -> Tensor",
        "is_odd(input: Array) -> Tensor",
        "pick(condition: Array, input: TensorLike, other: TensorLike) -> Tensor",
    ]
    assert re.findall(r"def (.*) -> Tensor", methods) == [
        "lorentz(self)",
        "pair(self, other: TensorLike)",
        "is_odd(self)",
        "pick(self, input: TensorLike, other: TensorLike)",
    ]
    assert re.findall(r"^def (.*): \.\.\.", public, re.M) == found
    assert re.findall(r"class (\w+)", public) == ["Lorentz", "Pair", "IsOdd", "Pick"]
    assert "def __call__(self, input: TensorLike, other: TensorLike) -> Tensor" in public


def test_types_are_installed() -> None:
    for name in ("py.typed", "_core.pyi", "_op_rows.pyi"):
        assert (Path(gradcell.__file__).parent / name).is_file(), name


@pytest.mark.skipif(shutil.which("git") is None, reason="releases are tagged by git")
def test_a_release_says_what_is_missing() -> None:
    tool = load("release")
    assert any("three numbers" in problem for problem in tool.problems("1.x"))
    assert any("another version" in problem for problem in tool.problems("99.0.0"))
    assert not any("another version" in p for p in tool.problems(gradcell.__version__))


def test_the_notebook_is_the_page_and_runs() -> None:
    tool = load("notebook")
    made = json.loads(tool.NOTEBOOK.read_text())
    assert tool.NOTEBOOK.read_text() == tool.notebook(tool.PAGE.read_text())
    namespace: dict[str, Any] = {}
    for cell in made["cells"]:
        if cell["cell_type"] == "code":
            expected = "".join("".join(out["text"]) for out in cell["outputs"])
            got = load("run_documents").printed("".join(cell["source"]), namespace)
            assert got.strip() == expected.strip()


def test_every_program_can_be_asked_for_help() -> None:
    """Programs of tools and bench read their arguments by argparse, their own or compare.py's: `--help` shows
    how one is used and does not run it."""
    programs = [p for folder in ("tools", "bench") for p in (ROOT / folder).rglob("*.py")]
    texts = {str(p): p.read_text() for p in programs}
    started = {name for name, text in texts.items() if '__name__ == "__main__"' in text}
    parsing = re.compile(r"ArgumentParser|compare\.main|from compare import main")
    assert len(started) > 30
    assert not [name for name in started if not parsing.search(texts[name])]
    tool = str(ROOT / "tools" / "make_stubs.py")
    done = subprocess.run([sys.executable, tool, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("usage: make_stubs.py")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("program", "option"),
    [
        ("compare", "--cases"),
        ("networks", "--cases"),
        ("laplacian", "--cases"),
        ("ops_compare", "--only"),
    ],
)
def test_a_comparison_of_no_case_writes_nothing(program: str, option: str, tmp_path: Path) -> None:
    file = str(ROOT / "bench" / f"{program}.py")
    words = [option, "no such case", "--out", str(tmp_path / "results")]
    done = subprocess.run([sys.executable, file, *words], capture_output=True, text=True)
    assert done.returncode == 1 and not list(tmp_path.iterdir())
    assert "'no such case' is in no case's name" in done.stderr
