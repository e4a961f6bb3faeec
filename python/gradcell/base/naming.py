"""Other names of the inputs of layers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from gradcell.base.errors import bad_type

#: Names by which MindSpore's layers, and those here, know the same input.
_INPUTS = [
    set(names.split())
    for names in (
        "x input input_x input_data", "logits input", "labels label target", "gradients grads",
        "logits_x1 input1", "logits_x2 input2", "loss_scale _",
    )
]  # fmt: skip


@functools.cache
def other_names(construct: Callable[..., Any]) -> dict[str, str]:
    """Keywords that the construct of a layer of this package takes besides its own: {another name: its}."""
    own = inspect.signature(construct).parameters
    return {
        other: name
        for name in own
        for group in _INPUTS
        if name in group
        for other in group - {*own}
    }


def by_own_names(construct: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments by the names of the construct; of a program's own layers as they are.

    Raises TypeError for an input that is given twice.
    """
    if not str(getattr(construct, "__module__", "")).startswith("gradcell."):
        return given
    names = other_names(construct)
    found: dict[str, Any] = {}
    for name, value in given.items():
        own = names.get(name, name)
        if own in found:
            first = next(n for n in given if names.get(n, n) == own)
            bad_type(
                f"construct() got the same input twice, as {first!r} and as {name!r}: give one"
            )
        found[own] = value
    return found
