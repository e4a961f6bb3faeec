"""Networks: cells, layers, losses, optimisers, training cells."""

from __future__ import annotations

from gradcell.nn.cell import Cell

__all__ = ["Cell"]
