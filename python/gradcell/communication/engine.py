"""The processes that were started together: found, opened through mpi4py, and left again.

MPI's functions are called by the core, through their addresses in the library that mpi4py uses: the
MPI that mpi4py was built for is the one that does the work. A process that was started alone is a
group of one, and needs no MPI.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import hashlib
import importlib
import os
import socket
import stat
import sys
import time
import traceback
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from gradcell import _core
from gradcell.base import fail, unsupported

_FUNCTIONS = (
    "MPI_Iallreduce MPI_Ireduce MPI_Ireduce_scatter_block MPI_Iallgather MPI_Ialltoall MPI_Ibcast "
    "MPI_Ibarrier MPI_Isend MPI_Irecv MPI_Test MPI_Cancel MPI_Request_free MPI_Op_create "
    "MPI_Error_string"
).split()


def _mpi_type(dtype: _core.DType) -> str:
    """MPI's name for elements; narrow floats are moved as integers, reduced as float32."""
    if dtype.is_narrow_float:
        return f"INT{8 * dtype.itemsize}_T"
    named = {"bool": "UINT8_T", "float32": "FLOAT", "float64": "DOUBLE"}
    return named.get(dtype.name) or f"{dtype.name.upper()}_T"


#: In the order of the core's dtypes.
_DTYPES = [_mpi_type(dtype) for dtype in _core.dtypes() if not dtype.is_complex]
#: Where launchers say how many processes they have started.
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "WORLD_SIZE", "SLURM_NTASKS")
#: What is set beside it for a process that was launched, where others may set the size too.
_BESIDE = {"SLURM_NTASKS": "SLURM_STEP_ID", "WORLD_SIZE": "RANK"}
_INSTALL = "pip install 'gradcell[mpi]'"
#: Seconds that a process which failed waits for the others' messages before it ends them all.
_LINGER = 5.0
#: Seconds that it waits, at most, for the launcher to read what was printed, and a moment that the
#: launcher has to pass it on.
_READING, _PASSING_ON = 2.0, 0.05


@dataclass
class Group:
    """Processes that work together."""

    name: str
    ranks: list[int]  #: their numbers among all processes
    rank: int  #: this process's number in the group; -1: it is none of them
    number: int = -1  #: the core's; -1: a group of one, which exchanges nothing
    comm: Any = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Return the number of processes."""
        return len(self.ranks)


class Processes:
    """All processes of the run: `world`, and those of them on this machine."""

    def __init__(self) -> None:
        self.world: Group = Group("the world", [0], 0)
        self.local_rank: int = 0
        self.local_size: int = 1
        self.mpi: Any = None
        self.failure: str | None = None


processes: Processes = Processes()


def announced() -> int:
    """Return the number of processes that the launcher says it has started; 1 if there was no
    launcher."""
    for name in _SIZES:
        value = os.environ.get(name, "")
        if value.isdigit() and _BESIDE.get(name, name) in os.environ:
            return int(value)
    return 1


def announced_rank() -> int:
    """This process's number, as the launcher says; 0 if there was none."""
    for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "RANK", "SLURM_PROCID"):
        value = os.environ.get(name, "")
        if value.isdigit() and announced() > 1:
            return int(value)
    return 0


def _import() -> Any:
    try:
        from mpi4py import MPI
    except ImportError as error:
        fail(
            f"communication.init: this is one of {announced()} processes, but mpi4py cannot be "
            f"imported ({error}). {_INSTALL} brings it with an MPI; on a cluster install mpi4py for "
            "the cluster's own"
        )
    return MPI


def _library(mpi: Any) -> str:
    return str(mpi.Get_library_version()).splitlines()[0].replace("\t", " ").strip()


def _addresses(mpi: Any) -> dict[str, int]:
    library = ctypes.CDLL(mpi.__file__)
    found = {}
    for name in _FUNCTIONS:
        address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        assert address is not None
        found[name] = address
    return found


def _handle(mpi: Any, thing: Any) -> int:
    """Return the C handle of an MPI object: an int or a pointer."""
    value = int(mpi._handleof(thing))
    return value - (1 << 64) if value >= 1 << 63 else value


