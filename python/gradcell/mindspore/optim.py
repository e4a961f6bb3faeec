"""mindspore.experimental.optim: optimisers with groups of options that a program changes, param_groups.

A rule is a function of a step of one parameter (`_Step`) that returns its new value; `_rule` makes the class.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

from gradcell._core import Tensor, float32, int32, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, unsupported
from gradcell.nn.cell import Cell
from gradcell.nn.optim.optimizer import assign, averaged
from gradcell.tensors.parameter import Parameter, ParameterTuple

#: Bounds of options, and of each of a pair, as arguments.number takes them.
_BOUNDS: dict[str, Any] = {
    "rho": ({"least": 0, "most": 1},), "betas": ({"least": 0, "below": 1}, {"least": 0, "below": 1}),
    "etas": ({"above": 0, "below": 1}, {"above": 1}),
    **dict.fromkeys("alpha eps lr lr_decay momentum weight_decay".split(), ({"least": 0},)),
}  # fmt: skip


class _Step(NamedTuple):
    """The step of parameter k: its value, gradient, rate, the step's number, the options of its group, which
    are attributes too, and its state by name."""

    own: Any
    k: int
    p: Any
    g: Any
    lr: Any
    t: Any
    options: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        given = self.options
        return given[name] if name in given else getattr(self.own, name)[self.k].value()

    def keep(self, name: str, value: Any) -> Tensor:
        """Writes a state; returns it."""
        return assign(getattr(self.own, name)[self.k], value)

    def mean(self, name: str, value: Any, share: float) -> Tensor:
        """Moves a mean towards the value by all but a share of it; returns it."""
        return averaged(getattr(self.own, name)[self.k], value, share)

    def rest(self, beta: float) -> Any:
        """1 - beta^t."""
        return -_ops.expm1(self.t * math.log(beta)) if beta else 1.0

    def moments(self) -> tuple[Tensor, Tensor]:
        """The means of gradients and of their squares; by amsgrad the largest so far."""
        b1, b2 = self.betas
        m, v = self.mean("exp_avg", self.g, b1), self.mean("exp_avg_sq", self.g * self.g, b2)
        if self.options.get("amsgrad"):
            v = self.keep("max_exp_avg_sq", _ops.maximum(self.max_exp_avg_sq, v))
        return m, v


class Optimizer(Cell):
    """The base of optimisers with param_groups: define construct(gradients) in a subclass.

    params: Parameters, or dicts of 'params' and options for them. defaults: the options of groups that do not
    have them. A group's 'lr' is a Parameter, which schedules write; a program may put a number in its place.
    Raises TypeError, ValueError for options that are out of bounds, KeyError for a group without 'params'.
    """

    #: The states, with =what they begin with, or :that of a number for each parameter; the count of steps.
    _kept: ClassVar[str] = ""
    _counter: ClassVar[str] = ""
    _decays = True
    _new: ClassVar[Any] = None

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(auto_prefix=False)
        if isinstance(params, Parameter) or not isinstance(params, Iterable):
            bad_type(f"For '{self.cls_name}', the params must be iterable, but got {type(params)}.")
        groups = list(params)
        if not groups:
            bad_value(f"For '{self.cls_name}', the params must not be empty.")
        self.defaults: dict[str, Any] = defaults
        self.state: dict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self.lrs: list[Parameter] = []
        self.group_start_id: list[int] = [0]
        object.__setattr__(self, "parameters", ())
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)
        self.parameters: ParameterTuple = ParameterTuple(self.parameters)
        for entry in self._kept.split():
            name, kind, start = re.split("([:=]|$)", entry, maxsplit=1)
            state = self.parameters.clone(prefix=name, init=defaults.get(name, float(start or 0)))
            if kind == ":":
                names = (f"{name}_{p.name}" for p in self.parameters)
                state = ParameterTuple([Parameter(Tensor(float(start)), n) for n in names])
            setattr(self, name, state)
        if self._counter:
            setattr(self, self._counter, Parameter(Tensor(0, int32), self._counter, False))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds Parameters with options of their own."""
        group = {**self.defaults, **param_group}
        params = [group["params"]] if isinstance(group["params"], Parameter) else group["params"]
        if isinstance(params, set) or not all(isinstance(p, Parameter) for p in params):
            bad_type(f"For '{self.cls_name}', the params must be Parameters, in an order.")
        group["params"] = params = list(params)
        if len({id(p) for p in (*self.parameters, *params)}) < len(self.parameters) + len(params):
            bad_value(f"For '{self.cls_name}', a parameter is given twice.")
        for name in {*_BOUNDS} & {*group}:
            values = group[name] if len(_BOUNDS[name]) > 1 else [group[name]]
            for value, bounds in zip(values, _BOUNDS[name], strict=True):
                arguments.number(float(value), self.cls_name, name, **bounds)
        at = f"learning_rate_group_{len(self.param_groups)}"
        group["lr"] = Parameter(Tensor(float(group["lr"]), float32), at, False)
        group.setdefault("weight_decay", 0.0)
        self.lrs.append(group["lr"])
        self.param_groups.append(group)
        self.group_start_id.append(self.group_start_id[-1] + len(params))
        object.__setattr__(self, "parameters", (*self.parameters, *params))

    def construct(self, gradients: Any) -> bool:
        """Updates the parameters by their gradients; returns True."""
        if self._new is None:
            unsupported(f"{self.cls_name} must define construct")
        if len(gradients) != len(self.parameters):
            found, wanted = len(gradients), len(self.parameters)
            bad_value(f"{self.cls_name}: got {found} gradients for {wanted} parameters")
        count = getattr(self, self._counter) if self._counter else None
        t = None if count is None else _ops.cast(assign(count, count + 1), float32)
        for i, group in enumerate(self.param_groups):
            for k in range(self.group_start_id[i], self.group_start_id[i + 1]):
                p, g = self.parameters[k].value(), gradients[k]
                g = -g if group.get("maximize") else g
                if self._decays and group["weight_decay"]:
                    g = g + group["weight_decay"] * p
                step = _Step(self, k, p, g, group["lr"] * 1.0, t, group)
                assign(self.parameters[k], type(self)._new(step))
        return True


