"""Displays of tensors, cells, graphs and plans in a notebook."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcell._core import Tensor

ROWS, COLUMNS = 12, 12


def tensor_html(self: Tensor) -> str:
    """Dtype and shape, and the elements of a vector or matrix as a table, its middle left out where it
    is large; what has more axes as the text that print shows."""
    shape = ", ".join(map(str, self.shape))
    head = f"<small>{html.escape(str(self.dtype))} [{shape}]</small>"
    if self.ndim not in (1, 2) or self.size == 0:
        return f"{head}<pre>{html.escape(str(self))}</pre>"
    array = self.asnumpy()
    rows = array.reshape(1, -1) if self.ndim == 1 else array
    down, across = _places(rows.shape[0], ROWS), _places(rows.shape[1], COLUMNS)
    lines = (
        "".join(
            f"<td>{'…' if i is None or j is None else _number(rows[i, j])}</td>" for j in across
        )
        for i in down
    )
    return f"{head}<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _places(n: int, most: int) -> list[int | None]:
    """0, 1, ..., n - 1, or its ends with None between them."""
    if n <= most:
        return list(range(n))
    return [*range(most // 2), None, *range(n - most // 2, n)]


def _number(value: Any) -> str:
    return f"{value:.5g}" if value.dtype.kind == "f" else str(value)


def cell_html(self: Any) -> str:
    """The cell's own parameters and the cells within, each to be opened."""
    return f"<div>{_cell(self, '')}</div>"


def _cell(cell: Any, name: str) -> str:
    own = [(n, p) for n, p in cell.parameters_and_names(expand=False)]
    inner = list(cell.name_cells().items())
    count = sum(p.size for p in cell.get_parameters())
    title = f"<b>{html.escape(type(cell).__name__)}</b>"
    title = f"{html.escape(name)}: {title}" if name else title
    title += f" <small>{count:,} numbers</small>" if count else ""
    if not own and not inner:
        return f"<div style='margin-left:1.2em'>{title}</div>"
    rows = "".join(
        f"<div style='margin-left:1.2em'><code>{html.escape(n)}</code> "
        f"<small>{html.escape(str(p.dtype))} [{', '.join(map(str, p.shape))}]</small></div>"
        for n, p in own
    )
    rows += "".join(_cell(c, n) for n, c in inner)
    opened = " open" if not name else ""
    return f"<details{opened} style='margin-left:1.2em'><summary>{title}</summary>{rows}</details>"


class Listing(str):
    """The text of a graph or a plan. A notebook shows it as lines, where each came from in grey."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        lines = "\n".join(map(_line, self.splitlines()))
        return f"<pre>{lines}</pre>"


def _line(line: str) -> str:
    code, mark, origin = line.partition("  # ")
    text = html.escape(code, quote=False)
    text = re.sub(r"^(plan|stage \d+|return)\b", r"<b>\1</b>", text)
    if mark:
        text += f'<span style="opacity:0.55">{mark}{html.escape(origin, quote=False)}</span>'
    return text


class Drawing(type(Path())):  # type: ignore[misc]  # the class of this system's paths
    """The path of a drawing. A notebook shows the page itself, of another format where it is."""

    def _repr_html_(self) -> str:
        if self.suffix != ".html":
            return f"<code>{html.escape(str(self))}</code>"
        page = html.escape(self.read_text())
        return f'<iframe srcdoc="{page}" style="width:100%;height:500px;border:0"></iframe>'
