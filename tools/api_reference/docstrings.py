"""A docstring's prose as parts: what it does, its arguments, what comes back, what is raised.

Docstrings are paragraphs that help() shows as they are: sentences, then "name, name: what they are",
"Returns ...", "Raises TypeError for ..., ValueError if ...". The parameters of the signature say which
words are names of arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

#: What begins a part of its own, at the beginning of a sentence.
RESULT = re.compile(
    r"(?:Returns|Result|result|The result|Gives|Input|Inputs|Output|The output)\b(?!s? of)"
)
RAISES = re.compile(r"Raises\b")
ERROR = r"(?:[A-Z]\w*(?:Error|Warning|Exception)|StopIteration)"


@dataclass
class Parts:
    """about: paragraphs, of which indented ones are code; arguments: (names, text)."""

    about: list[str] = field(default_factory=list)
    arguments: list[tuple[list[str], str]] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    raises: list[tuple[str, str]] = field(default_factory=list)


def blocks(text: str) -> list[str]:
    """Paragraphs, each on one line, and blocks of code, as they are."""
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines: list[str] = []
        code: list[str] = []
        for line in [*paragraph.splitlines(), ""]:
            if line.startswith("    ") and line.strip():
                if lines:
                    found.append(" ".join(lines))
                    lines = []
                code.append(line)
                continue
            if code:
                found.append("\n".join(code))
                code = []
            if line.strip():
                lines.append(line.strip())
        if lines:
            found.append(" ".join(lines))
    return found


def heads(paragraph: str, parameters: Iterable[str]) -> list[tuple[int, int, str]]:
    """Where parts begin: (place, end of the head, its kind or the names)."""
    names = "|".join(sorted(map(re.escape, parameters), key=len, reverse=True))
    found = []
    for start in [0, *(m.end() for m in re.finditer(r"[.;:]\)? +", paragraph))]:
        rest = paragraph[start:]
        word = rf"`?\*{{0,2}}(?:{names})`?"
        argument = names and re.match(rf"{word}(?:(?:,| and|, and) {word})*(?: \([^)]*\))?: ", rest)
        idle = names and re.match(
            rf"({word}(?:(?:,| and|, and) {word})*) ha(?:s|ve) no effect\b", rest
        )
        if argument:
            found.append((start, start + argument.end(), argument[0][:-2]))
        elif idle:
            found.append((start, start + idle.end(1) + 1, idle[1]))
        elif RAISES.match(rest):
            found.append((start, start, "Raises"))
        elif RESULT.match(rest) and (start == 0 or paragraph[:start].rstrip()[-1] in ".;"):
            found.append((start, start, "Returns"))
    return found


def parsed(text: str, parameters: Iterable[str] = ()) -> Parts:
    parameters = list(parameters)
    parts = Parts()
    for block in blocks(text):
        if block.startswith("    "):
            parts.about.append(block)
            continue
        places = heads(block, parameters)
        if not parts.about and places and places[0][0] == 0 and places[0][2] == "Returns":
            del places[0]  # the sentence that says what the function does
        if not places or places[0][0] > 0:
            end = places[0][0] if places else len(block)
            parts.about.append(tidy(block[:end]))
        for place, (_, begin, kind) in enumerate(places):
            end = places[place + 1][0] if place + 1 < len(places) else len(block)
            add(parts, kind, tidy(block[begin:end]))
    parts.about = [paragraph for paragraph in parts.about if paragraph]
    return parts


def add(parts: Parts, kind: str, text: str) -> None:
    if kind == "Returns":
        parts.results.append(re.sub(r"^Returns:? ", "", text))
    elif kind == "Raises":
        parts.raises += errors(text)
    else:
        names = re.findall(r"\*{0,2}\w+", re.sub(r" \([^)]*\)|\band\b", "", kind))
        parts.arguments.append((names, text))


def errors(text: str) -> list[tuple[str, str]]:
    """ "Raises A for x, B if y." as [("A", "for x"), ("B", "if y")]; what follows stays with the last."""
    text = text.removeprefix("Raises ")
    starts = [m.start() for m in re.finditer(rf"(?:^|(?<=[,;] )|(?<=and )){ERROR}\b", text)]
    if not starts or starts[0] > 0:
        return [("", text)]
    found: list[tuple[str, str]] = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        name, _, about = re.sub(r"(?:[,;]| and|, and)\s*$", "", text[start:end].strip()).partition(
            " "
        )
        found.append((name.rstrip(".,"), tidy(about)))
    return found


def tidy(text: str) -> str:
    return re.sub(r"[;,]$", ".", text.strip())
