"""How MindSpore's names are called, beside how gradcell's are: names of parameters, their order and defaults.

    python tools/signatures.py list     in an environment with MindSpore: its signatures, golden files
    python tools/signatures.py          in one with gradcell: what differs

A line of the golden file is one way to call a name that gradcell has: `ops.transpose(input, dims)`. Functions
of several forms have several lines; those that only show `*args` have what their documentation lists. What is
called once it is made has a line for that too: `nn.LSTM.construct(x, hx=None)`, `ops.Sin.__call__(input)`.
"""

from __future__ import annotations

import argparse
import enum
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "python" / "support")]

import names  # noqa: E402
import signatures_of  # noqa: E402

#: A call in the first line of a documentation, or in one of its forms: `max(input, dim) -> tuple`.
_DOCUMENTED = re.compile(
    r"^\s*(?:\.\. (?:function|method):: )?(?:[\w.]+\.)?(\w+)(\(.*\)) *->", re.M
)


def documented(name: str, text: str) -> list[str]:
    """The forms of a function that its documentation lists."""
    found = [
        form for called, form in _DOCUMENTED.findall(text or "") if called in (name, f"{name}_ext")
    ]
    return [re.sub(r"(\*\w+), \*(?=,)", r"\1", form) for form in found]


def shown(signature: inspect.Signature) -> str:
    """A signature without annotations, as the golden file has it."""
    return signatures_of.text(signature)


def inner(function: Any, name: str) -> Any:
    """The function of this name that decorators without signatures of their own wrap, one in another."""
    if getattr(getattr(function, "__code__", None), "co_name", "") == name:
        return function
    for cell in getattr(function, "__closure__", None) or ():
        if inspect.isfunction(cell.cell_contents):
            found = inner(cell.cell_contents, name)
            if found is not None:
                return found
    return None


def hidden(signature: inspect.Signature) -> bool:
    """Whether it names no parameter."""
    stars = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return {p.kind for p in signature.parameters.values()} <= stars


def constructor(cls: type) -> inspect.Signature | None:
    """How a class is made; None if only Python or Cell says. One of `*args` passes them to its base."""
    for base in cls.__mro__:
        init = vars(base).get("__init__")
        if init is None:
            continue
        if base.__name__ == "Cell" or base is object:
            return None
        signature = signatures_of.bare(inspect.signature(inner(init, "__init__") or init))
        if not hidden(signature) or (base is cls and not signature.parameters):
            own = [p for n, p in signature.parameters.items() if n != "mode" or base is cls]
            return signature.replace(parameters=own)
    return None


def forms(space: str, name: str, value: Any) -> list[str]:
    """How a name is called in MindSpore."""
    if isinstance(value, type):
        if value.__init__.__qualname__ in ("Cell.__init__", "object.__init__"):
            return [] if name == "Cell" else ["()"]
        if value.__module__.startswith("mindspore") and inspect.isfunction(value.__init__):
            signature = constructor(value)
            if signature is not None:
                return [shown(signature)]
    listed = documented(name, value.__doc__)
    try:
        signature = inspect.signature(value)
        within = inner(value, name)
        if hidden(signature) and within is not None:
            signature = inspect.signature(within)
    except (TypeError, ValueError):
        return listed
    if hidden(signature) and signature.parameters and listed:
        return listed
    if isinstance(names.owner("mindspore", space), type) and inspect.isfunction(value):
        signature = signatures_of.bare(signature)
    return [shown(signature)]


def calls_of(cls: type) -> Iterator[str]:
    """How an object of the class is called: a cell by its construct, a primitive by its inputs."""
    import mindspore as ms

    if issubclass(cls, ms.nn.Cell) and cls.construct is not ms.nn.Cell.construct:
        within = inner(cls.construct, "construct") or cls.construct
        yield f".construct{shown(signatures_of.bare(inspect.signature(within)))}"
    if issubclass(cls, ms.ops.Primitive) and "__call__" in vars(cls):
        yield f".__call__{shown(signatures_of.bare(inspect.signature(cls.__call__)))}"


def calls() -> Iterator[str]:
    """The lines of the golden file, of all names that gradcell has."""
    for line in names.LIST.read_text().splitlines():
        space, _, found = line.partition(": ")
        where = names.owner("mindspore", space)
        for name in found.split():
            value = getattr(where, name)
            if isinstance(value, enum.EnumMeta):
                continue  # how an enumeration is called depends on Python's version
            if callable(value):
                for form in dict.fromkeys(forms(space, name, value)):
                    yield f"{space}.{name}{form}"
            if isinstance(value, type):
                yield from (f"{space}.{name}{call}" for call in calls_of(value))


def fixed() -> Iterator[str]:
    """Lines 'attributes: classes': what subclasses of public classes cannot assign."""
    found: dict[str, list[str]] = {}
    for line in names.LIST.read_text().splitlines():
        space, _, listed = line.partition(": ")
        where = names.owner("mindspore", space)
        for name in listed.split():
            value = getattr(where, name)
            if name == "Parameter":
                value = type(value(1.0))  # MindSpore makes its class when it makes one
            if isinstance(value, type):
                found.setdefault(" ".join(signatures_of.fixed(value)), []).append(f"{space}.{name}")
    yield from (f"{attributes}: {' '.join(classes)}" for attributes, classes in found.items())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["list"], help="MindSpore's signatures")
    if parser.parse_args().what:
        found = list(calls())
        signatures_of.GOLDEN.write_text("\n".join(found) + "\n")
        signatures_of.FIXED.write_text("\n".join(fixed()) + "\n")
        print(f"{len(found)} signatures")
        return
    differing = signatures_of.differences()
    for call, found in differing.items():
        for what in found:
            print(f"{call}: {what} ({signatures_of.reason(call, what)})")
    print(
        f"{len(signatures_of.fixed_here())} attributes that subclasses may assign only in MindSpore"
    )
    lines = signatures_of.stored()
    here = sum(map(signatures_of.compared, lines))
    print(f"{len(lines)} signatures of MindSpore, {here} of them here, {len(differing)} differ")


if __name__ == "__main__":
    main()
