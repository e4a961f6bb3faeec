"""Optimizer: parameter groups, learning rates, weight decay; what all update rules share.

An optimiser is a Cell called with the gradients, in the order of its parameters. All it does is
nodes of the trace, the step count and the learning rate included, so that a compiled training step
reads nothing on the host.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from gradcell._core import Tensor, float32, float64, int32, ops as _ops
from gradcell.base import arguments, bad_key, bad_type, bad_value, fields, kind_of, unsupported
from gradcell.communication.sharing import _get_enable_parallel_optimizer
from gradcell.nn.cell import Cell
from gradcell.nn.learning_rate_schedule import LearningRateSchedule
from gradcell.nn.optim.functional import FunctionalOptimizer
from gradcell.tensors.parameter import Parameter, ParameterTuple

_GROUP_KEYS = ("params", "lr", "weight_decay", "grad_centralization", "order_params")
_HALF = ("float16", "bfloat16")
#: The dtype of state, where it is not the parameter's.
_STATE = {**dict.fromkeys((*_HALF, "complex64"), float32), "complex128": float64}


def half_to_float(x: Tensor) -> Tensor:
    """float16 and bfloat16 as float32; other dtypes as they are."""
    return _ops.cast(x, float32) if x.dtype.name in _HALF else x


def opt_init_args_register(fn: Callable[..., None]) -> Callable[..., None]:
    """A decorator for an optimiser's __init__: keeps its arguments, the parameters in init_params,
    the learning rate in init_learning_rate, the rest in init_args.
    """

    @functools.wraps(fn)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = inspect.signature(fn).bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        del given["self"]
        kept = {"init_params": {"params": given.pop("params", None)}}
        kept["init_learning_rate"] = given.pop("learning_rate", None)
        fn(self, *args, **kwargs)
        for name, value in {**kept, "init_args": given}.items():
            object.__setattr__(self, name, value)

    return init


def _way_out(parameters: Any) -> str:
    if isinstance(parameters, Cell):
        return ": pass its trainable_params()"
    if callable(parameters):
        return f": call it, {getattr(parameters, '__name__', 'f')}()"
    return ": pass a list of Parameters, as of net.trainable_params()"


class _ListedRate(LearningRateSchedule):
    """One learning rate for each step; the last one stays."""

    def __init__(self, rates: np.ndarray, name: str) -> None:
        super().__init__()
        self.count = len(rates)
        self.learning_rate = Parameter(Tensor(rates.astype(np.float32)), name=name)

    def construct(self, global_step: Tensor) -> Tensor:
        last = _ops.minimum(_ops.reshape(global_step, []), self.count - 1)
        return _ops.gather(self.learning_rate, last, 0)


class Optimizer(Cell):
    """The base of optimisers: define construct, or update_parameter, in a subclass.

    learning_rate: a number; a 0-d Tensor; a list, iterable or 1-d Tensor with one rate for each
    step; or a LearningRateSchedule, called with the step count. parameters: an iterable of
    Parameters, or of dicts, each a group: 'params', and where they differ from the optimiser's own
    'lr', 'weight_decay' (a number or a Cell of the step count) and 'grad_centralization' (a bool:
    the mean over all axes but the first is taken off gradients of two or more dimensions; Yong et
    al. 2020, eq. 1); a dict of 'order_params' alone gives the order in which gradients come.
    weight_decay: added to the gradients times the parameter; without groups, parameters with beta
    or gamma in their name are left out, as in MindSpore. loss_scale: gradients are divided by it
    first.

    `optimizer.learning_rate = 0.5` sets the rate from the next step on, also of a compiled step, to anything
    that the argument may be: a number in place of a number changes no plan. Of groups with a rate of their
    own, get_lr_parameter gives the one to set. `float(optimizer.get_lr())` is the present step's.

    The other options are attributes too: `optimizer.weight_decay = 1e-4`, of groups without one of their own,
    `optimizer.beta1 = 0.8` and so on are checked as arguments are and hold from the next step on. Those that
    decide which state there is, as Adam's use_amsgrad, are refused.

    Parameters of float16 or bfloat16 are updated in float32, with float32 state, and rounded once. Complex
    ones are updated as pairs of real numbers, each by itself, as in PyTorch; their state is real.

    With set_auto_parallel_context(enable_parallel_optimizer=True) processes that share the data
    share out the state too: each keeps and updates its part of the first dimension of parameters
    that have equal parts and 64 KB or more, and then all have the whole parameters again.
    NotImplementedError for optimisers whose update needs whole parameters.

    Called with a list or tuple of gradients of the parameters' shapes; returns one True each.
    Raises ValueError for an empty list of parameters, duplicates, bad values, or gradients whose number
    or shapes are not the parameters', TypeError for anything of a wrong type.
    """

    #: Whether update_parameter computes each element of a parameter from that element alone.
    by_elements: ClassVar[bool] = True

    _checks: ClassVar[dict[str, Any]] = {
        "loss_scale": fields.number(above=0)
    }  #: besides declared fields
    _fixed: ClassVar[tuple[str, ...]] = ()  #: options that decide which state there is
    _all_decay: ClassVar[bool] = False  #: whether beta and gamma in a name make no difference
    _wrapped: bool = False  #: whether another optimiser scales gradients and adds the decay

    def __init__(
        self, learning_rate: Any, parameters: Any, weight_decay: Any = 0.0, loss_scale: float = 1.0
    ) -> None:
        super().__init__(auto_prefix=False)
        self.loss_scale: float = arguments.number(loss_scale, self.cls_name, "loss_scale", above=0)
        items = self._listed(parameters)
        self.is_group: bool = isinstance(items[0], dict)
        self.is_group_params_ordered: bool = self.is_group and any(
            "order_params" in g for g in items
        )
        groups = self._parse(items, learning_rate, weight_decay)
        ordered = self._order(items, [p for g in groups for p in g["params"]])
        group_of = {id(p): k for k, g in enumerate(groups) for p in g["params"]}
        self._group = [group_of[id(p)] for p in ordered]

        self.global_step: Parameter = Parameter(Tensor([0], int32), name="global_step")
        self.is_group_lr: bool = any(g["own_lr"] for g in groups)
        default_lr = self._build_rate(learning_rate, "learning_rate")
        own = [
            self._build_rate(g["lr"], f"learning_rate_group_{k}") if g["own_lr"] else default_lr
            for k, g in enumerate(groups)
        ]
        # Attributes in MindSpore's order, since parameters are saved and listed in it.
        for k, g in enumerate(groups):
            if g["own_lr"]:
                setattr(self, f"learning_rate_group_{k}", own[k])
        every = tuple(own[k] for k in self._group)
        if self.is_group_lr and all(g["own_lr"] for g in groups):
            object.__setattr__(self, "learning_rate", every)
        else:
            self.learning_rate = default_lr
        object.__setattr__(self, "_rates", every)
        self.dynamic_lr: bool = any(isinstance(r, Cell) for r in own)
        self._centralised = [groups[k]["grad_centralization"] for k in self._group]
        self.parameters: ParameterTuple = self._named(ordered)
        object.__setattr__(self, "shards", self._shared_out())
        self._parameters = self.parameters
        self.param_length: int = len(self.parameters)
        self.need_scale: bool = self.loss_scale != 1.0
        self._own_decay = ["weight_decay" in g["own"] for g in groups]
        self._take_decays([self._decay(g["weight_decay"]) for g in groups])

    @classmethod
    def functional(cls, **options: Any) -> FunctionalOptimizer:
        """Return this optimiser for trees of tensors, as a pair of functions, init and update, without
        Parameters: `nn.Adam.functional(learning_rate=1e-3)`.

        options: the arguments of the class by name, but for the parameters.
        """
        return FunctionalOptimizer(cls, **options)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "learning_rate" and "_rates" in self.__dict__:
            self._set_learning_rate(value)
        elif name == "weight_decay" and "weight_decay" in (*self.__dict__, *self._cells):
            self._set_weight_decay(value)
        elif name in self.__dict__.get("_tuples", ()) and not isinstance(value, ParameterTuple):
            bad_type(
                f"For '{self.cls_name}', {name!r} is state, a Parameter for each of those that are trained: "
                f"set one by optimizer.{name}[0].set_data(...)"
            )
        else:
            old = self.__dict__.get(name, self.__dict__.get("_params", {}).get(name))
            field = {**getattr(self, "_declared_fields", {}), **self._checks}.get(name)
            if (
                old is None
                or field is None
                or field.base is not None
                or isinstance(value, Parameter)
            ):
                super().__setattr__(name, value)
            else:
                self._set_option(name, old, value, field.check)

    def _set_option(self, name: str, old: Any, value: Any, check: Any) -> None:
        """Gives an option that is there another value, checked as the constructor's argument."""
        if name in self._fixed and value != old:
            bad_value(
                f"For '{self.cls_name}', {name!r} decides which state there is: make another optimiser for "
                f"{name}={value!r}"
            )
        new = value if check is None else check(value, self.cls_name, name)
        number = (
            f"_{name}" if isinstance(old, Parameter) else name
        )  # its value, where rules need it
        before = self.__dict__.get(number)
        if before is not None:
            super().__setattr__(number, new)
            try:
                self._agree()
            except ValueError:
                super().__setattr__(number, before)
                raise
        if isinstance(old, Parameter):
            old.set_data(Tensor(float(new), old.dtype))
        if name == "loss_scale":
            self.need_scale = not self._wrapped and self.loss_scale != 1.0

    def _agree(self) -> None:
        """Raises ValueError for options that do not fit together."""

    def _set_weight_decay(self, value: Any) -> None:
        own = not type(self).__module__.startswith("gradcell.")
        if own and not isinstance(value, (int, float, np.number, Cell)):
            super().__setattr__(
                "weight_decay", value
            )  # a rule of a user's own may keep what it likes
            return
        if all(self._own_decay):
            bad_value(
                f"For '{self.cls_name}', all groups have a weight_decay of their own: make another optimiser "
                "to change them"
            )
        new = self._decay(value)
        decays = dict(zip(self._group, self._decays, strict=True))
        self._forget("weight_decay")
        self._take_decays([decays[k] if own else new for k, own in enumerate(self._own_decay)])

    def _take_decays(self, decays: list[Any]) -> None:
        """Sets what follows from the groups' weight decays."""
        own = [decays[k] for k in self._group]
        object.__setattr__(self, "_decays", own)
        super().__setattr__("weight_decay", decays[0] if not self.is_group else tuple(own))
        some = [isinstance(d, Cell) or d > 0 for d in own]
        self.dynamic_weight_decay: bool = any(isinstance(d, Cell) for d in decays)
        self.exec_weight_decay: bool = any(some) and not self._wrapped
        every = self.is_group or self._all_decay
        self.decay_flags: tuple[bool, ...] = tuple(
            decays and (every or not any(s in p.name for s in ("beta", "gamma")))
            for decays, p in zip(some, self.parameters, strict=True)
        )

    def _set_learning_rate(self, value: Any) -> None:
        """Gives the parameters whose groups have no rate of their own another one."""
        old = self.learning_rate
        if isinstance(old, tuple):
            bad_value(
                f"For '{self.cls_name}', all groups have a learning rate of their own: set one by "
                "optimizer.get_lr_parameter(parameter).set_data(...)"
            )
        kept = isinstance(old, Parameter)
        given = isinstance(value, Parameter)
        if kept and not given and isinstance(value, Tensor) and value.ndim == 0:
            super().__setattr__("learning_rate", value)
            return
        new = value if given else self._build_rate(value, "learning_rate")
        if kept and not given and isinstance(new, Parameter):
            old.set_data(new)
            return
        self._forget("learning_rate")
        super().__setattr__("learning_rate", new)
        rates = tuple(new if r is old else r for r in self._rates)
        object.__setattr__(self, "_rates", rates)
        self.dynamic_lr = any(isinstance(r, Cell) for r in rates)

    def _shared_out(self) -> Any:
        """Return the shares of the state among processes (enable_parallel_optimizer); None: each
        has all."""
        if not _get_enable_parallel_optimizer():
            return None
        from gradcell.communication.buckets import StateShards

        if not self.by_elements:
            unsupported(
                f"{self.cls_name}: enable_parallel_optimizer is for optimisers that update each element by "
                "itself; this one needs whole parameters"
            )
        return StateShards(self.parameters)

    # Reading the arguments ------------------------------------------------------------------------

    def _listed(self, parameters: Any) -> list[Any]:
        if isinstance(parameters, (Parameter, dict, str)) or not isinstance(parameters, Iterable):
            bad_type(
                f"For '{self.cls_name}', the argument parameters must be Iterable type, but got "
                f"{type(parameters)}{_way_out(parameters)}."
            )
        items = list(parameters)
        if not items:
            bad_value(f"For '{self.cls_name}', the argument parameters must not be empty.")
        kinds = {dict if isinstance(i, dict) else Parameter for i in items}
        if len(kinds) > 1 or not all(isinstance(i, (dict, Parameter)) for i in items):
            bad_type(
                f"For '{self.cls_name}', all elements of the argument 'parameters' must be 'Parameter' or "
                "'dict', please check the 'parameters'."
            )
        return items

    def _parse(self, items: list[Any], learning_rate: Any, weight_decay: Any) -> list[Any]:
        """A dict of params, lr, own_lr, weight_decay, grad_centralization for each group."""
        default = {"own_lr": False, "weight_decay": weight_decay, "grad_centralization": False}
        default["own"] = ()
        if not self.is_group:
            return [{**default, "params": items}]
        groups = []
        for item in items:
            unknown = [k for k in item if k not in _GROUP_KEYS]
            if unknown:
                bad_key(
                    f"For '{self.cls_name}', a parameter group has the key {unknown[0]!r}; the keys are "
                    f"{', '.join(_GROUP_KEYS)}"
                )
            if "order_params" in item:
                if len(item) > 1:
                    bad_value(
                        f"For '{self.cls_name}', 'order_params' must be the only key of its dict"
                    )
                continue
            if "params" not in item:
                bad_key(f"For '{self.cls_name}', a group has no 'params'")
            params = list(item["params"])
            if not params:
                bad_value(f"For '{self.cls_name}', a parameter group must not be empty.")
            for p in params:
                if not isinstance(p, Parameter):
                    bad_type(
                        f"For '{self.cls_name}', the 'params' of a group must be Parameters, got "
                        f"{type(p).__name__}"
                    )
            arguments.boolean(
                item.get("grad_centralization", False), self.cls_name, "grad_centralization"
            )
            more = {"params": params, "own_lr": "lr" in item, "own": tuple(item)}
            groups.append({**default, **item, **more})
        if not groups:
            bad_value(f"For '{self.cls_name}', the argument parameters must not be empty.")
        return groups

    def _order(self, items: list[Any], params: list[Parameter]) -> list[Parameter]:
        seen: set[int] = set()
        for p in params:
            if id(p) in seen:
                bad_value(f"For '{self.cls_name}', the parameter {p.name!r} is given twice")
            seen.add(id(p))
            if not p.dtype.is_floating:
                bad_type(
                    f"For '{self.cls_name}', the parameter {p.name!r} has dtype {p.dtype}, which cannot be "
                    "trained"
                )
        orders = [i["order_params"] for i in items if isinstance(i, dict) and "order_params" in i]
        if not orders:
            return params
        ordered = list(orders[0])
        if {id(p) for p in ordered} != seen or len(ordered) != len(params):
            bad_value(
                f"For '{self.cls_name}', 'order_params' must hold each parameter of the groups once"
            )
        return ordered

    def _named(self, params: Sequence[Parameter]) -> ParameterTuple:
        taken = {p.name for p in self._params.values()}
        for p in params:
            if p.name in taken:
                bad_value(
                    f"For '{self.cls_name}', the name of the parameter {p.name!r} is the optimiser's own; "
                    "rename it"
                )
        return ParameterTuple(params)

    def _build_rate(self, rate: Any, name: str) -> Any:
        """A Parameter with the rate, or a Cell that gives it for a step count."""
        if isinstance(rate, Cell):
            return rate
        if isinstance(rate, Tensor):
            if rate.ndim > 1:
                bad_value(
                    f"For '{self.cls_name}', a learning rate Tensor must have 0 or 1 dimensions, but got "
                    f"{rate.ndim}"
                )
            values = np.array(rate.asnumpy(), np.float64)
        elif isinstance(rate, (int, float, np.number)) and not isinstance(rate, bool):
            values = np.asarray(rate, np.float64)
        elif isinstance(rate, Iterable) and not isinstance(rate, (str, bytes, dict)):
            values = np.array([float(v) for v in rate], np.float64)
        else:
            bad_type(
                f"For '{self.cls_name}', the learning rate must be a number, a Tensor, an iterable or a "
                f"LearningRateSchedule, but got {kind_of(rate)}"
            )
        if values.size == 0:
            bad_value(f"For '{self.cls_name}', the learning rates are empty")
        bad = values[~(np.isfinite(values) & (values >= 0))]
        if bad.size:
            bad_value(
                f"For '{self.cls_name}', the 'learning rate' must be float and must >= 0, but got "
                f"'{bad.flat[0]}' with type 'float'."
            )
        if values.ndim == 0:
            return Parameter(Tensor(float(values), float32), name=name)
        return _ListedRate(values, name)

    def _decay(self, weight_decay: Any) -> Any:
        if isinstance(weight_decay, Cell):
            return weight_decay
        return arguments.number(weight_decay, self.cls_name, "weight_decay", least=0)

    @property
    def target(self) -> str:
        """The device of the update: that of all computations, whatever is set. Raises TypeError,
        ValueError."""
        return self.__dict__.get("_target", "CPU")  # type: ignore[no-any-return]

    @target.setter
    def target(self, value: str) -> None:
        if not isinstance(value, str):
            bad_type(
                f"For '{self.cls_name}', the property 'target' must be string type, but got {type(value)}."
            )
        object.__setattr__(
            self,
            "_target",
            arguments.one_of(value, ["CPU", "GPU", "Ascend"], self.cls_name, "target"),
        )

    # For subclasses -------------------------------------------------------------------------------

    def state(self, prefix: str, fill: float = 0.0) -> ParameterTuple:
        """One parameter of the same shape for each, named prefix.name; float32 for half types, real and
        with a last dimension of 2 for complex ones."""
        made = []
        for k, p in enumerate(self.parameters):
            dtype = _STATE.get(p.dtype.name, p.dtype)
            name = f"{prefix}.{p.name}"
            shape = list(p.shape) if self.shards is None else self.shards.shape(k, p.shape)
            numbers = [*shape, 2] if p.dtype.is_complex else shape
            made.append(Parameter(_ops.full(numbers, fill, dtype), name, p.requires_grad))
            if shape != list(p.shape):
                made[-1].shards = self.shards
        return ParameterTuple(made)

    def get_lr(self) -> Any:
        """The learning rate of the present step: a 0-d tensor, or a tuple of one each parameter."""
        if self.is_group_lr:
            made: dict[int, Any] = {}
            for r in self._rates:
                if id(r) not in made:
                    made[id(r)] = self._rate(r)
            return tuple(made[id(r)] for r in self._rates)
        return self._rate(self.learning_rate)

    def _rate(self, rate: Any) -> Tensor:
        if isinstance(rate, Cell):
            return _ops.reshape(rate(self.global_step), [])
        return rate  # type: ignore[no-any-return]

    def get_lr_parameter(self, param: Any) -> Any:
        """The learning rate that belongs to a Parameter, or a list of them to a list.

        Raises TypeError for anything else, ValueError for a parameter of another optimiser.
        """
        if isinstance(param, (list, tuple)):
            return [self.get_lr_parameter(p) for p in param]
        if not isinstance(param, Parameter):
            bad_type(f"get_lr_parameter: expected a Parameter, got {type(param).__name__}")
        for p, r in zip(self.parameters, self._rates, strict=True):
            if p is param:
                return r.learning_rate if isinstance(r, _ListedRate) else r
        bad_value(f"get_lr_parameter: {param.name!r} does not belong to this optimiser")

    def get_weight_decay(self) -> Any:
        """The weight decay of the present step; with groups, one for each parameter."""
        made = [self._decay_now(d) for d in self._decays]
        return tuple(made) if self.is_group else made[0]

    def _decay_now(self, decay: Any) -> Any:
        if isinstance(decay, Cell):
            return _ops.reshape(decay(self.global_step), [])
        return Tensor(decay, float32)

    def _decay_factor(self, k: int) -> Any:
        """The weight decay of parameter k: a tensor, a number, or None if it has none."""
        if not self.decay_flags[k]:
            return None
        d = self._decays[k]
        return self._decay_now(d) if isinstance(d, Cell) else d

    def flatten_gradients(self, gradients: Any) -> Any:
        """The gradients: nothing is flattened here."""
        return gradients

    def scale_grad(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The gradients divided by loss_scale."""
        if not self.need_scale:
            return tuple(gradients)
        return tuple(g * (1.0 / self.loss_scale) for g in gradients)

    def decay_weight(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The gradients plus weight decay times the parameters."""
        if not self.exec_weight_decay:
            return tuple(gradients)
        out = []
        for k, g in enumerate(gradients):
            factor = self._decay_factor(k)
            out.append(g if factor is None else g + half_to_float(self._own(k)) * factor)
        return tuple(out)

    def gradients_centralization(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The gradients less their means over all axes but the first, in groups that ask for it."""
        return tuple(
            g - _ops.mean(g, list(range(1, g.ndim)), True) if flag and g.ndim > 1 else g
            for flag, g in zip(self._centralised, gradients, strict=True)
        )

    def check_gradients(self, gradients: Any) -> list[Tensor]:
        """The gradients, in float32 where they are of a half type.

        Raises TypeError or ValueError if they are not one of its shape for each parameter.
        """
        if isinstance(gradients, Tensor):
            gradients = [gradients]
        if not isinstance(gradients, (list, tuple)):
            bad_type(
                f"{self.cls_name}: expected a tuple of gradients, got {type(gradients).__name__}"
            )
        if len(gradients) != len(self.parameters):
            bad_value(
                f"{self.cls_name}: got {len(gradients)} gradients for {len(self.parameters)} parameters; "
                "value_and_grad(f, None, optimizer.parameters) gives them all"
            )
        for k, (p, g) in enumerate(zip(self.parameters, gradients, strict=True)):
            if not isinstance(g, Tensor):
                bad_type(
                    f"{self.cls_name}: the gradient of {p.name!r} is not a Tensor but {type(g).__name__}"
                )
            if tuple(g.shape) != tuple(p.shape) and not self._is_part(k, g):
                bad_value(
                    f"{self.cls_name}: {p.name!r} has shape {list(p.shape)}, its gradient {list(g.shape)}"
                )
        return [half_to_float(g) for g in gradients]

    # Running --------------------------------------------------------------------------------------

    def step_scalars(self, step: Tensor) -> Any:
        """Compute from the step's number (a 0-d float32 tensor, 1 at the first step) what the rule
        needs."""
        return None

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        """The new value of parameter k; also assigns its state. p and g are not of a half type, nor
        complex: those come as real ones with a last dimension of 2."""
        raise NotImplementedError(f"{self.cls_name} defines neither construct nor update_parameter")

    def _is_part(self, k: int, g: Tensor) -> bool:
        """Return whether g has the shape of this process's part of parameter k, which is shared
        out."""
        if self.shards is None or not self.shards.sharded[k]:
            return False
        return list(g.shape) == self.shards.shape(k, self.parameters[k].shape)  # type: ignore[no-any-return]

    def _own(self, k: int) -> Tensor:
        """Return this process's part of parameter k, or all of it if it is not shared out."""
        p = self._parameters[k]
        return p if self.shards is None else self.shards.part(k, p.value())

    def prepare(self, gradients: Any) -> tuple[Tensor, ...]:
        """The gradients checked, unscaled, decayed and centralised."""
        gradients = self.check_gradients(gradients)
        if self.shards is not None:
            gradients = [
                g if self._is_part(k, g) else self.shards.part(k, g)
                for k, g in enumerate(gradients)
            ]
        scaled = self.scale_grad(gradients)
        return self.gradients_centralization(self.decay_weight(scaled))

    def step_number(self) -> Tensor:
        """The present step's number as a 0-d float32 tensor, 1 at the first."""
        return _ops.cast(_ops.reshape(self.global_step + 1, []), float32)

    def construct(self, gradients: Any, *more: Any) -> tuple[bool, ...]:
        """Updates the parameters by their gradients."""
        if more:
            bad_type(
                f"{self.cls_name} is called with one argument, a tuple of gradients, but got {1 + len(more)}"
            )
        gradients = self.prepare(gradients)
        lr = self.get_lr()
        rates = lr if isinstance(lr, tuple) else (lr,) * len(self.parameters)
        scalars = self.step_scalars(self.step_number())
        parts: list[tuple[Parameter, Tensor]] = []  # of parameters that are shared out
        for k, (p, g) in enumerate(zip(self._parameters, gradients, strict=True)):
            own = real_numbers(half_to_float(self._own(k)))
            new = self.update_parameter(k, own, real_numbers(g), rates[k], scalars)
            new = _ops.view_as_complex(new) if p.dtype.is_complex else _ops.cast(new, p.dtype)
            if self.shards is not None and self.shards.sharded[k]:
                parts.append((p, new))
            else:
                p._set_array(new)
        if parts:
            shapes = [list(p.shape) for p, _ in parts]
            wholes = self.shards.gathered([new for _, new in parts], shapes)
            for (p, _), whole in zip(parts, wholes, strict=True):
                p._set_array(whole)
        self.global_step._set_array(self.global_step + 1)  # schedules have been asked for this one
        return (True,) * len(self.parameters)


def real_numbers(x: Tensor) -> Tensor:
    """x, complex numbers as pairs of real ones."""
    return _ops.view_as_real(x) if x.dtype.is_complex else x


def assign(parameter: Parameter, value: Tensor) -> Tensor:
    """Writes a state parameter; returns the value written."""
    value = _ops.cast(value, parameter.dtype)
    parameter._set_array(value)
    return value


def averaged(parameter: Parameter, value: Tensor, share: Any) -> Tensor:
    """Moves a mean in a state parameter towards the value, by all but a share of it; returns the new mean."""
    return assign(parameter, share * parameter + (1.0 - share) * value)
