"""mindspore.experimental.optim.lr_scheduler: schedules that write the rates of an optimiser's param_groups.

A rule is a function of the schedule and the step's number, which returns what the rates are multiplied by
in this step, or the rates of the groups; `_rule` makes the class, whose options are attributes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import arguments, bad_key, bad_type, bad_value, unsupported
from gradcell.mindspore.optim import Optimizer, made
from gradcell.tensors.parameter import Parameter

_INTEGERS = "T_0 T_max T_mult last_epoch step_size total_iters".split()


def _number(value: float, name: str) -> Parameter:
    return Parameter(Tensor(float(value), _core.float32), name, False)


def _write(rates: list[Parameter], values: list[Any]) -> None:
    for rate, value in zip(rates, values, strict=True):
        ops.assign(rate, value)


def _for_groups(optimizer: Optimizer, value: Any, name: str) -> list[Any]:
    """One value for each group of parameters."""
    count = len(optimizer.param_groups)
    found = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(found) != count:
        bad_value(f"'{name}' must be one value or {count}, one for each group, but got {value}.")
    return found


class LRScheduler:
    """The base of schedules: define get_lr, which gives the rates of the groups, in a subclass.

    optimizer: whose rates. last_epoch: the number of steps made, -1 at the beginning; or a dict of that and
    of options, which become attributes. Raises TypeError for another optimiser, ValueError for a last_epoch
    below -1, KeyError for groups that have not begun.
    """

    _new: ClassVar[Any] = None
    optimizer: Optimizer
    base_lrs: list[Any]
    last_epoch: Parameter
    _last_lr: list[Parameter]

    def __init__(self, optimizer: Optimizer, last_epoch: Any = -1) -> None:
        owner = type(self).__name__
        if not isinstance(optimizer, Optimizer):
            bad_type(f"{owner}: {type(optimizer).__name__} is no optimiser of experimental.optim's")
        options = last_epoch if isinstance(last_epoch, dict) else {"last_epoch": last_epoch}
        for name, value in options.items():
            if name in _INTEGERS:
                arguments.integer(value, owner, name, -1 if name == "last_epoch" else 1)
            per_group = name in ("lr_lambda", "base_lr", "max_lr", "min_lr")
            setattr(self, name, _for_groups(optimizer, value, name) if per_group else value)
        start = options["last_epoch"]
        for i, group in enumerate(optimizer.param_groups):
            if start != -1 and "initial_lr" not in group:
                bad_key(f"param 'initial_lr' is not specified in param_groups[{i}]")
            group.setdefault("initial_lr", group["lr"].copy())
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.optimizer, self._last_lr = optimizer, list(optimizer.lrs)
        self.last_epoch = _number(start, f"last_epoch_{owner}")
        self.step()

    def get_lr(self) -> list[Any]:
        """The rates of the groups in this step."""
        if self._new is None:
            unsupported(f"{type(self).__name__} must define get_lr")
        found = self._new(self, self.last_epoch.value())
        return found if isinstance(found, list) else [lr * found for lr in self._last_lr]

    def get_last_lr(self) -> list[Tensor]:
        """The rates that were written last."""
        return [lr.value() for lr in self._last_lr]

    def step(self, epoch: Any = None) -> bool:
        """Writes the rates of the next step; or those after step `epoch`, from the first ones on."""
        if epoch is not None:
            ops.assign(self.last_epoch, -1.0)
            _write(self._last_lr, self.base_lrs)
        for _ in range(1 if epoch is None else int(epoch) + 1):
            ops.assign(self.last_epoch, self.last_epoch + 1.0)
            _write(self._last_lr, self.get_lr())
        return True


def _rule(options: str) -> Callable[[Any], Any]:
    return lambda rule: made(rule, LRScheduler, "optimizer", f"{options}, last_epoch=-1")


def _quotient(part: Callable[[Any], Any], epoch: Tensor) -> Any:
    """A share in this step over that in the one before."""
    return part(epoch) / ops.where(epoch == 0, 1.0, part(epoch - 1.0))


@_rule("step_size, gamma=0.1")
def StepLR(s: Any, epoch: Tensor) -> Any:
    """Rates times gamma every step_size steps."""
    return ops.where((epoch > 0) & (epoch % s.step_size == 0), s.gamma, 1.0)


@_rule("start_factor=0.3333333333333333, end_factor=1.0, total_iters=5")
def LinearLR(s: Any, epoch: Tensor) -> Any:
    """Rates times factors from start_factor to end_factor, in total_iters steps."""
    rise = (s.end_factor - s.start_factor) / s.total_iters
    return _quotient(lambda n: s.start_factor + rise * ops.minimum(n, float(s.total_iters)), epoch)


@_rule("gamma")
def ExponentialLR(s: Any, epoch: Tensor) -> Any:
    """Rates times gamma at every step."""
    return ops.where(epoch == 0, 1.0, s.gamma)


@_rule("total_iters=5, power=1.0")
def PolynomialLR(s: Any, epoch: Tensor) -> Any:
    """Rates times (1 - step / total_iters)^power."""
    part = _quotient(lambda n: 1.0 - n / s.total_iters, epoch)
    return ops.where(epoch > s.total_iters, 1.0, ops.pow(ops.abs(part), s.power))


@_rule("lr_lambda")
def LambdaLR(s: Any, epoch: Tensor) -> Any:
    """The first rates times a function of the step's number, one for all groups or one for each."""
    return [lr * f(epoch) for f, lr in zip(s.lr_lambda, s.base_lrs, strict=True)]


