"""The pages of the reference: one a group, one section a name.

In: the entries by group. Out: Markdown with the text of docstrings in HTML's terms (escaped by
entities, so that no backslash is needed).
"""

from __future__ import annotations

import ast
import html
import inspect
import re
from enum import Enum
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import gradcell
from api_reference import docstrings, formulas
from api_reference.examples import EXAMPLES, IMPORTS
from api_reference.groups import GROUPS, Group, grouped
from api_reference.names import Entry, constant, entries
from api_reference.vocabulary import meaning
from gradcell._core import DType

ROOT = Path(__file__).resolve().parents[2]

#: Columns of a signature that fits a page.
WIDTH = 76

#: How a docstring refers to another's arguments.
REFERENCE = (
    r"(?:[Aa]rguments|[Oo]ptions)\b[^.;]*?those of `?(\w+)|: see (\w+)[.;,]"
    r"|(?:^|[.;] |therwise |else )(?:[Aa]s|like) (\w+)\b"
)

#: Docstrings of spellings that say no more than that they are one.
SAYS_LITTLE = r"^Called as |^ops\.\w+\(| of this tensor\.$|, constructed as | in place\. Returns "

#: The largest page, in bytes of HTML.
LARGEST = 200_000


def pages() -> dict[str, str]:
    """The text of each page by its path."""
    held = grouped(list(all_entries()))
    made = {f"reference/{group.page}.md": page(group, held[group.page]) for group in GROUPS}
    made["reference/index.md"] = index()
    return made


def index() -> str:
    lines = [
        "# Reference", "",
        "Everything public, grouped by purpose. `help(name)` shows the same text in Python. "
        "The names used most have examples, which the tests run. The examples begin with", "",
        "```python", *IMPORTS.splitlines(), "```", "",
    ]  # fmt: skip
    for chapter, held in groupby(GROUPS, lambda group: group.chapter):
        lines += [f"## {chapter}", "", "| | |", "|---|---|"]
        lines += [f"| [{group.title}]({group.page}.md) | {group.about} |" for group in held]
        lines.append("")
    return "\n".join(lines)


def page(group: Group, held: list[Entry]) -> str:
    values = [entry for entry in held if constant(entry.value) or isinstance(entry.value, DType)]
    sections = [section(entry) for entry in held if entry not in values]
    table = listing(values) if values else []
    parts = [f"# {group.title}", "", group.about, ""]
    # Dtypes and modes come first; one or two constants beside classes come last.
    parts += table + sections if len(values) > len(sections) // 4 else sections + table
    return "\n".join(parts)


def listing(values: list[Entry]) -> list[str]:
    """Dtypes and numbers, a line each."""
    lines = ["## Values", "", "| name | also as | is |", "|---|---|---|"]
    for entry in values:
        also = ", ".join(f"`{name}`" for name in entry.others)
        value = repr(entry.value) if constant(entry.value) else str(entry.value)
        lines.append(f"| `{entry.name}` | {also} | `{value}` |")
    return [*lines, ""]


def section(entry: Entry) -> str:
    value = entry.value
    found = parameters(value)
    names = [parameter.name for parameter in found]
    parts = docstrings.parsed(docstring(value), names)
    borrow(entry, names, parts)
    lines = [f"## {entry.name}", ""]
    if callable(value):
        lines += ["```python", signature(entry.name, value), "```", ""]
    for paragraph in parts.about:
        lines += [paragraph if paragraph.startswith("    ") else sentence(paragraph, names), ""]
    if members(value):
        lines += ["**Members**", "", *members(value), ""]
    lines += arguments(entry.home, found, parts)
    if callable(value):
        lines += results(value, parts)
    lines += raises(parts)
    if inspect.isclass(value):
        lines += methods(value)
    if entry.name in EXAMPLES:
        lines += ["```pycon", EXAMPLES[entry.name].strip(), "```", ""]
    lines += spellings(entry)
    lines += source(entry)
    return "\n".join(lines)


