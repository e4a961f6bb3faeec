"""What the documentation site makes of a page: where lines may break, and the gallery's programs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gradcell_site", ROOT / "tools" / "site.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("3 ms or 1e-3 s", '3\N{NO-BREAK SPACE}ms or <span class="whole">1e-3</span>\N{NO-BREAK SPACE}s'),
        ("by L-BFGS, then", 'by <span class="whole">L-BFGS,</span> then'),
        ("5 minutes of well-known 2 - 1", "5 minutes of well-known 2 - 1"),
        ("<code>demo --list</code>", '<code>demo <span class="whole">--list</span></code>'),
        ("<code>nn.Dense(2, 1)</code>", "<code>nn.Dense(2, 1)</code>"),
        ("<code>" + "a_long/" * 6 + "</code>", "<code>" + "a_<wbr>long/<wbr>" * 5 + "a_<wbr>long/</code>"),
        ("<pre>3 ms or 1e-3</pre>", "<pre>3 ms or 1e-3</pre>"),
    ],
)  # fmt: skip
def test_lines_break_where_a_reader_expects_it(site: ModuleType, text: str, made: str) -> None:
    assert site.broken_well(f"<p>{text}</p>") == f"<p>{made}</p>"


def test_code_in_a_narrow_cell_breaks_earlier(site: ModuleType) -> None:
    name = "<code>gc.value_and_grad_of_it</code> <code>gc.value_and_grad_of_its</code>"
    assert "<wbr>" not in site.broken_well(f"<p>{name}</p>")
    short, long = site.broken_well(f"<td>{name}</td>").split(" ")
    assert "<wbr>" not in short and "gc.<wbr>value_<wbr>and" in long


def test_the_gallery_has_each_program_below_its_problem(site: ModuleType) -> None:
    text = "The problem. [a.py](../examples/high_order.py)\n\n![picture](a.png)"
    made = site.with_programs(text).split("\n\n")
    code = (ROOT / "examples" / "high_order.py").read_text()
    assert made[0] == "The problem." and made[-1] == "![picture](a.png)"
    assert made[1] == '??? example "a.py"' and code.splitlines()[0] in made[2]
    gallery = (ROOT / "docs" / "gallery.md").read_text()
    assert site.with_programs(gallery).count("??? example") >= 15


ENTRY = (
    "<pre><code>ops.asin(input) -&gt; Tensor\n</code></pre> <p>The arcsine of <code>x</code>; NaN outside."
    " More.</p> <p>Arguments</p> <ul> <li><code>input</code>: a tensor.</li> </ul> Also as <ul> <li>"
    "<code>mint.asin</code></li> <li><code>ops.arcsin(x)</code></li> </ul> <p>Source: <code>a.py</code></p>"
)


def test_the_search_index_has_what_is_searched_for(site: ModuleType) -> None:
    assert site.shorter(ENTRY, True) == "The arcsine of x ; asin arcsin"
    assert (
        site.shorter("<p>A <em>page</em></p> <pre><code>a &lt; 1</code></pre>", False)
        == "A page a &lt; 1"
    )
    assert all((ROOT / "docs" / f"{name}.md").exists() for name in site.INSIDE[1:])


def test_one_setting_names_the_repository(site: ModuleType) -> None:
    address = "https://host.example/owner/name"
    for name in ("index", "install"):
        text = (ROOT / "docs" / f"{name}.md").read_text()
        made = site.with_address(text, address)
        assert (
            f"    pip install git+{address}\n\nor `pip install .` in [a clone]({address})" in made
        )
        assert made.count("pip install gradcell") == 0
    assert (ROOT / "mkdocs.yml").read_text().count("GRADCELL_ADDRESS") == 1


def test_the_first_page_begins_with_a_program_a_picture_and_a_figure() -> None:
    text = (ROOT / "docs" / "index.md").read_text()
    top = text[: text.index("## ")]
    assert "```python" in top and "![" in top and "| gradcell | **3.7 ms** |" in top
    gallery = (ROOT / "docs" / "gallery.md").read_text()
    assert gallery.index("## Burgers") < gallery.index("## GAN")
