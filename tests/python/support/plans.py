"""Plans that are made anew: kept ones are found by the settings, too."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

from gradcell import _core

_launches = itertools.count(1 << 21)


@contextlib.contextmanager
def made_anew() -> Iterator[None]:
    """While it lasts, the settings are none that there have been before; they differ from others in what
    plans for a CPU do not go by."""
    _core.weigh_cuda_plans(launch=next(_launches))
    try:
        yield
    finally:
        _core.weigh_cuda_plans()
