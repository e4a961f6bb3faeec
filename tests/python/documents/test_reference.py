"""The reference: every public name in one group, sections that are whole, examples that print what
they say, pages of a bearable length."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gradcell as gc

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "tools"))

from api_reference import docstrings, examples, formulas, groups, names, pages  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def same_seed() -> Iterator[None]:
    """Examples may set the seed of random numbers."""
    state = gc.get_rng_state()
    yield
    gc.set_rng_state(state)


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages.pages()


@pytest.fixture(scope="module")
def grouped() -> dict[str, list[names.Entry]]:
    return groups.grouped(names.entries())


def test_every_package_is_looked_at() -> None:
    known = {*names.NAMESPACES, *names.OTHERS}
    assert names.packages() <= known, "a package that names.py does not know"


def test_every_public_name_is_in_exactly_one_group(grouped: dict[str, list[names.Entry]]) -> None:
    import importlib

    held = Counter(
        name
        for entries in grouped.values()
        for entry in entries
        for name in (entry.name, *entry.others)
    )
    assert not [name for name, count in held.items() if count > 1]
    public = {
        names.short(space, name)
        for space in names.NAMESPACES
        for name in names.public_names(importlib.import_module(space))
    }
    assert public <= set(held), sorted(public - set(held))


def test_one_object_is_one_entry(grouped: dict[str, list[names.Entry]]) -> None:
    seen: dict[int, str] = {}
    for entries in grouped.values():
        for entry in entries:
            if not names.constant(entry.value):
                assert id(entry.value) not in seen, f"{entry.name} is {seen[id(entry.value)]}"
                seen[id(entry.value)] = entry.name


def test_a_name_without_a_group_is_named() -> None:
    entry = names.Entry("gc.no_such", object(), "gradcell.no_such_module")
    with pytest.raises(
        LookupError, match=r"gc\.no_such \(of gradcell\.no_such_module\) has no group"
    ):
        groups.grouped([entry])


def test_a_name_of_two_groups_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = groups.Group("Tensors", "again", "Again", "", "ops.sin")
    monkeypatch.setattr(groups, "GROUPS", (*groups.GROUPS, twice))
    with pytest.raises(LookupError, match=r"ops\.sin is in two groups: elementary, again"):
        groups.grouped([names.Entry("ops.sin", gc.ops.sin, "gradcell.ops.elements.elementwise")])


@pytest.mark.parametrize(
    ("spelling", "function"),
    [
        ("ops.MatMul", "ops.matmul"), ("ops.Sin", "ops.sin"), ("ops.BatchMatMul", "ops.bmm"),
        ("mint.sin", "ops.sin"), ("numpy.arcsin", "ops.asin"), ("numpy.max", "ops.amax"),
        ("mint.nn.Tanh", "nn.Tanh"), ("Tensor.sum", "ops.sum"), ("Tensor.add_", "ops.add"),
        ("ops.arccos", "ops.acos"), ("ops.grad", "gc.grad"), ("train.Accuracy", "nn.Accuracy"),
    ],
)  # fmt: skip
def test_spellings_stand_under_their_function(
    grouped: dict[str, list[names.Entry]], spelling: str, function: str
) -> None:
    found = [e.name for held in grouped.values() for e in held if spelling in (e.name, *e.others)]
    assert found == [function]


def test_what_only_begins_alike_is_no_spelling(grouped: dict[str, list[names.Entry]]) -> None:
    own = {entry.name for held in grouped.values() for entry in held}
    assert {"numpy.select", "mint.select", "numpy.nanstd", "numpy.divmod"} <= own


def test_the_parts_of_a_docstring() -> None:
    parts = docstrings.parsed(
        "A product.\n\n    y = a x\n\n"
        "a, x: tensors [N], of one dtype. flag: whether\nit is so; see below. unused has no effect.\n\n"
        "Returns [N]. Raises TypeError for two dtypes, ValueError if sizes differ.",
        ["a", "x", "flag", "unused"],
    )
    assert parts.about == ["A product.", "    y = a x"]
    assert parts.arguments == [
        (["a", "x"], "tensors [N], of one dtype."),
        (["flag"], "whether it is so; see below."),
        (["unused"], "has no effect."),
    ]
    assert parts.results == ["[N]."]
    assert parts.raises == [("TypeError", "for two dtypes"), ("ValueError", "if sizes differ.")]


def test_the_first_sentence_is_what_the_function_does() -> None:
    parts = docstrings.parsed(
        "Returns memory to the system. Raises RuntimeError if there is none.", []
    )
    assert parts.about == ["Returns memory to the system."]
    assert parts.raises == [("RuntimeError", "if there is none.")]


def test_a_word_that_is_no_argument_begins_no_part() -> None:
    parts = docstrings.parsed("Two ways: one, and the other. note: nothing.", ["x"])
    assert parts.about == ["Two ways: one, and the other. note: nothing."]
    assert parts.arguments == []


def test_arguments_of_another_function_stand_where_they_are_referred_to(
    made: dict[str, str],
) -> None:
    sections = {s.split("\n")[0]: s for page in made.values() for s in page.split("\n## ")}
    assert "gradients are divided by it first" in sections["nn.Adam"]
    assert "see Optimizer" not in sections["nn.Adam"]
    assert "at most half the kernel" in sections["nn.MaxPool1d"]
    for name in ("nn.Conv1d", "nn.Conv3dTranspose", "nn.InverseDecayLR"):
        assert "- `ValueError`" in sections[name], name
    assert "as Conv2d does" not in sections["nn.Conv2dTranspose"]


def test_errors_about_another_functions_arguments_are_not_borrowed(made: dict[str, str]) -> None:
    section = made["reference/losses.md"].partition("## nn.NLLLoss")[2].partition("\n## ")[0]
    assert "IndexError" in section and "label&#95;smoothing" not in section


def test_a_section_is_whole(made: dict[str, str]) -> None:
    section = next(
        s for s in made["reference/derivatives.md"].split("\n## ") if s.startswith("gc.grad\n")
    )
    for part in (
        "gc.grad(\n", "**Arguments**", "- `fn`: a function or Cell", "**Returns**", "**Raises**",
        "- `IndexError` for a position", "```pycon\n>>> ", "`ops.grad`",
        "source/python/gradcell/derivatives/transform.py.txt",
    ):  # fmt: skip
        assert part in section, part


def test_every_argument_is_explained(grouped: dict[str, list[names.Entry]]) -> None:
    """By its docstring, one that it refers to, or vocabulary.py."""
    missing = {
        entry.name: lacking
        for entries in grouped.values()
        for entry in entries
        if (lacking := pages.unexplained(entry))
    }
    assert not missing


def test_an_argument_without_an_explanation_is_found() -> None:
    def function(known: int, unheard_of: int) -> None:
        """A function.

        known: an int.
        """

    entry = names.Entry("gc.function", function, "gradcell.nowhere")
    assert pages.unexplained(entry) == ["unheard_of"]


def test_a_section_says_itself_what_the_name_does(grouped: dict[str, list[names.Entry]]) -> None:
    """Not "As softmax." only, which sends the reader to another page."""
    texts = {
        entry.name: docstrings.parsed(entry.value.__doc__ or "", []).about
        for entries in grouped.values()
        for entry in entries
        if not names.constant(entry.value)
    }
    assert not [
        name for name, about in texts.items() if about and re.match(r"As \w+[,;.]", about[0])
    ]


def test_signatures_show_values_as_one_writes_them(made: dict[str, str]) -> None:
    signatures = "".join(
        call for page in made.values() for call in re.findall(r"```python\n(.*?)```", page, re.S)
    )
    for wrong in (
        "lambda",
        "<class",
        "ForwardRef",
        "LARS>",
        "<function",
        "<Border",
        "<Signals",
        "<Inter",
    ):
        assert wrong not in signatures, wrong
    assert not re.findall(r"(?:: |-> |\[|\| )_[A-Z]\w*", signatures), "a private name of a type"


def test_items_of_lists_end_with_a_full_stop(made: dict[str, str]) -> None:
    items = [
        line
        for path, page in made.items()
        if not path.endswith("index.md")
        for part in re.findall(r"\*\*(?:Arguments|Raises)\*\*\n\n((?:- .*\n)+)", page)
        for line in part.splitlines()
    ]
    assert len(items) > 2000
    assert not [line for line in items if line[-1] not in ".:!?"]


def test_signatures_fit_a_page(made: dict[str, str]) -> None:
    layers = made["reference/convolutions.md"]
    assert "nn.Conv2d(\n    in_channels: int,\n    out_channels: int,\n" in layers
    assert "\n- `.trainable_params(" in made["reference/cells.md"]
    calls = [
        call for page in made.values() for call in re.findall(r"```python\n(.*?)```", page, re.S)
    ]
    assert max(len(line) for call in calls for line in call.splitlines()) < 100


def test_at_least_1000_names_have_an_example(grouped: dict[str, list[names.Entry]]) -> None:
    own = {entry.name for held in grouped.values() for entry in held}
    assert set(examples.EXAMPLES) <= own, "examples of names that have no section"
    assert len(examples.EXAMPLES) >= 1000


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_an_example_prints_what_it_says(name: str) -> None:
    text = examples.EXAMPLES[name]
    assert examples.written(text) == text
    assert text.count("\n") > text.count(">>>") or ">>> _" in text, "it shows nothing"


def test_pages_are_short_and_plain(made: dict[str, str]) -> None:
    """Of HTML, Material's frame is 60 kB, and text becomes three times as long; the site's hook
    measures every page when it is built (tools/site.py)."""
    for path, text in made.items():
        assert len(text.encode()) < 60_000, path
        plain = "".join(part for i, part in enumerate(text.split("```")) if i % 2 == 0)
        plain = re.sub(r"\$[^$\n]+\$", "", plain)  # formulas, which the site makes MathML of
        faults = pages.html_faults(path, plain)
        assert not faults, faults


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("<p>Arguments as for grad.</p>", "as for"),
        ("<p>x\\_y</p>", "backslash"),
        ("<p>" + "x" * 200_000 + "</p>", "more than"),
        ("<code>&lt;object at 0x7f00&gt;</code>".replace("&lt;object", "object"), "address"),
    ],
)
def test_the_site_refuses(page: str, fault: str) -> None:
    found = pages.html_faults("a.md", page)
    assert len(found) == 1 and fault in found[0]


def test_the_built_pages(tmp_path: Path) -> None:
    pytest.importorskip("material")
    build: Any = pytest.importorskip("mkdocs.commands.build")
    config: Any = pytest.importorskip("mkdocs.config")
    loaded = config.load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path))
    loaded.plugins.on_startup(command="build", dirty=False)
    build.build(loaded)
    sizes = {p.parent.name: p.stat().st_size for p in (tmp_path / "reference").rglob("index.html")}
    assert len(sizes) > len(groups.GROUPS) and max(sizes.values()) < pages.LARGEST


@pytest.mark.parametrize(
    ("formula", "latex"),
    [
        ("x / (1 + |x|)", r"\frac{x}{1 + \left|x\right|}"),
        ("a - (b - c) d", r"a - \left(b - c\right)\,d"),
        ("-(1 - p)^gamma log(p)", r"-\left(1 - p\right)^{\gamma}\,\log\left(p\right)"),
        ("(J' J + d I) s = -J' r", r"\left(J'\,J + d\,I\right)\,s = -J'\,r"),
        ("sqrt(beta_2^t) 2.5", r"\sqrt{\beta_{2}^{t}}\,2.5"),
    ],
)
def test_formulas_of_docstrings_become_latex(formula: str, latex: str) -> None:
    assert formulas.latex(formula) == rf"\displaystyle {latex}"


def test_a_formula_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(SyntaxError):
        formulas.latex("x + ")
