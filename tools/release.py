"""The checklist of a release, as far as a program can follow it.

    python tools/release.py 0.2.0           checks; changes nothing
    python tools/release.py 0.2.0 --tag     and sets the tag v0.2.0

What remains for a person: reading the changelog's section once more, and pushing the tag.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout


def problems(version: str) -> list[str]:
    """What stands against releasing this tree as `version`."""
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        found.append(f"{version!r} is not a version: three numbers with dots")
    package = (ROOT / "python" / "gradcell" / "__init__.py").read_text()
    if f'__version__ = "{version}"' not in package:
        found.append("python/gradcell/__init__.py has another version")
    if f"version: {version}\n" not in (ROOT / "CITATION.cff").read_text():
        found.append("CITATION.cff has another version")
    heading = f"## {version} ({date.today().isoformat()})"
    if heading not in (ROOT / "CHANGELOG.md").read_text():
        found.append(f"CHANGELOG.md has no section {heading!r}")
    if git("status", "--porcelain", "--untracked-files=no"):
        found.append("there are changes that are not committed")
    if f"v{version}" in git("tag").split():
        found.append(f"the tag v{version} is there already")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version")
    parser.add_argument("--tag", action="store_true")
    parser.add_argument("--no-checks", action="store_true", help="do not run .ci/run again")
    options = parser.parse_args()
    found = problems(options.version)
    for problem in found:
        print("not ready:", problem)
    if found:
        return 1
    if not options.no_checks and subprocess.run([".ci/run"], cwd=ROOT).returncode != 0:
        print("not ready: .ci/run fails")
        return 1
    if options.tag:
        git("tag", "-a", f"v{options.version}", "-m", f"gradcell {options.version}")
    print(f"ready: git push --follow-tags makes the wheels and publishes {options.version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
