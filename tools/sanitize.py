"""Builds with sanitizers and runs the tests under them: what the nightly job does, and anyone can.

    python tools/sanitize.py             everything
    python tools/sanitize.py asan        the C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer,
                                         once for each instruction set that this machine runs
    python tools/sanitize.py module      the Python tests with an extension built so; --tests chooses some
    python tools/sanitize.py tsan        the C++ tests under ThreadSanitizer

Builds are in build/asan and build/tsan. Ends with 1 at the first test that fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
JOBS = str(os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or os.cpu_count() or 1)
PARTS = ("asan", "module", "tsan")


def run(*command: str, **environment: str) -> None:
    print("$", " ".join(command), *(f"({k}={v})" for k, v in environment.items()), flush=True)
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=True)


def build(preset: str, levels: str, *targets: str) -> Path:
    run(
        "cmake", "--preset", preset, f"-DGRADCELL_LEVELS={levels}",
        f"-DGRADCELL_PYTHON={'ON' if preset == 'asan' else 'OFF'}", f"-DPython_EXECUTABLE={sys.executable}",
    )  # fmt: skip
    run("cmake", "--build", f"build/{preset}", "-j", JOBS, "--target", *targets)
    return ROOT / "build" / preset


def package(folder: Path) -> Path:
    """A copy of the package with the sanitized extension in it."""
    target = folder / "package"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "python", target, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for extension in folder.glob("csrc/_core*.so"):
        shutil.copy(extension, target / "gradcell")
    return target


def for_module(folder: Path) -> dict[str, str]:
    """An interpreter that is not sanitized loads the sanitizer first, and the library whose exceptions it is
    to see. Leaks are its own."""
    compiler = os.environ.get("CXX", "g++")
    libraries = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libstdc++.so.6")
    ]
    return {
        "PYTHONPATH": str(folder / "package"),
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # so that Python's own objects have red zones
    }


def levels(folder: Path) -> list[str]:
    """The instruction sets that the build has and this machine runs."""
    code = "from gradcell import _core; print(*_core.runnable_isa_levels())"
    environment = {**os.environ, **for_module(folder)}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return found.stdout.split()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument(
        "--tests", nargs="*", default=["tests/python"], help="for module: what pytest runs"
    )
    parser.add_argument(
        "--filter", default=".", help="for asan and tsan: which tests, as ctest -R has it"
    )
    parser.add_argument(
        "--levels", default="all", help="what kernels are built for: all, v2, v3 or v4"
    )
    given = parser.parse_args()
    parts = given.parts or list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(PARTS)}")
    try:
        if "asan" in parts or "module" in parts:
            folder = build("asan", given.levels, "gradcell_tests", "_core")
            package(folder)
            runs = levels(folder)
            print("levels that run here:", *runs, flush=True)
        if "asan" in parts:
            for level in runs:
                run(
                    "ctest",
                    "--preset",
                    "asan",
                    "-j",
                    JOBS,
                    "--no-tests=error",
                    "-R",
                    given.filter,
                    GRADCELL_ISA=level,
                )
        if "module" in parts:
            tests = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-x",
                "-p",
                "no:cacheprovider",
                *given.tests,
            ]
            run(*tests, **for_module(folder))
        if "tsan" in parts:
            build("tsan", given.levels, "gradcell_tests")
            run("ctest", "--preset", "tsan", "-j", JOBS, "--no-tests=error", "-R", given.filter)
    except subprocess.CalledProcessError as error:
        print(f"failed with {error.returncode}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
