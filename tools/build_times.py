"""What compiling costs: seconds of processor time a file, the slowest first, and a folder.

    cmake -S . -B build/times -DCMAKE_BUILD_TYPE=Release
    python tools/build_times.py build/times [pattern]

Compiles each file of the build alone, without a cache, into nothing. A file that is compiled for several
instruction-set levels counts with all of them. Nothing is written.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path


def seconds_to_compile(entry: dict[str, str]) -> float:
    """Processor time of one command of a compilation database, its output thrown away."""
    command = [word for word in shlex.split(entry["command"]) if "ccache" not in word]
    command[command.index("-o") + 1] = os.devnull
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=entry["directory"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(build: Path, pattern: str = "") -> None:
    """Prints the table."""
    entries = json.loads((build / "compile_commands.json").read_text())
    root = Path(__file__).parents[1]
    files: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    for number, entry in enumerate(entries, 1):
        file = Path(entry["file"])
        name = str(file.relative_to(root)) if file.is_relative_to(root) else file.name
        if pattern not in name:
            continue
        spent = seconds_to_compile(entry)
        files[name] += spent
        folders[str(Path(name).parent)] += spent
        print(f"\r{number} of {len(entries)}", end="", file=sys.stderr, flush=True)
    print(f"\r{sum(files.values()):.0f} s of processor time, {len(files)} files")
    for title, counts, most in (("File", files, 10), ("Folder", folders, 30)):
        print(f"\n| {title} | s |\n|---|---|")
        for name, spent in counts.most_common(most):
            print(f"| `{name}` | {spent:.1f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=Path, help="a folder that CMake has configured")
    parser.add_argument("pattern", nargs="?", default="", help="a part of the files' names")
    main(**vars(parser.parse_args()))
