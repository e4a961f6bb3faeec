"""Runs the Python blocks of the documents and compares what they print with the text below them.

    python tools/run_documents.py                 exits 1 if a document differs from the truth
    python tools/run_documents.py --write README.md

A document's blocks share one namespace. A block that is followed by a ```text block must print it.
What depends on the machine (tile heights) is left out of the comparison. A number of one digit and an
exponent, as 3e-05, is a size: elsewhere it may be ten times as large or as small. A percentage without a
fraction, as 93%, may differ by 5.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.*?)```(\n\n```text\n(.*?)```)?", re.S)


SIZE = re.compile(r"(?<![\d.])(\d)e([+-]\d+)\b")
SHARE = re.compile(r"(?<![\d.])(\d+)%")


def machine_independent(text: str) -> str:
    text = SHARE.sub("*%", SIZE.sub("*e*", text))
    return re.sub(r"(tile|chunks)=\d+", r"\1=*", text).strip()


def agree(got: str, told: str) -> bool:
    if machine_independent(got) != machine_independent(told):
        return False
    sizes = zip(SIZE.finditer(got), SIZE.finditer(told), strict=True)
    shares = zip(SHARE.findall(got), SHARE.findall(told), strict=True)
    pairs = [(float(a[0]), float(b[0])) for a, b in sizes]
    return all(a == b or (0.1 * b <= a <= 10 * b) for a, b in pairs) and all(
        abs(int(a) - int(b)) <= 5 for a, b in shares
    )


def printed(code: str, namespace: dict[str, Any]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "example.py", "exec"), namespace)
    return out.getvalue()


def checked(text: str) -> tuple[str, list[str]]:
    """The document with true outputs, and the differences that it had."""
    namespace: dict[str, Any] = {"__name__": "__example__"}
    differences: list[str] = []

    def run(match: re.Match[str]) -> str:
        got = printed(match[1], namespace)
        if match[2] is None:
            return match[0]
        if not agree(got, match[3]):
            differences.append(f"expected:\n{match[3]}\nprinted:\n{got}")
        return f"```python\n{match[1]}```\n\n```text\n{got.strip()}\n```"

    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # where the files that they write may lie
        try:
            return BLOCK.sub(run, text), differences
        finally:
            os.chdir(here)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("documents", nargs="*", type=Path, help="those to run; none: all")
    parser.add_argument(
        "--write", action="store_true", help="write what the blocks print below them"
    )
    options = parser.parse_args()
    every = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    bad = 0
    for name in options.documents or sorted(every):
        path = ROOT / name
        text, differences = checked(path.read_text())
        if options.write:
            path.write_text(text)
        elif differences:
            bad = 1
            print(f"{name}:", *differences, sep="\n")
    return bad


if __name__ == "__main__":
    sys.exit(main())
