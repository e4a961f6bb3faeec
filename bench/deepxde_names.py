"""Each public name of DeepXDE in a program of a few lines: on gradcell the numbers of its PyTorch backend?

    python bench/deepxde_names.py --record tests/python/golden/deepxde_names.json   (on PyTorch)
    python bench/deepxde_names.py --write bench/results/deepxde.md                (on gradcell)

The cases are those of deepxde_cases.py; names of DeepXDE without one are found by `missing`. The table
tells, for each name, how far the numbers are apart, or the message with which gradcell refuses it.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from deepxde_cases import CASES, Bench
from deepxde_compare import write

#: The namespaces whose public names are counted.
SPACES = "nn data callbacks icbc geometry grad zcs optimizers losses metrics backend config".split()
MARK = "<!-- bench/deepxde_names.py -->"

#: What is not for users: helpers that a namespace's module happens to have, and other backends' parts.
NOT_FOR_USERS = {
    "backend": """backend_message get_available_backend get_preferred_backend interactive_install_paddle
        is_enabled load_backend set_default_backend verify_backend backend_name data_type_dict
        reverse_data_type_dict float16 float32 float64 int8 int16 int32 int64 uint8 bool paddle jax tf lib""",
    "callbacks": "backend_name tf jax paddle CallbackList Callback",
    "config": "Real autodiff backend_name comm hvd mixed paddle parallel_scaling random_seed rank real tf "
    "world_size xla_jit",
    "data": "Constraint Data",
    "icbc": "BC",
    "geometry": "Geometry",
    "losses": "LOSS_DICT get tf",
    "metrics": "get",
    "nn": "NN",
}


def public_names(dde: Any) -> list[str]:
    """What DeepXDE has for its users, as "space.name"."""
    found = []
    for space in SPACES:
        module = getattr(dde, space)
        names = getattr(module, "__all__", None) or dir(module)
        hidden = set(NOT_FOR_USERS.get(space, "").split())
        for name in names:
            value = getattr(module, name, None)
            plain = not name.startswith("_") and name not in hidden and not inspect.ismodule(value)
            if plain and callable(value):
                found.append(f"{space}.{name}")
    found += [f"optimizers.set_{kind}_options" for kind in ("LBFGS", "NNCG")]
    return sorted(set(found))


def missing(dde: Any) -> set[str]:
    """Names without a case."""
    return set(public_names(dde)) - set(CASES)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def result(name: str, dde: Any, torch: Any) -> Any:
    """The numbers of a case, or what it raised."""
    dde.config.set_random_seed(1)
    with tempfile.TemporaryDirectory() as folder, quiet():
        try:
            found = CASES[name](Bench(dde, torch, Path(folder)))
        except Exception as error:  # DeepXDE's own refusals are of many kinds
            return f"{type(error).__name__}: {error}"
    return np.ravel(np.real(found)).astype(np.float64).tolist()


def apart(ours: Any, theirs: Any) -> float:
    """How far numbers are apart, relative to the largest."""
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.shape != b.shape or np.any(np.isnan(a) != np.isnan(b)):
        return float("inf")
    scale = np.nanmax(np.abs(b)) or 1.0
    return float(np.nanmax(np.abs(a - b)) / scale)


def _sentence(text: str) -> str:
    """An error's first sentence, without the place."""
    first = " ".join(text.split()).partition(". ")[0]
    return re.sub(r" \([^()]*:\d+\)", "", first)


def verdict(ours: Any, theirs: Any) -> str:
    """What the table says of a name."""
    if isinstance(ours, str):
        refused = "an error, with PyTorch too" if isinstance(theirs, str) else "refused"
        return f"{refused}: {_sentence(ours)}"
    if isinstance(theirs, str):
        return f"works; with PyTorch {_sentence(theirs)}"
    far = apart(ours, theirs)
    return "the same numbers" if far < 1e-5 else f"numbers differ by {far:.0e}"


def table(rows: dict[str, str]) -> list[str]:
    """Names of a space with one verdict share a line."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, said in sorted(rows.items()):
        space, _, plain = name.partition(".")
        groups.setdefault((space, said), []).append(f"`{plain}`")
    lines = ["| in `deepxde` | names | on gradcell |\n|---|---|---|"]
    lines += [
        f"| {s} | {', '.join(n)} | {said.replace('|', '/')} |" for (s, said), n in groups.items()
    ]
    return lines


def main() -> int:
    """Records PyTorch's numbers, or compares; returns 1 if something differs or has no case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--record", type=Path, help="PyTorch's numbers go there")
    parser.add_argument("--write", type=Path, help="the table goes there, between its marks")
    golden = Path(__file__).parents[1] / "tests/python/golden/deepxde_names.json"
    options = parser.parse_args()
    if options.record:
        os.environ["DDE_BACKEND"] = "pytorch"
        import deepxde as dde
        import torch
    else:
        from gradcell.deepxde import dde, torch
    found = {name: result(name, dde, torch) for name in options.names or sorted(CASES)}
    without = missing(dde)
    if options.record:
        options.record.write_text(json.dumps(found, indent=0) + "\n")
        print(*(f"{n}: {r}" for n, r in found.items() if isinstance(r, str)), sep="\n")
    else:
        theirs = json.loads(golden.read_text())
        rows = {name: verdict(ours, theirs[name]) for name, ours in found.items()}
        print("\n".join(table(rows)))
        if options.write:
            write(options.write, MARK, table(rows), whole=True)
    print("without a case:", *sorted(without), file=sys.stderr)
    return int(bool(without))


if __name__ == "__main__":
    sys.exit(main())
