"""torch.optim as DeepXDE asks for it: rules that are recorded as a part of the training step, and
schedules of the learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcell import ops
from gradcell._core import Tensor
from gradcell.base import bad_key, bad_type, bad_value, unsupported
from gradcell.deepxde.names import Names
from gradcell.tensors.parameter import Parameter


class Optimizer:
    """Parameters, and how gradients change them.

    groups: dicts of "params" and of options that differ from the others'. The learning rate and the
    number of steps are Parameters too, so that a compiled step reads them.
    """

    #: names of what is kept for each parameter, and PyTorch's names of the same
    slots: tuple[str, ...] = ()
    pytorchs: tuple[str, ...] = ()
    decoupled = False  #: whether weight decay is a step of its own, not part of the gradient

    def __init__(self, params: Any, lr: float = 1e-3, **options: Any) -> None:
        given = list(params)
        if not given or not isinstance(given[0], dict):
            given = [{"params": given}]
        self.param_groups: list[dict[str, Any]] = [
            {"lr": lr, **options, **g, "params": list(g["params"])} for g in given
        ]
        self.parameters: list[Any] = [p for g in self.param_groups for p in g["params"]]
        if not self.parameters:
            bad_value(f"{type(self).__name__}: there are no parameters to train")
        if any(p.dtype.is_complex for p in self.parameters):
            bad_type(
                f"{type(self).__name__}: parameters must be real here; nn has others' optimisers"
            )
        if any(g["lr"] != lr for g in self.param_groups):
            unsupported(f"{type(self).__name__}: groups of parameters have one learning rate here")
        self.state: dict[str, list[Parameter]] = {
            name: [_zeros(p, name) for p in self.parameters] for name in self.slots
        }
        self.rate: Parameter = Parameter(
            Tensor(np.float64(lr)), name="learning_rate", requires_grad=False
        )
        self.steps: Parameter = Parameter(Tensor(np.float64(0)), name="steps", requires_grad=False)
        self._base_rate = lr

    def set_rate(self, lr: float) -> None:
        """The learning rate from now on."""
        self.rate.set_data(Tensor(np.float64(lr)))

    def update(self, gradients: Sequence[Tensor]) -> None:
        """Records or takes one step."""
        self.steps.set_data(self.steps + 1)
        found = iter(gradients)
        number = 0
        for group in self.param_groups:
            for p in group["params"]:
                slots = [self.state[name][number] for name in self.slots]
                value, g, decay = p, next(found), group.get("weight_decay")
                if decay and self.decoupled:
                    value = p - (self.rate * decay).astype(p.dtype) * p
                elif decay:
                    g = g + decay * p
                p.set_data(self.rule(value, g, slots, group))
                number += 1

    def rule(self, p: Tensor, g: Tensor, slots: list[Parameter], group: dict[str, Any]) -> Tensor:
        """The parameter after a step; sets the slots."""
        unsupported(
            f"{type(self).__name__} takes no single steps: give model.compile its name "
            '("L-BFGS"), not the optimizer'
        )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Nothing: gradients are not kept."""

    def _kept(self) -> Iterator[tuple[str, Parameter]]:
        yield "steps", self.steps
        for name, values in self.state.items():
            yield from ((f"{name}.{i}", v) for i, v in enumerate(values))

    def state_dict(self) -> dict[str, Any]:
        """Return the state that is kept between steps, as arrays by name."""
        return {name: p.asnumpy().copy() for name, p in self._kept()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Sets what is kept. Raises KeyError for the state of another optimiser.

        PyTorch's own states are read too; as there, the learning rate is then the saved one.
        """
        if "param_groups" in state:
            state = self._from_pytorch(state)
        for name, p in self._kept():
            if name not in state:
                bad_key(f"load_state_dict: the state has no {name}: it is of another optimizer")
            p.set_data(Tensor(np.asarray(state[name]), p.dtype))

    def _from_pytorch(self, state: dict[str, Any]) -> dict[str, Any]:
        kept, groups = state["state"], state["param_groups"]
        self._base_rate = groups[0].get("initial_lr", groups[0]["lr"])
        self.set_rate(groups[0]["lr"])
        found: dict[str, Any] = {"steps": 0.0}
        for name, values in self.state.items():
            for i, p in enumerate(values):
                found[f"{name}.{i}"] = np.zeros(p.shape)
        for i, of_one in kept.items():
            found["steps"] = float(of_one.get("step", 0))
            for name, theirs in zip(self.slots, self.pytorchs, strict=True):
                if theirs not in of_one:
                    return {}
                found[f"{name}.{i}"] = of_one[theirs]
        return found


def _zeros(p: Parameter, name: str) -> Parameter:
    return Parameter(
        Tensor(np.zeros(p.shape), p.dtype), name=f"{p.name}.{name}", requires_grad=False
    )


class SGD(Optimizer):
    """p - lr g, or with momentum."""

    def __init__(
        self, params: Any, lr: float = 1e-3, momentum: float = 0, weight_decay: float = 0
    ) -> None:
        self.slots: tuple[str, ...] = ("velocity",) if momentum else ()
        self.pytorchs: tuple[str, ...] = ("momentum_buffer",) if momentum else ()
        super().__init__(params, lr, momentum=momentum, weight_decay=weight_decay)

    def rule(self, p: Any, g: Any, slots: Any, group: Any) -> Any:
        if slots:
            g = group["momentum"] * slots[0] + g
            slots[0].set_data(g)
        return p - self.rate.astype(p.dtype) * g


class RMSprop(Optimizer):
    """G. Hinton's lecture 6e: steps divided by the root of the mean square gradient."""

    slots: tuple[str, ...] = ("square",)
    pytorchs: tuple[str, ...] = ("square_avg",)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
    ) -> None:
        super().__init__(params, lr, alpha=alpha, eps=eps, weight_decay=weight_decay)

    def rule(self, p: Any, g: Any, slots: Any, group: Any) -> Any:
        square = group["alpha"] * slots[0] + (1 - group["alpha"]) * ops.square(g)
        slots[0].set_data(square)
        return p - self.rate.astype(p.dtype) * g / (ops.sqrt(square) + group["eps"])


