"""Training in which the first layers rest for some steps: their gradients are not computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcell import _core, arguments
from gradcell._core import Tensor
from gradcell._location import where
from gradcell.boost.grad_accumulation import GradientAccumulation
from gradcell.nn.cell import Cell
from gradcell.nn.optim import Optimizer
from gradcell.nn.wrap import DistributedGradReducer
from gradcell.parameter import Parameter

__all__ = ["FreezeOpt", "GradientFreeze", "freeze_cell"]

_CONTINUOUS, _INTERVAL = 0, 1


class ParameterProcess:
    """Groups of an optimiser's parameters."""

    @staticmethod
    def generate_group_params(parameters: Sequence[Parameter], origin_params: Any) -> list[Any]:
        """An optimiser's groups with only these parameters in them.

        origin_params: what the optimiser was given, Parameters or groups. Those in no group join the group
        with the most settings. Raises ValueError for none, TypeError for other members.
        """
        groups = list(origin_params or ())
        if not groups:
            raise ValueError(f"Optimizer got an empty parameter list.{where()}")
        if isinstance(groups[0], Parameter):
            return [{"params": list(parameters)}]
        if not isinstance(groups[0], dict):
            raise TypeError(f"Only a list of Parameter or dict can be supported.{where()}")
        named = {p.name: p for p in parameters}
        made: list[dict[str, Any]] = []
        for group in groups:
            if "order_params" in group:
                made.append({**group, "order_params": list(parameters)})
                continue
            inside = [named.pop(p.name) for p in group["params"] if p.name in named]
            made.append({**group, "params": inside})
        if named:
            largest: dict[str, Any] = max((g for g in groups if "params" in g), key=len, default={})
            made.append({**largest, "params": list(named.values())})
        return [g for g in made if g.get("params", True)]


class FreezeOpt(Cell):
    """An optimiser for each of several groups of parameters, of which one is used in a step.

    opt: an optimiser of all parameters. train_parameter_groups: the groups; None: one of all parameters.
    train_strategy: which group is trained in each step, integers or an int32 vector. Raises TypeError,
    ValueError.
    """

    def __init__(
        self, opt: Optimizer, train_parameter_groups: Any = None, train_strategy: Any = None
    ) -> None:
        super().__init__()
        if not isinstance(opt, Optimizer):
            raise TypeError(
                f"The first arg 'opt' must be an Optimizer instance, but got {type(opt)}{where()}"
            )
        if train_strategy is not None and train_parameter_groups is None:
            raise ValueError(
                "When the 'train_strategy' is specified, the value of 'train_parameter_groups' must also "
                f"be specified{where()}"
            )
        groups = (
            [list(opt.parameters)] if train_parameter_groups is None else train_parameter_groups
        )
        if not isinstance(groups, (tuple, list)):
            raise TypeError(
                f"The specified 'train_parameter_groups' should be tuple or list{where()}"
            )
        self.train_strategy = self._checked(train_strategy)
        self.parameters, self.learning_rate = opt.parameters, opt.init_learning_rate
        self.opts: list[Optimizer] = []
        for index, params in enumerate(groups):
            if not isinstance(params, (tuple, list)):
                raise TypeError(
                    "The each element of 'train_parameter_groups' should be tuple or list to store the "
                    f"Parameter{where()}"
                )
            rate = self._rates(index, len(groups))
            kind: Any = type(opt)
            made = kind(params=list(params), learning_rate=rate, **opt.init_args)
            self.opts.append(made)
            made.update_parameters_name(f"boost_{index}")

    @staticmethod
    def _checked(strategy: Any) -> Tensor | None:
        if isinstance(strategy, (tuple, list)):
            return Tensor(arguments.integers(strategy, "FreezeOpt", "train_strategy"), _core.int32)
        if strategy is None or isinstance(strategy, Tensor):
            if strategy is not None and (strategy.ndim != 1 or strategy.dtype != _core.int32):
                raise ValueError(
                    "When train_strategy is a Tensor, the dimension should be 1 and the dtype should be "
                    f"int32{where()}"
                )
            return strategy
        raise TypeError(
            f"The specified 'train_strategy' should be None, tuple, list or Tensor{where()}"
        )

    def _rates(self, index: int, count: int) -> Any:
        """The learning rate of a group: of a list, those of its own steps."""
        rates = self.learning_rate
        if not isinstance(rates, list) or self.train_strategy is None:
            return rates
        chosen: Any = self.train_strategy.asnumpy()
        if len(rates) > len(chosen):
            return rates
        own = [r for r, c in zip(rates, chosen, strict=False) if c == index]
        return own or rates


