"""Writes where the ops are, ops/_index.py, and their types, ops/__init__.pyi.

    python tools/make_table_stubs.py            writes them, from the built package
    python tools/make_table_stubs.py --check    exits 1 if one of them is not what would be written

An op is public by its module's __all__, and a method of Tensor by its decorator (ops/decorators.py). Modules
that ops/__init__.py does not import from are imported when one of their ops is first asked for: what they
have is known from the index.

A type checker reads the stub in place of ops/__init__.py, and so knows too what is made from the op table and
what is imported when it is first asked for: `ops.sin`, `ops.Sin`, `ops.cholesky`.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import pkgutil
import re
import sys
import textwrap
from collections import Counter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

PACKAGE = Path(__file__).parents[1] / "python" / "gradcell"
#: The modules with names made from tables, and their stubs.
STUBS = {
    "gradcell.ops": "ops/__init__.pyi",
}
#: Annotations that a stub may repeat.
KNOWN = re.compile(
    r"^(Any|None|int|float|str|bool|Tensor|Array|TensorLike|Axis|_Shape|DTypeLike|_DType|tuple|list|dict|Callable|"
    r"Sequence|\W)+$"
)


def annotation(value: Any) -> str:
    text = value if isinstance(value, str) else getattr(value, "__name__", "Any")
    text = re.sub(r"\bShape\b", "_Shape", text.replace("_core.DType", "_DType"))
    return text if value is not inspect.Signature.empty and KNOWN.match(text) else "Any"


def parameters(signature: inspect.Signature) -> str:
    parts, star = [], False
    for p in signature.parameters.values():
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
        star |= bool(mark == "*" or p.kind is p.KEYWORD_ONLY)
        default = " = ..." if p.default is not p.empty else ""
        kind = "" if p.name == "self" else f": {annotation(p.annotation)}"
        parts.append(f"{mark}{p.name}{kind}{default}")
    return ", ".join(parts)


def function_stub(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    returns = annotation(signature.return_annotation)
    return f"def {name}({parameters(signature)}) -> {returns}: ..."


def class_stub(name: str, cls: type) -> str:
    from gradcell.ops.primitives.rows import signature_of

    base = cls.__mro__[1]
    text = f"class {name}({base.__module__}.{base.__qualname__}):"
    made = vars(cls).get("__signature__")
    if made is None and isinstance(own := vars(cls).get("__init__"), FunctionType):
        text += f"\n    def __init__({parameters(inspect.signature(own))}) -> None: ..."
    elif made is not None and made.parameters:
        text += f"\n    def __init__(self, {parameters(made)}) -> None: ..."
    call = vars(cls).get("__call__")
    if hasattr(call, "function"):
        returns = annotation(inspect.signature(call.function).return_annotation)
        inputs = parameters(signature_of(call))
        text += f"\n    def __call__(self{', ' * bool(inputs)}{inputs}) -> {returns}: ..."
    return text if "\n" in text else text + " ..."


def defined(name: str, value: Any) -> bool:
    """Whether the value's own module has the name written down, where a type checker sees it."""
    place = sys.modules.get(getattr(value, "__module__", None) or "")
    if (
        place is None
        or not str(getattr(place, "__file__", None)).endswith(".py")
        or getattr(place, name, None) is not value
    ):
        return False
    return re.search(rf"^(def|class) {name}\b", Path(place.__file__).read_text(), re.M) is not None


def is_row(name: str, value: Any) -> bool:
    """Whether a function or primitive is no more than the row of the op table that has its name."""
    from gradcell import _core
    from gradcell.ops.elements.elementwise import ROWS

    if isinstance(value, FunctionType):  # (in a choice's, the condition has a wider type)
        return name != "where" and ROWS.get(name) is value
    call = vars(value).get("__call__") if isinstance(value, type) else None
    function, inputs = (getattr(call, part, None) for part in ("function", "inputs"))
    rows = {row["name"]: ROWS.get(row["function"]) for row in _core.op_table()}
    alike = inputs is not None and [*inputs] == [*inputs.values()]
    return alike and function is rows.get(name, call)


def line(module: ModuleType, name: str) -> str:
    value = getattr(module, name)
    if is_row(name, value):
        return f"from gradcell._op_rows import {name} as {name}"
    if isinstance(value, ModuleType):
        package, _, last = value.__name__.rpartition(".")
        return f"from {package} import {last} as {name}"
    if defined(name, value) and value.__module__ != module.__name__:
        return f"from {value.__module__} import {name} as {name}"
    if isinstance(value, type):
        return class_stub(name, value)
    if not callable(value):
        kind = type(value)
        known = kind.__module__ in ("builtins", "gradcell._core")
        short = f"_{kind.__name__}" if kind.__name__ == "DType" else kind.__name__
        return f"{name}: {short if known else f'{kind.__module__}.{kind.__name__}'}"
    return function_stub(name, value)


def imported(lines: list[str]) -> list[str]:
    """Statements that import what these import one by one: a module's names together, a star for all."""
    names: dict[str, list[str]] = {}
    for text in lines:
        _, module, _, name, _, another = text.split()
        names.setdefault(module, []).append(f"{name} as {another}")
    out = []
    for module, found in sorted(names.items()):
        public = getattr(sys.modules.get(module), "__all__", [])  # _op_rows is no module
        if sorted(found) == sorted(f"{n} as {n}" for n in public):
            out.append(f"from {module} import *")
        else:
            one = f"from {module} import {', '.join(found)}"
            joined = ", ".join(found).replace(" as ", "~as~")  # which belong together
            inside = "\n    ".join(textwrap.wrap(joined, 100)).replace("~", " ")
            out.append(one if len(one) <= 110 else f"from {module} import (\n    {inside}\n)")
    return out


