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


class ParameterProcess:
    """Groups of an optimiser's parameters."""

    @staticmethod
    def generate_group_params(parameters: Sequence[Parameter], origin_params: Any) -> list[Any]:
        """An optimiser's groups, or its Parameters, with only these in them; those that are in none join
        the group with the most settings. Raises ValueError for no groups."""
        groups = list(origin_params or ())
        if not groups:
            raise ValueError(f"Optimizer got an empty parameter list.{where()}")
        if isinstance(groups[0], Parameter):
            return [{"params": list(parameters)}]
        named, made = {p.name: p for p in parameters}, []
        for group in groups:
            if "order_params" in group:
                made.append({**group, "order_params": list(parameters)})
            else:
                inside = [named.pop(p.name) for p in group["params"] if p.name in named]
                made.append({**group, "params": inside})
        if named:
            largest: Any = max((g for g in groups if "params" in g), key=len, default={})
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
            raise TypeError(f"FreezeOpt: 'opt' must be an Optimizer, but got {type(opt)}{where()}")
        if train_strategy is not None and train_parameter_groups is None:
            raise ValueError(
                f"FreezeOpt: a 'train_strategy' needs 'train_parameter_groups'{where()}"
            )
        if train_strategy is not None and not isinstance(train_strategy, Tensor):
            order = arguments.integers(train_strategy, "FreezeOpt", "train_strategy")
            train_strategy = Tensor(order, _core.int32)
        self.train_strategy, self.parameters = train_strategy, opt.parameters
        self.learning_rate = opt.init_learning_rate
        groups: Any = train_parameter_groups or [list(opt.parameters)]
        self.opts: list[Optimizer] = []
        for index, params in enumerate(groups):
            kind: Any = type(opt)
            made = kind(params=list(params), learning_rate=self._rates(index), **opt.init_args)
            made.update_parameters_name(f"boost_{index}")
            self.opts.append(made)

    def _rates(self, index: int) -> Any:
        """The learning rate of a group: of a list, those of its own steps."""
        rates = self.learning_rate
        if not isinstance(rates, list) or self.train_strategy is None:
            return rates
        chosen: Any = self.train_strategy.asnumpy()
        if len(rates) > len(chosen):
            return rates
        return [r for r, c in zip(rates, chosen, strict=False) if c == index] or rates


class _TrainFreezeCell(Cell):
    """One step of a group's parameters."""

    def __init__(self, net: Cell, sens: Any, grad: Any, reducer: Any, optimizer: Any) -> None:
        super().__init__(auto_prefix=False)
        self.net, self.sens, self.grad, self.grad_reducer = net, sens, grad, reducer
        self.opt, self.parameters = optimizer, optimizer.parameters

    def construct(self, *inputs: Any) -> Any:
        loss = self.net(*inputs)
        sens = Tensor(np.full(tuple(loss.shape), self.sens), loss.dtype)
        grads = self.grad_reducer(self.grad(self.net, self.parameters)(*inputs, sens))
        if isinstance(self.opt, GradientAccumulation):
            return self.opt(loss, grads)
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

    def step(opt: Any) -> Cell:
        reducer: Any = tuple
        if reducer_flag:
            reducer = DistributedGradReducer(opt.parameters, mean, degree)
        cell = _TrainFreezeCell(network, sens, grad, reducer, opt)
        if use_grad_accumulation:
            cell.opt = GradientAccumulation(max_accumulation_step, opt)
        return cell

    return tuple(map(step, optimizer.opts))


class GradientFreeze:
    """Which layers rest in which step.

    param_groups: how many groups there are; group i lacks the first i parts of the network. freeze_type 0:
    a run of steps of all layers, then one of each other group; 1: groups between them, drawn by
    numpy.random. freeze_p: the share of steps of all layers. total_steps: of the training.
    """

    def __init__(
        self, param_groups: int, freeze_type: int, freeze_p: float, total_steps: int
    ) -> None:
        self._plan = (param_groups, freeze_type, freeze_p, total_steps)

    def split_parameters_groups(self, net: Cell, freeze_para_groups_number: int) -> list[Any]:
        """The groups; a part begins at a parameter that is neither a bias nor of a 'bn', after three or
        more."""
        parts: list[list[Parameter]] = [[]]
        for p in net.trainable_params():
            if len(parts[-1]) >= 3 and "bn" not in p.name and "bias" not in p.name:
                parts.append([])
            parts[-1].append(p)
        stride = len(parts) // freeze_para_groups_number
        return [sum(parts[i * stride :], []) for i in range(freeze_para_groups_number)]

    def generate_freeze_index_sequence(
        self, parameter_groups_number: int, freeze_strategy: int, freeze_p: float, total_steps: int
    ) -> list[int]:
        """The group of each step. Raises ValueError for another strategy than 0 and 1."""
        count, groups = int(total_steps * 1.01), list(range(1, parameter_groups_number))
        if not groups:
            return [0] * count
        if freeze_strategy == 0:
            run = [0] * int(freeze_p * len(groups) // (1 - freeze_p) + 0.5) + groups
            return run * -(-count // len(run))
        if freeze_strategy != 1:
            raise ValueError(f"Unsupported freezing training strategy '{freeze_strategy}'{where()}")
        chances, found = np.array(groups) / sum(groups), [0]
        while len(found) < count:
            rest = 1 - found.count(0) / len(found) < 1 - freeze_p
            found.append(int(np.random.choice(groups[::-1], p=chances)) if rest else 0)
        return found

    def freeze_generate(self, network: Cell, optimizer: Optimizer) -> tuple[Cell, FreezeOpt]:
        """(the network, an optimiser that trains it so)."""
        given = optimizer.init_params["params"]
        split = self.split_parameters_groups(network, self._plan[0])
        groups = [ParameterProcess.generate_group_params(group, given) for group in split]
        return network, FreezeOpt(
            optimizer, groups, self.generate_freeze_index_sequence(*self._plan)
        )
