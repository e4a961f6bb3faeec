"""The names of gradcell.ops, under MindSpore's older module name."""

from __future__ import annotations

from gradcell.ops.operations import (
    __all__ as __all__,
    __dir__ as __dir__,
    __getattr__ as __getattr__,
)
