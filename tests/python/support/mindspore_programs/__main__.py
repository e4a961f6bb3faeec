"""What the programs beside this file give, in both modes.

    python tests/python/support/mindspore_programs write [PART]    in an environment with MindSpore
    python -m gradcell run tests/python/support/mindspore_programs/__main__.py

The first writes golden/mindspore_programs.json, and runs anew the programs that are not in it or whose name
holds PART; the second prints the same of gradcell. Every function of a file is a program. It returns
numbers, tensors, words and trees of them; what it raises is its result, too.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms

HERE = Path(__file__).parent
GOLDEN = HERE.parents[1] / "golden" / "mindspore_programs.json"
MODES = {"graph": 0, "pynative": 1}


def programs() -> dict[str, Callable[[], Any]]:
    """All of them, by 'file: function'."""
    sys.path.insert(0, str(HERE))
    found = {}
    for file in sorted(HERE.glob("[a-z]*.py")):
        module = importlib.import_module(file.stem)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == file.stem and not name.startswith("_"):
                found[f"{file.stem}: {name}"] = function
    return found


def plain(value: Any) -> Any:
    """A result as JSON has it: tensors as [dtype, values]."""
    if isinstance(value, ms.Tensor):
        return [str(value.dtype), value.float().asnumpy().tolist() if value.dtype == ms.bfloat16
                else value.asnumpy().tolist()]  # fmt: skip
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *(plain(v) for v in value)]
    if isinstance(value, dict):
        return ["dict", *([str(k), plain(v)] for k, v in value.items())]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def result(function: Callable[[], Any]) -> Any:
    try:
        return plain(function())
    except Exception as error:
        return ["error", type(error).__name__, str(error).strip().partition("\n")[0][:200]]


def main(part: str, old: dict[str, Any]) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    for name, function in programs().items():
        if name in old and (not part or part not in name):
            found[name] = old[name]
            continue
        for mode, number in MODES.items():
            ms.set_context(mode=number)
            ms.set_seed(1)
            found.setdefault(name, {})[mode] = result(function)
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        old = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
        written = main("".join(sys.argv[2:]), old)
        lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in written.items())
        GOLDEN.write_text(f"{{\n{lines}\n}}\n")  # a line for each program
    else:
        print(json.dumps(main("", {})))
