"""Programs of the field, each written once for gradcell, JAX and PyTorch: see __main__.py.

A program is a function of a Library and of a source of random numbers. It returns the function to be measured
and its inputs; if @program names arguments, the gradient by them is measured too.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from inputs import Array

Made = tuple[Callable[..., Any], list[Any]]


@dataclass(frozen=True)
class Program:
    """name: for tables; wrt: the arguments to differentiate by; loop: its steps, which PyTorch runs, and
    torch.compile unrolls, one by one; tolerance: the largest error in float32, of the largest number."""

    name: str
    make: Callable[..., Made]
    wrt: tuple[int, ...]
    loop: int
    tolerance: float


#: By the name of the function that makes it.
PROGRAMS: dict[str, Program] = {}


def program(name: str, wrt: tuple[int, ...] = (), loop: int = 0, tolerance: float = 1e-3) -> Any:
    def added(make: Callable[..., Made]) -> Callable[..., Made]:
        PROGRAMS[make.__name__] = Program(name, make, wrt, loop, tolerance)
        return make

    return added


def drawn(name: str, lib: Any, dtype: str) -> Made:
    """The function of a program for a library, and its inputs: floats of this dtype, other arrays int32."""
    rng = np.random.default_rng(0)
    f, inputs = PROGRAMS[name].make(lib, lambda *shape: rng.standard_normal(shape))
    return f, [_cast(np.asarray(a), dtype) for a in inputs]


def _cast(array: Array, dtype: str) -> Array:
    return array.astype(dtype if array.dtype.kind == "f" else "int32")


for _module in ("loops", "matrices", "learning", "atoms"):
    importlib.import_module(f"field.{_module}")
