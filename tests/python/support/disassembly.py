"""NVIDIA's disassembler, where it is."""

from __future__ import annotations

import os
import shutil
import sys

import pytest


def disassembler() -> str:
    folders = [os.environ.get("CUDA_BIN", ""), *sys.path]
    places = [f"{f}/nvidia/cu13/bin/nvdisasm" for f in folders] + [f"{folders[0]}/nvdisasm"]
    found = next((p for p in places if os.access(p, os.X_OK)), None) or shutil.which("nvdisasm")
    if not found:
        pytest.skip("nvdisasm is not here (pip install nvidia-cuda-nvdisasm, or name $CUDA_BIN)")
    return found
