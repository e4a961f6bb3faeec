"""`python -m gradcell info`: what this installation has found. `python -m gradcell run script.py`:
runs a MindSpore script unchanged."""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import sys

import gradcell
from gradcell import _core, _gpu, alias


def _rows() -> list[tuple[str, str]]:
    wheel = importlib.util.find_spec("scipy_openblas32")
    blas = os.environ.get("GRADCELL_BLAS") or (wheel and "scipy-openblas32") or "none found"
    rows = [
        ("version", gradcell.__version__),
        ("Python", sys.version.split()[0]),
        ("instruction set", _core.isa_level()),
        ("threads", str(_core.max_threads())),
        ("BLAS", blas),
    ]
    rows += _gpu.report()
    cache = _core.kernel_cache_info()
    where = cache["directory"] or "nowhere to write: kernels stay in memory"
    rows.append(("kernel cache", f"{where} ({cache['files']} kernels, {cache['bytes']} bytes)"))
    return rows


def info() -> None:
    """Prints one line for each thing found or missing."""
    for name, value in _rows():
        print(f"{name:16} {value}")


def run(script: str, arguments: list[str]) -> None:
    """Runs a script as __main__, with `mindspore` standing for gradcell."""
    alias.install()
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="gradcell", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="what this installation has found")
    runner = commands.add_parser("run", help="run a script that imports mindspore")
    runner.add_argument("script")
    runner.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.command == "info":
        info()
        return 0
    if not os.path.exists(options.script):
        print(f"gradcell run: no such file: {options.script}", file=sys.stderr)
        return 2
    run(options.script, options.arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
