"""State outside the arguments on which compiled functions depend: attributes of cells, whether
parameters are trained. Restoring it reuses the forms compiled for it, as restoring a setting does.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from gradcell import _core

_next_serial = itertools.count()
#: The owners' serial numbers, by id while they live: copies have others, and no id is used twice.
_serials: dict[int, tuple[int, weakref.ref[Any]]] = {}


def _serial(owner: Any) -> int:
    key = id(owner)
    if key not in _serials:
        gone = weakref.ref(owner, lambda _: _serials.pop(key, None))
        _serials[key] = (next(_next_serial), gone)
    return _serials[key][0]


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str)


def same(was: Any, now: Any) -> bool:
    """Return whether two values cannot be told apart."""
    return was is now or (
        _is_plain(now) and type(was) is type(now) and repr(was) == repr(now)  # 0.0 is not -0.0
    )


def changed(owner: Any, name: str, was: Any, now: Any) -> None:
    """An attribute of owner has another value; compiled functions look again. Only numbers, strings
    and None are known when they return."""
    if not (_is_plain(was) and _is_plain(now)):
        _core.bump_structure_version()
        return
    setting = f"{_serial(owner)} {name} "
    _core.change_structure(f"{setting}{was!r}", f"{setting}{now!r}")
