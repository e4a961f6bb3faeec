"""Pages of the documentation site that are made from the sources; mkdocs.yml loads this as a hook.

The reference is written by tools/api_reference; ARCHITECTURE.md and CHANGELOG.md become pages. Links to
files outside the site become plain text, and formulas between dollars become MathML.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT / "tools") not in sys.path:
    sys.path.append(str(ROOT / "tools"))

from api_reference import pages as reference  # noqa: E402
from api_reference.groups import GROUPS  # noqa: E402


def pages() -> dict[str, str]:
    """The generated pages' text by path."""
    return {
        "architecture.md": (ROOT / "ARCHITECTURE.md").read_text(),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(),
        **reference.pages(),
    }


# MkDocs calls these ---------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """Each group of the reference has its line in the navigation, under its chapter."""
    chapters: dict[str, list[dict[str, str]]] = {}
    for group in GROUPS:
        chapters.setdefault(group.chapter, []).append({group.title: f"reference/{group.page}.md"})
    for section in config.nav:
        if "Reference" in section:
            section["Reference"] = [
                {"All groups": "reference/index.md"},
                *({chapter: held} for chapter, held in chapters.items()),
            ]
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    for path in sorted((ROOT / "python" / "gradcell").rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, f"source/{where}.txt", abs_src_path=str(path)))
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
        return (
            f"`{text}`" if re.fullmatch(r"[\w./-]*[./][\w./-]*", text) else text
        )  # a file's name is code

    figures = "../" * page.file.src_path.count("/") + "figures/"
    markdown = re.sub(r"\]\((?:\.\./)+bench/results/(?=[\w.-]+\.png\))", f"]({figures}", markdown)
    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", plain, markdown)


FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S
)  # what pymdownx.arithmatex writes


PRIME = re.compile(
    r"<msup>(<mi>\w</mi>)<mi>(&#x0203[23];)</mi></msup>"
)  # already raised in most fonts
MINUS = re.compile(r"(<mo[^>]*>&#x00028;</mo>)<mo>(&#x02212;)</mo>")  # a sign, not a difference
CELL = re.compile(r"<td[^>]*>.*?</td>", re.S)
CODE = re.compile(r"(?<=<code>)[^<]*(?=</code>)")
HEADING = re.compile(r'(?<=">)\w+(?:\.\w+)+(?=<a class="headerlink")')  # the name of a section
NAME = re.compile(r'<span class="n">([^<]*)</span>')  # coloured as code without a span is
PICTURE = re.compile(r'<img [^>]*src="([^"]+)"[^>]*/?>')


def breakable(code: re.Match[str]) -> str:
    """Names and paths in a table or heading may go on in the next line, behind their marks."""
    return re.sub(r"(?<=\w[/._(=])(?=\w)", "<wbr>", code[0])


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Pictures lead to themselves, at full size, and code in tables can break; names in code have no span
    of their own, which saves a tenth of a page; formulas become MathML, which needs no script."""
    content = CELL.sub(lambda cell: CODE.sub(breakable, cell[0]), content)
    content = HEADING.sub(breakable, NAME.sub(r"\1", content))
    content = PICTURE.sub(r'<a class="picture" href="\1">\g<0></a>', content)
    if "arithmatex" not in content:
        return content
    from html import unescape

    from latex2mathml.converter import convert

    def formula(match: re.Match[str]) -> str:
        inline = match[1] == "span"
        made = convert(unescape(match[2]), display="inline" if inline else "block")
        made = MINUS.sub(r'\1<mo form="prefix">\2</mo>', made)
        made = PRIME.sub(r'<mrow>\1<mo form="postfix" lspace="0" rspace="0">\2</mo></mrow>', made)
        return made if inline else f'<div class="formula">{made}</div>'

    return FORMULA.sub(formula, content)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """A page of the reference that is too long, or shows what it should not, ends the build."""
    if page.file.src_path.startswith("reference/"):
        faults = reference.html_faults(page.file.src_path, output)
        if faults:
            from mkdocs.exceptions import PluginError

            raise PluginError("\n".join(faults))
    return output
