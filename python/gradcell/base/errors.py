"""Errors that the user made: each of these raises its kind with the text, and the user's file and line.

    if x.ndim != 2:
        bad_value(f"MatMul: a matrix is needed, but got shape {list(x.shape)}")

Where the text does not name the function that the user called, that is added. The text is only made when the
check fails. In an `except` block they take the place of the error that was caught, which is not shown.
"""

from __future__ import annotations

from typing import NoReturn

from gradcell import _core


def where() -> str:
    """The user's file and line, in brackets, for the ends of messages."""
    return f" ({_core.user_location()})"


def bad_value(text: str) -> NoReturn:
    """Raises ValueError."""
    raise ValueError(_core.located(text)) from None


def bad_type(text: str) -> NoReturn:
    """Raises TypeError."""
    raise TypeError(_core.located(text)) from None


def bad_index(text: str) -> NoReturn:
    """Raises IndexError."""
    raise IndexError(_core.located(text)) from None


def unsupported(text: str) -> NoReturn:
    """Raises NotImplementedError."""
    raise NotImplementedError(_core.located(text)) from None


def fail(text: str) -> NoReturn:
    """Raises RuntimeError: for a state that does not allow the call."""
    raise RuntimeError(_core.located(text)) from None


def bad_key(text: str) -> NoReturn:
    """Raises KeyError."""
    raise KeyError(_core.located(text)) from None
