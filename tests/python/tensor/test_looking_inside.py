"""Pages and notebooks: what people look at."""

from __future__ import annotations

import html
import html.parser
import json
import re
from pathlib import Path

import numpy as np
import pytest

import gradcell as gc
from gradcell import nn, ops


class Balanced(html.parser.HTMLParser):
    """Checks that what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells = 0
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.open.append(tag)
        self.cells += tag == "td"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def network() -> nn.SequentialCell:
    return nn.SequentialCell(
        nn.Dense(3, 4), nn.Tanh(), nn.SequentialCell(nn.Dense(4, 4), nn.LayerNorm((4,)))
    )


def data_of(page: Path) -> dict:
    return json.loads(re.search(r"^const graph = (.*);$", page.read_text(), re.M)[1])


def test_the_page_holds_the_graph(tmp_path: Path) -> None:
    net, x = network(), gc.Tensor(np.ones((2, 3), np.float32))
    page = gc.draw_graph(net, x, path=tmp_path / "net.html")
    data = data_of(page)
    lines = [line for line in gc.graph_text(net, x).splitlines() if line.startswith("%")]
    assert len(data["nodes"]) == len(lines)
    names = {node["op"] for node in data["nodes"]}
    assert {"argument 0", "0.weight", "2.1.gamma", "MatMul", "Tanh"} <= names
    for i, node in enumerate(data["nodes"]):
        assert all(j < i for j in node["inputs"])


def test_the_page_folds_cells(tmp_path: Path) -> None:
    data = data_of(
        gc.draw_graph(network(), gc.Tensor(np.ones((2, 3), np.float32)), path=tmp_path / "n.html")
    )
    cells = {cell["id"]: cell for cell in data["cells"]}

    def path(cell: int | None) -> list[str]:
        return [] if cell is None else [*path(cells[cell]["parent"]), cells[cell]["name"]]

    (tanh,) = (n for n in data["nodes"] if n["op"] == "Tanh")
    assert path(tanh["cell"]) == ["SequentialCell", "1: Tanh"]
    inner = [n for n in data["nodes"] if "2.0: Dense" in path(n["cell"])]
    assert any(n["op"] == "MatMul" for n in inner)
    assert "call" not in vars(nn.Cell) and nn.Cell.__call__.__name__ == "__call__"


def test_a_derivative_says_so(tmp_path: Path) -> None:
    page = gc.draw_graph(gc.grad(ops.sin), gc.Tensor(1.0), path=tmp_path / "g.html")
    assert any(n["op"] == "Cos" and n["order"] == 1 for n in data_of(page)["nodes"])


def test_a_name_cannot_end_the_script(tmp_path: Path) -> None:
    def fn(x: gc.Tensor) -> gc.Tensor:
        return x * 2

    fn.__name__ = "</script><b>"
    text = gc.draw_graph(fn, gc.Tensor(1.0), path=tmp_path / "s.html").read_text()
    assert text.count("</script>") == 1


def test_a_path_that_says_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ends in \.html.*got '.*graph\.txt'.*test_looking"):
        gc.draw_graph(ops.sin, gc.Tensor(1.0), path=str(tmp_path / "graph.txt"))


def test_a_picture_without_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="Graphviz"):
        gc.draw_graph(ops.sin, gc.Tensor(1.0), path=tmp_path / "g.svg")
    assert "Sin" in gc.draw_graph(ops.sin, gc.Tensor(1.0), path=tmp_path / "g.dot").read_text()


def test_tensors_in_a_notebook() -> None:
    small = gc.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))._repr_html_()
    assert Balanced(small).cells == 6 and "Float32 [2, 3]" in small
    large = gc.Tensor(np.zeros((100, 100)))._repr_html_()
    assert Balanced(large).cells == 13 * 13
    assert "<pre>3.0</pre>" in gc.Tensor(3.0)._repr_html_()
    assert "[0, 4]" in gc.Tensor(np.zeros((0, 4)))._repr_html_()


def test_cells_in_a_notebook() -> None:
    text = network()._repr_html_()
    Balanced(text)
    assert text.count("<details") == 6 - 1  # all but Tanh, which holds nothing
    assert "44 numbers" in text and "weight" in text and "LayerNorm" in text


def test_graphs_and_plans_in_a_notebook(tmp_path: Path) -> None:
    net, x = network(), gc.Tensor(np.ones((2, 3), np.float32))
    for text in (gc.graph_text(net, x), gc.plan_text(net, x)):
        shown = text._repr_html_()
        Balanced(shown)
        assert html.unescape(re.sub(r"<[^>]*>", "", shown)) == text.rstrip("\n")
        assert isinstance(text, str) and text + "!" == f"{text}!"  # a string like any other
    assert ">  # test_looking_inside.py:" in gc.graph_text(net, x)._repr_html_()
    page = gc.draw_graph(net, x, path=tmp_path / "net.html")
    frame = page._repr_html_()
    Balanced(frame)
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1]) == page.read_text()
    assert isinstance(page, Path) and page.parent == tmp_path
    assert "net.dot" in gc.draw_graph(net, x, path=tmp_path / "net.dot")._repr_html_()
