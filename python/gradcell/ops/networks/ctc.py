"""Connectionist temporal classification: the loss of sequences whose labels are not aligned."""

from __future__ import annotations

import math
from typing import Any

from gradcell._core import Tensor, int64, ops as _ops
from gradcell.base import arguments, bad_value
from gradcell.ops.control.loops import loop
from gradcell.ops.decorators import wide_plan
from gradcell.ops.networks.losses import _pair, _reduced

__all__ = ["ctc_loss"]


_IMPOSSIBLE = -1e30  # in place of log 0, so that no derivative is 0 times infinity


def _log_sum(parts: list[Tensor]) -> Tensor:
    largest = parts[0]
    for part in parts[1:]:
        largest = _ops.maximum(largest, part)
    largest = _ops.stop_gradient(largest)
    total: Any = 0.0
    for part in parts:
        total = _ops.add(_ops.exp(_ops.sub(part, largest)), total)
    return _ops.add(_ops.log(total), largest)


def _shifted(x: Tensor, by: int) -> Tensor:
    """Rows moved to the right, what is impossible coming in."""
    n, width = x.shape
    if by >= width:
        return _ops.full([n, width], _IMPOSSIBLE, x.dtype)
    kept = _ops.slice(x, [0, 0], [n, width - by], [1, 1])
    return _ops.concat([_ops.full([n, by], _IMPOSSIBLE, x.dtype), kept], 1)


def _picked(rows: Tensor, column: Tensor) -> Tensor:
    """rows [N, W] at column [N, K]: [N, K]; IndexError where a column is out of range."""
    n, width = rows.shape
    outside = _ops.logical_or(_ops.less(column, 0), _ops.greater_equal(column, width))
    first = _ops.mul(_ops.iota(list(column.shape), int64, 0), width)
    at = _ops.where(outside, n * width, _ops.add(first, column))
    return _ops.gather(_ops.reshape(rows, [n * width]), at, 0)


def _lengths(value: Any, n: int, op: str, name: str) -> Tensor:
    if isinstance(value, (tuple, list)):
        value = Tensor(list(value), int64)
    length = _ops.cast(arguments.tensor(value, op, name), int64)
    if list(length.shape) not in ([n], []):
        bad_value(f"For '{op}', the '{name}' must have shape [{n}], but got {list(length.shape)}.")
    return _ops.reshape(_ops.broadcast_to(length, [n]), [n, 1])


@wide_plan
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """(-log of the probability of the targets, the logarithmic forward variables [N, T, 2 S + 1]).

    Graves et al., Connectionist temporal classification (2006), equations 5 to 8. log_probs [T, N,
    C]: logarithms of probabilities, C with the blank. targets [N, S]: class numbers. input_lengths,
    target_lengths [N]: how much of each counts. 'mean': each loss over its target's length, then
    the mean. zero_infinity: whether impossible targets have a loss of 0. Raises TypeError,
    ValueError, and IndexError for lengths and classes out of range.
    """
    op = "ctc_loss"
    x, t = _pair(log_probs, targets, op, reduction)
    x = arguments.floating(x)
    if x.ndim != 3 or t.ndim != 2 or t.shape[0] != x.shape[1] or 0 in x.shape:
        bad_value(
            f"For '{op}', log_probs must be [T, N, C] and targets [N, S], but got {list(x.shape)} and "
            f"{list(t.shape)}."
        )
    time, n, classes = x.shape
    blank = arguments.integer(blank, op, "blank", 0)
    if blank >= classes:
        bad_value(f"For '{op}', blank {blank} is not one of {classes} classes")
    steps = _lengths(input_lengths, n, op, "input_lengths")
    count = _lengths(target_lengths, n, op, "target_lengths")
    s = t.shape[1]
    t = _ops.cast(t, int64)
    in_target = _ops.less(_ops.iota([n, s], int64, 1), count)
    t = _ops.where(in_target, t, blank)
    # Targets with blanks around each: [N, 2 S + 1]
    pairs = _ops.concat([_ops.full([n, s, 1], blank, int64), _ops.reshape(t, [n, s, 1])], 2)
    last = _ops.full([n, 1], blank, int64)
    extended = _ops.concat([_ops.reshape(pairs, [n, 2 * s]), last], 1)
    width = 2 * s + 1
    # A label may follow another one directly, unless they are the same.
    fresh = _ops.not_equal(extended, blank)
    if width > 2:
        before = _ops.slice(extended, [0, 0], [n, width - 2], [1, 1])
        before = _ops.concat([_ops.full([n, 2], blank, int64), before], 1)
        fresh = _ops.logical_and(fresh, _ops.not_equal(extended, before))
    place = _ops.iota([n, width], int64, 1)
    numbers = _ops.reshape(_ops.iota([time], int64, 0), [time, 1, 1])

    def step(state: list[Tensor], slices: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        (alpha,), (row, number) = state, slices
        skip = _ops.where(fresh, _shifted(alpha, 2), _IMPOSSIBLE)
        new = _log_sum([alpha, _shifted(alpha, 1), skip])
        new = _ops.maximum(_ops.add(new, _picked(row, extended)), _IMPOSSIBLE)
        alpha = _ops.where(_ops.greater(steps, number), new, alpha)
        return [alpha], [alpha]

    # Before the first step, all that is written is the blank in front.
    start = _ops.where(_ops.less(place, 1), _ops.full([n, width], 0.0, x.dtype), _IMPOSSIBLE)
    (alpha,), (history,) = loop(step, [start], [x, numbers], time)
    # Out of range where a length is: looked up, so that this is an IndexError.
    end = _ops.where(_ops.greater(steps, time), -width, _ops.mul(count, 2))
    end = _ops.where(_ops.less(steps, 1), -width, end)
    in_blank = _picked(alpha, end)
    behind = _ops.maximum(_ops.sub(end, 1), 0)
    in_label = _ops.where(_ops.greater(count, 0), _picked(alpha, behind), _IMPOSSIBLE)
    found = _ops.reshape(_log_sum([in_blank, in_label]), [n])
    possible = _ops.greater(found, _IMPOSSIBLE / 10)
    worst = 0.0 if arguments.boolean(zero_infinity, op, "zero_infinity") else math.inf
    loss = _ops.where(possible, _ops.neg(found), worst)
    alphas = _ops.transpose(history, [1, 0, 2])
    alphas = _ops.where(_ops.greater(alphas, _IMPOSSIBLE / 10), alphas, -math.inf)
    if reduction == "mean":
        each = _ops.cast(_ops.maximum(_ops.reshape(count, [n]), 1), x.dtype)
        return _ops.mean(_ops.div(loss, each)), alphas
    return _reduced(loss, reduction), alphas