def in_groups(classes: list[str]) -> list[str]:
    """Classes with bases that say how they are called and made, where several are called or made alike."""
    parts = re.compile(
        r"class (\w+)\(([\w.]+)\):\n((?:    def __init__.*)?)\n?((?:    def __call__.*)?)"
    )
    found = {text: m.groups() for text in classes if (m := parts.fullmatch(text))}
    counts = Counter((base, text) for _, base, *both in found.values() for text in both if text)
    several = [key for key, n in counts.items() if n > 2]
    kinds = {key: "_Called" if "def __call__" in key[1] else "_Made" for key in several}
    bases = {key: f"{kind}{i}" for i, (key, kind) in enumerate(kinds.items())}
    rewritten = {}
    for text, (name, base, *both) in found.items():
        shared = [bases[base, part] for part in reversed(both) if (base, part) in bases]
        own = "".join(f"\n{part}" for part in both if part and (base, part) not in bases)
        rewritten[text] = f"class {name}({', '.join(shared) or base}):{own or ' ...'}"
    return [
        *(f"class {name}({base}):\n{part}" for (base, part), name in bases.items()),
        *(rewritten.get(text, text) for text in classes),
    ]


def stub(module: ModuleType) -> str:
    lines = [
        line(module, name)
        for name in sorted({*module.__all__, *module._OLDER})
        if not name.startswith("_")
    ]
    bases = sorted(
        {m[1] for text in lines if (m := re.match(r"(?:class \w+\(|\w+: )([\w.]+)\.\w+", text))}
    )
    head = ['"""The ops. Written by tools/make_table_stubs.py; do not edit."""']
    head += ["", "from collections.abc import Callable, Sequence", "from typing import Any", ""]
    head += [f"import {base}" for base in bases]
    head += ["from gradcell._core import DType as _DType", "from gradcell._core import Tensor"]
    head += [
        "from gradcell.base.types import Array, Axis, DTypeLike, Shape as _Shape, TensorLike",
        "",
    ]
    head += ["__all__: list[str]", ""]
    imports = [text for text in lines if text.startswith("from ")]
    rest = [text for text in lines if text not in imports]
    return "\n".join([*head, *imported(imports), "", *in_groups(rest)]) + "\n"


def modules_later() -> list[ModuleType]:
    """The modules of ops that are imported when one of their ops is asked for."""
    from gradcell import ops

    eager = set(re.findall(r"^from ([\w.]+) import \*", Path(ops.__file__).read_text(), re.M))
    rooms = [p.name for p in pkgutil.iter_modules(ops.__path__) if p.ispkg]
    return [
        module
        for room in rooms
        for place in pkgutil.iter_modules([str(PACKAGE / "ops" / room)])
        if (name := f"gradcell.ops.{room}.{place.name}") not in eager
        and hasattr(module := importlib.import_module(name), "__all__")
    ]


def methods_of(module: ModuleType) -> tuple[list[str], list[str]]:
    """The ops of a module that are methods of Tensor, and those that are in place."""
    from gradcell.ops.decorators import METHODS

    plain, in_place = [], []

    def entry(name: str, spellings: dict[str, str]) -> str:
        return "|".join([name, *(f"{k}={v}" for k, v in spellings.items())])

    for name in module.__all__:
        op = getattr(module, name)
        either = (op, getattr(op, "_target", op))  # with the spellings of its keywords, and without
        if name in METHODS and METHODS[name].function in either:
            plain.append(entry(name, METHODS[name].spellings))
        taken = METHODS.get(f"{name}_")
        if taken is not None and taken.in_place and taken.function in either:
            in_place.append(entry(name, taken.spellings))
    return plain, in_place


def index() -> str:
    """ops/_index.py."""
    modules = modules_later()

    def listed(names: list[str]) -> str:
        text = textwrap.fill(" ".join(sorted(names)), 92)
        return f'"""\n{textwrap.indent(text, " " * 8)}"""' if len(text) > 64 else f'"{text}"'

    methods = [methods_of(module) for module in modules]
    rows = [f'    "{m.__name__[13:]}": {listed(m.__all__)},' for m in modules]
    lines = [
        '"""Index of ops that are imported at first use, by module.',
        "",
        'Written by tools/make_table_stubs.py; do not edit."""',
        "",
        "MODULES = {",
        *rows,
        "}",
        f"METHODS_LATER = {listed([n for plain, _ in methods for n in plain])}",
        f"IN_PLACE_LATER = {listed([n for _, taken in methods for n in taken])}",
    ]
    return "\n".join(lines) + "\n"


def stubs() -> dict[Path, str]:
    made = {PACKAGE / p: stub(importlib.import_module(m)) for m, p in STUBS.items()}
    return {PACKAGE / "ops" / "_index.py": index(), **made}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    place = PACKAGE / "ops" / "_index.py"
    if not check and place.read_text() != (text := index()):
        if os.environ.get("GRADCELL_INDEX_WRITTEN"):
            sys.exit(f"{place} differs each time it is written")
        place.write_text(text)  # and once more, with the ops imported from where they are now
        os.execve(
            sys.executable,
            [sys.executable, *sys.argv],
            {**os.environ, "GRADCELL_INDEX_WRITTEN": "1"},
        )
    stale = []
    for path, text in stubs().items():
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(str(path.relative_to(PACKAGE)))
    if stale:
        print("build the core, run tools/make_table_stubs.py; out of date:", *stale)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
