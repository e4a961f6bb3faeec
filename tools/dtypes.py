"""The table of every function with every dtype, beside NumPy 2 and MindSpore.

    python tools/dtypes.py [--case PART] [--form FORM] [--one-in N]    counts, and what has no reason
    python tools/dtypes.py write      docs/guide/numpy.md, and the trials that MindSpore is to be asked
    python tools/dtypes.py list       in an environment with MindSpore: its answers, into the golden file

The trials are those of support/cases/dtype_cases.py in the tests. What MindSpore gives is asked for
those that differ from NumPy: golden/dtypes.json has '!' for a refusal, else the dtype and the first
numbers of each output.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pickle
import re
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "python" / part) for part in ("support", "support/cases")]

import dtype_cases  # noqa: E402
import numpy as np  # noqa: E402
from dtype_cases import Result, Trial  # noqa: E402

PAGE = ROOT / "docs" / "guide" / "numpy.md"
GOLDEN = ROOT / "tests" / "python" / "golden" / "dtypes.json"
Answers = dict[str, dict[str, str]]  # by case and dtype; '' is not known yet


def text(outcome: list[Result] | str) -> str:
    """An answer as the golden file has it."""
    if isinstance(outcome, str):
        return "!"
    parts = []
    for dtype, numbers in outcome:
        shown = [f"{v:.3g}" for v in np.ravel(numbers)[:3]] if numbers.dtype.kind in "biufc" else []
        parts.append(" ".join([dtype, *shown]))
    return "; ".join(parts)


def stored() -> Answers:
    """The golden file, which has the dtypes of each answer: {case: {answer: 'int8 int16'}}."""
    found = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    return {
        case: {dtype: said for said, dtypes in by.items() for dtype in dtypes.split()}
        for case, by in found.items()
    }


def store(answers: Answers) -> None:
    lines = []
    for case, found in sorted(answers.items()):
        by: dict[str, list[str]] = {}
        for dtype, said in found.items():
            by.setdefault(said, []).append(dtype)
        joined = {said: " ".join(dtypes) for said, dtypes in by.items()}
        lines.append(f"{json.dumps(case)}: {json.dumps(joined)}")
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")


# MindSpore --------------------------------------------------------------------------------------


def answers_of(ms: Any, trials: list[Trial]) -> list[str]:
    """The answers of a package to trials, in processes that may end."""
    found: list[str] = []
    while len(found) < len(trials):
        here, there = os.pipe()
        child = os.fork()
        if child == 0:
            with os.fdopen(there, "wb", buffering=0) as pipe:
                for trial in trials[len(found) :]:
                    signal.alarm(20)
                    given = dtype_cases.inputs(trial)
                    pickle.dump(text(dtype_cases.outcome(ms, trial.case, given)), pipe)
            os._exit(0)
        os.close(there)
        with os.fdopen(here, "rb") as pipe:
            while True:
                try:
                    found.append(pickle.load(pipe))
                except EOFError:
                    break
        os.waitpid(child, 0)
        if len(found) < len(trials):
            found.append("!")  # the process ended
    return found


def ask_mindspore() -> None:
    import mindspore as ms

    for place in ("numpy", "scipy.linalg", "common.initializer"):
        importlib.import_module(f"mindspore.{place}")
    answers = stored()
    unknown = [(c, d) for c, by in answers.items() for d, said in by.items() if not said]
    asked = [Trial(c, d, "as they are") for c, d in unknown if c in dtype_cases.CASES]
    for case, dtype in unknown:
        answers[case][dtype] = "!"  # (the names of NumPy that MindSpore lacks stay so)
    for trial, answer in zip(asked, answers_of(ms, asked), strict=True):
        answers[trial.case][trial.dtype] = answer
    store(answers)
    print(f"MindSpore {ms.__version__}: {len(asked)} answers")


INTRODUCTION = """\
# Where results differ from NumPy's

