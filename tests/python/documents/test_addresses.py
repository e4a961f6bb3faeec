"""Before a release the README's links and pyproject's addresses name the repository (tools/addresses.py)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "tools"))

import addresses  # noqa: E402

ADDRESS, TAG = "https://host.example/owner/name", "v0.2.0"


def test_links_and_pictures_are_absolute() -> None:
    text = "[a](docs/a.md#part), ![b](b.png), [c](https://x.example/c), [d](#d)"
    assert addresses.absolute(text, ADDRESS, TAG) == (
        f"[a]({ADDRESS}/blob/{TAG}/docs/a.md#part), ![b]({ADDRESS}/raw/{TAG}/b.png), "
        "[c](https://x.example/c), [d](#d)"
    )


def test_no_relative_link_of_the_readme_is_left() -> None:
    readme = (ROOT / "README.md").read_text()
    made = addresses.absolute(readme, ADDRESS, TAG)
    links = re.findall(r"\]\(([^)\s]+)\)", made)
    assert len(links) > 10 and all(link.startswith("https://") for link in links)
    for link in links:  # they lead to files that there are
        place = re.sub(rf"^{ADDRESS}/(?:raw|blob)/{TAG}/", "", link).partition("#")[0]
        assert place.startswith("https://") or (ROOT / place).exists(), link


def test_the_package_names_its_addresses() -> None:
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    text = (ROOT / "pyproject.toml").read_text()
    made = tomllib.loads(addresses.with_urls(text, ADDRESS, TAG))
    urls = made["project"].pop("urls")
    assert made == tomllib.loads(text)
    assert urls["Repository"] == ADDRESS and urls["Issues"] == f"{ADDRESS}/issues"
