"""Runs of an optimiser of `nn`, as those of any solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value, explain, kind_of
from gradcell.compilation.compiled import jit
from gradcell.solvers.first import FirstSteps
from gradcell.solvers.solver import Solver, SolverState

__all__ = ["Descent"]


class Descent(Solver[SolverState]):
    """Steps of an optimiser of `nn`, with the runs, callbacks and results that all solvers have:
    `gc.Descent(loss, nn.Adam(net.trainable_params(), 1e-3), x, y).run(5000, progress=500)`.

    loss: a function of *args that gives a scalar. optimizer: an optimiser of the Parameters to train. args:
    what loss is called with; a run's `resample` gives others, such as the next batch. loss_tolerance: a run
    ends when the loss before a step is at most that; value_tolerance: when a hundred steps together lowered
    it by less than this share of it. A step whose loss or gradient is not finite leaves the parameters, and
    ends the run. For loss scaling, and steps of a loop of your own, there is `train_step`.

    Raises TypeError unless optimizer is one of `nn`, ValueError for negative tolerances.
    """

    _name, _window = "Descent", 100
    steps: int = 0
    evaluations: int = 0

    def __init__(
        self,
        loss: Callable[..., Tensor],
        optimizer: Any,
        *args: Any,
        loss_tolerance: float | None = None,
        value_tolerance: float = 0.0,
    ) -> None:
        from gradcell import nn

        if not isinstance(optimizer, nn.Optimizer):
            bad_type(
                "Descent: expected an optimiser, such as nn.Adam(net.trainable_params(), 1e-3), got "
                f"{kind_of(optimizer)}"
            )
        super().__init__(list(optimizer.parameters), loss_tolerance, 0.0, value_tolerance)
        self.optimizer: Any = optimizer
        self._loss = loss
        self._args = args
        self._steps = FirstSteps(loss, optimizer)
        self._compiled: Any = jit(loss)

    def _arguments(self, points: tuple[Any, ...]) -> tuple[Any, ...]:
        return points or self._args

    def _objective(self, *args: Any) -> Tensor:
        return self._loss(*args)

    def _begin(self, points: tuple[Any, ...]) -> None:
        self._args = points or self._args

    def _advance(self, most: int, evaluations: int) -> SolverState:
        state = self._of_first(self._steps, (), "descended")
        self.evaluations += 1
        self.steps += state.reason == "descended"
        return self._state(state.reason, state.loss)

    def _value(self) -> float:
        return float(self._compiled(*self._args))

    def state_dict(self) -> dict[str, Any]:
        """Return the optimiser's own state besides the parameters, arrays by name, and steps."""
        fitted = {id(p) for p in self._fitted}
        own = (p for p in self.optimizer.get_parameters() if id(p) not in fitted)
        return {"steps": self.steps, **{p.name: p.asnumpy().copy() for p in own}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what state_dict gave. Raises ValueError for that of another optimiser."""
        mine = self.state_dict()
        if set(mine) != set(state):
            bad_value(f"Descent: the state must have {sorted(mine)}, got {sorted(state)}")
        for p in self.optimizer.get_parameters():
            if p.name in state:
                p.set_data(Tensor(state[p.name], p.dtype))
        self.steps = int(state["steps"])


explain(globals())
