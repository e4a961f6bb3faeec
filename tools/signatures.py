"""How MindSpore's names are called, beside how gradcell's are: names of parameters, their order and defaults.

python tools/signatures.py list     in an environment with MindSpore: its signatures, into the golden file
python tools/signatures.py          in one with gradcell: what differs

A line of the golden file is one way to call a name that gradcell has: `ops.transpose(input, dims)`. Functions
of several forms have several lines; those that only show `*args` have what their documentation lists.
"""

from __future__ import annotations

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
    found = [form for called, form in _DOCUMENTED.findall(text or "") if called == name]
    return [re.sub(r"(\*\w+), \*(?=,)", r"\1", form) for form in found]


def shown(signature: inspect.Signature) -> str:
    """A signature without annotations, as the golden file has it."""
    return signatures_of.text(signature)


def inner(function: Any) -> Any:
    """What a decorator without a signature of its own wraps."""
    for cell in getattr(function, "__closure__", None) or ():
        if inspect.isfunction(cell.cell_contents) and cell.cell_contents.__name__ == "__init__":
            return cell.cell_contents
    return function


def forms(space: str, name: str, value: Any) -> list[str]:
    """How a name is called in MindSpore."""
    if isinstance(value, type):
        init = inner(value.__init__)
        if init is not value.__init__:
            return [shown(signatures_of.bare(inspect.signature(init)))]
        if init.__qualname__ in ("Cell.__init__", "object.__init__"):
            return [] if name == "Cell" else ["()"]
    listed = documented(name, value.__doc__)
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return listed
    if {p.kind for p in signature.parameters.values()} <= {
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    } and listed:
        return listed
    if isinstance(names.owner("mindspore", space), type) and inspect.isfunction(value):
        signature = signatures_of.bare(signature)
    return [shown(signature)]


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


def main() -> None:
    if sys.argv[1:] == ["list"]:
        found = list(calls())
        signatures_of.GOLDEN.write_text("\n".join(found) + "\n")
        print(f"{len(found)} signatures")
        return
    differing = signatures_of.differences()
    for call, found in differing.items():
        for what in found:
            print(f"{call}: {what} ({signatures_of.reason(call, what)})")
    lines = signatures_of.stored()
    here = sum(map(signatures_of.compared, lines))
    print(f"{len(lines)} signatures of MindSpore, {here} of them here, {len(differing)} differ")


if __name__ == "__main__":
    main()
