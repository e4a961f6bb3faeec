"""The cases as each framework's users write them.

A module has `build(kind, params, variant)`, which gives a Step, or None where the framework has no
such case.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from inputs import Array

#: How many losses of a training run are compared.
CHECKED_STEPS = 5


@dataclass(frozen=True)
class Step:
    """call: runs once and returns when the result is there. values: its result as NumPy arrays.
    trains: a call changes the state, so that the results of several calls are compared."""

    call: Callable[[], Any]
    values: Callable[[Any], list[Array]]
    trains: bool = False

    def check_values(self) -> list[Array]:
        if not self.trains:
            return self.values(self.call())
        return [a for _ in range(CHECKED_STEPS) for a in self.values(self.call())]


def build(framework: str, kind: str, params: Mapping[str, Any], variant: str) -> Step | None:
    if kind == "field":
        field: Step = importlib.import_module("field.libraries").build(framework, params, variant)
        return field
    module = importlib.import_module(f"steps.{framework}_steps")
    made: Step | None = module.build(kind, dict(params), variant)
    return made
