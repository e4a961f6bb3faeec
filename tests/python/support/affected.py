"""Which tests a file's change can break: `pytest --for FILE`.

Of a module of the package: the names that it makes, and those of modules that import it or use such a name,
one by way of another. A test is affected that has one, in some spelling, in its case's name, its text or a
function of its file that it calls. Of a helper of the tests: the files that import it. Of other files: the
folders of FOLDERS. It is a choice for the desk: .ci/run leaves nothing out.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from gradcell.ops import _index

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parents[1]
PACKAGE = ROOT / "python" / "gradcell"

#: The folders of tests for files that are no Python of the package, by the longest beginning; else all.
FOLDERS = {
    "csrc/cuda": "cuda documents/test_floors.py",
    "csrc/cpu": "agreement cpu derivatives nn ops solvers tensor",
    "csrc/cpu/products": "cpu nn ops solvers derivatives",
    "csrc/plan": "agreement cpu cuda derivatives nn ops solvers tensor",
    "csrc/ad": "agreement cuda derivatives nn reference solvers",
    "csrc/runtime": "agreement derivatives nn ops parallel reference solvers tensor cuda",
    "csrc/runtime/minimisers": "derivatives solvers documents/test_examples.py",
    "csrc/bind": "agreement derivatives nn ops reference tensor",
    "tests/cpp": "documents/test_floors.py",
    "tests/cuda_shim": "cuda",
    "tests/fake_": "cuda parallel",
    "tests/python/golden": "agreement cuda",
    "tests/python/cases": "agreement",
    "tests/python/files": "files",
    "docs": "documents",
    "examples": "documents",
    "tools": "documents agreement",
    "packaging": "documents/test_wheels.py documents/test_recipes.py documents/test_platforms.py",
    "README.md": "documents",
    "ARCHITECTURE.md": "documents",
    "CONTRIBUTING.md": "documents",
}


def module_of(file: Path) -> str:
    """A file's name in an import: of a module of the package, or of a helper of the tests."""
    if not file.is_relative_to(PACKAGE):
        return file.stem
    parts = ["gradcell", *file.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PACKAGES = {module_of(f) for f in PACKAGE.rglob("__init__.py")}


class Written(NamedTuple):
    """What a file says: the modules and, as `.name`, the names that it stands on, and its own names."""

    stands_on: frozenset[str]
    names: frozenset[str]


def targets(node: ast.stmt) -> list[ast.expr]:
    """What a statement assigns to."""
    return node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", ast.Tuple())]


@functools.cache
def written(file: Path) -> Written:
    text = file.read_text()
    tree = ast.parse(text)
    taken = re.findall(r"\b(?:ops|nn|mint|numpy|train|amp|gc|ms)\.(\w+)", text)
    below = {f".{name}" for name in taken}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            below |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            below |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            if node.module in PACKAGES:
                below |= {f".{alias.name}" for alias in node.names}
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name[0] != "_":
            names.add(node.name)
        elif any(isinstance(x, ast.Name) and x.id == "__all__" for x in targets(node)):
            names |= {x.value for x in ast.walk(node) if isinstance(x, ast.Constant)}
    return Written(frozenset(below), frozenset(names))


def affected_files(file: Path, files: Iterable[Path]) -> set[Path]:
    """A file and those that stand on it. A package's `__init__` only hands on."""
    known = {f: written(f) for f in files if f.name != "__init__.py"}
    found, new = {file}, {file}
    while new:
        looked_for = {module_of(f) for f in new} | {f".{n}" for f in new for n in written(f).names}
        new = {f for f, w in known.items() if f not in found and w.stands_on & looked_for}
        found |= new
    return found


def spelling(name: str) -> str:
    """ctc_loss and CTCLoss are one."""
    return name.replace("_", "").lower()


@functools.cache
def words(text: str) -> frozenset[str]:
    return frozenset(spelling(word) for word in re.findall(r"[A-Za-z]\w+", text))


@functools.cache
def called(function: Any) -> frozenset[str]:
    """What a test's text names, and the functions of its file that it calls, one by way of another."""
    module, seen, todo, found = inspect.getmodule(function), set(), [function], set()
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        text = " ".join(one.__code__.co_names)  # all there is of one that was made of a text
        with contextlib.suppress(OSError):
            text += "\n" + inspect.getsource(one)
        found |= words(text)
        own = (getattr(module, name, None) for name in set(re.findall(r"\w+", text)))
        todo += [f for f in own if inspect.isfunction(f) and f.__module__ == module.__name__]
    return frozenset(found)


def affected(file: str, items: list[Any]) -> list[Any]:
    """Those of the tests that the file's change can break."""
    path = (ROOT / file).resolve()
    if not path.exists():
        raise FileNotFoundError(f"--for: there is no {path}")
    here = path.relative_to(ROOT).as_posix()
    if path.suffix == ".py" and path.is_relative_to(PACKAGE):
        files = affected_files(path, PACKAGE.rglob("*.py"))
        names = set(words(_index.MODULES.get(module_of(path).removeprefix("gradcell.ops."), "")))
        names |= {spelling(name) for f in files for name in written(f).names}
        return [i for i in items if not names.isdisjoint(words(i.name) | called(i.function))]
    if path.suffix == ".py" and path.is_relative_to(TESTS / "support"):
        files = affected_files(path, TESTS.rglob("*.py"))
        return [i for i in items if i.path in files]
    if path.is_relative_to(TESTS) and path.name.startswith("test_"):
        return [i for i in items if i.path == path]
    places = [p for p in FOLDERS if here.startswith(p)]
    if not places:
        return items
    folders = tuple(str(TESTS / f) for f in FOLDERS[max(places, key=len)].split())
    return [i for i in items if str(i.path).startswith(folders)]
