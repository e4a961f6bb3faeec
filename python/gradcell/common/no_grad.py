"""no_grad: values computed while it is active are constants for differentiation."""

from __future__ import annotations

import contextlib
from typing import Any

from gradcell import _core

__all__ = ["no_grad"]


class no_grad(contextlib.ContextDecorator):
    """As a context or a decorator: derivatives of what is computed inside are zero.

    Raises RuntimeError if a gradient is asked for inside.
    """

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_core.records_constants())
        _core.record_constants(True)

    def __exit__(self, *error: Any) -> None:
        _core.record_constants(self._before.pop())


_no_grad = no_grad
