"""Nested tuples, lists and dicts of tensors: taken apart and put together again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from gradcell._core import Tensor


def leaves(tree: Any) -> list[Tensor]:
    """The tensors of a tree, depth first."""
    out: list[Tensor] = []
    _collect(tree, out)
    return out


def _collect(tree: Any, out: list[Tensor]) -> None:
    if isinstance(tree, Tensor):
        out.append(tree)
    elif isinstance(tree, (tuple, list)):
        for item in tree:
            _collect(item, out)
    elif isinstance(tree, dict):
        for item in tree.values():
            _collect(item, out)


def map_leaves(fn: Callable[[Tensor], Any], tree: Any) -> Any:
    """The same tree with fn(t) in the place of each tensor t; other leaves stay, and what is mutable
    stays so."""
    if isinstance(tree, Tensor):
        return fn(tree)
    if hasattr(tree, "__ms_mutable__") and isinstance(tree, (tuple, list, dict)):
        plain = tree.items() if isinstance(tree, dict) else tree
        return type(tree)(map_leaves(fn, tuple(plain)))
    if isinstance(tree, tuple):
        items = [map_leaves(fn, item) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else tuple(items)
    if isinstance(tree, list):
        return [map_leaves(fn, item) for item in tree]
    if isinstance(tree, dict):
        return {key: map_leaves(fn, item) for key, item in tree.items()}
    return tree


class _Place:
    """Where the i-th tensor was in a tree."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


def outline(tree: Any) -> Any:
    """The tree without its tensors, for `refill`: it keeps none of them."""
    count = itertools.count()
    return map_leaves(lambda _: _Place(next(count)), tree)


def refill(outline: Any, tensors: Sequence[Any]) -> Any:
    """The tree that an outline was made of, with these tensors at their places."""
    if isinstance(outline, _Place):
        return tensors[outline.index]
    if isinstance(outline, tuple):
        items = [refill(part, tensors) for part in outline]
        return type(outline)(*items) if hasattr(outline, "_fields") else tuple(items)
    if isinstance(outline, list):
        return [refill(part, tensors) for part in outline]
    if isinstance(outline, dict):
        return {key: refill(part, tensors) for key, part in outline.items()}
    return outline


def same_structure(a: Any, b: Any) -> bool:
    """Whether two trees have tensors at the same positions."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return isinstance(a, Tensor) and isinstance(b, Tensor)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(same_structure(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same_structure(a[k], b[k]) for k in a)
    return True
