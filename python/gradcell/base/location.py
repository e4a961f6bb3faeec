"""The line of the user's code, for the ends of messages."""

from __future__ import annotations

from gradcell import _core


def where() -> str:
    """The user's file and line, in brackets."""
    return f" ({_core.user_location()})"
