"""Random generators as objects: the process's own one, and the state of all of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradcell._core import Tensor, int64
from gradcell.base import arguments, seed as _seed
from gradcell.ops.random.state import get_rng_state, set_rng_state

__all__ = [
    "Generator", "default_generator", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state",
]  # fmt: skip


class Generator:
    """The process's random generator: every object of this class is it.

    Random ops draw from the process's streams; a generator given to one is taken for them.
    """

    _offset = 0

    def _step(self, step: Tensor) -> tuple[Tensor, Tensor]:
        """(the seed, how many numbers were asked for before); step: how many now."""
        before = self._offset
        self._offset += int(arguments.tensor(step, "Generator", "step"))
        return Tensor(self.initial_seed(), int64), Tensor(before, int64)

    def manual_seed(self, seed: int) -> Generator:
        """Sets the seed of all random numbers: set_seed under PyTorch's name. Returns itself.

        seed: an integer.
        """
        _seed.set_seed(seed)
        self._offset = 0
        return self

    def seed(self) -> int:
        """Sets a seed that the system's randomness gives, and returns it."""
        chosen = int(np.random.SeedSequence().generate_state(1)[0])
        _seed.set_seed(chosen)
        return chosen

    def initial_seed(self) -> int:
        """The seed that was set last, or 0 if none was."""
        return _seed.get_seed() or 0

    def get_state(self) -> Tensor:
        """get_rng_state: the state of all random generators, uint8."""
        return get_rng_state()

    def set_state(self, state: Tensor) -> None:
        """set_rng_state: puts all random generators into a state that get_state gave."""
        set_rng_state(state)


default_generator: Generator = Generator()


manual_seed: Callable[[int], Generator] = default_generator.manual_seed
seed: Callable[[], int] = default_generator.seed
initial_seed: Callable[[], int] = default_generator.initial_seed
