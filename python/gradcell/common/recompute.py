"""recompute: what a derivative needs of a block is computed again instead of kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gradcell import _core
from gradcell.base import bad_type, bad_value, tree, with_tensors

__all__ = ["recompute"]

R = TypeVar("R")


def recompute(
    block: Callable[..., R], *args: Any, use_reentrant: bool = True, output_recompute: bool = False,
    early_stop: bool = True, context_fn: Callable[[], Any] | None = None, **kwargs: Any,
) -> R:  # fmt: skip
    """Calls block(*args, **kwargs) in such a way that derivatives keep only its inputs: the
    backward pass computes the block again when it gets there. This takes less memory, and the
    time of one more forward pass.

    block: a Cell or any function, which is run once in Python. Random numbers are the same again,
    parameters get their gradients, and derivatives may be of any order. context_fn: a function that
    returns two contexts; the first is entered around the block, the second has no effect.
    use_reentrant and early_stop have no effect. output_recompute: whether the outputs of the block
    are computed again too; outputs that nothing else needs always are.

    A plan that runs in blocks of rows keeps no intermediate values anyway: plan_text shows it.

    Raises TypeError if block is not a function.
    """
    if not callable(block):
        bad_type(f"recompute: expected a Cell or a function, got {type(block).__name__}")
    kwargs.pop("save_rng_state", None)
    if context_fn is not None and use_reentrant and not output_recompute:
        bad_value("context_fn is only supported when use_reentrant=False.")
    args, kwargs = with_tensors(args, block), with_tensors(kwargs, block)
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
    return tree.refill(tree.outline(out), again)  # type: ignore[no-any-return]
