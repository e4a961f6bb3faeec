"""What type checkers and editors see of the package: a user's program, and misspelt names."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).parent / "user_program.py"
#: A misspelt name of each public namespace.
MISSPELT = (
    "gc.vmpa", "ops.sinn", "ops.Sinn", "nn.Dens", "mint.sinn", "mint.nn.Linea", "gnp.arang",
    "mint.nn.functional.rel", "x.reshap", "gc.float23", "gc.Paramter", "mint.linalg.in_v",
    "train.Modl", "train.callback.LossMonito", "amp.DynamicLossScal", "dataset.GeneratorDatase",
    "dataset.vision.Resiz", "communication.ini", "parallel.shar", "common.Generato", "boost.Gradien",
    "gc.scipy.linalg.in_", "gc.nn.probability.distribution.Norma", "gc.mindrecord.FileReade",
    "gc.dtype.float23", "ops.operations.Sinn", "gc.runtime.synchroniz", "gc.cuda.inspec",
)  # fmt: skip


def package() -> Path:
    import gradcell

    return Path(gradcell.__file__).parents[1]


def environment() -> dict[str, str]:
    """Where mypy finds the package: an installed one by itself."""
    installed = package().name in ("site-packages", "dist-packages")
    return {**os.environ, **({} if installed else {"MYPYPATH": str(package())})}


def mypy(program: Path, cache: Path) -> str:
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=",
         f"--cache-dir={cache}", str(program)],
        capture_output=True, text=True, cwd=cache, env=environment(),
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What mypy knows of the package from one program to the next."""
    return tmp_path_factory.mktemp("mypy")


def run_pyright(tmp_path: Path, *options: str) -> dict[str, Any]:
    found = shutil.which("pyright")
    if found is None:
        pytest.skip("no pyright")
    settings = {"extraPaths": [str(package())], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    # With --verifytypes it reads the packages of the first Python on the path, whatever --pythonpath says.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        [found, "--pythonpath", sys.executable, "--outputjson", *options],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PATH": path},
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def pyright(program: Path, tmp_path: Path) -> list[dict[str, object]]:
    shutil.copy(program, tmp_path)
    return list(run_pyright(tmp_path)["generalDiagnostics"])


def expected() -> dict[int, str]:
    """The types that the program says its expressions have, by line."""
    said = {}
    for number, line in enumerate(PROGRAM.read_text().splitlines(), 1):
        if line.startswith("reveal_type("):
            said[number] = line.rpartition("  # ")[2]
    return said


def short(text: str) -> str:
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)


def test_mypy_knows_what_each_expression_is(cache: Path) -> None:
    text = mypy(PROGRAM, cache)
    assert "error" not in text, text
    found = re.findall(r'py:(\d+): note: Revealed type is "(.*)"', text)
    assert {int(line): short(kind) for line, kind in found} == expected()
    assert len(found) >= 40


def test_pyright_knows_what_each_expression_is(tmp_path: Path) -> None:
    said = pyright(PROGRAM, tmp_path)
    assert not [d for d in said if d["severity"] == "error"]
    found = {
        d["range"]["start"]["line"] + 1: re.findall('is "(.*)"$', str(d["message"]))[0]  # type: ignore[index]
        for d in said
    }
    assert found == expected()


@pytest.mark.skipif(
    tuple(map(int, np.__version__.split(".")[:2])) < (2, 3),
    reason="an ndarray whose parameters are not given is no known type before NumPy 2.3",
)
def test_nearly_all_names_have_types(tmp_path: Path) -> None:
    found = run_pyright(tmp_path, "--ignoreexternal", "--verifytypes", "gradcell")
    found = found["typeCompleteness"]
    without = [s["name"] for s in found["symbols"] if s["isExported"] and not s["isTypeKnown"]]
    assert found["exportedSymbolCounts"]["withKnownType"] > 8000
    assert found["completenessScore"] >= 0.99, without


def misspelt(tmp_path: Path) -> Path:
    head = (
        "import gradcell as gc, gradcell.scipy.linalg, gradcell.nn.probability.distribution\n"
        "import gradcell.cuda, gradcell.mindrecord, gradcell.runtime, gradcell.numpy as gnp\n"
        "from gradcell import amp, boost, common, communication, dataset, parallel, train\n"
        "from gradcell import mint, nn, ops\n"
    )
    head += "x = gc.Tensor([1.0])\n"
    program = tmp_path / "misspelt.py"
    program.write_text(head + "".join(f"print({name})\n" for name in MISSPELT))
    return program


def test_a_misspelt_name_is_an_error_to_mypy(tmp_path: Path, cache: Path) -> None:
    text = mypy(misspelt(tmp_path), cache)
    lines = {int(n) for n in re.findall(r"misspelt\.py:(\d+): error", text)}
    assert lines == set(range(6, 6 + len(MISSPELT))), text


def test_a_misspelt_name_is_an_error_to_pyright(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    said = pyright(misspelt(tmp_path), tmp_path / "project")
    lines = {
        d["range"]["start"]["line"] + 1
        for d in said
        if d["severity"] == "error"  # type: ignore[index]
    }
    assert lines == set(range(6, 6 + len(MISSPELT))), said


def test_every_name_of_the_package_is_exported_for_strict_checks(
    tmp_path: Path, cache: Path
) -> None:
    import gradcell

    program = tmp_path / "names.py"
    names = sorted(n for n in gradcell.__all__ if n not in ("print_",))
    program.write_text("".join(f"from gradcell import {n} as {n}_\n" for n in names))
    text = mypy(program, cache)
    assert "error" not in text, text


def test_an_editor_completes_what_an_op_gives() -> None:
    jedi = pytest.importorskip("jedi")
    text = "from gradcell import ops, Tensor\ny = ops.sin(Tensor([1.0]))\ny."
    project = jedi.Project(str(ROOT), added_sys_path=[str(package())])
    names = {c.name for c in jedi.Script(text, project=project).complete(3, 2)}
    assert {"shape", "astype", "reshape", "sum", "asnumpy"} <= names


def test_the_stubs_of_tables_are_up_to_date() -> None:
    tool = ROOT / "tools" / "make_table_stubs.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