class _TrainFreezeCell(Cell):
    """One step of a group's parameters."""

    def __init__(
        self, net: Cell, sens: Any, grad: Any, grad_reducer: Any, optimizer: Optimizer, steps: int
    ) -> None:
        super().__init__(auto_prefix=False)
        self.net, self.sens, self.grad = net, sens, grad
        self.grad_reducer, self.opt = grad_reducer, optimizer
        self.parameters = optimizer.parameters
        self.grad_accumulation = GradientAccumulation(steps, optimizer) if steps > 1 else None

    def construct(self, *inputs: Any) -> Any:
        loss = self.net(*inputs)
        sens = Tensor(np.full(tuple(loss.shape), self.sens), loss.dtype)
        grads = self.grad_reducer(self.grad(self.net, self.parameters)(*inputs, sens))
        if self.grad_accumulation is not None:
            return self.grad_accumulation(loss, grads)
        self.opt(grads)
        return loss


def freeze_cell(
    reducer_flag: bool, network: Cell, optimizer: FreezeOpt, sens: float, grad: Any,
    use_grad_accumulation: bool, mean: bool | None = None, degree: int | None = None,
    max_accumulation_step: int = 1,
) -> tuple[Cell, ...]:  # fmt: skip
    """A training step for each of the optimiser's groups: cells called with the network's inputs, which
    return the loss.

    reducer_flag: gradients are summed over processes, averaged if mean. grad: GradOperation(get_by_list=
    True, sens_param=True); sens: what the gradients are multiplied by.
    """
    steps = max_accumulation_step if use_grad_accumulation else 1

    def reducer(opt: Optimizer) -> Any:
        return DistributedGradReducer(opt.parameters, mean, degree) if reducer_flag else tuple

    return tuple(
        _TrainFreezeCell(network, sens, grad, reducer(opt), opt, steps) for opt in optimizer.opts
    )


class GradientFreeze:
    """Which layers rest in which step.

    param_groups: how many groups there are; group i lacks the first i parts of the network. freeze_type 0:
    a run of steps of all layers, then one of each other group; 1: groups between them, drawn by
    numpy.random. freeze_p: the share of steps of all layers. total_steps: of the training.
    """

    def __init__(
        self, param_groups: int, freeze_type: int, freeze_p: float, total_steps: int
    ) -> None:
        self._param_groups, self._freeze_type = param_groups, freeze_type
        self._freeze_p, self._total_steps = freeze_p, total_steps

    def split_parameters_groups(
        self, net: Cell, freeze_para_groups_number: int
    ) -> list[list[Parameter]]:
        """The groups; a part begins at a parameter that is neither a bias nor of a 'bn', after three or
        more."""
        parts: list[list[Parameter]] = [[]]
        for p in net.trainable_params():
            if len(parts[-1]) >= 3 and "bn" not in p.name and "bias" not in p.name:
                parts.append([])
            parts[-1].append(p)
        stride = len(parts) // freeze_para_groups_number
        return [
            [p for part in parts[i * stride :] for p in part]
            for i in range(freeze_para_groups_number)
        ]

    def generate_freeze_index_sequence(
        self, parameter_groups_number: int, freeze_strategy: int, freeze_p: float, total_steps: int
    ) -> list[int]:
        """The group of each step. Raises ValueError for another strategy than 0 and 1."""
        count, groups = int(total_steps * 1.01), list(range(1, parameter_groups_number))
        if not groups:
            return [0] * count
        if freeze_strategy == _CONTINUOUS:
            run = [0] * int(freeze_p * len(groups) // (1 - freeze_p) + 0.5) + groups
            return run * -(-count // len(run))
        if freeze_strategy != _INTERVAL:
            raise ValueError(f"Unsupported freezing training strategy '{freeze_strategy}'{where()}")
        chances = np.array(groups) / sum(groups)
        found = [0]
        while len(found) < count:
            rests = len(found) - found.count(0)
            rest = rests / len(found) < 1 - freeze_p
            found.append(int(np.random.choice(groups[::-1], p=chances)) if rest else 0)
        return found

    def freeze_generate(self, network: Cell, optimizer: Optimizer) -> tuple[Cell, FreezeOpt]:
        """(the network, an optimiser that trains it so)."""
        groups = [
            ParameterProcess.generate_group_params(group, optimizer.init_params["params"])
            for group in self.split_parameters_groups(network, self._param_groups)
        ]
        strategy = self.generate_freeze_index_sequence(
            self._param_groups, self._freeze_type, self._freeze_p, self._total_steps
        )
        return network, FreezeOpt(optimizer, groups, strategy)
