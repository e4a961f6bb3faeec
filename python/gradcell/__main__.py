"""The command line: `python -m gradcell info`, `demo`, `run script.py`, `run -m module`, `msrun`.

info prints version, instruction set, BLAS, GPU and MPI, and with --full why each thing is missing; demo runs
a demo program, which draws a picture; run runs an unchanged script or module that imports mindspore on
gradcell, and with --deepxde one that imports deepxde; msrun runs a script in several processes on this
machine.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import os
import platform
import re
import runpy
import sys

import numpy as np

import gradcell
from gradcell import _core
from gradcell.base import gpu
from gradcell.communication import engine, launch
from gradcell.demo import DEMOS
from gradcell.mindspore import alias, device_choice


def _levels() -> str:
    """The level in use, and the machine's best where this build has no kernels for it."""
    used, best = _core.isa_level(), _core.machine_isa_level()
    built = _core.runnable_isa_levels()
    left_out = (
        "" if best in built else f" (this machine runs {best}, which this build has no kernels for)"
    )
    return used + left_out


def _rows() -> list[tuple[str, str]]:
    wheel = importlib.util.find_spec("scipy_openblas32")
    blas = os.environ.get("GRADCELL_BLAS") or (wheel and "scipy-openblas32") or "none found"
    rows = [
        ("version", gradcell.__version__),
        ("system", f"{platform.platform()}, {os.cpu_count()} CPUs"),
        ("Python", sys.version.split()[0]),
        ("NumPy", np.__version__),
        ("instruction set", _levels()),
        ("threads", str(_core.max_threads())),
        ("BLAS", blas),
    ]
    rows += gpu.report()
    rows += engine.report()
    cache = _core.kernel_cache_info()
    where = cache["directory"] or "nowhere to write: kernels stay in memory"
    rows.append(("kernel cache", f"{where} ({cache['files']} kernels, {cache['bytes']} bytes)"))
    return rows


#: What is needed on a GPU alone.
_FOR_GPUS = ("NVRTC", "cuBLASLt", "NCCL", "cuDNN")


def _short(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Rows of a line each: what is missing with what installs it, and nothing for a GPU that is not there."""
    no_driver = dict(rows).get("NVIDIA driver", "").startswith("missing")
    found = []
    for name, value in rows:
        if no_driver and name in _FOR_GPUS:
            continue
        if value.startswith("missing"):
            installs = re.search(r"pip install [^ )]+", value)
            why = installs[0] if installs else re.split(r"[:.] ", value[9:])[0]
            value = f"missing: {why}"
        found.append((name, value))
    return found


def info(full: bool) -> None:
    """Prints one line for each thing found or missing; full: with all that is known of why."""
    for name, value in _rows() if full else _short(_rows()):
        print(f"{name:16} {value}")


def _exists(target: str, module: bool) -> bool:
    if not module:
        return os.path.exists(target)
    try:
        return importlib.util.find_spec(target) is not None
    except ModuleNotFoundError:
        return False


def run(options: argparse.Namespace) -> int:
    """Runs a script, or a module, as __main__, with `mindspore` standing for gradcell; or on DeepXDE with
    gradcell below it, and `torch` standing for its names.

    Returns 2 if there is no such thing or device, else 0.
    """
    target, module = options.target, options.module
    alias.install()
    sys.path[0] = os.getcwd() if module else os.path.dirname(os.path.abspath(target))
    if not _exists(target, module):
        print(f"gradcell run: no such {'module' if module else 'file'}: {target}", file=sys.stderr)
        return 2
    try:
        device_choice.choose(options.device)
    except RuntimeError as error:
        print(f"gradcell run --device: {gpu.reason(error)}", file=sys.stderr)
        return 2
    sys.argv = [target, *options.arguments]
    with _names_of_torch() if options.deepxde else contextlib.nullcontext():
        if module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(target, run_name="__main__")
    return 0


def _names_of_torch() -> contextlib.AbstractContextManager[None]:
    importing = importlib.import_module("gradcell.deepxde.importing")
    importlib.import_module("gradcell.deepxde")
    return importing.script_imports(sys.path[0])  # type: ignore[no-any-return]


def demo(name: str, listed: bool, steps: int | None, points: int | None, plot: str | None) -> int:
    """Runs a demo, or prints which there are. Returns 2 if its picture could not be written, else 0."""
    if listed:
        for each, about in DEMOS.items():
            print(f"{each:10} {about.about}")
        return 0
    chosen, path = DEMOS[name], plot or f"{name}.png"
    problem = _no_picture(path, plot is not None)
    if problem:  # said before the training, not after it
        print(f"gradcell demo --plot: {problem}", file=sys.stderr)
        return 2
    chosen.module(name).run(steps or chosen.steps, points or chosen.points, path)
    return 0


def _no_picture(path: str, wanted: bool) -> str:
    """Return why a picture cannot be written there, or nothing. wanted: so that one must be drawn."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        return f"there is no folder {folder}"
    if os.path.isdir(path):
        return f"{path} is a folder: name a file in it, such as {os.path.join(path, 'picture.png')}"
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        return f"{path} cannot be written"
    ending = os.path.splitext(path)[1][1:].lower()
    if not wanted:
        return ""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "matplotlib is not installed (pip install matplotlib)"
    known = Figure().canvas.get_supported_filetypes()
    return "" if ending in known else f"{path} should end in one of .{', .'.join(sorted(known))}"


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {value}")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gradcell", description="Automatic differentiation by graphs."
    )
    parser.add_argument("--version", action="version", version=f"gradcell {gradcell.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    about = commands.add_parser(
        "info", help="print version, instruction set, BLAS, GPU and MPI, for bug reports"
    )
    about.add_argument("--full", action="store_true", help="and why each thing is missing")
    shown = commands.add_parser(
        "demo", help="run a demo program (at most a minute), which draws a picture"
    )
    shown.add_argument("name", nargs="?", choices=list(DEMOS), default="burgers")
    shown.add_argument("--list", action="store_true", help="only say which there are")
    shown.add_argument("--steps", type=_positive, help="of training")
    shown.add_argument("--points", type=_positive, help="or examples, drawn at random")
    shown.add_argument("--plot", metavar="PNG", help="where the picture goes: NAME.png")
    runner = commands.add_parser(
        "run",
        help="run a script or module that imports mindspore, or deepxde",
        usage="gradcell run [--device CPU|GPU] [--deepxde] (script.py | -m module) ...",
    )
    runner.add_argument(
        "--device", choices=["CPU", "GPU"], type=str.upper,
        help="the device to use, whatever the script requests",
    )  # fmt: skip
    runner.add_argument("--deepxde", action="store_true", help="the script is for DeepXDE")
    runner.add_argument("-m", dest="module", action="store_true", help="run a module by its name")
    runner.add_argument("target", help="the script or module")
    runner.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments for the script")
    launch.add_arguments(
        commands.add_parser("msrun", help="run a script in several processes, over MPI")
    )
    return parser


def main() -> int:
    """The command line; returns the exit status."""
    options = _parser().parse_args()
    if options.command == "msrun":
        return launch.run(options)
    if options.command == "run":
        return run(options)
    try:
        status = 0
        if options.command == "info":
            info(options.full)
        else:
            status = demo(options.name, options.list, options.steps, options.points, options.plot)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # who reads has enough, as in `demo | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # as a shell says of SIGPIPE


if __name__ == "__main__":
    sys.exit(main())