def open_world() -> None:
    """Joins the processes that were started with this one. Raises RuntimeError that says what is
    missing or does not fit."""
    expected = announced()
    if expected == 1 or processes.mpi is not None:
        return
    if "PMI_SIZE" not in os.environ and "WORLD_SIZE" in os.environ and _core.device_in_use() >= 0:
        _open_by_address(expected)
        return
    mpi = _import()
    world = mpi.COMM_WORLD.Dup()
    if world.size != expected and "SLURM_NTASKS" not in os.environ:
        fail(
            f"communication.init: {expected} processes were started, but mpi4py's MPI ({_library(mpi)}) sees "
            f"{world.size}: the launcher belongs to another MPI. Use the mpirun of mpi4py's, or `python -m "
            "gradcell msrun`"
        )
    if mpi.Query_thread() < mpi.THREAD_SERIALIZED:
        fail(
            "communication.init: MPI was initialised for one thread alone (MPI_THREAD_SINGLE or FUNNELED); "
            "let mpi4py initialise it"
        )
    reductions = (mpi.SUM, mpi.PROD, mpi.MAX, mpi.MIN)
    alarms = world.Dup()
    _core.communication.open(
        _addresses(mpi),
        {
            "dtypes": [_handle(mpi, getattr(mpi, t)) for t in _DTYPES],
            "reductions": [_handle(mpi, op) for op in reductions],
            "bytes": _handle(mpi, mpi.BYTE),
            "world": _handle(mpi, world),
            "alarms": _handle(mpi, alarms),
            "any_source": mpi.ANY_SOURCE,
            "size": world.size,
            "rank": world.rank,
        },
    )
    processes.mpi = mpi
    processes.world = Group("the world", list(range(world.size)), world.rank, comm=(world, alarms))
    processes.world.number = _core.communication.add_group(
        _handle(mpi, world), _handle(mpi, alarms), world.size, world.rank, "the world"
    )
    local = world.Split_type(mpi.COMM_TYPE_SHARED)
    processes.local_rank, processes.local_size = local.rank, local.size
    _share_processors(local)
    neighbours = dict(local.allgather((world.rank, os.getpid())))
    neighbours.pop(world.rank)
    _core.communication.set_neighbours(neighbours)
    local.Free()
    _join_gpus(processes.world, lambda id: world.bcast(id, 0))
    seconds = os.environ.get("GRADCELL_COLLECTIVE_TIMEOUT")
    if seconds:
        _core.communication.set_patience(float(seconds))
    _compare(world)
    _watch()


# GPUs --------------------------------------------------------------------------------------------


def _join_gpus(group: Group, shared: Callable[[bytes], bytes]) -> None:
    """Brings the processes' GPUs together, if they compute on GPUs: NCCL's id of the group is made by
    its first process, and `shared` gives it to the others."""
    if _core.device_in_use() < 0:
        return
    if group is processes.world and processes.local_size > 1 and _core.device_in_use() == 0:
        devices = len(_core.cuda_driver_info()["devices"])
        context = importlib.import_module("gradcell.context")  # which has names of this package
        context.set_context(device_id=processes.local_rank % devices)
    _core.nccl_version()  # opens it: without NCCL no process waits for another
    mine = _core.nccl_unique_id() if group.rank == 0 else b""
    _core.nccl_add_group(group.number, shared(mine), group.size, group.rank, _core.device_in_use())


def _open_by_address(size: int) -> None:
    """Without MPI: rank 0 listens at the address that a launcher like torchrun gives, for NCCL's id
    to go to the others."""
    rank = announced_rank()
    processes.local_rank = int(os.environ.get("LOCAL_RANK", rank))
    processes.local_size = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    processes.world = Group("the world", list(range(size)), rank)
    processes.world.number = _core.communication.add_group(0, 0, size, rank, "the world")
    place = (os.environ.get("MASTER_ADDR", "127.0.0.1"), _port())
    _join_gpus(processes.world, lambda mine: _from_rank_0(mine, rank, size, place))


def _port() -> int:
    """The launcher itself may listen at MASTER_PORT: the next is taken, or GRADCELL_PORT."""
    return int(os.environ.get("GRADCELL_PORT", int(os.environ.get("MASTER_PORT", 29500)) + 1))


def _from_rank_0(mine: bytes, rank: int, size: int, place: tuple[str, int]) -> bytes:
    """Rank 0's bytes, over TCP. Raises RuntimeError where it cannot be reached for a minute."""
    end = time.monotonic() + 60
    if rank == 0:
        with socket.create_server(("", place[1])) as server:
            server.settimeout(60)
            for k in range(size - 1):
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    fail(
                        f"communication.init: {size - 1 - k} of {size} processes did not connect to "
                        f"port {place[1]} within 60 s"
                    )
                with connection:
                    connection.sendall(mine)
        return mine
    while True:
        try:
            with socket.create_connection(place, timeout=60) as connection:
                return connection.makefile("rb").read()
        except OSError as error:
            if time.monotonic() > end:
                fail(
                    f"communication.init: rank 0 cannot be reached at {place[0]}:{place[1]}: {error}"
                )
            time.sleep(0.1)


