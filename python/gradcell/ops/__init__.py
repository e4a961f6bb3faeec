"""Ops: a function ops.x for every op, and a class ops.X of the same name as MindSpore's primitive.

The elementwise ones come from the core's op table; the rest are in the modules beside this one.
"""

from __future__ import annotations

from gradcell.ops import elementwise as _elementwise
from gradcell.ops.elementwise import *  # noqa: F403
from gradcell.transform import GradOperation, get_grad, grad, jvp, value_and_grad, vjp

__all__ = [  # noqa: PLE0604
    *_elementwise.__all__,
    "GradOperation",
    "get_grad",
    "grad",
    "jvp",
    "value_and_grad",
    "vjp",
]
