"""What the tests of the five reference documents share: both modes, and the printed text.

`mode` runs every test of this folder in graph mode and in PyNative mode. `documented(text)` checks
that exactly `text` was printed since the last call. The documents were printed by several releases
on several systems; the differences that are no difference in value are undone by named options:

- `three_digits`: documents 000 and 002 print exponents as `e+000` and no blank before the number,
  as the Windows C library does. Linux builds print `e+00` in the same width of 15 characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

import gradcell as ms


@pytest.fixture(params=["graph", "pynative"], autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[int]:
    before = ms.get_context("mode")
    mode = ms.GRAPH_MODE if request.param == "graph" else ms.PYNATIVE_MODE
    ms.set_context(mode=mode)
    yield mode
    ms.set_context(mode=before)


def two_digit_exponents(text: str) -> str:
    number = re.compile(r"(?<![\d.])(-?\d\.\d{8}e[+-])0(\d\d)")
    return number.sub(lambda match: (match[1] + match[2]).rjust(15), text)


@pytest.fixture
def documented(capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    def check(text: str, *, three_digits: bool = False) -> None:
        expected = text.strip("\n") + "\n"
        if three_digits:
            expected = two_digit_exponents(expected)
        assert capsys.readouterr().out == expected

    return check
