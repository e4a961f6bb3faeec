"""How many lines each room of the package has, and of what kinds: a Markdown table.

    python tools/count_lines.py                       this tree
    python tools/count_lines.py --before OTHER_TREE   the lines of another beside it

Signatures go from `def` to the body. What a build writes (_op_rows.pyi) does not count. The core is all but
`BESIDE_THE_CORE` of tests/python/documents/test_layout.py.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = ("code", "signatures", "imports", "docstrings", "comments", "blank")


def spans(tree: ast.Module) -> Iterator[tuple[str, int, int]]:
    """(kind, first line, last line) of what is no plain code."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield "imports", node.lineno, node.end_lineno or 0
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield "signatures", node.lineno, max(node.lineno, node.body[0].lineno - 1)
        for part in getattr(node, "body", ()) if not isinstance(node, ast.expr) else ():
            value = part.value if isinstance(part, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield "docstrings", part.lineno, part.end_lineno or 0


def kinds(text: str) -> Counter[str]:
    """The lines of a file by kind."""
    lines = [line.strip() for line in text.splitlines()]
    found = ["comments" if line.startswith("#") else "code" for line in lines]
    for kind, first, last in sorted(spans(ast.parse(text)), key=lambda s: s[0] == "docstrings"):
        found[first - 1 : last] = [kind] * (last - first + 1)
    return Counter(kind if line else "blank" for kind, line in zip(found, lines, strict=True))


def rooms(tree: Path) -> dict[str, Counter[str]]:
    """The lines of each package and module of a tree's package, of all and of the core, by kind."""
    package = tree / "python" / "gradcell"
    said = (ROOT / "tests" / "python" / "documents" / "test_layout.py").read_text()
    beside = re.findall(r'^BESIDE_THE_CORE = """(.*?)"""', said, re.M | re.S)[0].split()
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for file in sorted(package.rglob("*.py*")):
        if file.suffix in (".py", ".pyi") and file.name != "_op_rows.pyi":
            place, own = file.relative_to(package), kinds(file.read_text())
            module = ".".join(place.with_suffix("").parts)
            core = not any(f"{module}.".startswith(f"{name}.") for name in beside)
            for room in (place.parts[0], "all", *["the core"] * core):
                found[room] += own
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", type=Path, metavar="TREE", help="another tree")
    before = parser.parse_args().before
    now, old = rooms(ROOT), rooms(before) if before else {}
    titles = ("room", *(["before"] if before else []), "lines", *KINDS)
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    for room in sorted({*now, *old}, key=lambda room: -now.get(room, Counter()).total()):
        own = now.get(room, Counter())
        numbers = [*([old.get(room, Counter()).total()] if before else []), own.total()]
        cells = [room, *(f"{n:,}" for n in (*numbers, *(own[kind] for kind in KINDS)))]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
