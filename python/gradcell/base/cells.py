"""The interface of cells for packages below nn."""

from __future__ import annotations


class CellBase:
    """The base of nn.Cell."""

    #: Whether it only lists cells, as nn.CellList does, and computes nothing itself.
    _lists_cells = False
