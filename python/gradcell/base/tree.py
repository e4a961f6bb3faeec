"""Trees: tuples, lists, dicts, dataclasses and registered classes, nested, whose leaves are tensors and
whatever else: taken apart and put together again.

`parts` and `rebuilt` say of each kind of container what it holds and how one of its type is made with other
parts; all that takes trees apart (jit, the transforms, rules, loops) goes through the two.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base.cells import CellBase
from gradcell.base.errors import bad_type, bad_value

R = TypeVar("R")


class _Kind(NamedTuple):
    parts: Callable[[Any], Sequence[Any]]
    rebuilt: Callable[[Any, list[Any]], Any]


def _copied(like: Any) -> Any:
    """A container of the same type with the same attributes, but for those that were computed from its
    parts and kept."""
    try:
        new = copy.copy(like)
    except Exception as error:
        bad_type(
            f"a {type(like).__name__} with other tensors in it cannot be made: copy.copy of it raises "
            f"{type(error).__name__}: {error}"
        )
    own = getattr(like, "__dict__", None)
    if own is like:  # its keys are its attributes
        new.__dict__ = new
    elif own:
        for name in own:
            if is_computed(like, name):
                new.__dict__.pop(name, None)
    return new


def is_computed(value: Any, name: str) -> bool:
    """Return whether an attribute is what a property of the class has computed and kept."""
    return isinstance(getattr(type(value), name, None), functools.cached_property)


def _new_tuple(like: Any, items: list[Any]) -> Any:
    """Of a subclass, without calling it: its arguments may be others."""
    new = tuple.__new__(type(like), items)
    if own := getattr(like, "__dict__", None):
        new.__dict__.update(own)
    return new


def _new_list(like: Any, items: list[Any]) -> Any:
    new = _copied(like)
    list.__setitem__(new, slice(None), items)
    return new


def _new_dict(like: Any, items: list[Any]) -> Any:
    new = _copied(like)
    for key, item in zip(like, items, strict=True):
        new[key] = item
    return new


def _field_names(value: Any) -> list[str]:
    return [f.name for f in dataclasses.fields(value) if hasattr(value, f.name)]


def _new_dataclass(like: Any, items: list[Any]) -> Any:
    new = _copied(like)
    for name, item in zip(_field_names(like), items, strict=True):
        object.__setattr__(new, name, item)  # of a frozen one, too
    return new


def _itself(container: Any) -> Any:
    return container


_SUBCLASSES: dict[type, _Kind] = {
    tuple: _Kind(_itself, _new_tuple),
    list: _Kind(_itself, _new_list),
    dict: _Kind(lambda x: list(x.values()), _new_dict),
}
_DATACLASS = _Kind(lambda x: [getattr(x, name) for name in _field_names(x)], _new_dataclass)
_PLAIN: dict[type, _Kind] = {
    tuple: _Kind(_itself, lambda like, items: tuple(items)),
    list: _Kind(_itself, lambda like, items: items),
    dict: _Kind(
        lambda x: list(x.values()), lambda like, items: dict(zip(like, items, strict=True))
    ),
}
#: Of containers by their type.
KINDS: dict[type, _Kind] = {**_PLAIN}
#: Leaves that are frequent.
_LEAVES = {Tensor, int, float, bool, str, type(None)}


def register(
    kind: type, parts: Callable[[Any], Sequence[Any]], rebuilt: Callable[[Any, list[Any]], Any]
) -> None:
    """Makes instances of a class containers of trees: parts(x) lists what x holds, rebuilt(x, items) makes
    one like x with other items."""
    KINDS[kind] = _Kind(parts, rebuilt)


def _kind_of(tree: Any) -> _Kind | None:
    kind = type(tree)
    if kind in KINDS or kind in _LEAVES:
        return KINDS.get(kind)
    if isinstance(tree, (tuple, list, dict)):
        return next(of for base, of in _SUBCLASSES.items() if isinstance(tree, base))
    if hasattr(kind, "__dataclass_fields__") and not isinstance(tree, (CellBase, Tensor)):
        return _DATACLASS
    return None


def is_fixed(kind: type) -> bool:
    """Return whether it is settled what instances of exactly this class are in a tree."""
    return kind in _PLAIN or kind in _LEAVES


def is_container(tree: Any) -> bool:
    """Return whether the tree is a container, not a leaf."""
    return not isinstance(tree, Tensor) and _kind_of(tree) is not None


def parts(tree: Any) -> Sequence[Any] | None:
    """Return the children of a container, in order; None for a leaf."""
    kind = None if isinstance(tree, Tensor) else _kind_of(tree)
    return kind and kind.parts(tree)


def names(tree: Any) -> tuple[Any, ...]:
    """The keys of a dict, or the names of the fields of a dataclass, in the order of the parts; () of other
    containers."""
    if isinstance(tree, dict):
        return tuple(tree)
    return tuple(_field_names(tree)) if _kind_of(tree) is _DATACLASS else ()


def rebuilt(like: Any, items: list[Any]) -> Any:
    """A container of the type of `like`, with its attributes and keys, that holds the items."""
    kind = _kind_of(like)
    assert kind is not None
    return kind.rebuilt(like, items)


def leaves(tree: Any) -> list[Tensor]:
    """The tensors of a tree, depth first."""
    return [tree] if isinstance(tree, Tensor) else _core.leaves(tree)


def map_leaves(fn: Callable[[Tensor], Any], tree: Any) -> Any:
    """The same tree with fn(t) in the place of each tensor t; other leaves stay."""
    return fn(tree) if isinstance(tree, Tensor) else _core.map_leaves(fn, tree)


def _mapped(fn: Callable[[Tensor], Any], tree: Any) -> Any:
    """The same of what is neither a tensor nor exactly a tuple, list or dict."""
    kind = _kind_of(tree)
    if kind is None or not leaves(tree):
        return tree  # such as an object that holds the program's settings
    return kind.rebuilt(tree, [map_leaves(fn, part) for part in kind.parts(tree)])


def _endless(tree: Any) -> NoReturn:
    bad_value(
        f"a {type(tree).__name__} that contains itself (or is nested a thousand deep) is no tree of tensors"
    )


_core.set_trees(parts, _mapped, _endless)


def in_finite(tree: Any, walk: Callable[[], R]) -> R:
    """walk(), which goes through a tree. Raises ValueError if there is no end of that."""
    try:
        return walk()
    except RecursionError:
        _endless(tree)


def map_all(fn: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree with fn(x) in the place of each leaf x, tensor or not; itself where none changes."""
    return in_finite(tree, lambda: _map_all(fn, tree))


