"""Runs random programs (tests/python/support/typed_programs.py), each under one transform, as many as asked.

    python tools/random_programs.py --count 100000 --log programs.log

Seeds go by blocks to processes; the log gets a line for each block that is done, and what was wrong in it. A
run with the same log goes on where the last one ended. --level runs kernels of another instruction set, of a
build that has several (-DGRADCELL_LEVELS=all). Ends with 1 if a program was wrong.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = 250


def run_block(begin: int) -> tuple[int, Counter[str], list[str]]:
    sys.path.insert(0, str(ROOT / "tests/python/support"))
    import typed_programs

    counts: Counter[str] = Counter()
    wrong = []
    for seed in range(begin, begin + BLOCK):
        try:
            counts += typed_programs.check(seed)
        except Exception as error:  # a program that fails is wrong too
            wrong.append(f"seed {seed}: {type(error).__name__}: {error}")
    return begin, counts, wrong


def done_in(log: Path) -> set[int]:
    if not log.exists():
        return set()
    return {int(line.split()[1]) for line in log.read_text().splitlines() if line[:6] == "block "}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="no new block after so long"
    )
    parser.add_argument("--level", help="v2, v3 or v4")
    parser.add_argument("--log", type=Path, default=Path("random_programs.log"))
    given = parser.parse_args()
    if given.level:
        os.environ["GRADCELL_ISA"] = given.level
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    blocks = range(given.first, given.first + given.count, BLOCK)
    done = done_in(given.log)
    end = time.monotonic() + given.seconds
    rest = (begin for begin in blocks if begin not in done and time.monotonic() < end)
    counts: Counter[str] = Counter()
    wrong = 0
    with (
        multiprocessing.get_context("spawn").Pool(given.processes, maxtasksperchild=8) as pool,
        given.log.open("a") as log,
    ):
        for begin, found, failures in pool.imap_unordered(run_block, rest):
            counts += found
            wrong += len(failures)
            lines = [*failures, f"block {begin} {BLOCK} programs {len(failures)} wrong"]
            print("\n".join(lines), file=log, flush=True)
            print("\n".join(lines), flush=True)
    for name, count in sorted(counts.items()):
        print(f"{name}: {count:,}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
