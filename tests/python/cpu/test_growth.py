"""Recording, differentiating and planning take time in proportion to a program's size: the lines of
bench/growth.py, which prints the exponents."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _bench() -> ModuleType:
    path = Path(__file__).parents[3] / "bench" / "growth.py"
    spec = importlib.util.spec_from_file_location("growth", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["growth"] = module
    spec.loader.exec_module(module)
    return module


growth = _bench()

#: Where times of a busy machine come out; passes that look at all pairs have 2, at all triples 3.
MOST = 1.6
#: Of each pass that looked at pairs, or worse, one program in which it did.
BY_DEFAULT = (
    "Adam, first step",
    "SGD, first step",
    "arguments",
    "lines of many",
    "transposes, eager",
    "writes through a view of views",
    "transforms inside, gradient",
)


def exponent(name: str, times: float, repeats: int) -> float:
    n, make = growth.LINES[name]
    return growth.measured(make, max(8, round(n * times)), repeats, 20)[1]


@pytest.mark.parametrize("name", BY_DEFAULT)
def test_growth(name: str) -> None:
    assert any(exponent(name, 0.25, 1) < MOST for _ in range(3))


@pytest.mark.slow
@pytest.mark.parametrize("name", growth.LINES)
def test_every_line(name: str) -> None:
    assert exponent(name, 1, 3) < MOST
