"""Ops: a function ops.x for every op, and a class ops.X of the same name as MindSpore's primitive.

The elementwise ones come from the core's op table; the rest are in the modules beside this one.
"""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module
from typing import Any

from gradcell.ops.elements.elementwise import *  # noqa: F403  (forms of more arguments, below, replace rows)

# isort: split
from gradcell.derivatives.transform import GradOperation, get_grad, grad, jvp, value_and_grad, vjp
from gradcell.ops.arrays import assignments, creation, indexing, shaping
from gradcell.ops.arrays.assignments import *  # noqa: F403
from gradcell.ops.arrays.creation import *  # noqa: F403
from gradcell.ops.arrays.indexing import *  # noqa: F403
from gradcell.ops.arrays.shaping import *  # noqa: F403
from gradcell.ops.control import composition
from gradcell.ops.control.composition import *  # noqa: F403
from gradcell.ops.elements import activations, elementwise
from gradcell.ops.elements.activations import *  # noqa: F403
from gradcell.ops.matrices import norms as matrix_norms, products
from gradcell.ops.matrices.norms import *  # noqa: F403
from gradcell.ops.matrices.products import *  # noqa: F403
from gradcell.ops.networks import convolution, ctc, interpolation, losses, margins, norms
from gradcell.ops.networks.convolution import *  # noqa: F403
from gradcell.ops.networks.ctc import *  # noqa: F403
from gradcell.ops.networks.interpolation import *  # noqa: F403
from gradcell.ops.networks.losses import *  # noqa: F403
from gradcell.ops.networks.margins import *  # noqa: F403
from gradcell.ops.networks.norms import *  # noqa: F403
from gradcell.ops.primitive import Primitive
from gradcell.ops.primitives import classes
from gradcell.ops.primitives.classes import *  # noqa: F403
from gradcell.ops.random import functions
from gradcell.ops.random.functions import *  # noqa: F403
from gradcell.ops.reductions import reductions
from gradcell.ops.reductions.reductions import *  # noqa: F403

__all__: list[str] = [
    *activations.__all__,
    *assignments.__all__,
    *composition.__all__,
    *convolution.__all__,
    *creation.__all__,
    *ctc.__all__,
    *elementwise.__all__,
    *indexing.__all__,
    *interpolation.__all__,
    *losses.__all__,
    *margins.__all__,
    *matrix_norms.__all__,
    *norms.__all__,
    *classes.__all__,
    *products.__all__,
    *functions.__all__,
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

from gradcell.ops._index import MODULES as _MODULES  # isort: skip

#: The modules of ops that are imported when they are first asked for.
_LATER = {name: module for module, names in _MODULES.items() for name in names.split()}

#: MindSpore's older names of these ops, imported when first asked for: they take them from here.
_OLDER = ("composite", "functional", "operations")

if _typing.TYPE_CHECKING:
    from gradcell.ops._tables import *  # noqa: F403

from gradcell.base.signposts import missing as _missing  # noqa: E402

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