def _signature(text: str) -> inspect.Signature:
    """The signature of a function with these parameters, whose defaults are literals."""
    args = ast.parse(f"lambda {text}: 0", mode="eval").body.args  # type: ignore[attr-defined]
    missing = [None] * (len(args.args) - len(args.defaults))
    found = []
    for kind, own, defaults in (
        (inspect.Parameter.POSITIONAL_OR_KEYWORD, args.args, [*missing, *args.defaults]),
        (inspect.Parameter.KEYWORD_ONLY, args.kwonlyargs, args.kw_defaults),
    ):
        for arg, default in zip(own, defaults, strict=True):
            value = inspect.Parameter.empty if default is None else ast.literal_eval(default)
            found.append(inspect.Parameter(arg.arg, kind, default=value))
    return inspect.Signature(found)


def made(rule: Any, base: type, first: str, options: str, **members: Any) -> type:
    """The class of a rule, whose constructor takes `first` and options, which the base gets as a dict."""
    given = _signature(f"self, {first}, {options}")

    def init(*args: Any, **kwargs: Any) -> None:
        bound = given.bind(*args, **kwargs)
        bound.apply_defaults()
        own, of = bound.arguments.pop("self"), bound.arguments.pop(first)
        base.__init__(own, of, dict(bound.arguments))  # type: ignore[misc]

    init.__signature__ = given  # type: ignore[attr-defined]
    members |= {
        "__init__": init,
        "__doc__": rule.__doc__,
        "__module__": rule.__module__,
        "_new": staticmethod(rule),
    }
    return type(rule.__name__, (base,), members)


def _rule(
    options: str, kept: str, counter: str = "step_t", decays: bool = True
) -> Callable[[Any], Any]:
    members = {"_kept": kept, "_counter": counter, "_decays": decays}
    return lambda rule: made(rule, Optimizer, "params", options, **members)


@_rule("lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0, *, maximize=False", "accum accum_update", "")
def Adadelta(s: Any) -> Any:
    """Adadelta (Zeiler 2012, algorithm 1)."""
    v = s.mean("accum", s.g * s.g, s.rho)
    step = _ops.sqrt(s.accum_update + s.eps) / _ops.sqrt(v + s.eps) * s.g
    s.mean("accum_update", step * step, s.rho)
    return s.p - s.lr * step


@_rule("lr=0.01, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10, *, maximize=False",
       "accum")  # fmt: skip
def Adagrad(s: Any) -> Any:
    """Adagrad (Duchi, Hazan and Singer 2011), with a rate that falls as lr / (1 + (t - 1) lr_decay)."""
    first = _ops.where(_ops.equal(s.t, 1.0), s.initial_accumulator_value, s.accum)
    v = s.keep("accum", first + s.g * s.g)
    return s.p - s.lr / (1.0 + (s.t - 1.0) * s.lr_decay) * s.g / (_ops.sqrt(v) + s.eps)


_ADAM = "betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0"
_SQUARES = "exp_avg exp_avg_sq max_exp_avg_sq"


@_rule(f"lr=1e-3, {_ADAM}, amsgrad=False, *, maximize=False", _SQUARES, "state_step")
def Adam(s: Any) -> Any:
    """Adam (Kingma and Ba 2015, section 2, with the corrections in the rate). amsgrad: by the largest mean
    square so far (Reddi et al. 2018); MindSpore's has no effect."""
    (b1, b2), (m, v) = s.betas, s.moments()
    return s.p - s.lr * _ops.sqrt(s.rest(b2)) / s.rest(b1) * m / (_ops.sqrt(v) + s.eps)


@_rule(
    f"lr=1e-3, {_ADAM[:-3]}0.01, amsgrad=False, *, maximize=False", _SQUARES, "state_step", False
)
def AdamW(s: Any) -> Any:
    """Adam whose decay of the weights is no part of the gradient (Loshchilov and Hutter 2019)."""
    (b1, b2), (m, v) = s.betas, s.moments()
    size = _ops.sqrt(v) / _ops.sqrt(s.rest(b2)) + s.eps
    return s.p * (1.0 - s.lr * s.weight_decay) - s.lr / s.rest(b1) * m / size


