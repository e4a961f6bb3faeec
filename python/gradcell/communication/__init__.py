"""Processes that work together: one process is rank 0 of a group of one, without MPI."""

from gradcell.communication import comm_func, management
from gradcell.communication.management import *  # noqa: F403

__all__ = ["comm_func", "management", *management.__all__]
__dir__ = sorted(__all__).copy