def docstring(value: Any) -> str:
    """The docstring without what tables put before and behind it. A primitive's that is only the
    expression it is made of is shown as code."""
    about = (inspect.getdoc(value) or "").partition("\n\nThis is ")[0]
    made = re.fullmatch(r"(\w+\(.*\)\(.*?\)): (.*)\.", about)
    if made:
        return f"Called as `{made[1]}`: `{made[2]}`."
    return re.sub(r"^[A-Z]\w*: (?=.*, elementwise\.)", "", about)


@cache
def all_entries() -> tuple[Entry, ...]:
    return tuple(entries())


@cache
def spelt() -> frozenset[str]:
    """The names that stand under another entry."""
    return frozenset(name for entry in all_entries() for name in entry.others)


def named(name: str, near: Entry) -> Entry | None:
    """The entry that a docstring means by a bare name: of the same module first."""
    found = [e for e in all_entries() if e.name.rpartition(".")[2] == name and e is not near]
    space = near.name.rpartition(".")[0]
    found.sort(key=lambda e: (e.home != near.home, e.name.rpartition(".")[0] != space))
    return found[0] if found else None


def borrow(
    entry: Entry, names: list[str], parts: docstrings.Parts, asked: tuple[str, ...] = ()
) -> None:
    """Where a docstring says that arguments are those of another function, or "see X", what that one
    says of them stands here. asked: the entries that refer to this one."""
    said = inspect.getdoc(entry.value) or ""
    words = " ".join(said.split())
    for found in re.finditer(REFERENCE, words):
        other = named(found[1] or found[2] or found[3], entry)
        if other is None or not callable(other.value) or other.name in asked:
            continue
        known = [p.name for p in parameters(other.value)]
        theirs = docstrings.parsed(docstring(other.value), known)
        borrow(other, known, theirs, (*asked, entry.name))
        for shared, about in theirs.arguments:
            # An optimiser's params are Optimizer's parameters.
            shared = ["params" if name == "parameters" else name for name in shared]
            kept = [name for name in shared if name.lstrip("*") in names]
            mine = {n: text for held, text in parts.arguments for n in held}
            open_ = [n for n in kept if not mine.get(n) or mine[n].startswith("see ")]
            if open_:
                parts.arguments = [
                    ([n for n in held if n not in open_], text) for held, text in parts.arguments
                ]
                parts.arguments = [(held, text) for held, text in parts.arguments if held]
                parts.arguments.append((open_, about))
        missing = {name for name in known if "_" in name} - set(names)  # no words of prose
        parts.raises = parts.raises or [
            (error, about)
            for error, about in theirs.raises
            if missing.isdisjoint(re.findall(r"\w+", about))
        ]
    parts.raises = [each for one in parts.raises for each in borrowed_errors(entry, *one)]


def borrowed_errors(entry: Entry, name: str, about: str) -> list[tuple[str, str]]:
    """What stands for "as Conv2d does" and "what FlatLoss raises"."""
    found = (
        None if name else re.match(r"(?:as|what) (\w+)(?: does| raises)?(?:\.|, (?:and )?)", about)
    )
    other = named(found[1], entry) if found else None
    if found is None or other is None or not callable(other.value):
        return [(name, about)]
    theirs = docstrings.parsed(docstring(other.value), [p.name for p in parameters(other.value)])
    rest = about[found.end() :]
    own = docstrings.errors(rest) if rest else []
    return [each for one in theirs.raises for each in borrowed_errors(other, *one)] + own


def text(line: str) -> str:
    """Plain text as Markdown shows it: its own signs as entities, code between backticks as code, and
    what stands between dollars as a formula."""
    pieces = re.split(r"(`[^`]*`|\$[^$]+\$)", line)
    return "".join(
        piece
        if piece.startswith("`")
        else f"${formulas.latex(piece[1:-1])}$"
        if piece.startswith("$")
        else re.sub(r"[*_\[\]<>&|#~^]", lambda m: f"&#{ord(m[0])};", piece)
        for piece in pieces
    )


def ended(line: str) -> str:
    """With a full stop, as every item of a list has."""
    return f"{line}." if line and line[-1] not in ".:!?" else line


