"""The process's seed: what set_seed fixes, and the stream that initialisers draw from."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import numpy as np

from gradcell import _core

_seed: int | None = None
_generator: np.random.Generator | None = None
_data_seed: int | None = None  # drawn once, where no seed is set
_listeners: list[Callable[[int], None]] = []


def set_seed(seed: int) -> None:
    """Fixes all random numbers that follow: initialisers, dropout, random ops, the order of datasets,
    and those of numpy.random and of Python's random, as MindSpore's does.

    Raises TypeError unless seed is an int, ValueError below 0 or from 2^63 on.
    """
    global _seed, _generator
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
        raise TypeError(
            f"The argument 'seed' must be type of int, but got {type(seed)} "
            f"({_core.user_location()})"
        )
    if not 0 <= seed < 2**63:
        raise ValueError(
            "For 'global_seed', the 'seed' must be int and must >= 0 (and fit into 63 bits), but "
            f"got '{seed}' ({_core.user_location()})"
        )
    _seed = int(seed)
    _generator = None
    seed_others(_seed)
    for listener in _listeners:
        listener(_seed)


def seed_others(seed: int) -> None:
    """Seeds the streams of numpy.random and of Python's random."""
    random.seed(seed)
    # NumPy takes 32 bits, or an array of them.
    np.random.seed(seed if seed < 2**32 else [seed % 2**32, seed >> 32])


def get_seed() -> int | None:
    """The seed that was set last, or None before the first set_seed."""
    return _seed


def data_seed() -> int:
    """Return the seed of the order of data: the seed set last, else one drawn for this process."""
    global _data_seed
    if _seed is not None:
        return _seed
    if _data_seed is None:
        _data_seed = int.from_bytes(os.urandom(7), "little")
    return _data_seed


def on_set_seed(listener: Callable[[int], None]) -> Callable[[int], None]:
    """Has `listener(seed)` called at every set_seed from now on. Returns it: a decorator."""
    _listeners.append(listener)
    return listener


def generator() -> np.random.Generator:
    """The stream of the initialisers: it starts anew at every set_seed."""
    global _generator
    if _generator is None:
        _generator = np.random.Generator(np.random.PCG64(_seed))
    return _generator


def _get_graph_seed(op_seed: int | None, kernel_name: str) -> tuple[int, int]:
    """(the process's seed, the op's), what an op draws from: (0, 0) if neither is set."""
    return _seed or 0, op_seed or 0
