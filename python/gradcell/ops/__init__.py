"""Ops: a function ops.x for every op, and a class ops.X of the same name as MindSpore's primitive.

The elementwise ones come from the core's op table; the rest are in the modules beside this one.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

from gradcell.ops.elements.elementwise import *  # noqa: F403

# isort: split
from gradcell.base import explain as _explain, missing as _missing
from gradcell.derivatives.transform import GradOperation, get_grad, grad, jvp, value_and_grad, vjp
from gradcell.ops._index import MODULES as _MODULES
from gradcell.ops.arrays import creation, indexing, shaping
from gradcell.ops.arrays.creation import *  # noqa: F403
from gradcell.ops.arrays.indexing import *  # noqa: F403
from gradcell.ops.arrays.shaping import *  # noqa: F403
from gradcell.ops.control import composition
from gradcell.ops.control.composition import *  # noqa: F403
from gradcell.ops.elements import activations, elementwise
from gradcell.ops.elements.activations import *  # noqa: F403
from gradcell.ops.matrices import products
from gradcell.ops.matrices.products import *  # noqa: F403
from gradcell.ops.primitive import Primitive
from gradcell.ops.random import draws
from gradcell.ops.random.draws import *  # noqa: F403
from gradcell.ops.reductions import reductions
from gradcell.ops.reductions.reductions import *  # noqa: F403

_AT_ONCE = (
    activations, composition, creation, elementwise, indexing, products, draws, reductions, shaping,
)  # fmt: skip
for _module in _AT_ONCE:
    _explain(vars(_module))

#: The modules of ops that are imported when they are first asked for.
_LATER = {name: module for module, names in _MODULES.items() for name in names.split()}

#: MindSpore's older names of these ops, imported when first asked for: they take them from here.
_OLDER = ("composite", "functional", "operations")

__all__: list[str] = [
    *(name for module in _AT_ONCE for name in module.__all__),
    "GradOperation", "Primitive", "get_grad", "grad", "jvp", "value_and_grad", "vjp",
    *(name for name in _LATER if not name.startswith("_")),
]  # fmt: skip
__dir__ = sorted(__all__).copy


def __getattr__(name: str) -> Any:
    place = _LATER.get(name)
    if place is None and name not in _OLDER:
        raise _missing("gradcell.ops", name, __all__)
    module = _import_module(f"gradcell.ops.{place or name}")
    if place:
        _explain(vars(module))
    value = module if place is None else getattr(module, name)
    globals()[name] = value
    return value
