"""A name that a module does not have is answered with what to write instead."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest

from gradcell import Tensor, __version__, nn
from gradcell.base.signposts import INSTEAD

ROWS = [(m, name) for m, names in INSTEAD.items() if m.startswith("gradcell") for name in names]
NET = nn.Dense(2, 2)
OBJECTS = {"Tensor": Tensor([1.0]), "Cell": NET, "Optimizer": nn.SGD(NET.trainable_params(), 0.1)}


@pytest.mark.parametrize(("module", "name"), ROWS)
def test_a_name_of_another_package_is_answered(module: str, name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': use "):
        getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("owner", OBJECTS)
def test_an_attribute_of_another_package_is_answered(owner: str) -> None:
    x = OBJECTS[owner]
    for name in INSTEAD[owner]:
        with pytest.raises(
            AttributeError, match=rf"has no attribute '{name}'(: use | \().*test_signposts"
        ):
            getattr(x, name)
        assert not hasattr(x, name) and not hasattr(type(x), name)


def test_what_the_table_names_is_there() -> None:
    for names in INSTEAD.values():
        for text in names.values():
            for path in re.findall(r"\b(?:ops|nn|gradcell)\.[\w.]+", text):
                module, _, name = path.rpartition(".")
                full = module if module.startswith("gradcell") else f"gradcell.{module}"
                assert hasattr(importlib.import_module(full), name), path


@pytest.mark.parametrize(
    ("module", "name", "near"),
    [
        ("gradcell", "value_and_gard", "value_and_grad"),
        ("gradcell.ops", "sinn", "sin"),
        ("gradcell.ops", "matmull", "matmul"),
        ("gradcell.nn", "Dens", "Dense"),
        ("gradcell.mint", "reshpe", "reshape"),
        ("gradcell.mint.nn", "Linea", "Linear"),
        ("gradcell.mint.nn.functional", "rellu", "relu"),
        ("gradcell.numpy", "arang", "arange"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest(module: str, name: str, near: str) -> None:
    with pytest.raises(AttributeError, match=rf"did you mean .*\b{near}\b"):
        getattr(importlib.import_module(module), name)


def test_the_command_line_tells_its_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gradcell", "--version"], capture_output=True, text=True
    )
    assert done.stdout.strip() == f"gradcell {__version__}"
