"""Trees: nested containers, and what they hold, for programs that keep tensors in structures of their own.

Containers are tuples, lists and dicts with all that is made of them (named tuples, OrderedDict, defaultdict),
dataclasses, and classes that `register` names. None is a tree without leaves. Everything else is a leaf:
tensors, numbers, arrays, strings, cells. Transforms, jit and loops take the same trees apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value, tree as _tree

__all__ = ["Structure", "flatten", "leaves", "map", "register", "structure", "unflatten"]
__dir__ = sorted(__all__).copy

C = TypeVar("C", bound=type)


class Structure:
    """All of a tree but its leaves, as `structure` and `flatten` give it. Two are equal where the containers
    are of the same types, with the same keys in the same order, around leaves at the same places.

    tree: any value. size: the number of leaves.
    """

    def __init__(self, tree: Any) -> None:
        places = itertools.count()
        self._outline: Any = _mapped(lambda _: _tree.Place(next(places)), tree)
        self._described: Any = _described(self._outline)
        self.size: int = next(places)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self._described == other._described

    def __hash__(self) -> int:
        return hash(self._described)

    def __repr__(self) -> str:
        return f"Structure({_text(self._described)})"


def _described(outline: Any) -> Any:
    """The types, keys and places of containers, as nested tuples; Ellipsis for a leaf."""
    found = _tree.parts(outline)
    if found is None:
        return None if outline is None else ...
    return type(outline), _tree.names(outline), *(_described(part) for part in found)


def _text(described: Any) -> str:
    if not isinstance(described, tuple):
        return "None" if described is None else "*"
    kind, names, *parts = described
    shown = [_text(part) for part in parts]
    if kind is dict:
        return f"{{{', '.join(f'{k!r}: {v}' for k, v in zip(names, shown, strict=True))}}}"
    if kind is list:
        return f"[{', '.join(shown)}]"
    if kind is tuple:
        return f"({', '.join(shown)}{',' * (len(shown) == 1)})"
    if names:
        shown = [f"{k}={v}" for k, v in zip(names, shown, strict=True)]
    return f"{kind.__name__}({', '.join(shown)})"


def _mapped(fn: Callable[..., Any], tree: Any, *others: Any) -> Any:
    if tree is None:
        return None
    found = _tree.parts(tree)
    if found is None:
        return fn(tree, *others)
    beside = [_tree.beside("tree.map", other, tree) for other in others]
    return _tree.rebuilt(tree, [_mapped(fn, *parts) for parts in zip(found, *beside, strict=True)])


def map(fn: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """A tree like the first one with fn(leaf) in the place of each leaf; of several trees, with fn(leaf,
    what is at its place in the second, ...).

    fn: a function of as many arguments as there are trees. tree: any value. others: trees with the first
    one's containers at its places, dicts with the same keys in any order; below a leaf of the first one
    they may go on.

    Raises ValueError where another tree's containers do not fit, or a tree contains itself.
    """
    return _tree.in_finite(tree, lambda: _mapped(fn, tree, *others))


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree, depth first; those of dicts and dataclasses in the order of keys and fields.

    tree: any value. Raises ValueError if it contains itself.
    """
    found: list[Any] = []
    map(found.append, tree)
    return found


def structure(tree: Any) -> Structure:
    """Return the structure of a tree: all but its leaves.

    tree: any value. Raises ValueError if it contains itself.
    """
    return _tree.in_finite(tree, lambda: Structure(tree))


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of a tree and its structure, of which `unflatten` makes the tree again.

    tree: any value. Raises ValueError if it contains itself.
    """
    return leaves(tree), structure(tree)


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """A tree of a structure with these leaves. Containers are new, with the attributes of those that the
    structure was made of.

    structure: a Structure. leaves: as many values as it has leaves, in the order of `leaves`.

    Raises TypeError for anything but a Structure, ValueError unless there are as many leaves as it has.
    """
    if not isinstance(structure, Structure):
        kind = type(structure).__name__
        bad_type(f"tree.unflatten: expected a Structure, as tree.structure gives it, got {kind}")
    given = list(leaves)
    if len(given) != structure.size:
        bad_value(
            f"tree.unflatten: the structure has {structure.size} leaves, but got {len(given)}"
        )
    return _tree.refill(structure._outline, given)


def register(
    kind: C, parts: Callable[[Any], Sequence[Any]], rebuilt: Callable[[Any, list[Any]], Any]
) -> C:
    """Makes the instances of a class containers, for all of gradcell: jit, transforms and loops go into them.

    kind: the class; its subclasses are registered by themselves. parts: a function of an instance that lists
    what it holds, always in the same order. rebuilt: a function of an instance and a list of other parts that
    makes an instance like it with those. Returns the class.

    Raises TypeError for anything but a class and functions, ValueError for a class whose meaning is fixed:
    tuples, lists, dicts, Tensor, numbers and strings.
    """
    if not isinstance(kind, type) or not callable(parts) or not callable(rebuilt):
        bad_type(
            "tree.register: expected a class, a function that lists its parts and one that makes it of others"
        )
    if _tree.is_fixed(kind) or issubclass(kind, Tensor):
        bad_value(f"tree.register: what a {kind.__name__} is in a tree does not change")
    _tree.register(kind, parts, rebuilt)
    return kind
