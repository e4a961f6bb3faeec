"""mindspore.mint: the ops with PyTorch's names and argument orders; nn, linalg and special are modules."""

import typing as _typing

from gradcell.base import later as _later
from gradcell.mint import functions as _functions
from gradcell.mint.functions import *  # noqa: F403

__all__ = [*_functions.__all__, "linalg", "nn", "special"]
__dir__ = sorted(__all__).copy

if _typing.TYPE_CHECKING:
    from gradcell.mint import linalg as linalg, nn as nn, special as special
_later(globals(), "linalg nn special")
