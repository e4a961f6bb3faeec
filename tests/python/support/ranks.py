"""Programs of several processes for the tests: whether they can be started, starting them, and what
each gave.

A program is a function of rank_programs.py that takes (rank, size, **options) and returns
something that pickles; this file, run by mpirun, calls it in each process.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from gradcell.communication.launch import find_mpirun

MISSING = (
    "mpi4py is not installed (the extra gradcell[mpi])"
    if importlib.util.find_spec("mpi4py") is None
    else ""
    if find_mpirun()
    else "no mpirun was found"
)
if MISSING and os.environ.get("GRADCELL_TEST_NEEDS_RANKS"):
    raise RuntimeError(MISSING)  # where they are required, a skip is a failure
needs_ranks = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def start(
    count: int, *command: str, timeout: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`count` processes of a Python command line."""
    mpirun = find_mpirun()
    assert mpirun is not None
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout
    more = ["--oversubscribe", "--allow-run-as-root"] if "Open MPI" in version else []
    return subprocess.run(
        [mpirun, "-n", str(count), *more, sys.executable, *command],
        env={**os.environ, "GRADCELL_NUM_THREADS": "1", **environment},
        timeout=timeout,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def results(
    folder: pathlib.Path, count: int, program: str, /, timeout: float = 180, **options: Any
) -> list[Any]:
    """What a program returns in each of `count` processes."""
    place = folder / f"{program}_{count}"
    place.mkdir(exist_ok=True)
    (place / "options").write_bytes(pickle.dumps(options))
    done = start(count, __file__, program, str(place), timeout=timeout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return [pickle.loads((place / str(rank)).read_bytes()) for rank in range(count)]


def of_tests_that_run(request: pytest.FixtureRequest, programs: Mapping[str, str]) -> list[str]:
    """Those programs whose tests run, by the names of the tests of a file."""
    items = [item for item in request.session.items if item.path == request.path]
    tests = {getattr(item, "originalname", item.name) for item in items}
    return sorted({program for test, program in programs.items() if test in tests})


def main() -> None:
    """One process."""
    import rank_programs

    from gradcell.communication import get_group_size, get_rank, init

    init()
    program, place = sys.argv[1], pathlib.Path(sys.argv[2])
    options = pickle.loads((place / "options").read_bytes())
    found = getattr(rank_programs, program)(get_rank(), get_group_size(), **options)
    (place / str(get_rank())).write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main()
