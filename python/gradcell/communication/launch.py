"""msrun: several processes of a script on this machine, started by the MPI that mpi4py uses."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys

#: Options of MindSpore's launcher that say how its processes find each other: MPI's way is its own.
_UNUSED = ("master_addr", "master_port", "join", "cluster_time_out", "bind_core", "sim_level",
           "sim_rank_id", "rank_table_file", "worker_log_name", "tail_worker_log")  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of msrun, under MindSpore's names."""
    parser.add_argument("--worker_num", type=int, default=1, help="processes in all")
    parser.add_argument("--local_worker_num", type=int, help="processes on this machine: all")
    parser.add_argument(
        "--node_rank", type=int, default=-1, help="for several machines: use mpirun"
    )
    parser.add_argument("--log_dir", help="a folder for what each process prints, worker_N.log")
    for name in _UNUSED:
        parser.add_argument(f"--{name}", nargs="?", const="True", help=argparse.SUPPRESS)
    parser.add_argument("target", metavar="script.py", help="what to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments for the script")


def find_mpirun() -> str | None:
    """The mpirun beside this Python, where the extra puts it, else the system's."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpirun")
    return beside if os.access(beside, os.X_OK) else shutil.which("mpirun")


def run(options: argparse.Namespace) -> int:
    """Starts the processes; returns the exit status, 2 if they cannot be started."""
    count, local = options.worker_num, options.local_worker_num
    if count < 1 or (local is not None and local != count):
        print(
            "gradcell msrun: --worker_num processes run on this machine; for several machines use "
            "mpirun or srun (docs/parallel.md)",
            file=sys.stderr,
        )
        return 2
    if not hasattr(os, "fork"):
        print(
            "gradcell msrun: its processes are forked, which Windows cannot do; use mpiexec",
            file=sys.stderr,
        )
        return 2
    mpirun = find_mpirun()
    if mpirun is None:
        print(
            "gradcell msrun: no mpirun was found; pip install 'gradcell[mpi]' brings one",
            file=sys.stderr,
        )
        return 2
    if not os.path.exists(options.target):
        print(f"gradcell msrun: no such file: {options.target}", file=sys.stderr)
        return 2
    command = [mpirun, "-n", str(count)]
    if b"Open MPI" in subprocess.run([mpirun, "--version"], capture_output=True).stdout:
        command.append("--oversubscribe")
    if options.log_dir:
        os.makedirs(options.log_dir, exist_ok=True)
    command += [sys.executable, "-m", "gradcell.communication.worker", options.log_dir or "-"]
    return subprocess.run([*command, options.target, *options.arguments]).returncode
