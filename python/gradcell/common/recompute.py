"""recompute: what a derivative needs of a block is computed again instead of kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell import _core
from gradcell.base import tree
from gradcell.base.location import where

__all__ = ["recompute"]


def recompute(
    block: Callable[..., Any],
    *args: Any,
    use_reentrant: bool = True,
    output_recompute: bool = False,
    early_stop: bool = True,
    context_fn: Callable[[], Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Calls block(*args, **kwargs) so that derivatives keep only its inputs: the backward pass
    computes the block again when it gets there. That takes less memory, for the time of one more
    forward pass.

    block: a Cell or any function, which is run once. Random numbers are the same again, parameters get
    their gradients, and derivatives may be of any order. context_fn() gives two contexts, of which the
    first is around the block; the second, with use_reentrant and early_stop, has no effect: nothing is
    run a second time in Python. output_recompute: the block's outputs are computed again as well, by what
    follows, which is so in any case where they are not needed for something else.

    What the planner runs by rows keeps nothing in memory anyway: see plan_text. Raises TypeError if block
    is not a function.
    """
    if not callable(block):
        raise TypeError(
            f"recompute: expected a Cell or a function, got {type(block).__name__}{where()}"
        )
    kwargs.pop("save_rng_state", None)
    if context_fn is not None and use_reentrant and not output_recompute:
        raise ValueError(f"context_fn is only supported when use_reentrant=False.{where()}")
    if not _core.in_trace():
        return block(*args, **kwargs)
    begin = _core.trace_size()
    if context_fn is None:
        out = block(*args, **kwargs)
    else:
        around, _ = context_fn()
        with around:
            out = block(*args, **kwargs)
    again = _core.recomputed(begin, tree.leaves(out))
    return tree.refill(tree.outline(out), again)
