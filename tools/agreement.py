"""Writes what MindSpore gives for the cases of tests/python/layer_cases.py.

    python tools/agreement.py [PART]     in an environment with MindSpore

The results, tests/python/golden/layers.npz, are what test_agreement.py compares gradcell with. Only
cases whose text holds PART are run anew; those that are in no table any more go.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests" / "python"
sys.path.insert(0, str(TESTS))

import agreement  # noqa: E402
import layer_cases  # noqa: E402

STORE = TESTS / "golden" / "layers.npz"


def main() -> int:
    import mindspore as ms

    part = sys.argv[1] if len(sys.argv) > 1 else ""
    old = agreement.load(STORE) if STORE.exists() else {}
    results: agreement.Results = {}
    for expression, inputs in layer_cases.LAYERS:
        name = f"{expression} of {inputs}"
        if name in old and part not in name:
            results[name] = old[name]
            continue
        try:
            gradients = expression not in layer_cases.ONLY_VALUES
            results[name] = agreement.run(ms, expression, inputs, gradients)
        except Exception as error:
            print(f"{name}: {str(error).strip().splitlines()[:3]}")
            with contextlib.suppress(Exception):
                results[name] = agreement.run(ms, expression, inputs, gradients=False)
    agreement.save(STORE, results)
    print(f"MindSpore {ms.__version__}: {len(results)} cases, {STORE.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
