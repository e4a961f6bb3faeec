"""Every public name says what it is: modules, functions, classes, their methods and properties."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gradcell as gc
from gradcell.base import vocabulary

#: Namespaces of ops and of their other spellings.
SPACES = "ops mint mint.nn.functional mint.linalg mint.special numpy numpy.fft scipy.linalg".split()
#: Words that are arguments wherever they stand without an article.
ARGUMENTS = "axis dim dim0 dim1 keepdim keepdims keep_dims ddof correction input_x input_y".split()
#: A docstring begins with a verb ("Return ...") or a noun, not with one of these.
QUESTIONS = re.compile(r"(?:What|How|Where|Which|Whether)\b")

MODULES = ["gradcell"] + [
    m.name
    for m in pkgutil.walk_packages(gc.__path__, "gradcell.")
    if not any(part.startswith("_") for part in m.name.split("."))
    and (m.name != "gradcell.deepxde" or importlib.util.find_spec("deepxde"))
]


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    for name in names:
        value = getattr(module, name)
        home = getattr(value, "__module__", None) or ""
        exported = hasattr(module, "__path__") and home.startswith("gradcell")
        if (exported or home == module.__name__) and (
            inspect.isroutine(value) or inspect.isclass(value)
        ):
            yield name, value


def text(value: Any) -> str:
    """The docstring without the signatures that pybind11 puts before it."""
    doc = inspect.getdoc(value) or ""
    return re.sub(
        r"^(\d+\. )?\w+\(.*\) -> .*$|^Overloaded function\.$", "", doc, flags=re.M
    ).strip()


def members(cls: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(cls).items():
        kinds = (property, staticmethod, classmethod)
        if not name.startswith("_") and (callable(value) or isinstance(value, kinds)):
            yield name, getattr(cls, name) if isinstance(value, kinds[1:]) else value


@pytest.mark.parametrize("name", MODULES)
def test_public_names_have_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    missing = [] if text(module) else [name]
    for label, value in public(module):
        own = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
        if not own or text(value) in ("", f"{label}."):
            missing.append(label)
        if inspect.isclass(value):
            missing += [f"{label}.{n}" for n, v in members(value) if not text(v)]
    assert not missing, f"without a docstring in {name}: {', '.join(missing)}"


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    """Private ones too, as the files have them."""
    found = [
        f"{path}: {line}"
        for path in Path(gc.__path__[0]).rglob("*.py")
        for line in re.findall(r'^ *r?"""(\S.*)', path.read_text(), re.M)
    ]
    assert len(found) > 3000
    assert [line for line in found if QUESTIONS.match(line.partition(": ")[2])] == []


def test_docstrings_made_of_tables_begin_so_too() -> None:
    """Of ops by their rows, of spellings, of primitives: as help() shows them."""
    found: list[tuple[str, str]] = []
    for module in MODULES:
        for name, value in public(importlib.import_module(module)):
            found.append((f"{module}.{name}", text(value)))
            if inspect.isclass(value):
                found += [(f"{module}.{name}.{n}", text(v)) for n, v in members(value)]
    assert len(found) > 4000
    assert [name for name, text in found if QUESTIONS.match(text)] == []


def mistaken(parameters: Collection[str], text: str, known: Collection[str]) -> set[str]:
    """Arguments that a docstring speaks of and the function does not have."""
    described = re.findall(r"(?:^|(?<=[.;]\s))(\w+(?:, \w+)*): ", text, re.M)
    named = {word for words in described for word in words.split(", ")} & {*known}
    article = r"(?<!\ban )(?<!\ba )(?<!new )(?<!the )(?<!each )(?<!every )(?<!last )"
    named |= {*re.findall(rf"{article}\b({'|'.join(ARGUMENTS)})\b", text)}
    named |= {*re.findall(r"\b(?:dtype|shape) of ([b-z])\b", text)}
    if "dtype says" in text:
        named.add("dtype")
    return named - {*parameters}


def test_docstrings_speak_of_the_functions_own_arguments() -> None:
    modules = {space: importlib.import_module(f"gradcell.{space}") for space in SPACES}
    functions = {
        f"{space}.{name}": (inspect.signature(value).parameters, inspect.getdoc(value) or "")
        for space, module in modules.items()
        for name in module.__all__
        if inspect.isroutine(value := getattr(module, name))
    }
    known = {name for parameters, _ in functions.values() for name in parameters}
    assert len(functions) > 1000
    wrong = {n: found for n, (p, text) in functions.items() if (found := mistaken(p, text, known))}
    assert wrong == {"numpy.apply_over_axes": {"axis"}}  # func's


def test_a_docstring_of_anothers_arguments_is_found() -> None:
    known = {"x", "axis", "dim", "dtype", "ddof", "mode"}
    for text in (
        "Sums along axis.",
        "Of x.\n\nmode: one.",
        "Sum in the dtype of x, unless dtype says.",
    ):
        assert mistaken(["dim"], text, known)
    assert not mistaken(["dim"], "Along dim.\n\ndim: the axis.", known)


def test_help_explains_the_arguments_that_classes_share() -> None:
    """Once, also where the docstring does."""
    rows = inspect.getdoc(gc.dataset.MnistDataset) or ""
    assert "shard_id: which of num_shards parts is taken." in " ".join(rows.split())
    for text in (rows, inspect.getdoc(gc.nn.Dense) or "", gc.nn.Dense(2, 3).__doc__ or ""):
        described = re.findall(r"(?:^|(?<=[.;]\s))(\w+): ", text, re.M)
        assert len(described) == len(set(described)) > 2
    assert [c.__doc__ for c in (type("Own", (gc.nn.Dense,), {}), type("Own", (), {}))] == [
        None,
        None,
    ]


def test_each_row_of_the_vocabulary_explains_arguments_of_several_classes() -> None:
    classes = {
        value: " ".join((inspect.getdoc(value) or "").split())
        for module in MODULES
        for _, value in public(importlib.import_module(module))
        if inspect.isclass(value)
    }
    for places, names, about in vocabulary.ROWS:
        said = [
            f"{name} {about}." if about == "has no effect" else f"{name}: {about}."
            for name in names.split()
        ]
        found = [c for c, text in classes.items() if any(sentence in text for sentence in said)]
        assert len(found) > 1, (places, names)
