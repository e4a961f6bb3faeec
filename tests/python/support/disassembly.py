"""NVIDIA's disassembler, where it is, and what tools/sass_cycles.py makes of what it says."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from cuda_emulation import Nvrtc

TOOL = pathlib.Path(__file__).resolve().parents[3] / "tools" / "sass_cycles.py"
#: A kernel's first parameter in the constant bank of sm_90.
PARAMETERS = 0x210


def disassembler() -> str:
    folders = [os.environ.get("CUDA_BIN", ""), *sys.path]
    places = [f"{f}/nvidia/cu13/bin/nvdisasm" for f in folders] + [f"{folders[0]}/nvdisasm"]
    found = next((p for p in places if os.access(p, os.X_OK)), None) or shutil.which("nvdisasm")
    if not found:
        pytest.skip("nvdisasm is not here (pip install nvidia-cuda-nvdisasm, or name $CUDA_BIN)")
    return found


def followed(
    plan: Any,
    step: dict[str, Any],
    given: list[Any],
    threads: tuple[int, int],
    is_near: Callable[[int | None], bool],
    folder: pathlib.Path,
) -> Any:
    """The model of a step's kernel. is_near: whether what is at a place is in the L1 cache."""
    spec = importlib.util.spec_from_file_location("sass_cycles", TOOL)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = tool
    spec.loader.exec_module(tool)
    text = dict(plan.kernels)[step["kernel"]]
    file = folder / "kernel.cubin"
    kernel = plan.raw["prelude"] + "\nnamespace gradcell {\nnamespace scalar {\n" + text + "}\n}\n"
    file.write_bytes(Nvrtc().compile(kernel, "sm_90"))
    sass = subprocess.run(
        [disassembler(), "-c", "-hex", str(file)], capture_output=True, text=True, check=True
    ).stdout
    bank = tool.constants_of(text, given, threads, PARAMETERS)
    found = tool.Model(
        tool.parse(sass.splitlines()),
        bank,
        threads,
        lambda place: int(tool.L1 if is_near(place) else tool.L2),
    )
    found.run(step["kernel"])
    return found
