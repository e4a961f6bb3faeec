"""Installs wheels into clean environments, with no compiler to be found, and says what came of it.

    python packaging/try_wheels.py dist /usr/bin/python3.11 /opt/python3.14/bin/python3
    python packaging/try_wheels.py dist python3.12 --demo digits --tests tests/python/ops/test_ops.py

For each interpreter a row of a Markdown table: the wheel that fits it and its size, the C library it
ran with, the seconds of `pip install` and of `import gradcell` beyond NumPy's, what pytest said. Needs
nothing but the standard library, so it runs in the root of an older system too.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("pytest>=7", "hypothesis>=6", "mpmath>=1.3")
#: Seconds that an import takes, the fastest of five processes.
IMPORTS = """
import subprocess, sys
code = "import time, numpy; start = time.perf_counter(); import gradcell; print(time.perf_counter() - start)"
print(min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)))
"""


def told(*command: str | Path, **options: object) -> str:
    """What a program printed; its failure ends the run."""
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}\nexit {done.returncode}")
    return done.stdout.strip()


def wheel_for(python: str, wheels: Path) -> Path:
    tag = told(python, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])")
    found = sorted(wheels.glob(f"*-{tag}-{tag}-*{platform.machine()}.whl"))
    if not found:
        raise SystemExit(f"no wheel for {tag} and {platform.machine()} in {wheels}")
    return found[-1]


def row(
    python: str, wheels: Path, tests: list[str], extra: list[str], demo: str | None
) -> list[str]:
    wheel = wheel_for(python, wheels)
    with tempfile.TemporaryDirectory() as folder:
        told(python, "-m", "venv", folder)
        inside = Path(folder) / "bin" / "python"
        # The search path holds the environment alone, and what stands for a compiler fails.
        environment = {**os.environ, "PATH": str(inside.parent), "CC": "false", "CXX": "false"}
        pip = (inside, "-m", "pip", "install", "--quiet", "--only-binary", ":all:")
        start = time.perf_counter()
        told(*pip, wheel, env=environment)
        install = time.perf_counter() - start
        seconds = float(told(inside, "-c", IMPORTS, cwd=folder).splitlines()[-1])
        result = ""
        if demo:
            told(*pip, f"{wheel}[demo]", env=environment)
            start = time.perf_counter()
            told(inside, "-m", "gradcell", "demo", demo, cwd=folder)
            result = f"demo {demo} {time.perf_counter() - start:.0f} s, "
        if tests:
            told(*pip, *TOOLS, *extra, env=environment)
            paths = [str(ROOT / test) for test in tests]
            options = ["-p", "no:cacheprovider", f"--rootdir={ROOT}"]
            command = [str(inside), "-m", "pytest", *options, *paths]
            bare = {k: v for k, v in environment.items() if k not in ("CC", "CXX")}
            done = subprocess.run(command, cwd=folder, env=bare, stdout=subprocess.PIPE, text=True)
            result += done.stdout.strip().splitlines()[-1].strip("= ")
            if done.returncode != 0:
                print(done.stdout, file=sys.stderr)
    name, size = wheel.name.split("-", 2)[2].removesuffix(".whl"), wheel.stat().st_size / 1e6
    libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    return [name, f"{size:.1f} MB", libc, f"{install:.0f} s", f"{seconds:.2f} s", result]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wheels", type=Path)
    parser.add_argument("pythons", nargs="+")
    parser.add_argument("--tests", nargs="+", default=[])
    parser.add_argument("--extra", nargs="+", default=[], help="packages that more tests run with")
    parser.add_argument("--demo")
    options = parser.parse_args()
    columns = ("wheel", "size", "run with", "pip install", "import beyond NumPy's", "passed")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for python in options.pythons:
        cells = row(python, options.wheels.resolve(), options.tests, options.extra, options.demo)
        print("| " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
