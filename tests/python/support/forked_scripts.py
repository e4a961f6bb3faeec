"""Runs scripts, each in a process of its own. It is forked from one that has imported NumPy and gradcell and
computed nothing, which takes a tenth of the time that a new one does."""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import types
import warnings
from multiprocessing.connection import Connection

import gradcell

SUPPORT = pathlib.Path(__file__).resolve().parent
#: Where scripts find the package that is tested and the helpers of tests.
PYTHONPATH = os.pathsep.join(
    map(str, (pathlib.Path(gradcell.__file__).parents[1], SUPPORT, SUPPORT / "cases"))
)
IMPORTED = "gradcell gradcell.nn gradcell.ops numpy numpy.random".split()
#: What these read from the environment as they are imported: for other values a script has a new process.
READ_AT_ONCE = ("GRADCELL_ISA", "GRADCELL_BLAS", "OPENBLAS_NUM_THREADS")
#: The longest that a script may run.
SECONDS = 300


class Script:
    """A script that runs beside this process."""

    def __init__(self, text: str, environment: dict[str, str]) -> None:
        mine, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(_server(), [b"1"], [theirs.fileno()])
        self.text, self.connection = text, Connection(mine.detach())
        self.connection.send((text, environment))

    def result(self) -> subprocess.CompletedProcess[str]:
        """How it ended and what it printed, as of `python -c`."""
        with self.connection:
            ended, out, errors = self.connection.recv()
        if ended == -signal.SIGALRM:
            raise subprocess.TimeoutExpired(self.text, SECONDS, out, errors)
        return subprocess.CompletedProcess(self.text, ended, out, errors)


def run(text: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a script to its end."""
    usual = {**os.environ, "PYTHONPATH": PYTHONPATH}
    environment = usual if environment is None else environment
    if all(environment.get(name) == usual.get(name) for name in READ_AT_ONCE):
        return Script(text, environment).result()
    return subprocess.run(
        [sys.executable, "-c", text],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@functools.cache
def _server() -> socket.socket:
    """A socket to the process that forks, which ends when this one does."""
    mine, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
        process = subprocess.Popen(
            [sys.executable, __file__, str(number)], env=environment, pass_fds=[number]
        )
    atexit.register(_end, mine, process)
    return mine


def _end(requests: socket.socket, process: subprocess.Popen[bytes]) -> None:
    requests.close()
    process.kill()
    process.wait()


# In the other process ----------------------------------------------------------------------------


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the BLAS library's threads
        return os.fork()


def _next_script(requests: socket.socket) -> str:
    """In each process that is forked for a script: the script, with the environment and the files set."""
    while True:
        data, found, *_ = socket.recv_fds(requests, 1, 1)
        if not data:
            os._exit(0)
        if _fork():
            os.close(found[0])
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        requests.close()
        with Connection(found[0]) as connection:
            text, environment = connection.recv()
            printed = [tempfile.TemporaryFile("w+") for _ in range(2)]
            child = _fork()
            if child:
                status = os.waitpid(child, 0)[1]
                for file in printed:
                    file.seek(0)
                ended = os.waitstatus_to_exitcode(status)
                connection.send((ended, *(file.read() for file in printed)))
                os._exit(0)
        for number, file in enumerate(printed, 1):
            os.dup2(file.fileno(), number)
            file.close()
        os.environ.clear()
        os.environ.update(environment)
        signal.alarm(SECONDS)
        return str(text)


if __name__ == "__main__":
    requests = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how the children ended
    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()  # so that no script looks through all that was imported for garbage
    script = _next_script(requests)
    sys.argv = ["-c"]
    before = 1 + len(PYTHONPATH.split(os.pathsep))
    sys.path[:before] = ["", *os.environ["PYTHONPATH"].split(os.pathsep)]
    # Nothing else refers to the module, so that it ends first, as that of `python -c` does.
    sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(script, "<string>", "exec"), sys.modules["__main__"].__dict__)
