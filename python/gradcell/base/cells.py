"""What the rooms below nn know of cells."""

from __future__ import annotations


class CellBase:
    """The base of nn.Cell."""

    #: Whether it only lists cells, as nn.CellList does, and computes nothing itself.
    _lists_cells = False