def sentence(line: str, names: list[str]) -> str:
    """Text that begins with a capital, unless it begins with an argument or a formula."""
    if re.match(r"[a-z][a-z]+ [a-z]", line) and line.split()[0] not in names:
        line = line[0].upper() + line[1:]
    return text(line)


def parameters(value: Any) -> list[inspect.Parameter]:
    try:
        if not callable(value) or members(value) or constructed_as_cell(value):
            return []
        return list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return []


def constructed_as_cell(value: Any) -> bool:
    """Whether it is a layer without arguments of its own."""
    cell = gradcell.nn.Cell
    return value is not cell and getattr(value, "__init__", None) is cell.__init__


def members(value: Any) -> list[str]:
    """The members of an enumeration."""
    found = inspect.isclass(value) and issubclass(value, Enum)
    return (
        [f"- `.{name}`: `{member.value!r}`" for name, member in value.__members__.items()]
        if found
        else []
    )


def kind(annotation: Any) -> str:
    """An annotation as text; nothing for Any."""
    if annotation is inspect.Parameter.empty:
        return ""
    name = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    name = re.sub(r"\b(?:_core|gradcell(?:\.\w+)*|collections\.abc|typing)\.", "", name)
    return "" if name in ("Any", "object") else name


def explained(
    home: str, found: list[inspect.Parameter], parts: docstrings.Parts
) -> list[tuple[list[str], str]]:
    """The parameters in their order, those together that are explained together: by the docstring, or
    by the vocabulary. The text is empty where neither says anything."""
    said = {name.lstrip("*"): (names, about) for names, about in parts.arguments for name in names}
    known = {p.name for p in found}
    done: set[str] = set()
    lines: list[tuple[list[str], str]] = []
    for parameter in found:
        if parameter.name in done:
            continue
        names, about = said.get(parameter.name, ([parameter.name], ""))
        together = [n.lstrip("*") for n in names if n.lstrip("*") in known]
        done.update(together)
        lines.append((together, about or meaning(home, parameter.name)))
    return lines


def unexplained(entry: Entry) -> list[str]:
    """The arguments of which the reference says nothing."""
    found = parameters(entry.value)
    names = [parameter.name for parameter in found]
    parts = docstrings.parsed(docstring(entry.value), names)
    borrow(entry, names, parts)
    return [
        name for group, about in explained(entry.home, found, parts) if not about for name in group
    ]


def arguments(home: str, found: list[inspect.Parameter], parts: docstrings.Parts) -> list[str]:
    """Every parameter: its type, its default, what is said of it."""
    by_name = {p.name: p for p in found}
    lines: list[str] = []
    for together, about in explained(home, found, parts):
        each = ", ".join(f"`{stars(by_name[n])}{n}`{facts(by_name[n])}" for n in together)
        lines.append(f"- {each}: {text(ended(about))}" if about else f"- {each}")
    return ["**Arguments**", "", *lines, ""] if lines else []


