"""Puts the repository's address into README.md and pyproject.toml, for a release: the README is also the
package's page, where relative links and pictures lead nowhere.

    python tools/addresses.py https://HOST/OWNER/NAME v0.2.0

The sources do not name a host; the workflow of the release knows where it runs. Changes both files in place.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def absolute(text: str, address: str, tag: str) -> str:
    """Markdown whose relative links are absolute: pictures as files, all else as pages."""

    def link(found: re.Match[str]) -> str:
        kind = "raw" if found["picture"] else "blob"
        return f"{found['picture']}[{found['text']}]({address}/{kind}/{tag}/{found['place']})"

    pattern = r"(?P<picture>!?)\[(?P<text>[^]]*)\]\((?P<place>(?![a-z]+:|#)[^)\s]+)\)"
    return re.sub(pattern, link, text)


def with_urls(text: str, address: str, tag: str) -> str:
    """pyproject.toml with a table of addresses."""
    if "[project.urls]" in text:
        raise ValueError("pyproject.toml has [project.urls] already")
    urls = {
        "Repository": address,
        "Documentation": f"{address}/blob/{tag}/docs/index.md",
        "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }
    table = "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    return text.replace("[project.scripts]", f"[project.urls]\n{table}\n[project.scripts]")


def main(address: str, tag: str) -> None:
    for name, change in (("README.md", absolute), ("pyproject.toml", with_urls)):
        path = ROOT / name
        path.write_text(change(path.read_text(), address.rstrip("/"), tag))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("address", help="the repository's address, with its host")
    parser.add_argument("tag", help="the release's tag")
    main(**vars(parser.parse_args()))
