"""Activation functions as cells."""

from __future__ import annotations

from typing import Any

from gradcell._core import Tensor
from gradcell._core import ops as _ops
from gradcell.nn.arguments import where
from gradcell.nn.cell import Cell


class ReLU(Cell):
    """max(x, 0), elementwise. Any shape, any numeric dtype."""

    def construct(self, x: Tensor) -> Tensor:
        return _ops.relu(x)


class Tanh(Cell):
    """tanh(x), elementwise. Any shape, floating dtypes."""

    def construct(self, x: Tensor) -> Tensor:
        return _ops.tanh(x)


class Sigmoid(Cell):
    """1 / (1 + exp(-x)), elementwise. Any shape, floating dtypes."""

    def construct(self, x: Tensor) -> Tensor:
        return _ops.sigmoid(x)


_BY_NAME: dict[str, type[Cell]] = {"relu": ReLU, "tanh": Tanh, "sigmoid": Sigmoid}


def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """The activation of a name, as a new cell; None for None.

    Raises KeyError for an unknown name.
    """
    if name is None:
        return None
    if name not in _BY_NAME:
        owner = f"For '{prim_name}', the" if prim_name else "The"
        raise KeyError(f"{owner} 'name' must be in {list(_BY_NAME)}, but got {name}.{where()}")
    return _BY_NAME[name]()


def activation_of(owner: str, activation: Any) -> Any:
    """A cell from a name, a cell, a primitive or None. Raises TypeError for anything else."""
    from gradcell.ops.primitive import Primitive

    if activation is None or isinstance(activation, (Cell, Primitive)):
        return activation
    if isinstance(activation, str):
        return get_activation(activation)
    raise TypeError(
        f"For '{owner}', the 'activation' must be str or Cell or Primitive, but got "
        f"{type(activation).__name__}.{where()}"
    )
