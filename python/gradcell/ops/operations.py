"""The primitives of gradcell.ops, under MindSpore's older module name."""

from __future__ import annotations

from gradcell.ops import *  # noqa: F403
