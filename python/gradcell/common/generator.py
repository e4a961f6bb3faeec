"""Random generators as objects: the process's own one, and the state of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell._core import Tensor
from gradcell._location import where
from gradcell.common import seed as _seed
from gradcell.ops.random_state import random_state, set_random_state

__all__ = [
    "Generator", "default_generator", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state",
]  # fmt: skip


class Generator:
    """The process's random generator: every object of this class is it.

    Random ops draw from the process's streams; a generator given to one is taken for them.
    """

    def manual_seed(self, seed: int) -> Generator:
        """set_seed. Returns itself."""
        _seed.set_seed(seed)
        return self

    def seed(self) -> int:
        """Sets a seed that the system's randomness gives, and returns it."""
        chosen = int(np.random.SeedSequence().generate_state(1)[0])
        _seed.set_seed(chosen)
        return chosen

    def initial_seed(self) -> int:
        """The seed set last, 0 if none was."""
        return _seed.get_seed() or 0

    def get_state(self) -> Tensor:
        """The state of all random generators, uint8."""
        return Tensor(np.frombuffer(random_state().encode(), np.uint8).copy())

    def set_state(self, state: Any) -> None:
        """Puts the random generators into a state that get_state gave. Raises ValueError for others."""
        try:
            set_random_state(bytes(bytearray(state.asnumpy())).decode())
        except (AttributeError, ValueError, KeyError) as error:
            raise ValueError(f"set_state: this is no state of get_state's{where()}") from error


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """set_seed. Returns the generator."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Sets a seed that the system's randomness gives, and returns it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed set last, 0 if none was."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of all random generators, uint8."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Puts the random generators into a state that get_rng_state gave."""
    default_generator.set_state(state)