def stars(parameter: inspect.Parameter) -> str:
    return {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")


def facts(parameter: inspect.Parameter) -> str:
    """Its type and its default, in brackets."""
    told = [f"`{kind(parameter.annotation)}`"] if kind(parameter.annotation) else []
    if parameter.default is not inspect.Parameter.empty:
        told.append(f"default `{default(parameter.default)}`")
    return f" ({', '.join(told)})" if told else ""


def default(value: Any) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    shown = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    name = getattr(value, "__name__", shown) if callable(value) else shown
    return "..." if name == "<lambda>" else name


def results(value: Any, parts: docstrings.Parts) -> list[str]:
    """What comes back: by the docstring, and the type."""
    try:
        returned = inspect.signature(value).return_annotation
    except (TypeError, ValueError):
        returned = inspect.Parameter.empty
    name = "" if inspect.isclass(value) else kind(returned)
    title = "**Called with inputs**" if inspect.isclass(value) else "**Returns**"
    lines = [f"- {text(line)}" for line in parts.results]
    if name and name != "None":
        if len(lines) == 1:
            lines = [f"- `{name}`: {lines[0][2:]}"]
        else:
            lines.insert(0, f"- `{name}`")
    return [title, "", *lines, ""] if lines else []


#: When an error is raised of which a docstring says no more than its name.
USUAL = {
    "TypeError": "for an argument of a wrong type",
    "ValueError": "for an argument with a value or shape that does not fit",
}


def raises(parts: docstrings.Parts) -> list[str]:
    lines = [
        f"- {f'`{name}` ' if name else ''}{text(ended(about or USUAL.get(name, '')))}".rstrip()
        for name, about in parts.raises
    ]
    return ["**Raises**", "", *lines, ""] if lines else []


def spellings(entry: Entry) -> list[str]:
    """Other names: those of the same object on one line, others with how they are called."""
    same = [f"`{name}`" for name, value in entry.others.items() if value is None]
    lines = [f"- {', '.join(same)}"] if same else []
    own = inspect.getdoc(entry.value) or ""
    for name, value in entry.others.items():
        if value is None:
            continue
        about = docstring(value)
        first = about.strip().split("\n\n")[0]
        if re.search(
            r"^Called as | of this tensor\.$|, constructed as | in place\. Returns the tensor\.$|^ops\.\w+\(",
            first,
        ):
            first = ""
        differs = first and " ".join(first.split())[:40] not in " ".join(own.split())
        call = one_line(name, value, name.startswith("Tensor."))
        lines.append(f"- `{call}`" + (f": {text(' '.join(first.split()))}" if differs else ""))
    if not lines:
        return []
    body = [f"    {line}" for line in lines]
    return ['??? note "Also as"', "", *body, ""]


def signature(name: str, value: Any, typed: bool = True, bound: bool = False) -> str:
    """How it is called, of a method (bound) without its first parameter; a line for each parameter
    where one line is too long."""
    if members(value):
        return name
    if constructed_as_cell(value):
        return f"{name}()"
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    held = list(found.parameters.values())[1 if bound else 0 :]
    if not typed:
        held = [p.replace(annotation=inspect.Parameter.empty) for p in held]
    else:
        held = [
            p if kind(p.annotation) else p.replace(annotation=inspect.Parameter.empty) for p in held
        ]
    returned = kind(found.return_annotation) if typed and not inspect.isclass(value) else ""
    shown = [str(p) for p in held]
    # The marks of what is by position or by keyword alone are of the whole signature's text.
    whole = str(inspect.Signature(held))
    whole = clean(whole)
    arrow = f" -> {returned}" if returned else ""
    if len(name + whole + arrow) <= WIDTH or len(shown) < 2:
        return name + whole + arrow
    inner = "".join(f"    {part},\n" for part in separate(whole[1:-1]))
    return f"{name}(\n{inner}){arrow}"


def one_line(name: str, value: Any, bound: bool) -> str:
    """A signature without types, on one line; (...) where the parameters are not its own."""
    call = " ".join(signature(name, value, typed=False, bound=bound).split())
    call = call.replace("( ", "(").replace(", )", ")").replace(",)", ")")
    return call.replace("(*args, **kwargs)", "(...)")


def clean(shown: str) -> str:
    """A signature's text without addresses, quotes around annotations, and our modules' names."""
    shown = re.sub(r" at 0x[0-9a-f]+", "", shown)
    shown = re.sub(r"<function [\w.]*<lambda>>", "...", shown)
    shown = re.sub(r"<function (\w+)>", r"\1", shown)
    shown = re.sub(r"<class '([\w.]+)'>", r"\1", shown)
    shown = re.sub(r"<(\w+\.\w+): [^>]*>", r"\1", shown)
    shown = re.sub(r"ForwardRef\('([^']*)'\)", r"\1", shown)
    shown = re.sub(r"(: |-> )'([^']*)'", r"\1\2", shown)
    return re.sub(r"\b(?:_core|gradcell(?:\.\w+)*|collections\.abc|typing)\.(?=[A-Z])", "", shown)


def separate(shown: str) -> list[str]:
    """The parts between commas that no bracket holds."""
    found, depth = [""], 0
    for letter in shown:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found if part.strip()]


