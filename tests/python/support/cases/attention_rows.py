"""The structured rows of attention, and what it is in NumPy with all scores in memory.

`sums` is what csrc/ops/combining/attention.h states, term by term.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gradcell import Tensor, _core

core = _core.ops

EVERY = 1 << 62


class Heads(NamedTuple):
    """A way to attend: sizes, which inputs there are besides queries, keys and values."""

    lead: tuple[int, ...] = (2,)
    queries: int = 3
    keys: int = 4
    width: int = 2
    values: int = 3
    factors: tuple[int, ...] = ()
    shifted: bool = False
    mask: np.ndarray | None = None  # bool: the operand has no gradient; else its shape counts
    behind: int = EVERY
    ahead: int = EVERY
    inside: bool = False  # heads stand between rows and features


def above(s: Heads) -> float:
    """By how much normalisers are larger than their operand: sums near 1, whose sines differences
    can follow."""
    return 2.0 + math.log(s.keys + s.queries)


def shapes(op: str, s: Heads) -> tuple[tuple[int, ...], ...]:
    """Of the operands that have gradients: queries, keys, values, normalisers, shift, factors, and
    last the mask if it is to be added."""
    q, k = (*s.lead, s.queries), (*s.lead, s.keys)
    found = [(*q, s.width), (*k, s.width)]
    if op != "AttentionLogSum":
        found.append(((*q,) if op == "AttentionColumns" else (*k,)) + (s.values,))
    if op in ("AttentionRows", "AttentionColumns"):
        found.append((*q, 1))
        if s.shifted:
            found.append((*q, 1))
        for n in s.factors:
            found += [(*q, n), (*k, n)]
    if s.inside:
        found = [(*n[:-3], n[-2], n[-3], n[-1]) for n in found]
    if s.mask is not None and s.mask.dtype != bool:
        found.append(s.mask.shape)
    return tuple(found)


def run(op: str, s: Heads, *operands: Tensor) -> Tensor:
    xs = list(operands)
    mask = None if s.mask is None else Tensor(s.mask) if s.mask.dtype == bool else xs.pop()
    given = [xs.pop(0), xs.pop(0)]
    if op != "AttentionLogSum":
        given.append(xs.pop(0))
    known = op in ("AttentionRows", "AttentionColumns")
    shift = None
    if known:
        given.append(xs.pop(0) + above(s))
        shift = xs.pop(0) if s.shifted else None
    given += [x for x in (mask, shift) if x is not None]
    one, none = (struct.unpack("q", struct.pack("d", x))[0] for x in (1.0, -np.inf))
    heads = int(np.prod(s.lead))
    function = {
        "Attention": core.attention,
        "AttentionLogSum": core.attention_log_sum,
        "AttentionRows": core.attention_rows,
        "AttentionColumns": core.attention_columns,
    }[op]
    return function(
        [*given, *xs],
        mask is not None,
        False,
        shift is not None,
        one,
        heads,
        s.behind,
        s.ahead,
        s.inside,
        scale=one,
        fill=none,
    )


def scores(s: Heads, q: np.ndarray, k: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    found = q @ np.swapaxes(k, -1, -2)
    if mask is not None:
        found = np.where(mask, -np.inf, found) if mask.dtype == bool else found + mask
    at = np.arange(s.keys) - np.arange(s.queries)[:, None]
    return np.where((at > s.ahead) | (at < -s.behind), -np.inf, found)


def outside(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -2, -3)


def masks_of(s: Heads, mask: np.ndarray | None) -> list[np.ndarray]:
    return [] if mask is None or mask.dtype == bool else [mask]


def sums(op: str, s: Heads, *operands: np.ndarray) -> np.ndarray:
    xs = list(operands)
    mask = s.mask if s.mask is None or s.mask.dtype == bool else xs.pop()
    if s.inside:
        return outside(sums(op, s._replace(inside=False), *map(outside, xs), *masks_of(s, mask)))
    found = scores(s, xs.pop(0), xs.pop(0), mask)
    seen = np.isfinite(found)
    if op in ("Attention", "AttentionLogSum"):
        e = np.where(seen, np.exp(np.where(seen, found, 0)), 0)
        total = e.sum(-1, keepdims=True)
        if op == "AttentionLogSum":
            return np.log(total)
        return (e / np.where(total == 0, 1, total)) @ xs.pop(0)
    c, log_sum = xs.pop(0), xs.pop(0) + above(s)
    shift = xs.pop(0) if s.shifted else 0.0
    w = np.ones_like(found)
    while xs:
        w = w * (xs.pop(0) @ np.swapaxes(xs.pop(0), -1, -2))
    w = np.where(seen, np.exp(np.where(seen, found - log_sum, 0)), 0) * (w - shift)
    return (np.swapaxes(w, -1, -2) if op == "AttentionColumns" else w) @ c


SOME = np.array([[False, True, False, True], [True, False, False, False], [False] * 4])
NONE = np.array([[False, True, False, True], [True] * 4, [False, False, True, False]])

WAYS: dict[str, Heads] = {
    "plain": Heads(),
    "one head": Heads(lead=()),
    "one key": Heads(lead=(), keys=1),
    "no width": Heads(lead=(), width=0),
    "mask": Heads(mask=SOME[None]),
    "mask of keys": Heads(lead=(2, 1), mask=np.array([[[[True, False, False, True]]]] * 2)),
    "added": Heads(lead=(2, 2), queries=2, keys=2, mask=np.zeros((2, 1, 2, 2))),
    "causal": Heads(lead=(), ahead=0),
    "inside": Heads(lead=(2, 2), queries=2, keys=3, width=1, values=2, inside=True),
    "inside, mask": Heads(lead=(2,), mask=SOME[None], values=2, inside=True),
    "inside, added": Heads(queries=2, keys=2, values=1, mask=np.zeros((2, 1, 2)), inside=True),
    "band": Heads(lead=(), queries=4, keys=5, behind=1, ahead=1),
}
SUMS: dict[str, Heads] = {
    "factor": Heads(lead=(), factors=(2,)),
    "two factors, shift": Heads(lead=(), queries=2, keys=3, factors=(2, 1), shifted=True),
    "shift": Heads(lead=(), shifted=True, values=1),
    "mask, factor, shift": Heads(mask=SOME[None], factors=(1,), shifted=True, values=2),
    "inside, factor, shift": Heads(
        queries=2, keys=2, mask=np.zeros((1, 2, 2)), factors=(2,), shifted=True, inside=True
    ),
    "added, factor": Heads(lead=(), queries=2, mask=np.zeros((1, 4)), factors=(2,), shifted=True),
}
#: Several blocks of queries and of keys, the last ones not full; their derivatives are checked once.
LARGE: dict[str, Heads] = {
    "blocks": Heads(queries=70, keys=150, width=5, values=7),
    "blocks, causal": Heads(queries=150, keys=140, width=3, values=17, ahead=0),
    "blocks, inside": Heads(lead=(2, 3), queries=70, keys=66, width=5, values=4, inside=True),
    "blocks, band": Heads(queries=140, keys=200, width=3, behind=3, ahead=70),
    "blocks, mask": Heads(
        lead=(2, 3), queries=65, keys=130, width=4, values=4,
        mask=(np.arange(65 * 130) % 7 < 2).reshape(1, 1, 65, 130)
        | (np.arange(130) < 64) & (np.arange(2)[:, None, None, None] > 0),
    ),
    "blocks, added": Heads(queries=67, keys=70, mask=np.zeros((1, 67, 70))),
}  # fmt: skip


def attention_cases(case: Callable[..., Any]) -> Iterator[Any]:
    """Of numbers so small that differences can follow sums of exponentials."""

    def made(op: str, label: str, s: Heads, order: int) -> Any:
        return case(
            op,
            label,
            lambda *xs: run(op, s, *(0.3 * x for x in xs)),
            lambda *xs: sums(op, s, *(0.3 * x for x in xs)),
            shapes(op, s),
            order=order,
        )

    for op in ("Attention", "AttentionLogSum", "AttentionRows", "AttentionColumns"):
        known = op in ("AttentionRows", "AttentionColumns")
        for label, s in {**WAYS, **(SUMS if known else {})}.items():
            yield made(op, label, s, 3)
        for label, s in LARGE.items():
            yield made(op, label, s._replace(factors=(3,), shifted=True) if known else s, 1)
