"""What packaging/build_wheels.py packs, by what the checkout has."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_every_file_of_the_package_is_in_the_wheel() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a checkout")
    listed = subprocess.check_output(["git", "ls-files", "python/gradcell"], cwd=ROOT, text=True)
    path = ROOT / "packaging" / "build_wheels.py"
    spec = importlib.util.spec_from_file_location("build_wheels", path)
    assert spec is not None and spec.loader is not None
    build_wheels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build_wheels)
    packed = {str(path.relative_to(ROOT)) for path in build_wheels.sources()}
    assert set(listed.split()) <= packed
    assert not [name for name in packed if name.endswith((".so", ".pyc"))]
