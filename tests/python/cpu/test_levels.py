"""Reductions by the kernels of older processors: the same tests, at every lower level that this build has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradcell import _core

HERE = Path(__file__).parent
#: Of this build, below the best; a build for all machines (GRADCELL_LEVELS=all) has v2.
LOWER = _core.runnable_isa_levels()[:-1]


@pytest.mark.parametrize("level", LOWER)
def test_reductions_at_a_lower_level(level: str) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-x", "-n", "0",
         str(HERE / "test_reduction_kernels.py"), "-k", "sums or extrema"],
        env={**os.environ, "GRADCELL_ISA": level, "PYTEST_XDIST_WORKER": ""},
        capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout[-3000:]
