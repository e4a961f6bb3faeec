"""The processes that work together, and groups of some of them.

A process that was started alone is rank 0 of a group of one; `mpirun -n N python train.py`, srun or
`python -m gradcell msrun` start more.
"""

from __future__ import annotations

from typing import Any

from gradcell.base import bad_type, bad_value, fail
from gradcell.communication import engine
from gradcell.communication.engine import Group, processes

__all__ = [
    "HCCL_WORLD_COMM_GROUP", "MCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "GlobalComm",
    "create_group", "destroy_group", "get_comm_name", "get_group_rank_from_world_rank",
    "get_group_size", "get_local_rank", "get_local_rank_size", "get_process_group_ranks", "get_rank",
    "get_world_rank_from_group_rank", "init", "release",
]  # fmt: skip
__dir__ = sorted(__all__).copy

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"
_WORLDS = (HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP, MCCL_WORLD_COMM_GROUP)


class GlobalComm:
    """Facts about the group of all processes."""

    BACKEND = "mccl"
    WORLD_COMM_GROUP = MCCL_WORLD_COMM_GROUP
    INITED = False


_groups: dict[str, Group] = {}


def _check_group(group: Any) -> None:
    if not isinstance(group, str):
        bad_type(f"The group must be str, but got {type(group).__name__}")
    if group not in _WORLDS and group not in _groups:
        bad_value(f"There is no group {group!r}: create_group makes one")


def group_of(group: str) -> Group:
    """The group of that name. Raises TypeError, ValueError, and RuntimeError for several processes
    without init."""
    _check_group(group)
    if not GlobalComm.INITED and engine.announced() > 1:
        fail(f"This is one of {engine.announced()} processes: call communication.init() first")
    return processes.world if group in _WORLDS else _groups[group]


def has_group(name: str) -> bool:
    """Return whether create_group has made the group."""
    return name in _groups


def member_of(group: str) -> Group:
    """The same; ValueError if this process is not in the group."""
    found = group_of(group)
    if found.rank < 0:
        bad_value(
            f"rank {processes.world.rank} is not in the group {group!r}, which has the ranks {found.ranks}"
        )
    return found


def init(backend_name: str | None = None, **kwargs: Any) -> None:
    """Connects to the processes that were started with this one.

    backend_name: 'hccl', 'nccl' or 'mccl', which all stand for what the device in use has: MPI on
    the CPU, NCCL on a GPU. A second call does nothing. kwargs have no effect. Raises TypeError or
    ValueError for other names; RuntimeError where there are several processes and no mpi4py, or one
    of another MPI, or the processes run different versions.
    """
    if backend_name is not None and not isinstance(backend_name, str):
        bad_type(f"Backend name must be a string, but got {type(backend_name)}")
    if backend_name not in (None, "hccl", "nccl", "mccl"):
        bad_value(
            "For 'init', the argument 'backend_name' must be one of 'hccl', 'nccl' and 'mccl', but got "
            f"{backend_name!r}"
        )
    if not GlobalComm.INITED:
        engine.open_world()
    GlobalComm.INITED = True


def release() -> None:
    """Ends what init began, once all processes have arrived."""
    if GlobalComm.INITED:
        engine.leave()
    GlobalComm.INITED = False
    _groups.clear()


def is_initialized() -> bool:
    """Return whether init has been called."""
    return GlobalComm.INITED


def get_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """The number of this process in the group, from 0."""
    return member_of(group).rank


def get_local_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """The number of this process on its machine.

    group: the name of a group of processes.
    """
    group_of(group)
    return processes.local_rank


def get_group_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """The number of processes in a group."""
    return group_of(group).size


def get_local_rank_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """The number of processes on this machine.

    group: the name of a group of processes.
    """
    group_of(group)
    return processes.local_size


def get_process_group_ranks(group: str = GlobalComm.WORLD_COMM_GROUP) -> list[int]:
    """The numbers that the group's processes have among all processes."""
    return list(group_of(group).ranks)


def get_comm_name(group: str = GlobalComm.WORLD_COMM_GROUP) -> str:
    """The name of the group's communicator."""
    _check_group(group)
    return group


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The number among all processes of a process of the group.

    group_rank_id: the number within the group. Raises ValueError if the group has no such.
    """
    ranks = group_of(group).ranks
    if isinstance(group_rank_id, bool) or group_rank_id not in range(len(ranks)):
        bad_value(
            f"group_rank_id must be from 0 to {len(ranks) - 1}, the last of {group!r}, but got "
            f"{group_rank_id!r}"
        )
    return ranks[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The number that a process has in a group.

    world_rank_id: the number among all processes. Raises ValueError if it is not in the group.
    """
    ranks = group_of(group).ranks
    if isinstance(world_rank_id, bool) or world_rank_id not in ranks:
        bad_value(
            f"world_rank_id must be one of {ranks}, the processes of {group!r}, but got {world_rank_id!r}"
        )
    return ranks.index(world_rank_id)


def create_group(group: str, rank_ids: Any, options: Any = None) -> None:
    """Makes a group of some processes, given by their numbers among all. Every one of them must
    call this.

    rank_ids: a list of numbers. options has no effect. Raises TypeError and ValueError for a bad
    name or numbers, or a name that is taken.
    """
    if not isinstance(group, str):
        bad_type(f"The group must be str, but got {type(group).__name__}")
    if not isinstance(rank_ids, (list, tuple, range)):
        bad_type(f"create_group: rank_ids must be a list, got {rank_ids!r}")
    ranks = list(rank_ids)
    size = group_of(GlobalComm.WORLD_COMM_GROUP).size
    whole = all(isinstance(r, int) and not isinstance(r, bool) for r in ranks)
    if not ranks or not whole or len(set(ranks)) < len(ranks) or not set(ranks) <= {*range(size)}:
        what = "there is one process, number 0" if size == 1 else f"there are {size} processes"
        bad_value(f"create_group: {what}, but rank_ids is {rank_ids}")
    if group in _WORLDS or group in _groups:
        bad_value(f"create_group: there is a group {group!r} already")
    _groups[group] = engine.make_group(group, ranks)


def destroy_group(group: str) -> None:
    """Removes a group that create_group made. Raises ValueError for one that does not exist."""
    _check_group(group)
    if group not in _groups:
        bad_value(f"destroy_group: the group {group!r} of all processes stays")
    engine.drop_group(_groups.pop(group))
