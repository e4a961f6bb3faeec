"""Ops: a function ops.x for every op, and a class ops.X of the same name as MindSpore's primitive.

The elementwise ones come from the core's op table; the rest are in the modules beside this one.
"""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module
from typing import Any

from gradcell.ops import (
    activations,
    composition,
    convolution,
    creation,
    elementwise,
    indexing,
    interpolation,
    losses,
    margins,
    normalization,
    primitives,
    products,
    random,
    reductions,
    shaping,
)
from gradcell.ops.activations import *  # noqa: F403
from gradcell.ops.composition import *  # noqa: F403
from gradcell.ops.convolution import *  # noqa: F403
from gradcell.ops.creation import *  # noqa: F403
from gradcell.ops.elementwise import *  # noqa: F403
from gradcell.ops.indexing import *  # noqa: F403
from gradcell.ops.interpolation import *  # noqa: F403
from gradcell.ops.losses import *  # noqa: F403
from gradcell.ops.margins import *  # noqa: F403
from gradcell.ops.normalization import *  # noqa: F403
from gradcell.ops.primitive import Primitive
from gradcell.ops.primitives import *  # noqa: F403
from gradcell.ops.products import *  # noqa: F403
from gradcell.ops.random import *  # noqa: F403
from gradcell.ops.reductions import *  # noqa: F403
from gradcell.ops.shaping import *  # noqa: F403
from gradcell.transform import GradOperation, get_grad, grad, jvp, value_and_grad, vjp

__all__: list[str] = [
    *activations.__all__,
    *composition.__all__,
    *convolution.__all__,
    *creation.__all__,
    *elementwise.__all__,
    *indexing.__all__,
    *interpolation.__all__,
    *losses.__all__,
    *margins.__all__,
    *normalization.__all__,
    *primitives.__all__,
    *products.__all__,
    *random.__all__,
    *reductions.__all__,
    *shaping.__all__,
    "GradOperation",
    "Primitive",
    "get_grad",
    "grad",
    "jvp",
    "value_and_grad",
    "vjp",
]

from gradcell.ops.later import LATER as _LATER  # isort: skip

#: MindSpore's older names of these ops, imported when first asked for: they take them from here.
_OLDER = ("composite", "functional", "operations")

if _typing.TYPE_CHECKING:
    from gradcell.ops._tables import *  # noqa: F403

from gradcell._signposts import missing as _missing  # noqa: E402

if not _typing.TYPE_CHECKING:  # a misspelt name is an error to a type checker

    def __getattr__(name: str) -> Any:
        place = _LATER.get(name)
        if place is None and name not in _OLDER:
            raise _missing("gradcell.ops", name, __all__)
        module = _import_module(f"gradcell.ops.{place or name}")
        value = module if place is None else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__})  # forms of more arguments replace rows of the table


__all__ += [name for name in _LATER if not name.startswith("_")]
