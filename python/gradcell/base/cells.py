"""The interface of cells for packages below nn."""

from __future__ import annotations

from gradcell._core import DType


class CellBase:
    """The base of nn.Cell."""

    #: Whether it only lists cells, as nn.CellList does, and computes nothing itself.
    _lists_cells = False

    def _dtype_of_arrays(self) -> DType | None:
        """The dtype that floating arrays of other libraries get at the cell's door; None: their own."""
        raise NotImplementedError
