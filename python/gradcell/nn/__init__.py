"""Networks: cells, layers, losses, optimisers, metrics, training cells.

All public names of the modules beside this one are names of this package.
"""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
import types as _types

from gradcell.base import later as _later, publish as _publish
from gradcell.nn import cell as _cell
from gradcell.nn.activations import *  # noqa: F403
from gradcell.nn.attention import *  # noqa: F403
from gradcell.nn.basic import *  # noqa: F403
from gradcell.nn.cell import *  # noqa: F403
from gradcell.nn.containers import *  # noqa: F403
from gradcell.nn.convolution import *  # noqa: F403
from gradcell.nn.derivatives import *  # noqa: F403
from gradcell.nn.dynamic_lr import *  # noqa: F403
from gradcell.nn.fused import *  # noqa: F403
from gradcell.nn.images import *  # noqa: F403
from gradcell.nn.learning_rate_schedule import *  # noqa: F403
from gradcell.nn.losses import *  # noqa: F403
from gradcell.nn.losses import _Loss as _Loss
from gradcell.nn.margins import *  # noqa: F403
from gradcell.nn.metrics import *  # noqa: F403
from gradcell.nn.normalization import *  # noqa: F403
from gradcell.nn.op_cells import *  # noqa: F403
from gradcell.nn.optim import *  # noqa: F403
from gradcell.nn.padding import *  # noqa: F403
from gradcell.nn.pooling import *  # noqa: F403
from gradcell.nn.recurrent import *  # noqa: F403
from gradcell.nn.wrap import *  # noqa: F403

_publish(globals())
_later(globals(), "probability")


def _held_by(held: object, name: str) -> object:
    """The primitive that MindSpore's cell of this kind keeps under the name, None if there is none."""
    return _importlib.import_module("gradcell.nn.held_primitives").held_by(held, name)


_cell.held_by = _held_by


#: MindSpore's subpackages of layers and losses, whose names are all in this one.
layer: _types.ModuleType = _sys.modules[__name__]
loss: _types.ModuleType = layer
