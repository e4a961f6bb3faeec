"""Writes what MindSpore gives for the cases of tests/python/*_cases.py.

    python tools/agreement.py [PART]     in an environment with MindSpore

The results, in tests/python/golden, are what test_agreement.py compares gradcell with. Only
cases whose text holds PART are run anew; those that are in no table any more go.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests" / "python"
sys.path.insert(0, str(TESTS))

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


def _values(run: Callable[[bool], dict[str, Any]], gradients: bool) -> dict[str, Any]:
    return run(False)


def main() -> int:
    import mindspore as ms

    part = sys.argv[1] if len(sys.argv) > 1 else ""
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
