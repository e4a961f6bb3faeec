"""The made-up GPU (tests/fake_cuda.cpp): its library, and processes that run scripts on it.

Each script has a process of its own, since a process opens its libraries once (forked_scripts.py).
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import forked_scripts
import pytest
from forked_scripts import PYTHONPATH

import gradcell

TESTS = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(gradcell.__file__).resolve().parent
HEAD = """
import numpy as np
import gradcell as ms
from gradcell import Parameter, Tensor, nn, ops
rng = np.random.default_rng(3)
def tensor(*shape): return Tensor(rng.standard_normal(shape).astype(np.float32))
"""


def build(folder: pathlib.Path) -> pathlib.Path:
    cxx = shutil.which("g++")
    if not cxx:
        pytest.skip("no g++ to build the made-up CUDA libraries with")
    library = folder / "libfakecuda.so"
    if library.exists():
        return library
    folder.mkdir(exist_ok=True)
    parts = (f"fake_{part}.cpp" for part in ("cuda", "nvrtc", "cublaslt", "nccl", "cudnn"))
    whole = folder / "fake.cpp"  # one file, since most of the time goes into headers
    whole.write_text("".join(f'#include "{TESTS / part}"\n' for part in parts))
    command = [cxx, "-std=c++20", "-O1", "-fPIC", "-shared", f'-DFAKE_CXX="{cxx}"']
    command += [f'-DFAKE_SHIM="{TESTS / "cuda_shim.h"}"', f'-DFAKE_KEPT="{folder}"']
    done = subprocess.run(
        [*command, str(whole), "-o", str(library), "-ldl"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:3000]
    return library


class Process:
    """Runs scripts with the made-up libraries."""

    def __init__(self, fake: pathlib.Path, folder: pathlib.Path) -> None:
        self.folder = folder
        self.counts_file = folder / "counts"
        self.environment = {
            **os.environ,
            "PYTHONPATH": PYTHONPATH,
            "GRADCELL_CUDA_DRIVER": str(fake),
            "GRADCELL_NVRTC": str(fake),
            "GRADCELL_CUBLASLT": str(fake),
            "GRADCELL_NCCL": str(fake),
            "GRADCELL_CUDNN": str(fake),
            "GRADCELL_CACHE_DIR": str(folder / "cache"),
            "FAKE_CUDA_COUNTS": str(self.counts_file),
        }

    def run(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return forked_scripts.run(HEAD + script, {**self.environment, **environment})

    def good(self, script: str, **environment: str) -> str:
        done = self.run(script, **environment)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def error(self, script: str, **environment: str) -> str:
        done = self.run(script, **environment)
        assert done.returncode == 1, done.stdout
        return done.stderr.strip().splitlines()[-1]

    def counts(self) -> dict[str, int]:
        pairs = (line.split() for line in self.counts_file.read_text().splitlines())
        return {name: int(value) for name, value in pairs}