def _share_processors(local: Any) -> None:
    """Processes that may run on the same processors take equal parts of them, unless told
    otherwise."""
    if hasattr(os, "sched_getaffinity"):
        mine = tuple(sorted(os.sched_getaffinity(0)))
    else:
        mine = tuple(range(os.cpu_count() or 1))
    sharing = sum(other == mine for other in local.allgather(mine))
    if not os.environ.get("GRADCELL_NUM_THREADS") and _core.max_threads() == len(mine):
        _core.set_max_threads(max(1, len(mine) // sharing))


def _compare(world: Any) -> None:
    """Raises RuntimeError where the processes run different versions; warns of other programs."""
    __version__ = sys.modules["gradcell"].__version__
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    text = b""
    if script:
        with contextlib.suppress(OSError), open(script, "rb") as file:
            text = file.read()
    mine = (__version__, sys.version.split()[0], hashlib.sha256(text).hexdigest())
    found = world.allgather(mine)
    for place, what in enumerate(("gradcell", "Python")):
        odd = [r for r, other in enumerate(found) if other[place] != found[0][place]]
        if odd:
            fail(
                f"communication.init: rank 0 runs {what} {found[0][place]}, rank {odd[0]} "
                f"{found[odd[0]][place]}: all processes must run the same"
            )
    odd = [r for r, other in enumerate(found) if other[2] != found[0][2]]
    if odd and world.rank == 0:
        warnings.warn(
            f"communication.init: rank {odd[0]} runs another program than rank 0, or another "
            "version of it",
            RuntimeWarning,
            stacklevel=4,
        )


def say(text: str) -> None:
    """Prints progress: rank 0 does, for all."""
    if processes.world.rank == 0:
        print(text, flush=True)


# Groups ------------------------------------------------------------------------------------------


def make_group(name: str, ranks: list[int]) -> Group:
    """A group of some of the processes: called by each of them."""
    world = processes.world
    if len(ranks) == 1 or world.rank not in ranks:
        return Group(name, ranks, ranks.index(world.rank) if world.rank in ranks else -1)
    if world.comm is None:
        unsupported(f"create_group: groups of some processes need MPI ({_INSTALL})")
    comm, _ = world.comm
    some = comm.group.Incl(ranks)
    made = comm.Create_group(some, zlib.crc32(name.encode()) % 32749 + 8)
    some.Free()
    agreements = made.Dup()
    group = Group(name, ranks, made.rank, comm=(made, agreements))
    handles = (_handle(processes.mpi, made), _handle(processes.mpi, agreements))
    group.number = _core.communication.add_group(*handles, made.size, made.rank, f"group {name!r}")
    _join_gpus(group, lambda id: made.bcast(id, 0))
    return group


def drop_group(group: Group) -> None:
    """Ends a group."""
    if group.number >= 0:
        _core.communication.remove_group(group.number)
        if _core.device_in_use() >= 0:
            _core.nccl_remove_group(group.number, _core.device_in_use())


# Ends --------------------------------------------------------------------------------------------


def _watch() -> None:
    """From now on the others hear of this process's end, good or bad."""
    before = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        before(kind, value, trace)
        if _core.communication.is_open() and processes.failure is None:
            _wait_for_readers()
            processes.failure = traceback.format_exception_only(kind, value)[-1].strip()
            first = _core.communication.first_alarm()  # who failed first is told that it was heard
            with contextlib.suppress(RuntimeError):
                _core.communication.alarm(processes.failure, first)

    sys.excepthook = hook
    atexit.register(leave)


def leave() -> None:
    """Ends working together: waits until all processes are here. Where one failed, all end."""
    if not _core.communication.is_open():
        return
    if processes.failure is None:
        try:
            _core.communication.close()
        except RuntimeError as error:
            processes.failure = str(error)
            print(f"rank {processes.world.rank}: {error}", file=sys.stderr, flush=True)
            _wait_for_readers()
            with contextlib.suppress(RuntimeError):
                _core.communication.alarm(str(error), _core.communication.first_alarm())
        else:
            processes.mpi, processes.world = None, Group("the world", [0], 0)
            return
    end = time.monotonic() + _LINGER
    while time.monotonic() < end and _core.communication.alarms() < processes.world.size - 1:
        time.sleep(0.01)
    _wait_for_readers()
    time.sleep(_PASSING_ON)
    processes.mpi.COMM_WORLD.Abort(1)


def _wait_for_readers() -> None:
    """Flushes what was printed, and waits until it was read: when MPI ends the processes, what lies
    in a pipe to their launcher is lost. So a process does this before it says that it failed."""
    if sys.platform == "win32":
        return
    import fcntl
    import termios

    end = time.monotonic() + _READING
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or of another kind
            stream.flush()
            unread = bytearray(4)
            while stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode) and time.monotonic() < end:
                fcntl.ioctl(stream.fileno(), termios.FIONREAD, unread)
                if not int.from_bytes(unread, sys.byteorder):
                    break
                time.sleep(0.001)


def report() -> list[tuple[str, str]]:
    """Return the lines of `python -m gradcell info` about MPI: (name, finding). MPI gives its
    version without being started, which could fail, or wait for a network."""
    try:
        import mpi4py

        if "mpi4py.MPI" not in sys.modules:
            mpi4py.rc.initialize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        return [("MPI", f"missing: {error} ({_INSTALL})")]
    return [("MPI", f"{_library(MPI)}, through mpi4py {mpi4py.__version__}")]
