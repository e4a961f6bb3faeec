"""Summary ops: values that a network hands to the SummaryRecord that is open, in passing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell._core import Tensor
from gradcell.base import arguments, bad_type

#: The last value of each (plugin, name), kept while a SummaryRecord is open.
_waiting: dict[tuple[str, str], np.ndarray] = {}
_open = 0


def listen(records: int) -> None:
    """Says that so many more (or fewer) SummaryRecords are open."""
    global _open
    _open += records
    if _open == 0:
        _waiting.clear()


def take() -> dict[tuple[str, str], np.ndarray]:
    """Return the values handed over since the last call, by (plugin, name)."""
    found = dict(_waiting)
    _waiting.clear()
    return found


def _summary(plugin: str, title: str) -> Callable[[Any, Any], Tensor]:
    owner = f"{title}Summary"

    def summary(name: Any, value: Any) -> Tensor:
        if not isinstance(name, str) or not name:
            bad_type(f"For '{owner}', the 'name' must be str, but got {name!r}")
        tensor = arguments.tensor(value, owner, "value")
        if _open:
            _waiting[plugin, name] = tensor.asnumpy()
        return tensor

    article = "an" if plugin[0] in "aeiou" else "a"
    summary.__doc__ = (
        f"Hands a tensor, as {article} {plugin} of this name, to the SummaryRecord that is open, and returns "
        "it. Asks for its value."
    )
    return summary


scalar_summary: Callable[[Any, Any], Tensor] = _summary("scalar", "Scalar")
image_summary: Callable[[Any, Any], Tensor] = _summary("image", "Image")
tensor_summary: Callable[[Any, Any], Tensor] = _summary("tensor", "Tensor")
histogram_summary: Callable[[Any, Any], Tensor] = _summary("histogram", "Histogram")
