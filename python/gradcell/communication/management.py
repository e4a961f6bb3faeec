"""The processes that work together: here one, which is rank 0 of a group of one."""

from __future__ import annotations

from typing import Any

from gradcell._location import where

__all__ = [
    "HCCL_WORLD_COMM_GROUP", "MCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "GlobalComm",
    "create_group", "destroy_group", "get_comm_name", "get_group_rank_from_world_rank",
    "get_group_size", "get_local_rank", "get_local_rank_size", "get_process_group_ranks", "get_rank",
    "get_world_rank_from_group_rank", "init", "release",
]  # fmt: skip

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"


class GlobalComm:
    """What holds for the whole group."""

    BACKEND = "mccl"
    WORLD_COMM_GROUP = MCCL_WORLD_COMM_GROUP
    INITED = False


_groups: dict[str, list[int]] = {}


def _check_group(group: Any) -> None:
    if not isinstance(group, str):
        raise TypeError(f"The group must be str, but got {type(group).__name__}{where()}")
    worlds = (HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP, MCCL_WORLD_COMM_GROUP)
    if group not in worlds and group not in _groups:
        raise ValueError(f"There is no group {group!r}: create_group makes one{where()}")


def init(backend_name: str | None = None, **kwargs: Any) -> None:
    """Begins to work together: with nobody, in one process.

    backend_name: 'hccl', 'nccl' or 'mccl'. Raises TypeError or ValueError for others.
    """
    if backend_name is not None and not isinstance(backend_name, str):
        raise TypeError(f"Backend name must be a string, but got {type(backend_name)}{where()}")
    if backend_name not in (None, "hccl", "nccl", "mccl"):
        raise ValueError(
            "For 'init', the argument 'backend_name' must be one of 'hccl', 'nccl' and 'mccl', but "
            f"got {backend_name!r}{where()}"
        )
    GlobalComm.INITED = True


def release() -> None:
    """Ends what init began."""
    GlobalComm.INITED = False
    _groups.clear()


def is_initialized() -> bool:
    """Whether init has been called."""
    return GlobalComm.INITED


def get_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """This process's number in the group: 0."""
    _check_group(group)
    return 0


def get_local_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """This process's number on this machine: 0."""
    return get_rank(group)


def get_group_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """The number of processes in the group: 1."""
    _check_group(group)
    return 1


def get_local_rank_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """The number of processes of the group on this machine: 1."""
    return get_group_size(group)


def get_process_group_ranks(group: str = GlobalComm.WORLD_COMM_GROUP) -> list[int]:
    """The numbers of the group's processes: [0]."""
    _check_group(group)
    return [0]


def get_comm_name(group: str = GlobalComm.WORLD_COMM_GROUP) -> str:
    """The name of the group's communicator."""
    _check_group(group)
    return group


def _same_rank(group: str, rank: Any, name: str) -> int:
    _check_group(group)
    if rank != 0:
        raise ValueError(f"{name} must be 0: the group has one process, but got {rank!r}{where()}")
    return 0


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The number among all processes of a process of the group. Raises ValueError for any but 0."""
    return _same_rank(group, group_rank_id, "group_rank_id")


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The number in the group of a process. Raises ValueError for any but 0."""
    return _same_rank(group, world_rank_id, "world_rank_id")


def create_group(group: str, rank_ids: Any, options: Any = None) -> None:
    """A group of some processes: of this one. Raises ValueError for other processes."""
    if not isinstance(group, str):
        raise TypeError(f"The group must be str, but got {type(group).__name__}{where()}")
    if list(rank_ids) != [0]:
        raise ValueError(
            f"create_group: there is one process, number 0, but rank_ids is {rank_ids}{where()}"
        )
    _groups[group] = [0]


def destroy_group(group: str) -> None:
    """Ends a group that create_group made. Raises ValueError for one that is not there."""
    _check_group(group)
    if group not in _groups:
        raise ValueError(f"destroy_group: the group {group!r} of all processes stays{where()}")
    del _groups[group]


def __dir__() -> list[str]:
    return sorted(__all__)
