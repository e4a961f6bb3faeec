"""Which cases of tests that are marked one_in a run takes: conftest.py."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import pytest


class Draw(NamedTuple):
    """Which cases of tests marked one_in(n) run on a day: every one of them on one of n days that follow."""

    day: int
    leaves_out: bool  # the others are not even made, which takes longer than to run many

    def of(self, test: str, calls: Sequence[Any], n: int, by: str = "") -> set[int]:
        """The numbers of the cases that are drawn, at least one of those with the same `by`."""
        groups: dict[str, list[int]] = {}
        name, _, attribute = by.partition(".")
        for number, call in enumerate(calls):
            value = {**getattr(call, "funcargs", {}), **call.params}[name] if by else ""
            key = attrgetter(attribute)(value) if attribute else value
            assert isinstance(key, str), f"{test}: name cases by a text, not by {type(key)}"
            groups.setdefault(key, []).append(number)
        return {
            number
            for key, group in groups.items()
            for k, number in enumerate(group, self.day + zlib.crc32(f"{test} {key}".encode()))
            if k % (min(n, len(group)) if by else n) == 0
        }


DRAWN = pytest.StashKey[Draw]()
