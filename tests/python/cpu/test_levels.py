"""Reductions by the kernels of older processors: the same tests, at every level that this machine runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("level", ["v2", "v3"])
def test_reductions_at_a_lower_level(level: str) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-x", "-n", "0",
         str(HERE / "test_reduction_kernels.py"), "-k", "sums or extrema"],
        env={**os.environ, "GRADCELL_ISA": level, "PYTEST_XDIST_WORKER": ""},
        capture_output=True, text=True,
    )  # fmt: skip
    if "this machine runs the levels" in made.stdout + made.stderr:
        pytest.skip(f"this machine has no {level}")
    assert made.returncode == 0, made.stdout[-3000:]
