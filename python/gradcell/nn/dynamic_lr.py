"""Lists of learning rates, one for each step, for an optimiser's learning_rate.

In all of them step i belongs to epoch e = i // step_per_epoch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

from gradcell.base import arguments, bad_type, bad_value, publish


def _rates(
    owner: str,
    total_step: int,
    step_per_epoch: int,
    epochs: dict[str, int],
    rate: Callable[[int], float],
) -> list[float]:
    """rate(epoch) of each step. epochs: arguments that count some, by name."""
    counts = {"total_step": total_step, "step_per_epoch": step_per_epoch, **epochs}
    for name, count in counts.items():
        arguments.integer(count, owner, name, 1)
    return [rate(i // step_per_epoch) for i in range(total_step)]


class _Decay(Protocol):
    def __call__(
        self,
        learning_rate: float,
        decay_rate: float,
        total_step: int,
        step_per_epoch: int,
        decay_epoch: int,
        is_stair: bool = False,
    ) -> list[float]: ...


def _decay(name: str, text: str, value: Callable[[float, float, float, int], float]) -> _Decay:
    """Rates of value(learning_rate, decay_rate, decays so far, decay_epoch), as a function."""

    def function(
        learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int,
        decay_epoch: int, is_stair: bool = False,
    ) -> list[float]:  # fmt: skip
        arguments.number(learning_rate, name, "learning_rate", above=0)
        arguments.number(decay_rate, name, "decay_rate", above=0)
        arguments.boolean(is_stair, name, "is_stair")

        def rate(epoch: int) -> float:
            decays = epoch // decay_epoch if is_stair else epoch / decay_epoch
            return value(learning_rate, decay_rate, decays, decay_epoch)

        return _rates(name, total_step, step_per_epoch, {"decay_epoch": decay_epoch}, rate)

    function.__doc__ = f"""{text}

    total_step: the number of steps: the length of the list. step_per_epoch: steps in an epoch.

    Raises ValueError for values that are not positive, TypeError for wrong types.
    """
    function.__name__ = function.__qualname__ = name
    return function


def piecewise_constant_lr(milestone: Any, learning_rates: Any) -> list[float]:
    """Rates that stay constant between milestones: learning_rates[k] for the steps before
    milestone[k], from milestone[k-1] on.

    milestone: rising positive ints. learning_rates: a number for each milestone. Raises ValueError
    if they do not rise or the lengths differ, TypeError for wrong types.
    """
    owner = "piecewise_constant_lr"
    if not isinstance(milestone, (list, tuple)) or not isinstance(learning_rates, (list, tuple)):
        bad_type(f"{owner}: expected two lists")
    if len(milestone) != len(learning_rates) or not milestone:
        bad_value(f"{owner}: {len(milestone)} milestones and {len(learning_rates)} rates")
    rates: list[float] = []
    for end, rate in zip(milestone, learning_rates, strict=True):
        arguments.integer(end, owner, "milestone", 1)
        arguments.number(rate, owner, "learning_rates", least=0)
        if end < len(rates) or (rates and end == len(rates)):
            bad_value(f"{owner}: the milestones must increase, got {list(milestone)}")
        rates += [rate] * (end - len(rates))
    return rates


exponential_decay_lr: _Decay = _decay(
    "exponential_decay_lr",
    "learning_rate * decay_rate ** (e / decay_epoch), the exponent rounded down if is_stair.",
    lambda start, by, decays, _: start * by**decays,
)
natural_exp_decay_lr: _Decay = _decay(
    "natural_exp_decay_lr",
    "learning_rate * exp(-decay_rate * e), e rounded down to a multiple of decay_epoch if is_stair.",
    lambda start, by, decays, epochs: start * math.exp(-by * decays * epochs),
)
inverse_decay_lr: _Decay = _decay(
    "inverse_decay_lr",
    "learning_rate / (1 + decay_rate * e / decay_epoch), the fraction rounded down if is_stair.",
    lambda start, by, decays, _: start / (1 + by * decays),
)


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """From max_lr to min_lr along half a cosine in decay_epoch epochs, then min_lr.

    Raises ValueError unless 0 <= min_lr < max_lr and the counts are positive, TypeError for wrong
    types.
    """
    owner = "cosine_decay_lr"
    arguments.number(min_lr, owner, "min_lr", least=0)
    arguments.number(max_lr, owner, "max_lr", above=0)
    if min_lr >= max_lr:
        bad_value(f"{owner}: 'max_lr' must be greater than 'min_lr'")

    def rate(epoch: int) -> float:
        angle = math.pi * min(epoch, decay_epoch) / decay_epoch
        return min_lr + 0.5 * (max_lr - min_lr) * (1 + math.cos(angle))

    return _rates(owner, total_step, step_per_epoch, {"decay_epoch": decay_epoch}, rate)


def polynomial_decay_lr(
    learning_rate: float,
    end_learning_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    power: float,
    update_decay_epoch: bool = False,
) -> list[float]:
    """(learning_rate - end) * (1 - min(e, d) / d) ** power + end, with d = decay_epoch, or with
    update_decay_epoch the first multiple of it that is not below e.

    update_decay_epoch: whether the decay begins again with a longer period, when one has ended.
    end_learning_rate: the rate at the end. Raises ValueError for values that are not positive,
    TypeError for wrong types.
    """
    owner = "polynomial_decay_lr"
    arguments.number(learning_rate, owner, "learning_rate", above=0)
    arguments.number(end_learning_rate, owner, "end_learning_rate", least=0)
    arguments.number(power, owner, "power", above=0)
    arguments.boolean(update_decay_epoch, owner, "update_decay_epoch")

    def rate(epoch: int) -> float:
        d = decay_epoch * (max(1, math.ceil(epoch / decay_epoch)) if update_decay_epoch else 1)
        rest = (1 - min(epoch, d) / d) ** power
        return (learning_rate - end_learning_rate) * rest + end_learning_rate  # type: ignore[no-any-return]

    return _rates(owner, total_step, step_per_epoch, {"decay_epoch": decay_epoch}, rate)


def warmup_lr(
    learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int
) -> list[float]:
    """Rates that grow from 0 in proportion to the epoch e: learning_rate * min(e, warmup_epoch) /
    warmup_epoch.

    Raises ValueError for values that are not positive, TypeError for wrong types.
    """
    owner = "warmup_lr"
    arguments.number(learning_rate, owner, "learning_rate", least=0)
    if warmup_epoch == 0:
        return _rates(owner, total_step, step_per_epoch, {}, lambda _: learning_rate)
    grown: Callable[[int], float] = lambda e: learning_rate * min(e, warmup_epoch) / warmup_epoch  # noqa: E731
    return _rates(owner, total_step, step_per_epoch, {"warmup_epoch": warmup_epoch}, grown)


publish(globals())
