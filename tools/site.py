"""Pages of the documentation site that are made from the sources; mkdocs.yml loads this as a hook.

The reference is written by tools/api_reference; ARCHITECTURE.md and CHANGELOG.md become pages. Links to
files outside the site become plain text, and formulas between dollars become MathML.
"""

from __future__ import annotations

import json
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
    """Each group of the reference has its line in the navigation, under its chapter. The footer has the
    version, and the addresses that follow from the repository's, GRADCELL_ADDRESS."""
    version = re.findall(
        r'__version__ = "(.+)"', (ROOT / "python/gradcell/__init__.py").read_text()
    )
    places = {"Repository": "", "Issues": "/issues", "Versions": "/releases"}
    links = [
        f'<a href="{config.repo_url.rstrip("/")}{place}">{name}</a>'
        for name, place in places.items()
        if config.repo_url
    ]
    config.copyright = " · ".join([f"gradcell {version[0]}", *links])
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

    if page.file.src_path == "index.md":
        page.meta["hide"] = ["navigation", "toc"]  # two columns need the room
    if page.file.src_path == "changelog.md":
        page.meta["search"] = {"exclude": True}
    elif page.file.src_path.removesuffix(".md") in INSIDE:
        page.meta["search"] = {"boost": 0.3}
    if config.repo_url:
        markdown = with_address(markdown, config.repo_url)
    if page.file.src_path in ("gallery.md", "problems.md"):
        markdown = with_programs(markdown)
    figures = "../" * page.file.src_path.count("/") + "figures/"
    markdown = re.sub(r"\]\((?:\.\./)+bench/results/(?=[\w.-]+\.png\))", f"]({figures}", markdown)
    parts = FENCED.split(markdown)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", plain, parts[i])
    return "".join(parts)


#: Pages for who works on gradcell, which come last in a search.
INSIDE = ("architecture", "performance-notes", "cuda-kernels", "adding-an-op", "wheels", "names")


def with_address(markdown: str, address: str) -> str:
    """The page with the command that installs from the repository."""
    command, clone = "    pip install .\n\nin a clone of the repository", f"[a clone]({address})"
    return markdown.replace(
        command, f"    pip install git+{address}\n\nor `pip install .` in {clone}"
    )


FENCED = re.compile(r"(^ *```.*?^ *```$)", re.S | re.M)
PROGRAM = '<details class="example">'


def with_programs(markdown: str) -> str:
    """The gallery or the problems: the programs that a paragraph leads to follow it, folded, instead of links
    at its end."""
    link = r"\[([\w.]+\.py)\]\(\.\./([\w/.]+\.py)\)"
    paragraphs = []
    for paragraph in markdown.split("\n\n"):
        paragraphs.append(re.sub(rf"(?:,?\s+{link})+$", "", paragraph))
        for name, path in re.findall(link, paragraph):
            code = (ROOT / path).read_text().rstrip().replace("\n", "\n    ")
            paragraphs.append(f'??? example "{name}"\n\n    ```python\n    {code}\n    ```')
    return "\n\n".join(paragraphs)


FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S
)  # what pymdownx.arithmatex writes


PRIME = re.compile(
    r"<msup>(<mi>\w</mi>)<mi>(&#x0203[23];)</mi></msup>"
)  # already raised in most fonts
MINUS = re.compile(r"(<mo[^>]*>&#x00028;</mo>)<mo>(&#x02212;)</mo>")  # a sign, not a difference
PRE = re.compile(r"(<pre.*?</pre>)", re.S)  # blocks of code, which scroll
TEXT = re.compile(r"(?<=>)[^<]+(?=<)")
CODE = re.compile(r"(?<=<code>)[^<]*(?=</code>)")
HEADING = re.compile(r'(?<=">)\w+(?:\.\w+)+(?=<a class="headerlink")')  # the name of a section
CELL = re.compile(r"<td[^>]*>.*?</td>", re.S)
PHONE, COLUMN = re.compile(r"\S{36,}"), re.compile(r"\S{24,}")  # words that do not fit in there
UNIT = re.compile(r"(?<=\d) (?=(?:ns|µs|ms|s|min|h|[kKMGT]B|GFLOPS|ULP|%)(?![\w/]))")
WHOLE = re.compile(
    r"(?<!\S)\S{0,12}(?:(?<=\d)e-\d|(?<![\w-])(?:--?|\w-)[A-Za-z])\S{0,20}(?!\S)"
)  # 1e-3, --list, L-BFGS
NAME = re.compile(r'<span class="n">([^<]*)</span>')  # coloured as code without a span is
MARKS = re.compile(r"<[^<>]+>")
PICTURE = re.compile(r'<img [^>]*src="([^"]+)"[^>]*/?>')


def breakable(word: re.Match[str]) -> str:
    """Long names and paths may go on in the next line, behind their marks."""
    return re.sub(r"(?<=\w[/._(=])(?=\w)", "<wbr>", word[0])


def broken(content: str, long: re.Pattern[str]) -> str:
    """The text with breaks in the long words of its code."""
    return CODE.sub(lambda code: long.sub(breakable, code[0]), content)


def whole(text: re.Match[str]) -> str:
    """A number keeps its unit and its exponent, and an option its hyphens, in one line."""
    return WHOLE.sub(r'<span class="whole">\g<0></span>', UNIT.sub("\N{NO-BREAK SPACE}", text[0]))


def broken_well(content: str) -> str:
    """The page with its places for line breaks, outside blocks of code."""
    parts = PRE.split(content)
    for i in range(0, len(parts), 2):
        part = TEXT.sub(whole, HEADING.sub(breakable, parts[i]))
        parts[i] = broken(CELL.sub(lambda cell: broken(cell[0], COLUMN), part), PHONE)
    return "".join(parts)


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Pictures lead to themselves, at full size; formulas become MathML, which needs no script; lines break
    where a reader expects it; names in code have no span of their own, which saves a tenth of a page."""
    content = PICTURE.sub(r'<a class="picture" href="\1">\g<0></a>', content)
    content = content.replace(PROGRAM, f"{PROGRAM[:-1]} data-search-exclude>")
    return NAME.sub(r"\1", broken_well(with_formulas(content)))


def with_formulas(content: str) -> str:
    """The page with MathML in place of LaTeX."""
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


#: The most characters of the search index, which each reader loads.
LONGEST_INDEX = 650_000


def on_post_build(config: Any) -> None:
    """Makes the search index small: text without marks, and of an entry of the reference its first sentence
    and its other names."""
    path = Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(path.read_text())
    for entry in index["docs"]:
        entry["text"] = shorter(entry["text"], entry["location"].startswith("reference/"))
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    if len(text) > LONGEST_INDEX:
        from mkdocs.exceptions import PluginError

        raise PluginError(f"the search index has {len(text)} characters, more than {LONGEST_INDEX}")
    path.write_text(text)


def shorter(text: str, entry: bool) -> str:
    """The text of a section for the search index, without marks. entry: of the reference, of which the first
    sentence and the other names are enough."""
    if entry:
        found = PRE.sub("", text)
        first = re.search(r"<p>(.*?)</p>", found, re.S)
        names = re.search(r"Also as <ul>(.*?)</ul>", found, re.S)
        sentence = re.split(r"(?<=[.:;]) ", first[1] if first else found, maxsplit=1)[0]
        others = re.findall(r"<code>([\w.]+)", names[1]) if names else []
        text = " ".join([sentence, *dict.fromkeys(name.split(".")[-1] for name in others)])
    return " ".join(MARKS.sub(" ", text).split())
