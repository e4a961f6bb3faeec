"""One process of msrun: `python -m gradcell.communication.worker folder script.py ...` runs the script as
__main__ in a child, and reports its rank if it is killed. What it prints goes to folder/worker_N.log,
unless the folder is '-'."""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def _watch(child: int, rank: int) -> int:
    """Waits for the process; its exit status, as a shell gives it."""
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    name = signal.strsignal(number) or ""
    print(
        f"gradcell msrun: rank {rank} (process {child}) was ended by signal {number}, {name}",
        file=sys.stderr,
        flush=True,
    )
    return 128 + number


def main() -> None:
    """Runs the script."""
    from gradcell.communication.engine import announced_rank

    folder, script, *arguments = sys.argv[1:]
    rank = announced_rank()
    child = os.fork()  # before anything has threads or talks to the launcher
    if child:
        os._exit(_watch(child, rank))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # nobody is left behind
    if folder != "-":
        name = os.path.join(folder, f"worker_{rank}.log")
        log = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for stream in (1, 2):
            os.dup2(log, stream)
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
