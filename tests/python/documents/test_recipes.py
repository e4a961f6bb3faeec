"""The conda recipe and the Dockerfile install what pyproject.toml and the README say."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import gradcell as gc

ROOT = Path(__file__).parents[3]
PACKAGING = ROOT / "packaging"
#: Packages that conda-forge has under another name.
NAMES = {"scipy-openblas32": "libopenblas"}


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    loaded: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return loaded


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    loaded: dict[str, Any] = yaml.safe_load((PACKAGING / "conda" / "recipe.yaml").read_text())
    return loaded


def as_conda(requirements: list[str]) -> set[str]:
    """Requirements such as "numpy>=1.23" as conda writes them."""
    split = [re.fullmatch(r"([\w-]+)(.*)", text) for text in requirements]
    return {f"{NAMES.get(found[1], found[1])} {found[2]}" for found in split if found}


def test_the_recipe_has_the_packages_version_and_summary(
    project: dict[str, Any], recipe: dict[str, Any]
) -> None:
    assert recipe["context"]["version"] == gc.__version__
    assert recipe["about"]["summary"] == project["project"]["description"]
    assert recipe["about"]["license"] == project["project"]["license"]
    for file in recipe["about"]["license_file"]:
        assert (ROOT / file).exists(), file


def test_the_recipe_needs_what_the_package_needs(
    project: dict[str, Any], recipe: dict[str, Any]
) -> None:
    python = f"python {project['project']['requires-python']}"
    needs = recipe["requirements"]
    assert set(needs["run"]) == as_conda(project["project"]["dependencies"]) | {python}
    building = {text for text in needs["build"] + needs["host"] if "compiler" not in text}
    assert building == as_conda(project["build-system"]["requires"]) | {python, "pip"}


def test_activating_the_environment_names_its_blas(recipe: dict[str, Any], tmp_path: Path) -> None:
    written = "\n".join(recipe["build"]["script"][1:])

    def blas(**environment: str) -> str:
        says = '\n. "$PREFIX/etc/conda/activate.d/gradcell.sh"; printf %s "$GRADCELL_BLAS"'
        given = {"PATH": os.environ["PATH"], "PREFIX": str(tmp_path), "CONDA_PREFIX": "/env"}
        return subprocess.check_output(
            ["sh", "-ec", written + says], env=given | environment, text=True
        )

    assert blas() == "/env/lib/libopenblas.so.0"
    assert blas(GRADCELL_BLAS="/another.so") == "/another.so"


def test_the_dockerfile_runs_the_readmes_first_command() -> None:
    lines = (PACKAGING / "Dockerfile").read_text().splitlines()
    readme = (ROOT / "README.md").read_text()
    first = re.search(r"^    (python3 -m venv .*) && \.venv/bin/gradcell demo$", readme, re.M)
    levels = re.search(
        r"`(--config-settings=\S+)`, as the published wheels do", " ".join(readme.split())
    )
    assert first and levels
    assert f"RUN {first[1]} {levels[1]}" in lines
    assert 'CMD ["gradcell", "demo"]' in lines