@_rule("lr_lambda")
def MultiplicativeLR(s: Any, epoch: Tensor) -> Any:
    """The rates times a function of the step's number, one for all groups or one for each."""
    pairs = zip(s.lr_lambda, s._last_lr, strict=True)
    return [lr * ops.where(epoch > 0, f(epoch), 1.0) for f, lr in pairs]


@_rule("milestones, gamma=0.1")
def MultiStepLR(s: Any, epoch: Tensor) -> Any:
    """Rates times gamma at each of the milestones, a list of numbers of steps."""
    reached = ops.equal(Tensor(s.milestones, _core.float32), epoch)
    return ops.pow(s.gamma, ops.cast(reached, _core.float32).sum())


@_rule("factor=0.3333333333333333, total_iters=5")
def ConstantLR(s: Any, epoch: Tensor) -> Any:
    """Rates times factor in the first total_iters steps."""
    return ops.where(epoch == 0, s.factor, ops.where(epoch == s.total_iters, 1.0 / s.factor, 1.0))


def _wave(s: Any, place: Any) -> list[Any]:
    part = (1.0 + ops.cos(math.pi * place)) / 2.0
    return [s.eta_min + (lr - s.eta_min) * part for lr in s.base_lrs]


@_rule("T_max, eta_min=0.0")
def CosineAnnealingLR(s: Any, epoch: Tensor) -> Any:
    """Rates that fall from the first to eta_min along half a cosine of T_max steps, and go on along it
    (Loshchilov and Hutter 2017, equation 5)."""
    return _wave(s, epoch / s.T_max)


@_rule("T_0, T_mult=1, eta_min=0.0")
def CosineAnnealingWarmRestarts(s: Any, epoch: Tensor) -> Any:
    """Rates that fall along half a cosine, again and again; the first time in T_0 steps, each later time in
    T_mult times as many (Loshchilov and Hutter 2017)."""
    if s.T_mult == 1:
        return _wave(s, epoch % s.T_0 / s.T_0)
    begun, size = epoch * 0.0, epoch * 0.0 + s.T_0
    for _ in range(32):  # 2^32 steps
        over = epoch >= begun + size
        begun, size = begun + ops.where(over, size, 0.0), size * ops.where(over, s.T_mult, 1.0)
    return _wave(s, (epoch - begun) / size)


@_rule("base_lr, max_lr, step_size_up=2000, step_size_down=None, mode='triangular', gamma=1.0, scale_fn=None,"
       " scale_mode='cycle'")  # fmt: skip
def CyclicLR(s: Any, epoch: Tensor) -> Any:
    """Rates that go from base_lr to max_lr in step_size_up steps and back in step_size_down (Smith 2017).

    mode: 'triangular', 'triangular2' (half the height after each cycle) or 'exp_range' (times gamma at each
    step). scale_fn: in its place, a function of the number of the cycle, or of steps by another scale_mode.
    """
    total = s.step_size_up + (s.step_size_down or s.step_size_up)
    cycle, up = ops.floor(1.0 + epoch / total), s.step_size_up / total
    x = 1.0 + epoch / total - cycle
    if s.scale_fn is not None:
        scale = s.scale_fn(cycle if s.scale_mode == "cycle" else epoch)
    else:
        arguments.one_of(s.mode, ("triangular", "triangular2", "exp_range"), "CyclicLR", "mode")
        powers = {"triangular2": (0.5, cycle - 1.0), "exp_range": (s.gamma, epoch)}
        scale = ops.pow(*powers[s.mode]) if s.mode in powers else 1.0
    part = ops.minimum(x / up, (1.0 - x) / (1.0 - up)) * scale
    return [low + (high - low) * part for low, high in zip(s.base_lr, s.max_lr, strict=True)]


