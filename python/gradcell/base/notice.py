"""Says once that something a program asks for has no meaning here."""

from __future__ import annotations

import warnings

from gradcell.base.errors import where

_said: set[str] = set()


def once(what: str, why: str) -> None:
    """One warning for each `what`: it has no effect, because of `why`."""
    if what not in _said:
        _said.add(what)
        warnings.warn(f"{what} has no effect: {why}{where()}", RuntimeWarning, stacklevel=3)
