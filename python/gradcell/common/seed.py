"""The process's seed, under MindSpore's module name."""

from gradcell.base.seed import (
    _get_graph_seed as _get_graph_seed,
    get_seed as get_seed,
    set_seed as set_seed,
)
