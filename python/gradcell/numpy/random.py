"""numpy.random: NumPy's generators, whose arrays come as tensors; the same numbers for the same seed.

default_rng(seed) and RandomState(seed) have the methods of NumPy's, and so has this module, whose generator
is NumPy's own. Numbers are drawn where Python runs, so a function that is being recorded is refused: it
would keep them. Arguments that are tensors are read; none of them is differentiated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell._core import Tensor
from gradcell.base import fail, missing
from gradcell.compilation.prints import recording
from gradcell.numpy.conversion import _plain

__all__ = ["Generator", "RandomState", "default_rng"]


def _drawing(owner: Any, name: str) -> Any:
    """NumPy's method, of and with tensors."""
    method = getattr(owner, name)

    def draw(*args: Any, **kwargs: Any) -> Any:
        if recording():
            fail(
                f"numpy.random.{name} draws when Python runs, which a compiled function does once: "
                "draw outside and give it the numbers, or draw with ops.randn, ops.rand or ops.randint"
            )
        given = [_plain(a) for a in args]
        found = method(*given, **{k: _plain(v) for k, v in kwargs.items()})
        if name == "shuffle":
            args[0][...] = Tensor(given[0])
        return Tensor(found) if isinstance(found, np.ndarray) else found

    draw.__name__ = name
    return draw


class Generator:
    """A generator of NumPy, with its methods, whose arrays are tensors.

    generator: a numpy.random.Generator or RandomState.
    """

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _drawing(self._generator, name)


def default_rng(seed: Any = None) -> Generator:
    """NumPy's generator of that seed.

    seed: an integer, or what numpy.random.default_rng takes.
    """
    return Generator(np.random.default_rng(seed))


def RandomState(seed: Any = None) -> Generator:
    """NumPy's older generator of that seed.

    seed: an integer.
    """
    return Generator(np.random.RandomState(seed))


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not hasattr(np.random, name):
        raise missing("gradcell.numpy.random", name, dir(np.random))
    return _drawing(np.random, name)
