"""Six newcomers' programs (tests/python/documents/walks), each in a process and a folder of its own: how many
lines they took, the seconds until they had their answers, and where they stumbled.

    python bench/walks.py --write bench/results/walks.md
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WALKS = ROOT / "tests" / "python" / "documents" / "walks"

#: How each is run: what stands before the program's name, and its arguments.
HOW: dict[str, tuple[list[str], list[str]]] = {
    "physicist": ([], []),
    "jax_user": ([], []),
    "pytorch_user": ([], [str(ROOT / "tests" / "python" / "files" / "pytorch.pt")]),
    "mindspore_user": (["-m", "gradcell", "run"], []),
    "deepxde_user": (["-m", "gradcell", "run", "--deepxde"], []),
    "molecules": ([], []),
}


@dataclass
class Walk:
    """What a program did: its lines without blank ones, seconds, and what it printed that is no answer."""

    lines: int
    seconds: float
    answers: list[str]
    stumbles: list[str]


def walk(name: str) -> Walk:
    """Run a newcomer's program. Stumbles are answers that are False, warnings, and an error."""
    before, after = HOW[name]
    path = WALKS / f"{name}.py"
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, *before, str(path), *after],
            cwd=folder, capture_output=True, text=True, env={**os.environ, "MPLBACKEND": "agg"},
        )  # fmt: skip
    seconds = time.perf_counter() - begin
    said = done.stdout.splitlines()
    told = [
        line for line in done.stderr.splitlines() if not line.startswith("DeepXDE ")
    ]  # its greeting
    stumbles = [line for line in said if "False" in line.split()] + told
    answers = [line for line in said if "True" in line.split()]
    return Walk(len(lines), seconds, answers, stumbles)


def table() -> str:
    """A table of all walks."""
    rows = ["| who | lines | seconds | answers | stumbles |", "|---|---|---|---|---|"]
    for name in HOW:
        found = walk(name)
        counts = found.lines, f"{found.seconds:.1f}", len(found.answers), len(found.stumbles)
        rows.append(f"| {name} | {' | '.join(map(str, counts))} |")
    return "\n".join(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", type=Path, help="the file to write the table into")
    given = parser.parse_args()
    text = (
        "# Newcomers' programs\n\n"
        "Each of [tests/python/documents/walks](../../tests/python/documents/walks) in a\n"
        "new process, written by `python bench/walks.py --write bench/results/walks.md`.\n\n"
    )
    made = table()
    print(made)
    if given.write:
        given.write.write_text(f"{text}{made}\n")
