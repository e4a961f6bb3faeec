"""The folders of csrc are floors: each includes only those below it, and no op is known all over.

What this needs are the sources, so it holds for a checkout.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CSRC = Path(__file__).parents[2] / "csrc"

#: Each folder, and the ones that it may include besides itself.
FLOORS = {
    "base": "",
    "math": "base",
    "ir": "base math",
    "ops": "base math ir",
    "ad": "base math ir ops",
    "plan": "base math ir ops",
    "cpu": "base math ir ops plan",
    "cuda": "base math ir ops plan",
    "runtime": "base math ir ops ad plan cpu cuda",
    "bind": "base math ir ops ad plan cpu cuda runtime",
}

SOURCES = sorted(p for p in CSRC.rglob("*") if p.suffix in (".h", ".cpp", ".def", ".cuh"))


def code(path: Path) -> str:
    return re.sub(r"//.*", "", path.read_text())


def test_every_folder_is_a_floor() -> None:
    assert {p.name for p in CSRC.iterdir() if p.is_dir()} == set(FLOORS)


@pytest.mark.parametrize("folder", FLOORS)
def test_a_floor_includes_what_is_below_it(folder: str) -> None:
    allowed = {folder, *FLOORS[folder].split()}
    wrong = [
        f"{path.relative_to(CSRC)} includes {name}"
        for path in SOURCES
        if path.relative_to(CSRC).parts[0] == folder
        for name in re.findall(r'#include "([\w./]+)"', path.read_text())
        if "/" in name and name.split("/")[0] not in allowed
    ]
    assert wrong == []


def test_a_structured_op_is_known_in_few_places() -> None:
    """In its family's file, and in at most two others: the table of ops is one."""
    table = (CSRC / "ir" / "ops.def").read_text()
    texts = {path: code(path) for path in SOURCES}
    for op in re.findall(r"^STRUCTURED\((\w+)", table, re.M):
        places = [str(p.relative_to(CSRC)) for p in SOURCES if re.search(rf"\b{op}\b", texts[p])]
        family = [p for p in places if f"SPEC({op}," in texts[CSRC / p]]
        assert len(family) == 1, op
        assert family[0].startswith("ops/")
        assert len(places) <= 3, f"{op}: {places}"