@_rule(f"lr=2e-3, {_ADAM}, *, maximize=False", "exp_avg exp_inf")
def Adamax(s: Any) -> Any:
    """AdaMax (Kingma and Ba 2015, algorithm 2)."""
    m = s.mean("exp_avg", s.g, s.betas[0])
    largest = _ops.maximum(s.exp_inf * s.betas[1], _ops.abs(s.g) + s.eps)
    return s.p - s.lr / s.rest(s.betas[0]) * m / s.keep("exp_inf", largest)


@_rule("lr=0.01, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0, maximize=False", "ax mu:1 eta:0")
def ASGD(s: Any) -> Any:
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992; see nn.ASGD); the means are in ax."""
    eta, mu = _ops.where(_ops.equal(s.t, 1.0), s.lr, s.eta), s.mu
    new = s.p * (1.0 - s.lambd * eta) - eta * s.g
    s.keep("ax", _ops.where(_ops.equal(mu, 1.0), new, s.ax + (new - s.ax) * mu))
    s.keep("eta", s.lr / _ops.pow(1.0 + s.lambd * s.lr * s.t, s.alpha))
    s.keep("mu", 1.0 / _ops.maximum(s.t - s.t0, 1.0))
    return new


@_rule(f"lr=2e-3, {_ADAM}, momentum_decay=4e-3", "exp_avg exp_avg_sq mu_product:1")
def NAdam(s: Any) -> Any:
    """Adam with Nesterov's momentum (Dozat 2016, algorithm 8)."""
    (b1, b2), (m, v), decay = s.betas, s.moments(), s.momentum_decay * math.log(0.96)
    mu, after = (b1 * (1.0 - 0.5 * _ops.exp(n * decay)) for n in (s.t, s.t + 1.0))
    product = s.keep("mu_product", s.mu_product * mu)
    step = (1.0 - mu) / (1.0 - product) * s.g + after / (1.0 - product * after) * m
    return s.p - s.lr * step / (_ops.sqrt(v / s.rest(b2)) + s.eps)


@_rule(f"lr=1e-3, {_ADAM}", "exp_avg exp_avg_sq")
def RAdam(s: Any) -> Any:
    """Rectified Adam (Liu et al. 2020, algorithm 2)."""
    (b1, b2), (m, v) = s.betas, s.moments()
    rest, most = s.rest(b2), 2 / (1 - b2) - 1
    rho = most - 2.0 * s.t * (1.0 - rest) / rest
    ratio = (rho - 4.0) * (rho - 2.0) * most / ((most - 4) * (most - 2) * rho)
    known = _ops.greater(rho, 5.0)
    scaled = _ops.sqrt(_ops.where(known, ratio, 1.0) * rest) / (_ops.sqrt(v) + s.eps)
    return s.p - s.lr * m / s.rest(b1) * _ops.where(known, scaled, 1.0)


@_rule("lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, maximize=False",
       "mean_grad mean_square moment", "")  # fmt: skip
def RMSprop(s: Any) -> Any:
    """RMSprop (Tieleman and Hinton 2012; centered: Graves 2013, equations 38 to 41)."""
    v = s.mean("mean_square", s.g * s.g, s.alpha)
    v = v - _ops.square(s.mean("mean_grad", s.g, s.alpha)) if s.centered else v
    step = s.g / (_ops.sqrt(v) + s.eps)
    return s.p - s.lr * (s.keep("moment", s.momentum * s.moment + step) if s.momentum else step)


@_rule("lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, maximize=False", "prev step_size")
def Rprop(s: Any) -> Any:
    """Resilient backpropagation (Riedmiller and Braun 1993; see nn.Rprop)."""
    agree, (least, most) = _ops.sign(s.g) * _ops.sign(s.prev), s.step_sizes
    other, same = _ops.less(agree, 0.0), _ops.greater(agree, 0.0)
    factor = _ops.where(other, s.etas[0], _ops.where(same, s.etas[1], 1.0))
    size = _ops.where(_ops.equal(s.t, 1.0), s.lr, s.step_size) * factor
    size = s.keep("step_size", _ops.minimum(_ops.maximum(size, least), most))
    return s.p - _ops.sign(s.keep("prev", _ops.where(other, 0.0, s.g))) * size


@_rule("lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, *, maximize=False",
       "accum stat=1", "")  # fmt: skip
def SGD(s: Any) -> Any:
    """Gradient descent, with momentum (Sutskever et al. 2013); the first step has no dampening."""
    if s.nesterov and (s.momentum <= 0 or s.dampening != 0):
        bad_value("For 'SGD', 'nesterov' needs a 'momentum' above 0 and a 'dampening' of 0.")
    if not s.momentum:
        return s.p - s.lr * s.g
    later = s.momentum * s.accum + (1.0 - s.dampening) * s.g
    total = s.keep("accum", _ops.where(_ops.greater(s.stat, 0.0), s.g, later))
    s.keep("stat", s.stat * 0.0)
    return s.p - s.lr * (s.g + s.momentum * total if s.nesterov else total)
