"""Errors that the user made: each of these raises its kind with the text, and the user's file and line.

    if x.ndim != 2:
        bad_value(f"MatMul: a matrix is needed, but got shape {list(x.shape)}")

The text is only made when the check fails.
"""

from __future__ import annotations

from typing import NoReturn

from gradcell.base.location import where


def bad_value(text: str) -> NoReturn:
    """Raises ValueError."""
    raise ValueError(text + where())


def bad_type(text: str) -> NoReturn:
    """Raises TypeError."""
    raise TypeError(text + where())


def bad_index(text: str) -> NoReturn:
    """Raises IndexError."""
    raise IndexError(text + where())


def unsupported(text: str) -> NoReturn:
    """Raises NotImplementedError."""
    raise NotImplementedError(text + where())


def fail(text: str) -> NoReturn:
    """Raises RuntimeError: for a state that does not allow the call."""
    raise RuntimeError(text + where())


def bad_key(text: str) -> NoReturn:
    """Raises KeyError."""
    raise KeyError(text + where())
