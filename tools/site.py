"""Pages of the documentation site that are made from the sources; mkdocs.yml loads this as a hook.

The reference is written from the public names' signatures and docstrings; ARCHITECTURE.md and
CHANGELOG.md become pages. Links to files outside the site become plain text.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

#: Columns of a signature that fits a page.
WIDTH = 76

#: Modules of the reference, each with what it holds.
MODULES = {
    "gradcell": "Tensors, parameters, derivatives, `jit`, contexts, files",
    "gradcell.ops": "Functions and primitives",
    "gradcell.nn": "Cells: layers, losses, optimisers, metrics, training steps",
    "gradcell.amp": "Mixed precision and loss scaling",
    "gradcell.train": "`Model`, callbacks, checkpoints",
    "gradcell.dataset": "Data pipelines",
    "gradcell.dataset.vision": "Transforms of pictures",
    "gradcell.dataset.transforms": "Transforms of rows",
    "gradcell.numpy": "NumPy's names",
    "gradcell.mint": "PyTorch's names",
    "gradcell.scipy.optimize": "Minimisation",
    "gradcell.scipy.linalg": "Linear algebra",
    "gradcell.communication": "Processes",
    "gradcell.cuda": "NVIDIA GPUs",
}


def public_names(module: ModuleType) -> list[str]:
    names = getattr(module, "__all__", None) or dir(module)
    return sorted({n for n in names if not n.startswith("_")}, key=lambda n: (n.lower(), n))


def signature(name: str, value: Any, bound: bool = False) -> str:
    """How it is called, of a method (bound) without its first parameter; a line for each parameter
    where one line is too long."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    if bound:
        found = found.replace(parameters=list(found.parameters.values())[1:])
    text = str(found)
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)  # annotations that are strings
    if len(name + text) <= WIDTH:
        return name + text
    end = closing(text)
    each = "".join(f"    {parameter},\n" for parameter in parameters(text[1:end]))
    return f"{name}(\n{each}{text[end:]}"


def closing(text: str) -> int:
    """Where the bracket that `text` begins with is closed."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0:
            return place
    return len(text)


def parameters(text: str) -> list[str]:
    """The parts between commas that no bracket holds."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found if part.strip()]


def methods(name: str, value: type) -> list[str]:
    """A class's own methods and properties, a line each with the first paragraph of its docstring."""
    lines = []
    for attribute, held in sorted(vars(value).items()):
        function = held.__func__ if isinstance(held, (classmethod, staticmethod)) else held
        text = getattr(function, "__doc__", None)
        if (
            attribute.startswith("_")
            or not text
            or not (callable(function) or hasattr(held, "fget"))
        ):
            continue
        call = f"{name}.{attribute}"
        if callable(function):
            bound = not isinstance(held, staticmethod)
            call = " ".join(signature(call, function, bound).replace("(\n", "(").split())
            call = call.replace("( ", "(").replace(", )", ")").replace(",)", ")")
            call = call.replace("(*args: Any, **kwargs: Any) -> Any", "(...)")
        about = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
        lines.append(f"- `{call}`: {escaped(about)}")
    return ["", *lines, ""] if lines else []


def entry(names: dict[str, Any]) -> str:
    """The heading, the signatures and the docstring of names that share one. Text that is indented is
    code, as it is shown by help()."""
    text = inspect.getdoc(next(iter(names.values()))) or ""
    lines = [f"### {', '.join(names)}", ""]
    calls = [signature(name, value) for name, value in names.items() if callable(value)]
    if calls:
        lines += ["```python", *calls, "```", ""]
    lines += [line if line.startswith("    ") else escaped(line) for line in text.splitlines()]
    for name, value in names.items():
        if inspect.isclass(value):
            lines += methods(name, value)
    return "\n".join([*lines, ""])


def escaped(line: str) -> str:
    """Docstrings are plain text: what Markdown would take for its own is kept as written."""
    return re.sub(r"([*_<\[\]])", r"\\\1", line) if "`" not in line else line


def module_page(name: str, about: str) -> str:
    module = importlib.import_module(name)
    groups: dict[
        str, dict[str, Any]
    ] = {}  # by docstring: a function and its primitive are one entry
    aliases = []
    seen: dict[int, str] = {}
    for public in public_names(module):
        value = getattr(module, public, None)
        if isinstance(value, ModuleType) or not (callable(value) or inspect.getdoc(value)):
            continue
        if callable(value) and id(value) in seen:
            aliases.append(f"| `{public}` | `{seen[id(value)]}` |")
            continue
        seen[id(value)] = public
        if inspect.isclass(value) or callable(value):
            groups.setdefault(inspect.getdoc(value) or public, {})[public] = value
    parts = [f"# {name}", "", about + ".", ""]
    parts += [entry(names) for names in groups.values()]
    if aliases:
        parts += ["## Other names of the same", "", "| name | is |", "|---|---|", *aliases, ""]
    return "\n".join(parts)


def pages() -> dict[str, str]:
    """The generated pages' text by path."""
    made = {
        "architecture.md": (ROOT / "ARCHITECTURE.md").read_text(),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(),
    }
    index = ["# Reference", "", "From the docstrings; `help(name)` shows the same.", ""]
    index += ["| module | holds |", "|---|---|"]
    for name, about in MODULES.items():
        path = f"reference/{name}.md"
        made[path] = module_page(name, about)
        index.append(f"| [{name}]({name}.md) | {about} |")
    made["reference/index.md"] = "\n".join([*index, ""])
    return made


# MkDocs calls these ---------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """Each module's page of the reference has its line in the navigation."""
    for section in config.nav:
        if "Reference" in section:
            section["Reference"] = [
                {"Modules": "reference/index.md"},
                *({name: f"reference/{name}.md"} for name in MODULES),
            ]
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    for picture in (ROOT / "bench" / "results").glob("*.png"):
        files.append(File.generated(config, f"figures/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links of files that lie outside the site are shown as their text."""

    def plain(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        if re.match(r"https?:|#|mailto:", target):
            return match[0]
        path = (Path(page.file.src_path).parent / target.split("#")[0]).as_posix()
        here = re.sub(r"[^/]+/\.\./", "", path)
        if page.file.src_path in ("architecture.md", "changelog.md"):
            here = here.removeprefix("docs/")
            target = target.removeprefix("docs/")
        if files.get_file_from_path(here) is not None or here.startswith("pictures/"):
            return f"[{text}]({target})"
        return text if text.startswith("`") else f"`{text}`"

    markdown = markdown.replace("](../bench/results/", "](figures/")
    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", plain, markdown)
