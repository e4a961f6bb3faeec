"""The command line: python -m gradcell info, run and demo (its own test is in test_examples.py)."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradcell import __main__, _core


def gradcell(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gradcell", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def test_info() -> None:
    done = gradcell("info")
    assert done.returncode == 0, done.stderr
    for line in ("version", "system", "Python", "NumPy", "instruction set", "threads", "BLAS"):
        assert f"\n{line} " in f"\n{done.stdout}"
    assert platform.machine() in done.stdout and "kernel cache" in done.stdout


def test_info_is_short_unless_asked(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    long = "missing: X, which does much, was not found. Install it with pip install 'gradcell[x]' (libx.so)"
    rows = [
        ("version", "1"),
        ("NVIDIA driver", "CUDA 13.0"),
        ("NCCL", long),
        ("MPI", "missing: it is ill. So"),
    ]
    for driver in (
        "CUDA 13.0",
        "missing: no driver was found: libcuda.so.1 is not there. Install it",
    ):
        rows[1] = ("NVIDIA driver", driver)
        monkeypatch.setattr(__main__, "_rows", lambda: rows)
        __main__.info(full=True)
        whole = capsys.readouterr().out.splitlines()
        assert [line[17:] for line in whole] == [value for _, value in rows]
        __main__.info(full=False)
        short = [(line[:16].strip(), line[17:]) for line in capsys.readouterr().out.splitlines()]
        nccl = [("NCCL", "missing: pip install 'gradcell[x]'")]
        if driver.startswith("missing"):
            driver, nccl = "missing: no driver was found", []
        rest = [("MPI", "missing: it is ill")]
        assert short == [("version", "1"), ("NVIDIA driver", driver), *nccl, *rest]


def test_who_reads_may_stop() -> None:
    """As `gradcell demo --list | head -0`: no traceback, and the status of a process that SIGPIPE ends."""
    writer = subprocess.Popen(
        [sys.executable, "-m", "gradcell", "demo", "--list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout and writer.stderr
    writer.stdout.close()
    assert (writer.stderr.read(), writer.wait()) == ("", 128 + signal.SIGPIPE)
    writer.stderr.close()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--points 2.5", "--points: '2.5' is not a whole number"),
        ("--steps abc", "--steps: 'abc' is not a whole number"),
        ("--plot no/such/place.png", f"there is no folder {Path.cwd()}/no/such"),
        ("--plot .", "--plot: . is a folder: name a file in it"),
    ],
)
def test_wrong_options_are_told_before_the_training(
    option: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(sys, "argv", ["gradcell", "demo", "forces", *option.split()])
    try:
        status = __main__.main()
    except SystemExit as stop:
        status = stop.code  # type: ignore[assignment]
    shown = capsys.readouterr()
    assert status == 2 and message in shown.err and not shown.out


def test_a_picture_of_an_unknown_format(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert "should end in one of" in __main__._no_picture(str(tmp_path / "a.abc"), True)
    assert not __main__._no_picture(str(tmp_path / "a.PNG"), True)
    assert not __main__._no_picture("burgers.png", False)


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
        "ModuleNotFoundError gradcell has no mindspore.train.callback._callback.nothing_such",
    ], done.stderr


def test_private_names_fail_when_they_are_used(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import mindspore as ms\n"
        "from mindspore.common import _nothing\n"
        "from mindspore.common._no_module import something\n"
        "import mindspore._deep._deeper\n"
        "try:\n"
        "    from mindspore.common import _other\n"
        "except ImportError as error:\n"
        "    print(type(error).__name__, error)\n"
        "for used in (_nothing, something):\n"
        "    try:\n"
        "        used(3)\n"
        "    except NotImplementedError as error:\n"
        "        print(error)\n"
        "assert not hasattr(ms.common, '_nothing')\n"
    )
    done = gradcell("run", str(script))
    line = f"it is private to MindSpore ({script}:11)"
    assert done.stdout.splitlines() == [
        "ImportError gradcell has no mindspore.common._other",
        f"gradcell has no mindspore.common._nothing: {line}",
        f"gradcell has no mindspore.common._no_module.something: {line}",
    ], done.stderr
    assert [text.rpartition(".")[2] for text in done.stderr.splitlines()] == [
        "_nothing",
        "something",
        "_other",
    ]


def test_names_of_earlier_versions(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\n"
        "from mindspore import Tensor, ms_class, nn, ops\n"
        "from mindspore._checkparam import Rel, Validator\n"
        "from mindspore.nn.layer.basic import OneHot\n"
        "from mindspore.device_context.ascend import op_precision\n"
        "x = Tensor(np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2))\n"
        "for halves in (False, True):\n"
        "    wanted = ops.ResizeBilinearV2(False, halves)(x, (4, 4))\n"
        "    layer = nn.ResizeBilinear(halves)\n"
        "    assert (layer(x, (4, 4)) == wanted).all() and (layer(x, scale_factor=2) == wanted).all()\n"
        "wanted = ops.ResizeBilinearV2(True)(x, (3, 5))\n"
        "assert (nn.ResizeBilinear()(x, size=(3, 5), align_corners=True) == wanted).all()\n"
        "assert Validator.check_int(3, 2, Rel.GE, 'n', 'f') == 3\n"
        "assert ops.ControlDepend(0)(x, x) is ops.operations.control_depend(x, x) is x\n"
        "ms_class(type('A', (), {}))\n"
        "assert OneHot is nn.OneHot and callable(op_precision.precision_mode)\n"
        "layer(x)\n"
    )
    done = gradcell("run", str(script))
    assert "either 'size' or 'scale_factor' must be given" in done.stderr.splitlines()[-1]


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
    ],
)
def test_what_is_not_there_cannot_be_run(arguments: list[str], message: str) -> None:
    done = gradcell(*arguments)
    assert done.returncode == 2 and message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "required: target"),
        (["demo", "--steps", "0"], "expected at least 1, got 0"),
        ([], "required: command"),
    ],
)
def test_wrong_commands(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["gradcell", *arguments])
    with pytest.raises(SystemExit) as ended:
        sys.exit(__main__.main())
    assert ended.value.code == 2 and message in capsys.readouterr().err


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
    assert set(found[1].split(", ")) == set(_core.runnable_isa_levels())


def test_an_instruction_set_of_this_machine_is_taken() -> None:
    levels = set(_core.runnable_isa_levels())
    assert levels <= {"base", "v2", "v3", "v4"}
    for name in levels:
        assert with_isa(name).stdout.strip() == name
    for name in {"v2", "v3", "v4"} - levels:  # known, but not of this machine or build
        assert with_isa(name).returncode != 0
    assert with_isa("").stdout.strip() == max(levels)
