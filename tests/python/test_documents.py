"""What the documents show is what happens: their Python blocks print the text below them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("document", ["README.md", "ARCHITECTURE.md", "docs/cuda.md"])
def test_documents_show_true_output(document: str) -> None:
    spec = importlib.util.spec_from_file_location(
        "run_documents", ROOT / "tools" / "run_documents.py"
    )
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    _, differences = tool.checked((ROOT / document).read_text())
    assert not differences, "\n".join(differences)


def test_the_stub_has_the_names_of_the_core() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_stubs.py"), "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
