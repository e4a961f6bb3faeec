"""How many public names each namespace has, for a comparison with another tree.

PYTHONPATH=python python tools/count_names.py
"""

from __future__ import annotations

import argparse
import importlib
import inspect

from api_reference.names import NAMESPACES

import gradcell


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    total = 0
    for namespace in NAMESPACES:
        count = len(dir(importlib.import_module(namespace)))
        total += count
        print(f"{count:5} {namespace}")
    for kind in (gradcell.Tensor, gradcell.Parameter, gradcell.nn.Cell):
        count = len([name for name, _ in inspect.getmembers(kind) if not name.startswith("_")])
        total += count
        print(f"{count:5} {kind.__name__}")
    print(f"{total:5} in all")


if __name__ == "__main__":
    main()
