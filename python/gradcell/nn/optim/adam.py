"""Adam and its variants: other norms, decoupled weight decay, sparse gradients."""

from __future__ import annotations

import inspect
import math
from dataclasses import InitVar
from typing import Any, ClassVar

from gradcell._core import Tensor, float32, ops as _ops
from gradcell.base import arguments, fields, wrong_argument
from gradcell.nn.optim.optimizer import Optimizer, assign, averaged
from gradcell.tensors.parameter import Parameter, ParameterTuple


def _power(base: float, step: Tensor) -> tuple[Tensor, Tensor]:
    """(base ** step, 1 - base ** step), the second without cancellation."""
    exponent = step * math.log(base)
    return _ops.exp(exponent), -_ops.expm1(exponent)


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015, section 2, in the form with the corrections in the learning rate).

        m = beta1 * m + (1 - beta1) * g;   v = beta2 * v + (1 - beta2) * g * g
        a = lr * sqrt(1 - beta2 ** t) / (1 - beta1 ** t)
        p = p - a * m / (sqrt(v) + eps)

    use_nesterov: beta1 * m + (1 - beta1) * g in place of m (Dozat 2016). use_amsgrad: the largest v
    so far in place of v (Reddi et al. 2018). params, learning_rate, weight_decay, loss_scale: see
    Optimizer. kwargs: use_lazy and use_offload, which must be False. Raises ValueError for betas
    out of (0, 1) and an eps that is not positive, NotImplementedError for use_lazy and use_offload.
    """

    _power_shape: ClassVar[tuple[int, ...]] = ()  #: of the parameters beta1_power and beta2_power
    _fixed = ("use_amsgrad",)
    _checks: ClassVar[dict[str, Any]] = {
        **Optimizer._checks,
        "beta1": fields.number(above=0, below=1),
        "beta2": fields.number(above=0, below=1),
        "eps": fields.number(above=0),
        "use_nesterov": fields.boolean(),
        "use_amsgrad": fields.boolean(),
    }
    beta1: float
    beta2: float
    eps: float
    use_nesterov: bool
    use_amsgrad: bool

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
        use_amsgrad: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        for name, value in kwargs.items():
            if name not in ("use_lazy", "use_offload"):
                raise wrong_argument("Adam", name, inspect.signature(Adam.__init__).parameters)
            if value:
                raise NotImplementedError(f"Adam: {name} is not implemented")
        arguments.boolean(use_locking, self.cls_name, "use_locking")
        given = {"beta1": beta1, "beta2": beta2, "eps": eps}
        given |= {"use_nesterov": use_nesterov, "use_amsgrad": use_amsgrad}
        for name, value in given.items():
            setattr(self, name, self._checks[name].check(value, self.cls_name, name))
        self.use_amsgrad: bool = use_amsgrad
        ones = _ops.full(list(self._power_shape), 1.0, float32)
        self.beta1_power: Parameter = Parameter(Tensor(ones), name="beta1_power")
        self.beta2_power: Parameter = Parameter(Tensor(ones), name="beta2_power")
        self.moment1: ParameterTuple = self.state("moment1")
        self.moment2: ParameterTuple = self.state("moment2")
        if use_amsgrad:
            self.vhat: ParameterTuple = self.state("vhat")

    def step_scalars(self, step: Tensor) -> Any:
        power1, rest1 = _power(self.beta1, step)
        power2, rest2 = _power(self.beta2, step)
        self.beta1_power._set_array(_ops.reshape(power1, list(self._power_shape)))
        self.beta2_power._set_array(_ops.reshape(power2, list(self._power_shape)))
        return _ops.sqrt(rest2) / rest1

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        b1, b2 = self.beta1, self.beta2
        m = averaged(self.moment1[k], g, b1)
        v = averaged(self.moment2[k], g * g, b2)
        if self.use_amsgrad:
            v = assign(self.vhat[k], _ops.maximum(self.vhat[k], v))
        if self.use_nesterov:
            m = b1 * m + (1.0 - b1) * g
        return p - (lr * scalars) * m / (_ops.sqrt(v) + self.eps)  # type: ignore[no-any-return]


class Decoupled(Optimizer):
    """Base class of optimisers of two moments whose decay is part of the update."""

    def _set_moments(self, name: str) -> None:
        self.moments1: ParameterTuple = self.state(f"{name}_m")
        self.moments2: ParameterTuple = self.state(f"{name}_v")

    def _next_moments(self, k: int, g: Tensor) -> tuple[Tensor, Tensor]:
        m = averaged(self.moments1[k], g, self.beta1)
        return m, averaged(self.moments2[k], g * g, self.beta2)

    def decay_weight(self, gradients: Any) -> tuple[Tensor, ...]:
        """The gradients: the decay is part of the update."""
        return tuple(gradients)


@fields.declared
class AdamWeightDecay(Decoupled):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019) and, as in MindSpore and BERT's
    training, no correction of the moments' start.

        m = beta1 * m + (1 - beta1) * g;   v = beta2 * v + (1 - beta2) * g * g
        p = p - lr * (m / (sqrt(v) + eps) + weight_decay * p)

    params, learning_rate, weight_decay: see Optimizer. Raises ValueError for betas out of (0, 1)
    and an eps that is not positive.
    """

    params: InitVar[Any] = fields.of_base("parameters")
    learning_rate: InitVar[Any] = fields.of_base(default=1e-3)
    beta1: float = fields.number(above=0, below=1, default=0.9)
    beta2: float = fields.number(above=0, below=1, default=0.999)
    eps: float = fields.number(above=0, default=1e-6)
    weight_decay: InitVar[Any] = fields.of_base(default=0.0)

    def _build(self) -> None:
        self._set_moments("adam")

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        m, v = self._next_moments(k, g)
        update = m / (_ops.sqrt(v) + self.eps)
        factor = self._decay_factor(k)
        return p - lr * (update if factor is None else update + factor * p)


