"""Mixed precision, under MindSpore's path."""

from __future__ import annotations

from gradcell.amp import (
    auto_mixed_precision,
    build_train_network,
    custom_mixed_precision,
    get_black_list,
    get_white_list,
)

__all__ = [
    "auto_mixed_precision",
    "build_train_network",
    "custom_mixed_precision",
    "get_black_list",
    "get_white_list",
]


def __dir__() -> list[str]:
    return sorted(__all__)