class Adam(Optimizer):
    """D. Kingma, J. Ba, ICLR 2015, algorithm 1; eps is added to the root of the corrected second moment."""

    slots: tuple[str, ...] = ("moment", "square")
    pytorchs: tuple[str, ...] = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
    ) -> None:
        super().__init__(params, lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def rule(self, p: Any, g: Any, slots: Any, group: Any) -> Any:
        b1, b2 = group["betas"]
        moment = b1 * slots[0] + (1 - b1) * g
        square = b2 * slots[1] + (1 - b2) * ops.square(g)
        slots[0].set_data(moment)
        slots[1].set_data(square)
        left = [1 - ops.exp(math.log(b) * self.steps) for b in (b1, b2)]
        step, scale = self.rate / left[0], 1 / ops.sqrt(left[1])
        root = ops.sqrt(square) * scale.astype(p.dtype)
        return p - step.astype(p.dtype) * moment / (root + group["eps"])


class AdamW(Adam):
    """I. Loshchilov, F. Hutter, ICLR 2019: Adam whose weight decay is not part of the gradient."""

    decoupled = True


class LBFGS(Optimizer):
    """Stands for the options of L-BFGS, which gradcell.LBFGS computes."""

    def __init__(self, params: Any, lr: float = 1, **options: Any) -> None:
        super().__init__(params, lr, **options)


# Schedules ------------------------------------------------------------------------------------------


class Schedule:
    """The learning rate by the number of steps that have been taken."""

    def __init__(self, optimizer: Optimizer, rate: Callable[[float, int], float]) -> None:
        self.optimizer: Optimizer = optimizer
        self.taken: int = 0
        self._rate = rate

    def step(self) -> None:
        """After each step."""
        self.taken += 1
        self.optimizer.set_rate(self._rate(self.optimizer._base_rate, self.taken))


OPTIM = Names("torch.optim", {
    "Optimizer": Optimizer, "SGD": SGD, "RMSprop": RMSprop, "Adam": Adam, "AdamW": AdamW,
    "LBFGS": LBFGS,
    "lr_scheduler": Names("torch.optim.lr_scheduler", {
        "StepLR": lambda optimizer, step_size, gamma=0.1: Schedule(
            optimizer, lambda lr, n: lr * gamma ** (n // step_size)),
        "CosineAnnealingLR": lambda optimizer, T_max, eta_min=0.0: Schedule(
            optimizer, lambda lr, n: eta_min + (lr - eta_min) * (1 + math.cos(math.pi * n / T_max)) / 2),
        "ExponentialLR": lambda optimizer, gamma: Schedule(optimizer, lambda lr, n: lr * gamma**n),
        "LambdaLR": lambda optimizer, lr_lambda: Schedule(optimizer, lambda lr, n: lr * lr_lambda(n)),
    }),
})  # fmt: skip
