"""The command line: python -m gradcell info, run and demo (its own test is in test_examples.py)."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradcell import _core


def gradcell(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gradcell", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def test_info() -> None:
    done = gradcell("info")
    assert done.returncode == 0, done.stderr
    for line in ("version", "system", "Python", "NumPy", "instruction set", "threads", "BLAS"):
        assert f"\n{line} " in f"\n{done.stdout}"
    assert platform.machine() in done.stdout and "kernel cache" in done.stdout


def test_info_starts_no_mpi() -> None:
    pytest.importorskip("mpi4py")
    script = """
from gradcell.communication import engine
(found,) = engine.report()
from mpi4py import MPI
print(found, MPI.Is_initialized())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.endswith(" False\n") and "mpi4py" in done.stdout, done.stderr


def test_run_gives_a_script_mindspore_by_name(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    (tmp_path / "beside.py").write_text("value = 5\n")
    script.write_text(
        "import sys\n"
        "import mindspore as ms\n"
        "import mindspore.nn as nn\n"
        "import mindspore.ops.operations as P\n"
        "import mindspore.common.dtype as mstype\n"
        "from mindspore.common.initializer import initializer\n"
        "from mindspore.common.parameter import Parameter\n"
        "from mindspore import Tensor, context, dataset, amp\n"
        "from mindspore.train import Model\n"
        "from mindspore.train.callback import LossMonitor\n"
        "from beside import value\n"
        "import gradcell\n"
        "assert ms is gradcell and nn is gradcell.nn and context is gradcell.context\n"
        "assert __name__ == '__main__' and sys.argv[1:] == ['--flag', '3']\n"
        "print(float(ms.grad(lambda x: x * x)(Tensor(3.0))), value)\n"
    )
    done = gradcell("run", str(script), "--flag", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "6.0 5\n"


def test_run_says_what_is_not_there(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import mindspore as ms\n"
        "from mindspore import nn, ops\n"
        "def said(line):\n"
        "    try:\n"
        "        exec(line)\n"
        "    except (AttributeError, ImportError) as error:\n"
        "        print(type(error).__name__, error)\n"
        "said('ms.nothing')\n"
        "said('nn.NoCell')\n"
        "said('ms.ops.operations.NoOp')\n"
        "said('from mindspore.nn import NoCell')\n"
        "said('from mindspore.nn.wrap.cell_wrapper import NoCell')\n"
        "said('import mindspore.no_such_part')\n"
        "said('from mindspore.common.parameter import _Nothing')\n"
        "said('from mindspore.train.callback._callback import nothing_such as n')\n"
        "assert not hasattr(nn, 'NoCell') and nn.Dense and ms.Model\n"
    )
    done = gradcell("run", str(script))
    assert done.stdout.splitlines() == [
        "AttributeError gradcell has no mindspore.nothing",
        "AttributeError gradcell has no mindspore.nn.NoCell",
        "AttributeError gradcell has no mindspore.ops.operations.NoOp",
        "ModuleNotFoundError gradcell has no mindspore.nn.NoCell",
        "ModuleNotFoundError gradcell has no mindspore.nn.wrap.cell_wrapper.NoCell",
        "ModuleNotFoundError gradcell has no mindspore.no_such_part",
        "ModuleNotFoundError gradcell has no mindspore.common.parameter._Nothing",
        "ModuleNotFoundError gradcell has no mindspore.train.callback._callback.nothing_such",
    ], done.stderr


def test_run_a_module(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "part.py").write_text("value = 7\n")
    (tmp_path / "pkg" / "prog.py").write_text(
        "import sys\n"
        "from mindspore import ops, Tensor\n"
        "from .part import value\n"
        "print(__name__, sys.argv[1:], value, float(ops.square(Tensor(3.0))))\n"
    )
    done = gradcell("run", "-m", "pkg.prog", "-m", "x", cwd=tmp_path)
    assert done.stdout == "__main__ ['-m', 'x'] 7 9.0\n", done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nowhere.py"], "no such file: nowhere.py"),
        (["run", "-m", "nowhere"], "no such module: nowhere"),
        (["run", "-m", "no.where"], "no such module: no.where"),
        (["run"], "required: target"),
        (["demo", "--steps", "0"], "expected at least 1, got 0"),
        ([], "required: command"),
    ],
)
def test_wrong_commands(arguments: list[str], message: str) -> None:
    done = gradcell(*arguments)
    assert done.returncode == 2 and message in done.stderr
    assert "Traceback" not in done.stderr


# GRADCELL_ISA ---------------------------------------------------------------------------------------


def with_isa(level: str) -> subprocess.CompletedProcess[str]:
    """A process of its own that imports gradcell with GRADCELL_ISA=level."""
    return subprocess.run(
        [sys.executable, "-c", "from gradcell import _core; print(_core.isa_level())"],
        capture_output=True,
        text=True,
        env={**os.environ, "GRADCELL_ISA": level},
    )


@pytest.mark.parametrize("level", ["v9", "V3", "avx2"])
def test_an_unknown_instruction_set_is_refused(level: str) -> None:
    done = with_isa(level)
    assert done.returncode != 0
    assert f"ValueError: GRADCELL_ISA={level}" in done.stderr
    found = re.search(r"this machine runs ([^;]*);", done.stderr)
    assert found
    levels = set(found[1].split(", "))
    assert levels == set(_core.runnable_isa_levels()) <= {"base", "v2", "v3", "v4"}
    for name in levels:
        assert with_isa(name).stdout.strip() == name
    for name in {"v2", "v3", "v4"} - levels:  # known, but not of this machine or build
        assert with_isa(name).returncode != 0
    assert with_isa("").stdout.strip() == max(levels)