def _map_all(fn: Callable[[Any], Any], tree: Any) -> Any:
    found = parts(tree)
    if found is None:
        return fn(tree)
    now = [_map_all(fn, part) for part in found]
    return tree if all(map(operator.is_, found, now)) else rebuilt(tree, now)


class Place:
    """Placeholder of the i-th tensor, or leaf, of a tree."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


def outline(tree: Any) -> Any:
    """The tree without its tensors, for `refill`: it keeps none of them."""
    count = itertools.count()
    return map_leaves(lambda _: Place(next(count)), tree)


def refill(outline: Any, tensors: Sequence[Any]) -> Any:
    """The tree that an outline was made of, with these tensors at their places."""
    if isinstance(outline, Place):
        return tensors[outline.index]
    kind = _kind_of(outline)
    if kind is None:
        return outline
    return kind.rebuilt(outline, [refill(part, tensors) for part in kind.parts(outline)])


def matched(who: str, tree: Any, like: Any) -> list[Any]:
    """Return the parts of a tree at the places of like's tensors, in their order. Dicts are matched
    by their keys; None stands for all below it. Raises ValueError, whose text begins with `who`, if
    the two differ."""
    if isinstance(like, (Tensor, Place)):
        return [tree]
    wanted = parts(like)
    if wanted is None:
        return []
    given = [None] * len(wanted) if tree is None else beside(who, tree, like)
    return [x for part, at in zip(given, wanted, strict=True) for x in matched(who, part, at)]


def beside(who: str, tree: Any, like: Any) -> Sequence[Any]:
    """The parts of a tree in the order of those of `like`, a container: dicts are matched by their keys.
    Raises ValueError, whose text begins with `who`, if the two differ."""
    count, given = len(parts(like) or ()), parts(tree)
    if given is None or len(given) != count:
        bad_value(
            f"{who}: a {type(like).__name__} of {count} is needed, but got "
            f"{type(tree).__name__}{'' if given is None else f' of {len(given)}'}"
        )
    if isinstance(tree, dict) and isinstance(like, dict):
        if set(tree) != set(like):
            bad_value(f"{who}: the keys should be {list(like)}, but are {list(tree)}")
        return [tree[key] for key in like]
    return given


def same_structure(a: Any, b: Any) -> bool:
    """Return whether two trees have tensors at the same positions."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return isinstance(a, Tensor) and isinstance(b, Tensor)
    x, y = parts(a), parts(b)
    if x is None or y is None:
        return not leaves(a) and not leaves(b)
    if isinstance(a, dict) != isinstance(b, dict) or (isinstance(a, dict) and list(a) != list(b)):
        return False
    return len(x) == len(y) and all(map(same_structure, x, y))
