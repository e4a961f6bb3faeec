"""Six newcomers type what they would, and get their answers without stumbling (bench/walks.py counts)."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "bench"))

import walks  # noqa: E402

NEEDS = {
    "physicist": ["matplotlib", "scipy"],
    "deepxde_user": ["deepxde"],
    "molecules": ["scipy"],
}


def test_all_are_run() -> None:
    assert {path.stem for path in walks.WALKS.glob("*.py")} == set(walks.HOW)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", walks.HOW)
def test_a_newcomer_does_not_stumble(name: str) -> None:
    for module in NEEDS.get(name, []):
        if find_spec(module) is None:
            pytest.skip(f"no {module}")
    found = walks.walk(name)
    assert found.stumbles == [] and len(found.answers) >= 3
