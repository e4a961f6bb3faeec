"""What the tests of the five reference documents share: both modes, and the printed text.

`both_modes` runs every test of this folder in graph mode and in PyNative mode. `documented(text)`
checks that exactly `text` was printed since the last call. The documents were printed by several releases
on several systems; the differences that are no difference in value are undone by named options:

- `three_digits`: the two on "Gradient Derivation" print exponents as `e+000` and no blank before the number,
  as the Windows C library does. Linux builds print `e+00` in the same width of 15 characters.
- `last_digit`: sums of float32 products depend on their order in the last digit, and so does the
  array's padding; numbers may differ by 2 units in the last place, blanks do not count.
  (MindSpore 2.10 on the CPU prints 1.4900001 where "Automatic Differentiation" has 1.49, for instance.)
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]\d+)?")


@pytest.fixture(autouse=True)
def both_modes(mode: int) -> None:
    pass


def two_digit_exponents(text: str) -> str:
    number = re.compile(r"(?<![\d.])(-?\d\.\d{8}e[+-])0(\d\d)")
    return number.sub(lambda match: (match[1] + match[2]).rjust(15), text)


def assert_same_but_last_digit(printed: str, expected: str) -> None:
    skeletons = [NUMBER.sub("#", text).replace(" ", "") for text in (printed, expected)]
    assert skeletons[0] == skeletons[1]
    numbers = [np.array(NUMBER.findall(text), np.float32) for text in (printed, expected)]
    np.testing.assert_array_max_ulp(*numbers, maxulp=2)


@pytest.fixture
def documented(capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    def check(text: str, *, three_digits: bool = False, last_digit: bool = False) -> None:
        printed = capsys.readouterr().out
        expected = text.strip("\n") + "\n"
        if three_digits:
            expected = two_digit_exponents(expected)
        if last_digit:
            assert_same_but_last_digit(printed, expected)
        else:
            assert printed == expected

    return check
