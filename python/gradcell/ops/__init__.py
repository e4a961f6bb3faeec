"""Ops: a function ops.x for every op, and a class ops.X of the same name as MindSpore's primitive.

The elementwise ones come from the core's op table; the rest are in the modules beside this one.
"""

from __future__ import annotations

from gradcell.ops import (
    activations as _activations,
    composition as _composition,
    creation as _creation,
    elementwise as _elementwise,
    indexing as _indexing,
    losses as _losses,
    primitives as _primitives,
    products as _products,
    random as _random,
    reductions as _reductions,
    shaping as _shaping,
)
from gradcell.ops.elementwise import *  # noqa: F403
from gradcell.ops.activations import *  # noqa: F403  isort: skip
from gradcell.ops.composition import *  # noqa: F403  isort: skip
from gradcell.ops.creation import *  # noqa: F403  isort: skip
from gradcell.ops.indexing import *  # noqa: F403  isort: skip
from gradcell.ops.losses import *  # noqa: F403  isort: skip
from gradcell.ops.primitives import *  # noqa: F403  isort: skip
from gradcell.ops.products import *  # noqa: F403  isort: skip
from gradcell.ops.random import *  # noqa: F403  isort: skip
from gradcell.ops.reductions import *  # noqa: F403  isort: skip
from gradcell.ops.shaping import *  # noqa: F403  isort: skip
from gradcell.ops.primitive import Primitive
from gradcell.transform import GradOperation, get_grad, grad, jvp, value_and_grad, vjp

__all__ = [  # noqa: PLE0604
    *_elementwise.__all__,
    *_activations.__all__,
    *_composition.__all__,
    *_creation.__all__,
    *_indexing.__all__,
    *_losses.__all__,
    *_primitives.__all__,
    *_products.__all__,
    *_random.__all__,
    *_reductions.__all__,
    *_shaping.__all__,
    "GradOperation",
    "Primitive",
    "get_grad",
    "grad",
    "jvp",
    "value_and_grad",
    "vjp",
]