def methods(value: type) -> list[str]:
    """A class's own methods and properties, with the first paragraph of each docstring."""
    lines = []
    for attribute, held in sorted(vars(value).items()):
        function = held.__func__ if isinstance(held, (classmethod, staticmethod)) else held
        about = getattr(function, "__doc__", None)
        if attribute.startswith("_") or not about or f"{value.__name__}.{attribute}" in spelt():
            continue
        if not (callable(function) or hasattr(held, "fget")):
            continue
        call = f".{attribute}"
        if callable(function):
            call = one_line(call, function, not isinstance(held, staticmethod))
        first = " ".join(
            docstring(held if about == held.__doc__ else function).split("\n\n")[0].split()
        )
        if re.fullmatch(r"\w[\w.]*\(.*\)\.", first):  # a row of a table: what it is made of
            first = f"`{first[:-1]}`"
        lines.append(f"- `{call}`: {text(first)}")
    return ["**Methods and properties**", "", *lines, ""] if lines else []


@cache
def classes(path: Path) -> dict[str, int]:
    """The first line of each class of a file, its decorators included, by the class's qualified name."""
    found: dict[str, int] = {}

    def look(body: list[ast.stmt], within: str) -> None:
        for statement in body:
            if isinstance(statement, ast.ClassDef):
                name = within + statement.name
                first = min(d.lineno for d in (*statement.decorator_list, statement))
                found.setdefault(name, first)
                look(statement.body, f"{name}.")
            elif isinstance(statement, ast.FunctionDef):
                look(statement.body, f"{within}{statement.name}.<locals>.")
            elif isinstance(statement, ast.If | ast.Try):
                look([*statement.body, *statement.orelse], within)

    look(ast.parse(path.read_text()).body, "")
    return found


def line_of(value: Any, path: Path) -> int:
    """Where a function or a class begins; 0 for what has no line of its own. inspect.getsourcelines says
    the same, but reads the whole file for each name."""
    if isinstance(value, type):
        return classes(path).get(value.__qualname__, 0)
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    return code.co_firstlineno if code else 0


def source_of(entry: Entry) -> tuple[str, int]:
    """The file within the repository, and the line (0: of the file as a whole)."""
    value = inspect.unwrap(entry.value) if callable(entry.value) else entry.value
    package = ROOT / "python"
    try:
        path = Path(inspect.getsourcefile(value) or "")
        line = line_of(value, path)
    except (TypeError, OSError):
        path, line = Path(), 0
    if not path.is_file():
        base = package / entry.home.replace(".", "/")
        path, line = (base / "__init__.py" if base.is_dir() else base.with_suffix(".py")), 0
    parts = path.parts
    within = Path(*parts[len(parts) - parts[::-1].index("gradcell") - 1 :])
    return f"python/{within.as_posix()}", line


def source(entry: Entry) -> list[str]:
    path, line = source_of(entry)
    shown = path.removeprefix("python/")
    return [f"Source: [`{shown}`{f', line {line}' if line else ''}](../source/{path}.txt)", ""]


def html_faults(path: str, made: str) -> list[str]:
    """What a page of the reference must not have."""
    visible = html.unescape(
        re.sub(r"<(script|style|code|pre)\b.*?</\1>|<[^>]+>", " ", made, flags=re.S)
    )
    found = []
    if len(made.encode()) > LARGEST:
        found.append(f"{path}: {len(made.encode())} bytes, more than {LARGEST}")
    if re.search(r"\b[Aa]s for (?:[a-z_]*_\w+|[A-Z]\w+|grad|jac\w+|vjp|jvp|amax)\b", visible):
        found.append(f"{path}: says 'as for' another function")
    if "object at 0x" in made:
        found.append(f"{path}: shows an address in memory")
    if "\\" in visible:
        found.append(
            f"{path}: a backslash in {visible[max(0, visible.index(chr(92)) - 30) :][:60]!r}"
        )
    return found
