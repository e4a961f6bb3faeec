"""Writes what MindSpore gives for the cases of tests/python/support/cases/*_cases.py and tests/python/cases.

    python tools/agreement.py [PART]     in an environment with MindSpore

The results, in tests/python/golden, are what test_agreement.py compares gradcell with; what MindSpore
says where it has no kernel is in golden/refused.json. Only cases whose text holds PART are run anew;
those that are in no table any more go.
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
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests" / "python"
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "support" / "cases")]

import agreement  # noqa: E402
import layer_cases  # noqa: E402
import metric_cases  # noqa: E402
import name_cases  # noqa: E402
import optimizer_cases  # noqa: E402


def results(
    path: Path, cases: dict[str, Callable[[bool], dict[str, Any]]], part: str
) -> agreement.Results:
    """What the cases give, by their names, those without `part` in the name as stored before."""
    old = agreement.load(path) if path.exists() else {}
    found: agreement.Results = {}
    for name, run in cases.items():
        if name in old and part not in name:
            found[name] = old[name]
            continue
        for gradients in (True, False):
            try:
                found[name] = run(gradients)
                break
            except Exception as error:
                print(f"{name}: {str(error).strip().splitlines()[:3]}")
    return found


def in_child(run: Callable[[], dict[str, Any]]) -> dict[str, Any] | str:
    """What run gives in a process of its own, which may crash; or why it gives nothing."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        try:
            found: Any = run()
        except BaseException as error:
            found = f"{type(error).__name__}: {error}"
        with os.fdopen(there, "wb") as pipe:
            pickle.dump(found, pipe)
        os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        content = pipe.read()
    status = os.waitpid(child, 0)[1]
    return pickle.loads(content) if content else f"the process ended with status {status}"


def reason(message: str) -> str:
    """The first line of an error that says something."""
    lines = [line.strip(" -") for line in message.splitlines()]
    return re.sub(r"@\S+: .*", "", next((line for line in lines if len(line) > 20), message))[:160]


def tables(ms: Any, part: str) -> tuple[agreement.Results, dict[str, str]]:
    """(the results of tests/python/cases, what MindSpore said of those it refused)."""
    path, other = TESTS / "golden" / "tables.npz", TESTS / "golden" / "refused.json"
    old = agreement.load(path) if path.exists() else {}
    said = json.loads(other.read_text()) if other.exists() else {}
    found: agreement.Results = {}
    refused: dict[str, str] = {}
    for row in [
        row for table in sorted(TESTS.glob("cases/*.txt")) for row in agreement.rows(table)
    ]:
        known = row.name in old or (row.name in said and not row.stands_in)
        if known and part not in row.name:
            found |= {row.name: old[row.name]} if row.name in old else {}
            refused |= {row.name: said[row.name]} if row.name in said else {}
            continue
        seed = f"{row.expression}{row.inputs}"
        asked = [row.expression, *[row.stands_in] * bool(row.stands_in)]
        if row.name in said and part not in row.name:
            refused[row.name] = said[row.name]
            asked = asked[1:]
        for text in asked:
            result: Any = ""
            for gradients in (not row.only_values, False):
                run = partial(agreement.run, ms, text, row.inputs, gradients, seed)
                result = in_child(run)
                if isinstance(result, dict):
                    break
            if isinstance(result, dict):
                found[row.name] = result
                break
            if text == row.expression:
                refused[row.name] = reason(result)
            else:
                print(f"{row.name}: {reason(result)}")
    agreement.save(path, found)
    other.write_text(json.dumps(refused, indent=0) + "\n")
    return found, refused


def _values(run: Callable[[bool], dict[str, Any]], gradients: bool) -> dict[str, Any]:
    return run(False)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="?", default="", help="a part of the texts of cases")
    part = parser.parse_args().part

    import mindspore as ms

    for place in ("numpy", "scipy.linalg", "nn.probability.distribution", "common.initializer"):
        importlib.import_module(f"mindspore.{place}")
    found, refused = tables(ms, part)
    print(f"MindSpore {ms.__version__}: {len(found)} of tables, {len(refused)} refused")
    layers = {}
    for expression, inputs in layer_cases.LAYERS:
        run = partial(agreement.run, ms, expression, inputs)
        valued = expression in layer_cases.ONLY_VALUES
        layers[f"{expression} of {inputs}"] = partial(run, False) if valued else run
    optimizers = {
        e: lambda gradients, e=e: agreement.run_optimizer(ms, e) for e in optimizer_cases.OPTIMIZERS
    }
    metrics = {
        f"{i} {e}": lambda gradients, e=e, inputs=inputs: metric_cases.run(ms, e, inputs)
        for i, (e, inputs) in enumerate(metric_cases.CASES)
    }
    names = {}
    for expression, inputs in name_cases.NAMES:
        run = partial(agreement.run, ms, expression, inputs)
        valued = expression in name_cases.ONLY_VALUES
        names[f"{expression} of {inputs}"] = partial(_values, run) if valued else run
    every = {"layers": layers, "names": names, "optimizers": optimizers, "metrics": metrics}
    for name, cases in every.items():
        path = TESTS / "golden" / f"{name}.npz"
        agreement.save(path, results(path, cases, part))
        print(f"MindSpore {ms.__version__}: {len(cases)} {name}, {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