`python tools/dtypes.py write` writes this page. It calls {names:,} functions, methods and operators with
arrays of {dtypes} dtypes, of sizes 0 and 1 and without dimensions, and with a number, a list, a NumPy scalar
and a NumPy array beside a tensor. The right answer, dtype and shape included, is NumPy 2's or SciPy's. Where
these have no such function, or refuse the dtype, it is the same function of the same numbers in float64,
which other tests hold to references.
"""
ASKED = """\
MindSpore 2.10 was asked for the calls that differ, with the arrays' own sizes. *Same*: it gives the same
dtype and numbers. *Stops*: it has no kernel or refuses. *Other*: it gives something else.
"""

# The page ---------------------------------------------------------------------------------------


def to_ask(trials: list[Trial]) -> Answers:
    """The golden file for the trials that differ: known answers, and '' for the others."""
    old = stored()
    answers: Answers = {}
    for case, dtype, form in trials:
        if form == "as they are":
            answers.setdefault(case, {})[dtype] = old.get(case, {}).get(dtype, "")
    return answers


def beside_mindspore(trials: list[Trial], answers: Answers) -> tuple[int, int, int]:
    """(how often MindSpore gives what gradcell gives, refuses, gives something else)."""
    import gradcell as gc

    counts = [0, 0, 0]
    for trial in trials:
        said = answers.get(trial.case, {}).get(trial.dtype, "")
        if trial.form != "as they are" or not said:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = text(dtype_cases.outcome(gc, trial.case, dtype_cases.inputs(trial)))
        counts[0 if ours == said else 1 if said == "!" else 2] += 1
    return counts[0], counts[1], counts[2]


def page(count: Any, answers: Answers) -> str:
    """docs/guide/numpy.md."""
    import dtype_table

    counts = count.counts
    names = {dtype_table.name_of(name) for name in dtype_cases.names()}
    parts = [
        INTRODUCTION.format(names=len(names), dtypes=len(dtype_cases.DTYPES)),
        "| calls | |",
        "|---|---|",
        f"| in all | {counts['trials']:,} |",
        f"| equal to NumPy | {counts['equal to NumPy']:,} |",
        f"| without NumPy, equal to float64 | {counts['equal to float64']:,} |",
        f"| without NumPy, refused in float64 too | {counts['equal to nothing']:,} |",
        f"| different, with a reason below | {counts['with a reason']:,} |",
        f"| different without a reason | {counts['without a reason']:,} |",
        "",
        ASKED,
        "| reason | calls | same | stops | other | functions |",
        "|---|---|---|---|---|---|",
    ]
    for why, _ in dtype_table.REASONS:
        trials = count.reasons.get(why, [])
        if trials:
            found = dict.fromkeys(dtype_table.name_of(t.case) for t in trials)
            shown = ", ".join(f"`{n}`" for n in list(found)[:4])
            more = f" and {len(found) - 4} more" if len(found) > 4 else ""
            columns = " | ".join(f"{n:,}" for n in beside_mindspore(trials, answers))
            parts.append(f"| {why} | {len(trials):,} | {columns} | {shown}{more} |")
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["write", "list"])
    parser.add_argument("--case", default="", help="a part of the texts of cases")
    parser.add_argument("--form", default="", help=", ".join(dtype_cases.FORMS))
    parser.add_argument("--one-in", type=int, default=1)
    asked = parser.parse_args()
    if asked.what == "list":
        return ask_mindspore()
    import dtype_table

    count = dtype_table.counted(dtype_cases.trials(asked.case, asked.one_in, asked.form))
    if asked.what == "write":
        answers = to_ask([t for trials in count.reasons.values() for t in trials])
        store(answers)
        PAGE.write_text(page(count, answers))
    for line in count.unexplained:
        print(re.sub(r"\(?/\S+\)?", "", line))
    print(dict(count.counts))


if __name__ == "__main__":
    main()
