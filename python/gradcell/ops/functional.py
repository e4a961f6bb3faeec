"""The names of gradcell.ops, under MindSpore's older module name."""

import typing as _typing

from gradcell.ops.operations import __all__ as __all__, __dir__ as __dir__

if _typing.TYPE_CHECKING:
    from gradcell.ops import *  # noqa: F403
else:  # a misspelt name is an error to a type checker
    from gradcell.ops.operations import __getattr__ as __getattr__
