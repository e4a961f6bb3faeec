"""Makes the notebook of the guide's first chapter from its page.

python tools/notebook.py               writes docs/guide/derivatives.ipynb
python tools/notebook.py --check       exits 1 if it is not what the page says
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "guide" / "derivatives.md"
NOTEBOOK = PAGE.with_suffix(".ipynb")
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.S)


def cells(text: str) -> list[dict[str, Any]]:
    """Text and code in turn; what a block prints is its output."""
    made: list[dict[str, Any]] = []

    def add(kind: str, source: str, **more: Any) -> None:
        if source.strip():
            lines = source.strip("\n").splitlines(keepends=True)
            name = f"cell-{len(made)}"
            made.append({"cell_type": kind, "id": name, "metadata": {}, "source": lines, **more})

    end = 0
    for match in BLOCK.finditer(text):
        add("markdown", text[end : match.start()])
        outputs = []
        if match[2]:
            printed = match[2].splitlines(keepends=True)
            outputs.append({"output_type": "stream", "name": "stdout", "text": printed})
        add("code", match[1], execution_count=None, outputs=outputs)
        end = match.end()
    add("markdown", text[end:])
    return made


def notebook(text: str) -> str:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {
        "cells": cells(text),
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(made, indent=1) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    text = notebook(PAGE.read_text())
    if options.check:
        return int(not NOTEBOOK.exists() or NOTEBOOK.read_text() != text)
    NOTEBOOK.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