class SequentialLR(LRScheduler):
    """Several schedules, one after the other; milestones: the steps at which the next one begins."""

    schedulers: Sequence[Any]
    milestones: list[int]

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[Any], milestones: list[int], last_epoch: int = -1
    ) -> None:  # fmt: skip
        if any(s.optimizer is not optimizer for s in schedulers):
            bad_value("SequentialLR: all schedulers must be of the same optimizer")
        if len(milestones) != len(schedulers) - 1:
            bad_value(f"SequentialLR: {len(schedulers)} schedulers need one milestone less")
        self.schedulers, self.milestones = schedulers, milestones
        self._last_lr = list(optimizer.lrs)
        self.last_epoch = _number(last_epoch + 1, "last_epoch_SequentialLR")
        schedulers[0].step(0)

    def step(self, epoch: Any = None) -> bool:
        """Makes a step of the schedule that is due."""
        ops.assign(self.last_epoch, self.last_epoch + 1.0)
        due = sum(m <= int(self.last_epoch) for m in self.milestones)
        begins = due > 0 and self.milestones[due - 1] == int(self.last_epoch)
        return self.schedulers[due].step(0 if begins else None)  # type: ignore[no-any-return]


class _Plateau(LRScheduler):
    def __init__(self, optimizer: Optimizer, options: dict[str, Any]) -> None:
        self.wait, self.cooldown_counter = _number(0, "wait"), _number(0, "cooldown_counter")
        arguments.one_of(options["mode"], ("min", "max"), "ReduceLROnPlateau", "mode")
        self.best = _number(math.inf if options["mode"] == "min" else -math.inf, "best")
        super().__init__(optimizer, {**options, "last_epoch": -1})
        ops.assign(self.last_epoch, 0.0)

    def step(self, metrics: Any = None) -> bool:
        """Takes the measure of a step, and reduces the rates if it is time."""
        if metrics is not None:
            ops.assign(self.last_epoch, self.last_epoch + 1.0)
            rates = self._new(self, ops.cast(metrics, _core.float32))
            _write(self._last_lr, rates)
        return True


def _plateau(s: Any, now: Tensor) -> Any:
    """Rates times factor when the measure of step(metrics) has not improved for more than patience steps.

    mode: 'min' or 'max', which measure is better. threshold: the least improvement, relative to the best or
    absolute by threshold_mode, 'rel' or 'abs'. cooldown: the steps after a reduction that do not count.
    min_lr: the least rates. eps: the least change of a rate.
    """
    best, margin = s.best.value(), s.threshold if s.mode == "max" else -s.threshold
    bound = best * (1.0 + margin) if s.threshold_mode == "rel" else best + margin
    better = now < bound if s.mode == "min" else now > bound
    cooling = s.cooldown_counter > 0
    wait = ops.where(better | cooling, 0.0, s.wait + 1.0)
    due = wait > s.patience
    left = s.cooldown_counter - ops.cast(cooling, _core.float32)
    counter = ops.where(due, float(s.cooldown), left)
    for kept, value in ((s.best, ops.where(better, now, best)), (s.cooldown_counter, counter)):
        ops.assign(kept, value)
    ops.assign(s.wait, ops.where(due, 0.0, wait))
    lower = [ops.maximum(lr * s.factor, low) for lr, low in zip(s._last_lr, s.min_lr, strict=True)]
    pairs = zip(s._last_lr, lower, strict=True)
    return [ops.where(due & (lr > new + s.eps), new, lr.value()) for lr, new in pairs]


_plateau.__name__ = "ReduceLROnPlateau"
ReduceLROnPlateau: type = made(
    _plateau, _Plateau, "optimizer",
    "mode='min', factor=0.1, patience=10, threshold=1e-4, threshold_mode='rel', cooldown=0, min_lr=0.0,"
    " eps=1e-8",
)  # fmt: skip