@fields.declared
class LazyAdam(Adam):
    """Adam whose moments change only where a sparse gradient has rows: gradients are dense here, so
    this is Adam.

    params: a list of Parameters, or of groups with options of their own. learning_rate: the rate at
    the beginning. use_nesterov: whether the gradient is taken after the momentum (Nesterov).
    weight_decay: the factor of the weights that is added to their gradients. loss_scale: what
    gradients are divided by.
    """

    _power_shape = (1,)

    params: InitVar[Any] = fields.of_base()
    learning_rate: InitVar[Any] = fields.of_base(default=1e-3)
    beta1: InitVar[float] = fields.of_base(default=0.9)
    beta2: InitVar[float] = fields.of_base(default=0.999)
    eps: InitVar[float] = fields.of_base(default=1e-8)
    use_locking: InitVar[bool] = fields.of_base(default=False)
    use_nesterov: InitVar[bool] = fields.of_base(default=False)
    weight_decay: InitVar[Any] = fields.of_base(default=0.0)
    loss_scale: InitVar[float] = fields.of_base(default=1.0)


class AdamOffload(LazyAdam):
    """Adam that MindSpore runs on the host: here it runs where everything does.

    params: a list of Parameters, or of groups with options of their own. learning_rate: the rate at
    the beginning. use_nesterov: whether the gradient is taken after the momentum (Nesterov).
    weight_decay: the factor of the weights that is added to their gradients. loss_scale: what
    gradients are divided by.
    """


@fields.declared
class AdaMax(Optimizer):
    """The AdaMax optimiser (Kingma and Ba 2015, algorithm 2).

        m = beta1 * m + (1 - beta1) * g;   v = max(beta2 * v, |g|)
        p = p - lr / (1 - beta1 ** t) * m / (v + eps)

    params, learning_rate, weight_decay, loss_scale: see Optimizer. Raises ValueError for betas out
    of (0, 1) and an eps that is not positive.
    """

    params: InitVar[Any] = fields.of_base("parameters")
    learning_rate: InitVar[Any] = fields.of_base(default=1e-3)
    beta1: float = fields.number(above=0, below=1, default=0.9)
    beta2: float = fields.number(above=0, below=1, default=0.999)
    eps: float = fields.number(above=0, default=1e-8)
    weight_decay: InitVar[Any] = fields.of_base(default=0.0)
    loss_scale: InitVar[float] = fields.of_base(default=1.0)

    def _build(self) -> None:
        self.beta1_power: Parameter = Parameter(Tensor([1.0], float32), name="beta1_power")
        self.moment1: ParameterTuple = self.state("moment1")
        self.moment2: ParameterTuple = self.state("moment2")

    def step_scalars(self, step: Tensor) -> Any:
        power, rest = _power(self.beta1, step)
        self.beta1_power._set_array(_ops.reshape(power, [1]))
        return 1.0 / rest

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        m = averaged(self.moment1[k], g, self.beta1)
        v = assign(self.moment2[k], _ops.maximum(self.beta2 * self.moment2[k], _ops.abs(g)))
        return p - (lr * scalars) * m / (v + self.eps)  # type: ignore[no-any-return]
