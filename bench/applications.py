"""Training steps of many fields' programs in MindSpore and in gradcell, in turns, in GRAPH_MODE.

    python bench/applications.py MINDSPORES_PYTHON [ROUNDS]

The programs are those whose losses the tests compare with MindSpore's
(tests/python/support/mindspore_programs/applications.py and fields.py).
Prints a table: milliseconds a step (the median of the rounds' medians), and their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEPS, WARM = 30, 5


def timed() -> dict[str, float]:
    """Milliseconds a step of each program, in this process."""
    sys.path.insert(0, str(ROOT / "tests" / "python" / "support" / "mindspore_programs"))
    import fields
    import mindspore as ms

    import applications

    ms.set_context(mode=ms.GRAPH_MODE)
    found = {}
    for name, maker in {**applications.MAKERS, **fields.MAKERS}.items():
        step, batch = maker()
        times = []
        for _ in range(WARM + STEPS):
            start = time.perf_counter()
            float(step(*batch))
            times.append(time.perf_counter() - start)
        found[name] = 1e3 * statistics.median(times[WARM:])
    return found


def main(mindspores: str, rounds: int) -> None:
    commands = {
        "MindSpore": [mindspores, __file__, "--timed"],
        "gradcell": [sys.executable, "-m", "gradcell", "run", __file__, "--timed"],
    }
    found: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
            if done.returncode:
                raise RuntimeError(f"{name} failed: {done.stderr[-2000:]}")
            found[name].append(json.loads(done.stdout.splitlines()[-1]))
    print("| program | MindSpore, ms | gradcell, ms | ratio |\n|---|---|---|---|")
    for program in found["gradcell"][0]:
        theirs, ours = (statistics.median(r[program] for r in found[n]) for n in commands)
        print(f"| {program} | {theirs:.3g} | {ours:.3g} | {theirs / ours:.3g} |")


if __name__ == "__main__":
    if sys.argv[1:] == ["--timed"]:
        print(json.dumps(timed()))
        sys.exit()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", metavar="MINDSPORES_PYTHON", help="a Python that has MindSpore")
    parser.add_argument("rounds", nargs="?", type=int, default=3, help="turns that each gets")
    options = parser.parse_args()
    main(options.python, options.rounds)
